"""A trace with its tables: `torchwhy.load`."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from torchwhy.finding import Finding
from torchwhy.loading.read import read_trace
from torchwhy.rules.catalogue import chosen_rules
from torchwhy.rules.diagnose import diagnose
from torchwhy.trace.file.source import Source
from torchwhy.trace.model.trace import Trace
from torchwhy.trace.tables.arguments import arguments
from torchwhy.trace.tables.collectives import collectives
from torchwhy.trace.tables.compilation import compilation
from torchwhy.trace.tables.copies import copies
from torchwhy.trace.tables.counters import counters
from torchwhy.trace.tables.critical_path import critical_path
from torchwhy.trace.tables.event_table import event_table
from torchwhy.trace.tables.idle import idle_table
from torchwhy.trace.tables.kernels import kernels
from torchwhy.trace.tables.kinds import kinds
from torchwhy.trace.tables.label_times import label_times
from torchwhy.trace.tables.launches import launches
from torchwhy.trace.tables.memory import memory
from torchwhy.trace.tables.module_times import module_times
from torchwhy.trace.tables.ops import ops
from torchwhy.trace.tables.overlap import overlap
from torchwhy.trace.tables.phases import phases
from torchwhy.trace.tables.sql import RELATIONS, sql
from torchwhy.trace.tables.stacks import stacks
from torchwhy.trace.tables.step_times import step_times
from torchwhy.trace.tables.table import Table
from torchwhy.wording import counted

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["TABLES", "LoadedTrace", "load"]

TABLES: Final = tuple(name for name in RELATIONS if name != "events")
"""Methods of `LoadedTrace` that answer with a table and need no argument."""


class LoadedTrace(Trace):
    """A loaded trace, with tables, SQL and findings."""

    ops = ops
    kernels = kernels
    kinds = kinds
    steps = step_times
    phases = phases
    counters = counters
    idle = idle_table
    launches = launches
    copies = copies
    memory = memory
    modules = module_times
    labels = label_times
    compile = compilation
    overlap = overlap
    critical_path = critical_path
    collectives = collectives
    stacks = stacks
    arguments = arguments
    sql = sql
    to_table = event_table

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0) -> Table:
        """PyTorch's name of `ops`: `print(trace.key_averages().table(sort_by="cpu_time_total"))`."""
        return self.ops(by_shape=group_by_input_shape, by_stack=group_by_stack_n)

    def export_stacks(self, path: str | os.PathLike[str], metric: str = "self_cpu_time_total") -> None:
        """Write `stacks(metric)` for flame graph tools: a call path and microseconds on each line.

        Raises:
            ArgumentError: the metric is unknown.
            OSError: the file cannot be written.
        """
        text = "".join(f"{row['stack']} {row['time_us']:.0f}\n" for row in self.stacks(metric))
        Path(path).write_text(text, encoding="utf-8", errors="replace")

    def to_pandas(self) -> pd.DataFrame:
        """The events as a DataFrame, with the columns of `to_table`. Needs pandas."""
        return self.to_table().to_pandas()

    def to_arrow(self) -> Any:
        """The events as a pyarrow.Table, with the columns of `to_table`. Needs pyarrow."""
        return self.to_table().to_arrow()

    def diagnose(
        self,
        select: str | Iterable[str] = (),
        ignore: str | Iterable[str] = (),
        thresholds: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> tuple[Finding, ...]:
        """Return the findings of the rules, sorted by time at stake.

        Args:
            select: codes, names or families of rules, as in "B9,C" or ["B9", "C"]; empty: all.
            ignore: rules to skip.
            thresholds: values by rule, then by name, as in {"dataloader-wait": {"share": 0.1}}.

        Raises:
            ArgumentError: a rule or threshold is unknown.
            ArgumentTypeError: a threshold is not a number.
        """
        diagnosis = diagnose(self, rules=chosen_rules(select, ignore), thresholds=thresholds)
        for code, why in diagnosis.failed.items():
            warnings.warn(f"rule {code} could not look: {why}", RuntimeWarning, stacklevel=2)
        return diagnosis.findings

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.file}: {counted(len(self), 'event')}; .ops(), .diagnose(), .sql()>"

    def _repr_html_(self) -> str:
        """Return the report page in a frame and what `torchwhy explain` says, for notebooks."""
        import torchwhy  # the package's face: what shows a trace knows this module

        return str(torchwhy.trace_in_notebook(self))


def load(
    source: Source,
    *,
    window: tuple[float, float] | None = None,
    steps: str | int | Iterable[int] | None = None,
    categories: Iterable[str] | None = None,
    columns: Mapping[str, str] | Iterable[str] | None = None,
    capture: str | os.PathLike[str] | None = None,
    compile_log: str | os.PathLike[str] | None = None,
) -> LoadedTrace:
    """Read a trace that `torch.profiler` wrote, or a part of it.

        trace = torchwhy.load("trace.json.gz", steps="5-7")

    Args:
        source: a path, "-" for standard input, or an open binary file; plain or gzip. For a folder, such as the folder
            of a run, the trace in it is read; for a folder with several ranks, use `load_job`.
        window: a time range, (start, end) in microseconds from the beginning of the trace. Only events that overlap it
            are kept, with the device work launched in it and the launches of its device work. Incomplete steps are not
            steps.
        steps: keep only these recorded steps with their device work: "5-7", (5, 7), 5, or a list of numbers.
        categories: keep only events of these categories, by the file's names ("cpu_op", "kernel") or
            version-independent names ("operator", "annotation", "runtime", "python", "kernel", "memcpy", "memset",
            ...).
        columns: further arguments of events to keep, by name, with their type: "int", "float" or "text" (the default).
        capture: a trace of the capture of the CUDA or HIP graphs that this trace replays, or of the same program
            without graphs; or a folder with several. The work of each graph is matched by the sequence of kernel names,
            and by grids and blocks if both are recorded. Matched work gets its operator, shapes, types, modules and
            Python frames; `captured` reports the matched share.
        compile_log: PyTorch's log from TORCH_TRACE, a file or a folder: rules then report the reasons of graph breaks
            and the failed guards. None reads `compile.log` in the run's folder, if it exists.

    Raises:
        TraceError: the source cannot be read, is not a trace, or is a folder with several; `capture` does not match any
            of its graphs; or `compile_log` is not such a log.
        ArgumentError, ArgumentTypeError: an argument is invalid, or the trace does not have the step or category.
    """
    return read_trace(
        source,
        LoadedTrace,
        window=window,
        steps=steps,
        categories=categories,
        columns=columns,
        capture=capture,
        compile_log=compile_log,
    )
