"""The suite targets: the speed this library promises, each promise a ratio measured in one run.

Every claim compares two works in this process, turn by turn, on the same float32 samples, after this library's result
was compared with SciPy in float64.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from torchfx import _ops
from torchfx._ops import native
from torchfx._ops.strided import raise_for
from torchfx.bench import chains, signals
from torchfx.bench.chains import Chain
from torchfx.bench.contenders import scipy_signal, torchfx_library
from torchfx.bench.exact import BOUND, deviation
from torchfx.bench.inside import compare
from torchfx.bench.report import TargetRow
from torchfx.bench.timing import ratio, spread

__all__ = ["CLAIMS", "NOTES", "Claim", "measure", "run"]

NOTES = (
    "speed-ups: `wave | chain`, output allocated in the call, against SciPy on the same float32 array, its output "
    "allocated too: the other's time over this library's",
    "costs: the native kernel writing into an output that is there already, against torch.mul(x, 2, out=y), likewise: "
    "this library's time over the other's",
    "lfilter is called once per filter, sosfilt once with all sections, oaconvolve once with all taps convolved "
    "beforehand",
)

THREADS = 2
DEEP = Chain(chains.IIR.filters * 3)
ONE_FIR = Chain(chains.FIR.filters[:1])

Prepare = Callable[[dict[str, Any], npt.NDArray[np.float32]], Callable[[], Any]]


@dataclass(frozen=True)
class Claim:
    """One promised ratio.

    Attributes:
        text: what is promised, without the number.
        chain, channels, seconds: the work.
        other: makes what this library is compared with.
        relation: ">=": at least so many times faster; "<=": at most so many times the time.
        target: the number.
        threads: PyTorch's threads.
    """

    text: str
    chain: Chain
    channels: int
    seconds: float
    other: Prepare
    target: float
    relation: str = ">="
    threads: int = THREADS


def doubled(job: dict[str, Any], x: npt.NDArray[np.float32]) -> Callable[[], Any]:
    """Return `torch.mul(x, 2, out=y)`: every sample read once and written once."""
    samples = torch.from_numpy(x)
    y = torch.zeros_like(samples)
    return lambda: torch.mul(samples, 2, out=y)


CLAIMS = (
    Claim("IIR, mono 60 s, over sosfilt", chains.IIR, 1, 60, scipy_signal.sosfilt, 5),
    Claim("IIR, mono 5 s, over sosfilt", chains.IIR, 1, 5, scipy_signal.sosfilt, 3.5),
    Claim("IIR, mono 60 s, 1 thread, over sosfilt", chains.IIR, 1, 60, scipy_signal.sosfilt, 4, threads=1),
    Claim("IIR, 2 channels 60 s, over sosfilt", chains.IIR, 2, 60, scipy_signal.sosfilt, 6),
    Claim("IIR, 8 channels 60 s, over sosfilt", chains.IIR, 8, 60, scipy_signal.sosfilt, 12),
    Claim("IIR, 12 channels 60 s, over sosfilt", chains.IIR, 12, 60, scipy_signal.sosfilt, 12),
    Claim("IIR, 8 channels 60 s, cost in torch.mul", chains.IIR, 8, 60, doubled, 2.5, "<="),
    Claim("IIR, 12 channels 60 s, cost in torch.mul", chains.IIR, 12, 60, doubled, 2.5, "<="),
    Claim("IIR of 12 sections, 2 channels 60 s, over sosfilt", DEEP, 2, 60, scipy_signal.sosfilt, 6),
    Claim("five FIRs, 2 channels 60 s, over lfilter", chains.FIR, 2, 60, scipy_signal.lfilter, 40),
    Claim("five FIRs, 2 channels 60 s, over oaconvolve", chains.FIR, 2, 60, scipy_signal.oaconvolve, 3),
    Claim("one FIR, mono 60 s, over oaconvolve", ONE_FIR, 1, 60, scipy_signal.oaconvolve, 3),
    Claim("one FIR, mono 5 s, over oaconvolve", ONE_FIR, 1, 5, scipy_signal.oaconvolve, 2.1),
)


def run(rounds: int, claims: tuple[Claim, ...] = CLAIMS) -> Iterator[TargetRow]:
    """Measure claim by claim."""
    for claim in claims:
        yield measure(claim, rounds)


def measure(claim: Claim, rounds: int) -> TargetRow:
    """Check the result, then time both works in turn."""
    x = signals.noise(claim.channels, round(claim.seconds * claim.chain.fs))
    job = claim.chain.job()
    ours = torchfx_library.piped(job, x) if claim.relation == ">=" else into_preallocated(claim, x)
    y = np.asarray(ours())
    off = deviation(claim.chain, x, lambda channel, start, stop: y[channel, start:stop])
    times = compare({"ours": ours, "other": claim.other(job, x)}, rounds, claim.threads)
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


def into_preallocated(claim: Claim, x: npt.NDArray[np.float32]) -> Callable[[], torch.Tensor]:
    """Return the native kernel writing into one output over and over; without it, the operator, which allocates."""
    if native.library is None:
        piped = torchfx_library.piped(claim.chain.job(), x)
        return lambda: piped().ys
    signal, sos = torch.from_numpy(x), torch.from_numpy(claim.chain.sos())
    y = torch.zeros_like(signal)
    channels, samples = signal.shape
    kernel = partial(
        native.library.torchfx_sos_forward,
        0, signal.data_ptr(), samples, 1, y.data_ptr(), samples, channels, samples,
        sos.data_ptr(), len(sos), None, None, _ops.PARALLEL_SCAN_THRESHOLD, claim.threads,
    )  # fmt: skip
    alive = (signal, sos, y)  # the kernel holds nothing but their addresses

    def run() -> torch.Tensor:
        status = kernel()
        if status:
            raise_for(status, "torchfx_sos_forward")
        return alive[2]

    return run
