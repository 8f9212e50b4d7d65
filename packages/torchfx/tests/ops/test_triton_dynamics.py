"""The detectors' GPU kernels without a GPU: interpreted, against the reference in float64, and compiled."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import triton_interpreter
from operators import backend
from oracle import bound, deviation
from torchfx._ops.dynamics.triton import PROGRAMS_PER_PROCESSOR, WARPS
from triton_interpreter import noise

if os.environ.get("TORCHFX_TRITON") != "1":  # .ci/run insists
    pytest.skip("needs Triton 3.9, and TORCHFX_TRITON=1 to say so", allow_module_level=True)

sys.path.append(str(Path(__file__).parents[2] / "tools"))

FLOAT32, FLOAT64 = torch.float32, torch.float64
SHORT = (0.9, 0.7)  # forgets 1e-10 in under 48 samples
LONG = (0.3, 0.002)


@pytest.fixture(scope="module")
def run():
    """Run a backend in the interpreter, as `triton_interpreter.run`."""
    with triton_interpreter.interpreter() as pool:
        yield lambda *arguments, **constants: pool.submit(triton_interpreter.run, *arguments, **constants).result()


def rows(*values):
    return torch.tensor(values, dtype=FLOAT64)


def assert_followed(run, x, coefficients, *, given=True, **options):
    """Compare the kernel with the recurrence, sample by sample in float64."""
    leading = torch.broadcast_shapes(x.shape[:-1], coefficients.shape[:-1])
    state = noise(*leading, dtype=FLOAT64, seed=1) if given else None
    (y, after), counts = run("ballistics_forward", (x, coefficients, state), **options)
    exact, exact_after = backend("ballistics_forward", "reference")(x.double(), coefficients, state)
    assert y.dtype == x.numpy().dtype
    assert deviation(y, exact.numpy()) < bound(x.dtype)
    assert deviation(after, exact_after.numpy()) < bound(FLOAT64)
    return counts


CASES = {
    # name: signal, coefficients, options
    "chunks that start early": (noise(150), rows(*SHORT), {}),
    "chunks of float64, every second sample": (
        noise(2, 150, dtype=FLOAT64, layout="every second"), rows(*SHORT), {},
    ),
    "the slower coefficient is the first": (noise(150), rows(0.6, 1.0), {}),
    "a memory longer than the signal": (noise(70), rows(*LONG), {}),
    "one coefficient is 0": (noise(2, 40), rows(0.5, 0.0), {}),
    "each channel remembers for another time": (noise(3, 100, dtype=FLOAT64), rows(SHORT, LONG, (1.0, 1.0)), {}),
    "rows and signals broadcast": (noise(2, 18), rows([SHORT], [LONG], [(0.2, 0.4)]), {}),
    "17 channels, interleaved": (noise(17, 9, layout="interleaved"), rows(*SHORT), {}),
    "one sample": (noise(2, 1, dtype=FLOAT64), rows(*LONG), {}),
    "exactly a tile": (noise(16), rows(*LONG), {}),
    "a whole tile and a sample": (noise(1025), rows(*LONG), {"lanes": 32, "log_t": 5}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_ballistics_equal_the_recurrence(run, name):
    x, coefficients, options = CASES[name]
    assert_followed(run, x, coefficients, **options)


def test_without_a_state_the_output_starts_at_0(run):
    assert_followed(run, noise(20) + 3, rows(*LONG), given=False)


def test_chunks_rely_on_what_the_ballistics_forget(run):
    """Without a warm-up every chunk starts at 0: what the other tests pass needs it."""
    x = noise(150) + 3
    (y, _), _ = run("ballistics_forward", (x, rows(*SHORT)), LOG_TOLERANCE={4: 0.0})
    exact, _ = backend("ballistics_forward", "reference")(x.double(), rows(*SHORT), None)
    assert deviation(y, exact.numpy()) > 1e-3


def test_a_tile_takes_few_runs(run):
    """Not one for each lane. A run subtracts twice for each of the 32 samples of a lane, and twice for its guess."""
    counts = assert_followed(run, noise(2048), rows(*LONG), lanes=32, log_t=5)
    runs = counts["add"] / (2 * 32 + 2) / 2  # for each tile
    assert 2 <= runs <= 5


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_what_is_not_finite_makes_the_rest_nan(run, bad):
    x = noise(40)
    x[21] = bad
    (y, after), _ = run("ballistics_forward", (x, rows(*LONG)))
    exact, _ = backend("ballistics_forward", "reference")(x[:21].double(), rows(*LONG), None)
    assert deviation(y[:21], exact.numpy()) < bound(FLOAT32)
    assert not np.isfinite(y[21])
    assert np.isnan(y[22:]).all()
    assert np.isnan(after)


@pytest.mark.parametrize("name", ["ballistics_forward", "dynamics_forward"])
def test_no_samples_pass_the_state_on(run, name):
    x, state = noise(3, 0), noise(3, dtype=FLOAT64)
    arguments = (x, rows(*LONG), state) if name == "ballistics_forward" else (x, None, settings(), state, None)
    (y, after), _ = run(name, arguments)
    assert y.shape == (3, 0)
    assert np.array_equal(after, state)


def settings(*own):
    """Return settings with a knee, a bound and a makeup gain, different in each row."""
    low = [-20.0, -0.9, -3.0, 0.0, -60.0, -6.0, 0.4, 0.3]
    high = [0.0, 0.0, 0.0, 12.0, -30.0, 6.0, 0.9, 0.9]
    return torch.from_numpy(np.random.default_rng(2).uniform(low, high, (*own, 8)))


NO_KNEE = rows(-20.0, -0.75, 0.0, 0.0, -200.0, 0.0, 0.3, 0.4)
GAINS = {
    # name: signal, key, settings, link
    "by its own level": (noise(2, 70), None, settings(), None),
    "channels share a level": (noise(3, 2, 33, dtype=FLOAT64, layout="every second"), None, settings(3, 1), -2),
    "channels share a level, but not a gain": (noise(2, 40), None, settings(2), -2),
    "bands that lie inside": (noise(2, 3, 20), None, settings(3), -3),
    "a key for all channels": (noise(3, 2, 20), noise(1, 20, layout="every second", seed=3), NO_KNEE, None),
    "a key that is silent": (noise(2, 20, dtype=FLOAT64), torch.zeros(2, 20, dtype=FLOAT64), settings(2), -2),
    "a signal for several settings": (noise(150), None, settings(3), -2),
    "one sample": (noise(1), noise(1, seed=3), NO_KNEE, None),
}


@pytest.mark.parametrize("name", GAINS)
def test_dynamics_equal_levels_curves_and_ballistics(run, name):
    x, key, of, link = GAINS[name]
    composite = backend("dynamics_forward", "composite")
    double = (x.double(), None if key is None else key.double(), of)
    state = noise(*composite(*double, None, link)[1].shape, dtype=FLOAT64, seed=1) - 10
    (y, after), _ = run("dynamics_forward", (x, key, of, state, link), BLOCK=32)
    exact, exact_after = composite(*double, state, link)
    assert deviation(y, exact.numpy()) < bound(x.dtype)
    assert np.abs(after - exact_after.numpy()).max() < 1e-8  # dB


def test_levels_that_are_not_finite_have_no_gain(run):
    key = noise(3, 40)
    key[0, 17], key[1, 17] = float("nan"), float("inf")
    (gain, _), _ = run("dynamics_forward", (torch.ones_like(key), key, settings()), BLOCK=64)
    assert np.isnan(gain[:2, 17:]).all()
    assert np.isfinite(gain[:2, :17]).all()
    assert np.isfinite(gain[2]).all()


# --- compiled code ----------------------------------------------------------------------------------------

many = pytest.mark.many


@pytest.mark.parametrize(
    ("arch", "dtype"),
    [(90, "fp32"), (90, "fp64"), pytest.param(80, "fp32", marks=many), pytest.param(100, "fp64", marks=many)],
)
def test_ballistics_compile_without_spills(arch, dtype):
    import gpu_cost
    from torchfx._ops.dynamics import kernels, triton

    log_t = triton.LOG_T[4 if dtype == "fp32" else 8]
    target = gpu_cost.GPUTarget("cuda", arch, 32)
    code = gpu_cost.disassembled(
        gpu_cost.compiled(kernels.ballistics, target, dtype, LANES=32, LOG_T=log_t, HAS_STATE=True)
    )
    assert (code.spilled, code.warps >= PROGRAMS_PER_PROCESSOR) == (0, True)
    assert code.shared <= 8192
    assert "fma.rn.f64" in code.ptx


@pytest.mark.parametrize("name", ["curve", "product"])
@pytest.mark.parametrize("arch", [90, pytest.param(80, marks=many), pytest.param(100, marks=many)])
def test_levels_and_gains_compile_without_spills(arch, name):
    import gpu_cost
    from torchfx._ops.dynamics import kernels, triton

    kernel, target = getattr(kernels, name), gpu_cost.GPUTarget("cuda", arch, 32)
    code = gpu_cost.disassembled(gpu_cost.compiled(kernel, target, "fp32", BLOCK=triton.BLOCK, num_warps=WARPS))
    assert (code.spilled, code.warps >= 16) == (0, True)
