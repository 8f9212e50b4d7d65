"""Levels of tones, and their pictures."""

import re
import subprocess
import sys

import numpy as np
import pytest
import torch

import torchfx as fx
from command import run_here
from torchfx import audio_io
from torchfx.spectrogram import as_text, spectrogram

FS = 16_000


def tone(path, seconds, hz=1000.0, amplitude=0.5, channels=1):
    phase = 2 * np.pi * hz / FS * np.arange(round(seconds * FS))
    audio_io.save(path, np.tile(amplitude * np.sin(phase), (channels, 1)), FS)
    return path


@pytest.mark.parametrize("seconds", [0.3, 2.0, 20.0])
@pytest.mark.parametrize("channels", [1, 2])
def test_a_tone_has_its_level_at_its_frequency(tmp_path, seconds, channels):
    found = spectrogram(tone(tmp_path / "a.wav", seconds, channels=channels))
    assert found.duration_s == seconds
    assert found.levels_db.shape[1] <= 1200
    inside = found.levels_db[:, found.levels_db.shape[1] // 2]
    assert inside.argmax() == round(1000 / (FS / 2048))
    assert inside.max() == pytest.approx(20 * np.log10(0.5), abs=0.01)
    assert inside[300:].max() < -90


@pytest.mark.parametrize("frames", [1, 2, 1023, 1025, 2049])
def test_files_of_any_length_are_drawn(tmp_path, frames):
    audio_io.save(tmp_path / "a.wav", np.full((1, frames), 0.1), FS)
    found = spectrogram(tmp_path / "a.wav")
    assert np.isfinite(found.levels_db).all()
    assert len(as_text(found, 60).splitlines()) == 22


def test_time_goes_from_left_to_right(tmp_path):
    quiet = np.zeros((1, FS))
    audio_io.save(tmp_path / "a.wav", np.concatenate([quiet, np.ones((1, FS)) * 0.5, quiet], axis=1), FS)
    lowest = spectrogram(tmp_path / "a.wav").levels_db[0]
    third = len(lowest) // 3
    assert lowest[: third - 90].max() < -150 < -20 < lowest[third + 90 : 2 * third - 90].min()


def test_the_command_draws_without_pytorch(tmp_path):
    tone(tmp_path / "a.wav", 1.0)
    ran = run_here("spectrogram", "a.wav", folder=tmp_path, environment={"COLUMNS": "60"})
    rows = ran.stdout.splitlines()
    assert ran.returncode == 0
    assert len(rows) == 22
    assert "@" in rows[-5] or "█" in rows[-5] or "▓" in rows[-5] or "#" in rows[-5]
    assert rows[-2].strip() == f"0{'1.00 s'.rjust(49)}"
    assert re.fullmatch(r" +-100 dB or less ' .*[@█]' 0 dB .*", rows[-1])
    assert run_here("spectrogram", "none.wav", folder=tmp_path).returncode == 3
    code = (
        "import sys; sys.argv = ['torchfx', 'info', 'a.wav']\n"
        "from torchfx.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "import torchfx.editing, torchfx.cli.spectrogram\nassert 'torch' not in sys.modules\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines()[-1].split() == ["a.wav", "WAV", "DOUBLE", "16000", "1", "1.00", "-"]


def test_the_picture_is_a_png(tmp_path):
    pytest.importorskip("matplotlib")
    tone(tmp_path / "a.wav", 1.0)
    assert run_here("spectrogram", "a.wav", "--png", "a.png", folder=tmp_path).returncode == 0
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    refused = run_here("spectrogram", "a.wav", "--png", "no/a.png", folder=tmp_path)
    assert refused.returncode == 3
    assert "cannot write no/a.png" in refused.stderr


def test_a_wave_gives_what_its_file_gives(tmp_path):
    x = torch.rand(2, 30_000, generator=torch.Generator().manual_seed(0)) - 0.5
    wave = fx.Wave(x, 44_100)
    wave.save(tmp_path / "a.wav", encoding="FLOAT")
    for mel in (None, 40):
        of_file, of_wave = spectrogram(tmp_path / "a.wav", mel=mel), wave.spectrogram(mel=mel)
        np.testing.assert_array_equal(of_file.levels_db, of_wave.levels_db)
        assert (of_wave.fs, of_wave.duration_s, of_wave.is_mel) == (44_100, 30_000 / 44_100, mel is not None)
        assert of_wave._repr_png_() == of_file._repr_png_()


@pytest.mark.parametrize("hz", [312.5, 1000.0, 3398.4375])  # in the middle of a bin
@pytest.mark.parametrize("mel", [None, 40])
def test_axes_say_where_a_tone_is(hz, mel):
    t = torch.arange(3 * FS) / FS
    tone = torch.where((t >= 1) & (t < 2), torch.sin(2 * torch.pi * hz * t), 0.0)
    found = fx.Wave(tone[None], FS).spectrogram(mel=mel)
    assert found.levels_db.shape == (len(found.frequencies_hz), len(found.times_s))
    row, column = np.unravel_index(found.levels_db.argmax(), found.levels_db.shape)
    near = np.sort(np.abs(found.frequencies_hz - hz))
    assert abs(found.frequencies_hz[row] - hz) in near[:2]
    loud = found.times_s[found.levels_db[row] > -20]
    assert (loud[0], loud[-1]) == pytest.approx((1, 2), abs=2048 / FS)
    assert found.levels_db[row, column] == pytest.approx(0, abs=0.1 if mel is None else 4)


def test_pictures_range_from_the_noise_to_the_loudest_value():
    random = torch.Generator().manual_seed(0)
    noise = 10 ** (-60 / 20) * torch.randn(1, 3 * FS, generator=random)
    tone = 0.5 * torch.sin(2 * torch.pi * 440 * torch.arange(3 * FS) / FS)
    floor = fx.Wave(noise, FS).spectrogram()
    assert floor.range_db[1] - floor.range_db[0] == 40
    low, high = fx.Wave(noise + tone, FS).spectrogram().range_db
    assert high == 0
    # A Hann window's noise bandwidth is 1.5 bins: noise of power s^2 is there like sines of squared amplitude
    # 4 s^2 1.5 / N in the mean. Values follow an exponential distribution, a tenth of which lies below -ln 0.9 of it.
    tenth = -60 + 10 * np.log10(4 * 1.5 / 2048 * -np.log(0.9))
    assert low == 10 * np.floor(tenth / 10)
    assert fx.Wave(tone[None], FS).spectrogram().range_db == (-100, 0)
    assert fx.Wave(torch.zeros(1, FS), FS).spectrogram().range_db == (-100, 0)
    loud = fx.Wave(1000 * tone[None], FS).spectrogram().range_db
    assert loud == (-40, 60)


@pytest.mark.parametrize("time", [1, 2, 5000])
@pytest.mark.parametrize("value", [0.0, 1e-30, 1.0])
@pytest.mark.parametrize("mel", [None, 1, 80])
def test_any_signal_has_a_picture(time, value, mel):
    pytest.importorskip("matplotlib")
    found = fx.Wave(torch.full((2, time), value), FS).spectrogram(mel=mel)
    assert np.isfinite(found.levels_db).all()
    assert found.range_db[1] - found.range_db[0] in range(40, 101)
    assert found._repr_png_().startswith(b"\x89PNG")
    assert len(as_text(found, 60).splitlines()) == 22


@pytest.mark.parametrize("mel", [None, 40])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_samples_that_are_not_finite_are_named_and_have_no_level(tmp_path, bad, mel):
    x = 0.1 * np.random.default_rng(0).standard_normal((2, 3 * FS))
    clean = fx.Wave(x, FS).spectrogram(mel=mel)
    x[1, [FS, FS + 5]] = bad
    audio_io.save(tmp_path / "a.wav", x, FS, encoding="DOUBLE")
    with pytest.warns(UserWarning, match=rf"a.wav: 2 samples are NaN or infinite, the first in frame {FS}"):
        found = spectrogram(tmp_path / "a.wav", mel=mel)
    lost = np.isnan(found.levels_db)
    assert (lost.all(0) == lost.any(0)).all()
    assert np.abs(found.times_s[lost.any(0)] - 1).max() <= 2048 / FS
    np.testing.assert_array_equal(found.levels_db[~lost], clean.levels_db[~lost])
    assert found.range_db == clean.range_db
    assert "?" in as_text(found)
    assert "?" not in as_text(clean)
    ran = run_here("spectrogram", "a.wav", "--png", "a.png", folder=tmp_path)
    assert (ran.returncode, "warning: a.wav: 2 samples are NaN" in ran.stderr) == (0, True)
    nothing = fx.Wave(np.full((1, 5000), bad), FS)
    with pytest.warns(UserWarning, match="5000 samples are NaN"):
        assert nothing.spectrogram(mel=mel).range_db == (-100, 0)


def test_frequencies_are_named_where_they_are():
    found = fx.Wave(torch.zeros(1, 48_000), 48_000).spectrogram()
    rows = as_text(found, 60, 12).splitlines()[:-2]
    named = {row[:10].strip(): len(rows) - 1 - i for i, row in enumerate(rows) if row[:10].strip()}
    assert named == {"0 Hz": 0, "5 kHz": 2, "10 kHz": 4, "15 kHz": 7, "20 kHz": 9}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"mel": 0}, "mel must be a whole number >= 1"),
        ({"mel": 1025}, r"mel must lie in \[1, size / 2\] = \[1, 1024\] bands, got 1025"),
        ({"columns": 0}, "columns must be"),
        ({"size": 1}, "size must be"),
    ],
)
def test_what_cannot_be_measured_is_refused(arguments, message):
    with pytest.raises(fx.ArgumentError, match=message):
        fx.Wave(torch.zeros(1, 100), FS).spectrogram(**arguments)
