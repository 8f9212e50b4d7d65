"""Frames and bands as GPU kernels without a GPU: interpreted, against NumPy in float64; counted, and compiled."""

import inspect
import os
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode

import triton_interpreter
from operators import declared
from torchfx import _ops
from torchfx._ops import triton_launch
from torchfx._ops.mel import triton as mel
from torchfx.errors import ArgumentError
from triton_interpreter import noise

if os.environ.get("TORCHFX_TRITON") != "1":  # .ci/run insists
    pytest.skip("needs Triton 3.9, and TORCHFX_TRITON=1 to say so", allow_module_level=True)

sys.path.append(str(Path(__file__).parents[2] / "tools"))

FLOAT32, FLOAT64 = torch.float32, torch.float64
TILE = {"SHAPE": {"FRAMES": 16, "BANDS": 16, "DEPTH": 16}, "BLOCK": {"BLOCK": 32}}
PLAIN = {"hop": 10, "origin": 0, "reflect": False, "power": 2.0, "preemphasis": 0.0, "centred": False}
WITHOUT, NATURAL, DECIBELS = (0.0, 0.0, 0.0), (1.0, 1e-10, 0.0), (10 / np.log(10), 0.0, 1e-6)


@pytest.fixture(scope="module")
def run():
    """Run a backend in the interpreter, as `triton_interpreter.run`."""
    with triton_interpreter.interpreter() as pool:
        yield lambda *arguments, **constants: pool.submit(triton_interpreter.run, *arguments, **constants).result()


def triangles(count, bins):
    """Return overlapping triangles over the bins, as mel filters are."""
    corners = np.linspace(0, bins - 1, count + 2) ** 1.5 / max(bins - 1, 1) ** 0.5
    at = np.arange(bins)
    return np.stack([np.interp(at, corners[i : i + 3], [0, 1, 0], left=0, right=0) for i in range(count)])


def powers(x, window, n_fft, hop, origin, count, reflect, power, preemphasis, centred):
    """Return |X|^power of each frame (..., bins, count), by its definition in float64."""
    time, length = x.shape[-1], len(window)
    at = np.arange(count)[:, None] * hop - origin + np.arange(length)
    if reflect:
        at = np.where(at < 0, -at, np.where(at >= time, 2 * (time - 1) - at, at))
    frames = np.where((at >= 0) & (at < time), x[..., np.clip(at, 0, time - 1)], 0.0)
    if centred:
        frames = frames - frames.mean(-1, keepdims=True)
    frames = frames - preemphasis * frames[..., np.maximum(np.arange(length) - 1, 0)]
    angles = np.outer(np.arange(length), np.arange(n_fft // 2 + 1)) % n_fft * (2 * np.pi / n_fft)
    spectra = (frames * window) @ np.exp(-1j * angles)
    return np.moveaxis(np.abs(spectra) ** power, -1, -2)


def assert_bands(run, x, window, filters, n_fft, logarithm=WITHOUT, *, count, tile=TILE, raw=False, **changed):
    """Compare with the definition: bands by their peak, logarithms by what that moves them.

    With `raw`, the peak is at least that of raw frames, of which a mean or pre-emphasis may leave next to nothing.
    """
    options = PLAIN | changed
    arguments = (x, window, filters, n_fft, *list(options.values())[:2], count, *list(options.values())[2:], *logarithm)
    [y], _ = run("mel_forward", arguments, **tile)
    spectra = powers(x.double().numpy(), window.double().numpy(), n_fft, count=count, **options)
    exact = spectra if filters is None else filters.double().numpy() @ spectra
    assert (y.shape, y.dtype) == (exact.shape, x.numpy().dtype)
    peak = np.abs(exact).max(initial=0.0)
    if raw:
        unconditioned = powers(
            x.double().numpy(), window.numpy(), n_fft, count=count, **options | {"preemphasis": 0.0, "centred": False}
        )
        peak += unconditioned.max(initial=0.0) * (1 if filters is None else filters.sum(-1).max().item())
    error = (1e-12 if x.dtype == FLOAT64 else 1e-6) * peak
    gain, floor, offset = logarithm
    if not gain:
        assert np.abs(y - exact).max(initial=0.0) <= error
        return
    level = np.maximum(exact + offset, floor)
    rounding = (1e-12 if x.dtype == FLOAT64 else 1e-6) * (1 + np.abs(gain * np.log(level)))
    assert (np.abs(y - gain * np.log(level)) <= rounding + 2 * abs(gain) * error / level).all()


def window_of(length):
    return torch.hann_window(length, dtype=FLOAT64)


CASES = {
    # name: signal, samples of the window, filters, n_fft, logarithm, frames, options
    "Whisper's sizes": (
        noise(2, 2000), 400, torch.from_numpy(triangles(80, 201)), 400, NATURAL, 12,
        {"hop": 160, "origin": 200, "reflect": True},
    ),
    "Kaldi's steps before the window": (
        noise(1000) + 3, 400, torch.from_numpy(triangles(23, 257)), 512, NATURAL, 4,
        {"hop": 160, "preemphasis": 0.97, "centred": True},
    ),
    "powers alone, zeros beyond the ends": (noise(3, 90), 64, None, 64, WITHOUT, 12, {"origin": 40}),
    "magnitudes in decibels": (noise(90, dtype=FLOAT64), 30, None, 50, DECIBELS, 7, {"power": 1.0}),
    "every second sample": (
        noise(2, 300, layout="every second"), 33, torch.from_numpy(triangles(5, 17)), 33, DECIBELS, 20, {},
    ),
    "interleaved channels": (noise(17, 60, layout="interleaved"), 16, None, 16, WITHOUT, 5, {}),
    "a band without weights": (noise(99), 20, torch.zeros(18, 11, dtype=FLOAT64), 20, NATURAL, 8, {}),
    "weights everywhere": (noise(99), 64, noise(33, 33, dtype=FLOAT64).abs(), 64, WITHOUT, 4, {}),
    "a transform of one sample": (noise(5), 1, torch.ones(1, 1, dtype=FLOAT64), 1, WITHOUT, 3, {"hop": 1}),
    "silence": (torch.zeros(50), 16, None, 16, NATURAL, 4, {}),
    "one sample, in front of the frames and behind": (noise(1), 8, None, 8, WITHOUT, 3, {"hop": 4, "origin": 7}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_bands_equal_the_definition(run, name):
    x, length, filters, n_fft, logarithm, count, options = CASES[name]
    assert_bands(run, x, window_of(length) + 0.1, filters, n_fft, logarithm, count=count, **options)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_settings_equal_the_definition(run, data):
    draw = data.draw
    n_fft = draw(st.integers(1, 90))
    length, hop, time = draw(st.integers(1, n_fft)), draw(st.integers(1, 100)), draw(st.integers(1, 300))
    reflect = draw(st.booleans())
    most = time - 1 if reflect else 2 * n_fft
    origin = draw(st.integers(0 if reflect else -n_fft, most))
    count = draw(st.integers(0, 20)) if not reflect else max(0, (2 * time - 1 + origin - length) // hop + 1) % 21
    bands, dtype = draw(st.integers(0, 20)), draw(st.sampled_from((FLOAT32, FLOAT64)))
    filters = torch.from_numpy(triangles(bands, n_fft // 2 + 1)) if bands else None
    x = noise(*draw(st.sampled_from(((), (1,), (2, 2)))), time, dtype=dtype) * 10.0 ** draw(st.integers(-6, 6))
    changed = {
        "hop": hop, "origin": origin, "reflect": reflect, "power": draw(st.sampled_from((1.0, 2.0))),
        "preemphasis": draw(st.sampled_from((0.0, 0.97))), "centred": draw(st.booleans()),
    }  # fmt: skip
    logarithm = draw(st.sampled_from((WITHOUT, NATURAL, DECIBELS)))
    assert_bands(run, x, window_of(length) + 0.1, filters, n_fft, logarithm, count=count, raw=True, **changed)


def test_many_frames_go_in_parts(run):
    """Of 24 frames of two signals 5 are held at once, then 4; the whole is the same."""
    x, filters = noise(2, 130), torch.from_numpy(triangles(6, 9))
    tile = TILE | {"MOST": 5 * 16}
    assert_bands(run, x, window_of(16), filters, 16, NATURAL, count=12, tile=tile)


def test_what_is_not_a_number_reaches_the_frames_that_hold_it(run):
    x = noise(200)
    x[95] = float("nan")
    arguments = (x, window_of(20), torch.ones(3, 11, dtype=FLOAT64), 20, 10, 0, 18, False, 2.0, 0.0, False, *NATURAL)
    [y], _ = run("mel_forward", arguments, **TILE)
    assert np.isnan(y[:, 8:10]).all()
    assert np.isfinite(np.delete(y, [8, 9], axis=1)).all()


def test_other_exponents_run_plain_pytorch(run):
    assert_bands(run, noise(90), window_of(16), None, 16, count=5, power=0.6)


# --- launches ---------------------------------------------------------------------------------------------


@pytest.fixture
def launched(monkeypatch):
    """Return what the entry point calls for CUDA tensors, and the names of the kernels that it launches."""
    names = []
    monkeypatch.setattr(
        triton_launch, "launch", lambda kernel, programs, x, *arguments, **constants: names.append(kernel.__name__)
    )
    return inspect.getclosurevars(_ops.operators["mel_forward"]).nonlocals["gpu"], names


X, WINDOW, FILTERS = torch.zeros(4, 16_000 * 30), window_of(400), torch.ones(80, 201, dtype=FLOAT64)


def features(run, seconds, filters):
    x, weights, count = X[:, : 16_000 * seconds], FILTERS if filters else None, 100 * seconds - 2
    return run(x, WINDOW, weights, 400, 160, 0, count, False, 2.0, 0.0, False, *NATURAL)


class Computing(TorchDispatchMode):
    """Keeps the names of PyTorch's operators, but for views and allocations."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if not (func.is_view or func.overloadpacket.__name__ in {"new_empty", "empty"}):
            self.names.append(func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("seconds", [1, 30])
def test_features_take_three_launches_around_the_transform(launched, seconds):
    run, names = launched
    with Computing() as computed:
        features(run, seconds, filters=True)
    assert names == ["extents", "frames", "bands"]
    assert computed.names == ["_fft_r2c"]
    names.clear()
    features(run, seconds, filters=False)
    assert names == ["frames", "bands"]


def test_launches_grow_with_the_frames_held_at_once(launched, monkeypatch):
    run, names = launched
    monkeypatch.setattr(mel, "MOST", 100 * 400)
    features(run, 1, filters=True)  # 4 x 98 frames
    assert names == ["extents", *["frames", "bands"] * 4]


# --- compiled code ----------------------------------------------------------------------------------------

many = pytest.mark.many
TARGETS = [
    ("cuda", 80, "fp32"),
    ("cuda", 90, "fp32"),
    pytest.param("cuda", 89, "fp32", marks=many),
    pytest.param("cuda", 90, "fp64", marks=many),
]


def compiled(name, backend, arch, dtype, **constants):
    import gpu_cost

    kernel = getattr(import_module(f"{declared('mel_forward')[0]}.kernels"), name)
    target = gpu_cost.GPUTarget(backend, arch, 64 if backend == "hip" else 32)
    return gpu_cost.compiled(kernel, target, dtype, **constants)


FRAMES = dict(mel.BLOCK, REFLECT=True, CENTRED=True, PREEMPHASIS=0.97)
BANDS = dict(mel.SHAPE, FILTERED=True, MAGNITUDES=False, GAIN=1.0, FLOOR=1e-10, OFFSET=0.0)


@pytest.mark.parametrize(("name", "constants"), [("frames", FRAMES), ("bands", BANDS)])
@pytest.mark.parametrize(("backend", "arch", "dtype"), TARGETS)
def test_kernels_compile_without_spills(name, constants, backend, arch, dtype):
    import gpu_cost

    code = gpu_cost.disassembled(compiled(name, backend, arch, dtype, **constants))
    assert code.spilled == 0
    assert code.warps >= 16


@pytest.mark.parametrize(("arch", "dtype"), [(80, "fp32"), (90, "fp32"), pytest.param(90, "fp64", marks=many)])
def test_bands_are_summed_up_in_the_signals_precision(arch, dtype):
    """No TF32, whose 11 bits would be 5e-4 of a band, and no half."""
    code = compiled("bands", "cuda", arch, dtype, **BANDS).asm["ptx"]
    assert "tf32" not in code
    assert ".f16" not in code
    assert ("fma.rn.f32" if dtype == "fp32" else "f64") in code


@many
@pytest.mark.parametrize(
    ("name", "constants"),
    [("frames", FRAMES), ("bands", BANDS), ("extents", {"BANDS": 16, "DEPTH": 32})],
)
def test_kernels_compile_for_amd(name, constants):
    code = compiled(name, "hip", "gfx942", "fp32", **constants)
    assert ".vgpr_spill_count: 0" in code.asm["amdgcn"]


def test_arguments_are_checked_before_a_launch(launched):
    run, names = launched
    with pytest.raises(ArgumentError, match="hop must be >= 1, got 0"):
        run(torch.zeros(100), window_of(16), None, 16, 0, 0, 3, False, 2.0, 0.0, False, *WITHOUT)
    assert names == []
