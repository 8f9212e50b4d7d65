"""Exceptions of this package.

Every exception derives from `TorchWhyError`. Argument errors also derive from `ValueError` or `TypeError`, and file
errors from `OSError`, so code that does not know this package can catch them.
"""

from __future__ import annotations

__all__ = ["ArgumentError", "ArgumentTypeError", "MissingPackageError", "TorchWhyError", "TraceError"]


class TorchWhyError(Exception):
    """Base class of all errors of this package."""


class ArgumentError(TorchWhyError, ValueError):
    """An argument has an invalid value."""


class ArgumentTypeError(TorchWhyError, TypeError):
    """An argument has a type or dtype that is not supported."""


class TraceError(TorchWhyError, OSError):
    """A file cannot be read, or is not a trace."""


class MissingPackageError(TorchWhyError, ImportError):
    """This feature needs a package that is not installed; the message names it."""
