"""A recording that a training framework begins, steps and ends: what its adapters share."""

from __future__ import annotations

import atexit
import os
from typing import Any

from torchwhy.profiling import profile

__all__ = ["TrainingRecording"]


class TrainingRecording:
    """A `profile` whose block a framework opens and closes by calls.

    Args:
        path: the run's folder.
        options: of `torchwhy.profile`.

    Attributes:
        session: that `profile`; `session.result` and `session.findings` are there when it has ended.

    Raises:
        ArgumentError, ArgumentTypeError: as `profile`.
    """

    def __init__(self, path: str | os.PathLike[str], options: dict[str, Any]) -> None:
        self.session = profile(path, **options)
        self._recording = self._ended = False

    def begin(self) -> None:
        """Begin with the first step, unless that was done."""
        if not self._recording and not self._ended:
            self._recording = True
            atexit.register(self.end)  # frameworks don't call back when training raises
            self.session.__enter__()

    def step(self) -> None:
        """Say that a step has ended."""
        if self._recording:
            self.session.step()

    def end(self) -> None:
        """Write the run's folder, unless nothing was recorded or that was done."""
        if self._recording:
            self._recording, self._ended = False, True
            atexit.unregister(self.end)
            self.session.__exit__(None, None, None)
