"""What limits the program, in a word and a sentence; and why not, where that can't be told."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from torchfx.profiler.report.amounts import counted, duration, percent
from torchfx.profiler.report.breakdown import HOST_STALLS
from torchfx.profiler.report.caveats import caveats, slowed_by_stacks
from torchfx.profiler.trace.kinds import Kind
from torchfx.profiler.trace.trace import Trace

__all__ = ["KINDS", "verdict"]

KINDS: Final = {
    "compute-bound": "compute-bound",
    "overhead-bound": "overhead-bound",
    "input-bound": "input-bound",
    "communication-bound": "communication-bound",
    "copy-bound": "copy-bound",
    "compile-bound": "compile-bound",
    "unknown": "can't tell",
}

# From which share of the window a stall is what limits the program, unless another one takes more. Waiting for the
# host is normal up to a point: a device that has work half of the time is where others draw the line (TensorBoard's
# plugin: 50 % utilisation).
_LIMITS: Final = {
    "input-bound": 0.2,
    "communication-bound": 0.2,
    "copy-bound": 0.2,
    "compile-bound": 0.2,
    "overhead-bound": 0.4,
}
_FEW_KERNELS: Final = 10
_SHORT_OPERATOR_US: Final = 10.0
"""Operators that take less on average are mostly the cost of calling them."""


def verdict(trace: Trace, breakdown: dict[str, Any], launches: dict[str, int], slugs: frozenset[str]) -> dict[str, Any]:
    """Say what limits the program.

    Args:
        trace: what was read.
        breakdown, launches: parts of the report on it.
        slugs: the names of the rules that found something.

    Returns:
        "kind", one of `KINDS`; "sentence"; "caveats", a list of sentences.
    """
    shares = {part["name"]: part["share"] for part in breakdown["parts"]}
    reason = _nothing_to_go_by(trace, launches, slugs)
    if not reason and trace.has_gpu:
        reason = _too_little(trace, shares) or _one_gap(trace, breakdown)
    if reason:
        return _unknown(trace, reason)
    stalls = _stalls(trace, shares)
    sure = "overhead-bound" in slugs
    kind = _kind(stalls, 1 - sum(stalls.values()) - shares.get("profiler", 0.0), sure)
    if kind == "overhead-bound" and not sure and shares.get("computing", 0.0) >= 0.4 and slowed_by_stacks(trace):
        waits = sum(shares.get(name, 0.0) for name in HOST_STALLS)
        return _unknown(
            trace,
            f"the GPU waits for the host for {percent(waits)} of {_span(trace)}, and recording stacks slowed the "
            "host down: record once more without them",
        )
    sentence = _sentence(trace, kind, shares, stalls)
    return {"kind": kind, "sentence": sentence, "caveats": caveats(trace, kind, slugs)}


def _nothing_to_go_by(trace: Trace, launches: dict[str, int], slugs: frozenset[str]) -> str:
    if trace.window.end <= trace.window.start:
        return "the file holds no events with a duration"
    if not trace.has_gpu and launches["count"]:
        calls = counted(launches["count"], "kernel launch", "kernel launches")
        return f"the host made {calls}, but nothing of what the GPU did was recorded"
    graphs = trace.links.graph_launches
    empty = int(np.count_nonzero(trace.links.work_count[graphs] == 0))
    if empty > len(graphs) / 2 or "graph-replay-unrecorded" in slugs:
        what = counted(len(graphs), "CUDA graph was", "CUDA graphs were")
        which = "the kernels in them" if empty > len(graphs) / 2 else "some of their kernels, it seems,"
        return f"{what} replayed, and {which} were not recorded: what looks idle may be busy"
    return ""


def _one_gap(trace: Trace, breakdown: dict[str, Any]) -> str:
    gap, window = breakdown["longest_gap"], breakdown["window_us"]
    if gap is None:
        return ""
    idle = sum(part["time_us"] for part in breakdown["parts"] if part["name"] in HOST_STALLS)
    length = gap["duration_us"]
    if length < 0.5 * idle or length < 0.3 * window:
        return ""
    busy = trace.gpu.busy.clip(trace.window.start, trace.window.end).total / 1000
    rest = f"; in the rest the GPU has work {percent(busy / (window - length))} of the time" if window > length else ""
    return (
        f"one gap of {duration(length)} without GPU work takes {percent(length / window)} of {_span(trace)}, such as "
        f"set-up, a first call or a checkpoint{rest}: record several steps after warming up"
    )


def _too_little(trace: Trace, shares: dict[str, float]) -> str:
    kernels = len(trace.gpu.kernels)
    if kernels >= _FEW_KERNELS or shares.get("computing", 0.0) >= 0.5:
        return ""
    return f"the recording holds only {counted(kernels, 'kernel')}: record a few whole steps"


def _stalls(trace: Trace, shares: dict[str, float]) -> dict[str, float]:
    """Shares of the window by what they would make the program, if they were the most."""
    waiting = sum(shares.get(name, 0.0) for name in HOST_STALLS)
    if not trace.has_gpu:
        waiting = shares.get("python", 0.0) + shares.get("wrapper", 0.0) + shares.get("waiting", 0.0)
        if _mean_operator_us(trace) < _SHORT_OPERATOR_US:
            waiting += sum(shares.get(name, 0.0) for name in ("operators", "backward", "optimizer"))
    return {
        "input-bound": shares.get("data", 0.0),
        "communication-bound": shares.get("communication", 0.0),
        "copy-bound": shares.get("copies", 0.0),
        "compile-bound": shares.get("compiling", 0.0),
        "overhead-bound": waiting,
    }


def _kind(stalls: dict[str, float], computing: float, overhead: bool) -> str:
    """The stall that takes the most, of those that reach their limits; `overhead`: a rule found that one already."""
    reached = {kind: share for kind, share in stalls.items() if share >= _LIMITS[kind]}
    if overhead:
        reached["overhead-bound"] = stalls["overhead-bound"]
    if not reached and computing < max(stalls.values()):
        reached = stalls
    return max(reached, key=lambda kind: reached[kind]) if reached else "compute-bound"


def _sentence(trace: Trace, kind: str, shares: dict[str, float], stalls: dict[str, float]) -> str:
    share = stalls.get(kind, 0.0)
    amount = f"for {percent(share)} of {_span(trace)} ({_of_window(trace, share)})"
    if not trace.has_gpu:
        return _host_sentence(trace, kind, shares, amount)
    computing = shares.get("computing", 0.0)
    own = f"it computes for {percent(computing)}"
    if kind == "compute-bound":
        waits = stalls["overhead-bound"]
        mostly = "The GPU is the limit" if computing >= 0.8 else "Mostly the GPU is the limit"
        more = f"; for {percent(waits)} it waits for the program" if waits >= 0.1 else ""
        return (
            f"{mostly}: it computes for {percent(computing)} of {_span(trace)} ({_of_window(trace, computing)}){more}."
        )
    sentences = {
        "overhead-bound": f"The GPU waits for the program: {amount} it has no work, because the host is still busy "
        f"preparing it; {own}.",
        "input-bound": f"The GPU waits for data: {amount} it has no work, because the next batch isn't ready; {own}.",
        "communication-bound": f"The GPU waits for other GPUs: {amount} it only communicates; {own}.",
        "copy-bound": f"Copies are the limit: {amount} the GPU does nothing but copy; {own}.",
        "compile-bound": f"torch.compile was at work: {amount} the GPU waits while code is compiled; {own}.",
    }
    return sentences[kind]


def _host_sentence(trace: Trace, kind: str, shares: dict[str, float], amount: str) -> str:
    running = sum(shares.get(name, 0.0) for name in ("operators", "backward", "optimizer"))
    own = f"operators run for {percent(running)}"
    if kind == "overhead-bound" and _mean_operator_us(trace) < _SHORT_OPERATOR_US:
        python = percent(shares.get("python", 0.0) + shares.get("wrapper", 0.0))
        return (
            f"The work is too small for its overhead: operators take {duration(_mean_operator_us(trace))} on average, "
            f"mostly the cost of calling them; {python} of {_span(trace)} passes between them, in Python."
        )
    sentences = {
        "compute-bound": f"The processor is the limit: {own} of {_span(trace)} ({_of_window(trace, running)}); "
        "no GPU work was recorded.",
        "overhead-bound": f"Python is the limit: {amount} no operator runs; {own}.",
        "input-bound": f"The program waits for data: {amount} it waits for the next batch; {own}.",
        "compile-bound": f"torch.compile was at work: {amount} it compiled; {own}.",
    }
    return sentences.get(kind, f"No GPU work was recorded; {own} of {_span(trace)}.")


def _unknown(trace: Trace, reason: str) -> dict[str, Any]:
    return {"kind": "unknown", "sentence": f"Can't tell, because {reason}.", "caveats": []}


def _mean_operator_us(trace: Trace) -> float:
    """Self time of operators in the window, on average; infinite where none ran."""
    rows = trace.events.rows(Kind.OPERATOR)
    rows = rows[(trace.events.ts[rows] >= trace.window.start) & (trace.events.ts[rows] < trace.window.end)]
    return float(trace.calls.self_time[rows].mean()) / 1000 if len(rows) else float("inf")


def _span(trace: Trace) -> str:
    steps = len(trace.steps_found)
    if not steps:
        return "the recording"
    return f"the {steps} steps" if steps > 1 else "the one recorded step"


def _of_window(trace: Trace, share: float) -> str:
    return f"{duration(share * trace.window.us)} of {duration(trace.window.us)}"
