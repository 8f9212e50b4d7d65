"""What can go wrong, as one small family of exceptions.

Every error a caller can meet derives from `TorchFXError`; those about arguments are also the built-in
`ValueError` or `TypeError`, those about files also `OSError`, so code that never heard of this package catches
them too.
"""

from __future__ import annotations

__all__ = [
    "ArgumentError",
    "ArgumentTypeError",
    "AudioFileError",
    "SampleRateError",
    "StreamError",
    "TorchFXError",
]


class TorchFXError(Exception):
    """Base of every error this package raises on purpose."""


class ArgumentError(TorchFXError, ValueError):
    """An argument has a value outside its allowed range."""


class ArgumentTypeError(TorchFXError, TypeError):
    """An argument has a type or dtype that is not supported."""


class SampleRateError(ArgumentError):
    """A sample rate is missing, or two of them disagree."""


class StreamError(ArgumentTypeError):
    """A module cannot run block by block: it needs the whole signal, or more of it than a block."""


class AudioFileError(TorchFXError, OSError):
    """An audio file cannot be read or written."""
