"""The report of `torchwhy diff` on two recordings, or the recordings of two jobs, as a document."""

from __future__ import annotations

from typing import Final, Literal

from torchwhy.difference.call_tree import OTHER_THREADS, Origin
from torchwhy.difference.changes import STATES, Change, Changes
from torchwhy.difference.difference import Difference, RecordedTrace
from torchwhy.difference.findings import FATES, Fate
from torchwhy.difference.jobs import JobDifference
from torchwhy.difference.labels import LabelTimes
from torchwhy.difference.plain import plain
from torchwhy.difference.totals import Total
from torchwhy.present.document import (
    Block,
    Calls,
    Caveat,
    Cell,
    Check,
    Checks,
    Column,
    Document,
    File,
    Findings,
    Look,
    Name,
    Row,
    Table,
    VerdictBlock,
    Words,
    rows_of,
)
from torchwhy.present.findings import finding_item
from torchwhy.report.trace_report import reported
from torchwhy.trace.meaning.kernels import short_name
from torchwhy.wording import counted, duration, percent, size_text

__all__ = ["comparison"]

_MOST: Final = 8
"""Entries of each kind in the short view."""

_RANKS: Final = 16

_LOOKS: Final[dict[str, Look]] = {"slower": "bad", "faster": "good"}


def comparison(found: Difference | JobDifference, limit: float | None = None) -> Document:
    """Return everything: what was compared, the verdict, what to mind, where the time went, what came, went, changed.

    Args:
        found: what to show.
        limit: by which fraction B may be slower; checked where given.
    """
    one = found.difference if isinstance(found, JobDifference) else found
    blocks: list[Block] = [
        _recordings(one),
        VerdictBlock(one.verdict.kind, " ".join(_headline(one)), look=_LOOKS.get(one.verdict.kind, "")),
        *(() if limit is None else (_check(found, limit),)),
    ]
    if isinstance(found, JobDifference):
        blocks.append(_ranks(found))
    if one.verdict.kind != "identical":
        blocks += [Caveat("Mind", sentence) for sentence in one.conditions]
    if one.verdict.kind not in ("identical", "not comparable"):
        blocks += [block for block in _details(one) if not isinstance(block, Table) or block.rows or block.sentences]
    return Document("Difference", tuple(blocks), plain(found), command="diff", file=one.b.file)


def _details(found: Difference) -> tuple[Block, ...]:
    makers: Literal["full", "always"] = "full" if found.two_vendors else "always"  # whose names differ in any case
    return (
        _origins(found),
        _labels(found.labels),
        _totals(found),
        _changes("Operators and annotations", found.calls),
        _changes("Driver and runtime calls", found.runtime, makers),
        _kernel_sets(found),
        _changes("Kernels", found.kernels, makers),
        _changes("Copies", found.copies),
        _fates(found),
        Findings(
            tuple(
                finding_item(reported(fate.finding), fate.finding.window.start / 1000)
                for fate in found.findings
                if fate.state in ("new", "worse")
            ),
            title="New and worse on B",
            when="full",
        ),
    )


def _headline(found: Difference) -> list[str]:
    sentences = [found.verdict.sentence]
    steps = found.steps
    if found.verdict.kind == "identical":
        return sentences
    if min(len(steps.a_us), len(steps.b_us)) > 1:
        medians, means = steps.median_us, steps.mean_us
        if any(abs(mean - median) > 0.03 * median for mean, median in zip(means, medians, strict=True)):
            sentences.append(f"Those are medians; the means are {duration(means[0])} -> {duration(means[1])}.")
    if found.verdict.device:
        sentences.append(found.verdict.device)
    if steps.clock == "device":
        sentences.append("The device sets the pace: a step's time runs from one completion of its work to the next.")
    return sentences


def _recordings(found: Difference) -> Table:
    columns = (Column(), Column("file"), Column("device", below=True), Column("compared", below=True))
    return Table(columns, rows_of([_recording("A", found.a), _recording("B", found.b)]))


def _recording(which: str, side: RecordedTrace) -> tuple[Cell, ...]:
    rounds = side.rounds
    steps = f"{counted(len(rounds), 'step')}, {rounds.name}" if rounds.are_steps else rounds.name
    return which, File(side.file), side.device, Words(steps + (" (inferred)" if rounds.inferred else ""))


def _check(found: Difference | JobDifference, limit: float) -> Checks:
    slower = found.slower_than(limit)
    difference = found.difference if isinstance(found, JobDifference) else found
    text = f"At most {percent(limit)} slower: {difference.verdict.sentence}"
    outcome: Literal["passed", "failed", "skipped", "error"] = "error" if slower is None else "passed"
    if slower:
        outcome = "failed"
    elif slower is not None and difference.steps.median_us[1] > (1 + limit) * difference.steps.median_us[0]:
        outcome = "skipped"
        text += (
            " Cannot judge: the medians differ by more than the limit, but not by more than the noise. Record more "
            "steps on an idle machine, or check counts with torchwhy gate."
        )
    return Checks((Check("step time", outcome, text),))


def _ranks(found: JobDifference) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (str(pair.rank), *(_pair(pair.per_step_us(part)) for part in ("duration", "compute", "exposed")))
        for pair in found.pairs
    ]
    sentences = [f"Rank {found.rank} computes longest on B: the verdict above and all below are of its two recordings."]
    for which, alone in (("A", found.only_a), ("B", found.only_b)):
        if alone:
            sentences.append(f"Only on {which}: rank {', '.join(map(str, alone))}.")
    columns = tuple(Column(title, number=True) for title in ("rank", "a step", "computes", "only communicates"))
    return Table(columns, rows_of(rows, _RANKS), "Ranks, per step", tuple(sentences), ("rank", "ranks"))


def _origins(found: Difference) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (
            _signed(origin.change_us),
            "" if origin.share is None else percent(origin.share),
            origin.state,
            _calls(origin.calls),
            _place(origin),
        )
        for origin in found.origins
    ]
    columns = (
        Column("change", number=True),
        Column("share", number=True),
        Column(),
        Column("calls", number=True),
        Column("path", below=True),
    )
    return Table(columns, rows_of(rows, _MOST), "Where the difference arises", _origin_sentences(found) if rows else ())


def _origin_sentences(found: Difference) -> tuple[str, ...]:
    a, b = found.step_us
    own = [origin.change_us for origin in found.origins if OTHER_THREADS not in origin.path]
    less, more = (sum(us for us in own if us < 0), sum(us for us in own if us > 0))
    unit = "An average step" if found.a.rounds.are_steps else "The recording"
    first = f"{unit} goes from {duration(a)} to {duration(b)} on the host ({_signed(b - a)})"
    both = bool(less and more)
    rest = abs(b - a - less - more) > 0.05 * max(-less, more)
    sides = f": {duration(-less)} less in some places, {duration(more)} more in others" if both else ""
    sentences = [f"{first}{sides}{', the rest where too little changes to be listed' if sides and rest else ''}."]
    path = found.main_path
    if path and path.share is not None:
        what = "is added" if path.change_us > 0 else "is saved"
        sentences.append(f"{percent(path.share)} of what {what} arises in {' > '.join(map(short_name, path.path))}.")
    if both:
        sentences.append("Shares are of all that takes less, or of all that takes more.")
    gone, came = (
        sum(max(origin.us) for origin in found.origins if origin.state == state)
        + sum(origin.us[i] for origin in found.origins if origin.state == "replaced")
        for i, state in enumerate(("gone", "added"))
    )
    if gone and came:
        sentences.append(f"Calls that are gone took {duration(gone)}, those that came take {duration(came)}.")
    return tuple(sentences)


def _place(origin: Origin) -> Cell:
    path = tuple(map(short_name, origin.path))
    if origin.state != "replaced":
        return Calls(path, f"name:{origin.path[-1]}") if path else Calls(("between the calls of a step",))
    gone, came = (_names(names) for names in origin.replaced)
    return Calls((*path, f"{gone} -> {came}"))


def _names(names: tuple[str, ...]) -> str:
    return short_name(names[0]) + (f" +{len(names) - 1}" if len(names) > 1 else "")


def _labels(labels: tuple[LabelTimes, ...]) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (Name(label.name), _calls(label.calls), _pair(label.host_us), _pair(label.device_us)) for label in labels
    ]
    columns = (Column("label"), *(Column(title, number=True, below=True) for title in ("calls", "host", "device")))
    return Table(
        columns, rows_of(rows, _MOST), "Labels of the program, with all that runs inside", noun=("label", "labels")
    )


def _totals(found: Difference) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (total.name, _amount(total.a, total.unit), _amount(total.b, total.unit), _change(total))
        for total in found.totals
    ]
    columns = (Column(), *(Column(title, number=True) for title in ("A", "B", "change")))
    return Table(columns, rows_of(rows), "Per step" if found.a.rounds.are_steps else "In the whole recording")


def _changes(title: str, changes: Changes, when: Literal["always", "full"] = "always") -> Table:
    host = any(any(change.host_us) for change in changes.shown)
    device = any(any(change.device_us) for change in changes.shown)
    rows = [
        Row(_changed(change, host=host, device=device), "always" if i < _MOST else "full")
        for state in STATES
        for i, change in enumerate(changes[state])
    ]
    small = f"{counted(changes.trifles, 'name')} that came or went take too little time to be listed."
    numbers = ("calls", *(("host",) if host else ()), *(("device",) if device else ()), "change")
    columns = (Column(), Column("name"), *(Column(title, number=True, below=True) for title in numbers))
    return Table(columns, tuple(rows), title, (small,) if rows and changes.trifles else (), when=when)


def _changed(change: Change, *, host: bool, device: bool) -> tuple[Cell, ...]:
    times = ([change.host_us] if host else []) + ([change.device_us] if device else [])
    spent = (_pair(pair) if any(pair) else "" for pair in times)
    sizes = f" ({size_text(change.size[0])} -> {size_text(change.size[1])})" if any(change.size) else ""
    return change.state, Name(short_name(change.name), sizes), _calls(change.calls), *spent, _signed(change.change_us)


def _kernel_sets(found: Difference) -> Table:
    sets = found.kernel_sets
    names = (Column("operator"), Column("launches on A"), Column("launches on B instead"))
    columns = (*names, Column("time", number=True, below=True))
    if sets is None:
        return Table(columns, ())
    if sets.identical:
        text = f"Identical: {counted(sets.in_common, 'name')}, each as often per step. That is the same GPU work."
        return Table(columns, (), "Kernel sets", (text,))
    ending = "two makers' kernels have different names" if found.two_vendors else "not the same GPU work"
    often = f", {len(sets.counts_differ)} not as often" if sets.counts_differ else ""
    sentence = (
        f"{counted(sets.in_common, 'name')} in common, {len(sets.only_a)} only on A, {len(sets.only_b)} only on B"
        f"{often}: {ending}."
    )
    rows: list[tuple[Cell, ...]] = []
    for item in sets.replaced:
        used = (
            Name(short_name(uses[0][0]), f" +{len(uses) - 1}" if len(uses) > 1 else "")
            for uses in (item.before, item.after)
        )
        rows.append((Name(item.operator), *used, _pair(item.us)))
    return Table(columns, rows_of(rows, _MOST), "Kernel sets", (sentence,), pair=True)


def _fates(found: Difference) -> Table:
    """What matters little, or is as it was, is for the full view."""
    order = sorted(found.findings, key=lambda fate: FATES.index(fate.state))
    rows = tuple(Row(_fate(fate), "full" if _matters_little(fate) else "always") for fate in order)
    same = dict.fromkeys(f"{f.finding.code} {f.finding.slug}".strip() for f in order if f.state == "unchanged")
    columns = (Column(), Column(), Column("rule"), Column("per step", number=True), Column("what", below=True))
    unchanged = (f"Unchanged: {', '.join(same)}.",) if same else ()
    return Table(columns, rows, "Findings", unchanged, ("finding", "findings"), answers=True)


def _matters_little(fate: Fate) -> bool:
    return fate.state == "unchanged" or fate.finding.severity == "info"


def _fate(fate: Fate) -> tuple[Cell, ...]:
    finding = fate.finding
    text = f"{finding.title}; {fate.note}" if fate.note else finding.title
    times = _pair(fate.us) if any(fate.us) else ""
    return fate.state, _ids(fate), finding.slug, times, Words(text, f"titled:{finding.title}")


def _ids(fate: Fate) -> str:
    """By which the finding can be requested, on A and on B."""
    ids = dict.fromkeys(filter(None, fate.ids))
    return " -> ".join(ids) or fate.finding.code


def _change(total: Total) -> str:
    """What became of a total, from A to B."""
    if total.a is None or total.b is None or total.a == total.b:
        return ""
    if total.judgement == "noise":
        return "within the noise"
    if not total.a:
        return "new"
    change = total.b / total.a - 1
    if total.judgement == "margin":
        return f"{'+' if change > 0 else '-'}{percent(abs(change))}"
    return f"{change:+.0%}" if change < 9 else f"x{total.b / total.a:,.0f}"


def _calls(calls: tuple[float, float]) -> str:
    """How often on A and on B."""
    a, b = (f"{value:,.0f}" if value == round(value) else f"{value:,.1f}" for value in calls)
    return a if a == b else f"{a} -> {b}"


def _pair(times_us: tuple[float, float]) -> str:
    return f"{duration(times_us[0])} -> {duration(times_us[1])}"


def _signed(us: float) -> str:
    return f"{'+' if us > 0 else '-' if us < 0 else ''}{duration(abs(us))}"


def _amount(value: float | None, unit: str) -> str:
    """A total in its unit."""
    if value is None:
        return "-"
    if unit == "us":
        return duration(value)
    return size_text(value) if unit == "bytes" else f"{value:,.0f}" if value == round(value) else f"{value:,.1f}"
