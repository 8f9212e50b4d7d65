"""Which values a test that takes long gets: some of them, and all where TORCHFX_CASES=many asks for many cases."""

import pytest

__all__ = ["spread_out"]


def spread_out(values, every=3):
    """Return values for `parametrize`, or tuples of them: all but every third are marked `many`."""
    return [value if index % every == 0 else _with_many(value) for index, value in enumerate(values)]


def _with_many(value):
    return pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=pytest.mark.many)
