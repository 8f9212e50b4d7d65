"""Measured peaks of devices in `pyproject.toml`, as `torchwhy experiment peaks` prints them:

[tool.torchwhy.device."NVIDIA H100 80GB HBM3"]    # the device's name, as in traces
bandwidth_gb_s = 2950.0                          # of its memory
pcie_generation = 5                              # of its bus to the host; may be left out
teraflops = { float32 = 51.2, bfloat16 = 690.0 } # by type of the inputs of matrix products
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from pathlib import Path
from typing import Any

from torchwhy.errors import ArgumentError, ArgumentTypeError
from torchwhy.pyproject import find_pyproject, read_tool_table
from torchwhy.spelling import did_you_mean
from torchwhy.trace.derived.device_peaks import device_name
from torchwhy.trace.model.trace import Trace
from torchwhy.trace.peaks import Peaks, peaks_for

__all__ = ["DTYPES", "peaks_as_toml", "peaks_of", "read_device_peaks"]

DTYPES = ("float64", "float32", "tf32", "bfloat16", "float16", "float8", "int8", "float4")
_KEYS = ("bandwidth_gb_s", "pcie_generation", "teraflops")


def read_device_peaks(path: Path) -> dict[str, Peaks]:
    """Return the measured peaks of each device in a file; `{}` if it has no devices.

    Raises:
        SettingsFileError: the file cannot be read, or is not TOML.
        ArgumentError: a key or data type is unknown, or a value is out of range.
        ArgumentTypeError: a value has the wrong type.
    """
    return {
        name: _peaks(f'[tool.torchwhy.device."{name}"] in {path}', table)
        for name, table in read_tool_table(path, "device").items()
    }


def peaks_of(trace: Trace, device: str | None = None) -> Peaks | None:
    """Return the peaks of a device from the nearest pyproject.toml; None: use its data sheet.

    Args:
        trace: a trace of the device.
        device: name of another device to compare with; None: the trace's device.

    Raises:
        ArgumentError: neither a data sheet nor the file has the named device; or as in `read_device_peaks`.
    """
    path = find_pyproject(Path.cwd())
    measured = read_device_peaks(path) if path else {}
    if device is None:
        return measured.get(device_name(trace)) if measured else None
    found = peaks_for(device, measured)
    if found is None:
        known = f" or one of {', '.join(measured)} ([tool.torchwhy.device])" if measured else ""
        raise ArgumentError(f"--device must be a GPU with a known data sheet, such as H100 PCIe{known}; got {device!r}")
    return found


def peaks_as_toml(name: str, peaks: Peaks) -> str:
    """Return the table of one device, as `read_device_peaks` reads it.

    >>> print(peaks_as_toml("cpu", Peaks(21.34, 0, {"float32": 0.2157})))
    [tool.torchwhy.device."cpu"]
    bandwidth_gb_s = 21.3
    teraflops = { float32 = 0.216 }
    """
    quoted = name.replace("\\", "\\\\").replace('"', '\\"')
    lines = [f'[tool.torchwhy.device."{quoted}"]', f"bandwidth_gb_s = {_number(peaks.bandwidth)}"]
    lines += [f"pcie_generation = {peaks.pcie}"] if peaks.pcie else []
    rates = ", ".join(f"{dtype} = {_number(rate)}" for dtype, rate in peaks.teraflops.items())
    return "\n".join([*lines, f"teraflops = {{ {rates} }}"])


def _peaks(where: str, table: object) -> Peaks:
    if not isinstance(table, Mapping):
        raise ArgumentTypeError(f"{where} must be a table, got {table!r}")
    for key in table:
        if key not in _KEYS:
            raise ArgumentError(f"{where}: unknown key {key!r}{did_you_mean(key, _KEYS)}")
    if "bandwidth_gb_s" not in table:
        raise ArgumentError(f"{where} lacks bandwidth_gb_s, the bandwidth of the device's memory in GB/s")
    generation = table.get("pcie_generation", 0)
    if not isinstance(generation, int) or isinstance(generation, bool):
        raise ArgumentTypeError(f"{where}: pcie_generation must be a whole number, got {generation!r}")
    if not 0 <= generation <= 9:
        raise ArgumentError(f"{where}: pcie_generation must lie in [0, 9], 0 for none, got {generation}")
    rates = table.get("teraflops", {})
    if not isinstance(rates, Mapping):
        raise ArgumentTypeError(f"{where}: teraflops must be a table of types and rates, got {rates!r}")
    for dtype in rates:
        if dtype not in DTYPES:
            raise ArgumentError(f"{where}: unknown type {dtype!r} in teraflops{did_you_mean(dtype, DTYPES)}")
    teraflops = {dtype: _rate(f"{where}: teraflops.{dtype}", rate) for dtype, rate in rates.items()}
    return Peaks(_rate(f"{where}: bandwidth_gb_s", table["bandwidth_gb_s"]), generation, teraflops, measured=True)


def _rate(name: str, value: Any) -> float:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise ArgumentTypeError(f"{name} must be a number, got {value!r}")
    if not (value > 0 and isfinite(value)):
        raise ArgumentError(f"{name} must be greater than 0 and finite, got {value}")
    return float(value)


def _number(value: float) -> str:
    """Three significant digits, never in powers of ten."""
    return f"{float(f'{value:.3g}'):g}" if value < 1e5 else f"{value:.0f}"
