"""A contender's process: started under any Python, asked one thing at a time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any

from torchfx.errors import ArgumentError, TorchFXError

__all__ = ["ContenderError", "ContenderProcess", "Peer", "parse_peer"]

WORKER = Path(__file__).parent / "contenders" / "worker.py"


class ContenderError(TorchFXError):
    """A contender's process cannot be started, or it ended with an error."""


class Peer:
    """Another Python whose libraries join the comparison.

    Attributes:
        name: what its rows are called by; "" for this Python.
        python: the interpreter.
    """

    def __init__(self, name: str = "", python: str = sys.executable) -> None:
        """Keep both."""
        self.name = name
        self.python = python

    def label(self, contender: str) -> str:
        """Return the name of one of its contenders."""
        return f"{self.name}: {contender}" if self.name else contender


def parse_peer(text: str) -> Peer:
    """Read NAME=PYTHON.

    Raises:
        ArgumentError: it reads otherwise.
        ContenderError: there is no such Python.

    Examples:
        >>> import sys
        >>> parse_peer("other=" + sys.executable).label("scipy lfilter")
        'other: scipy lfilter'
    """
    name, _, python = text.partition("=")
    if not name or not python:
        raise ArgumentError(f"--peer must be NAME=PYTHON, got {text!r}")
    if not Path(python).is_file():
        raise ContenderError(f"--peer {name}: there is no Python at {python}")
    return Peer(name, python)


class ContenderProcess:
    """One process running `contenders/worker.py`; use it in a `with` statement, which ends it."""

    def __init__(self, peer: Peer) -> None:
        """Start the process."""
        self.peer = peer
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  (closed in __exit__)
        environment = dict(os.environ)
        if peer.name:  # another Python must not be sent to this one's packages
            for variable in ("PYTHONPATH", "PYTHONHOME"):
                environment.pop(variable, None)
        try:
            self._process = subprocess.Popen(
                [peer.python, str(WORKER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors,
                text=True, env=environment,
            )  # fmt: skip
        except OSError as error:
            self._errors.close()
            raise ContenderError(f"cannot start {peer.python}: {error.strerror}") from error

    def ask(self, command: str, **arguments: Any) -> dict[str, Any]:
        """Send a command of `Worker` and return its answer.

        Raises:
            ContenderError: the process ended instead; the message is the last line it wrote.
        """
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        try:
            stdin.write(json.dumps({"do": command, **arguments}) + "\n")
            stdin.flush()
            line = stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise ContenderError(self._last_words())
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _last_words(self) -> str:
        status = self._process.wait()
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else f"ended with status {status}"

    def __enter__(self) -> ContenderProcess:
        """Return the process."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()
        self._errors.close()
