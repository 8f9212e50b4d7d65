"""What did not go as asked, in words that say what to change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from torchwhy.capture.options import Options
from torchwhy.capture.processor_time import ProcessorTime
from torchwhy.capture.schedule import Schedule
from torchwhy.capture.step_clock import Overhead
from torchwhy.wording import counted

if TYPE_CHECKING:
    from torchwhy.capture.contents import Contents

__all__ = ["BUSY", "Spelling", "Steps", "about_contents", "about_cost", "about_machine", "about_steps", "waited_share"]

BUSY = 0.1  # share of a recording that waits for a processor, from which its times say little
NOTICEABLE_S = 0.2  # that a program takes longer
HEAVY = 1.5  # recorded steps longer than this times the unprofiled ones say little about times on the CPU


@dataclass(frozen=True)
class Spelling:
    """How the caller spells settings: `--wait 0` on the command line, `wait=0` in Python.

    >>> Spelling("--{} {}", " ").of(wait=0, warmup=0)
    '--wait 0 --warmup 0'
    """

    form: str
    separator: str

    def of(self, **settings: object) -> str:
        """Put settings in words."""
        return self.separator.join(self.form.format(name, value) for name, value in settings.items())


@dataclass(frozen=True)
class Steps:
    """How far a program came.

    Attributes:
        before: steps that passed before the schedule began.
        ended: steps of the schedule that ended.
        windows: windows that were recorded.
        salvaged: whether the beginning of the run is shown in their place.
    """

    before: int
    ended: int
    windows: int
    salvaged: bool


def about_steps(schedule: Schedule, steps: Steps, spelling: Spelling) -> Iterator[str]:
    """Compare the steps that ended with those the schedule needs.

    >>> next(about_steps(Schedule(3, 1, 3), Steps(0, 2, 0, False), Spelling("{}={}", ", ")))
    'nothing was recorded: ... 2 steps and recording begins after 4 (...); ... wait=0, warmup=0, active=2'
    """
    if steps.ended >= schedule.length or (steps.windows and not schedule.repeat):
        return
    seen, needed = steps.before + steps.ended, steps.before + schedule.length
    if steps.windows == 0:
        what = (
            "this is the beginning of the run, and its first step is cold" if steps.salvaged else "nothing was recorded"
        )
        yield (
            f"{what}: there were {counted(seen, 'step')} and recording begins after "
            f"{steps.before + schedule.first_recorded} ({schedule}); run more steps, or record from the first one with "
            + spelling.of(wait=0, warmup=0, active=max(steps.ended, 1))
        )
    elif steps.windows == schedule.repeat:
        yield f"the last window is short: there were {seen} steps and the schedule needs {needed} ({schedule})"
    else:
        yield (
            f"only {steps.windows} of {schedule.repeat} windows were recorded: there were {seen} steps and the "
            f"schedule needs {needed} ({schedule})"
        )


def about_cost(overhead: Overhead | None, options: Options) -> Iterator[str]:
    """Warn of times that the profiler itself made."""
    ratio = overhead.ratio if overhead else None
    if ratio is None or ratio < HEAVY:
        return
    costly = [name for name in ("stacks", "memory", "modules", "shapes") if getattr(options, name)]
    remedy = f"record without {' and '.join(costly)} for truer times" if costly else "trust shares more than times"
    yield f"recording made steps {ratio:.1f} times as long, so times on the CPU are inflated; {remedy}"


def about_contents(contents: Contents | None) -> Iterator[str]:
    """Say that later steps took longer, where that is noticeable."""
    if contents is not None and contents.cost_s >= NOTICEABLE_S:
        yield (
            f"after the recording, the contents of tensors were examined, which took {contents.cost_s:.2g} s; "
            "--no-contents leaves that out"
        )


def about_machine(spent: Iterable[ProcessorTime]) -> Iterator[str]:
    """Warn of times that other programs made; `spent` is that of each window.

    >>> list(about_machine([ProcessorTime(wall_us=100, cpu_us=70, waited_us=30, load=6.2, cores=2)]))
    ['the machine was busy: the program waited 30% of the recording for a processor; ...']
    """
    share = waited_share(spent)
    if share > BUSY:
        yield (
            f"the machine was busy: the program waited {share:.0%} of the recording for a processor; "
            "record again when it is idle"
        )


def waited_share(spent: Iterable[ProcessorTime]) -> float:
    """Return the part of the windows, 0 to 1, in which the program waited for a processor; 0 where that is unknown."""
    known = [(one.waited_us, one.wall_us) for one in spent if one.waited_us is not None]
    wall = sum(wall for _, wall in known)
    return sum(waited for waited, _ in known) / wall if wall else 0.0
