"""A callback for the `Trainer` of Hugging Face's transformers. Needs `torchfx[transformers]`."""

from __future__ import annotations

import os
from typing import Any

from torchfx.profiler.training import Recording

try:
    from transformers import TrainerCallback
except ImportError as error:
    raise ImportError("torchfx.profiler.transformers needs transformers: pip install torchfx[transformers]") from error

__all__ = ["TorchfxCallback"]


class TorchfxCallback(TrainerCallback):  # type: ignore[misc, unused-ignore]
    """Records some steps of `Trainer.train`, and writes a folder with trace, findings and report.

        callback = TorchfxCallback("traces/train")
        Trainer(model, arguments, train_dataset=data, callbacks=[callback]).train()
        callback.session.findings

    A step goes from the end of one optimizer step to the end of the next, so that waiting for data is part of it.

    Args:
        path: the folder to write, as of `torchfx.profiler.profile`.
        options: further arguments of `torchfx.profiler.profile`, such as wait=3 and active=5.

    Attributes:
        session: the `torchfx.profiler.profile` that records; its `result` and `findings` are there after `train`.

    Raises:
        ArgumentError, ArgumentTypeError: as `torchfx.profiler.profile`.
    """

    def __init__(self, path: str | os.PathLike[str] = "traces/transformers", **options: Any) -> None:
        self._recording = Recording(path, options)
        self.session = self._recording.session

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        """Begin with the first step."""
        self._recording.begin()

    def on_step_end(self, *_: Any, **__: Any) -> None:
        """End a step."""
        self._recording.step()

    def on_train_end(self, *_: Any, **__: Any) -> None:
        """Write the folder."""
        self._recording.end()
