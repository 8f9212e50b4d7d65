"""Whether a call is bound by its overhead or by its arithmetic.

On an accelerator the host prepares and launches, the device works: the share is the device's time over the longer of
the two. On the CPU both happen in one call, so overhead is what the same call costs on the smallest input; fastest runs
are compared, since a busy machine adds waiting to both, and not evenly.
"""

from __future__ import annotations

from torchwhy.timing import Measurement

__all__ = ["COMPUTE", "OVERHEAD", "UNDECIDED", "busy", "regime", "share_of_device", "share_over_floor"]

OVERHEAD = 0.5  # below this share of work, more than half the time is overhead
COMPUTE = 0.9
UNDECIDED = "undecided"


def share_of_device(host_s: float, device_s: float) -> float:
    """Return the share of a step in which the device works, if steps follow each other without waiting.

    >>> share_of_device(host_s=70e-6, device_s=7e-6), share_of_device(host_s=70e-6, device_s=600e-6)
    (0.1, 1.0)
    """
    return min(1.0, device_s / host_s) if host_s > 0 else 1.0


def share_over_floor(time_s: float, floor_s: float) -> float:
    """Return the share of a call beyond what the same call costs on the smallest input.

    >>> share_over_floor(time_s=10.0, floor_s=4.0), share_over_floor(time_s=3.0, floor_s=4.0)
    (0.6, 0.0)
    """
    return max(0.0, 1 - floor_s / time_s) if time_s > 0 else 0.0


def regime(work_share: float) -> str:
    """Name what limits a call whose arithmetic takes `work_share` of its time.

    >>> regime(0.1), regime(0.7), regime(0.95)
    ('overhead-bound', 'mixed', 'compute-bound')
    """
    return "overhead-bound" if work_share < OVERHEAD else "compute-bound" if work_share >= COMPUTE else "mixed"


def busy(*measurements: Measurement) -> bool:
    """Return whether others kept the processors from one of the measurements; its times then are theirs, too.

    >>> busy(Measurement("f", (1.0,)))
    False
    """
    return any(warning.code == "busy-machine" for m in measurements for warning in m.warnings)
