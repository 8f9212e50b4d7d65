"""A profiler for Lightning's `Trainer`. Needs lightning or pytorch_lightning."""

from __future__ import annotations

import os
import sys
from typing import Any

from torchwhy.training import TrainingRecording

try:
    if "pytorch_lightning" in sys.modules and "lightning" not in sys.modules:
        from pytorch_lightning.profilers import Profiler  # the same under its older name
    else:
        from lightning.pytorch.profilers import Profiler
except ImportError as error:
    raise ImportError("torchwhy.lightning needs Lightning: pip install lightning") from error

__all__ = ["TorchwhyProfiler"]

STEP = "run_training_batch"
"""The action around one batch of training: forward, backward and the optimizer."""


class TorchwhyProfiler(Profiler):  # type: ignore[misc, unused-ignore]
    """Record some steps of `Trainer.fit`, and write a folder with the trace, findings and a report.

        trainer = Trainer(profiler=TorchwhyProfiler("traces/fit"), ...)
        trainer.fit(model)
        trainer.profiler.session.findings

    A step lasts from the end of one training batch to the end of the next, so it includes waiting for data.

    Args:
        path: the folder to write, as in `torchwhy.profile`.
        options: further arguments of `torchwhy.profile`, such as wait=3 and active=5.

    Attributes:
        session: the `torchwhy.profile` that records; its `result` and `findings` are available after `fit`.

    Raises:
        ArgumentError, ArgumentTypeError: as in `torchwhy.profile`.
    """

    def __init__(self, path: str | os.PathLike[str] = "traces/lightning", **options: Any) -> None:
        super().__init__()
        self._recording = TrainingRecording(path, options)
        self.session = self._recording.session

    def start(self, action_name: str) -> None:
        """Start recording at the first batch."""
        if action_name == STEP:
            self._recording.begin()

    def stop(self, action_name: str) -> None:
        """End a step after each batch."""
        if action_name == STEP:
            self._recording.step()

    def summary(self) -> str:
        """Write the folder, and return its report."""
        self._recording.end()
        return self._recording.report()

    def teardown(self, stage: str | None) -> None:
        """Write the folder, unless it is already written."""
        self._recording.end()
        super().teardown(stage)
