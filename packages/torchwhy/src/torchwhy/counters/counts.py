"""The result of a count: named numbers that print as a table and save as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from torchwhy.counters.counts_file import read_counts_file, write_counts_file
from torchwhy.counters.metrics import COPY_KINDS, METRICS, check_name
from torchwhy.counters.table import Row, few, table
from torchwhy.schema import SCHEMA
from torchwhy.wording import enumeration, size_text

__all__ = ["Compilation", "CopyTotal", "Counts", "GraphBreak", "Sync"]

_BY_OPERATOR = ("operators", "native_calls")
_ALWAYS = ("operators", "kernel_launches", "syncs", "copies", "allocations", "graph_breaks", "recompiles")
_IF_ANY = ("native_calls", "dispatches", "flops", "compilations")


@dataclass(frozen=True)
class Sync:
    """A place where the host waited for a device, and the number of waits.

    Args:
        operator: the operator or function that waited, `aten::_local_scalar_dense` for `.item()`.
        where: the line of the program that called it, `file.py:12 in step`.
        times: number of waits.
    """

    operator: str
    where: str
    times: int


@dataclass(frozen=True)
class CopyTotal:
    """All copies of one kind: their number and bytes, None if unknown."""

    times: int | None = 0
    bytes: int | None = 0


@dataclass(frozen=True)
class GraphBreak:
    """A reason for graph breaks of `torch.compile`, and their number while compiling."""

    reason: str
    where: str
    times: int


@dataclass(frozen=True)
class Compilation:
    """A recompilation by `torch.compile`.

    Args:
        function: the name of the compiled function.
        where: `file.py:12`, its first line.
        reason: the failed guard, in the words of `torch._dynamo`.
    """

    function: str
    where: str
    reason: str


@dataclass(frozen=True, repr=False)
class Counts:
    """Counts of a block of code.

    Args:
        operators: calls by operator, `{"aten::mm": 2}`; native_calls: those outside PyTorch's namespaces.
        lines: the program lines of these calls and copies, `{"aten::mm": {"train.py:12 in step": 2}}`, if known.
        syncs: waits of the host for a device, each with its line. Empty on the CPU.
        copies: copies by kind, `{"HtoD": CopyTotal(times, bytes)}`; HtoH are copies within host memory.
        allocations, allocated_bytes: storages of tensors that operators returned, and their bytes. Scratch memory
            inside operators and memory that compiled code allocates are not included.
        flops: floating-point operations by operator, for the operators of `torch.utils.flop_counter`: matrix products,
            convolutions, attention; without compiled code.
        compilations, graph_breaks, recompiles: of `torch.compile` during the count.
        compiled_before: earlier compilations; None if unknown.
        kernel_launches: launches on CUDA and ROCm devices; None if they could not be counted (`notes` has the reason).
        dispatches: operators that Python called directly; None without a trace.
        notes: limitations of these numbers. Unknown numbers, as in counts from a trace, are None. environment: the
            environment of the count.

    >>> counts = Counts(operators={"aten::mm": 2, "aten::relu": 1})
    >>> counts["operators"], counts["aten::mm"], counts["syncs"]
    (3, 2, 0)
    """

    operators: dict[str, int] = field(default_factory=dict)
    native_calls: dict[str, int] = field(default_factory=dict)
    lines: dict[str, dict[str, int]] = field(default_factory=dict)
    syncs: tuple[Sync, ...] | None = ()
    copies: dict[str, CopyTotal] | None = field(default_factory=dict)
    allocations: int | None = 0
    allocated_bytes: int | None = 0
    flops: dict[str, int] | None = field(default_factory=dict)
    compilations: int = 0
    compiled_before: int | None = None
    graph_breaks: tuple[GraphBreak, ...] = ()
    recompiles: tuple[Compilation, ...] = ()
    kernel_launches: int | None = 0
    dispatches: int | None = None
    notes: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)

    def metrics(self) -> dict[str, int | None]:
        """Return every metric by name; None if it was not counted."""
        unknown = CopyTotal(None, None)
        totals = {kind: unknown if self.copies is None else self.copies.get(kind, CopyTotal()) for kind in COPY_KINDS}
        values = {
            "operators": sum(self.operators.values()),
            "native_calls": sum(self.native_calls.values()),
            "syncs": None if self.syncs is None else sum(sync.times for sync in self.syncs),
            "copies": _sum(total.times for total in totals.values()),
            "copied_bytes": _sum(total.bytes for total in totals.values()),
            "flops": None if self.flops is None else sum(self.flops.values()),
            "graph_breaks": sum(found.times for found in self.graph_breaks),
            "recompiles": len(self.recompiles),
            **{f"copies_{kind.lower()}": total.times for kind, total in totals.items()},
            **{f"bytes_{kind.lower()}": total.bytes for kind, total in totals.items()},
        }
        return {name: values[name] if name in values else getattr(self, name) for name in METRICS}

    def __getitem__(self, name: str) -> int | None:
        """Return one metric, or the calls of one operator (`"aten::mm"`).

        Raises:
            ArgumentError: the name is neither a metric nor an operator.
        """
        check_name(name)
        return self.operators.get(name, 0) if "::" in name else self.metrics()[name]

    def parts(self, name: str) -> list[Row]:
        """Return the parts of a metric or of an operator's calls, largest first; empty if unknown.

        >>> Counts(operators={"aten::mm": 2}, lines={"aten::mm": {"train.py:12 in step": 2}}).parts("operators")
        [Row(label='aten::mm', number='2', text='train.py:12 in step')]
        """
        if "::" in name:
            return [Row("", str(times), line) for line, times in _largest(self.lines.get(name, {}))]
        if name in _BY_OPERATOR:
            calls: dict[str, int] = getattr(self, name)
            return [Row(key, str(times), self._main_lines(key)) for key, times in _largest(calls)]
        if name.startswith(("copies", "copied_bytes", "bytes_")):
            return [
                Row(kind, str(total.times), _joined(_size(total.bytes), self._main_lines(kind)))
                for kind, total in sorted((self.copies or {}).items())
                if "_" not in name or name in ("copied_bytes", f"copies_{kind.lower()}", f"bytes_{kind.lower()}")
            ]
        if name == "flops":
            return [Row(key, str(number), self._main_lines(key)) for key, number in _largest(self.flops or {})]
        if name == "syncs":
            found = sorted(self.syncs or (), key=lambda sync: -sync.times)
            return [Row(sync.operator, str(sync.times), sync.where) for sync in found]
        if name == "graph_breaks":
            return [Row("", str(found.times), _joined(found.reason, found.where)) for found in self.graph_breaks]
        if name == "recompiles":
            return [Row(found.function, "1", _joined(found.reason, found.where)) for found in self.recompiles]
        return []

    def _rows(self) -> Iterator[Row]:
        """Yield a row for each metric that says something, and below it what it is made of."""
        for name, value in self.metrics().items():
            if name in _ALWAYS or (value and name in _IF_ANY):
                yield Row(name, "-" if value is None else str(value), self._remark(name) if value else "")
                parts = [part._replace(text="") if name in _BY_OPERATOR else part for part in self.parts(name)]
                yield from (part._replace(label=f"    {part.label}".rstrip()) for part in few(parts))

    def _remark(self, name: str) -> str:
        if name == "operators":  # the profiler's key_averages() has both
            return "below autograd; a recipe such as aten::linear counts as what it calls"
        return size_text(self.allocated_bytes or 0) if name == "allocations" else ""

    def _main_lines(self, key: str) -> str:
        """Return the lines of an operator or a kind of copy, the first two by number."""
        lines = [line for line, _ in _largest(self.lines.get(key, {}))]
        return enumeration([*lines[:2], *([f"{len(lines) - 2} more"] if len(lines) > 2 else [])])

    def __str__(self) -> str:
        """Return a short table."""
        return table(self._rows(), self.notes)

    __repr__ = __str__

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, the content of `counts.json`: `schema` 1, `metrics`, and their details."""
        return {"schema": SCHEMA, "metrics": self.metrics(), **asdict(self)}

    def save(self, path: str | Path) -> Path:
        """Write `counts.json` into a folder (a path without a suffix), or a file whose name ends in .json.

        Raises:
            CountsFileError: the file cannot be written.
        """
        return write_counts_file(path, self.to_dict())

    @classmethod
    def load(cls, path: str | Path) -> Counts:
        """Read saved counts: a file, or a folder with a `counts.json`.

        Raises:
            CountsFileError: the file does not exist or has no counts.
        """
        return read_counts_file(path, cls)


def _largest(times: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(times.items(), key=lambda item: (-item[1], item[0]))


def _size(size: int | None) -> str:
    return "" if size is None else size_text(size)


def _joined(text: str, where: str) -> str:
    return f"{text} ({where})" if text and where else text or where


def _sum(numbers: Iterable[int | None]) -> int | None:
    """Add up; the sum with something that is not known is not known."""
    known = list(numbers)
    return None if None in known else sum(number for number in known if number is not None)
