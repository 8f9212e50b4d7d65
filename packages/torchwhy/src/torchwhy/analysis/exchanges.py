"""Communication within the window, by device, kind and library."""

from __future__ import annotations

import msgspec
import numpy as np

from torchwhy.trace.derived.collectives import own_collectives, waiting_at_least
from torchwhy.trace.derived.cpu_communication import operators_computing
from torchwhy.trace.meaning.communication import DEVICE_COLLECTIVE
from torchwhy.trace.model.device import devices_of
from torchwhy.trace.model.trace import Trace

__all__ = ["ExchangeTimes", "exchange_times"]


class ExchangeTimes(msgspec.Struct, frozen=True):
    """The exchanges of one kind by one library on one device; times are unions, microseconds of the window.

    Attributes:
        device: its number; -1 for exchanges through the host.
        name: "all_reduce", "all_gather", ...
        library: "NCCL", "DeepEP", ..., or "".
        count: how many.
        time_us: their time, waiting for other ranks included.
        hidden_us: the part during which the device computes as well.
        exposed_us: the part during which it doesn't.
        waiting_us: the part of the sum of their times that is certainly waiting; see `waiting_at_least`.
        median_bytes: of one; None where the trace doesn't show it.
    """

    device: int
    name: str
    library: str
    count: int
    time_us: float
    hidden_us: float
    exposed_us: float
    waiting_us: float
    median_bytes: int | None


def exchange_times(trace: Trace) -> tuple[ExchangeTimes, ...]:
    """Return the communication of the window, the longest exposed first.

    A label of a device's library is only the launch: without the kernel the exchange's length is unknown.
    """
    launches = trace.events.of(DEVICE_COLLECTIVE)
    found = [one for one in trace.derived(own_collectives) if one.row not in launches]
    if not found:
        return ()
    rows = np.array([one.row for one in found], np.int32)
    waiting = waiting_at_least(found)
    device = devices_of(trace.events, rows) if trace.has_gpu else np.full(len(rows), -1, np.int64)
    computing = {gpu.device: gpu.compute for gpu in trace.gpus} or {-1: trace.derived(operators_computing)}
    keys = [(number, one.name, one.library) for number, one in zip(device.tolist(), found, strict=True)]
    result = []
    for key in dict.fromkeys(keys):
        mine = np.array([one == key for one in keys])
        spent = trace.when(rows[mine])
        exposed = spent - computing[key[0]] if key[0] in computing else spent
        sizes = [one.bytes for one, chosen in zip(found, mine.tolist(), strict=True) if chosen and one.bytes > 0]
        result.append(
            ExchangeTimes(
                *key,
                int(mine.sum()),
                spent.total / 1000,
                (spent.total - exposed.total) / 1000,
                exposed.total / 1000,
                int(waiting[mine].sum()) / 1000,
                int(np.median(sizes)) if sizes else None,
            )
        )
    return tuple(sorted(result, key=lambda one: -one.exposed_us))
