"""Gradients by the GPU kernels without a GPU: through Triton's interpreter against the definition, and compiled."""

import os
import re
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import signal

import triton_interpreter
from operators import backend
from oracle import bound, deviation
from torchfx._ops.fir import triton as fir
from torchfx._ops.sos import triton as sos_triton

if os.environ.get("TORCHFX_TRITON") != "1":  # .ci/run insists
    pytest.skip("needs Triton 3.9, and TORCHFX_TRITON=1 to say so", allow_module_level=True)

sys.path.append(str(Path(__file__).parents[2] / "tools"))

FLOAT32, FLOAT64 = torch.float32, torch.float64
FAST = torch.from_numpy(signal.butter(3, 2000, fs=8000, output="sos"))
LOW = torch.from_numpy(signal.butter(3, 20, "high", fs=192_000, output="sos"))
LONG = torch.from_numpy(signal.butter(24, 20, fs=192_000, output="sos"))  # a gain of 5e-84 in the first of 12 sections
ROWS = torch.stack([FAST, LOW, FAST.flip(0)])[:, None] * torch.tensor([1.0, 1, 1, 2, 2, 2], dtype=FLOAT64)
EVERYWHERE, NOWHERE = 0, 1 << 40
EARLY = {"LOG_TOLERANCE": {4: 0.0, 8: 0.0}}
"""Chunks start 64 samples early, when FAST has forgotten 1e-12; by its bound that takes 305."""

GRADIENT_BOUND = {FLOAT32: 1e-6, FLOAT64: 1e-10}
"""Of a gradient's peak: float32 signals are rounded between sections."""


@pytest.fixture(scope="module")
def run():
    """Run a backend in the interpreter, as `triton_interpreter.run`."""
    with triton_interpreter.interpreter() as pool:
        yield lambda *arguments, **constants: pool.submit(triton_interpreter.run, *arguments, **constants).result()


def noise(*shape, dtype=FLOAT64, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape)).to(dtype)


def every_second(x):
    return torch.stack([x, x + 1], dim=-1).flatten(-2)[..., ::2]


def exact(name, *arguments):
    """Return what the definition in plain PyTorch finds, in float64."""
    return [found.numpy() for found in backend(name, "reference")(*arguments)]


CASES = {
    # name: sections, signal, with states?, options
    "chunks that start early": (FAST, every_second(noise(90, dtype=FLOAT32)), True, EARLY),
    "chunks of float64": (FAST, noise(2, 99), True, EARLY | {"processors": 1, "PROGRAMS_PER_PROCESSOR": 4}),
    "20 Hz in float64": (LOW, noise(33), True, {}),
    "20 Hz in float32, at rest": (LOW, noise(17, dtype=FLOAT32), False, {}),
    "12 sections": (LONG, noise(9, dtype=FLOAT32), True, {"log_t": 1}),
    "one section": (FAST[1:], noise(1, 2, 21, dtype=FLOAT32), True, {}),
    "a cascade for each channel": (ROWS, noise(2, 11), True, {}),
    "one sample": (FAST[1:], noise(17, 1, dtype=FLOAT32), True, {}),
    "exactly a tile": (FAST[:1], noise(16), False, {}),
    "the state's samples fill the tile": (FAST[:1], noise(14), True, {}),
    "one of the state's samples in the next tile": (FAST[:1], noise(15, dtype=FLOAT32), True, {}),
    "the state's samples in a tile of their own": (FAST[:1], noise(2, 32), True, {}),
}


@pytest.mark.parametrize("name", CASES)
def test_gradients_of_a_cascade_equal_the_definition(run, name):
    sos, x, given, options = CASES[name]
    leading = torch.broadcast_shapes(x.shape[:-1], sos.shape[:-2])
    state = grad_after = None
    if given:
        state = backend("sos_forward", "reference")(noise(*leading, 30_000, seed=1), sos)[1]
        grad_after = noise(*state.shape, seed=2) * 0.1
    grad_y = every_second(noise(*leading, x.shape[-1], dtype=x.dtype, seed=3))
    arguments = (grad_y, grad_after, x, sos, state, None, NOWHERE, True, True, True)
    tile = 4 << options.get("log_t", 2)
    (grad_x, grad_sos, grad_state), _ = run("sos_backward", arguments, CHECKPOINT_STEPS=tile // 2, **options)
    exact_x, exact_sos, exact_state = exact("sos_backward", *arguments)
    assert deviation(grad_x, exact_x) < bound(x.dtype)
    assert deviation(grad_state, exact_state) < 1e-10
    for index in np.ndindex(*sos.shape[:-1]):  # every section by itself
        assert deviation(grad_sos[index], exact_sos[index]) < GRADIENT_BOUND[x.dtype]


@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64])
def test_the_forward_pass_keeps_the_states_that_gradients_start_from(run, dtype):
    """A channel of two tiles and a rest, in chunks of one."""
    x, grad_y = noise(2, 1100, dtype=dtype), noise(2, 1100, dtype=dtype, seed=3)
    state = noise(1, 2, 2, seed=1) * 0.1
    tile = {"lanes": 32, "log_t": 4}
    (y, after, checkpoints), _ = run("sos_forward_recording", (x, FAST[1:], state, EVERYWHERE), **tile)
    exact_y, exact_after = exact("sos_forward", x, FAST[1:], state, EVERYWHERE)
    assert checkpoints.shape == (2, 3, 1, 2)
    assert (deviation(y, exact_y) < bound(dtype), deviation(after, exact_after) < 1e-10) == (True, True)
    arguments = (grad_y, None, x, FAST[1:], state)
    needed = (EVERYWHERE, True, True, True)
    found, _ = run("sos_backward", (*arguments, torch.from_numpy(checkpoints), *needed), **tile)
    for gradient, expected in zip(found, exact("sos_backward", *arguments, None, *needed), strict=True):
        assert deviation(gradient, expected) < GRADIENT_BOUND[dtype]


def test_gradients_of_no_samples(run):
    """The state's gradient is passed on."""
    grad_after = noise(3, 2, 2)
    x = noise(2, 0)
    arguments = (x, grad_after, x, FAST[:1].repeat(3, 1), None, None, EVERYWHERE, True, True, True)
    (grad_x, grad_sos, grad_state), _ = run("sos_backward", arguments)
    assert grad_x.shape == (2, 0)
    assert not grad_sos.any()
    assert np.array_equal(grad_state, grad_after)


@pytest.mark.parametrize("cut", [EARLY, {"processors": 1, "PROGRAMS_PER_PROCESSOR": 1}])
def test_a_sample_counts_once_however_the_signal_is_cut(run, cut):
    """With y = b0 x and gradients of 1, that of b0 is the sum of the samples."""
    sos = torch.tensor([[3.0, 0, 0, 1, 0, 0]], dtype=FLOAT64)
    x = noise(1, 75)
    arguments = (torch.ones_like(x), None, x, sos, None, None, EVERYWHERE, False, True, False)
    (grad_x, grad_sos, grad_state), _ = run("sos_backward", arguments, CHECKPOINT_STEPS=16, **cut)
    assert grad_sos[0, 0] == pytest.approx(x.sum().item(), rel=1e-12)
    assert grad_sos[0, 3] == pytest.approx(-3 * x.sum().item(), rel=1e-12)
    assert (len(grad_x), len(grad_state)) == (0, 0)


@pytest.mark.parametrize(
    ("sos", "dtype", "threshold", "time"),
    [(FAST, FLOAT32, EVERYWHERE, 50), (LOW, FLOAT64, EVERYWHERE, 21), (LOW, FLOAT64, NOWHERE, 9)],
)
def test_gradients_of_signal_and_state_keep_no_signals(run, sos, dtype, threshold, time):
    x = noise(2, time, dtype=dtype)
    arguments = (x.flip(-1) + 0.5, noise(len(sos), 2, 2), x, sos, None, None, threshold, True, False, True)
    (grad_x, grad_sos, grad_state), counts = run("sos_backward", arguments)
    exact_x, _, exact_state = exact("sos_backward", *arguments)
    assert counts["fma"] > 0
    assert deviation(grad_x, exact_x) < bound(dtype)
    assert deviation(grad_state, exact_state) < 1e-10
    assert len(grad_sos) == 0


TILE = {"ROWS": 16, "DEPTH": 16, "COLUMNS": 16}
SUMS = {"ROWS": 16, "COLUMNS": 16}
FEW = {"processors": 1, "SUMS_PER_PROCESSOR": 1}
"""A chunk of the sums goes over tiles and channels."""

RESPONSES = {
    # name: taps, signal, with a state?, options
    "tiles and a rest": (noise(37), every_second(noise(2, 300, dtype=FLOAT32)), True, {}),
    "whole tiles": (noise(17), noise(2, 768, dtype=FLOAT32), False, FEW),
    "one row of taps for each channel": (noise(3, 1, 5), noise(2, 70), True, {}),
    "rows of taps that channels share": (noise(2, 1, 3, 1, 20), noise(2, 3, 2, 270, dtype=FLOAT32), False, FEW),
    "a signal for all rows": (noise(2, 33), noise(270, dtype=FLOAT32), True, {"MOST_SUMMED": 1}),
    "one tap": (noise(1), noise(3, 301, dtype=FLOAT32), True, {}),
    "longer than the signal": (noise(40), noise(1, 7), True, {}),
    "longer than the signal, which nothing follows": (noise(40), noise(1, 7), False, {}),
    "more taps than the kernels take": (noise(19), noise(2, 33, dtype=FLOAT32), True, {"LONGEST": 18}),
}


@pytest.mark.parametrize("name", RESPONSES)
def test_gradients_of_a_response_equal_the_definition(run, name):
    taps, x, given, options = RESPONSES[name]
    leading = torch.broadcast_shapes(x.shape[:-1], taps.shape[:-1])
    grad_y = noise(*leading, x.shape[-1], dtype=x.dtype, seed=1)
    grad_after = noise(*leading, taps.shape[-1] - 1, seed=2) if given else None
    arguments = (grad_y, grad_after, x, taps, True, True, True)
    found, _ = run("fir_backward", arguments, SHAPES={4: TILE, 8: TILE}, SUMS={4: SUMS, 8: SUMS}, **options)
    for gradient, expected in zip(found, exact("fir_backward", *arguments), strict=True):
        assert gradient.shape == expected.shape
        if expected.size:  # a single tap has no state
            assert deviation(gradient, expected) < GRADIENT_BOUND[x.dtype]


# --- compiled code ----------------------------------------------------------------------------------------


many = pytest.mark.many


@pytest.fixture
def gpu_cost():
    return import_module("gpu_cost")


@pytest.mark.parametrize(
    ("arch", "dtype", "options"),
    [
        (90, "fp32", {}),
        pytest.param(90, "fp32", {"HAS_STATE": False}, marks=many),
        pytest.param(90, "fp32", {"OF_SECTIONS": False}, marks=many),
        pytest.param(90, "fp64", {}, marks=many),
        pytest.param(80, "fp32", {}, marks=many),
        pytest.param(100, "fp32", {}, marks=many),
    ],
)
def test_the_adjoint_compiles_without_spills_in_its_loops(gpu_cost, arch, dtype, options):
    constants = gpu_cost.constants(4, dtype == "fp64") | {"OF_SECTIONS": True} | options
    target = gpu_cost.GPUTarget("cuda", arch, 32)
    code = gpu_cost.disassembled(gpu_cost.compiled(gpu_cost.kernels.adjoint, target, dtype, **constants))
    tile, section = gpu_cost.loops(code.sass)
    assert section["LDL"] + section["STL"] == 0
    assert tile["LDL"] + tile["STL"] <= 16  # of thousands of instructions
    assert code.warps >= sos_triton.PROGRAMS_PER_PROCESSOR
    assert code.shared <= 8192


def test_forward_and_backward_take_less_than_four_times_forward(gpu_cost):
    """By what the units of an H100 run for a sample of four sections."""
    forward, backward = gpu_cost.cascade("H100", 4), gpu_cost.cascade("H100", 4, gradients=True)
    assert backward.bytes == 12
    for unit in ("issue", "float64", "bandwidth"):
        assert backward.picoseconds[unit] < 3 * forward.picoseconds[unit], unit


@pytest.mark.parametrize(
    ("arch", "dtype", "instruction"),
    [
        (90, "fp32", "HGMMA"),
        pytest.param(80, "fp32", "HMMA", marks=many),
        pytest.param(100, "fp32", "UTC.*MMA", marks=many),
        pytest.param(90, "fp64", "DMMA", marks=many),
    ],
)
def test_the_gradient_of_taps_compiles_to_products_of_matrices(gpu_cost, arch, dtype, instruction):
    shape = fir.SUMS[4 if dtype == "fp32" else 8]
    kernel = import_module("torchfx._ops.fir.kernels").correlation
    code = gpu_cost.disassembled(gpu_cost.compiled(kernel, gpu_cost.GPUTarget("cuda", arch, 32), dtype, **shape))
    assert re.search(instruction, code.sass)
    assert code.spilled <= 8
    assert code.shared <= 65536 + 8
