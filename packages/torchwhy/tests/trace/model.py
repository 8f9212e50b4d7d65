"""Columns built by hand, for traces that no exporter writes, and slow algorithms to compare with."""

import numpy as np

from torchwhy.loading.trace import LoadedTrace
from torchwhy.trace.file.columns import ABSENT, ARGUMENTS, Argument, Columns


def columns(events, top=None):
    """Columns of dictionaries with the keys ph, cat, name, ts, dur, pid, tid (nanoseconds) and args."""
    texts, index = [], {}

    def text(value):
        if value is None:
            return -1
        if value not in index:
            index[value] = len(texts)
            texts.append(value)
        return index[value]

    def numbers(key, missing):
        return np.array([event.get(key, missing) for event in events], np.int64)

    def indices(key, missing):
        return np.array([text(event.get(key, missing)) for event in events], np.int32)

    fixed = {
        "phase": np.array([ord(event.get("ph", "X")) for event in events], np.uint8),
        "ts": numbers("ts", ABSENT),
        "dur": numbers("dur", ABSENT),
        "category": indices("cat", "cpu_op"),
        "name": indices("name", "op"),
        "pid": indices("pid", "1"),
        "tid": indices("tid", "1"),
        "flow": numbers("id", ABSENT),
        "offset": np.arange(len(events), dtype=np.int64) * 100,
    }
    arguments = {}
    for key, kind in ARGUMENTS.items():
        rows = [i for i, event in enumerate(events) if key in event.get("args", {})]
        values = [events[i]["args"][key] for i in rows]
        kinds = {"int": np.int64, "float": np.float64, "text": np.int32}
        values = [text(value) for value in values] if kind == "text" else values
        arguments[key] = Argument(np.array(rows, np.int32), np.array(values, kinds[kind]))
    return Columns(**fixed, arguments=arguments, texts=texts, top=top or {}, size=100 * len(events))


def trace(events, top=None):
    return LoadedTrace("by hand", columns(events, top))


def naive_parents(spans, bleed=1000):
    """Of (lane, start, end) in tree order the position of the innermost one around each, by a stack per lane."""
    found, open_, lane = [], [], None
    for i, (own_lane, start, end) in enumerate(spans):
        if own_lane != lane:
            open_, lane = [], own_lane
        while open_ and (spans[open_[-1]][2] <= start or spans[open_[-1]][2] + bleed < end):
            open_.pop()
        found.append(open_[-1] if open_ else -1)
        open_.append(i)
    return found
