"""Clock, power and temperature of NVIDIA's GPUs while they are recorded, read from NVML every few milliseconds.

The library comes with the driver. Functions and constants: NVML API Reference Guide, "Device Queries" and
"Clocks event reasons".
"""

from __future__ import annotations

import ctypes
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from torchwhy.capture.containment import contained
from torchwhy.trace.meaning.counters import (
    CLOCK,
    HEAT_LIMITS,
    MEMORY_CLOCK,
    POWER,
    POWER_LIMIT,
    POWER_LIMITS,
    TEMPERATURE,
)

__all__ = ["PowerSampler", "nvml", "uuids"]

EVERY_S: Final = 0.02
"""Between samples: drivers renew most of these values every 20 to 100 ms."""

MOST: Final = 100_000  # samples of all devices; the oldest go

_SM_CLOCK: Final = 1
_MEMORY_CLOCK: Final = 2
_BY_POWER: Final = 0x4 | 0x80
"""`nvmlClocksEventReasonSwPowerCap`, `nvmlClocksThrottleReasonHwPowerBrakeSlowdown`."""
_BY_HEAT: Final = 0x20 | 0x40
"""`nvmlClocksEventReasonSwThermalSlowdown`, `nvmlClocksThrottleReasonHwThermalSlowdown`."""


def nvml() -> Any:
    """Return NVML, ready to be asked; None where there is no such driver."""
    try:
        library = ctypes.CDLL("nvml.dll" if sys.platform == "win32" else "libnvidia-ml.so.1")
        return None if library.nvmlInit_v2() else library
    except (OSError, AttributeError):
        return None


def uuids() -> dict[int, str]:
    """Return PyTorch's number and NVML's name of each GPU that the program may use."""
    import torch

    found = {}
    for number in range(torch.cuda.device_count()):
        uuid = getattr(torch.cuda.get_device_properties(number), "uuid", None)
        if uuid is not None:
            found[number] = f"GPU-{uuid}"
    return found


class PowerSampler:
    """Looks at devices from another thread, until `end`.

    Args:
        library: what `nvml` returns.
        devices: names by number.
        clock: nanoseconds since 1970.
    """

    def __init__(self, library: Any, devices: Mapping[int, str], clock: Callable[[], int] = time.time_ns) -> None:
        """Begin."""
        self._library, self._clock = library, clock
        self._handles: dict[int, ctypes.c_void_p] = {}
        for number, name in devices.items():
            handle = ctypes.c_void_p()
            if not library.nvmlDeviceGetHandleByUUID(name.encode(), ctypes.byref(handle)):
                self._handles[number] = handle
        self._taken: deque[tuple[int, int, dict[str, float]]] = deque(maxlen=MOST)
        self._trouble: Exception | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=contained(self._watch, self._fail), name="torchwhy-power", daemon=True)
        self._thread.start()

    @property
    def devices(self) -> tuple[int, ...]:
        """Numbers of those it can look at."""
        return tuple(self._handles)

    def end(self) -> None:
        """Stop; raise what went wrong meanwhile."""
        self._ended.set()
        self._thread.join()
        if self._trouble is not None:
            raise self._trouble

    def events(self, start_ns: int, end_ns: int, base_ns: int) -> Iterator[dict[str, Any]]:
        """Yield what was read in a stretch of time, as Kineto writes hardware counters.

        Args:
            start_ns, end_ns: nanoseconds since 1970.
            base_ns: what times in the trace count from.
        """
        for at, device, values in list(self._taken):
            if not start_ns <= at <= end_ns:
                continue
            for name, value in values.items():
                yield {
                    "ph": "C",
                    "cat": "hardware_counters",
                    "name": name,
                    "pid": f"GPU {device} Counters",
                    "tid": 0,
                    "ts": (at - base_ns) / 1000,
                    "args": {"": value},
                }

    def _fail(self, error: Exception) -> None:
        self._trouble = error

    def _watch(self) -> None:
        while True:
            for device, handle in self._handles.items():
                at = self._clock()
                values = dict(self._read(handle))
                if values:
                    self._taken.append((at, device, values))
            if self._ended.wait(EVERY_S):
                return

    def _read(self, handle: ctypes.c_void_p) -> Iterator[tuple[str, float]]:
        """The values that the device reports; unsupported ones are left out."""
        library = self._library
        number, reasons = ctypes.c_uint(), ctypes.c_ulonglong()
        for name, call, arguments, factor in (
            (CLOCK, "nvmlDeviceGetClockInfo", (_SM_CLOCK,), 1.0),
            (MEMORY_CLOCK, "nvmlDeviceGetClockInfo", (_MEMORY_CLOCK,), 1.0),
            (POWER, "nvmlDeviceGetPowerUsage", (), 1e-3),
            (POWER_LIMIT, "nvmlDeviceGetEnforcedPowerLimit", (), 1e-3),
            (TEMPERATURE, "nvmlDeviceGetTemperature", (0,), 1.0),
        ):
            if not getattr(library, call)(handle, *arguments, ctypes.byref(number)):
                yield name, number.value * factor
        if not library.nvmlDeviceGetCurrentClocksThrottleReasons(handle, ctypes.byref(reasons)):
            yield POWER_LIMITS, float(bool(reasons.value & _BY_POWER))
            yield HEAT_LIMITS, float(bool(reasons.value & _BY_HEAT))
