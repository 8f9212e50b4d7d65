#!/usr/bin/env python3
"""Everything that only a GPU can show, in one run of under 8 minutes: it needs neither soundfile nor the network.

    python tools/gpu_check.py                         # writes benchmark/results/gpu/check.json and traces/
    python tools/gpu_check.py --only correctness

Parts: `correctness` of the kernels against SciPy, `benchmark` (times of the device, between events, beside a copy,
plain PyTorch, SciPy and CuPy), `traces` (small ones that the profiler's tests can use) and `sanitizer` (`kernels`, a
call of each, under compute-sanitizer, where that works). The end lists which promised times are kept, and what was
faster in an earlier run (`--against`). A part that fails is reported and the next one begins. Status: 0 all good,
1 something failed, 2 there is no CUDA device.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import math
import os
import shutil
import statistics
import subprocess
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import torch
from scipy import signal
from torch import Tensor

import torchfx as fx
from torchfx import _ops
from torchfx._ops.fir import triton as fir
from torchfx._ops.mel import composite as mel
from torchfx.catalogue import available
from torchfx.design.state_space import state_variable
from torchfx.spectral.filters import mel_bands

sys.path.append(str(Path(__file__).parents[1] / "benchmark"))
from bench.hardware import hardware

RESULTS = Path(__file__).parents[1] / "benchmark" / "results" / "gpu"
FS = 48_000
BOUND = {torch.float32: 1e-6, torch.float64: 1e-10}
"""Deviation from SciPy in long double that is allowed, in its peak."""

SECTION_BOUND = {torch.float32: 1e-6, torch.float64: 1e-9}
"""Deviation of a section's gradient from that of float64 samples on the CPU, in its own peak."""

BAND_BOUND = {torch.float32: 1e-5, torch.float64: 1e-10}
"""Deviation of bands and of log(1 + band), in their peak."""

BAND_GRADIENT_BOUND = {torch.float32: 1e-3, torch.float64: 1e-9}
"""Deviation of the gradient by samples through magnitudes or logarithms, in its peak: near 0 their slope is steep."""

STATE_BOUND = {torch.float32: 1e-8, torch.float64: 1e-9}
"""The same for a cascade's state after; a chunk of float32 samples neglects 1e-10 of what came before its warm-up."""

DESIGNS = {
    "butterworth 8 at 1 kHz": signal.butter(8, 1000, fs=FS, output="sos"),
    "butterworth 8 highpass at 20 Hz": signal.butter(8, 20, "high", fs=FS, output="sos"),
    "chebyshev 12 at 20 Hz": signal.cheby1(12, 0.5, 20, fs=FS, output="sos"),
    "elliptic 8 at 5 kHz": signal.ellip(8, 0.5, 60, 5000, fs=FS, output="sos"),
    "64 sections": np.tile(signal.butter(2, [900, 1100], "bandpass", fs=FS, output="sos"), (32, 1)),
}
FOUR = torch.from_numpy(signal.butter(8, [300, 3000], "bandpass", fs=FS, output="sos")[:4].copy())
NETWORKS = {
    # name: delays, signals and samples
    "a comb of one sample": ([1], (3, 1025)),
    "one line": ([701], (2, 20_001)),
    "16 lines longer than the signal": ([*range(1000, 1016)], (3, 17)),
    "24 lines": ([*range(250, 1930, 70)], (5, 20_001)),
    "64 lines": ([*range(128, 192)], (2, 4001)),
}
FOLLOWED = 1 - torch.exp(-1 / (FS * torch.tensor([0.005, 0.1], dtype=torch.float64)))  # 5 and 100 ms
COMPRESSED = torch.cat([torch.tensor([-20, -0.75, 0, 6, -300, 3], dtype=torch.float64), FOLLOWED.flip(0)])
BLOCK = 512
TILES = [
    {"ROWS": rows, "DEPTH": 64, "COLUMNS": columns, "num_warps": warps, "num_stages": 1}
    for rows, columns, warps in ((64, 64, 4), (64, 128, 4), (128, 128, 8))
]
"""Tiles of a finite response that may be faster than `fir.SHAPES`: by machine code, not measured."""

PROMISED = {
    # work, contender, channels, samples: the column, and what it is at most
    ("4 sections", "torchfx", 12, 600 * FS): ("times_copy", 2.5),
    ("4 sections", "torchfx", 8, 60 * FS): ("times_copy", 2.5),
    ("4 sections", "torchfx", 1, 5 * FS): ("time_s", 20e-6),
    ("4 sections", "torchfx, with a state", 2, BLOCK): ("host_s", 25e-6),
    ("gradients of 4 sections", "and by both", 8, 60 * FS): ("times_forward", 4.0),
    ("511 taps", "forward", 8, 60 * FS): ("times_copy", 4.0),
    ("511 taps", "and by both", 8, 60 * FS): ("times_forward", 4.0),
}
SHAPES = [(2, 1), (17, 33), (3, 1025), (2, 40_000), (1, 1_000_000)]

Failure = (AssertionError, RuntimeError, ValueError, TypeError, OSError, subprocess.SubprocessError)


# --- correctness ------------------------------------------------------------------------------------------


def correctness(quick: bool) -> Iterator[dict[str, Any]]:
    """Yield one row for each case: how far the device's result is from SciPy's, or from the CPU's in float64.

    Most of the time goes into compiling kernels, so that each group of cases has its own process.
    """
    with ProcessPoolExecutor(len(GROUPS), mp_context=get_context("spawn")) as pool:
        for found in as_completed([pool.submit(_group, name, quick) for name in GROUPS]):
            yield from found.result()


def _group(name: str, quick: bool) -> list[dict[str, Any]]:
    """Return the rows of a group; a last one says what ended it early."""
    rows: list[dict[str, Any]] = []
    started = time.monotonic()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            rows.extend(GROUPS[name](quick))
        except Failure:
            rows.append(_failed(f"{name}: {traceback.format_exc()}"))
    rows.extend(_failed(str(each.message)) for each in caught if "has no kernel" in str(each.message))
    sys.stdout.write(f"  {name}: {len(rows)} rows in {time.monotonic() - started:.1f} s\n")
    return rows


def _failed(why: str) -> dict[str, Any]:
    return {"case": why, "deviation": math.inf, "bound": 1.0, "good": False}


def _cascades(dtype: torch.dtype, quick: bool) -> Iterator[dict[str, Any]]:
    """Yield rows for cascades, whose state before is one that a signal left."""
    generator = np.random.default_rng(0)
    for (name, sos), shape in itertools.product(DESIGNS.items(), SHAPES[: 3 if quick else None]):
        x = torch.from_numpy(generator.standard_normal(shape)).to(dtype)
        _, zi = signal.sosfilt(sos, generator.standard_normal((shape[0], FS)), zi=np.zeros((len(sos), shape[0], 2)))
        for threshold in (1, 1 << 40)[: 1 if shape[1] > 2000 else 2]:
            y, after = _ops.parallel_iir_forward(
                x.cuda(), torch.from_numpy(sos).cuda(), torch.from_numpy(zi).cuda(), threshold
            )
            exact, state = signal.sosfilt(sos.astype(np.longdouble), x.numpy().astype(np.longdouble), zi=zi * 1.0)
            yield _row(f"{name}, {shape}, {dtype}, threshold {threshold}", y, exact, BOUND[dtype])
            yield _row(f"{name}, {shape}, {dtype}, state after", after, state, STATE_BOUND[dtype])


def _responses(quick: bool) -> Iterator[dict[str, Any]]:
    """Yield rows for finite responses; those with numbers far from 1 show how samples are scaled."""
    generator = np.random.default_rng(1)
    for count, dtype, level in itertools.product((1, 5, 511), BOUND, (1e-12, 1.0, 1e12)):
        taps = generator.standard_normal(count) / level
        x = torch.from_numpy(generator.standard_normal((3, 20_001)) * level).to(dtype)
        zi = generator.standard_normal((3, count - 1))
        y, after = _ops.fir_forward(x.cuda(), torch.from_numpy(taps).cuda(), torch.from_numpy(zi).cuda())
        exact, state = signal.lfilter(taps, [1.0], x.double().numpy(), zi=zi)
        yield _row(f"{count} taps, {dtype}, level {level}", y, exact, BOUND[dtype])
        if count > 1:
            yield _row(f"{count} taps, {dtype}, level {level}, state after", after, state, BOUND[dtype])


def _networks(dtype: torch.dtype, quick: bool) -> Iterator[dict[str, Any]]:
    """Yield rows for networks of delay lines, without filters and with them before or after the matrix."""
    generator = np.random.default_rng(2)
    for (name, (delays, shape)), (sections, filter_first) in itertools.product(
        NETWORKS.items(), ((0, False), (2, False), (2, True))
    ):
        yield from _delay_network(name, delays, shape, sections, filter_first, dtype, generator)


def _dynamics(quick: bool) -> Iterator[dict[str, Any]]:
    """Yield rows for detectors, a compressor and a limiter."""
    generator = np.random.default_rng(3)
    for shape, (dtype, bound) in itertools.product(SHAPES[: 3 if quick else None], BOUND.items()):
        x = torch.from_numpy(generator.standard_normal(shape)).to(dtype)
        on_device, on_cpu = (_detectors(each) for each in (x.cuda(), x.double()))
        for name, run in on_device.items():
            for what, found, exact in zip(("", ", state after"), run(), on_cpu[name](), strict=False):
                yield _row(f"{name}, {shape}, {dtype}{what}", found, exact, 1e-9 if what else bound)


def _delay_network(
    name: str,
    delays: list[int],
    shape: tuple[int, int],
    sections: int,
    filter_first: bool,
    dtype: torch.dtype,
    generator: np.random.Generator,
) -> Iterator[dict[str, Any]]:
    """Yield rows for a network of delay lines with all lines joined, beside the CPU's kernel in float64."""
    count, (signals, samples) = len(delays), shape
    system = generator.standard_normal((count + 2, count + 2)) * 0.5 / count
    x, lines = generator.standard_normal((signals, 2, samples)), generator.standard_normal((signals, sum(delays)))
    zi = generator.standard_normal((sections, signals, count, 2)) * 0.1
    sos = FOUR[:sections].expand(count, -1, -1) if sections else None
    tensors = [torch.from_numpy(each) for each in (system, lines, zi)]

    def run(x: Tensor) -> tuple[Tensor, ...]:
        matrix, held, state = (each.to(x.device) for each in tensors)
        filters = None if sos is None else sos.to(x.device)
        return _ops.delay_network_forward(x, delays, matrix, filters, held, state, filter_first)

    exact = run(torch.from_numpy(x))
    found = run(torch.from_numpy(x).to("cuda", dtype))
    case = f"{name}, {sections} sections, filter_first={filter_first}, {dtype}"
    for what, y, known in zip(("", ", lines after", ", state after"), found, exact, strict=True):
        if known.numel():
            yield _row(case + what, y, known, BOUND[dtype])


def _bands(dtype: torch.dtype, quick: bool) -> Iterator[dict[str, Any]]:
    """Yield rows for powers, bands and their logarithms, and gradients; the oracle is plain PyTorch in float64."""
    draw = torch.Generator().manual_seed(5)
    cases = itertools.product(((400, 160), (1024, 256), (600, 700)), (None, 80), SHAPES[3 : 4 if quick else None])
    for (n_fft, hop), count, shape in cases:
        x = torch.randn(shape, generator=draw).to(dtype)
        filters = None if count is None else mel_bands(n_fft // 2 + 1, 16_000, count, 0.0, None, "slaney", "slaney")
        for power, emphasis, logarithm in ((1.0, 0.97, (0.0, 0.0, 0.0)), (2.0, 0.0, (1.0, 0.0, 1.0))):
            settings = (n_fft, hop, n_fft // 2, shape[-1] // hop, True, power, emphasis, emphasis > 0, *logarithm)
            results = []
            for samples in (x.double(), x.cuda()):
                given = samples.requires_grad_()
                weights = None if filters is None else filters.to(given.device)
                window = torch.hann_window(n_fft, dtype=torch.float64, device=given.device)
                y = _ops.mel_forward(given, window, weights, *settings)
                results.append((y, *torch.autograd.grad(y.sum(), given)))
            exact, found = results
            case = f"{count} bands, n_fft {n_fft}, power {power}, {shape}, {dtype}"
            yield _row(case, found[0], exact[0].detach(), BAND_BOUND[dtype])
            yield _row(f"{case}, gradient", found[1], exact[1], BAND_GRADIENT_BOUND[dtype])


def _varying(channels: int, samples: int, dtype: torch.dtype, quick: bool) -> Iterator[dict[str, Any]]:
    """Yield rows for filters that change along the signal, and their gradients; the oracle is the CPU in float64."""
    draw = torch.Generator().manual_seed(0)
    if samples < 2000 or not quick:
        x = torch.randn(channels, samples, generator=draw).to(dtype)
        cases: list[tuple[str, Callable[..., tuple[Tensor, Tensor]], list[Tensor]]] = []
        for times, n in itertools.product({1, samples}, (1, 2, 3)):
            a, past = _within(draw, channels, times, n), _within(draw, channels, n)
            cases.append((f"all-pole of order {n}, {times} rows", _ops.allpole_forward, [x, a, past]))
        for times, n in itertools.product({1, samples}, (1, 2, 4)):
            system, state = _within(draw, channels, times, n + 1, n + 1), _within(draw, channels, n)
            cases.append((f"{n} states, {times} matrices", _ops.state_space_forward, [x, system, state]))
            loop = [2 * _within(draw, channels, 1)[:, 0].abs() + each for each in (0.5, 0.0)]
            system = torch.cat([system[..., :-1, :], system[..., -1:, :].abs()], dim=-2)
            cases.append((f"saturated, {n} states, {times}", _ops.saturated_forward, [x, system, *loop, state]))
        for name, run, arguments in cases:
            found = []
            for where in ("cpu", "cuda"):
                first = arguments[0].double() if where == "cpu" else arguments[0]
                moved = [each.detach().to(where).requires_grad_() for each in (first, *arguments[1:])]
                torch.cuda.set_sync_debug_mode("error")  # nothing here may wait for the device
                try:
                    y, after = run(*moved)
                    found.append([y, after, *torch.autograd.grad(y.double().square().sum() + after.sum(), moved)])
                finally:
                    torch.cuda.set_sync_debug_mode("default")
            for i, (on_cpu, on_device) in enumerate(zip(*found, strict=True)):
                result, bound = ("y", "after")[i] if i < 2 else f"gradient {i - 2}", BOUND[dtype] * (10 if i > 1 else 1)
                yield _row(
                    f"{name}, {channels} x {samples}, {dtype}, {result}", on_device, on_cpu.detach().numpy(), bound
                )


def _within(draw: torch.Generator, *shape: int) -> Tensor:
    """Return float64 numbers whose sums over the last dimension stay within 0.95: coefficients that are stable."""
    return (1.9 * torch.rand(shape, generator=draw, dtype=torch.float64) - 0.95) / shape[-1]


def _detectors(x: Tensor) -> dict[str, Callable[[], tuple[Tensor, ...]]]:
    """Return a detector, a compressor whose channels share a gain, and a limiter with a look-ahead of 5 ms."""
    ahead = 240
    followed, compressed = FOLLOWED.to(x.device), COMPRESSED.to(x.device)
    limited = torch.stack([torch.full_like(followed[0], 0.5), followed[1]])
    past, state = x.new_zeros(len(x), ahead), followed.new_zeros(1)
    ramp = followed.new_zeros(1, ahead)
    return {
        "ballistics": lambda: _ops.ballistics_forward(x, followed),
        "compressor": lambda: _ops.dynamics_forward(x, None, compressed, state, -2),
        "limiter": lambda: _ops.limiter_forward(x, past, None, limited, state, ramp, -2),
    }


def _gradients(dtype: torch.dtype, quick: bool) -> Iterator[dict[str, Any]]:
    """Yield rows for the gradients by sections, with the forward pass's states and without, by taps and by lines."""
    generator = np.random.default_rng(4)

    def noise(*shape: int) -> Tensor:
        return torch.from_numpy(generator.standard_normal(shape))

    operators = torch.ops.torchfx_ext
    for (name, design), shape in itertools.product(DESIGNS.items(), SHAPES[2 : 3 if quick else 4]):
        x, grad_y, sos = noise(*shape).to(dtype), noise(*shape).to(dtype), torch.from_numpy(design)
        _, state = operators.sos_forward(noise(shape[0], FS), sos)
        given = (noise(*state.shape) * 0.1, x, sos, state)
        want = (1024, True, True, True)
        exact = operators.sos_backward(grad_y.double(), given[0], x.double(), *given[2:], None, *want)
        moved = [tensor.cuda() for tensor in given]
        kept = operators.sos_forward_recording(*moved[1:])[2]
        for checkpoints, how in ((kept, "states kept"), (None, "without")):
            found = operators.sos_backward(grad_y.cuda(), *moved, checkpoints, *want)
            case, peak = f"gradients, {name}, {shape}, {dtype}, {how}", exact[1].abs().amax(-1, keepdim=True)
            yield _row(f"{case}, signal", found[0], exact[0], BOUND[dtype])
            yield _row(f"{case}, sections", found[1].cpu() / peak, exact[1] / peak, SECTION_BOUND[dtype])
            yield _row(f"{case}, state", found[2], exact[2], 1e-9)
    yield from _gradients_of_lines(dtype, noise)
    need = (True, True, True)
    for count, rows, continued in ((1, (), True), (5, (3,), False), (511, (), True), (511, (3,), False)):
        x, grad_y = ((noise(3, 80_001) + 0.1).to(dtype) for _ in range(2))  # the mean keeps a single tap's sum from 0
        taps = noise(*rows, count)
        grad_after = noise(3, count - 1) if continued else None
        exact = operators.fir_backward(grad_y.double(), grad_after, x.double(), taps, *need)
        moved = [None if each is None else each.cuda() for each in (grad_y, grad_after, x, taps)]
        found = operators.fir_backward(*moved, *need)
        for result, on_device, on_cpu in zip(("signal", "taps", "state"), found, exact, strict=True):
            if on_cpu.numel():
                case = f"gradients, {rows} {count} taps, state after: {continued}, {dtype}, {result}"
                yield _row(case, on_device, on_cpu, BOUND[dtype])


def _gradients_of_lines(dtype: torch.dtype, noise: Callable[..., Tensor]) -> Iterator[dict[str, Any]]:
    """Yield rows for a network of delay lines with filters: gradients of signal, matrix, filters and lines."""
    delays, count = [223, 356, 1000], 3
    x, system = noise(2, 2, 20_001).to(dtype), noise(count + 2, count + 2) * 0.2
    sos = torch.from_numpy(signal.butter(2, 5000, fs=FS, output="sos")).repeat(count, 1)[:, None]
    lines, weights = noise(2, sum(delays)), noise(2, 2, 20_001)
    for filter_first in (False, True):

        def gradients(x: Tensor, *given: Tensor, first: bool = filter_first) -> Sequence[Tensor]:
            x, system, sos, lines = (tensor.detach().clone().requires_grad_() for tensor in (x, *given))
            y, *_ = _ops.delay_network_forward(x, delays, system, sos, lines, None, first)
            return torch.autograd.grad((y * weights.to(y)).sum(), (x, system, sos, lines))

        exact = gradients(x.double(), system, sos, lines)
        found = gradients(*(tensor.cuda() for tensor in (x, system, sos, lines)))
        for name, on_device, on_cpu in zip(("signal", "matrix", "filters", "lines"), found, exact, strict=True):
            case = f"gradients, delay lines, filters first: {filter_first}, {dtype}, {name}"
            yield _row(case, on_device, on_cpu, 10 * BOUND[dtype])


def _ways_of_calling(quick: bool) -> Iterator[dict[str, Any]]:
    """Yield rows for strides, batches, streams, capture, a second device and gradients."""
    x = torch.randn(6, 50_000, generator=torch.Generator().manual_seed(0))
    sos = FOUR.cuda()
    exact = signal.sosfilt(FOUR.numpy(), x.double().numpy())
    device = x.cuda()
    interleaved = device.T.contiguous().T
    yield _row("interleaved", _ops.parallel_iir_forward(interleaved, sos)[0], exact, 1e-6)
    rows = sos.expand(6, -1, -1) * torch.tensor([2.0], device="cuda", dtype=torch.float64)
    rows[..., 3:] = FOUR[:, 3:].cuda()
    batched = _ops.parallel_iir_forward(device, rows)[0]
    yield _row("a cascade for each channel", batched, exact * 2 ** len(FOUR), 1e-6)
    streams, found = [torch.cuda.Stream() for _ in range(3)], []
    for stream in streams:
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            found.append(_ops.parallel_iir_forward(device, sos)[0])
    torch.cuda.synchronize()
    for i, y in enumerate(found):
        yield _row(f"stream {i}", y, exact, 1e-6)
    held, graph = torch.zeros_like(device), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = _ops.parallel_iir_forward(held, sos)[0]
    held.copy_(device)
    graph.replay()
    yield _row("captured in a graph", captured, exact, 1e-6)
    torch.cuda.synchronize()
    chain = fx.filter.SOS(FOUR) | fx.effect.Compressor(-20, fs=FS)
    runner, whole = fx.realtime.CudaGraphRunner(chain, device[:, :512]), fx.Wave(x.double(), FS) | chain
    blocks = [runner.run(block).clone() for block in device[:, : 512 * 90].split(512, dim=-1)]
    yield _row("blocks of a captured chain", torch.cat(blocks, dim=-1), whole.ys[:, : 512 * 90], 1e-6)
    runner.reset_state()
    yield _row("from rest again", runner.run(device[:, :512]), whole.ys[:, :512], 1e-6)
    waves = [fx.Wave(device[:, :n], FS) for n in (50_000, 1, 30_011)]
    for one in fx.batch_process(waves, chain):
        yield _row("one of a batch", one.ys, whole.ys[:, : one.ys.shape[-1]], 1e-6)
    detectors = _detectors(device)
    with torch.cuda.device(0):
        torch.cuda.set_sync_debug_mode("error")
        try:
            _ops.parallel_iir_forward(device, sos)
            for run in detectors.values():
                run()
        finally:
            torch.cuda.set_sync_debug_mode("default")
    if torch.cuda.device_count() > 1:
        yield _row("second device", _ops.parallel_iir_forward(x.to("cuda:1"), FOUR.to("cuda:1"))[0], exact, 1e-6)
    gradients = []
    for where in ("cpu", "cuda"):
        signal_, sections = (tensor.clone().to(where).requires_grad_() for tensor in (x, FOUR))
        _ops.parallel_iir_forward(signal_, sections)[0].square().sum().backward()
        gradients.append((signal_.grad, sections.grad))
    for name, on_cpu, on_device in zip(("signal", "sections"), *gradients, strict=True):
        assert on_cpu is not None
        assert on_device is not None
        yield _row(f"gradient of the {name}", on_device, on_cpu.double().numpy(), 1e-5)


def _captured(quick: bool) -> Iterator[dict[str, Any]]:
    """Yield rows for blocks of every effect that can be built without arguments, each in a captured graph."""
    x = torch.randn(2, 4 * 512, generator=torch.Generator().manual_seed(0))
    for entry in available().values():
        needed = entry.signature().parameters.values()
        if entry.load().kind in {"whole", "measured"} or any(each.default is each.empty for each in needed):
            continue
        stream = fx.realtime.Stream(entry.load()(), FS, 2)
        if stream.latency_samples:
            continue
        exact = torch.cat([stream.process(block) for block in x.split(512, dim=-1)], dim=-1)
        case, device = f"captured: {entry.name}", x.cuda()
        try:
            runner = fx.realtime.CudaGraphRunner(entry.load()(), device[:, :512], FS)
            blocks = [runner.run(block) for block in device.split(512, dim=-1)]
        except Failure as error:  # one effect's failure hides no other's
            yield _failed(f"{case}: {error}")
        else:
            yield _row(case, torch.cat(blocks, dim=-1), exact, 1e-6)


GROUPS: dict[str, Callable[[bool], Iterator[dict[str, Any]]]] = {
    "cascades, float32": partial(_cascades, torch.float32),
    "cascades, float64": partial(_cascades, torch.float64),
    "responses": _responses,
    "networks, float32": partial(_networks, torch.float32),
    "networks, float64": partial(_networks, torch.float64),
    "changing filters, float32": partial(_varying, 17, 1025, torch.float32),
    "changing filters, one sample": partial(_varying, 2, 1, torch.float64),
    "changing filters, long": partial(_varying, 1, 100_000, torch.float64),
    "dynamics": _dynamics,
    "bands, float32": partial(_bands, torch.float32),
    "bands, float64": partial(_bands, torch.float64),
    "gradients, float32": partial(_gradients, torch.float32),
    "gradients, float64": partial(_gradients, torch.float64),
    "ways of calling": _ways_of_calling,
    "captured": _captured,
}
"""The checks of correctness, each in a process."""


def _row(name: str, y: Tensor, exact: Any, bound: float) -> dict[str, Any]:
    exact = np.asarray(exact, np.float64)
    found = y.detach().cpu().double().numpy()
    deviation = float(np.abs(found - exact).max() / max(np.abs(exact).max(), 1e-300))
    return {"case": name, "deviation": deviation, "bound": bound, "good": deviation <= bound}


def kernels() -> Iterator[dict[str, Any]]:
    """Call each kernel once: signals that fill no tile, states, gradients; yield one row for each."""

    def noise(*shape: int) -> Tensor:
        return torch.randn(shape, generator=draw, dtype=torch.float64).cuda()

    def both(run: Callable[..., tuple[Tensor, ...]], *arguments: Tensor) -> None:
        variables = [each.clone().requires_grad_() for each in arguments]
        torch.autograd.grad([each.sum() for each in run(*variables)], variables)

    draw = torch.Generator().manual_seed(0)
    operators, x, sos = torch.ops.torchfx_ext, noise(3, 5001).float(), FOUR.cuda()
    calls: dict[str, Callable[[], object]] = {
        "cascade and its gradients": lambda: both(operators.sos_forward, x, sos, noise(4, 3, 2)),
        "cascade, a lane each": lambda: operators.sos_forward(x[:, :50], sos),
        "response and its gradients": lambda: both(operators.fir_forward, x, noise(101), noise(3, 100)),
        "ballistics": lambda: operators.ballistics_forward(x, FOLLOWED.cuda(), noise(3)),
        "compressor": lambda: operators.dynamics_forward(x, None, COMPRESSED.cuda(), noise(1), -2),
        "network": lambda: operators.delay_network_forward(
            x, [101, 203, 307], noise(4, 6) * 0.1, sos.expand(3, -1, -1), None, None, False
        ),
        "all-pole": lambda: both(operators.allpole_forward, x, 0.1 * noise(3, 5001, 2), noise(3, 2)),
        "all-pole of order 3": lambda: operators.allpole_forward(x, 0.1 * noise(1, 3), None),
        "state-space": lambda: both(operators.state_space_forward, x, 0.1 * noise(1, 3, 3), noise(3, 2)),
        "bands": lambda: operators.mel_forward(
            x, noise(400), noise(80, 201), 400, 160, 200, 31, True, 2.0, 0.97, True, 1.0, 1e-10, 0.0
        ),
        "saturated": lambda: operators.saturated_forward(x, 0.1 * noise(1, 4, 4).abs(), noise(3), noise(3), None),
    }
    for name, call in calls.items():
        call()
        torch.cuda.synchronize()
        yield {"case": name, "good": True}


def sanitizer() -> dict[str, Any]:
    """Run `kernels` under compute-sanitizer."""
    tool = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    if not Path(tool).exists():
        return {"ran": False, "why": "compute-sanitizer isn't installed", "good": True}
    command = [tool, "--error-exitcode", "9", sys.executable, __file__, "--only", "kernels", "--output", os.devnull]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=150, check=False)
    except subprocess.TimeoutExpired:
        return {"ran": False, "why": "took more than 150 s", "good": True}
    tail = (ran.stdout + ran.stderr).strip().splitlines()[-5:]
    worked = any("ERROR SUMMARY" in line for line in tail)
    return {"ran": worked, "status": ran.returncode, "tail": tail, "good": not worked or ran.returncode == 0}


# --- times ------------------------------------------------------------------------------------------------


def benchmark(deadline: float) -> Iterator[dict[str, Any]]:
    """Yield one row for each contender and signal: median, fastest and slowest of interleaved turns."""
    for channels, samples, rounds in ((12, 600 * FS, 7), (8, 60 * FS, 15), (1, 5 * FS, 25), (2, BLOCK, 50)):
        x = torch.randn(channels, samples, device="cuda")
        yield from _turns("4 sections", x, _contenders(x), rounds, deadline)
        del x
        torch.cuda.empty_cache()
    x = torch.randn(8, 60 * FS, device="cuda")
    y, grad_y = torch.empty_like(x), torch.randn_like(x)
    taps = torch.randn(511, dtype=torch.float64, device="cuda")
    cascade = _passes(lambda x, sos: _ops.parallel_iir_forward(x, sos)[0], x, FOUR.cuda(), grad_y)
    response = _passes(lambda x, taps: _ops.fir_forward(x, taps)[0], x, taps, grad_y)
    for work, passes in {"gradients of 4 sections": cascade, "511 taps": response}.items():
        yield from _turns(work, x, {"copy": lambda: y.copy_(x), **passes}, 7, deadline)
    tiles = {str(shape): partial(_in_tiles, shape, lambda: _ops.fir_forward(x, taps)) for shape in TILES}
    yield from _turns("511 taps in other tiles", x, {"copy": lambda: y.copy_(x), **tiles}, 7, deadline)
    for shape in ((2, 10 * FS), (64, 1, FS)):
        yield from _reverb(torch.randn(shape, device="cuda"), deadline)
    yield from _varying_times(deadline)
    for n_fft, hop in ((400, 160), (1024, 256)):
        yield from _band_times(n_fft, hop, deadline)
    for channels, seconds in ((2, 60), (16, 10)):
        x = torch.randn(channels, seconds * FS, device="cuda")
        detectors = {"copy": partial(torch.empty_like(x).copy_, x)} | _detectors(x)
        yield from _turns("detectors", x, detectors, 7, deadline)


def _in_tiles(shape: Mapping[str, int], work: Callable[[], object]) -> None:
    """Run a finite response in tiles of this shape."""
    usual = fir.SHAPES[4]
    fir.SHAPES[4] = dict(shape)
    try:
        work()
    finally:
        fir.SHAPES[4] = usual


def _reverb(x: Tensor, deadline: float) -> Iterator[dict[str, Any]]:
    reverb, samples = fx.effect.Reverb(fs=FS), x.cpu()
    reverb(samples)
    started = time.perf_counter()
    reverb(samples)
    taken_s = time.perf_counter() - started
    rows = x.flatten(0, -2)
    yield {"work": "reverb", "contender": "torchfx on the CPU", "channels": len(rows), "samples": x.shape[-1],
           "rounds": 1, "time_s": taken_s, "ns_per_sample": taken_s / x.numel() * 1e9}  # fmt: skip
    y = torch.empty_like(x)
    yield from _turns("reverb", rows, {"copy": lambda: y.copy_(x), "torchfx": lambda: reverb(x)}, 7, deadline)


def _varying_times(deadline: float) -> Iterator[dict[str, Any]]:
    """Yield rows for filters that change at every sample: training on seconds, and a sweep of ten seconds."""
    x = torch.randn(16, FS, device="cuda", requires_grad=True)
    a = _within(torch.Generator().manual_seed(0), 16, FS, 2).cuda().requires_grad_()

    def both() -> None:
        torch.autograd.grad(_ops.allpole_forward(x, a)[0], (x, a), torch.ones_like(x))

    passes = {"forward": lambda: _ops.allpole_forward(x.detach(), a.detach()), "forward and backward": both}
    yield from _turns("all-pole of order 2", x, passes, 7, deadline)
    sweep = torch.randn(2, 10 * FS, device="cuda")
    system, y = state_variable(torch.linspace(100, FS / 6, 10 * FS), 2.0, 0.0, FS).cuda(), torch.empty_like(sweep)
    swept = {"copy": lambda: y.copy_(sweep), "torchfx": lambda: _ops.state_space_forward(sweep, system)}
    yield from _turns("state-variable filter", sweep, swept, 15, deadline)


def _band_times(n_fft: int, hop: int, deadline: float) -> Iterator[dict[str, Any]]:
    """Yield rows for the logarithms of 80 mel bands of a batch, beside plain PyTorch."""
    x = torch.randn(32, 10 * 16_000, device="cuda")
    y, filters = torch.empty_like(x), mel_bands(n_fft // 2 + 1, 16_000, 80, 0.0, None, "slaney", "slaney").cuda()
    window = torch.hann_window(n_fft, dtype=torch.float64, device="cuda")
    settings = (n_fft, hop, n_fft // 2, x.shape[-1] // hop, True, 2.0, 0.0, False, 1.0, 1e-10, 0.0)
    passes = {
        "copy": lambda: y.copy_(x),
        "torchfx": lambda: _ops.mel_forward(x, window, filters, *settings),
        "plain PyTorch": lambda: mel.mel_forward({}, x, window, filters, *settings),
    }
    yield from _turns(f"80 mel bands, n_fft {n_fft}", x, passes, 15, deadline)


def _passes(
    run: Callable[[Tensor, Tensor], Tensor], x: Tensor, coefficients: Tensor, grad_y: Tensor
) -> dict[str, Callable[[], object]]:
    """Return the forward pass alone, and with gradients of the signal, of the coefficients and of both."""
    signal_, variable = x.clone().requires_grad_(), coefficients.clone().requires_grad_()

    def with_gradients(x: Tensor, coefficients: Tensor) -> Callable[[], object]:
        wanted = [tensor for tensor in (x, coefficients) if tensor.requires_grad]
        return lambda: torch.autograd.grad(run(x, coefficients), wanted, grad_y)

    return {
        "forward": lambda: run(x, coefficients),
        "and by the signal": with_gradients(signal_, coefficients),
        "and by the coefficients": with_gradients(x, variable),
        "and by both": with_gradients(signal_, variable),
    }


def _contenders(x: Tensor) -> dict[str, Callable[[], object]]:
    sos, y = FOUR.cuda(), torch.empty_like(x)
    after = torch.empty(len(FOUR), len(x), 2, dtype=torch.float64, device="cuda")
    found: dict[str, Callable[[], object]] = {
        "copy": lambda: y.copy_(x),
        "torchfx": lambda: _ops.parallel_iir_forward(x, sos),
        "torchfx, threshold=1": lambda: _ops.parallel_iir_forward(x, sos, None, 1),
    }
    if x.shape[-1] == BLOCK:
        zi, runner = torch.zeros_like(after), fx.realtime.CudaGraphRunner(fx.filter.SOS(FOUR), x, FS)
        found["torchfx, with a state"] = lambda: _ops.parallel_iir_forward(x, sos, zi)
        found["torchfx, captured"] = lambda: runner.run(x)
    if x.numel() <= 8 * 60 * FS:
        from torchfx._ops.sos import reference

        found["plain PyTorch"] = lambda: reference.sos_forward(x, sos, None, 1024, y, after)
        try:
            import cupy
            from cupyx.scipy.signal import sosfilt
        except ImportError:
            pass
        else:
            array, sections = cupy.asarray(x), cupy.asarray(sos)
            found["CuPy"] = lambda: sosfilt(sections, array)
    return found


def _turns(
    work: str, x: Tensor, contenders: Mapping[str, Callable[[], object]], rounds: int, deadline: float
) -> Iterator[dict[str, Any]]:
    """Time contenders alternately, between events; a large buffer is written in between, so that no cache is warm.

    The device sleeps first, so that its time holds no wait for the host, whose time is `host_s`.
    """
    flush = torch.empty(64 << 20, dtype=torch.int32, device="cuda")
    times: dict[str, list[float]] = {name: [] for name in contenders}
    host: dict[str, list[float]] = {name: [] for name in contenders}
    for run in contenders.values():
        run()
    for _ in range(rounds):
        if time.monotonic() > deadline:
            break
        for name, run in contenders.items():
            flush.zero_()
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            torch.cuda.synchronize()
            torch.cuda._sleep(1_000_000)  # half a millisecond
            begin.record()
            started = time.perf_counter()
            run()
            host[name].append(time.perf_counter() - started)
            end.record()
            torch.cuda.synchronize()
            times[name].append(begin.elapsed_time(end) / 1e3)
    bytes_moved = 2 * x.numel() * x.element_size()
    copy, forward = (statistics.median(times[name]) if times.get(name) else None for name in ("copy", "forward"))
    for name, taken in times.items():
        if taken:
            median = statistics.median(taken)
            yield {
                "work": work, "contender": name, "channels": len(x), "samples": x.shape[-1], "rounds": len(taken),
                "time_s": median, "low_s": min(taken), "high_s": max(taken), "host_s": statistics.median(host[name]),
                "ns_per_sample": median / x.numel() * 1e9, "gb_per_s": bytes_moved / median / 1e9,
                "times_copy": median / copy if copy else None, "times_forward": median / forward if forward else None,
            }  # fmt: skip
    if work == "4 sections" and x.numel() <= 8 * 60 * FS:
        samples = x.cpu().numpy()
        started = time.perf_counter()
        signal.sosfilt(FOUR.numpy(), samples)
        taken_s = time.perf_counter() - started
        yield {"work": work, "contender": "SciPy on the CPU", "channels": len(x), "samples": x.shape[-1],
               "rounds": 1, "time_s": taken_s, "ns_per_sample": taken_s / x.numel() * 1e9}  # fmt: skip


# --- traces -----------------------------------------------------------------------------------------------


def traces(folder: Path) -> Iterator[dict[str, Any]]:
    """Record three steps of each program; yield file and size."""
    folder.mkdir(parents=True, exist_ok=True)
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    for name, step in _programs().items():
        for _ in range(3):
            step()
        torch.cuda.synchronize()
        plain = folder / f"{name}.json"
        with torch.profiler.profile(
            activities=activities,
            schedule=torch.profiler.schedule(wait=0, warmup=1, active=3, repeat=1),
            on_trace_ready=_exporter(plain),
            record_shapes=True,
        ) as recorded:
            for _ in range(4):
                step()
                torch.cuda.synchronize()
                recorded.step()
        packed = plain.with_suffix(".json.gz")
        packed.write_bytes(gzip.compress(plain.read_bytes(), mtime=0))
        plain.unlink()
        yield {"program": name, "file": packed.name, "bytes": packed.stat().st_size, "good": True}


def _exporter(path: Path) -> Callable[[torch.profiler.profile], None]:
    return lambda recorded: recorded.export_chrome_trace(str(path))


def _programs() -> dict[str, Callable[[], object]]:
    def multiply_add(size: int) -> Callable[[], object]:
        a, b, c = (torch.randn(size, size, device="cuda") for _ in range(3))
        return lambda: a @ b + c

    small = multiply_add(64)
    graph = torch.cuda.CUDAGraph()
    small()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        small()
    model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10)).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    batch, labels = torch.randn(64, 256, device="cuda"), torch.randint(10, (64,), device="cuda")

    def train() -> None:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(batch), labels).backward()
        optimizer.step()

    chain = fx.filter.HiButterworth(80) | fx.filter.LoButterworth(8000, order=4) | fx.effect.Gain(0.5)
    wave = fx.Wave(torch.randn(8, 10 * FS, device="cuda"), FS)
    return {
        "matmul_add_64": small,
        "matmul_add_4096": multiply_add(4096),
        "matmul_add_compiled": torch.compile(small),
        "matmul_add_graph": graph.replay,
        "training_step": train,
        "torchfx_chain": lambda: wave | chain,
    }


# --- the run ----------------------------------------------------------------------------------------------


def main() -> int:
    """Run the parts; print as they go; write the JSON."""
    parts = ("correctness", "benchmark", "traces", "sanitizer")
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", action="append", choices=[*parts, "kernels"], help="this part; may be repeated")
    parser.add_argument("--quick", action="store_true", help="fewer cases of correctness")
    parser.add_argument("--seconds", type=float, default=440, help="no new part or turn after this time (default 440)")
    parser.add_argument("--output", type=Path, default=RESULTS / "check.json", help="where the JSON goes")
    parser.add_argument("--against", type=Path, default=RESULTS / "h100.json", help="an earlier run's JSON")
    chosen = parser.parse_args()
    if not torch.cuda.is_available():
        why = "this PyTorch is built without CUDA" if torch.version.cuda is None else "the driver shows no device"
        sys.stderr.write(f"gpu_check: no CUDA device here ({why}): nothing was checked\n")
        return 2
    deadline = time.monotonic() + chosen.seconds
    answer: dict[str, Any] = {"hardware": hardware(torch.get_num_threads()), "failed": []}
    answer["operators"] = {row.operator: row.backends["cuda"] for row in _ops.rows}
    work: dict[str, Callable[[], Any]] = {
        "correctness": lambda: correctness(chosen.quick),
        "benchmark": lambda: benchmark(deadline),
        "traces": lambda: traces(chosen.output.parent / "traces"),
        "kernels": kernels,
        "sanitizer": lambda: iter([sanitizer()]),
    }
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for part in chosen.only or parts:
            rows: list[dict[str, Any]] = []
            started = time.monotonic()
            try:
                if started < deadline:
                    for row in work[part]():
                        rows.append(row)
                        if not row.get("good", True):
                            answer["failed"].append(f"{part}: {row}")
            except Failure as error:
                answer["failed"].append(f"{part}: {type(error).__name__}: {error}")
                traceback.print_exc()
            answer[part] = rows
            sys.stdout.write(f"{part}: {len(rows)} rows in {time.monotonic() - started:.1f} s\n")
            _show(part, rows)
    answer["warnings"] = sorted({str(warning.message) for warning in caught})
    if chosen.output != Path(os.devnull):
        chosen.output.parent.mkdir(parents=True, exist_ok=True)
        chosen.output.write_bytes(msgspec.json.format(msgspec.json.encode(answer), indent=1) + b"\n")
    compared = [*_promises(answer.get("benchmark", [])), *_slower(answer, chosen.against)]
    for line in (*compared, *answer["warnings"], *answer["failed"]):
        sys.stdout.write(line + "\n")
    sys.stdout.write(f"{len(answer['failed'])} failures; JSON in {chosen.output}\n")
    return 1 if answer["failed"] else 0


def _of(row: Mapping[str, Any]) -> tuple[str, str, int, int]:
    """Return what a row measured: work, contender, channels and samples."""
    return row["work"], row["contender"], row["channels"], row["samples"]


def _promises(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Yield for each promise whether it is kept."""
    measured = {_of(row): row for row in rows}
    for promised, (column, most) in PROMISED.items():
        found = measured.get(promised, {}).get(column)
        outcome = "not measured" if found is None else f"{'kept' if found <= most else 'MISSED'}, {found:.3g}"
        work, contender, channels, samples = promised
        yield f"promised: {work}, {contender}, {channels} x {samples}: {column} at most {most:.3g}: {outcome}"


def _slower(answer: Mapping[str, Any], path: Path) -> Iterator[str]:
    """Yield what takes more than a tenth longer than in an earlier run, in every turn longer than in any then."""
    if not path.exists():
        return
    earlier = msgspec.json.decode(path.read_bytes())
    if earlier["hardware"]["gpu"] != answer["hardware"]["gpu"]:
        yield f"not compared with {path.name}, which ran on {earlier['hardware']['gpu']}"
        return
    before = {_of(row): row for row in earlier.get("benchmark", [])}
    for row in answer.get("benchmark", []):
        then = before.get(_of(row))
        if (
            then is None
            or "low_s" not in row
            or row["low_s"] <= then["high_s"]
            or row["time_s"] <= 1.1 * then["time_s"]
        ):
            continue
        yield (
            f"slower than in {path.name}: {row['work']}, {row['contender']}, {row['channels']} x {row['samples']}: "
            f"{row['time_s'] * 1e6:.1f} us, {then['time_s'] * 1e6:.1f} us then"
        )


def _show(part: str, rows: list[dict[str, Any]]) -> None:
    if part == "correctness" and rows:
        worst = max(rows, key=lambda row: row["deviation"] / row["bound"])
        sys.stdout.write(f"  worst: {worst['case']}: {worst['deviation']:.2e} (bound {worst['bound']:.0e})\n")
    elif part == "benchmark":
        for row in rows:
            copies = f"{row['times_copy']:6.2f} copies" if row.get("times_copy") else ""
            host = f", host {row['host_s'] * 1e6:.1f} us" if "host_s" in row else ""
            sys.stdout.write(
                f"  {row['work']}, {row['channels']} x {row['samples']}, {row['contender']}: "
                f"{row['time_s'] * 1e6:.1f} us, {row.get('gb_per_s', 0):.0f} GB/s {copies}{host}\n"
            )
    else:
        for row in rows:
            sys.stdout.write(f"  {row}\n")


if __name__ == "__main__":
    sys.exit(main())
