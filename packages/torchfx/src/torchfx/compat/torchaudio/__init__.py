"""torchaudio's interface: programs written for it go on after its last release with one line changed.

    import torchfx.compat.torchaudio as torchaudio

Files, `functional`, `transforms` and `compliance.kaldi` have torchaudio 2.11's names, arguments, defaults and shapes,
and `info` is that of 2.8. Modules hold the same buffers, so that saved states are loaded. What is no signal processing
(alignment, decoders, models, datasets) raises an error that says where to look for it.

Examples:
    >>> import torch
    >>> import torchfx.compat.torchaudio as torchaudio
    >>> mel = torchaudio.transforms.MelSpectrogram(16_000, n_fft=400, hop_length=160, n_mels=80)
    >>> mel(torch.randn(1, 16_000)).shape
    torch.Size([1, 80, 101])
"""

from typing import Any

from torchfx.compat.torchaudio import compliance, functional, transforms
from torchfx.compat.torchaudio.elsewhere import PACKAGE, refuse_imports, refused
from torchfx.compat.torchaudio.files import AudioMetaData, info, load, save

__all__ = ["AudioMetaData", "compliance", "functional", "info", "load", "save", "transforms"]

__version__ = "2.11.0"
"""The torchaudio that has this interface."""

refuse_imports()


def __getattr__(name: str) -> Any:
    raise refused(__name__, name, PACKAGE)
