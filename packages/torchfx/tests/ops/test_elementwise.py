"""PyTorch's operators on single samples: what native steps give in their place, to the bit."""

import pytest
import torch
from torch.profiler import profile

from torchfx._ops import elementwise, native

SHAPES = [(7,), (elementwise.LARGE + 3,), (3, elementwise.LARGE // 2 + 1), (2, 2, elementwise.LARGE // 4 + 5)]


def factors(x):
    return torch.linspace(-2, 2, x.shape[-1], dtype=x.dtype)


def scaled(x):
    y = x.clone()
    elementwise.scale(y, factors(x))
    return y


OPERATORS = {
    "clamp": (lambda x: elementwise.clamp(x, -0.5, 0.25), lambda x: x.clamp(-0.5, 0.25)),
    "clone": (elementwise.clone, torch.clone),
    "flip": (elementwise.flip, lambda x: x.flip(-1)),
    "scale": (scaled, lambda x: x * factors(x)),
}
each_operator = pytest.mark.parametrize("name", OPERATORS)


@each_operator
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_results_are_those_of_pytorch(name, shape, dtype, generator):
    ours, theirs = OPERATORS[name]
    x = torch.randn(shape, generator=generator, dtype=dtype)
    x.view(-1)[::5] = torch.nan
    given = x.clone()
    y = ours(x)
    assert torch.equal(y.nan_to_num(9.0), theirs(x).nan_to_num(9.0))
    assert y.data_ptr() != x.data_ptr()
    assert torch.equal(x.nan_to_num(9.0), given.nan_to_num(9.0))


@each_operator
def test_samples_that_lie_apart_are_found(name, generator):
    ours, theirs = OPERATORS[name]
    x = torch.randn(elementwise.LARGE, 3, generator=generator).T
    assert torch.equal(ours(x), theirs(x))


@each_operator
def test_gradients_are_recorded(name, generator):
    ours, theirs = OPERATORS[name]
    x = torch.randn(2, elementwise.LARGE, generator=generator, requires_grad=True)
    weights = torch.randn(x.shape, generator=generator)
    found, wanted = (torch.autograd.grad((f(x) * weights).sum(), x)[0] for f in (ours, theirs))
    assert torch.equal(found, wanted)


@each_operator
def test_vmap_gives_the_same(name, generator):
    ours, theirs = OPERATORS[name]
    x = torch.randn(2, elementwise.LARGE, generator=generator)
    assert torch.equal(torch.func.vmap(ours)(x), theirs(x))


@pytest.mark.skipif(native.library is None, reason="PyTorch's own operators run")
@pytest.mark.parametrize(("name", "shown"), [("clamp", "torchfx_ext::clamp"), ("flip", "torchfx_ext::gain")])
def test_profilers_see_the_native_step(name, shown):
    x = torch.ones(2, elementwise.LARGE)
    with profile() as captured:
        OPERATORS[name][0](x)
    assert shown in {event.name for event in captured.events()}
