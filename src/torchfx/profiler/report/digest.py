"""The report in short, for the end of a run: verdict, where the time goes, and each finding with its fix."""

from __future__ import annotations

from typing import Any, Final

from torchfx.profiler.report.bars import bars
from torchfx.profiler.report.nothing import nothing_found
from torchfx.profiler.report.style import PLAIN, Style
from torchfx.profiler.report.told import SHOWN
from torchfx.profiler.report.verdict import KINDS
from torchfx.profiler.wording import counted

__all__ = ["digest"]

_FIX_LINES: Final = 2


def digest(report: dict[str, Any], style: Style = PLAIN) -> str:
    """Draw what `describe` returns in a few lines; evidence and causes are left to the whole report."""
    wanted = [finding for finding in report["findings"] if finding["severity"] != "info"]
    parts = [_verdict(report["verdict"], style), bars(report, style, verbose=False), _findings(wanted, style)]
    parts += [] if wanted else [style.wrap(nothing_found(report))]
    return "\n\n".join("\n".join(lines) for lines in parts if lines)


def _verdict(verdict: dict[str, Any], style: Style) -> list[str]:
    kind = KINDS.get(verdict["kind"], verdict["kind"])
    return [style.paint(kind.upper(), "bold"), *style.wrap(style.plain(verdict["sentence"]))]


def _findings(wanted: list[dict[str, Any]], style: Style) -> list[str]:
    lines = []
    for number, finding in enumerate(wanted[:SHOWN], 1):
        label = f"({finding['code']} {finding['slug']}, {finding['severity']})"
        first, *rest = style.wrap(style.plain(f"{finding['title']} {label}"), indent=4)
        lines += [style.paint(line, "bold") for line in (f"{number:>2}  {first.strip()}", *rest)]
        lines += _fix(finding["fix"], style)
    if len(wanted) > SHOWN:
        lines.append(f"    and {counted(len(wanted) - SHOWN, 'finding')} more")
    return lines


def _fix(text: str, style: Style) -> list[str]:
    """As many whole sentences as two lines hold, or else the beginning of the first."""
    if not text:
        return []
    sentences = style.plain(text).removesuffix(".").split(". ")
    shorter = (". ".join(sentences[:count]) + "." for count in range(len(sentences), 0, -1))
    lines = next(
        (lines for lines in (style.wrap(part, indent=9) for part in shorter) if len(lines) <= _FIX_LINES), None
    )
    if lines is None:
        lines = style.wrap(sentences[0], indent=9)[:_FIX_LINES]
        room = max(style.width, 40) - len(" ...")
        lines[-1] = (lines[-1] if len(lines[-1]) <= room else lines[-1][: room + 1].rpartition(" ")[0]) + " ..."
    return [f"    {style.paint('Fix', 'bold')}  {lines[0].strip()}", *lines[1:]]
