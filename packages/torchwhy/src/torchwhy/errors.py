"""What can go wrong, as one small family of exceptions.

Every error a caller can meet derives from `TorchWhyError`; those about arguments are also the built-in
`ValueError` or `TypeError`, those about files also `OSError`, so code that never heard of this package catches
them too.
"""

from __future__ import annotations

__all__ = ["ArgumentError", "ArgumentTypeError", "MissingPackageError", "TorchWhyError", "TraceError"]


class TorchWhyError(Exception):
    """Base of every error this package raises on purpose."""


class ArgumentError(TorchWhyError, ValueError):
    """An argument has a value outside its allowed range."""


class ArgumentTypeError(TorchWhyError, TypeError):
    """An argument has a type or dtype that is not supported."""


class TraceError(TorchWhyError, OSError):
    """A file cannot be read, or holds no trace."""


class MissingPackageError(TorchWhyError, ImportError):
    """A package is not installed that this feature needs; the message says which."""
