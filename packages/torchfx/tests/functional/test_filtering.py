"""lfilter, sosfilt, biquad and fftconvolve against SciPy's."""

import numpy as np
import pytest
import torch
from scipy import signal
from torch.autograd import gradcheck, gradgradcheck

from oracle import deviation
from torchfx import functional as F
from torchfx.errors import ArgumentError, ArgumentTypeError

FILTERS = {
    "gain": ([0.5], [2.0]),
    "taps": ([0.5, -0.25, 0.125, 1.0], [2.0]),
    "first": ([0.25], [1.0, -0.75]),
    "second": ([1.0, 0.3, 0.2], [2.0, -1.6, 0.7]),
    "long numerator": (np.linspace(-1, 1, 9), [1.0, 0.5]),
    "elliptic of order 5": signal.ellip(5, 0.5, 60, 0.3),
    "Butterworth of order 12": signal.butter(12, 0.5),
    "sum": ([1.0], [1.0, -1.0]),
    "unstable": ([1.0, 0.5], [1.0, 0.3, 0.2, -1.05]),
}


@pytest.mark.parametrize("name", FILTERS)
def test_lfilter_is_scipys(rng, name):
    b, a = FILTERS[name]
    for shape in ((1,), (2, 3), (2, 2, 40)):
        x = rng.standard_normal(shape)
        expected = signal.lfilter(b, a, x)
        assert deviation(F.lfilter(b, a, torch.from_numpy(x)), expected) < 1e-12
        assert deviation(F.lfilter(b, a, torch.from_numpy(x).float()), signal.lfilter(b, a, np.float32(x))) < 2e-7


@pytest.mark.parametrize(("order", "cutoff"), [(3, 0.001), (12, 0.2)])
def test_lfilter_of_a_low_cutoff_is_as_exact_as_scipys(rng, order, cutoff):
    b, a = signal.butter(order, cutoff)
    x = rng.standard_normal(1025)
    exact = np.zeros(len(x), np.longdouble)
    for t in range(len(x)):
        past = slice(max(0, t - order), t + 1)
        count = t + 1 - past.start
        exact[t] += x[past][::-1] @ np.longdouble(b[:count]) - exact[past][::-1] @ np.longdouble(a[:count])
    found, scipys = F.lfilter(b, a, torch.from_numpy(x)), signal.lfilter(b, a, x)
    assert deviation(found, exact) < 3 * deviation(scipys, exact)


@pytest.mark.parametrize("name", FILTERS)
def test_lfilters_state_is_scipys(rng, name):
    b, a = FILTERS[name]
    x, order = rng.standard_normal((3, 2, 50)), max(np.size(b), len(a)) - 1
    before = rng.standard_normal((3, 2, order))
    expected, expected_after = signal.lfilter(b, a, x, zi=before)
    state, parts = torch.from_numpy(before), []
    for block in torch.from_numpy(x).split([1, 2, 30, 17], dim=-1):
        y, state = F.lfilter(b, a, block, zi=state)
        parts.append(y)
    assert np.allclose(torch.cat(parts, -1), expected, rtol=1e-10, atol=1e-12)
    assert np.allclose(state, expected_after, rtol=1e-10, atol=1e-12)
    turned, after = F.lfilter(b, a, torch.from_numpy(x).mT, axis=1, zi=before.swapaxes(1, 2))
    assert np.allclose(turned.mT, expected, rtol=1e-10, atol=1e-12)
    assert np.allclose(after.mT, expected_after, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("channels", [1, 2, 3, 9])
def test_lfilter_of_a_long_signal_is_scipys(rng, channels, dtype):
    """What forgets soon is cut into stretches; a NaN is not forgotten, and neither does a low filter forget."""
    x = torch.from_numpy(rng.standard_normal((channels, 20_000))).to(dtype)
    for b, a in (signal.butter(4, 0.1), signal.ellip(12, 0.5, 60, 0.5), signal.butter(3, 0.002)):
        before = rng.standard_normal((channels, len(a) - 1))
        exact, after = signal.lfilter(*map(np.longdouble, (b, a, x.numpy())), zi=np.longdouble(before))
        scipys, _ = signal.lfilter(b, a, x.double().numpy(), zi=before)
        y, state = F.lfilter(b, a, x, zi=before)
        assert deviation(y, exact) < (2e-7 if dtype == torch.float32 else 4 * deviation(scipys, exact))
        assert np.allclose(state, np.float64(after), rtol=1e-7, atol=1e-9)
    x[-1, 9000] = float("nan")
    found, expected = F.lfilter(b, a, x), signal.lfilter(b, a, x.double().numpy())
    assert np.array_equal(found.isnan(), np.isnan(expected))
    assert np.allclose(found, expected, rtol=0, atol=1e-5, equal_nan=True)
    b, a = signal.butter(4, 0.1)
    found, expected = F.lfilter(b, a, x), signal.lfilter(b, a, x.double().numpy())
    assert np.array_equal(found.isnan(), np.isnan(expected))


def test_coefficients_are_kept_by_their_values(rng):
    x, (b, a) = torch.from_numpy(rng.standard_normal(50)), signal.butter(4, 0.1)
    for kind in (list, np.array, torch.tensor, lambda values: torch.tensor(values).float()):
        above, below = kind(b), kind(a)
        first = F.lfilter(above, below, x)
        assert deviation(first, signal.lfilter(np.asarray(above, float), np.asarray(below, float), x)) < 1e-11
        above[1] = 2.0  # in place
        expected = signal.lfilter(np.asarray(above, float), np.asarray(below, float), x)
        assert deviation(F.lfilter(above, below, x), expected) < 1e-11
    with torch.inference_mode():
        kept = F.lfilter([3.0, 0.1], a, x.clone())
    leaf = x.clone().requires_grad_()
    F.lfilter([3.0, 0.1], a, leaf).sum().backward()  # what inference mode made serves training
    assert torch.equal(F.lfilter([3.0, 0.1], a, x), kept)
    assert leaf.grad is not None
    assert leaf.grad.isfinite().all()


@pytest.mark.parametrize("order", [1, 2, 3, pytest.param(5, marks=pytest.mark.many)])
def test_lfilter_is_differentiable_in_everything(order):
    b, a = signal.butter(order, 0.4)
    values = [np.array(b), np.array(a) * 2, np.random.default_rng(0).standard_normal((2, 4)), np.ones((2, order))]
    leaves = [torch.tensor(value, requires_grad=True) for value in values]

    def run(b, a, x, zi):
        return F.lfilter(b, a, x, zi=zi)

    assert gradcheck(run, leaves)
    if order == 2:
        assert gradgradcheck(run, leaves)


def test_one_filter_per_example(rng):
    designs = [signal.butter(4, edge) for edge in (0.1, 0.3)]
    b, a = (torch.tensor(np.array([design[i] for design in designs]))[:, None] for i in (0, 1))
    x = rng.standard_normal((2, 3, 100))
    y = F.lfilter(b, a, torch.from_numpy(x))
    for i, design in enumerate(designs):
        assert deviation(y[i], signal.lfilter(*design, x[i])) < 1e-12


def test_sosfilt_is_scipys(rng):
    sos, x = signal.ellip(7, 0.5, 60, 0.2, output="sos"), rng.standard_normal((3, 60, 2))
    assert deviation(F.sosfilt(sos, torch.from_numpy(x), axis=1), signal.sosfilt(sos, x, axis=1)) < 1e-12
    before = rng.standard_normal((4, 3, 2, 2))
    y, after = F.sosfilt(sos, torch.from_numpy(x), axis=1, zi=torch.from_numpy(before))
    expected, expected_after = signal.sosfilt(sos, x, axis=1, zi=before)
    assert deviation(y, expected) < 1e-12
    assert np.allclose(after, expected_after, rtol=1e-10, atol=1e-12)
    leaves = [torch.tensor(each, requires_grad=True) for each in (sos[:2], x[0, :4].T.copy(), before[:2, 0])]
    assert gradcheck(lambda sos, x, zi: F.sosfilt(sos, x, zi=zi), leaves)


def test_biquad_takes_numbers_and_tensors(rng):
    x = rng.standard_normal((3, 50))
    expected = signal.lfilter([1, 0.5, 0.25], [2, -1, 0.5], x)
    assert deviation(F.biquad(torch.from_numpy(x), 1, 0.5, 0.25, 2, -1, 0.5), expected) < 1e-12
    b1 = torch.tensor([0.5, 0.6, 0.7], requires_grad=True)
    y = F.biquad(torch.from_numpy(x), 1, b1, 0.25, torch.tensor(2.0), -1, 0.5)
    assert deviation(y[0], expected[0]) < 1e-12
    y.square().sum().backward()
    assert float(b1.grad.abs().min()) > 0


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize(("n", "m"), [(1, 1), (50, 7), (7, 50), (64, 64), (3000, 1001)])
def test_fftconvolve_is_scipys(rng, mode, n, m):
    x, y = rng.standard_normal((2, 3, n)), rng.standard_normal((3, m))
    expected = signal.fftconvolve(x, y[None], mode=mode, axes=-1)
    assert deviation(F.fftconvolve(torch.from_numpy(x), torch.from_numpy(y), mode), expected) < 1e-12
    assert F.fftconvolve(torch.from_numpy(x).float(), torch.from_numpy(y), mode).dtype == torch.float64


def test_fftconvolve_is_differentiable_in_both():
    x, y = (torch.randn(2, n, dtype=torch.float64, requires_grad=True) for n in (5, 3))
    assert gradcheck(F.fftconvolve, (x, y))


def test_vectorised_and_without_values_it_does_the_same(rng):
    x = torch.from_numpy(rng.standard_normal((2, 3, 40)))
    for name in ("second", "elliptic of order 5"):
        b, a = (torch.tensor(each, dtype=torch.float64) for each in FILTERS[name])
        expected = F.lfilter(b, a, x)
        assert torch.allclose(torch.func.vmap(F.lfilter, (None, None, 0))(b, a, x), expected, atol=1e-12)
        assert F.lfilter(b, a, x.to("meta")).shape == x.shape


@pytest.mark.many
@pytest.mark.parametrize("name", ["second", "elliptic of order 5"])
def test_compiled_it_does_the_same(rng, name):
    b, a = (torch.tensor(each, dtype=torch.float64) for each in FILTERS[name])
    x = torch.from_numpy(rng.standard_normal((2, 3, 40)))
    compiled = torch.compile(F.lfilter, fullgraph=True, backend="aot_eager")
    assert torch.allclose(compiled(b, a, x), F.lfilter(b, a, x), atol=1e-12)


X = torch.zeros(2, 10)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: F.lfilter([1], [0, 1], X), ArgumentError, r"a must not begin with zero, got a\[0\] = 0"),
        (lambda: F.lfilter([], [1], X), ArgumentError, r"b must have the shape \(..., n >= 1\), got \(0,\)"),
        (lambda: F.lfilter(torch.ones(0), [1], X), ArgumentError, r"b must have the shape \(..., n >= 1\), got \(0,\)"),
        (
            lambda: F.lfilter(torch.ones(3, 2), torch.ones(4, 2), X),
            ArgumentError,
            r"leading dimensions must broadcast with each other, got \(3,\) of b, \(4,\) of a",
        ),
        (lambda: F.lfilter(torch.ones(3, 2), [1], X), ArgumentError, r"got \(2,\) of x, \(3,\) of b, \(\) of a"),
        (lambda: F.fftconvolve(X, torch.ones(3, 2)), ArgumentError, r"got \(2,\) of x, \(3,\) of y"),
        (lambda: F.lfilter("b", [1], X), ArgumentTypeError, "b must hold real numbers"),
        (lambda: F.lfilter([float("nan")], [1, 0.5], X), ArgumentError, "b must hold finite numbers"),
        (
            lambda: F.lfilter([1], [1, 0.5], X, axis=2),
            ArgumentError,
            "axis must be one of the signal's 2 dimensions, got 2",
        ),
        (lambda: F.lfilter([1], [1, 0.5], X, X), ArgumentError, "axis must be one of the signal's 2 dimensions"),
        (
            lambda: F.lfilter([1], [1, 0.5], X, zi=torch.zeros(2, 2)),
            ArgumentError,
            r"zi must have the shape \(2, 1\), got \(2, 2\)",
        ),
        (lambda: F.lfilter([1], [1, 0.5], X.numpy()), ArgumentTypeError, "x must be a tensor"),
        (lambda: F.lfilter([1], [1, 0.5], X.int()), ArgumentTypeError, "x must be float32 or float64"),
        (lambda: F.sosfilt([[1, 0, 0, 1, 0]], X), ArgumentError, r"sos must have the shape .*, 6\), got \(1, 5\)"),
        (lambda: F.sosfilt([[1, 0, 0, 1, -2, 1]], X), ArgumentError, "section 0 is unstable"),
        (
            lambda: F.sosfilt([[1, 0, 0, 1, 0, 0]], X, zi=np.zeros((2, 3))),
            ArgumentError,
            r"zi must have the shape \(1, 2, 2\), got \(2, 3\)",
        ),
        (
            lambda: F.fftconvolve(X, X, "circular"),
            ArgumentError,
            "mode must be one of full, same, valid, got 'circular'",
        ),
        (lambda: F.fftconvolve(X, [1.0]), ArgumentTypeError, "x must be a tensor"),
    ],
)
def test_bad_arguments_raise(call, error, message):
    with pytest.raises(error, match=message):
        call()
