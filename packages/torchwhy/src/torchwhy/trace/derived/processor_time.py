"""How busy the machine was during a recording, as `torchwhy profile` notes it in the trace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeGuard

if TYPE_CHECKING:
    from torchwhy.trace.model.trace import Trace

__all__ = [
    "BUSY",
    "ProcessorTime",
    "collecting_us",
    "load_average",
    "processor_time",
    "threads_and_cores",
    "waited_share",
]

BUSY: Final = 0.1
"""Share of a recording that waits for a processor, from which the host's times say little."""

_NOTED: Final = "torchwhy_processor_time"


class ProcessorTime(NamedTuple):
    """The parts of the recorded thread's time.

    Attributes:
        wall_us: length of the recording.
        waited_us: how long of that the thread could have run, but other programs had the processors.
        load: the load average at its end; None where it isn't known.
        cores: how many processors the program may use.
    """

    wall_us: float
    waited_us: float
    load: float | None
    cores: int


def processor_time(trace: Trace) -> ProcessorTime | None:
    """Return what the file says; None for other recordings, and where the thread never waited."""
    noted = _noted(trace)
    wall, waited, load = (noted.get(name) for name in ("wall_us", "waited_us", "load"))
    _, cores = threads_and_cores(trace)
    if not (_is_number(wall) and _is_number(waited)):
        return None
    return ProcessorTime(wall, waited, load if _is_number(load) else None, cores)


def threads_and_cores(trace: Trace) -> tuple[int, int]:
    """Return how many threads an operator may use, and how many processors the program; 0 where that isn't known."""
    noted = _noted(trace)
    threads, cores = (value if isinstance(value := noted.get(name), int) else 0 for name in ("threads", "cores"))
    return threads, cores


def load_average(trace: Trace) -> float:
    """Return the machine's load average at the end of the recording; 0 where that isn't known."""
    load = _noted(trace).get("load")
    return load if _is_number(load) else 0.0


def collecting_us(trace: Trace) -> float | None:
    """Return the processor time of Python's labelled garbage collections, microseconds; None where it isn't known."""
    spent = _noted(trace).get("collecting_us")
    return spent if _is_number(spent) else None


def waited_share(trace: Trace) -> float:
    """Return for which part of the recording the thread waited for a processor; 0 where that isn't known."""
    spent = processor_time(trace)
    return min(spent.waited_us / spent.wall_us, 1.0) if spent else 0.0


def _noted(trace: Trace) -> dict[str, object]:
    written = trace.info.top.get(_NOTED)
    return written if isinstance(written, dict) else {}


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and value > 0
