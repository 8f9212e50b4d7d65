"""Levels of tones, and their pictures."""

import subprocess
import sys

import numpy as np
import pytest

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
    assert len(as_text(found, 60).splitlines()) == 21


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
    assert len(rows) == 21
    assert "@" in rows[-4] or "█" in rows[-4] or "▓" in rows[-4] or "#" in rows[-4]
    assert rows[-1].strip() == f"0{'1.00 s'.rjust(49)}"
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
