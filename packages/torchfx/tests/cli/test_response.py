"""`torchfx response` draws and describes."""

import json
import re

import pytest

from command import run_here
from torchfx.cli import response


def test_it_draws_and_describes(capsys, tmp_path):
    picture = tmp_path / "low.png"
    assert response.run(["lobutterworth:1kHz,4", "gain:-6dB"], 48_000, picture, "text") == 0
    printed = capsys.readouterr().out
    assert printed.startswith("lobutterworth:1kHz,4 | gain:-6dB at 48000 Hz\n")
    *_, titles, facts = printed.splitlines()
    shown = dict(zip(re.split(r" {2,}", titles.strip()), re.split(r" {2,}", facts.strip()), strict=True))
    assert (shown["kind"], shown["gain dB"], shown["edges Hz"]) == ("low-pass", "-6.00", "1000")
    assert shown["octave beyond, dB"] == "-24.2 at 2000 Hz"
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_each_band_of_a_bank_has_a_row(capsys):
    assert response.run(["crossover:[200,2kHz]"], 48_000, None, "text") == 0
    kinds = [line.split()[0] for line in capsys.readouterr().out.splitlines()[-3:]]
    assert kinds == ["low-pass", "band-pass", "high-pass"]


def test_json_holds_the_numbers(capsys):
    assert response.run(["hibutterworth:80"], 44_100, None, "json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["schema"], found["fs"], found["filters"][0]["kind"]) == (1, 44_100, "high-pass")
    assert found["filters"][0]["edges_hz"] == pytest.approx([80], rel=1e-6)


@pytest.mark.parametrize(
    ("effects", "rate", "form", "message"),
    [
        (["normalize"], 48_000, "text", r"Normalize \(1st of 1\) is not linear and time-invariant here"),
        (["lobutterworth:30kHz"], 48_000, "text", "cutoff must lie in"),
        (["lobutterworth:1kHz"], 0, "text", "fs must lie in"),
        (["lobutterworth:1kHz"], 48_000, "word", "format"),
    ],
)
def test_misuse_is_status_2(capsys, effects, rate, form, message):
    assert response.run(effects, rate, None, form) == 2
    assert re.search(message, capsys.readouterr().err)


def test_a_picture_that_cannot_be_written_is_status_3(capsys, tmp_path):
    assert response.run(["gain:-6dB"], 48_000, tmp_path / "none" / "x.png", "text") == 3
    assert "cannot write" in capsys.readouterr().err


def test_a_rate_is_given_as_a_number_or_a_text(tmp_path):
    for rate in ("44100", "44.1kHz"):
        ran = run_here("response", "-e", "gain:-6dB", "--rate", rate, folder=tmp_path)
        assert (ran.returncode, "at 44100 Hz" in ran.stdout) == (0, True), ran.stderr
    refused = run_here("live", "-e", "gain:-6dB", "-r", "4s", folder=tmp_path)
    assert (refused.returncode, "fs must be a number in Hz or kHz" in refused.stderr) == (2, True)
