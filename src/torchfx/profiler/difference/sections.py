"""A difference as titled sections of sentences and rows, from which text and Markdown are made."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from torchfx.profiler.difference.call_tree import OTHER_THREADS
from torchfx.profiler.difference.cells import amount, calls_text, change_text, more, share_text, signed
from torchfx.profiler.difference.changes import STATES, Change, Changes
from torchfx.profiler.difference.difference import Difference, Recording
from torchfx.profiler.difference.findings import FATES
from torchfx.profiler.difference.layout import Cell, File, Name, Path, Words
from torchfx.profiler.difference.names import short
from torchfx.profiler.wording import counted, duration, size_text

__all__ = ["Section", "sections_of"]


@dataclass(frozen=True)
class Section:
    """A part of the report.

    Attributes:
        title: "" for the head of the report.
        sentences: come first.
        header: names of the columns; empty without rows.
        rows: cells, as many as the header has names.
        right: which columns hold numbers.
        below: which go on a second line where there is little room.
        pair: whether the last two names of a row are compared.
    """

    title: str
    sentences: tuple[str, ...] = ()
    header: tuple[str, ...] = ()
    rows: tuple[tuple[Cell, ...], ...] = ()
    right: tuple[int, ...] = ()
    below: tuple[int, ...] = ()
    pair: bool = False


_ALL: Final = 10**6
"""More entries than there are."""


def sections_of(found: Difference, *, verbose: bool = False) -> list[Section]:
    """Return the report's parts, those with nothing to say left out.

    Args:
        found: what to show.
        verbose: list everything.
    """
    most = _ALL if verbose else 8 if found.likeness.same_program else 3
    parts = [_head(found)]
    if found.verdict.kind == "identical":
        return parts
    parts += [
        Section("Mind", found.conditions) if found.conditions else Section(""),
        _origins(found, most),
        _totals(found),
        _changes("Operators and annotations", found.calls, most),
        *([] if found.two_vendors and not verbose else [_changes("Driver and runtime calls", found.runtime, most)]),
        _kernel_sets(found, most),
        *([] if found.two_vendors and not verbose else [_changes("Kernels", found.kernels, most)]),
        _changes("Copies", found.copies, most),
        *_findings(found, most),
    ]
    return [part for part in parts if part.sentences or part.rows]


def _head(found: Difference) -> Section:
    rows = tuple(_recording(which, side) for which, side in (("A", found.a), ("B", found.b)))
    sentences = [found.verdict.sentence]
    steps = found.steps
    if min(len(steps.a_us), len(steps.b_us)) > 1 and found.verdict.kind != "identical":
        medians, means = steps.median_us, steps.mean_us
        if any(abs(mean - median) > 0.03 * median for mean, median in zip(means, medians, strict=True)):
            sentences.append(f"Those are medians; the means are {duration(means[0])} -> {duration(means[1])}.")
    if steps.clock == "device":
        sentences.append("The device sets the pace: a step's time runs from one completion of its work to the next.")
    return Section("", tuple(sentences), ("", "file", "device", "compared"), rows, below=(2, 3))


def _recording(which: str, side: Recording) -> tuple[Cell, ...]:
    rounds = side.rounds
    steps = f"{counted(len(rounds), 'step')}, {rounds.name}" if rounds.are_steps else rounds.name
    return which, File(side.file), side.device, Words(steps + (" (inferred)" if rounds.inferred else ""))


def _origins(found: Difference, most: int) -> Section:
    total = found.step_us[1] - found.step_us[0]
    rows = tuple(
        (
            signed(origin.change_us),
            "" if OTHER_THREADS in origin.path else share_text(origin.change_us, total),
            origin.state,
            calls_text(origin.calls),
            Path(tuple(map(short, origin.path)) or ("between the calls of a step",)),
        )
        for origin in found.origins[:most]
    )
    if not rows:
        return Section("")
    a, b = found.step_us
    unit = "an average step" if found.a.rounds.are_steps else "the recording"
    sentences = [f"{unit.capitalize()} goes from {duration(a)} to {duration(b)} on the host ({signed(total)})."]
    path = found.main_path
    if path:
        place = Path(tuple(map(short, path.path)))
        sentences.append(f"Most of it ({share_text(path.change_us, total)}) arises in {place}.")
    gone, came = (_sum(found, state) for state in ("gone", "added"))
    if gone and came:
        sentences.append(f"Calls that are gone took {duration(gone)}, those that came take {duration(came)}.")
    header = ("change", "share", "", "calls", "path")
    left_out = more(len(found.origins) - len(rows))
    return Section("Where the difference arises", (*sentences, *left_out), header, rows, (0, 1, 3), below=(4,))


def _sum(found: Difference, state: str) -> float:
    """The time of the places in one state, on the step's own thread and others."""
    return sum(max(origin.us) for origin in found.origins if origin.state == state)


def _totals(found: Difference) -> Section:
    rows = tuple(
        (total.name, amount(total.a, total.unit), amount(total.b, total.unit), change_text(total))
        for total in found.totals
    )
    return Section(
        "Per step" if found.a.rounds.are_steps else "In the whole recording",
        (),
        ("", "A", "B", "change"),
        rows,
        (1, 2, 3),
    )


def _changes(title: str, changes: Changes, most: int) -> Section:
    rows: list[tuple[Cell, ...]] = []
    hidden = 0
    host = any(any(change.host_us) for change in changes.shown)
    device = any(any(change.device_us) for change in changes.shown)
    for state in STATES:
        some = changes[state]
        hidden += max(len(some) - most, 0)
        rows += [_row(change, host=host, device=device) for change in some[:most]]
    notes = more(hidden)
    if rows and changes.trifles:
        notes = (*notes, f"{counted(changes.trifles, 'name')} that came or went take too little time to be listed.")
    header = ("", "name", "calls", *(["host"] if host else []), *(["device"] if device else []), "change")
    numbers = tuple(range(2, len(header)))
    return Section(title, notes, header, tuple(rows), numbers, below=numbers) if rows else Section("")


def _row(change: Change, *, host: bool, device: bool) -> tuple[Cell, ...]:
    times = ([change.host_us] if host else []) + ([change.device_us] if device else [])
    spent = (f"{duration(a)} -> {duration(b)}" if a or b else "" for a, b in times)
    sizes = f" ({size_text(change.size[0])} -> {size_text(change.size[1])})" if any(change.size) else ""
    return change.state, Name(short(change.name), sizes), calls_text(change.calls), *spent, signed(change.change_us)


def _kernel_sets(found: Difference, most: int) -> Section:
    sets = found.kernel_sets
    if sets is None:
        return Section("")
    if sets.identical:
        text = f"Identical: {counted(sets.in_common, 'name')}, each as often per step. That is the same GPU work."
        return Section("Kernel sets", (text,))
    ending = "two makers' kernels have different names" if found.two_vendors else "not the same GPU work"
    sentences = [
        f"{counted(sets.in_common, 'name')} in common, {len(sets.only_a)} only on A, {len(sets.only_b)} only on B"
        f"{f', {len(sets.counts_differ)} not as often' if sets.counts_differ else ''}: {ending}."
    ]
    rows: list[tuple[Cell, ...]] = []
    for item in sets.replaced[:most]:
        names = (
            Name(short(uses[0][0]), f" +{len(uses) - 1}" if len(uses) > 1 else "") for uses in (item.before, item.after)
        )
        rows.append((Name(item.operator), *names, f"{duration(item.us[0])} -> {duration(item.us[1])}"))
    sentences += more(len(sets.replaced) - len(rows))
    header = ("operator", "launches on A", "launches on B instead", "time")
    return Section("Kernel sets", tuple(sentences), header, tuple(rows), (3,), below=(3,), pair=True)


def _findings(found: Difference, most: int) -> Iterator[Section]:
    rows, same, remarks = list[tuple[Cell, ...]](), list[str](), 0
    for state in FATES:
        for fate in (fate for fate in found.findings if fate.state == state):
            finding = fate.finding
            if most < _ALL and (state == "unchanged" or finding.severity == "info"):
                if state == "unchanged":
                    same.append(f"{finding.code} {finding.slug}")
                else:
                    remarks += 1
                continue
            times = f"{duration(fate.us[0])} -> {duration(fate.us[1])}" if any(fate.us) else ""
            text = f"{finding.title}; {fate.note}" if fate.note else finding.title
            rows.append((_fate(found, state), finding.code, finding.slug, times, Words(text)))
    notes = [f"Unchanged: {', '.join(dict.fromkeys(same))}."] if same else []
    notes += [f"{counted(remarks, 'remark')} on one side only, with -v."] if remarks else []
    yield Section("Findings", tuple(notes), ("", "", "rule", "per step", "what"), tuple(rows), (3,), below=(4,))


def _fate(found: Difference, state: str) -> str:
    """Between two programs nothing is fixed."""
    alone = {} if found.likeness.same_program else {"fixed": "only on A", "new": "only on B"}
    return alone.get(state, state)
