"""Coefficients with leading dimensions: every example, channel or band has a filter of its own."""

import itertools

import pytest
import torch
from torch.autograd import gradcheck

from operators import forms
from torchfx import _ops
from torchfx._ops import native
from torchfx.errors import ArgumentError

SECTIONS, TAPS = 3, 5
# Signal's and coefficients' leading dimensions: one for each channel, example or band, and those in the middle.
SPREADS = [
    ((4,), (4,)), ((), (4,)), ((1,), (17,)), ((3, 1), (5,)), ((3, 2), (2,)), ((3, 2), (3, 1)), ((2, 3, 2), (1, 3, 1)),
    ((2, 1, 2), (3, 1)), ((2,), (3, 1)), ((1, 2), (3, 1)), ((2, 1, 2), (2, 3, 1)), ((2, 1), (1, 3)), ((2, 3), ()),
]  # fmt: skip


def cascades(leading, generator):
    """Return stable sections, all unlike."""
    radius = 0.3 + 0.6 * torch.rand(*leading, SECTIONS, 1, dtype=torch.float64, generator=generator)
    angle = 3 * torch.rand(*leading, SECTIONS, 1, dtype=torch.float64, generator=generator)
    b = torch.randn(*leading, SECTIONS, 3, dtype=torch.float64, generator=generator)
    return torch.cat([b, torch.ones_like(radius), -2 * radius * angle.cos(), radius * radius], dim=-1)


def taps(leading, generator):
    return torch.randn(*leading, TAPS, dtype=torch.float64, generator=generator)


CASES = {
    "sos_forward": (cascades, 2, lambda leading: (SECTIONS, *leading, 2)),
    "fir_forward": (taps, 1, lambda leading: (*leading, TAPS - 1)),
}


def every_row(operator, name, x, coefficients, state):
    """Run the operator once for each row of the result."""
    core = CASES[name][1]
    leading = torch.broadcast_shapes(x.shape[:-1], coefficients.shape[:-core])
    lead = 1 if name == "sos_forward" else 0
    y = x.new_empty(*leading, x.shape[-1])
    after = torch.empty_like(state)
    signal = x.expand(y.shape)
    weights = coefficients.expand(*leading, *coefficients.shape[-core:])
    for index in itertools.product(*map(range, leading)):
        at = (*(slice(None),) * lead, *index)
        y[index], after[at] = operator(signal[index], weights[index], state[at])
    return y, after


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("signal", "own"), SPREADS)
@pytest.mark.parametrize(
    ("name", "form"), [pytest.param(name, *form.values, marks=form.marks) for name in CASES for form in forms(name)]
)
def test_rows_equal_single_calls(name, form, signal, own, dtype, generator):
    make, _, state_shape = CASES[name]
    coefficients = make(own, generator)
    leading = torch.broadcast_shapes(signal, own)
    state = torch.randn(state_shape(leading), dtype=torch.float64, generator=generator)
    for time in (1, 70, 1500):
        x = torch.randn(*signal, time, generator=generator, dtype=dtype)
        for view in (x, torch.stack([x, -x], dim=-1).flatten(-2)[..., ::2]):
            y, after = form(view, coefficients, state)
            expected, expected_after = every_row(form, name, view, coefficients, state)
            tolerance = 2e-7 if dtype == torch.float32 else 1e-11
            assert float((y - expected).abs().max()) <= tolerance * float(expected.abs().max())
            assert torch.allclose(after, expected_after, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(("signal", "own"), SPREADS)
@pytest.mark.parametrize("name", CASES)
def test_gradients_of_rows_against_finite_differences(name, signal, own, generator):
    make, _, state_shape = CASES[name]
    operator = _ops.operators[name]
    leading = torch.broadcast_shapes(signal, own)
    x = torch.randn(*signal, 6, dtype=torch.float64, generator=generator).requires_grad_()
    coefficients = make(own, generator).requires_grad_()
    state = torch.randn(state_shape(leading), dtype=torch.float64, generator=generator).requires_grad_()
    rest = (1024,) if name == "sos_forward" else ()
    assert gradcheck(
        lambda *given: operator(*given, *rest), (x, coefficients, state), check_forward_ad=True, fast_mode=True
    )


@pytest.mark.parametrize("name", CASES)
def test_rows_that_do_not_fit_are_refused(name, generator):
    make, _core, _ = CASES[name]
    rest = (None, 1024) if name == "sos_forward" else (None,)
    with pytest.raises(ArgumentError, match=r"broadcast with the signal's \(2, 3\), got \(4,\)"):
        _ops.operators[name](torch.zeros(2, 3, 10), make((4,), generator), *rest)


def test_the_unstable_row_is_named(generator):
    sos = cascades((4,), generator)
    sos[2, 1, 5] = 1.5
    with pytest.raises(ArgumentError, match="section 1 of row 2 is unstable"):
        _ops.parallel_iir_forward(torch.zeros(4, 10), sos)


def test_the_two_operators_in_one_broadcast_together(generator):
    x = torch.randn(2, 1, 1, 300, generator=generator)
    weights, sos = taps((3, 1), generator), cascades((4,), generator)
    y, taps_after, after = _ops.lti_forward(x, weights, sos)
    assert y.shape == (2, 3, 4, 300)
    wide, expected_taps_after = _ops.fir_forward(x.double().expand(2, 3, 4, 300), weights)
    expected, expected_after = _ops.parallel_iir_forward(wide, sos)
    assert torch.allclose(y.double(), expected, atol=1e-5)
    assert torch.allclose(taps_after, expected_taps_after)
    assert torch.allclose(after, expected_after)


# --- out= ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("contiguous", [True, False])
def test_results_are_written_where_they_are_wanted(name, contiguous, generator):
    make, _, state_shape = CASES[name]
    entry = {"sos_forward": _ops.parallel_iir_forward, "fir_forward": _ops.fir_forward}[name]
    x, coefficients = torch.randn(2, 3, 200, generator=generator), make((3,), generator)
    y = torch.full((2, 3, 200) if contiguous else (2, 3, 400), 7.0)[..., :: 1 if contiguous else 2]
    after = torch.empty(state_shape((2, 3)), dtype=torch.float64)
    found = entry(x, coefficients, out=(y, after))
    assert found[0] is y
    assert found[1] is after
    for written, expected in zip(found, entry(x, coefficients), strict=True):
        assert torch.equal(written, expected)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (
            torch.empty(2, 9),
            r"out\[0\] must be torch.float32 of shape \(2, 10\) on cpu, got torch.float32 of shape \(2, 9\)",
        ),
        (torch.empty(2, 10, dtype=torch.float64), r"got torch.float64 of shape \(2, 10\)"),
    ],
)
def test_results_of_another_shape_are_refused(y, message, generator):
    with pytest.raises(ArgumentError, match=message):
        _ops.fir_forward(torch.zeros(2, 10), taps((), generator), out=(y, torch.empty(2, TAPS - 1).double()))


def test_a_result_that_is_given_records_no_gradient(generator):
    x = torch.zeros(2, 10, requires_grad=True)
    out = (torch.empty(2, 10), torch.empty(2, TAPS - 1).double())
    with pytest.raises(ArgumentError, match="records no gradient"):
        _ops.fir_forward(x, taps((), generator), out=out)


# --- signals of no samples, half precision ----------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(0,), (2, 0), (0, 5), (0, 2, 5)])
@pytest.mark.parametrize("name", CASES)
def test_no_samples_leave_the_state_as_it_is(name, shape, generator):
    make, _, state_shape = CASES[name]
    x = torch.zeros(shape, requires_grad=True)
    state = torch.randn(state_shape(shape[:-1]), dtype=torch.float64, generator=generator)
    rest = (1024,) if name == "sos_forward" else ()
    coefficients = make((), generator).requires_grad_()
    for given in (None, state):
        y, after = _ops.operators[name](x, coefficients, given, *rest)
        assert y.shape == shape
        assert torch.equal(after, torch.zeros_like(state) if given is None else state)
        (y.sum() + after.sum()).backward()
        assert x.grad.shape == shape
        assert not coefficients.grad.any()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_under_autocast_runs_in_float32(dtype, generator):
    x, sos = torch.randn(2, 3000, generator=generator), cascades((), generator)
    with torch.autocast("cpu", dtype=dtype):
        y, after = _ops.parallel_iir_forward(x.to(dtype), sos)
    expected, expected_after = _ops.parallel_iir_forward(x.to(dtype).float(), sos)
    assert y.dtype == torch.float32
    assert torch.equal(y, expected)
    assert torch.equal(after, expected_after)


@pytest.mark.skipif(native.library is None, reason="compares the kernel with the dispatcher's way to it")
@pytest.mark.parametrize("name", CASES)
def test_the_short_way_is_the_dispatchers(name, generator):
    make, _, _state_shape = CASES[name]
    x, coefficients = torch.randn(3, 5000, generator=generator), make((3,), generator)
    rest = (None, 1024) if name == "sos_forward" else (None,)
    short = _ops.operators[name](x, coefficients, *rest)
    through = getattr(torch.ops.torchfx_ext, name).default(x, coefficients, *rest)
    assert all(torch.equal(a, b) for a, b in zip(short, through, strict=True))
