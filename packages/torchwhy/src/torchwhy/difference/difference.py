"""How two recordings of a program differ, as plain values."""

from __future__ import annotations

from dataclasses import dataclass

from torchwhy.difference.call_tree import Origin
from torchwhy.difference.changes import Changes
from torchwhy.difference.findings import Fate
from torchwhy.difference.kernel_sets import KernelSets
from torchwhy.difference.labels import LabelTimes
from torchwhy.difference.likeness import Likeness
from torchwhy.difference.step_times import StepTimes
from torchwhy.difference.steps import Rounds
from torchwhy.difference.totals import Total
from torchwhy.difference.verdict import DifferenceVerdict

__all__ = ["Difference", "RecordedTrace"]


@dataclass(frozen=True)
class RecordedTrace:
    """One of the two sides.

    Attributes:
        file: where it was read from.
        device: what its work ran on.
        vendor: "nvidia", "amd" or "" where the file doesn't show it.
        events: how many the file has.
        rounds: the steps that are compared.
    """

    file: str
    device: str
    vendor: str
    events: int
    rounds: Rounds


@dataclass(frozen=True)
class Difference:
    """How B differs from A; all numbers are of an average step, a cold first one left out.

    Attributes:
        a, b: the recordings.
        verdict: which is faster, beyond the noise.
        steps: the step times it rests on.
        likeness: whether the programs are the same.
        conditions: what else differs: devices, what was recorded, inputs.
        totals: launches, waits, copies, busy and idle time, memory, compilation.
        calls, runtime: operators and annotations, calls of the driver: added, gone, slower, faster.
        kernels, copies: device work: added, gone, slower, faster.
        kernel_sets: whether both run the same kernels; None where neither has any.
        step_us: an average step on the host, on A and on B: what `origins` takes apart.
        main_path: the deepest path of calls that explains most of the change; None where none does.
        origins: disjoint places in the call tree where time was gained or lost.
        findings: fixed, new, worse, better, unchanged.
        labels: the program's own labels on both sides, where these are all they have in common.
    """

    a: RecordedTrace
    b: RecordedTrace
    verdict: DifferenceVerdict
    steps: StepTimes
    likeness: Likeness
    conditions: tuple[str, ...]
    totals: tuple[Total, ...]
    calls: Changes
    runtime: Changes
    kernels: Changes
    copies: Changes
    kernel_sets: KernelSets | None
    step_us: tuple[float, float]
    main_path: Origin | None
    origins: tuple[Origin, ...]
    findings: tuple[Fate, ...]
    labels: tuple[LabelTimes, ...] = ()

    @property
    def two_vendors(self) -> bool:
        """Whether kernels and calls of the driver have different names because the devices' makers differ."""
        return bool(self.a.vendor and self.b.vendor and self.a.vendor != self.b.vendor)

    @property
    def empty(self) -> bool:
        """Whether nothing worth mentioning differs."""
        listed = (self.calls, self.runtime, self.kernels, self.copies)
        changed = any(changes.shown or changes.trifles for changes in listed) or bool(self.origins)
        moved = any(total.changed for total in self.totals)
        return not changed and not moved and all(fate.state == "unchanged" for fate in self.findings)

    def slower_than(self, fraction: float) -> bool | None:
        """Whether B is slower by more than a fraction, beyond the noise; None where that is unknown.

        Args:
            fraction: 0.05 allows 5%.
        """
        if self.verdict.kind == "identical":
            return False
        if self.verdict.kind in ("not comparable", "noise unknown"):
            return None
        return self.verdict.kind == "slower" and self.steps.shift.low > 1 + fraction
