"""An error in the recorder ends the recording. The program's output and end are as without it."""

import functools
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.warm import python
from torchwhy.capture import main_thread
from torchwhy.capture.containment import contained

FAULTS = Path(__file__).parent / "faults.py"


@pytest.mark.parametrize(("cases", "seed"), [(10, 0), pytest.param(60, 1, marks=pytest.mark.many)])
def test_no_error_of_the_recorder_reaches_the_program(tmp_path, cases, seed):
    ran = python(FAULTS, cases, seed, folder=tmp_path, environment={**os.environ, "KINETO_LOG_LEVEL": "99"})
    said = [line for line in ran.stderr.splitlines() if "no active profiling session" not in line]
    assert (ran.returncode, said) == (0, [])
    *different, last = ran.stdout.splitlines()
    assert different == []
    assert int(last.split()[1]) > cases


def test_a_recorder_that_nobody_ends_does_not_kill_python(tmp_path):
    program = "import torch, torchwhy; torchwhy.profile('run', wait=0, warmup=0).__enter__(); torch.ones(1).cos()"
    (tmp_path / "program.py").write_text(program)
    assert python(tmp_path / "program.py", folder=tmp_path, environment=dict(os.environ)).returncode == 0


class TimeIsUpError(Exception):
    """Raised by a program's handler."""


class Handler:
    def __call__(self, number, frame):
        raise TimeIsUpError

    def method(self, number, frame):
        raise TimeIsUpError


@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="Windows has no such signal")
@pytest.mark.parametrize(
    "handler", [lambda number, frame: Handler()(number, frame), functools.partial(Handler()), Handler().method]
)
def test_errors_of_the_programs_signal_handlers_pass_through(handler):
    before = signal.signal(signal.SIGALRM, handler)
    try:
        with pytest.raises(TimeIsUpError):
            contained(signal.raise_signal, pytest.fail)(signal.SIGALRM)
    finally:
        signal.signal(signal.SIGALRM, before)


def test_an_error_in_a_call_between_two_bytecodes_is_raised_there():
    def note():
        main_thread.raise_after(note.__code__, TimeIsUpError())
        for _ in range(1000):
            pass  # it would be raised here, where Python only prints it
        ended.append(True)

    ended = []
    with pytest.raises(TimeIsUpError):  # noqa: PT012
        note()
        for _ in range(1000):
            pass
    assert ended


@pytest.mark.many
@pytest.mark.skipif(not hasattr(os, "setuid"), reason="needs POSIX")
def test_a_full_disk_changes_nothing(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("import torch\nfor _ in range(3000): torch.ones(2).cos()\nprint('end')\nraise SystemExit(3)\n")
    limited = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000)); "
        "sys.argv = ['torchwhy', 'profile', 'program.py']; from torchwhy.cli import main; main()"
    )
    ran = subprocess.run([sys.executable, "-c", limited], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (ran.returncode, ran.stdout) == (3, "end\n")
    assert "not everything could be written" in ran.stderr
    assert "Traceback" not in ran.stderr
    assert not (tmp_path / "traces" / "program").exists()
