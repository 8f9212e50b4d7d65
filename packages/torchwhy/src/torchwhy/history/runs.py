"""Measurements of a run: read from a trace, a run's folder, a folder of ranks, or the JSON of `torchwhy measure`."""

from __future__ import annotations

import platform
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from torchwhy.difference.steps import rounds_of
from torchwhy.errors import ArgumentError, TraceError
from torchwhy.loading.trace import load
from torchwhy.ranks.folder import find_traces, single_trace
from torchwhy.schema import UNDECODABLE

__all__ = ["STEP", "MeasuredRun", "read_runs"]

STEP: Final = "step"
"""The metric of times: of steps, or of calls that `torchwhy measure` timed; in microseconds."""

_HEAD: Final = 4096
_NUMBERED: Final = re.compile(r"-\d+$")


@dataclass(frozen=True)
class MeasuredRun:
    """A run's measurement of one metric.

    Attributes:
        name: of the program.
        metric: `STEP`, or a name in the run's `counts.json`.
        machine: where it ran.
        samples: the value of each step, at least one; microseconds where the metric is `STEP`.
        source: the path it was read from.
        torch: the version of PyTorch; "" where it isn't known.
    """

    name: str
    metric: str
    machine: str
    samples: tuple[float, ...]
    source: str
    torch: str = ""

    @property
    def value(self) -> float:
        """The median of the samples."""
        return float(np.median(self.samples))


def read_runs(path: Path, metric: str = STEP) -> tuple[MeasuredRun, ...]:
    """Return what a run measured: one measurement, of a comparison by `torchwhy measure` one for each statement.

    Of several ranks the one with the longest steps counts: the others wait for it. A first step that is cold is left
    out, and where the device sets the pace a step takes from the completion of the one before to its own, as in `diff`.

    Args:
        path: a trace, a folder that `torchwhy profile` wrote, a folder of ranks, or `torchwhy measure --format json`.
        metric: `STEP`, or a metric of the folder's `counts.json`.

    Raises:
        ArgumentError: the run has no such metric, or no steps.
        TraceError: it cannot be read.
    """
    if metric != STEP:
        return (_counted(path, metric),)
    timed = _timed(path)
    return timed or (_traced(path),)


def _traced(path: Path) -> MeasuredRun:
    alone = single_trace(path) if path.is_dir() else path
    files = (alone,) if alone else find_traces(path).traces
    found: tuple[float, ...] = ()
    machine = ""
    for file in files:
        trace = load(file)
        rounds = rounds_of(trace)
        if rounds.are_steps:
            times = (rounds.completions if rounds.lags else rounds.host) / 1000
            if not found or np.median(times) > np.median(found):
                found = tuple(float(time) for time in times)
                names = sorted({device.name for device in trace.info.devices if device.name}) if trace.has_gpu else []
                machine = " and ".join(names)
    if not found:
        raise ArgumentError(f"RUN must have steps, got {path}, in which none are marked and no repetition was found")
    around = _environment(path if path.is_dir() else path.parent)
    host = str(around.get("host") or platform.node())
    versions = around.get("versions")
    torch = str(versions.get("torch", "")) if isinstance(versions, dict) else ""
    named = ", ".join(filter(None, (host, machine)))
    return MeasuredRun(_program(path), STEP, named, found, str(path), torch)


def _timed(path: Path) -> tuple[MeasuredRun, ...]:
    """What `torchwhy measure` answered; none where the file is something else."""
    if path.is_dir():
        return ()
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
            if b'"schema"' not in head or b'"kind"' not in head:
                return ()
            content = msgspec.json.decode(head + file.read())
    except OSError as error:
        raise TraceError(f"cannot read {path}: {error.strerror or error}") from error
    except UNDECODABLE:
        return ()
    kind = content.get("kind") if isinstance(content, dict) else None
    if kind not in ("measurement", "comparison"):
        return ()
    try:
        parts = [content] if kind == "measurement" else content["measurements"]
        return tuple(_of_measurement(part, str(content.get("torch", "")), path) for part in parts)
    except (KeyError, TypeError, ValueError) as error:
        raise TraceError(f"{path} is no answer of `torchwhy measure --format json`: {error!r} is amiss") from error


def _of_measurement(part: dict[str, Any], torch: str, path: Path) -> MeasuredRun:
    samples = tuple(float(time_s) * 1e6 for time_s in part["times_s"])
    if not samples or not all(0 < sample < float("inf") for sample in samples):
        raise ValueError("times_s")
    machine = ", ".join([platform.node(), *part.get("devices", [])])
    return MeasuredRun(str(part["name"]), STEP, machine, samples, str(path), torch)


def _counted(path: Path, metric: str) -> MeasuredRun:
    file = path / "counts.json" if path.is_dir() else path
    try:
        content = msgspec.json.decode(file.read_bytes())
    except (OSError, *UNDECODABLE) as error:
        raise TraceError(f"cannot read {file}, which has the metric {metric!r}: {error}") from error
    metrics = content.get("metrics") if isinstance(content, dict) else None
    known = {name: value for name, value in (metrics or {}).items() if isinstance(value, int | float)}
    if metric not in known:
        raise ArgumentError(f"--metric must be {STEP} or one of {', '.join(known) or 'none'} in {file}, got {metric!r}")
    around = _environment(file.parent)
    host = str(around.get("host") or platform.node())
    return MeasuredRun(_program(path), metric, host, (float(known[metric]),), str(path))


def _environment(folder: Path) -> dict[str, Any]:
    """What `torchwhy profile` wrote about the machine; empty where it didn't."""
    file = folder / "environment.json"
    try:
        found = msgspec.json.decode(file.read_bytes()) if file.is_file() else {}
    except (OSError, *UNDECODABLE):
        return {}
    return found if isinstance(found, dict) else {}


def _program(path: Path) -> str:
    """The folder's name, or the file's, without the number that distinguishes runs of one name: "train" for train-2."""
    path = path.absolute()
    if not path.is_dir() and path.name.partition(".")[0] in ("trace", "counts"):
        path = path.parent
    return _NUMBERED.sub("", path.name.partition(".")[0]) or path.name
