"""The network of delay lines on a GPU, without one: in Triton's interpreter against plain PyTorch, and compiled."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import triton_interpreter
from operators import backend
from oracle import bound, deviation
from torchfx.design.biquad import biquad

if os.environ.get("TORCHFX_TRITON") != "1":  # .ci/run insists
    pytest.skip("needs Triton 3.9, and TORCHFX_TRITON=1 to say so", allow_module_level=True)

sys.path.append(str(Path(__file__).parents[2] / "tools"))

FLOAT32, FLOAT64 = torch.float32, torch.float64
exact = backend("delay_network_forward", "composite")


@pytest.fixture(scope="module")
def run():
    """Run the network in the interpreter, in tiles of so many lines by samples."""
    with triton_interpreter.interpreter() as pool:

        def call(*arguments, tile=512):
            submitted = pool.submit(triton_interpreter.run, "delay_network_forward", arguments, TILE=tile)
            return [torch.from_numpy(result) for result in submitted.result()[0]]

        yield call


def given(rng, delays, time, sections=0, leading=(), own=(), inputs=1, outputs=1, dtype=FLOAT64):
    """Return signal, delays, system, sections and both states; each line has filters of its own."""
    n, shape = len(delays), np.broadcast_shapes(leading, own)
    system = rng.standard_normal((*own, n + outputs, n + inputs))
    system[..., :n, :n] *= 0.5 / n
    x, system, lines, state = (
        torch.from_numpy(each)
        for each in (
            rng.standard_normal((*leading, inputs, time)),
            system,
            rng.standard_normal((*shape, sum(delays))),
            rng.standard_normal((sections, *shape, n, 2)) * 0.1,
        )
    )
    sos = None
    if sections:
        rows = [biquad(rng.uniform(40, 15_000), 0.6, 0.0, 48_000, "lowpass") for _ in range(n * sections)]
        sos = torch.cat(rows).reshape(n, sections, 6) * 2  # a0 = 2
    return x.to(dtype), delays, system, sos, lines, state


def assert_equal(found, expected, dtype):
    assert deviation(found[0], expected[0].numpy()) < bound(dtype)
    for after, known in zip(found[1:], expected[1:], strict=True):
        assert after.shape == known.shape
        assert known.numel() == 0 or deviation(after, known.numpy()) < 1e-12


CASES = {
    # name: delays, samples, further arguments of `given`
    "a comb of one sample": ([1], 5, {}),
    "a comb of one sample with a filter": ([1], 4, {"sections": 1}),
    "one line shorter than a lane": ([13], 40, {"sections": 2}),
    "one line of several tiles": ([150], 333, {"sections": 1, "dtype": FLOAT32}),
    "two inputs of one line": ([40], 100, {"inputs": 2, "outputs": 3}),
    "lines that feed each other": ([70, 33, 16], 101, {"inputs": 2, "outputs": 3}),
    "two sections in each line": ([70, 33, 150], 101, {"inputs": 2, "outputs": 2, "sections": 2}),
    "float32": ([70, 33, 150], 101, {"inputs": 2, "sections": 1, "dtype": FLOAT32}),
    "delays longer than the signal": ([70, 1025, 90], 33, {"sections": 1}),
    "one sample": ([2, 3], 1, {"sections": 2}),
    "17 lines": ([*range(30, 47)], 65, {"sections": 1}),
}


@pytest.mark.parametrize("filter_first", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_the_kernel_equals_the_definition(run, rng, name, filter_first):
    delays, time, further = CASES[name]
    if filter_first and "sections" not in further:
        pytest.skip("there is no filter")
    x, *rest = given(rng, delays, time, **further)
    expected = exact(x.double(), *rest, filter_first)
    assert_equal(run(x, *rest, filter_first), expected, x.dtype)


def test_without_states_it_starts_from_rest(run, rng):
    x, delays, system, sos, *states = given(rng, [40, 90], 50, 1)
    expected = exact(x, delays, system, sos, *(torch.zeros_like(state) for state in states))
    assert_equal(run(x, delays, system, sos), expected, FLOAT64)


def test_the_tile_changes_nothing(run, rng):
    arguments = given(rng, [48, 70, 90], 130, 1)
    narrow, wide = run(*arguments, tile=256), run(*arguments, tile=1024)
    assert_equal(narrow, wide, FLOAT64)


@pytest.mark.parametrize(
    ("leading", "own", "of_filters"), [((17,), (), ()), ((), (4,), (4,)), ((2, 1), (3,), (2, 1)), ((3,), (2, 1), (3,))]
)
@pytest.mark.parametrize("inputs", [1, 2])
def test_leading_dimensions_broadcast(run, rng, leading, own, of_filters, inputs):
    x, delays, system, sos, lines, state = given(rng, [20, 16], 23, 1, leading, own, inputs)
    sos = sos * (1 + 0.1 * torch.arange(torch.Size(of_filters).numel()).reshape(*of_filters, 1, 1, 1))
    sos[..., 3:] = sos[..., 3:] / sos[..., 3:4]
    arguments = (delays, system, sos, lines, state)
    assert_equal(run(x, *arguments), exact(x, *arguments), FLOAT64)


@pytest.mark.parametrize("layout", ["every second sample", "interleaved", "reversed states"])
def test_strides(run, rng, layout):
    x, delays, system, sos, lines, state = given(rng, [20, 31], 50, 1, (2,), inputs=3)
    if layout == "every second sample":
        x = torch.stack([x, -x], dim=-1).flatten(-2)[..., ::2]
    elif layout == "interleaved":
        x = x.mT.contiguous().mT
    else:
        lines, state = lines.mT.contiguous().mT, state.transpose(0, 1).contiguous().transpose(0, 1)
    arguments = (delays, system, sos, lines, state)
    assert_equal(run(x, *arguments), exact(x, *arguments), FLOAT64)


def test_blocks_equal_the_whole(run, rng):
    x, delays, system, sos, *state = given(rng, [40, 70], 150, 2)
    whole = run(x, delays, system, sos, *state)
    parts = []
    for block in x.split([1, 0, 3, 45, 101], dim=-1):
        y, *state = run(block, delays, system, sos, *state)
        parts.append(y)
    assert_equal([torch.cat(parts, -1), *state], whole, FLOAT64)


def test_many_lines_run_as_the_composite(run, rng):
    arguments = given(rng, [5] * 65, 12)
    assert_equal(run(*arguments), exact(*arguments), FLOAT64)


# --- compiled code ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "height", "log_time", "dtype", "filter_first"),
    [
        (24, 32, 8, "fp32", False),  # a stereo Freeverb at 48 kHz
        (1, 1, 9, "fp32", True),
        pytest.param(16, 16, 9, "fp64", False, marks=pytest.mark.many),
        pytest.param(64, 64, 7, "fp32", False, marks=pytest.mark.many),
    ],
)
def test_the_network_compiles_without_spills_in_its_filters(lines, height, log_time, dtype, filter_first):
    import gpu_cost
    from torchfx._ops.delay_network import kernels

    log_run = log_time - 4
    code = gpu_cost.disassembled(
        gpu_cost.compiled(
            kernels.network, gpu_cost.GPUTarget("cuda", 90, 32), dtype, lines, LINES=height, TIME=1 << log_time,
            LOG_T=4, LOG_RUN=log_run, SHIFTED=dtype == "fp64", FILTERED=True, FILTER_FIRST=filter_first,
            HAS_LINES=True, HAS_STATE=True, num_warps=(height << log_run) // 32, num_stages=1,
        )
    )  # fmt: skip
    block, filters = gpu_cost.loops(code.sass)
    assert filters["DFMA"] >= 80  # 5 for each of a lane's samples
    assert filters["LDL"] + filters["STL"] == 0
    assert (block["DMMA"] > 0) == (lines > 1)
    assert code.shared <= 101_376  # what chips of compute capability 8.9 have
