"""`torchfx response` draws and describes."""

import json
import re

import pytest

from torchfx.cli import response


def test_it_draws_and_describes(capsys, tmp_path):
    picture = tmp_path / "low.png"
    assert response.run(["lobutterworth:1kHz,4", "gain:-6dB"], 48_000, picture, "text") == 0
    printed = capsys.readouterr().out
    assert printed.startswith("lobutterworth:1kHz,4 | gain:-6dB at 48000 Hz\n")
    assert "Low-pass: -3 dB at 1000 Hz; pass band at -6.00 dB" in printed
    assert max(map(len, printed.splitlines())) <= 82
    assert picture.read_bytes().startswith(b"\x89PNG")


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
