"""The result of a count: frozen numbers with names, printed as a table, kept as JSON."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from torchfx.profiler.counters.counts_file import read_counts_file, write_counts_file
from torchfx.profiler.counters.metrics import COPY_KINDS, METRICS
from torchfx.profiler.counters.names import check_name
from torchfx.profiler.counters.records import Compilation, CopyTotal, GraphBreak, Sync
from torchfx.profiler.counters.table import table

__all__ = ["Counts"]


@dataclass(frozen=True)
class Counts:
    """What a stretch of a program did.

    Args:
        operators: calls by operator, `{"aten::mm": 2}`; native_calls: those outside PyTorch's namespaces.
        syncs: waits of the host for a device, each with its line. On the CPU there are none.
        copies: by kind, `{"HtoD": CopyTotal(times, bytes)}`; HtoH are copies within the host's memory.
        allocations, allocated_bytes: storages of tensors that operators returned, in bytes. Scratch memory inside an
            operator and memory that compiled code takes for itself are not among them.
        compilations, graph_breaks, recompiles: what `torch.compile` did during the count.
        kernel_launches: launches on CUDA and ROCm devices; None where they could not be counted, `notes` says why.
        dispatches: operators that Python called itself; None unless traced.
        notes: what limits these numbers. A number that is not known, as in counts read off a trace, is None.
            environment: where they were counted.

    >>> counts = Counts(operators={"aten::mm": 2, "aten::relu": 1})
    >>> counts["operators"], counts["aten::mm"], counts["syncs"]
    (3, 2, 0)
    """

    operators: dict[str, int] = field(default_factory=dict)
    native_calls: dict[str, int] = field(default_factory=dict)
    syncs: tuple[Sync, ...] | None = ()
    copies: dict[str, CopyTotal] | None = field(default_factory=dict)
    allocations: int | None = 0
    allocated_bytes: int | None = 0
    compilations: int = 0
    graph_breaks: tuple[GraphBreak, ...] = ()
    recompiles: tuple[Compilation, ...] = ()
    kernel_launches: int | None = 0
    dispatches: int | None = None
    notes: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)

    def metrics(self) -> dict[str, int | None]:
        """Return every metric by name; None is what was not counted."""
        unknown = CopyTotal(None, None)
        totals = {kind: unknown if self.copies is None else self.copies.get(kind, CopyTotal()) for kind in COPY_KINDS}
        values = {
            "operators": sum(self.operators.values()),
            "native_calls": sum(self.native_calls.values()),
            "syncs": None if self.syncs is None else sum(sync.times for sync in self.syncs),
            "copies": _sum(total.times for total in totals.values()),
            "copied_bytes": _sum(total.bytes for total in totals.values()),
            "graph_breaks": sum(found.times for found in self.graph_breaks),
            "recompiles": len(self.recompiles),
            **{f"copies_{kind.lower()}": total.times for kind, total in totals.items()},
            **{f"bytes_{kind.lower()}": total.bytes for kind, total in totals.items()},
        }
        return {name: values[name] if name in values else getattr(self, name) for name in METRICS}

    def __getitem__(self, name: str) -> int | None:
        """Return one metric, or the calls of one operator (`"aten::mm"`).

        Raises:
            ArgumentError: for a name that is neither.
        """
        check_name(name)
        return self.operators.get(name, 0) if "::" in name else self.metrics()[name]

    def __str__(self) -> str:
        """Return a short table."""
        return table(self)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, the content of `counts.json`: `schema` 1, `metrics`, and the details behind them."""
        return {"schema": 1, "metrics": self.metrics(), **asdict(self)}

    def save(self, path: str | Path) -> Path:
        """Write `counts.json` into a folder (a path without suffix is one), or a file of any name ending in .json.

        Raises:
            CountsFileError: if it cannot be written.
        """
        return write_counts_file(path, self.to_dict())

    @classmethod
    def load(cls, path: str | Path) -> Counts:
        """Read what `save` wrote: a file, or a folder with a `counts.json`.

        Raises:
            CountsFileError: if there is none, or it is no counts file.
        """
        return read_counts_file(path, cls)


def _sum(numbers: Iterable[int | None]) -> int | None:
    """Add up; the sum with something that is not known is not known."""
    known = list(numbers)
    return None if None in known else sum(number for number in known if number is not None)
