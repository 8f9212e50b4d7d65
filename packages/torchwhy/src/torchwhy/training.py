"""Recording that a training framework controls; base of the adapters."""

from __future__ import annotations

import atexit
import os
import sys
from contextlib import suppress
from typing import Any

from torchwhy.capture.containment import contained, described
from torchwhy.capture.result import ProfileWarning
from torchwhy.profiling import profile

__all__ = ["TrainingRecording"]


class TrainingRecording:
    """A `profile` that a framework starts and stops by calls. Its errors do not end the training.

    Args:
        path: folder of the run.
        options: options of `torchwhy.profile`.

    Attributes:
        session: the `profile`; `session.result` and `session.findings` are available after its end.

    Raises:
        ArgumentError, ArgumentTypeError: as `profile`.
    """

    def __init__(self, path: str | os.PathLike[str], options: dict[str, Any]) -> None:
        self.session = profile(path, **options)
        self._recording = self._ended = False

    def begin(self) -> None:
        """Start recording, unless it has started."""
        if not self._recording and not self._ended:
            self._recording = True
            atexit.register(self.end)  # frameworks don't call back when training raises
            contained(self.session.__enter__, _complain)()

    def step(self) -> None:
        """End a step."""
        if self._recording:
            contained(self.session.step, _complain)()

    def end(self) -> None:
        """Write the run's folder, unless nothing was recorded or it is already written."""
        if self._recording:
            self._recording, self._ended = False, True
            atexit.unregister(self.end)
            contained(self.session.__exit__, _complain)(None, None, None)
            if self.session.result is not None and self.session.result.folder is not None:
                _say(f"the recording is in {self.session.result.folder}")

    def report(self) -> str:
        """Return the report of a recording that has ended; "" without one."""
        return contained(str, _complain)(self.session.result or "") or ""


def _complain(error: Exception) -> None:
    """Report an error, or a warning that the program has made one."""
    _say(str(error) if isinstance(error, ProfileWarning) else f"the profiler stopped: {described(error)}")


def _say(text: str) -> None:
    with suppress(OSError, ValueError, AttributeError):  # stderr may be closed
        sys.stderr.write(f"torchwhy: {text}\n")
