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
    """Records some steps of `Trainer.fit`, and writes a folder with trace, findings and report.

        trainer = Trainer(profiler=TorchwhyProfiler("traces/fit"), ...)
        trainer.fit(model)
        trainer.profiler.session.findings

    A step goes from the end of one training batch to the end of the next, so that waiting for data is part of it.

    Args:
        path: the folder to write, as of `torchwhy.profile`.
        options: further arguments of `torchwhy.profile`, such as wait=3 and active=5.

    Attributes:
        session: the `torchwhy.profile` that records; its `result` and `findings` are there after `fit`.

    Raises:
        ArgumentError, ArgumentTypeError: as `torchwhy.profile`.
    """

    def __init__(self, path: str | os.PathLike[str] = "traces/lightning", **options: Any) -> None:
        super().__init__()
        self._recording = TrainingRecording(path, options)
        self.session = self._recording.session

    def start(self, action_name: str) -> None:
        """Begin with the first batch."""
        if action_name == STEP:
            self._recording.begin()

    def stop(self, action_name: str) -> None:
        """End a step with each batch."""
        if action_name == STEP:
            self._recording.step()

    def summary(self) -> str:
        """Write the folder, and return what it says."""
        self._recording.end()
        return str(self.session.result) if self.session.result else ""

    def teardown(self, stage: str | None) -> None:
        """Write the folder, if that was not done."""
        self._recording.end()
        super().teardown(stage)
