"""Operators that take long because of subnormal numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from torchwhy.finding import Finding
from torchwhy.rules.compute.tried import lines_of, place_of, short_names
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.contents import Trial, calls_of, contents, parts_of
from torchwhy.trace.derived.steady_state import steady_window
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import digits, percent

__all__ = ["subnormal_numbers"]


FOLLOWS: Final = 1.5
"""An operator follows the processor's mode if it then takes at most this many times the time with a floor."""


@rule("D76", "subnormal-numbers", source="operators run again without subnormal numbers", frees="host")
def subnormal_numbers(trace: Trace, *, runs: int = 3, share: float = 0.05) -> Iterator[Finding]:
    """Numbers so small that the processor is slow with them (subnormal, or denormal) are computed with.

    Sees: in steps after the recorded ones, `torchwhy profile` samples the numbers of operators that take 50 us or more.
    Where 1% of an input or result lies below the smallest normal number (1.2e-38 in float32), it runs the operator
    again with such numbers, with `torch.set_flush_denormal`, and with a floor under its inputs. Operators are named
    that had such numbers in most of the calls, or in calls that took most of the time. Without them, they took two
    thirds of the time or less in three of four runs and three times or more. That saves 5% of the window or more.

    Costs: such a number takes a processor up to a hundred cycles instead of a few. At stake is the time of the calls
    with such numbers, less what the runs without them took.

    Fix: `torch.set_flush_denormal(True)` at the beginning of the program: threads that PyTorch starts later inherit it.
    Square roots, logarithms and exponentials may not follow that: keep their inputs away from such numbers with a
    floor, `x.clamp_min(1e-30)`, or add a constant where numbers decay.

    Known problems: how slow they are depends on the processor and on the operator. Operators that write to their
    inputs, such as a fused optimizer's, are not run again. With several threads the runs show less than the fix saves,
    since the setting is the calling thread's. Numbers below 1.2e-38 in float32 become 0, which hardly any program
    notices.
    """
    window = trace.derived(steady_window)
    slow = [one for one in trace.derived(contents).trials if _is_slow(one, runs)]
    saved = [(one, _saved(one)) for one in slow]
    rows, when, saved_us = calls_of(trace, parts_of(trace, saved))
    part = saved_us * 1000 / max(window.end - window.start, 1)
    if not slow or part < share:
        return
    slow.sort(key=lambda one: _without_us(one) - one.plain_us)
    times = sum(one.plain_us for one in slow) / max(sum(map(_without_us, slow)), 1e-3)
    floor = "Keep numbers away from zero where they decay: x.clamp_min(1e-30), or a constant that is added."
    yield Finding(
        title=f"Subnormal numbers make {short_names(slow)} {digits(times, 2)} times as slow: "
        f"{percent(part)} of the time",
        confidence="high",
        time_us=saved_us,
        stretches=when,
        window=window,
        evidence=(*lines_of(trace, slow), *evidence(trace, rows)),
        cause=f"In {sum(one.subnormal for one in slow)} of {sum(one.looks for one in slow)} calls that were examined, "
        "numbers were subnormal (below 1.2e-38 in float32). The operators were run again without such numbers."
        f"{place_of(trace, slow)}",
        fix=f"Call torch.set_flush_denormal(True) once, at the beginning of the program. Or: {floor}"
        if slow[0].flushed_us <= FOLLOWS * slow[0].floored_us
        else f"{floor} torch.set_flush_denormal(True) does not help {short_names(slow[:1])}.",
    )


def _is_slow(one: Trial, runs: int) -> bool:
    often = one.looks > 0 and (2 * one.subnormal >= one.looks or 2 * one.subnormal_us >= one.all_us > 0)
    return often and one.reruns >= runs and 4 * one.faster >= 3 * one.reruns and one.plain_us > _without_us(one) >= 0


def _saved(one: Trial) -> float:
    """The part of the operator's time that is saved without subnormal numbers, 0 to 1.

    Calls with subnormal numbers take longer than the others, and those that were run again are the first of them.
    """
    if one.all_us <= 0:  # not noted
        return one.subnormal / one.looks * (1 - _without_us(one) / one.plain_us)
    without_us = one.subnormal_calls * _without_us(one) / one.reruns
    return max((one.subnormal_us - without_us) / max(one.all_us, one.subnormal_us), 0.0)


def _without_us(one: Trial) -> float:
    return min(one.flushed_us, one.floored_us)
