"""Notebook display of a trace: the report page in a frame, with a text report as fallback."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Final

from torchwhy.errors import ArgumentError
from torchwhy.page.report_page import trace_page
from torchwhy.present.explanation import explanation
from torchwhy.present.formats import render
from torchwhy.report.trace_report import describe
from torchwhy.rules.diagnose import diagnose

if TYPE_CHECKING:
    from torchwhy.loading.trace import LoadedTrace

__all__ = ["LARGEST_FRAME", "framed", "trace_in_notebook"]

LARGEST_FRAME: Final = 1_000_000
"""Bytes of a page that is put into a notebook, which keeps it in its file."""

MOST_EVENTS: Final = 500_000
"""Events of a trace whose page is written for a notebook: it takes about 20 s."""


def trace_in_notebook(trace: LoadedTrace) -> str:
    """Return the report page of a trace in a frame, and a text report for viewers without frames.

    The timeline is coarsened until the page fits into `LARGEST_FRAME` bytes. If its text alone is larger, or the trace
    has more than `MOST_EVENTS` events, only the text and the command that writes the page are shown.
    """
    diagnosis = diagnose(trace)
    text = render(explanation(describe(trace, diagnosis)), "html")
    if len(trace) <= MOST_EVENTS:
        try:
            page = trace_page(trace, diagnosis, describe(trace, diagnosis, thorough=True), max_size=LARGEST_FRAME)
        except ArgumentError:  # larger without any event
            pass
        else:
            return f"{framed(page)}\n<details><summary>As text</summary>\n{text}\n</details>"
    return f"{text}\n<p><code>torchwhy report</code> writes its page with the timeline.</p>"


def framed(page: str) -> str:
    """Return an element that shows a whole page apart from the one it stands in: its scripts see nothing of that."""
    return (
        '<iframe title="Report" sandbox="allow-scripts" style="width:100%;height:45rem;border:0" '
        f'srcdoc="{html.escape(page)}"></iframe>'
    )
