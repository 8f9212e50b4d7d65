"""Where stdout cannot be written to, as on a full disk: one line on stderr, status 3, and the work is done."""

import sys
from pathlib import Path
from unittest import mock

import pytest
import torch

from command import run_here, working_in
from torchfx import audio_io
from torchfx.cli import main
from torchfx.cli.app import app

COMMANDS = sorted(each.callback.__name__ for each in app.registered_commands)
FINE = {
    "info": ["info", "{0}"],
    "stats": ["stats", "{0}"],
    "effects": ["effects"],
    "process": ["convert", "{0}", "b.wav"],
}


def run(arguments, folder):
    """Run the command with a stdout that takes no byte; return its exit status."""
    device = Path("/dev/full")
    if not device.exists():
        pytest.skip("there is no /dev/full")
    with (
        device.open("w", encoding="utf-8") as full,
        mock.patch.multiple(sys, argv=["torchfx", *arguments], stdout=full),
        working_in(folder),
        pytest.raises(SystemExit) as ended,
    ):
        main()
    return ended.value.code


@pytest.mark.parametrize("command", COMMANDS)
def test_help_ends_in_one_line(capsys, tmp_path, command):
    assert run([command, "--help"], tmp_path) == 3
    assert capsys.readouterr().err == "error: cannot write to stdout: No space left on device\n"


@pytest.mark.parametrize("command", FINE)
def test_answers_end_in_one_line_and_files_are_written(capsys, tmp_path, command):
    audio_io.save(tmp_path / "a.wav", torch.zeros(1, 32_000), 16_000)
    assert run([each.format("a.wav") for each in FINE[command]], tmp_path) == 3
    assert capsys.readouterr().err == "error: cannot write to stdout: No space left on device\n"
    assert (tmp_path / "b.wav").exists() == (command == "process")


def test_the_next_command_is_fine_again(tmp_path):
    assert run_here("effects", folder=tmp_path).returncode == 0
