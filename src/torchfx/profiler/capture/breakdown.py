"""Where the recorded time went, as seen from the thread that runs the steps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from torchfx.profiler.capture.intervals import Interval, clipped, length, subtract, union
from torchfx.profiler.capture.operators import is_on_cpu, is_step, kind_of

__all__ = ["Breakdown", "Share", "break_down"]

# What an outermost event stands for, by the names PyTorch gives; the first that fits. Everything else is an operator.
PARTS = (
    ("data loading", ("enumerate(DataLoader)",)),
    ("optimizer", ("Optimizer.step#", "Optimizer.zero_grad#")),
    (
        "compiling",
        ("dynamo", "_compile.", "entire_frame_compile", "backend_compile", "entire_backward_compile", "compile_"),
    ),
    ("compiled code", ("Torch-Compiled Region", "TorchDynamo Cache Lookup", "Pregraph bytecode", "CompiledFunction")),
    ("backward", ("autograd::engine::",)),
)
OPERATORS = "operators"
PYTHON = "between operators"


@dataclass(frozen=True)
class Share:
    """One part of the recorded time: its name, its microseconds, and the fraction of the whole."""

    name: str
    time_us: float
    fraction: float


@dataclass(frozen=True)
class Breakdown:
    """The recorded time and its parts.

    Attributes:
        wall_us: time from the beginning to the end of the recorded steps, microseconds.
        steps: how many; 0 where the whole run is one window.
        shares: parts that add up to the whole, the largest first. What no operator covers is "between operators":
            Python, waiting, and everything PyTorch does not announce.
        device_busy_us: time in which at least one kernel or copy ran; None where no device was recorded.
    """

    wall_us: float
    steps: int
    shares: tuple[Share, ...]
    device_busy_us: float | None


def break_down(windows: Sequence[Sequence[Any]], device: bool) -> Breakdown:
    """Divide the time of all windows.

    Args:
        windows: the `FunctionEvent`s of each window.
        device: whether a device was recorded beside the CPU.
    """
    totals: dict[str, float] = {}
    wall = busy = 0.0
    steps = 0
    for events in windows:
        frames, thread, count = _frames(events)
        steps += count
        wall += length(frames)
        for name, time in _parts(events, frames, thread).items():
            totals[name] = totals.get(name, 0.0) + time
        kernels = union(_span(event) for event in events if kind_of(event) == "kernel")
        busy += length(clipped(kernels, [(frames[0][0], kernels[-1][1])] if kernels and frames else []))
    shares = [Share(name, time, time / wall) for name, time in totals.items() if time > 0] if wall else []
    shares.sort(key=lambda share: -share.time_us)
    return Breakdown(wall, steps, tuple(shares), busy if device else None)


def _frames(events: Sequence[Any]) -> tuple[list[Interval], int | None, int]:
    """The steps, or one stretch around everything on the busiest thread, and the thread they ran in."""
    frames = [event for event in events if is_step(event) and is_on_cpu(event)]
    if frames:
        return union(_span(event) for event in frames), frames[0].thread, len(frames)
    announced = [event for event in events if kind_of(event) in {"operator", "annotation"}]
    if not announced:
        return [], None, 0
    threads = [event.thread for event in announced]
    thread = max(set(threads), key=threads.count)
    spans = [_span(event) for event in announced]
    return [(min(start for start, _ in spans), max(end for _, end in spans))], thread, 0


def _parts(events: Iterable[Any], frames: list[Interval], thread: int | None) -> dict[str, float]:
    """Time of the outermost events on the thread, backward on other threads where this one waits, and the rest."""
    here: dict[str, list[Interval]] = {}
    elsewhere: list[Interval] = []
    covered = float("-inf")
    # Equal starts: the longer one is the outer one.
    for event in sorted(events, key=lambda event: (event.time_range.start, -event.time_range.end)):
        part = _part(event)
        if part is None:
            continue
        if event.thread != thread:
            if part == "backward":
                elsewhere.append(_span(event))
        elif event.time_range.start >= covered:
            covered = event.time_range.end
            here.setdefault(part, []).append(_span(event))
    times = {name: clipped(union(spans), frames) for name, spans in here.items()}
    taken = union(span for spans in times.values() for span in spans)
    waited = subtract(clipped(union(elsewhere), frames), taken)
    result = {name: length(spans) for name, spans in times.items()}
    result["backward"] = result.get("backward", 0.0) + length(waited)
    result[PYTHON] = length(frames) - length(taken) - length(waited)
    return result


def _part(event: Any) -> str | None:
    kind = kind_of(event)
    if kind not in {"operator", "annotation"}:
        return None
    for part, prefixes in PARTS:
        if str(event.name).startswith(prefixes):
            return part
    return OPERATORS if kind == "operator" else None  # the program's own annotations are looked through


def _span(event: Any) -> Interval:
    return event.time_range.start, event.time_range.end
