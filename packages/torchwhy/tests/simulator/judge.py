"""Holds the trace reader's answers against what is true of simulated programs, and prints a table.

The truth about a fault is an experiment: the program runs once more without it. So is the truth about a verdict: the
program runs once more with each resource free, and the verdict has to name one whose freedom saves about the most.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path

from tests.simulator.chrome import write, write_job
from tests.simulator.faults import FAULTS
from tests.simulator.program import RESOURCES, Program, draw
from tests.simulator.run import Run, saving, saving_from_start, saving_of_resource, simulate
from torchwhy.loading.job import load_job
from torchwhy.loading.read import read_trace
from torchwhy.report.trace_report import TraceReport, describe
from torchwhy.rules.diagnose import diagnose
from torchwhy.trace.model.trace import Trace

__all__ = [
    "Judged",
    "Judgement",
    "as_json",
    "cases",
    "details",
    "explained",
    "judge",
    "judge_many",
    "judge_seed",
    "pairs",
    "table",
]

ACCEPTED: dict[str, tuple[str, ...]] = {
    "item": ("item-per-step", "explicit-sync", "sync-copy"),
    "print": ("tensors-to-text", "item-per-step", "explicit-sync", "sync-copy"),
    "synchronize": ("explicit-sync",),
    "norms": ("item-per-step", "explicit-sync", "sync-copy", "tensor-for-loop"),
    "loader-in-process": ("dataloader-single-process", "dataloader-wait"),
    "loader-slow": ("dataloader-wait",),
    "pageable": ("pageable-copy", "sync-copy", "transfer-share"),
    "host-tensors": ("create-on-cpu-then-copy", "pageable-copy", "sync-copy", "cpu-hotspot", "transfer-share"),
    "copy-serial": ("transfer-share",),
    "tiny-kernels": ("elementwise-chain", "short-kernels", "dispatch-flood", "compile-missing"),
    "eager-small": ("overhead-bound", "short-kernels", "python-bound", "dispatch-flood", "compile-missing"),
    "python": ("python-bound", "between-steps-gap", "overhead-bound"),
    "gc": ("gc-pause", "between-steps-gap", "step-tail"),
    "zero-grad": ("zero-grad-memset",),
    "loop-optimizer": ("optimizer-for-loop",),
    "serial-allreduce": ("exposed-comm", "comm-share"),
    "small-allreduces": ("small-collectives", "exposed-comm", "comm-share"),
    "straggler": ("last-rank", "rank-imbalance"),
    "cold": ("first-step-cold", "lazy-loading"),
    "allocator": ("allocator-thrash",),
    "recompile": ("recompiles", "compile-in-window"),
    "double": ("fp64",),
    "contiguous": ("layout-conversion", "out-of-place-clone", "dtod-volume", "elementwise-chain", "hotspot"),
    "sgemm": ("fp32-matmul-no-tc",),
    "small-grid": ("small-grid", "occupancy", "hotspot"),
    "plain-attention": ("unfused-attention",),
    "evaluation": ("step-tail", "between-steps-gap"),
    "checkpoint": ("between-steps-gap", "step-tail", "sync-copy", "pageable-copy"),
    "lock": ("python-bound", "between-steps-gap", "overhead-bound"),
    "log-rarely": ("step-tail", "item-per-step", "explicit-sync", "sync-copy", "between-steps-gap"),
    "cast": ("dtod-volume", "elementwise-chain", "hotspot", "short-kernels"),
    "outputs-to-host": ("sync-copy", "pageable-copy", "explicit-sync", "transfer-share"),
    "accumulation": ("exposed-comm", "comm-share"),
    "small-gemms": ("dispatch-flood", "short-kernels", "small-grid"),
}
"""Rules whose finding concerns a fault; the one whose fix takes it out comes first."""

UNSEEN = "loader-slow"
"""While the program is slower than its workers, no record tells how slow they are: nothing waits for them."""

TITLES = {"synchronize": re.compile(r"(?!.* in aten::)")}
"""Where several findings of a rule have causes of their own: which titles concern the fault."""

VERDICTS: dict[str, tuple[str, ...]] = {
    "compute-bound": ("device",),
    # A host that has waited for the device launches late, too: the device then waits for the host.
    "overhead-bound": ("host", "waiting"),
    "communication-bound": ("communication",),
    "copy-bound": ("copies",),
    "input-bound": ("data",),
    "compile-bound": ("host",),
}
"""The resources that a verdict names; "mixed" says that no single one is the limit."""

NOTABLE = 0.03
"""A fault counts if taking it out saves this part of the time."""
FREE = 0.005
"""A fault costs nothing if taking it out saves less than this part of the time."""
STALL = 0.2
"""A resource other than the device limits the program if its freedom saves this part of the time."""
ALIKE = 0.5
"""No single resource is the limit if the second saves this part of what the first does, or more."""
SLACK = 0.01
"""Part of the window by which times at stake may be off: the window is not exactly the time of the steps."""


@dataclass
class Judged:
    """One planted fault, and what the trace reader makes of it.

    Attributes:
        saves: part of the time that is saved without it.
        most: the same without all that the finding speaks of: a finding on stretches in which two faults take time has
            the time of both at stake. And where workers that nothing waits for yet limit what is saved, without them.
            Or, if that is more, the part saved from the program's start: less may be queued when recording starts
            without the fault, so that the recorded steps hold more of what a queue hid before.
        place: of the finding whose fix takes it out, from 1, of several the one with the most at stake; 0: there is
            none.
        slug: of that finding.
        stake: what that finding has at stake, as a part of the same time.
        title: what that finding says.
    """

    fault: str
    saves: float
    most: float
    place: int = 0
    slug: str = ""
    stake: float = 0.0
    title: str = ""


@dataclass
class Judgement:
    """A program, and how far the trace reader is right about it."""

    seed: int
    planted: tuple[str, ...]
    verdict: str
    limits: dict[str, float]
    faults: list[Judged] = field(default_factory=list)
    alarms: list[tuple[str, float, str]] = field(default_factory=list)
    beyond: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    @property
    def right(self) -> bool:
        """Whether the verdict names a resource that saves nearly as much as any, or tells that several do."""
        if self.verdict == "mixed":
            first, second, *_ = sorted(self.limits.values(), reverse=True)
            return second >= ALIKE * first
        return bool(set(self.meant) & set(self.best))

    @property
    def meant(self) -> tuple[str, ...]:
        return VERDICTS.get(self.verdict, ())

    @property
    def best(self) -> tuple[str, ...]:
        # What the device computes is what the program is for. A stall that costs a fifth of the time is worth more
        # than the hint that the device could be faster, unless that is worth much more.
        stalls = {name: share for name, share in self.limits.items() if name != "device"}
        limits = max(stalls.values()) >= max(STALL, ALIKE * self.limits["device"])
        named = stalls if limits else self.limits
        most = max(named.values())
        best = [name for name, share in named.items() if share >= min(0.8 * most, most - NOTABLE)]
        return (*best, *(["device"] if self.limits["device"] == max(self.limits.values()) else []))


def explained(path: Path) -> TraceReport:
    """Return what the trace reader says of a trace."""
    trace = read_trace(path, Trace)
    return describe(trace, diagnose(trace))


def judge(program: Program) -> Judgement:
    """Run a program and its variants, ask the trace reader, compare."""
    run = simulate(program)
    with tempfile.TemporaryDirectory() as folder:
        report = explained(write(run, Path(folder) / "trace.json"))
        findings = _job_findings(run, Path(folder) / "job") if "straggler" in program.planted else []
    limits = {resource: saving_of_resource(program, resource) / run.time for resource in RESOURCES}
    judgement = Judgement(program.seed, program.planted, report.verdict.kind, limits)
    judgement.failed = [f"{one.slug}: {one.error}" for one in report.failed]
    window = report.window.duration_us
    ordered = [(one.slug, one.time_us / window, one.title) for one in report.findings if one.severity != "info"]
    for fault in program.planted:
        saves = saving(program, fault) / run.time
        judged = Judged(fault, saves, saves)
        said = findings if fault == "straggler" else ordered
        whole = window * 1000 / run.time if said is ordered else 1.0  # the window has work of earlier steps, too
        concerned = [(place, *one) for place, one in enumerate(said, 1) if _concerns(fault, one, program.planted)]
        if concerned:
            first = min(concerned, key=lambda one: (one[1] != ACCEPTED[fault][0], -one[2]))
            judged.place, judged.slug, judged.stake, judged.title = first
            judged.stake *= whole
            judged.most = _most_saved(program, fault, first[1:], saves)
        judgement.faults.append(judged)
    expected = {slug for fault in program.planted for slug in ACCEPTED[fault]}
    judgement.alarms = [one for one in ordered if one[1] >= 0.03 and one[0] not in expected]
    judgement.beyond = [one[0] for one in ordered if one[1] > 1.0001]
    return judgement


def _concerns(fault: str, said: tuple[str, float, str], planted: Sequence[str]) -> bool:
    """Whether a finding is about a fault, and not only one of its kind about another fault that is planted, too."""
    slug = said[0]
    owned = any(slug == ACCEPTED[other][0] for other in planted if other != fault)
    return _speaks_of(fault, said) and (slug == ACCEPTED[fault][0] or not owned)


def _speaks_of(fault: str, said: tuple[str, float, str]) -> bool:
    slug, _, title = said
    return slug in ACCEPTED[fault] and (fault not in TITLES or bool(TITLES[fault].match(title)))


def _most_saved(program: Program, fault: str, said: tuple[str, float, str], saves: float) -> float:
    """What is saved at most by the fix of a finding; see `Judged.most`."""
    time = simulate(program).time
    together = [other for other in program.planted if other == fault or _speaks_of(other, said)]
    most = max(saves, saving(program, *together) / time if len(together) > 1 else 0.0)
    if UNSEEN in program.planted and UNSEEN not in together and saving(program, UNSEEN) < FREE * time:
        seen = program.without(UNSEEN)
        most = max(most, saving(seen, *together) / simulate(seen).time)
    return max(most, saving_from_start(program, *together))


def _job_findings(run: Run, folder: Path) -> list[tuple[str, float, str]]:
    job = load_job(write_job(run, folder))
    return [(one.slug, one.share, one.title) for one in job.diagnose() if one.severity != "info"]


def judge_seed(seed: int, planted: Sequence[str] | None = None) -> Judgement:
    return judge(draw(seed, planted))


def judge_many(seeds: Iterable[int], planted: Sequence[str] | None = None, *, processes: int = 1) -> list[Judgement]:
    """Judge the programs of many seeds."""
    seeds = list(seeds)
    if processes == 1:
        return [judge_seed(seed, planted) for seed in seeds]
    with ProcessPoolExecutor(processes, mp_context=get_context("forkserver")) as pool:
        return list(pool.map(judge_seed, seeds, [planted] * len(seeds), chunksize=4))


def pairs(judgements: Iterable[Judgement]) -> list[tuple[Judged, Judged, bool]]:
    """Pairs of faults of one program that differ by more than a fifth: greater, lesser, whether the order is right.

    Only the lesser one's finding has to be there: where the greater one's is missing, the order is wrong.
    """
    out = []
    for judgement in judgements:
        ordered = sorted((one for one in judgement.faults if one.fault != "straggler"), key=lambda one: -one.saves)
        for index, greater in enumerate(ordered):
            for lesser in ordered[index + 1 :]:
                notable = greater.saves >= NOTABLE and greater.saves > 1.2 * lesser.saves
                if notable and lesser.place and greater.slug != lesser.slug:
                    out.append((greater, lesser, 0 < greater.place < lesser.place))
    return out


def quantiles(values: Sequence[float]) -> tuple[float, float, float]:
    """The tenth, the fiftieth and the ninetieth percentile."""
    ordered = sorted(values)
    return tuple(ordered[min(len(ordered) - 1, int(part * len(ordered)))] for part in (0.1, 0.5, 0.9))  # type: ignore[return-value]


def fair(one: Judged) -> bool:
    """Whether a time at stake is at least what is saved and at most half more, with some slack.

    Where no finding concerns the fault, nothing is at stake.
    """
    return 0.9 * one.saves - SLACK <= one.stake <= 1.5 * max(one.most, 0.0) + SLACK


def _part(count: int, of: int) -> str:
    return f"{100 * count / of:.0f}%" if of else ""


def table(judgements: Sequence[Judgement]) -> str:
    """The figures, as text."""
    lines = [
        "Faults that cost at least 3% of the time: how often their finding is first, second, present;",
        "what is at stake over what is saved (10th, 50th, 90th percentile); how often that is from 0.9 to 1.5;",
        "how often more than 1% is at stake where nothing is saved.",
        "",
        "fault                of   1st   2nd  there     p10    p50    p90  fair  for nothing",
    ]
    for name in FAULTS:
        every = [one for judgement in judgements for one in judgement.faults if one.fault == name]
        costly = [one for one in every if one.saves >= NOTABLE]
        free = [one for one in every if one.most < FREE]
        found = [one for one in costly if one.place]
        places = [_part(sum(one.place == place for one in found), len(costly)) for place in (1, 2)]
        ratios = [one.stake / one.saves for one in found]
        spread = " ".join(f"{value:6.2f}" for value in quantiles(ratios)) if ratios else ""
        claims = f"{sum(one.stake > SLACK for one in free)} of {len(free)}" if free else ""
        lines.append(
            f"{name:18} {len(costly):4} {places[0]:>5} {places[1]:>5} {_part(len(found), len(costly)):>6}  {spread:20}"
            f" {_part(sum(fair(one) for one in costly), len(costly)):>5}  {claims:>11}".rstrip()
        )
    ordered = pairs(judgements)
    healthy = [one for one in judgements if not one.planted]
    alarmed = sum(bool(one.alarms) for one in healthy)
    every = [one for judgement in judgements for one in judgement.faults]
    costly = [one for one in every if one.saves >= NOTABLE]
    free = [one for one in every if one.most < FREE]
    lines += [
        "",
        f"faults with a finding: {sum(one.place > 0 for one in costly)} of {len(costly)}",
        f"stakes from 0.9 to 1.5 of what is saved: {sum(map(fair, costly))} of {len(costly)}",
        f"more than 1% at stake where nothing is saved: {sum(one.stake > SLACK for one in free)} of {len(free)}",
        f"verdict names what saves most: {sum(one.right for one in judgements)} of {len(judgements)}",
        f"order of findings is that of savings: {sum(right for _, _, right in ordered)} of {len(ordered)} pairs",
        f"programs without fault with a finding of 3%: {alarmed} of {len(healthy)}",
        f"findings with more at stake than the window: {sum(len(one.beyond) for one in judgements)}",
        f"rules that broke off: {sum(len(one.failed) for one in judgements)}",
    ]
    return "\n".join(lines)


def details(judgements: Sequence[Judgement]) -> str:
    """Each disagreement on a line, with the seed that shows it."""
    lines = []
    for one in judgements:
        where = f"seed {one.seed} ({', '.join(one.planted) or 'no fault'})"
        limits = ", ".join(f"{name} {100 * share:.0f}%" for name, share in one.limits.items() if share >= 0.05)
        if not one.right:
            lines.append(f"{where}: verdict {one.verdict}; saved if free: {limits}")
        for judged in one.faults:
            saves, stake = f"{100 * judged.saves:.1f}%", f"{100 * judged.stake:.1f}%"
            if judged.saves >= NOTABLE and not judged.place:
                lines.append(f"{where}: {judged.fault} saves {saves}, not found")
            elif judged.place and not fair(judged) and (judged.saves >= NOTABLE or judged.most < FREE):
                lines.append(
                    f"{where}: {judged.fault} saves {saves}, {judged.slug} has {stake} at stake: {judged.title}"
                )
        if not one.planted:
            lines += [f"{where}: {slug} has {100 * share:.1f}% at stake: {title}" for slug, share, title in one.alarms]
        lines += [f"{where}: {slug} has more at stake than the window" for slug in one.beyond]
        lines += [f"{where}: broke off: {error}" for error in one.failed]
    return "\n".join(lines)


def as_json(judgements: Sequence[Judgement]) -> str:
    return json.dumps([vars(one) | {"faults": [vars(each) for each in one.faults]} for one in judgements], indent=1)


def cases(few: int, many: int) -> range:
    """Seeds: few, or many where TORCHWHY_CASES=many asks for them."""
    return range(many if os.environ.get("TORCHWHY_CASES") == "many" else few)
