"""A callback for the `Trainer` of Hugging Face's transformers. Needs `transformers[torch]`."""

from __future__ import annotations

import os
from typing import Any

from torchwhy.training import TrainingRecording

try:
    from transformers import TrainerCallback
except ImportError as error:
    raise ImportError("torchwhy.transformers needs transformers: pip install 'transformers[torch]'") from error

__all__ = ["TorchwhyCallback"]


class TorchwhyCallback(TrainerCallback):  # type: ignore[misc, unused-ignore]
    """Record some steps of `Trainer.train`, and write a folder with the trace, findings and a report.

        callback = TorchwhyCallback("traces/train")
        Trainer(model, arguments, train_dataset=data, callbacks=[callback]).train()
        callback.session.findings

    A step lasts from the end of one optimizer step to the end of the next, so it includes waiting for data.

    Args:
        path: the folder to write, as in `torchwhy.profile`.
        options: further arguments of `torchwhy.profile`, such as wait=3 and active=5.

    Attributes:
        session: the `torchwhy.profile` that records; its `result` and `findings` are available after `train`.

    Raises:
        ArgumentError, ArgumentTypeError: as in `torchwhy.profile`.
    """

    def __init__(self, path: str | os.PathLike[str] = "traces/transformers", **options: Any) -> None:
        self._recording = TrainingRecording(path, options)
        self.session = self._recording.session

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        """Start recording at the first step."""
        self._recording.begin()

    def on_step_end(self, *_: Any, **__: Any) -> None:
        """End a step."""
        self._recording.step()

    def on_train_end(self, *_: Any, **__: Any) -> None:
        """Write the folder."""
        self._recording.end()
