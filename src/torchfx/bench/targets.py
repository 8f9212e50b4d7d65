"""The suite targets: the speed this library promises, each promise a ratio measured in one run.

Every claim compares two works in this process, turn by turn, on the same float32 samples, after this library's result
was compared with SciPy in float64.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from torchfx import _ops
from torchfx._ops import native
from torchfx._ops.memory import raise_for
from torchfx.bench import chains, gradients, signals
from torchfx.bench.chains import Chain
from torchfx.bench.contenders import scipy_signal, torchfx_library
from torchfx.bench.exact import BOUND, deviation
from torchfx.bench.inside import alternate, compare
from torchfx.bench.report import TargetRow
from torchfx.bench.timing import ratio, spread

__all__ = ["CLAIMS", "NOTES", "Claim", "measure", "run"]

NOTES = (
    "speed-ups: `wave | chain`, output allocated in the call, against SciPy on the same float32 array, its output "
    "allocated too: the other's time over this library's",
    "costs: the native kernel writing into an output that is there already, against torch.mul(x, 2, out=y), likewise: "
    "this library's time over the other's",
    "gradients: forward plus backward, for signal and coefficients at once, over the forward pass alone where nothing "
    "requires a gradient; outputs and gradients allocated in the call; single calls in turn, since a forward pass "
    "repeated on its own would find its signal in the cache, and one in training doesn't",
    "lfilter is called once per filter, sosfilt once with all sections, oaconvolve once with all taps convolved "
    "beforehand",
)

THREADS = 2
DEEP = Chain(chains.IIR.filters * 3)
ONE_FIR = Chain(chains.FIR.filters[:1])

GRADIENTS = ((1, 60, 3.5), (2, 60, 3.5), (8, 60, 3.5), (12, 60, 3.5), (1, 5, 5), (16, 1, 4), (64, 0.4, 4))
"""Channels, seconds and what forward plus backward may cost: short signals also pay for Python, 50 us a step."""

Prepare = Callable[[dict[str, Any], npt.NDArray[np.float32]], Callable[[], Any]]


@dataclass(frozen=True)
class Claim:
    """One promised ratio.

    Attributes:
        text: what is promised, without the number.
        chain, channels, seconds: the work.
        other: makes what this library is compared with.
        target: the number.
        relation: ">=": at least so many times faster; "<=": at most so many times the time.
        ours: makes this library's work.
        timed: measures both.
        threads: PyTorch's threads.
    """

    text: str
    chain: Chain
    channels: int
    seconds: float
    other: Prepare
    target: float
    relation: str = ">="
    ours: Prepare = torchfx_library.piped
    timed: Callable[[Mapping[str, Callable[[], Any]], int, int], dict[str, list[float]]] = compare
    threads: int = THREADS


def doubled(job: dict[str, Any], x: npt.NDArray[np.float32]) -> Callable[[], Any]:
    """Return `torch.mul(x, 2, out=y)`: every sample read once and written once."""
    samples = torch.from_numpy(x)
    y = torch.zeros_like(samples)
    return lambda: torch.mul(samples, 2, out=y)


def into_preallocated(job: dict[str, Any], x: npt.NDArray[np.float32]) -> Callable[[], Any]:
    """Return the native kernel writing into one output over and over; without it, the operator, which allocates."""
    if native.library is None:
        return torchfx_library.piped(job, x)
    signal, sos = torch.from_numpy(x), torch.tensor(job["sos"], dtype=torch.float64)
    y = torch.zeros_like(signal)
    channels, samples = signal.shape
    pack, kernel = native.call["sos_forward"]
    arguments = partial(
        pack,
        0, signal.data_ptr(), samples, 1, 1, y.data_ptr(), samples, channels, samples,
        sos.data_ptr(), len(sos), 1, 1, 0, 0, _ops.PARALLEL_SCAN_THRESHOLD,
    )  # fmt: skip
    alive = (signal, sos, y)  # the kernel holds nothing but their addresses

    def run() -> torch.Tensor:
        status = kernel(arguments(torch.get_num_threads()))
        if status:
            raise_for(status, "torchfx_sos_forward")
        return alive[2]

    return run


CLAIMS = (
    Claim("IIR, mono 60 s, over sosfilt", chains.IIR, 1, 60, scipy_signal.sosfilt, 5),
    Claim("IIR, mono 5 s, over sosfilt", chains.IIR, 1, 5, scipy_signal.sosfilt, 3.5),
    Claim("IIR, mono 60 s, 1 thread, over sosfilt", chains.IIR, 1, 60, scipy_signal.sosfilt, 4, threads=1),
    Claim("IIR, 2 channels 60 s, over sosfilt", chains.IIR, 2, 60, scipy_signal.sosfilt, 6),
    Claim("IIR, 8 channels 60 s, over sosfilt", chains.IIR, 8, 60, scipy_signal.sosfilt, 12),
    Claim("IIR, 12 channels 60 s, over sosfilt", chains.IIR, 12, 60, scipy_signal.sosfilt, 12),
    Claim("IIR, 8 channels 60 s, cost in torch.mul", chains.IIR, 8, 60, doubled, 2.5, "<=", into_preallocated),
    Claim("IIR, 12 channels 60 s, cost in torch.mul", chains.IIR, 12, 60, doubled, 2.5, "<=", into_preallocated),
    Claim("IIR of 12 sections, 2 channels 60 s, over sosfilt", DEEP, 2, 60, scipy_signal.sosfilt, 6),
    Claim("five FIRs, 2 channels 60 s, over lfilter", chains.FIR, 2, 60, scipy_signal.lfilter, 40),
    Claim("five FIRs, 2 channels 60 s, over oaconvolve", chains.FIR, 2, 60, scipy_signal.oaconvolve, 3),
    Claim("one FIR, mono 60 s, over oaconvolve", ONE_FIR, 1, 60, scipy_signal.oaconvolve, 3),
    Claim("one FIR, mono 5 s, over oaconvolve", ONE_FIR, 1, 5, scipy_signal.oaconvolve, 2.1),
    *(
        Claim(
            f"gradients of {name}, {channels} x {seconds:g} s, cost in forward passes",
            chain,
            channels,
            seconds,
            gradients.forward,
            target,
            "<=",
            gradients.forward_and_backward,
            alternate,
        )
        for name, chain in (("IIR", chains.IIR), ("five FIRs", chains.FIR))
        for channels, seconds, target in GRADIENTS
    ),
)


def run(rounds: int, claims: tuple[Claim, ...] = CLAIMS) -> Iterator[TargetRow]:
    """Measure claim by claim."""
    for claim in claims:
        yield measure(claim, rounds)


def measure(claim: Claim, rounds: int) -> TargetRow:
    """Check the result, then time both works in turn."""
    x = signals.noise(claim.channels, round(claim.seconds * claim.chain.fs))
    job = claim.chain.job()
    ours = claim.ours(job, x)
    y = np.asarray(ours())
    off = deviation(claim.chain, x, lambda channel, start, stop: y[channel, start:stop])
    times = claim.timed({"ours": ours, "other": claim.other(job, x)}, rounds, claim.threads)
    if claim.relation == ">=":
        found = ratio(times["other"], times["ours"])
        kept = found.median >= claim.target
    else:
        found = ratio(times["ours"], times["other"])
        kept = found.median <= claim.target
    return TargetRow(
        claim=claim.text,
        relation=claim.relation,
        target=claim.target,
        ratio=found.median,
        low=found.low,
        high=found.high,
        rounds=found.count,
        deviation=off,
        time_s=spread(times["ours"]).median,
        other_s=spread(times["other"]).median,
        passed=kept and off <= BOUND,
    )
