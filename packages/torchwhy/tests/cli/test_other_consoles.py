"""Consoles and pipes of other systems than this one."""

import errno
import io
import os
import sys

import pytest

from torchwhy.cli import console


class Left(io.StringIO):
    """A pipe whose reader has left, as the system says it."""

    def __init__(self, error, file):
        super().__init__()
        self._error, self._file = error, file

    def write(self, text):
        raise self._error

    def fileno(self):
        return self._file.fileno()


@pytest.fixture
def left(monkeypatch, tmp_path):
    """A function that lets a reader of stdout leave with an error; it returns where later output goes."""
    with (tmp_path / "file").open("w+") as file:

        def leave(error, system):
            monkeypatch.setattr(sys, "platform", system)
            monkeypatch.setattr(sys, "stdout", Left(error, file))
            return file

        yield leave


@pytest.mark.parametrize(
    ("error", "system"),
    [(BrokenPipeError(), "linux"), (BrokenPipeError(), "win32"), (OSError(errno.EINVAL, "Invalid argument"), "win32")],
    ids=str,
)
def test_a_reader_that_leaves_is_no_error(error, system, left, capsys):
    file = left(error, system)
    console.answer("lost")
    assert capsys.readouterr().err == ""
    assert os.write(file.fileno(), b"dropped") == 7
    assert os.fstat(file.fileno()).st_size == 0


@pytest.mark.parametrize("encoding", ["ascii", "cp437", "cp1252", "cp932"])
def test_a_console_without_utf8_shows_every_text(encoding, monkeypatch):
    shown = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(shown, encoding))
    console.line("95 % of \u00b5s \u2013 \u97f3 \U0001d11e \udcff")
    assert shown.getvalue().startswith(b"95 % of ")
    assert shown.getvalue().endswith(b"\n")


def test_a_full_disk_ends_the_command_in_one_line(left, capsys):
    left(OSError(errno.ENOSPC, "No space left on device"), "linux")
    with pytest.raises(SystemExit) as ended:
        console.answer("lost")
    assert ended.value.code == 3
    assert capsys.readouterr().err == "error: cannot write to stdout: No space left on device\n"
