"""Time by call path, for flame graphs: `trace.stacks()`."""

from __future__ import annotations

from typing import Final

import numpy as np

from torchwhy.errors import ArgumentError
from torchwhy.trace.file.columns import Int32, Int64
from torchwhy.trace.meaning.frames import LAUNCHER, program_path
from torchwhy.trace.model.trace import Trace
from torchwhy.trace.tables.grouping import us
from torchwhy.trace.tables.table import Table

__all__ = ["stacks"]


_METRICS: Final = {
    "host": "host",
    "device": "device",
    "self_cpu_time_total": "host",
    "self_cuda_time_total": "device",
    "self_device_time_total": "device",
}


def stacks(trace: Trace, metric: str = "host") -> Table:
    """Return the time by call path, sorted by time: Python frames (if recorded), annotations, operators, runtime calls.

        table = trace.stacks("device")
        Path("device.folded").write_text("".join(f"{row['stack']} {row['time_us']:.0f}\\n" for row in table))

    Args:
        metric: "host", the time in each call without the calls in it, or "device", that of the work it launched, under
            its kernel's name. PyTorch's names for them ("self_cpu_time_total", "self_cuda_time_total") will do.

    Returns:
        `stack`: from the outermost call to the innermost, with ";" between them, as tools for flame graphs read it (a
        ";" in a name becomes ","), without frames of the recorder, which count as their caller; `calls`; `time_us`.

    Raises:
        ArgumentError: there is no such metric.
    """
    if metric not in _METRICS:
        raise ArgumentError(f"metric must be one of {', '.join(_METRICS)}; got {metric!r}")
    paths = _Paths(trace)
    if _METRICS[metric] == "host":
        path, spent = paths.of[trace.frames.rows], trace.frames.self_time[trace.frames.rows]
    else:
        path, spent = paths.with_work(trace.links.work), trace.events.dur[trace.links.work]
    count = np.bincount(path, minlength=len(paths))
    time = np.bincount(path, weights=spent, minlength=len(paths)).astype(np.int64)
    there = np.flatnonzero(time > 0)
    texts = paths.texts()
    found: dict[str, tuple[int, int]] = {}
    for i in there.tolist():
        text = texts[i]
        if text:
            calls, spent_ns = found.get(text, (0, 0))
            found[text] = calls + int(count[i]), spent_ns + int(time[i])
    numbers = np.array(list(found.values()), np.int64).reshape(-1, 2)
    return Table({"stack": list(found), "calls": numbers[:, 0], "time_us": us(numbers[:, 1])}).sorted("time_us")


class _Paths:
    """Chains of names, numbered as they first occur.

    Attributes:
        of: for each row of the trace the number of its chain, -1 where it is no call.
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._numbers: dict[tuple[int, int], int] = {}
        tree, names = trace.frames, trace.events.name
        self.of: Int64 = np.full(len(trace.events) + 1, -1, np.int64)
        of = self.of.tolist()
        rows = tree.nested  # parents come first
        for row, parent, name in zip(rows.tolist(), tree.parent[rows].tolist(), names[rows].tolist(), strict=True):
            of[row] = self._numbers.setdefault((of[parent], name), len(self._numbers))
        self.of = np.array(of, np.int64)

    def __len__(self) -> int:
        return len(self._numbers)

    def with_work(self, work: Int32) -> Int64:
        """The chains that end with pieces of device work, below the calls that launched them."""
        above = self.of[self._trace.links.maker_of(work)].tolist()
        names = self._trace.events.name[work].tolist()
        return np.array(
            [self._numbers.setdefault(pair, len(self._numbers)) for pair in zip(above, names, strict=True)], np.int64
        )

    def texts(self) -> list[str]:
        """Each chain in words, without frames of the recorder; "" where it has no others."""
        found: list[str] = []
        for above, name in self._numbers:
            text = self._trace.events.texts[name] if name >= 0 else ""
            outside = "" if above < 0 or LAUNCHER in text else found[above]
            own = ";".join(one.replace(";", ",").replace("\n", " ") for one in program_path([text]))
            found.append(f"{outside};{own}" if outside and own else outside or own)
        return found
