"""The GPU kernels without a GPU: their source through Triton's interpreter against SciPy, and what they compile to."""

import json
import os
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import signal

import triton_interpreter
from oracle import bound, deviation, exact_fir, exact_sos
from torchfx._ops.fir import triton as fir
from torchfx._ops.operator import _falls_back
from torchfx._ops.sos import triton as sos_triton
from triton_interpreter import noise

if os.environ.get("TORCHFX_TRITON") != "1":  # .ci/run insists
    pytest.skip("needs Triton 3.9, and TORCHFX_TRITON=1 to say so", allow_module_level=True)

sys.path.append(str(Path(__file__).parents[2] / "tools"))

FLOAT32, FLOAT64 = torch.float32, torch.float64
FAST = signal.butter(3, 2000, fs=8000, output="sos")
LOW = signal.butter(3, 20, "high", fs=192_000, output="sos")
LONG = signal.cheby1(12, 0.5, [30, 90], "bandpass", fs=48_000, output="sos")
EVERYWHERE, NOWHERE = 0, 1 << 40
EARLY = {"LOG_TOLERANCE": {4: 0.0, 8: 0.0}}
"""Chunks start 64 samples early, when FAST has forgotten 1e-12; by its bound that takes 305."""


@pytest.fixture(scope="module")
def run():
    """Run a backend in the interpreter, as `triton_interpreter.run`."""
    with triton_interpreter.interpreter() as pool:
        yield lambda *arguments, **constants: pool.submit(triton_interpreter.run, *arguments, **constants).result()


def state_of(*shape):
    return torch.from_numpy(np.random.default_rng(1).standard_normal(shape)) * 0.1


CASES = {
    # name: sections, signal, with a state?, threshold, options
    "chunks that start early": (FAST, noise(150), True, EVERYWHERE, EARLY),
    "chunks of float64": (FAST, noise(2, 100, dtype=FLOAT64, layout="every second"), True, EVERYWHERE, EARLY),
    "20 Hz in float64": (LOW, noise(33, dtype=FLOAT64), True, EVERYWHERE, {}),
    "order 24": (LONG, noise(9), True, EVERYWHERE, {"log_t": 1}),
    "33 sections": (np.repeat(FAST[:1], 33, axis=0), noise(5), True, EVERYWHERE, {"log_t": 1}),
    "one sample": (FAST, noise(2, 1, dtype=FLOAT64), True, EVERYWHERE, {}),
    "exactly a tile": (FAST, noise(16, dtype=FLOAT64), False, EVERYWHERE, {}),
    "a whole tile and a sample": (FAST[:1], noise(1025), False, EVERYWHERE, {"lanes": 32, "log_t": 5}),
    "17 channels, a lane each": (LOW, noise(17, 11, layout="interleaved"), True, NOWHERE, {}),
    "float64, a lane each": (LOW, noise(3, 9, dtype=FLOAT64), False, NOWHERE, {}),
    "one sample, a lane": (FAST, noise(1), True, NOWHERE, {}),
}


@pytest.mark.parametrize("name", CASES)
def test_kernels_equal_scipy(run, name):
    sos, x, given, threshold, options = CASES[name]
    state = state_of(len(sos), *x.shape[:-1], 2) if given else None
    (y, after), _ = run("sos_forward", (x, torch.from_numpy(sos), state, threshold), **options)
    zi = np.zeros((len(sos), *x.shape[:-1], 2)) if state is None else state.numpy()
    exact, exact_after = exact_sos(sos, x.numpy(), zi)
    assert deviation(y, exact) < bound(x.dtype)
    assert deviation(after, exact_after) < 1e-11


@pytest.mark.parametrize("threshold", [EVERYWHERE, NOWHERE])
def test_each_row_has_its_own_filter(run, threshold):
    rows = torch.from_numpy(np.stack([FAST, LOW, FAST[::-1]]))[:, None]
    rows = rows * torch.tensor([2.0, 2, 2, 2, 2, 2], dtype=FLOAT64)  # a0 = 2
    x, state = noise(2, 18, dtype=FLOAT64), state_of(2, 3, 2, 2)
    (y, after), _ = run("sos_forward", (x, rows, state, threshold))
    assert y.shape == (3, 2, 18)
    for i in range(3):
        exact, exact_after = exact_sos(rows[i, 0].numpy() / 2, x.numpy(), state[:, i].numpy())
        assert deviation(y[i], exact) < bound(FLOAT64)
        assert deviation(after[:, i], exact_after) < 1e-11


def test_chunks_rely_on_what_the_filter_forgets(run):
    """With a tolerance of 1 a chunk starts far too late: what the other tests pass needs the bound."""
    x = noise(150)
    (y, _), _ = run("sos_forward", (x, torch.from_numpy(FAST), None, EVERYWHERE), LOG_TOLERANCE={4: 6.0})
    assert deviation(y, exact_sos(FAST, x.numpy())) > 1e-3


def test_a_section_changes_only_what_follows_a_nan(run):
    x = noise(40)
    x[21] = float("nan")
    (y, _), _ = run("sos_forward", (x, torch.from_numpy(FAST), None, EVERYWHERE))
    exact = exact_sos(FAST, x[:21].numpy())
    assert deviation(y[:21], exact) < bound(FLOAT32)
    assert np.isnan(y[21:]).all()


def test_no_samples_pass_the_state_on(run):
    state = state_of(2, 3, 2)
    (y, after), _ = run("sos_forward", (noise(3, 0), torch.from_numpy(FAST), state, EVERYWHERE))
    assert y.shape == (3, 0)
    assert np.array_equal(after, state)


TILE = {"ROWS": 16, "DEPTH": 16, "COLUMNS": 16}
RESPONSES = {
    # name: taps, signal, with a state?
    "tiles and a rest": (state_of(37), noise(2, 300, layout="every second"), True),
    "float64, one row of taps for each channel": (state_of(3, 1, 5), noise(2, 70, dtype=FLOAT64), True),
    "one tap": (state_of(1), noise(20), False),
    "longer than the signal": (state_of(40), noise(7, dtype=FLOAT64), True),
    "a state that outlasts the block": (state_of(300), noise(2, 260), True),
    "whole tiles inside": (state_of(70), noise(1025), True),
}


@pytest.mark.parametrize("name", RESPONSES)
def test_responses_equal_scipy(run, name):
    taps, x, given = RESPONSES[name]
    leading = torch.broadcast_shapes(x.shape[:-1], taps.shape[:-1])
    state = state_of(*leading, taps.shape[-1] - 1) if given else None
    (y, after), _ = run("fir_forward", (x, taps, state), SHAPES={4: TILE, 8: TILE})
    zi = np.zeros((*leading, taps.shape[-1] - 1)) if state is None else state.numpy()
    for index in np.ndindex(*leading):
        weights = taps.expand(*leading, taps.shape[-1])[index]
        exact, exact_after = exact_fir(weights.numpy(), x.expand(*leading, x.shape[-1])[index].numpy(), zi[index])
        assert deviation(y[index], exact) < bound(x.dtype)
        if len(exact_after):
            assert np.abs(after[index] - exact_after).max() < 2 * bound(x.dtype) * np.abs(exact).max()


def test_samples_are_scaled_by_the_loudest_finite_one(run):
    """The infinite one lies in front of a tile, the loudest a tile later: outputs that it does not reach are right."""
    x, taps = noise(600), state_of(5)
    x[241], x[241 + 256] = float("inf"), 1000.0
    (y, _), _ = run("fir_forward", (x, taps, None), SHAPES={4: TILE})
    assert not np.isfinite(y[241])
    x[241] = 0
    exact, _ = exact_fir(taps.numpy(), x.numpy(), np.zeros(4))
    assert deviation(y[272:], exact[272:]) < bound(FLOAT32)


# --- without a kernel ---


def test_a_device_without_a_kernel_runs_the_reference_with_one_warning():
    """This machine has no GPU: Triton finds no driver, and says so."""
    run = _falls_back("sos_forward", backend_function("triton"), backend_function("reference"))
    x, sos = noise(2, 50), torch.from_numpy(FAST)
    y, after = torch.empty_like(x), torch.empty(len(FAST), 2, 2, dtype=FLOAT64)
    with pytest.warns(
        RuntimeWarning, match=r"sos_forward has no kernel for torch.float32 on cpu: RuntimeError: .*driver"
    ):
        run(x, sos, None, 0, y, after)
    assert deviation(y, exact_sos(FAST, x.numpy())) < bound(FLOAT32)
    run(x, sos, None, 0, y, after)  # warnings are errors here


def backend_function(file):
    return import_module(f"torchfx._ops.sos.{file}").sos_forward


# --- compiled code ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def gpu_cost():
    import gpu_cost

    return gpu_cost


many = pytest.mark.many


@pytest.mark.parametrize(
    ("arch", "dtype", "checkpoints"),
    [
        (90, "fp32", False),
        (100, "fp32", False),
        pytest.param(80, "fp32", False, marks=many),
        pytest.param(90, "fp64", False, marks=many),
        pytest.param(90, "fp32", True, marks=many),
    ],
)
def test_the_cascade_compiles_without_spills_where_it_computes(gpu_cost, arch, dtype, checkpoints):
    target = gpu_cost.GPUTarget("cuda", arch, 32)
    constants = gpu_cost.constants(4, dtype == "fp64") | {"HAS_CHECKPOINTS": checkpoints}
    code = gpu_cost.disassembled(gpu_cost.compiled(gpu_cost.kernels.chunked, target, dtype, **constants))
    tile, section = gpu_cost.loops(code.sass)
    assert section["LDL"] + section["STL"] == 0
    assert (tile["LDL"] <= 16, tile["STL"]) == (True, 0)  # of thousands of instructions
    assert code.warps >= sos_triton.PROGRAMS_PER_PROCESSOR
    assert code.shared <= 8192
    assert "fma.rn.f64" in code.ptx


def test_short_signals_compile_without_spills(gpu_cost):
    code = gpu_cost.disassembled(
        gpu_cost.compiled(
            gpu_cost.kernels.sequential, gpu_cost.GPUTarget("cuda", 90, 32), "fp32", LANES=32, LOG_T=5, SHIFTED=False,
            HAS_STATE=True, ADJOINT=False,
        )
    )  # fmt: skip
    assert (code.spilled <= 8, code.warps >= 8) == (True, True)


@pytest.mark.parametrize(
    ("arch", "dtype"), [(90, "fp32"), pytest.param(80, "fp32", marks=many), pytest.param(90, "fp64", marks=many)]
)
def test_responses_compile_to_products_of_matrices(gpu_cost, arch, dtype):
    shape = fir.SHAPES[4 if dtype == "fp32" else 8]
    target = gpu_cost.GPUTarget("cuda", arch, 32)
    kernel = import_module("torchfx._ops.fir.kernels").response
    code = gpu_cost.disassembled(gpu_cost.compiled(kernel, target, dtype, **shape, HAS_STATE=True))
    assert code.spilled <= 8  # outside of the products
    assert {80: "HMMA", 90: "HGMMA" if dtype == "fp32" else "DMMA"}[arch] in code.sass


@many
def test_the_cascade_compiles_for_amd(gpu_cost):
    target = gpu_cost.GPUTarget("hip", "gfx942", 64)
    constants = gpu_cost.constants(4, False, lanes=64) | {"HAS_CHECKPOINTS": False}
    code = gpu_cost.compiled(gpu_cost.kernels.chunked, target, "fp32", **constants)
    assert "v_fma_f64" in code.asm["amdgcn"]
    assert ".vgpr_spill_count: 0" in code.asm["amdgcn"]


def test_the_bound_on_an_h100_is_near_a_copy(gpu_cost):
    """The gate of 12 channels of 600 s: at most 2.5 times what a copy takes. Instructions can't hide behind it."""
    found = gpu_cost.cascade("H100", 4)
    assert found.bytes == 8
    assert found.copy_ratio < 2.5
    assert 4 * 8 < found.instructions["float64"] < 4 * 11  # 8 for each sample, the rest once for 32 of them


def test_the_bound_of_511_taps_is_within_3_copies(gpu_cost):
    """Three products of halves go to the tensor cores; what goes through shared memory takes longer."""
    found = gpu_cost.response("H100", 511)
    assert found.instructions["tensor"] == 3 * 64 * 9
    assert found.registers <= 128  # two programs of 8 warps on a multiprocessor
    assert 1 < found.picoseconds["tensor"] / found.picoseconds["bandwidth"] < found.copy_ratio < 3


def test_the_tool_prints_its_numbers(gpu_cost, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["gpu_cost.py", "--chip", "H100", "--json"])
    assert gpu_cost.main() == 0
    [row] = json.loads(capsys.readouterr().out)
    assert row["picoseconds"]["bandwidth"] == pytest.approx(8 / 3.35)


def test_counted_instructions_are_those_the_interpreter_executes(run, gpu_cost):
    """A section more adds to a tile the float64 operations that its loop holds in machine code."""

    def executed(sections, tiles):
        sos = torch.from_numpy(np.repeat(FAST[1:], sections, axis=0))
        arguments = (noise(1024 * tiles), sos, None, EVERYWHERE)
        _, counts = run("sos_forward", arguments, lanes=32, log_t=5, processors=1, PROGRAMS_PER_PROCESSOR=1)
        return sum(counts.values())

    section = executed(2, 2) - executed(2, 1) - executed(1, 2) + executed(1, 1)
    _, loop = gpu_cost.loops(gpu_cost.cascade_code("H100", 4).sass)
    assert sum(loop[name] for name in ("DFMA", "DMUL", "DADD")) == pytest.approx(section, rel=0.03)
