"""`torchfx_ext::sos_forward`, native and reference, against SciPy in long double."""

import numpy as np
import pytest
import torch
from scipy import signal

import torchfx as fx
from operators import backend, forms
from oracle import LENGTHS, bound, deviation, exact_sos
from torchfx import _ops
from torchfx._ops import native, splitting
from torchfx.errors import ArgumentError, ArgumentTypeError

FORMS = forms("sos_forward")
reference = backend("sos_forward", "reference")
DTYPES = [torch.float32, torch.float64]
CHAIN = np.concatenate(
    [
        signal.butter(2, 1000, "high", fs=44100, output="sos"),
        signal.cheby1(4, 0.5, 1800, fs=44100, output="sos"),
        signal.butter(1, 5000, fs=44100, output="sos"),
    ]
)


def design(rng):
    """One of the filters people use: order 1 to 12, 20 Hz to 0.45 fs."""
    fs = float(rng.choice([8000, 22050, 44100, 48000, 96000, 192000]))
    edge = np.exp(rng.uniform(np.log(20), np.log(0.45 * fs)))
    cutoff = float(rng.choice([edge, edge, edge, 20.0, 0.45 * fs]))
    order, side = int(rng.integers(1, 13)), rng.choice(["lowpass", "highpass"])
    if rng.random() < 0.5:
        return signal.butter(order, cutoff, side, fs=fs, output="sos")
    return signal.cheby1(order, 0.5, cutoff, side, fs=fs, output="sos")


def view(rng, dtype):
    """A signal of random length, channels, leading dimensions and strides."""
    length = int(rng.choice([1, 2, 7, 63, 64, 65, 1000, 1025, int(np.exp(rng.uniform(0, np.log(100_000))))]))
    leading = [(), (1,), (2,), (8,), (17,), (2, 3), (3, 1, 5)][int(rng.integers(7))]
    x = torch.from_numpy(rng.standard_normal((*leading, length))).to(dtype)
    layout = int(rng.integers(4))
    if layout == 1:  # every second sample of a longer signal
        x = torch.stack([x, x + 1], dim=-1).flatten(-2)[..., ::2]
    elif layout == 2 and leading:  # interleaved: time first in memory
        x = x.movedim(-1, 0).contiguous().movedim(0, -1)
    elif layout == 3:  # starts off alignment
        x = torch.cat([x.new_zeros(*leading, 3), x], dim=-1)[..., 3:]
    return x


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("seed", range(200))
def test_random_designs_and_views_are_exact(seed, dtype):
    rng = np.random.default_rng(seed)
    sos, x = design(rng), view(rng, dtype)
    y, _ = _ops.parallel_iir_forward(x, torch.from_numpy(sos))
    assert y.dtype == dtype
    assert y.shape == x.shape
    assert y.is_contiguous()
    assert deviation(y, exact_sos(sos, x.numpy())) < bound(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("seed", range(20))
def test_reference_is_as_exact(seed, dtype):
    rng = np.random.default_rng(1000 + seed)
    sos, x = design(rng), view(rng, dtype)[..., :20_000]
    y, _ = reference(x, torch.from_numpy(sos), None, 512)
    assert deviation(y, exact_sos(sos, x.numpy())) < bound(dtype)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("channels", [1, 2, 5, 8, 17])
def test_state_goes_in_and_out_as_in_scipy(rng, form, length, channels):
    x = rng.standard_normal((channels, length))
    zi = rng.standard_normal((len(CHAIN), channels, 2)) * 0.1
    y, state = form(torch.from_numpy(x), torch.from_numpy(CHAIN), torch.from_numpy(zi), 256)
    exact, after = exact_sos(CHAIN, x, zi)
    assert deviation(y, exact) < 1e-12
    assert deviation(state, after) < 1e-12


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("cutoff", [20, 1000])
def test_blocks_equal_the_whole(rng, dtype, cutoff):
    sos = torch.from_numpy(signal.butter(8, cutoff, fs=48000, output="sos"))
    x = torch.from_numpy(rng.standard_normal((3, 20_000))).to(dtype)
    whole, _ = _ops.parallel_iir_forward(x, sos)
    state, blocks = None, []
    for block in x.split([1, 2, 63, 64, 65, 4096, 5000, 10_709], dim=-1):
        y, state = _ops.parallel_iir_forward(block, sos, state)
        blocks.append(y)
    assert deviation(torch.cat(blocks, -1), whole.double().numpy()) < (1e-6 if dtype == torch.float32 else 1e-12)


@pytest.mark.parametrize(
    ("order", "cutoff", "fs"), [(2, 1, 48_000), (2, 1, 192_000), (10, 2, 48_000), (12, 20, 192_000), (5, 0.01, 8000)]
)
def test_the_slowest_filters_split_in_time_as_well(rng, order, cutoff, fs):
    for sos in (
        signal.butter(order, cutoff, fs=fs, output="sos"),
        signal.cheby1(order, 0.5, cutoff, "high", fs=fs, output="sos"),
    ):
        x = torch.from_numpy(rng.standard_normal(30_000))
        split, whole = (_ops.parallel_iir_forward(x, torch.from_numpy(sos), threshold=at)[0] for at in (1, 1 << 40))
        assert deviation(split, whole.numpy()) < 1e-10


@pytest.mark.parametrize("sections", [1, 2, 3, 4, 5, 7, 8, 9, 16, 33, 100])
def test_any_number_of_sections(rng, sections):
    sos = np.tile(signal.butter(2, 9000, fs=48000, output="sos"), (sections, 1))
    x = rng.standard_normal((9, 3000))
    y, _ = _ops.parallel_iir_forward(torch.from_numpy(x), torch.from_numpy(sos))
    assert deviation(y, exact_sos(sos, x)) < 1e-11


def test_a0_scales_a_section(rng):
    x = torch.from_numpy(rng.standard_normal(100))
    sos = torch.from_numpy(CHAIN)
    scaled = sos * torch.tensor([2.0, -0.5, 8.0, 1.0]).double()[:, None]
    assert torch.allclose(_ops.parallel_iir_forward(x, sos)[0], _ops.parallel_iir_forward(x, scaled)[0], atol=1e-14)


def test_threads_do_not_change_the_result(rng, one_thread):
    x = torch.from_numpy(rng.standard_normal((2, 100_000)))
    sos = torch.from_numpy(CHAIN)
    alone, _ = _ops.parallel_iir_forward(x, sos)
    torch.set_num_threads(2)
    together, _ = _ops.parallel_iir_forward(x, sos)
    assert deviation(together, alone.numpy()) < 1e-13


@pytest.mark.parametrize("form", FORMS)
def test_nan_spreads_to_what_follows_in_its_channel_only(rng, form):
    x = torch.from_numpy(rng.standard_normal((9, 5000)))
    clean, _ = form(x, torch.from_numpy(CHAIN), None, 256)
    x[4, 3000] = float("nan")
    y, _ = form(x, torch.from_numpy(CHAIN), None, 256)
    others = [c for c in range(9) if c != 4]
    assert torch.allclose(y[others], clean[others], atol=1e-12, rtol=0)
    if "reference" not in form.__name__:
        assert torch.allclose(y[4, :3000], clean[4, :3000], atol=1e-12, rtol=0)
    assert y[4, 3000:].isnan().all()


def test_input_is_left_alone(rng):
    x = torch.from_numpy(rng.standard_normal((2, 3000)))
    before = x.clone()
    _ops.parallel_iir_forward(x, torch.from_numpy(CHAIN))
    assert torch.equal(x, before)


def test_one_threshold_reaches_signals_gradients_streams_and_causal_processors(monkeypatch):
    seen = []

    def watched(call):
        def pack(*arguments):
            seen.append(arguments[-2])
            return call.pack(*arguments)

        return native.Call(pack, call.run)

    for name in ("sos_forward", "sos_forward_recording", "sos_backward", "program_run", "program_run_copied"):
        monkeypatch.setitem(native.call, name, watched(native.call[name]))
    x, low_pass = torch.ones(2, 3000), fx.filter.LoButterworth(1000, fs=48_000)
    comb = torch.tensor([[0.5, 1.0], [1.0, 0.0]], dtype=torch.float64)

    def runs():
        low_pass(x)
        low_pass(x.requires_grad_()).sum().backward()
        x.requires_grad_(False)
        fx.realtime.Stream(low_pass, 48_000, 2).process(x[:, :64])
        fx.effect.Compressor(fs=48_000)(x)
        sos = torch.from_numpy(CHAIN)
        _ops.lti_forward(x, torch.ones(2, dtype=torch.float64), sos)
        _ops.biquad_forward(x, sos[0, :3], sos[0, 3:])
        _ops.delay_network_forward(x[:1].double().requires_grad_(), [2000], comb, sos[None])[0].sum().backward()
        _ops.parallel_iir_forward(x, sos, threshold=77)

    for threshold in (splitting.THRESHOLD, 99):
        monkeypatch.setattr(splitting, "THRESHOLD", threshold)
        seen.clear()
        runs()
        assert len(seen) >= 8
        assert seen[-1] == 77
        assert set(seen[:-1]) == {threshold}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda sos: sos[0].__setitem__(1, float("nan")), "sos must be finite, got nan"),
        (lambda sos: sos[0].__setitem__(4, float("inf")), "sos must be finite, got inf"),
        (lambda sos: sos[1].__setitem__(3, 0.0), "a0 = 0"),
        (lambda sos: sos[1].__setitem__(5, 1.0), "section 1 is unstable"),
        (lambda sos: sos[2].__setitem__(4, -2.5), "section 2 is unstable"),
    ],
)
def test_bad_coefficients_raise(form, change, message):
    sos = torch.from_numpy(CHAIN.copy())
    change(sos)
    with pytest.raises(ArgumentError, match=message):
        form(torch.zeros(2, 100), sos)


def test_the_unstable_row_is_named():
    sos = torch.from_numpy(CHAIN).repeat(4, 1, 1)
    sos[2, 1, 5] = 1.5
    with pytest.raises(ArgumentError, match="section 1 of row 2 is unstable"):
        _ops.parallel_iir_forward(torch.zeros(4, 10), sos)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("x", "error", "message"),
    [
        (torch.zeros(2, 10, dtype=torch.float16), ArgumentTypeError, "float32 or float64, got torch.float16"),
        (torch.zeros(2, 10, dtype=torch.bfloat16), ArgumentTypeError, "got torch.bfloat16"),
        (torch.zeros(2, 10, dtype=torch.int32), ArgumentTypeError, "got torch.int32"),
        (torch.zeros(2, 10, dtype=torch.complex64), ArgumentTypeError, "got torch.complex64"),
        (torch.zeros(()), ArgumentError, "x must have the shape"),
    ],
)
def test_bad_signals_raise(form, x, error, message):
    with pytest.raises(error, match=message):
        form(x, torch.from_numpy(CHAIN))


@pytest.mark.parametrize(
    ("sos", "state", "error", "message"),
    [
        (torch.zeros(6).double(), None, ArgumentError, r"shape \(..., sections >= 1, 6\), got \(6,\)"),
        (torch.zeros(0, 6).double(), None, ArgumentError, r"got \(0, 6\)"),
        (torch.zeros(1, 6), None, ArgumentTypeError, "sos must be float64, got torch.float32"),
        (
            torch.from_numpy(CHAIN),
            torch.zeros(4, 2).double(),
            ArgumentError,
            r"\(4, 2, 2\) \(SciPy's zi\), got \(4, 2\)",
        ),
        (torch.from_numpy(CHAIN), torch.zeros(4, 2, 2), ArgumentTypeError, "state must be float64"),
    ],
)
def test_bad_sections_and_states_raise(sos, state, error, message):
    with pytest.raises(error, match=message):
        _ops.parallel_iir_forward(torch.zeros(2, 10), sos, state)
