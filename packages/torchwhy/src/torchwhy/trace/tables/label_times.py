"""The program's own labels: `trace.labels()`."""

from __future__ import annotations

import numpy as np

from torchwhy.trace.derived.labels import labels
from torchwhy.trace.model.trace import Trace
from torchwhy.trace.tables.grouping import us
from torchwhy.trace.tables.table import Table

__all__ = ["label_times"]


def label_times(trace: Trace) -> Table:
    """Return the time by label (`record_function`) in the window, sorted by time, without PyTorch's own labels.

    Returns:
        `name`; `calls`; `host_us`: the time in which a thread was inside it; `share`: that as a fraction of the window;
        `self_us`: in its calls without the operators and labels they called; `device_us`: durations of
        the work launched in it.
    """
    found = trace.derived(labels)
    return Table(
        {
            "name": [label.name for label in found],
            "calls": np.array([len(label.rows) for label in found], np.int64),
            "host_us": us([label.when.total for label in found]),
            "share": np.array([trace.window.share(label.when) for label in found]),
            "self_us": us([label.self_ns for label in found]),
            "device_us": us([label.device_ns for label in found]),
        }
    )
