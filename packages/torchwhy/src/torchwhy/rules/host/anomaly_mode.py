"""The debugging aid of autograd that looks for NaN."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchwhy.finding import Finding, severity_of
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.idle import at_stake
from torchwhy.trace.derived.steady_state import steady_window
from torchwhy.trace.meaning.operators import AUTOGRAD_NODE, NAN_CHECK
from torchwhy.trace.model.intervals import Intervals
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import counted

__all__ = ["anomaly_mode"]


@rule("B28", "anomaly-mode", source="PyTorch's performance tuning guide: disable debugging APIs")
def anomaly_mode(trace: Trace, *, nodes: int = 3) -> Iterator[Finding]:
    """Autograd's anomaly detection is on.

    Sees: `aten::isnan` called by the engine itself after nodes of the backward pass, three or more. The time at stake
    is that from each check to the node's end; on a GPU only the part during which the device waits.

    Costs: each gradient is looked through for NaN, and on a GPU the host waits for each answer; the forward pass notes
    a Python traceback for every operator, which isn't counted.

    Fix: `torch.autograd.set_detect_anomaly(True)` and `detect_anomaly` are for finding an error; take them out after.

    Known problems: with `check_nan=False` only the tracebacks are made, and nothing shows them.
    """
    events, parent = trace.events, trace.calls.parent
    checks = events.of(NAN_CHECK)
    checks = checks[trace.in_steps(checks) & (parent[checks] >= 0)]
    checks = checks[events.are(AUTOGRAD_NODE, parent[checks])]
    checked = np.unique(parent[checks])
    if len(checked) < nodes:
        return
    window = trace.derived(steady_window)
    taken = Intervals.union(events.ts[checks], events.end[parent[checks]]).clip(window.start, window.end)
    taken = at_stake(trace, taken)
    steps = len(trace.steps_found)
    often = f"{len(checked) / steps:,.0f} nodes per step" if steps else counted(len(checked), "node")
    yield Finding(
        title=f"Anomaly detection is on: {often} of the backward pass are searched for NaN",
        severity=severity_of(max(window.share(taken), 0.05)),
        confidence="high",
        stretches=taken,
        window=window,
        evidence=evidence(trace, checks),
        cause="torch.autograd.set_detect_anomaly(True), or detect_anomaly of a trainer. It slows down the forward pass "
        "as well, which notes a traceback for each operator.",
        fix="Take it out: it is for finding an error.",
        linked=True,
    )
