"""The file itself: damaged and read nevertheless, or too large for what it says."""

from __future__ import annotations

from collections.abc import Iterator

from torchwhy.finding import Evidence, Finding
from torchwhy.rules.rule import rule
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import counted, percent, size_text

__all__ = ["huge_trace", "repaired_file"]


@rule("A7", "repaired-file", source="PyTorch issue 136180 and the kineto exporter's history", frees="nothing")
def repaired_file(trace: Trace) -> Iterator[Finding]:
    """The file was damaged, and was repaired while reading.

    Sees: what was repaired while reading: control characters and invalid UTF-8 in names, unescaped quotes,
    NaN or N/A and times out of range, stray commas, events that could not be read, a file that ends early.

    Costs: nothing where only spelling was wrong. Where the file ends early, what came after is missing, so totals and
    the last steps are incomplete.

    Fix: a newer PyTorch writes correct JSON; a file that ends early was still being written, or its disk was full.

    Known problems: where a file ends early, how much is missing isn't known.
    """
    repairs = trace.repairs
    found = {
        "the file ends before its JSON does": repairs.truncated,
        "the compressed file ends early": repairs.truncated_gzip,
        "events left out as unreadable": repairs.damaged_events,
        "control characters in texts": repairs.control_characters,
        "invalid UTF-8": repairs.invalid_utf8,
        "unescaped quotes": repairs.unescaped_quotes,
        "NaN, Infinity or N/A instead of a number, or one out of range": repairs.not_numbers,
        "stray commas": repairs.stray_commas,
    }
    rows = tuple(Evidence(name, int(number)) for name, number in found.items() if number)
    if not rows:
        return
    cut, lost = repairs.truncated or repairs.truncated_gzip, repairs.damaged_events
    if cut:
        title = "The file ends early: what came after is missing"
        fix = "Record again, and let the program end before the file is copied; check that the disk isn't full."
    elif lost:
        title = f"{lost:,} events of the file could not be read and were left out"
        fix = "Export again with a newer PyTorch, whose exporter escapes what it writes."
    else:
        total = sum(row.count for row in rows)
        title = f"{counted(total, 'place')} of the file had to be repaired while reading"
        fix = "Other tools may refuse the file; a newer PyTorch writes it correctly."
    yield Finding(
        title=title,
        severity="low" if cut or lost else "info",
        confidence="high",
        window=trace.window,
        evidence=rows,
        cause="The exporter wrote it so, or it was cut off while being written or copied.",
        fix=fix,
        linked=True,
    )


@rule("A17", "huge-trace", source="kineto issues 595 and 805", frees="nothing")
def huge_trace(trace: Trace, *, megabytes: float = 500, events: float = 2_000_000) -> Iterator[Finding]:
    """The trace is too large for what it says.

    Sees: more than 500 MB of JSON, or more than 2 million events.

    Costs: minutes to write and to load, viewers that run out of memory, and a program slowed down while recorded.

    Fix: record one to three steps (`active=1`), and leave out `with_stack` and `profile_memory` unless they are needed.

    Known problems: viewers have these limits; torchwhy itself reads larger files.
    """
    if trace.size <= megabytes * 1e6 and len(trace) <= events:
        return
    counts = trace.events.count_by_kind
    kinds = sorted(Kind, key=lambda kind: -int(counts[kind]))[:5]
    rows = tuple(Evidence(f"events: {kind.name.lower()}", int(counts[kind])) for kind in kinds if counts[kind])
    frames = int(counts[Kind.PYTHON])
    steps = len(trace.steps_found)
    advice = []
    if steps > 3:
        advice.append(f"record 1 to 3 steps instead of {steps} (schedule(..., active=3))")
    if frames * 2 > len(trace):
        advice.append(f"leave out with_stack, which makes {percent(frames / len(trace))} of the events")
    if counts[Kind.MEMORY] * 10 > len(trace):
        advice.append("leave out profile_memory")
    fix = "; ".join(advice) or "record a shorter part of the program"
    yield Finding(
        title=f"The trace holds {len(trace):,} events in {size_text(trace.size)}",
        severity="info",
        confidence="high",
        window=trace.window,
        evidence=rows,
        cause="A long window, Python stacks or memory events.",
        fix=fix[0].upper() + fix[1:] + ".",
        linked=True,
    )
