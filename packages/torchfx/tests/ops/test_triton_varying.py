"""The GPU kernels of filters that change along the signal, without a GPU: interpreted, and what they compile to."""

import os
import sys
from functools import partial
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import signal
from torch.utils._python_dispatch import TorchDispatchMode

import triton_interpreter
from operators import backend
from oracle import bound, deviation
from torchfx import _ops
from torchfx._ops.state_space import gradient
from torchfx._ops.state_space import triton as state_space
from triton_interpreter import noise

if os.environ.get("TORCHFX_TRITON") != "1":  # .ci/run insists
    pytest.skip("needs Triton 3.9, and TORCHFX_TRITON=1 to say so", allow_module_level=True)

sys.path.append(str(Path(__file__).parents[2] / "tools"))

FLOAT32, FLOAT64 = torch.float32, torch.float64
signal_of = partial(noise, dtype=FLOAT64)
WHOLE, CUT = {"processors": 1}, {"processors": 132}  # one program for each channel, or many
many = pytest.mark.many


@pytest.fixture(scope="module")
def run():
    """Run a backend in the interpreter, as `triton_interpreter.run`; return its results."""
    with triton_interpreter.interpreter() as pool:
        yield lambda *arguments, **constants: pool.submit(triton_interpreter.run, *arguments, **constants).result()[0]


def coefficients_of(*shape):
    """Return coefficients (..., times, order) of filters that are stable however they change."""
    a = np.random.default_rng(1).uniform(-1, 1, shape)
    return torch.from_numpy(0.95 * a / np.maximum(1, np.abs(a).sum(-1, keepdims=True)))


def systems_of(*shape, states):
    """Return systems (..., times, n + 1, n + 1) whose states shrink at every step, however they change."""
    m = np.random.default_rng(2).standard_normal((*shape, states + 1, states + 1))
    m[..., :-1, :-1] *= 0.9 / np.linalg.norm(m[..., :-1, :-1], 2, axis=(-2, -1), keepdims=True)
    return torch.from_numpy(m)


def companion(a):
    """Return the systems (..., times, n + 1, n + 1) whose states are an all-pole filter's past outputs."""
    a = np.asarray(a)
    m = np.zeros((*a.shape[:-1], a.shape[-1] + 1, a.shape[-1] + 1))
    m[..., 0, :-1] = m[..., -1, :-1] = -a
    m[..., 0, -1] = m[..., -1, -1] = 1
    for i in range(1, a.shape[-1]):
        m[..., i, i - 1] = 1
    return m


def loop(x, system, state):
    """[s'; y] = M [s; x] in long double; arguments broadcast."""
    leading = np.broadcast_shapes(x.shape[:-1], system.shape[:-3])
    m, time, y = np.asarray(system, np.longdouble), x.shape[-1], []
    s = np.broadcast_to(np.asarray(state, np.longdouble), (*leading, m.shape[-1] - 1))
    wide = np.broadcast_to(np.asarray(x.double(), np.longdouble), (*leading, time))
    for t in range(time):
        both = np.concatenate([s, wide[..., t, None]], axis=-1)
        out = (m[..., t * m.shape[-3] // time, :, :] * both[..., None, :]).sum(-1)
        s = out[..., :-1]
        y.append(out[..., -1])
    return np.stack(y, axis=-1), s


ALLPOLE = {
    # name: signal, coefficients, with past outputs?, options. A tile is of 32 float64 or 64 float32 samples.
    "order 1, each sample, chunks": (signal_of(2, 300), coefficients_of(2, 300, 1), True, CUT),
    "order 1, each sample": (signal_of(3, 150, dtype=FLOAT32), coefficients_of(150, 1), True, WHOLE),
    "order 1, constant, chunks": (signal_of(257), coefficients_of(1, 1), False, CUT),
    "order 2, each sample, chunks": (signal_of(3, 300, layout="interleaved"), coefficients_of(3, 300, 2), True, CUT),
    "order 2, each sample": (signal_of(3, 97, layout="every second"), coefficients_of(3, 97, 2), True, WHOLE),
    "order 2, float32": (signal_of(2, 300, dtype=FLOAT32), coefficients_of(300, 2).float(), True, CUT),
    "order 2, constant, exactly tiles": (signal_of(2, 128), coefficients_of(2, 1, 2), True, CUT),
    "order 2, one sample": (signal_of(17, 1), coefficients_of(1, 2), True, WHOLE),
    "order 2, broadcast": (signal_of(2, 70), coefficients_of(3, 1, 70, 2), True, CUT),
    "order 3, each sample": (signal_of(5, 21, layout="every second"), coefficients_of(5, 21, 3), True, {}),
    "order 3, constant": (signal_of(2, 21, dtype=FLOAT32), coefficients_of(1, 3), False, {}),
    "order 8, constant": (signal_of(2, 30), coefficients_of(2, 1, 8), True, {}),
    "order 8, each sample, few": (signal_of(3, 5), coefficients_of(5, 8).float(), True, {}),
    "order 8, one sample": (signal_of(1), coefficients_of(1, 8), True, {}),
}


@pytest.mark.parametrize("name", ALLPOLE)
def test_all_pole_filters_equal_a_loop(run, name):
    x, a, given, options = ALLPOLE[name]
    leading = torch.broadcast_shapes(x.shape[:-1], a.shape[:-2])
    past = signal_of(*leading, a.shape[-1]) if given else None
    y, after = run("allpole_forward", (x, a, past), **options)
    exact, exact_after = loop(x, companion(a.double()), 0 if past is None else past)
    assert y.shape == exact.shape
    assert deviation(y, exact) < min(bound(x.dtype), 2e-7)
    assert np.abs(after - exact_after).max() < 1e-13


SYSTEMS = {
    # name: signal, system, with a state?, options
    "one state, each sample, chunks": (signal_of(2, 300), systems_of(2, 300, states=1), True, CUT),
    "one state, held": (signal_of(3, 90, dtype=FLOAT32), systems_of(6, states=1), True, WHOLE),
    "one state, constant, chunks": (signal_of(257), systems_of(1, states=1), False, CUT),
    "two states, each sample, chunks": (signal_of(2, 300, layout="every second"), systems_of(300, states=2), True, CUT),
    "two states, each sample": (signal_of(3, 97), systems_of(3, 97, states=2), True, WHOLE),
    "two states, held, chunks": (signal_of(2, 301, dtype=FLOAT32), systems_of(2, 43, states=2), True, CUT),
    "two states, constant": (signal_of(2, 64), systems_of(2, 1, states=2), False, WHOLE),
    "two states, one sample": (signal_of(17, 1), systems_of(1, states=2), True, WHOLE),
    "two states, broadcast": (signal_of(2, 70), systems_of(3, 1, 70, states=2), True, CUT),
    "three states, each sample": (signal_of(5, 21, layout="interleaved"), systems_of(5, 21, states=3), True, {}),
    "four states, held": (signal_of(2, 21, dtype=FLOAT32), systems_of(3, states=4), True, {}),
    "four states, constant": (signal_of(2, 9), systems_of(2, 1, states=4), False, {}),
}


@pytest.mark.parametrize("name", SYSTEMS)
def test_systems_equal_a_loop(run, name):
    x, system, given, options = SYSTEMS[name]
    leading = torch.broadcast_shapes(x.shape[:-1], system.shape[:-3])
    state = signal_of(*leading, system.shape[-1] - 1) if given else None
    y, after = run("state_space_forward", (x, system, state), **options)
    exact, exact_after = loop(x, system, 0 if state is None else state)
    assert y.shape == exact.shape
    assert deviation(y, exact) < bound(x.dtype)
    assert np.abs(after - exact_after).max() < 1e-13


def low_filters(count, mirrored):
    """Return b and a of lowpass filters around 20 Hz at 192 kHz, (count, 3); mirrored: as far below 96 kHz."""
    cutoffs = 20 * 2 ** np.random.default_rng(3).uniform(-1, 1, count)
    b, a = (np.stack(rows) for rows in zip(*(signal.butter(2, f, fs=192_000) for f in cutoffs), strict=True))
    sign = np.array([1, -1 if mirrored else 1, 1])
    return b * sign, a * sign


@pytest.mark.parametrize(("count", "mirrored", "processors"), [(1, False, 2), (2000, False, 1), (2000, True, 2)])
def test_poles_near_one_stay_exact_in_tiles_of_the_device(run, count, mirrored, processors):
    """Maps of the direct forms' own states, instead of their sums and differences, are off by 4e-10 here."""
    x, (b, a) = signal_of(2000), low_filters(count, mirrored)
    zero, one = np.zeros(count), np.ones(count)
    rows = [
        [-a[:, 1], one, b[:, 1] - a[:, 1] * b[:, 0]],
        [-a[:, 2], zero, b[:, 2] - a[:, 2] * b[:, 0]],
        [one, zero, b[:, 0]],
    ]
    direct = np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)
    y, _ = run("allpole_forward", (x, torch.from_numpy(a[:, 1:].copy()), None), lanes=32, processors=processors)
    assert deviation(y, loop(x, companion(a[:, 1:]), 0)[0]) < 2e-13
    for system in (direct, direct.swapaxes(-1, -2).copy()):
        y, _ = run("state_space_forward", (x, torch.from_numpy(system), None), lanes=32, processors=processors)
        assert deviation(y, loop(x, system, 0)[0]) < 2e-13


@pytest.mark.parametrize("options", [WHOLE, CUT])
def test_a_nan_changes_only_what_follows(run, options):
    x, a = signal_of(200), coefficients_of(200, 2)
    x[70] = float("nan")
    y, after = run("allpole_forward", (x, a, None), **options)
    assert deviation(y[:70], loop(x[:70], companion(a[:70]), 0)[0]) < bound(FLOAT64)
    assert np.isnan(y[70:]).all()
    assert np.isnan(after).all()


@pytest.mark.parametrize("order", [1, 2, 3])
def test_no_samples_pass_the_state_on(run, order):
    state = signal_of(3, order)
    for name, coefficients in (("allpole", coefficients_of(1, order)), ("state_space", systems_of(1, states=order))):
        y, after = run(f"{name}_forward", (signal_of(3, 0), coefficients, state))
        assert y.shape == (3, 0)
        assert np.array_equal(after, state)


# --- the saturated loop -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("states", "times", "scale"), [(1, 30, 1.0), (4, 1, 1.0), (2, 3, 1e-6), (4, 30, 50.0)])
def test_the_saturated_loop_equals_the_reference(run, states, times, scale):
    system = systems_of(3, times, states=states)
    system[..., -1, -1].abs_()
    x, state = scale * signal_of(3, 30), scale * signal_of(3, states)
    feedback, drive = (torch.tensor(values).double() for values in ([2.0, 0.3, 4.0], [0.0, 0.5, 3.0]))
    y, after = run("saturated_forward", (x, system, feedback, drive, state))
    exact, exact_after = backend("saturated_forward", "reference")(x, system, feedback, drive, state)
    for row in range(3):
        assert deviation(y[row], exact[row].numpy()) < 1e-13
        assert deviation(after[row], exact_after[row].numpy()) < 1e-13


def test_the_hyperbolic_tangent_is_exact_to_the_last_digits(run):
    """Without states and feedback the loop is tanh."""
    x = torch.cat([torch.logspace(-12, 2, 60, dtype=FLOAT64), torch.linspace(0.1, 0.15, 30, dtype=FLOAT64)])
    x = torch.cat([x, -x, torch.tensor([0.0, torch.nan], dtype=FLOAT64)])[:, None]
    system = torch.tensor([[[0.0, 0.0], [0.0, 1.0]]], dtype=FLOAT64)
    y, _ = run("saturated_forward", (x, system, torch.zeros(()).double(), torch.ones(()).double(), None), lanes=32)
    np.testing.assert_allclose(y, np.tanh(x.numpy()), rtol=2e-15)


# --- gradients ----------------------------------------------------------------------------------------------


class Launches(TorchDispatchMode):
    """Counts what is launched; refuses what waits for the device."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        assert function.overloadpacket not in (torch.ops.aten._local_scalar_dense, torch.ops.aten.nonzero)
        self.count += 1
        return function(*arguments, **(options or {}))


def allpole_backward(time):
    x, a, past = signal_of(2, time), coefficients_of(2, time, 1), signal_of(2, 1)
    return backend("allpole_backward", "triton")(x, past, x, x, a, past, True, True, True)


def state_space_backward(time):
    x, system, state = signal_of(2, time), systems_of(2, time, states=2), signal_of(2, 2)
    return backend("state_space_backward", "triton")(x, state, x, system, state, True, True, True)


def saturated_backward(time):
    x, system, state = signal_of(2, time), systems_of(2, 1, states=4), signal_of(2, 4)
    feedback = torch.ones((), dtype=FLOAT64)
    forward = torch.ops.torchfx_ext.saturated_forward.default
    return gradient.saturated_backward(forward, (x, system, feedback, feedback, state), (x, state))


@pytest.mark.parametrize("backward", [allpole_backward, state_space_backward, saturated_backward])
def test_backward_passes_have_as_many_launches_for_any_length_and_wait_for_nothing(backward):
    """They run the operators, which have kernels of their own on a GPU."""
    launches = []
    for time in (10, 1000):
        with Launches() as counted:
            backward(time)
        launches.append(counted.count)
    assert launches[0] == launches[1] < 200
    served = {row.operator: row.backends["cuda"] for row in _ops.rows}
    assert {served[name] for name in served if "allpole" in name or "state_space" in name} == {"triton"}
    assert served["saturated_forward"] == "triton"


# --- compiled code ------------------------------------------------------------------------------------------

SCANS = [
    (dtype, kernel, states, companion, held)
    for dtype in ("fp32", "fp64")
    for kernel in ("chunk_maps", "scanned")
    for states in (1, 2)
    for companion in (True, False)
    for held in ({"hold": 1}, {})
]
OFTEN = ("fp32", "scanned", 2, False, {})


def code_of(kernel, dtype, **constants):
    import gpu_cost

    return gpu_cost.disassembled(gpu_cost.compiled(kernel, gpu_cost.GPUTarget("cuda", 90, 32), dtype, **constants))


@pytest.mark.parametrize(
    ("dtype", "kernel", "states", "companion", "held"),
    [case if case == OFTEN else pytest.param(*case, marks=many) for case in SCANS],
)
def test_scans_compile_without_spills(dtype, kernel, states, companion, held):
    kernel = getattr(import_module("torchfx._ops.state_space.kernels"), kernel)
    size, warps = 4 if dtype == "fp32" else 8, state_space.WARPS
    given = {"HAS_STATE": True, "HAS_MAPS": True} if "before" in kernel.arg_names else {}
    code = code_of(
        kernel, dtype, STATES=states, COMPANION=companion, TILE=32 * warps * state_space.LANE_SAMPLES[size],
        num_warps=warps, **given, **held,
    )  # fmt: skip
    assert code.spilled == 0
    assert code.warps >= warps * state_space.PROGRAMS_PER_PROCESSOR[size]
    assert "fma.rn.f64" in code.ptx


@pytest.mark.parametrize(
    ("states", "saturated", "held"),
    [pytest.param(3, False, {}, marks=many), pytest.param(4, False, {"hold": 1}, marks=many), (4, True, {})],
)
def test_a_lane_for_each_channel_compiles_without_spills(states, saturated, held):
    code = code_of(
        import_module("torchfx._ops.state_space.kernels").sequential, "fp32",
        STATES=states, SATURATED=saturated, HAS_STATE=True, NEWTON_STEPS=50, LANES=32, **held,
    )  # fmt: skip
    assert code.spilled == 0


@pytest.mark.parametrize("order", [4, pytest.param(64, marks=many), pytest.param(1024, marks=many)])
def test_all_pole_filters_of_high_order_compile_without_spills(order):
    kernel = import_module("torchfx._ops.allpole.kernels").sequential
    assert code_of(kernel, "fp32", HAS_STATE=True, CHANNELS=max(1, 32 // order), N=order).spilled == 0
