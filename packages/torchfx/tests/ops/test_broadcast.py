"""Shapes broadcast as PyTorch's do."""

from itertools import product

import pytest
import torch

from torchfx._ops.checks import broadcast, broadcast_shapes
from torchfx.errors import ArgumentError

SIZES = [(), (1,), (3,), (0,), (2, 3), (1, 3), (2, 1), (0, 1), (1, 1, 1), (4, 1, 3), (4, 2, 1)]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_shapes_broadcast_as_pytorchs_do(count):
    for shapes in product(SIZES, repeat=count):
        try:
            expected = tuple(torch.broadcast_shapes(*shapes))
        except RuntimeError:
            with pytest.raises(RuntimeError):
                broadcast(*shapes)
            continue
        assert broadcast(*map(torch.Size, shapes)) == expected


def test_what_does_not_fit_is_named():
    with pytest.raises(ArgumentError, match=r"got \(2,\) of x, \(3,\) of taps"):
        broadcast_shapes(x=(2,), taps=(3,))
