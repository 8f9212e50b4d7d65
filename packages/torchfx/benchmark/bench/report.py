"""A benchmark's answer: rows of numbers and the machine they were measured on; its JSON is the source of all views."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from torchfx.errors import TorchFXError

__all__ = ["LatencyRow", "Refusal", "Report", "ReportError", "TargetRow", "ThresholdRow", "ThroughputRow", "write"]


class ReportError(TorchFXError):
    """A report cannot be read or written."""


@dataclass(frozen=True)
class ThroughputRow:
    """One contender on one signal.

    Attributes:
        contender: name, with the peer's in front where it is not this Python.
        device: "cpu" or "cuda".
        channels, duration_s: the signal's size.
        time_s, low_s, high_s: median and quartiles of one call, seconds.
        rounds, calls: turns taken, and calls whose mean is one turn.
        deviation: from SciPy in float64, relative to its peak; None for the plain copy.
        ns_per_sample: median time over channels times samples.
        gb_per_s: 8 bytes a sample (float32 read and written once) over the median time.
        of_copy: share of the bandwidth that a plain copy reached in the same rounds on the same device.
        speedup, speedup_low, speedup_high: baseline's time over this one's, round by round: median and quartiles.
    """

    contender: str
    device: str
    channels: int
    duration_s: float
    time_s: float
    low_s: float
    high_s: float
    rounds: int
    calls: int
    deviation: float | None
    ns_per_sample: float
    gb_per_s: float
    of_copy: float | None
    speedup: float | None
    speedup_low: float | None
    speedup_high: float | None


@dataclass(frozen=True)
class LatencyRow:
    """One contender at one block size.

    Attributes:
        contender, device, channels: what ran.
        block: samples per channel and call.
        calls: how many were timed.
        p50_us, p99_us, p999_us, max_us: time per call, microseconds: the real-time tail.
        deadline_us: how long the block lasts when it plays.
        deviation: from SciPy in float64, relative to its peak; None for what filters nothing.
        edges_us, counts: histogram of the times; counts[i] lie between edges_us[i] and edges_us[i + 1].
    """

    contender: str
    device: str
    channels: int
    block: int
    calls: int
    p50_us: float
    p99_us: float
    p999_us: float
    max_us: float
    deadline_us: float
    deviation: float | None
    edges_us: list[float] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class ThresholdRow:
    """One signal length, run in one piece and split along time.

    Attributes:
        channels, samples: the signal's size.
        whole_us, split_us: median time of a call, microseconds.
        gain, gain_low, gain_high: time in one piece over time when split: median and quartiles.
        dtype: of the samples.
    """

    channels: int
    samples: int
    whole_us: float
    split_us: float
    gain: float
    gain_low: float
    gain_high: float
    dtype: str = "float32"

    @property
    def kind(self) -> str:
        """The common properties of a curve's signals."""
        return f"{self.channels} channel{'s' if self.channels > 1 else ''}, {self.dtype}"


@dataclass(frozen=True)
class TargetRow:
    """One promised ratio.

    Attributes:
        claim: what is compared, in words.
        relation: ">=" for a speed-up, "<=" for a cost.
        target: the promise.
        ratio, low, high: what was measured: median and quartiles over the rounds.
        rounds: how many.
        deviation: from SciPy in float64, relative to its peak.
        time_s, other_s: median times of this library and of what it is compared with, seconds.
        passed: whether the median keeps the promise and the result is exact.
    """

    claim: str
    relation: str
    target: float
    ratio: float
    low: float
    high: float
    rounds: int
    deviation: float
    time_s: float
    other_s: float
    passed: bool


@dataclass(frozen=True)
class Refusal:
    """A contender that was not timed, and why: its result is wrong, or it cannot run."""

    contender: str
    device: str
    case: str
    reason: str


Row = ThroughputRow | LatencyRow | ThresholdRow | TargetRow

ROWS: dict[str, type[Row]] = {
    "api": ThroughputRow,
    "fir": ThroughputRow,
    "iir": ThroughputRow,
    "latency": LatencyRow,
    "threshold": ThresholdRow,
    "targets": TargetRow,
}


@dataclass(frozen=True)
class Report:
    """A suite's rows.

    Attributes:
        suite: the suite's name, a key of `ROWS`.
        title: what it measures.
        work: the chain, in words.
        baseline: the contender that speed-ups refer to, or what else the numbers refer to.
        hardware: see `bench.hardware`; "others" is the share of processor time other programs took meanwhile.
        rows: the numbers.
        refused: contenders that were not timed.
        notes: how to read the numbers.
    """

    schema: ClassVar[int] = 1

    suite: str
    title: str
    work: str
    baseline: str
    hardware: dict[str, Any]
    rows: Sequence[Row]
    refused: Sequence[Refusal] = ()
    notes: Sequence[str] = ()

    def to_json(self) -> str:
        """Return the report as indented JSON."""
        text = msgspec.json.encode({"schema": self.schema, **asdict(self)})
        return msgspec.json.format(text).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> Report:
        """Read a report back.

        Raises:
            ReportError: it is not one, or of another schema.
        """
        try:
            data = msgspec.json.decode(text, type=dict[str, Any])
            if data.pop("schema") != cls.schema:
                raise ReportError(f"the report's schema must be {cls.schema}")
            data["rows"] = msgspec.convert(data["rows"], list[Any])
            data["rows"] = [msgspec.convert(row, ROWS[data["suite"]]) for row in data["rows"]]
            data["refused"] = msgspec.convert(data["refused"], list[Refusal])
            return cls(**data)
        except (msgspec.MsgspecError, KeyError, TypeError) as error:
            raise ReportError(f"this is no benchmark report: {error}") from error

    def to_csv(self) -> str:
        """Return the rows as CSV with a header; histograms are left to the JSON."""
        columns = [each.name for each in fields(ROWS[self.suite]) if each.name not in {"edges_us", "counts"}]
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([getattr(row, name) for name in columns] for row in self.rows)
        return text.getvalue()

    def passed(self) -> bool:
        """Whether every claim was checked and every target is met."""
        return not self.refused and all(not isinstance(row, TargetRow) or row.passed for row in self.rows)


def write(path: Path, text: str) -> None:
    """Write a view of a report.

    Raises:
        ReportError: the file cannot be written.
    """
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ReportError(f"cannot write {path}: {error.strerror}") from error
