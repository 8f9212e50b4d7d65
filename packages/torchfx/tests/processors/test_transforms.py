"""Gradients of every order and direction, vmap, compile and export, for every processor."""

import pytest
import torch
from torch.autograd import gradcheck

from many_cases import spread_out
from processors import cases
from processors.cases import CASES, FS, OTHER_LENGTH, as_type, drawn, is_special, noise
from torchfx.catalogue import available
from torchfx.errors import ArgumentError, ArgumentTypeError
from torchfx.parameters import Frequencies, Number

NAMES = list(CASES)
LEARNED = [
    (entry.name.lower(), each.name)
    for entry in available().values()
    if not is_special(entry)
    for each in entry.declarations
    if isinstance(each, Number) and each.learnable and each.default is not None
]
"""Parameters that may be learned, of every processor."""

SINGLE = [
    (entry.name.lower(), each.name)
    for entry in available().values()
    for each in entry.declarations
    if isinstance(each, Number) and not each.learnable and not isinstance(each, Frequencies)
]
"""Those that hold one number for all examples."""


def double(name, seed=0):
    return as_type(CASES[name](seed), torch.float64)


@pytest.mark.parametrize("name", NAMES)
def test_gradients_against_finite_differences(name):
    module, x = double(name), noise(2, 12, dtype=torch.float64).requires_grad_()
    assert gradcheck(module, x, check_forward_ad=True, check_batched_grad=True, check_batched_forward_grad=True)


@pytest.mark.parametrize(("name", "parameter"), LEARNED)
def test_gradients_of_parameters_against_finite_differences(name, parameter):
    entry, x = available()[name], noise(2, 12, dtype=torch.float64)
    given = {"clamp": False} if name == "gain" else {"detector": "rms"} if parameter == "rms_ms" else {}
    start = getattr(drawn(entry, 0, **given), parameter)
    value = torch.tensor(float(start), dtype=torch.float64, requires_grad=True)

    def run(value):
        return drawn(entry, 0, **{**given, parameter: value})(x)

    assert gradcheck(run, value, eps=1e-4, atol=1e-4, rtol=1e-3, check_forward_ad=True, check_batched_grad=True)
    value.grad = None
    run(value).square().sum().backward()
    assert value.grad is not None
    assert torch.allclose(torch.func.grad(lambda v: run(v).square().sum())(value.detach()), value.grad)
    assert torch.allclose(torch.func.jacfwd(run)(value.detach()), torch.func.jacrev(run)(value.detach()), atol=1e-9)


@pytest.mark.parametrize(("name", "parameter"), LEARNED)
def test_one_value_per_example_is_a_filter_per_example(name, parameter):
    entry, x = available()[name], noise(3, 2, 200, dtype=torch.float64)
    given = {"detector": "rms"} if parameter == "rms_ms" else {}
    given = {"clamp": False, "gain_type": "amplitude"} if name == "gain" else given
    values = torch.tensor([float(getattr(drawn(entry, seed, **given), parameter)) for seed in range(3)]).double()
    given = {**given, **{key: value for key, value in parameters_of(entry, given).items() if key != parameter}}
    together = entry.load()(**{**given, parameter: values[:, None]})(x)
    for i in range(3):
        alone = entry.load()(**{**given, parameter: float(values[i])})(x[i])
        assert torch.allclose(together[i], alone, atol=1e-9)


def parameters_of(entry, given):
    module = drawn(entry, 0, **given)
    return {each.name: getattr(module, each.name) for each in entry.declarations}


@pytest.mark.parametrize(("name", "parameter"), LEARNED)
def test_values_for_other_examples_are_refused(name, parameter):
    entry = available()[name]
    given = {"clamp": False} if name == "gain" else {}
    value = torch.full((5, 1), float(getattr(drawn(entry, 0, **given), parameter)))
    with pytest.raises(ArgumentError, match=r"leading dimensions must broadcast with .*\(5"):
        drawn(entry, 0, **{**given, parameter: value})(noise(3, 2, 100))


@pytest.mark.parametrize(("name", "parameter"), SINGLE)
def test_one_number_for_all_examples_is_no_tensor(name, parameter):
    with pytest.raises(ArgumentTypeError, match=rf"^{parameter} must be one number for all examples, got a tensor"):
        drawn(available()[name], 0, **{parameter: torch.ones(3, 1)})


@pytest.mark.parametrize("name", NAMES)
def test_vmap_is_a_loop(name):
    module, x = double(name), noise(3, 2, 50, dtype=torch.float64)
    together = torch.func.vmap(module)(x)
    assert torch.allclose(together, torch.stack([module(each) for each in x]), atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_jacobians_and_hessians_agree(name):
    module, x = double(name), noise(2, 6, dtype=torch.float64)
    assert torch.allclose(torch.func.jacfwd(module)(x), torch.func.jacrev(module)(x), atol=1e-12)

    def energy(x):
        return module(x).square().sum()

    by_functions = torch.func.hessian(energy)(x)
    assert torch.allclose(by_functions, torch.autograd.functional.hessian(energy, x), atol=1e-10)
    assert torch.allclose(torch.func.grad(energy)(x), torch.autograd.functional.jacobian(energy, x), atol=1e-12)
    rows = torch.autograd.functional.jacobian(module, x, vectorize=True)
    assert torch.allclose(rows, torch.func.jacrev(module)(x), atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_forward_mode_outside_of_transforms(name):
    from torch.autograd import forward_ad

    module, x, tangent = double(name), noise(2, 20).double(), noise(2, 20, seed=1).double()
    with forward_ad.dual_level():
        found = forward_ad.unpack_dual(module(forward_ad.make_dual(x, tangent))).tangent
    assert found is not None
    expected = torch.func.jvp(module, (x,), (tangent,))[1]
    assert torch.allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("name", spread_out(NAMES))
def test_compiled_whole_it_does_the_same(name):
    torch._dynamo.reset()
    module, x = CASES[name](0), noise(2, 16).requires_grad_()  # loops over samples are unrolled
    read = set()

    def keep(guards):
        read.update(guard.name for guard in guards)
        return [True for _ in guards]

    compiled = torch.compile(module, fullgraph=True, backend="aot_eager", options={"guard_filter_fn": keep})
    y, expected = compiled(x), module(x)
    assert read  # but no table that changes while the compiler goes through it: of loaded modules, of plans
    assert not [name for name in read if "sys.modules" in name or "_plans" in name]
    assert torch.allclose(y, expected, atol=1e-6)
    by_x = torch.autograd.grad(y.square().sum(), x)[0]
    assert torch.allclose(by_x, torch.autograd.grad(expected.square().sum(), x)[0], atol=1e-5)


@pytest.mark.parametrize("name", spread_out(NAMES))
def test_compiled_for_any_length_it_follows_what_is_assigned(name):
    torch._dynamo.reset()
    module = CASES[name](0)
    compiled = torch.compile(module, fullgraph=True, dynamic=True, backend="aot_eager")  # numbers are variables, too
    assert torch.allclose(compiled(noise(2, 64)), module(noise(2, 64)), atol=1e-6)
    for parameter, declaration in getattr(module, "declarations", {}).items():
        value = getattr(module, parameter)
        if isinstance(declaration, Number) and type(value) is float and declaration.inside(0.99 * value, FS):
            setattr(module, parameter, 0.99 * value)
    assert torch.allclose(compiled(noise(2, 77)), module(noise(2, 77)), atol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_exported_it_does_the_same(name):
    module, x = CASES[name](0), noise(2, 64)
    program = torch.export.export(module, (x,))
    assert torch.allclose(program.module()(x), module(x), atol=1e-6)


LENGTH_BY_SAMPLES = {"TrimSilence"}
"""How long their output is depends on samples: the exporter knows no such lengths."""

ONE_BY_ONE = {"TimeStretch": {"method": "phase_vocoder"}}
"""WSOLA looks for each window behind the one before: an exported program has as many as the length it was made for."""

ANY_LENGTH = {
    **CASES,
    **{
        name: lambda seed, entry=entry: drawn(entry, seed, **ONE_BY_ONE.get(entry.name, {}))
        for name, entry in cases.tested().items()
        if entry.name in OTHER_LENGTH - LENGTH_BY_SAMPLES
    },
}


@pytest.mark.parametrize("name", ANY_LENGTH)
def test_exported_for_any_length_it_does_the_same(name):
    module = as_type(ANY_LENGTH[name](0), torch.float64)  # rounding opens gates at other samples
    lengths = ({1: torch.export.Dim("time", min=50_000, max=1 << 24)},)
    program = torch.export.export(module, (noise(2, 60_000).double(),), dynamic_shapes=lengths).module()
    for time in (50_000, 75_001):
        x = noise(2, time).double()
        with torch.no_grad():
            y, expected = program(x), module(x)
        assert y.shape == expected.shape
        assert torch.allclose(y, expected, rtol=0, atol=1e-9 * float(expected.abs().max()))
