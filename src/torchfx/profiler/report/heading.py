"""The first lines of the screen: which file, which device, what was recorded, which stretch of time."""

from __future__ import annotations

from typing import Any, Final

from torchfx.profiler.report.style import Style
from torchfx.profiler.wording import counted, duration, enumeration

__all__ = ["heading", "job_heading"]

_RECORDED: Final = {
    "record_shapes": "shapes",
    "with_stack": "stacks",
    "profile_memory": "memory",
    "with_flops": "FLOPs",
    "with_modules": "modules",
}


def heading(report: dict[str, Any], style: Style) -> list[str]:
    """Return the lines about a trace."""
    trace, window = report["trace"], report["window"]
    where = [_devices(report)]
    if trace["rank"] is not None:
        where.append(f"rank {trace['rank']}" + (f" of {trace['world_size']}" if trace["world_size"] else ""))
    where.append(counted(trace["events"], "event"))
    recorded = [_RECORDED.get(flag, flag) for flag in trace["recorded"]]
    where += [f"recorded with {enumeration(recorded)}"] if recorded else []
    lines = [style.paint(style.plain(trace["name"]), "bold")]
    lines += style.wrap(style.plain(" · ".join(where)))
    lines += style.wrap(style.plain(f"Window: {_window(window)}"))
    for repair in trace["repairs"]:
        first, *rest = style.wrap(style.plain(f"Repaired: {repair['sentence']}"))
        lines += [first.replace("Repaired:", style.paint("Repaired:", "yellow"), 1), *rest]
    return lines


def job_heading(report: dict[str, Any], style: Style) -> list[str]:
    """Return the lines about the traces of several ranks."""
    trace = report["trace"]
    ranks = counted(len(report["ranks"]), "rank")
    of = f" of {report['world_size']}" if (report["world_size"] or 0) > len(report["ranks"]) else ""
    how = "" if report["numbered"] else " · files were counted, since nothing in them tells the rank"
    lines = [style.paint(style.plain(trace["name"]), "bold")]
    lines += style.wrap(style.plain(f"{ranks}{of} · {counted(trace['events'], 'event')}{how}"))
    for repair in trace["repairs"]:
        lines += style.wrap(style.plain(f"Left out: {repair['sentence']}"))
    return lines


def _devices(report: dict[str, Any]) -> str:
    known = {device["id"] for device in report["trace"]["devices"]}
    used = report["gpu"]
    if not used:
        return "no GPU work"
    unnamed = {"amd": "AMD GPU", "nvidia": "NVIDIA GPU"}.get(report["trace"]["vendor"], "GPU without a name")
    shown = sorted({entry["name"] or unnamed for entry in used})
    if len(used) > 1:
        return f"{len(used)} GPUs: {enumeration(shown)}"
    number = used[0]["device"]
    if known and number not in known:  # the file's list has another number for it
        return f"{shown[0]} (numbered {number} in the trace)"
    others = f", 1 of {len(known)} used" if len(known) > 1 else ""
    return f"{shown[0]} (GPU {number}{others})"


def _window(window: dict[str, Any]) -> str:
    length, steps = duration(window["duration_us"]), window["steps"]
    if not steps:
        return f"{window['name']}, {length}; no steps are marked"
    if window["inferred"]:
        mark = steps[0]["name"]
        how = f"from one {mark[8:]} to the next" if mark.startswith("between ") else f"of {mark}"
        return f"{counted(len(steps), 'step')} {how}, as inferred, {length}"
    names = [step["name"].replace("ProfilerStep#", "") for step in steps]
    which = f"step {names[0]}" if len(steps) == 1 else f"{len(steps)} steps, {names[0]} to {names[-1]}"
    return f"{which}, {length} with the GPU work begun in them" if window["gpu_span_us"] else f"{which}, {length}"
