"""Which kernels exchange data between ranks: by their names, and where those may mean other work, by what they do."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Final

import numpy as np

from torchwhy.trace.file.columns import Flags, Int32, numbered_together
from torchwhy.trace.meaning.communication import (
    COMMUNICATION_KERNEL,
    EXCHANGE,
    PERHAPS_COMMUNICATION,
    PERHAPS_WITHIN_A_CALL,
)
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.meaning.runtime import COOPERATIVE_LAUNCH
from torchwhy.trace.model.device import devices_of, streams_of
from torchwhy.trace.model.events import Events, parse_list

if TYPE_CHECKING:
    from torchwhy.trace.model.info import Info
    from torchwhy.trace.model.links import Links
    from torchwhy.trace.model.tree import Tree

__all__ = ["exchanging_kernels"]

_MULTIPROCESSORS: Final = 132
"""Multiprocessors of a device that the file doesn't describe: a large device of 2022."""

_SPREAD: Final = 5.0
"""Kernels that wait for other ranks take very different times: the 90th percentile by the 10th of equal launches."""

_ENOUGH: Final = 5
"""Fewer launches of a kernel do not show how its times differ."""


def exchanging_kernels(events: Events, links: Links, calls: Tree, info: Info) -> Int32:
    """Return the rows of the kernels that exchange data between ranks.

    A name that leaves it open counts where an operator that exchanges data launches the kernel. It counts in a program
    of several ranks, too, if the kernel occupies few multiprocessors, as one must that waits for others, and does so on
    a stream without any kernel that computes, or in a cooperative launch, or for very different times.
    """
    kernels = events.rows(Kind.KERNEL)
    named = events.are(COMMUNICATION_KERNEL, kernels)
    perhaps = events.are(PERHAPS_COMMUNICATION, kernels) & ~named
    within = perhaps | (events.are(PERHAPS_WITHIN_A_CALL, kernels) & ~named)
    if not within.any():
        return kernels[named]
    exchanging = named.copy()
    exchanging[within] = _called(events, links, calls, kernels[within])
    if _several_ranks(events, info, exchanging):
        exchanging |= _behaving(events, links, info, kernels, perhaps & ~exchanging, exchanging)
    found: Int32 = kernels[exchanging]
    return found


def _called(events: Events, links: Links, calls: Tree, kernels: Int32) -> Flags:
    """Which kernels an operator or a label of an exchange launches."""
    launches = links.of(kernels)
    found = np.zeros(len(kernels), np.bool_)
    exchanges = set(events.of(EXCHANGE).tolist())
    if not exchanges:
        return found
    for i in np.flatnonzero(launches >= 0).tolist():
        found[i] = any(above in exchanges for above in calls.ancestors(int(launches[i])))
    return found


def _several_ranks(events: Events, info: Info, exchanging: Flags) -> bool:
    ranks = info.world_size
    if ranks is not None:
        return ranks > 1
    return bool(exchanging.any()) or events.any_of(EXCHANGE)


def _behaving(events: Events, links: Links, info: Info, kernels: Int32, perhaps: Flags, exchanging: Flags) -> Flags:
    """Which kernels behave as those that wait for other ranks; all launches of one name are judged together."""
    _, lane = numbered_together(devices_of(events, kernels), streams_of(events, kernels))
    computing = np.unique(lane[~perhaps & ~exchanging])
    found = np.zeros(len(kernels), np.bool_)
    for name in np.unique(events.name[kernels[perhaps]]).tolist():
        mine = perhaps & (events.name[kernels] == name)
        rows = kernels[mine]
        blocks = np.array([_blocks(events, row) for row in rows.tolist()])
        if not 0 < blocks.max() <= _multiprocessors(info):
            continue
        apart = not np.isin(lane[mine], computing).any()
        found[mine] = apart or _cooperative(events, links, rows) or _spread(events, rows, blocks)
    return found


def _cooperative(events: Events, links: Links, rows: Int32) -> bool:
    launches = links.of(rows)
    return bool((launches >= 0).all() and events.are(COOPERATIVE_LAUNCH, launches).all())


def _spread(events: Events, rows: Int32, blocks: np.ndarray[tuple[int], np.dtype[np.int64]]) -> bool:
    equal = events.dur[rows[blocks == np.bincount(blocks).argmax()]]
    if len(equal) < _ENOUGH:
        return False
    low, high = np.quantile(equal, (0.1, 0.9))
    return bool(high >= _SPREAD * max(low, 1.0))


def _blocks(events: Events, row: int) -> int:
    """How many blocks a kernel was launched with; 0 where the trace doesn't show it."""
    sizes = [size for size in parse_list(events.text("grid", row)) or [] if isinstance(size, int)]
    return prod(sizes) if sizes else 0


def _multiprocessors(info: Info) -> int:
    return max((device.multiprocessors for device in info.devices), default=0) or _MULTIPROCESSORS
