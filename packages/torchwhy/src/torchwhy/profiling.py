"""`with profile(...) as p:` around a loop, `p.step()` at the end of each turn; at the end, what is slow and why."""

from __future__ import annotations

import gzip
import os
import shutil
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from torchwhy.capture import Capture
from torchwhy.capture import profile as capture_only
from torchwhy.errors import TorchWhyError
from torchwhy.finding import Finding
from torchwhy.loading.trace import LoadedTrace, load
from torchwhy.notebook import LARGEST_FRAME, framed
from torchwhy.present.html import escaped
from torchwhy.run_analysis import read_back
from torchwhy.trace.tables.table import Table

__all__ = ["profile"]


class profile(capture_only):  # noqa: N801  (spelled as torch.profiler.profile is)
    """Record some steps of a loop with `torch.profiler`, and write a folder that says what is slow and why.

    Without any `p.step()` the whole block is recorded; of very many small operators only windows of it, which make it
    about a tenth slower, the one with most events first. With steps, the first ones run unprofiled, as do those after
    the last window: their time is the baseline that the profiler's own cost is reported against; only the very first
    step is recorded and thrown away, until it is known that there are steps. Nothing that goes wrong with profiling
    stops the program; a `ProfileWarning` reports it at the end of the block.

    Args:
        path: the folder to write; if something is in it, `path-2`, `path-3`, ... Under torchrun each rank writes
            `path/rank0` and so on. It appears when it is complete; `findings.json` follows a moment later.
        wait: steps that run unprofiled before each window, >= 0.
        warmup: steps under the profiler that are dropped, >= 0.
        active: steps recorded, >= 1. None records 3 and then more until their median is known (its interval is less
            than 5 % wide), they take 2 s, or they are 20; in several windows, or several processes, just 3.
        repeat: number of windows, >= 0. 0 is no end: windows are recorded until they hold 200,000 events.
        shapes: record the sizes of the operators' inputs.
        memory: record every allocation; adds `memory.json`.
        stacks: record Python stacks; adds a table by stack and folded stacks. None records them where a step makes so
            few calls that they make it less than 5 % longer, and 10,000 at most, as counted in the last step before
            warm-up.
        flops: estimate floating point operations.
        modules: record the module hierarchy where TorchScript knows it.
        cuda: record the GPU; None records it where there is one.
        sync_events: record when the CPU waits for the GPU, and streams for each other.
        power: read clock, power and temperature of NVIDIA's GPUs every 20 ms; they become counters of the trace.
        tensorboard: also write what TensorBoard's profiler plugin reads, into `tensorboard/`.
        activities: what to record in place of what `cuda` says: some of "cpu", "cuda" and "xpu", or members of
            `torch.profiler.ProfilerActivity`. Unavailable ones cause a warning.
        on_trace_ready: is called at the end of each window with the `torch.profiler.profile`, as PyTorch does:
            `torch.profiler.tensorboard_trace_handler("logs")`, `lambda p: print(p.key_averages().table())`.
        seconds: how long a block without steps is recorded at most, > 0.
        schedule: what `torch.profiler.schedule(...)` returns, in place of `wait`, `warmup`, `active` and `repeat`.
        **pytorchs: `record_shapes`, `profile_memory`, `with_stack`, `with_flops` and `with_modules`, as
            `torch.profiler.profile` calls `shapes`, `memory`, `stacks`, `flops` and `modules`.

    Attributes:
        result: the `Capture` after the block; `print(p.result)` shows it, findings included.
        findings: what the rules found in the first window, the most time at stake first; () where it was not read.

    Raises:
        ArgumentError: a step count, a time or an activity out of its range; both `activities` and `cuda`.
        ArgumentTypeError: an argument that is no path, list or callable where one is needed.

    >>> import tempfile, torch
    >>> folder = tempfile.mkdtemp()
    >>> with profile(folder + "/run", wait=1, warmup=1, active=2) as p:
    ...     for _ in range(6):
    ...         y = torch.ones(64).cos()
    ...         p.step()
    >>> p.result.steps_recorded, [row.calls for row in p.result.operators if row.name == "aten::cos"]
    (2, [2])
    >>> "Where the time goes" in p.result.explanation, (p.result.folder / "findings.json").is_file()
    (True, True)
    """

    findings: tuple[Finding, ...] = ()

    @cached_property
    def trace(self) -> LoadedTrace:
        """The trace of the first window, once the block has ended.

        Raises:
            TorchWhyError: nothing was recorded, or the block hasn't ended.
        """
        return load(self._file)

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0) -> Table:
        """Operators by name in the first window: `trace.ops`, as PyTorch's profiler spells it."""
        return self.trace.key_averages(group_by_input_shape, group_by_stack_n)

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Copy the trace of the first window to a file, compressed where its name ends in .gz.

        Raises:
            TorchWhyError: nothing was recorded, or the block hasn't ended.
            OSError: the file cannot be written.
        """
        if Path(path).suffix == ".gz":
            shutil.copyfile(self._file, path)
        else:
            with gzip.open(self._file) as packed, Path(path).open("wb") as plain:
                shutil.copyfileobj(packed, plain, 1 << 20)

    def export_stacks(self, path: str | os.PathLike[str], metric: str = "self_cpu_time_total") -> None:
        """Write call paths and their times, see `LoadedTrace.export_stacks`."""
        self.trace.export_stacks(path, metric)

    @property
    def _file(self) -> Path:
        if self.result is None or self.result.folder is None:
            raise TorchWhyError("there is no trace: the block has not ended, or nothing was recorded")
        return self.result.folder / "trace.json.gz"

    def _finish(self, capture: Capture) -> Capture:
        if capture.folder is None:
            return capture
        explanation = read_back(capture.folder, Path.cwd())
        self.findings = explanation.findings
        return replace(capture, operators=explanation.operators, explanation=explanation.text)

    def _repr_html_(self) -> str | None:
        """Return the run's report page in a frame, for notebooks; of a large page, where it is."""
        if self.result is None or self.result.folder is None:
            return None
        page = self.result.folder / "report.html"
        if not page.is_file() or page.stat().st_size > LARGEST_FRAME:
            text = f"{self.result}\n\n{page} is the report page." if page.is_file() else str(self.result)
            return f"<pre>{chr(10).join(map(escaped, text.splitlines()))}</pre>"
        return framed(page.read_text(encoding="utf-8"))
