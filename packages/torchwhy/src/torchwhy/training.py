"""Recording that a training framework controls; base of the adapters."""

from __future__ import annotations

import atexit
import os
import sys
from contextlib import suppress
from typing import Any

from torchwhy.profiling import profile

__all__ = ["TrainingRecording"]


class TrainingRecording:
    """A `profile` that a framework starts and stops by calls.

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
            self.session.__enter__()

    def step(self) -> None:
        """End a step."""
        if self._recording:
            self.session.step()

    def end(self) -> None:
        """Write the run's folder, unless nothing was recorded or it is already written."""
        if self._recording:
            self._recording, self._ended = False, True
            atexit.unregister(self.end)
            self.session.__exit__(None, None, None)
            if self.session.result is not None and self.session.result.folder is not None:
                with suppress(OSError, ValueError, AttributeError):  # stderr may be closed
                    print(f"torchwhy: the recording is in {self.session.result.folder}", file=sys.stderr)
