"""Profile a loop: `with profile(...) as p:`, with `p.step()` at the end of each iteration."""

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
from torchwhy.wording import working_folder

__all__ = ["profile"]


class profile(capture_only):  # noqa: N801  (spelled as torch.profiler.profile is)
    """Record some steps of a loop with `torch.profiler`, and write a folder with the trace, findings and a report.

    Without calls of `p.step()` the whole block is recorded. If it has very many small operators, only windows of it are
    recorded, which slow it down by about a tenth; the window with the most events comes first. With steps, the first
    steps and those after the last window run unprofiled: their time is the baseline for the reported overhead of the
    profiler. Only the very first step is recorded and discarded, because steps are not yet known. Errors in profiling
    never stop the program; a `ProfileWarning` reports them at the end of the block.

    Args:
        path: the folder to write; if it is not empty, `path-2`, `path-3`, ... Under torchrun each rank writes
            `path/rank0` and so on. The folder appears when it is complete; `findings.json` follows a moment later.
        wait: unprofiled steps before each window, >= 0.
        warmup: profiled steps that are discarded, >= 0.
        active: recorded steps, >= 1. None records at least 3 steps, until their median is known (the confidence
            interval is narrower than 5 %), or they take 2 s, or 20 are recorded; with several windows or processes,
            exactly 3.
        repeat: number of windows, >= 0. 0 means no limit: windows are recorded until they contain 200,000 events.
        shapes: record the shapes of operators' inputs.
        memory: record every allocation; adds `memory.json`.
        stacks: record Python stacks; adds a table by stack and folded stacks. None records them if they slow down a
            step by less than 5 % and it makes at most 10,000 calls, as counted in the last step before warm-up.
        flops: estimate floating point operations.
        modules: record the module hierarchy of TorchScript.
        cuda: record the GPU; None records it if one is available.
        sync_events: record when the CPU waits for the GPU, and streams for each other.
        power: read clock, power and temperature of NVIDIA GPUs every 20 ms and record them as counters of the trace.
        tensorboard: also write files for TensorBoard's profiler plugin into `tensorboard/`.
        activities: activities to record, instead of `cuda`: some of "cpu", "cuda" and "xpu", or members of
            `torch.profiler.ProfilerActivity`. Unavailable activities cause a warning.
        on_trace_ready: called at the end of each window with the `torch.profiler.profile`, as in PyTorch:
            `torch.profiler.tensorboard_trace_handler("logs")`, `lambda p: print(p.key_averages().table())`.
        seconds: maximum recording time of a block without steps, > 0.
        schedule: the result of `torch.profiler.schedule(...)`, instead of `wait`, `warmup`, `active` and `repeat`.
        **pytorchs: `record_shapes`, `profile_memory`, `with_stack`, `with_flops` and `with_modules`, PyTorch's names of
            `shapes`, `memory`, `stacks`, `flops` and `modules`.

    Attributes:
        result: the `Capture`, available after the block; `print(p.result)` shows it with the findings.
        findings: the findings in the first window, sorted by time at stake; () if it was not read.

    Raises:
        ArgumentError: a step count, a time or an activity is invalid, or both `activities` and `cuda` are given.
        ArgumentTypeError: an argument has the wrong type.

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
        """The trace of the first window, available after the block.

        Raises:
            TorchWhyError: nothing was recorded, or the block has not ended.
        """
        return load(self._file)

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0) -> Table:
        """Operators by name in the first window; PyTorch's name of `trace.ops`."""
        return self.trace.key_averages(group_by_input_shape, group_by_stack_n)

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Copy the trace of the first window to a file, compressed if its name ends in .gz.

        Raises:
            TorchWhyError: nothing was recorded, or the block has not ended.
            OSError: the file cannot be written.
        """
        if Path(path).suffix == ".gz":
            shutil.copyfile(self._file, path)
        else:
            with gzip.open(self._file) as packed, Path(path).open("wb") as plain:
                shutil.copyfileobj(packed, plain, 1 << 20)

    def export_stacks(self, path: str | os.PathLike[str], metric: str = "self_cpu_time_total") -> None:
        """Write call paths with their times; see `LoadedTrace.export_stacks`."""
        self.trace.export_stacks(path, metric)

    @property
    def _file(self) -> Path:
        if self.result is None or self.result.folder is None:
            raise TorchWhyError("there is no trace: the block has not ended, or nothing was recorded")
        return self.result.folder / "trace.json.gz"

    def _finish(self, capture: Capture) -> Capture:
        if capture.folder is None:
            return capture
        explanation = read_back(capture.folder, working_folder() or capture.folder)
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
