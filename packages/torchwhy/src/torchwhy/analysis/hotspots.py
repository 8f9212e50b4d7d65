"""The parts that take the time: kinds of device work, operators with lines of the program, labels, modules."""

from __future__ import annotations

from typing import Final

import msgspec
import numpy as np

from torchwhy.trace.derived.device_peaks import device_name, used_peaks
from torchwhy.trace.derived.device_time import device_time
from torchwhy.trace.derived.kernel_kinds import kinds_of_work
from torchwhy.trace.derived.labels import labels
from torchwhy.trace.derived.modules import modules
from torchwhy.trace.derived.ownership import own_line
from torchwhy.trace.file.columns import numbered
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.model.trace import Trace
from torchwhy.trace.tables.kinds import kinds

__all__ = [
    "KindTime",
    "KindTimes",
    "LabelTime",
    "ModuleTime",
    "OperatorTime",
    "kind_times",
    "label_times",
    "module_times",
    "operator_times",
]

_OPERATORS: Final = 5


class OperatorTime(msgspec.Struct, frozen=True):
    """An operator in the window, by its own time: of a device's work it launched, or on a machine without one its own.

    Attributes:
        share: of all device work in the window, whoever launched it; on a machine without one of the time of all
            operators.
        line: of the program's own code around the longest call; "" where it isn't known.
    """

    name: str
    calls: int
    time_us: float
    share: float
    line: str


class KindTime(msgspec.Struct, frozen=True):
    """Device work of one kind in the window: the columns of `trace.kinds()`, None where they aren't known."""

    kind: str
    calls: int
    time_us: float
    share: float
    tflops: float | None
    gb_s: float | None
    roofline_share: float | None
    bound: str
    gain_us: float | None
    judged_share: float


class KindTimes(msgspec.Struct, frozen=True):
    """The kinds of device work, the most time first, and what they are held against.

    Attributes:
        peaks: whose figures, such as "the data sheet's"; "" where the device's peaks aren't known.
        device: its name in the file; "" where that isn't known.
    """

    rows: tuple[KindTime, ...]
    peaks: str
    device: str


class LabelTime(msgspec.Struct, frozen=True):
    """A label of the program in the window: the time in which a thread was inside it, and the work launched in it."""

    name: str
    calls: int
    time_us: float
    share: float
    device_us: float


class ModuleTime(msgspec.Struct, frozen=True):
    """A module at its place in the program; its backward pass is charged to it and to the line that called it.

    Attributes:
        path: the modules around it and itself.
        host_us: in its calls, the modules it calls included; backward_host_us: of their operators' backward pass.
        device_us, backward_device_us: of the device work launched in these.
        line: of the program's own code that calls it; "" where it isn't known.
    """

    path: str
    calls: int
    host_us: float
    backward_host_us: float
    device_us: float
    backward_device_us: float
    line: str


def kind_times(trace: Trace) -> KindTimes:
    """Return the kinds of device work in the window."""
    rows = [{name: None if value != value else value for name, value in row.items()} for row in kinds(trace)]
    peaks = used_peaks(trace)
    return KindTimes(msgspec.convert(rows, tuple[KindTime, ...]), peaks.source if peaks else "", device_name(trace))


def operator_times(trace: Trace) -> tuple[OperatorTime, ...]:
    """Return the operators that take the most time, the most first."""
    events, window = trace.events, trace.window
    rows = np.concatenate((events.rows(Kind.OPERATOR), events.borrowed(Kind.OPERATOR)))
    rows = rows[events.begin_in(rows, window.start, window.end)]
    spent = (trace.derived(device_time).own if trace.has_gpu else trace.calls.self_time)[rows]
    whole = sum(one.spent for one in trace.derived(kinds_of_work)) if trace.has_gpu else int(spent.sum())
    if not whole:
        return ()
    names, which = numbered(events.name[rows], len(events.texts))
    total = np.bincount(which, weights=spent, minlength=len(names)).astype(np.int64)
    found = []
    for i in np.argsort(-total, kind="stable")[:_OPERATORS].tolist():
        same = np.flatnonzero(which == i)
        longest = int(rows[same[np.argmax(spent[same])]])
        time = int(total[i])
        if time:
            line = own_line(trace, longest)
            found.append(OperatorTime(trace.name(longest), len(same), time / 1000, time / whole, line))
    return tuple(found)


def label_times(trace: Trace) -> tuple[LabelTime, ...]:
    """Return the program's labels, the most time first."""
    return tuple(
        LabelTime(
            label.name,
            len(label.rows),
            label.when.total / 1000,
            trace.window.share(label.when),
            label.device_ns / 1000,
        )
        for label in trace.derived(labels)
    )


def module_times(trace: Trace) -> tuple[ModuleTime, ...]:
    """Return the modules in order of their first call; () where neither frames nor labels show them."""
    return tuple(
        ModuleTime(
            module.path,
            module.calls,
            module.host_ns / 1000,
            module.backward_host_ns / 1000,
            module.device_ns / 1000,
            module.backward_device_ns / 1000,
            own_line(trace, int(module.rows[0])),
        )
        for module in trace.derived(modules)
    )
