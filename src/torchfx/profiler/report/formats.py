"""The views of a report, by name."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from torchfx.profiler.report.style import PLAIN, Style
from torchfx.profiler.report.text import text

__all__ = ["FORMATS", "render"]

FORMATS: Final = ("text", "json", "markdown", "html-fragment", "sarif", "junit")


def render(
    report: dict[str, Any], form: str = "text", *, style: Style = PLAIN, verbose: bool = False, fail_on: str = "medium"
) -> str:
    """Draw a report; the result ends with a newline.

    Args:
        report: what `describe` returns, or its JSON read back.
        form: one of `FORMATS`.
        style: for text: width, colour and characters.
        verbose: informational findings too (JSON, SARIF and JUnit always have them).
        fail_on: for JUnit: the severity from which a finding is a failure.
    """
    if form == "json":
        return _json(report)
    # Each view is loaded when it is asked for: the command is to start at once.
    if form == "sarif":
        from torchfx.profiler.report.sarif import sarif

        return _json(sarif(report))
    if form == "junit":
        from torchfx.profiler.report.junit import junit

        return junit(report, fail_on)
    if form == "markdown":
        from torchfx.profiler.report.markdown import markdown

        return markdown(report, verbose=verbose)
    if form == "html-fragment":
        from torchfx.profiler.report.html import fragment

        return fragment(report, verbose=verbose)
    return text(report, style, verbose=verbose) + "\n"


def _json(value: dict[str, Any]) -> str:
    return msgspec.json.format(msgspec.json.encode(value)).decode() + "\n"
