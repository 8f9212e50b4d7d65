"""Exceptions of this package.

Every exception derives from `TorchFXError`. Argument errors also derive from `ValueError` or `TypeError`, and file
errors from `OSError`, so code that does not know this package can catch them.
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
    """Base class of all errors of this package."""


class ArgumentError(TorchFXError, ValueError):
    """An argument has an invalid value."""


class ArgumentTypeError(TorchFXError, TypeError):
    """An argument has a type or dtype that is not supported."""


class SampleRateError(ArgumentError):
    """A sample rate is missing, or two sample rates differ."""


class StreamError(ArgumentTypeError):
    """A module cannot run block by block."""


class AudioFileError(TorchFXError, OSError):
    """An audio file cannot be read or written."""
