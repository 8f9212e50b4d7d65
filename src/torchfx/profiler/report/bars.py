"""The breakdown of the window as bars, with the spread over steps."""

from __future__ import annotations

from typing import Any, Final

from torchfx.profiler.report.style import Style
from torchfx.profiler.wording import duration, percent

__all__ = ["bars"]

_SLIVER: Final = 0.001
"""Parts below this share of the window are shown only where everything is."""

_DIFFERENT: Final = 0.1
"""Two shares of idle time differ so much that both are to be told."""

_GROUPS: Final = {"gpu": "GPU", "idle": "GPU idle while the host", "host": "Program"}


def bars(report: dict[str, Any], style: Style, verbose: bool) -> list[str]:
    """Return the table of the window's parts as lines; none for an empty trace."""
    found = report["breakdown"]
    rows = _rows(found["parts"], 0.0 if verbose else _SLIVER)
    if not rows:
        return []
    step = found["step"]
    names = max(len(label) for label, *_ in rows)
    spreads = [_spread(part.get("per_step"), style) if part and step else "" for _, part, _ in rows]
    spreads.append(_spread(step, style))
    ahead = 2 + names + 2 + 6 + 2 + 8  # columns before those of the steps, but for the bar
    bar = min(style.width - ahead - 2 - max(map(len, spreads)) - 2, 24)
    room = bar + 2 if bar > 2 else 0
    title = f"Where the time goes ({duration(found['window_us'])})"
    lines = [style.paint(title, "bold") + (" " * (ahead + room - len(title)) + "    per step (range)" if step else "")]
    for (label, part, look), spread in zip(rows, spreads, strict=False):
        if part is None:
            lines.append(f"  {label}")
            continue
        drawn = style.bar(part["share"], bar) if look and room else ""
        drawn = style.paint(drawn, look or "dim") + " " * (room - len(drawn))
        row = f"  {label:<{names}}  {drawn}{percent(part['share']):>6}  {duration(part['time_us']):>8}  {spread}"
        lines.append(row.rstrip())
    if step:
        lines.append(f"  {'a step, on the host':<{ahead + room - 2}}  {spreads[-1]}")
    return [*lines, *_span(report, style)]


def _rows(parts: list[dict[str, Any]], least: float) -> list[tuple[str, dict[str, Any] | None, str]]:
    """Label, numbers and colour of each row; groups have a row above their parts, that of idle time with its sum."""
    rows: list[tuple[str, dict[str, Any] | None, str]] = []
    for group, label in _GROUPS.items():
        members = [part for part in parts if part["group"] == group]
        if not members:
            continue
        together = {key: sum(part[key] for part in members) for key in ("share", "time_us")}
        rows.append((label, together if group == "idle" else None, ""))
        rows += [
            (f"  {part['label']}", part, _look(part["name"]))
            for part in members
            if part["share"] >= least or part["name"] == "computing"
        ]
    return rows


def _span(report: dict[str, Any], style: Style) -> list[str]:
    """Idle time is another matter between the first and the last piece of work: say so where the two differ much."""
    window, devices = report["breakdown"], report["gpu"]
    idle = sum(part["share"] for part in window["parts"] if part["group"] == "idle")
    if len(devices) != 1 or not devices[0]["span_us"]:
        return []
    own = devices[0]["idle_us"] / devices[0]["span_us"]
    if abs(idle - own) < _DIFFERENT:
        return []
    span = duration(devices[0]["span_us"])
    return style.wrap(
        f"From its first to its last work, {span}, the GPU is idle for {percent(own)}: the rest of its idle time lies "
        "before or after."
    )


def _look(name: str) -> str:
    if name in {"computing", "operators", "backward", "optimizer"}:
        return "green"
    return "dim" if name in {"profiler", "ended"} else "yellow" if name in {"communication", "copies"} else "red"


def _spread(values: dict[str, Any] | None, style: Style) -> str:
    if not values:
        return ""
    low, high = duration(values["low_us"]), duration(values["high_us"])
    if low.split()[-1] == high.split()[-1]:
        low = low.split()[0]
    return style.plain(f"{duration(values['median_us']):>8} ({low}\u2013{high})")
