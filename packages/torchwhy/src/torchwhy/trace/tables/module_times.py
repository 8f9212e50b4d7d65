"""Modules: `trace.modules()`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from torchwhy.trace.derived.modules import modules
from torchwhy.trace.tables.grouping import us
from torchwhy.trace.tables.table import Table

if TYPE_CHECKING:
    from torchwhy.trace.model.trace import Trace

__all__ = ["module_times"]


def module_times(trace: Trace) -> Table:
    """Return the time per `nn.Module`, in order of the first call; per annotation if no Python frames were recorded.

    Returns:
        `path`: the modules around it and itself; `name`; `depth`; `line`: the program's own that calls it first;
        `calls`; `host_total_us` and `host_self_us`: with and without the modules it calls; `device_total_us` and
        `device_self_us`: likewise for the device work launched in it; `backward_host_us` and `backward_device_us`: of
        its operators' backward pass, and of the device work that launched.
    """
    found = trace.derived(modules)
    return Table(
        {
            "path": [module.path for module in found],
            "name": [module.name for module in found],
            "depth": np.array([module.depth for module in found], np.int64),
            "line": [module.line for module in found],
            "calls": np.array([module.calls for module in found], np.int64),
            "host_total_us": us([module.host_ns for module in found]),
            "host_self_us": us([module.host_self_ns for module in found]),
            "device_total_us": us([module.device_ns for module in found]),
            "device_self_us": us([module.device_self_ns for module in found]),
            "backward_host_us": us([module.backward_host_ns for module in found]),
            "backward_device_us": us([module.backward_device_ns for module in found]),
        }
    )
