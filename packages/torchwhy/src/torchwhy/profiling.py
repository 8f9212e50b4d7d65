"""`with profile(...) as p:` around a loop, `p.step()` at the end of each turn; at the end, what is slow and why."""

from __future__ import annotations

import html
from dataclasses import replace
from pathlib import Path
from typing import Final

from torchwhy.capture import Capture
from torchwhy.capture import profile as capture_only
from torchwhy.finding import Finding
from torchwhy.present.html import escaped
from torchwhy.run_analysis import read_back

__all__ = ["profile"]

LARGEST_FRAME: Final = 1_000_000
"""Bytes of a page that is put into a notebook, which keeps it in its file."""


class profile(capture_only):  # noqa: N801  (spelled as torch.profiler.profile is)
    """Record some steps of a loop with `torch.profiler`, and write a folder that says what is slow and why.

    Without any `p.step()` the whole block is recorded as one window, as far as that can be read in reasonable time.
    With steps, the first ones run unprofiled, as do those after the last window: their time is the baseline that the
    profiler's own cost is reported against; only the very first step is recorded and thrown away, until it is known
    that there are steps. Nothing that goes wrong with profiling stops the program; it is told as a `ProfileWarning` at
    the end of the block.

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
            few calls that they make it less than 5 % longer, as counted in the last step before warm-up.
        flops: estimate floating point operations.
        modules: record the module hierarchy where TorchScript knows it.
        cuda: record the GPU; None records it where there is one.
        sync_events: record when the CPU waits for the GPU, and streams for each other.
        tensorboard: also write what TensorBoard's profiler plugin reads, into `tensorboard/`.
        activities: what to record in place of what `cuda` says: some of "cpu", "cuda" and "xpu", or members of
            `torch.profiler.ProfilerActivity`. What is not there is told.
        on_trace_ready: is called at the end of each window with the `torch.profiler.profile`, as PyTorch does:
            `torch.profiler.tensorboard_trace_handler("logs")`, `lambda p: print(p.key_averages().table())`.
        seconds: how long a block without steps is recorded at most, > 0.

    Attributes:
        result: the `Capture` after the block; `print(p.result)` shows it, findings included.
        findings: what the rules found in the first window, the most time at stake first; () where it was not read.

    Raises:
        ArgumentError: a step count, a time or an activity out of its range; both `activities` and `cuda`.
        ArgumentTypeError: a path, a list or a callable that is none.

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

    def _finish(self, capture: Capture) -> Capture:
        if capture.folder is None:
            return capture
        explanation = read_back(capture.folder, Path.cwd())
        self.findings = explanation.findings
        return replace(capture, operators=explanation.operators, explanation=explanation.text)

    def _repr_html_(self) -> str | None:
        """Return the run's report page in a frame of its own, for notebooks; of a large page, where it is."""
        if self.result is None or self.result.folder is None:
            return None
        page = self.result.folder / "report.html"
        if not page.is_file() or page.stat().st_size > LARGEST_FRAME:
            told = f"{self.result}\n\n{page} is the report page." if page.is_file() else str(self.result)
            return f"<pre>{chr(10).join(map(escaped, told.splitlines()))}</pre>"
        return (
            '<iframe title="Report" sandbox="allow-scripts" style="width:100%;height:45rem;border:0" '
            f'srcdoc="{html.escape(page.read_text(encoding="utf-8"))}"></iframe>'
        )
