"""Results that are computed again from inputs with the same contents."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from torchwhy.finding import Evidence, Finding
from torchwhy.rules.compute.not_a_number import not_a_number
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.contents import Operator
from torchwhy.trace.derived.repeats import Repetition, repeated_calls, repetitions
from torchwhy.trace.derived.steady_state import steady_window
from torchwhy.trace.meaning.frames import called_name, line_of, place_in_script, without_numbers
from torchwhy.trace.meaning.operators import short_operator
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import counted, percent

__all__ = ["computed_again"]

ALSO: Final = 0.1
"""Another line of the function is named if it takes this part of the first line's time."""


@rule("D75", "computed-again", source="the bytes of all operators' inputs, compared for some steps", frees="host")
def computed_again(trace: Trace, *, share: float = 0.03) -> Iterator[Finding]:
    """The program computes again what it has computed from the same inputs before.

    Sees: from the tenth step after the recorded ones, `torchwhy profile` compares the bytes of each operator's inputs
    with its earlier calls, for up to 32 steps. Lines are named whose operators had the same inputs and the same result
    three times or more, and in three of four calls; in the recorded steps the repeated operators take 3% of the window
    or more. Lines of one function are one finding.

    Costs: the repeated operators' time, in each step, and the Python code around them: all of a line's that calls
    nothing else, by samples of the stack; else from one operator to the next. At stake is the part that was repeated.

    Fix: compute it once and keep the result: before the loop, as a buffer of the module, or for a frozen module as
    features of the whole data set. A result that is needed twice in a step is passed on.

    Known problems: only the processor's tensors are compared, and only for some steps: inputs that change more rarely
    look constant. Whether the results of a whole data set fit into memory isn't known, so a finding on inputs that come
    back in turn is low at most. What comes again after more steps than are watched, such as a long epoch, is not seen.
    Backward passes, which recompute on purpose, what an optimizer calls, and operators of other packages aren't judged.
    Where the parameters are NaN, and so all results are equal, nothing is named.
    """
    window = trace.derived(steady_window)
    if any(not_a_number.check(trace)):  # then all results are equal
        return
    functions: dict[str, list[Repetition]] = {}
    for one in trace.derived(repetitions):
        functions.setdefault(without_numbers(one.stack[0]), []).append(one)
    for lines in functions.values():
        parts: dict[Operator, float] = {}
        for one in lines:
            for operator, part in one.parts.items():
                parts[operator] = min(parts.get(operator, 0.0) + part, 1.0)
        inside = {stack: again for one in lines for stack, again in one.inside.items()}
        rows, when, repeated_us = repeated_calls(trace, parts, inside)
        part = repeated_us * 1000 / max(window.end - window.start, 1)
        if part < share:
            continue
        cause, fix = _advice(lines[0])
        others = [one.stack[0] for one in lines[1:] if one.time_us >= ALSO * lines[0].time_us]
        also = f" and in {others[0]}" if others else ""
        place = place_in_script(lines[0].stack[0])
        yield Finding(
            title=f"{_named(lines[0])} is computed again from the same inputs: {percent(part)} of the time",
            confidence="high",
            most="low" if lines[0].in_turn else "high",
            time_us=repeated_us,
            stretches=when,
            window=window,
            evidence=(
                *(
                    Evidence(line_of(one.stack[0]), one.calls, stack=one.stack, note=one.source) for one in lines[:3]
                ),
                *evidence(trace, rows),
            ),
            cause=f"{cause} It is in {lines[0].stack[0]}{also}.",
            fix=fix + (f" See {place}." if place else ""),
        )  # fmt: skip


def _named(one: Repetition) -> str:
    """What is computed, in a few words."""
    if one.function:
        return f"The result of {one.function}()"
    if one.in_module:
        return "A module's output"
    if "::" not in one.called:
        return f"The result of {called_name(one.called)}"
    others = len({name for name, _ in one.parts}) - 1
    also = f" and {counted(others, 'other operator')}" if others else ""
    return f"The result of {short_operator(one.called).lstrip('_')}{also}"


def _advice(one: Repetition) -> tuple[str, str]:
    """Cause and fix, by where the equal inputs come from."""
    if one.earlier:
        return (
            f"{line_of(one.earlier)} has computed the same in the same step: the inputs of {one.calls} calls were "
            "equal, byte by byte.",
            f"Compute it once, in {one.earlier}, keep the result and use it in both places.",
        )
    if one.in_turn:
        return (
            f"The same inputs come back in turn, as in each epoch: in {one.calls} calls they were equal, byte by byte, "
            "to earlier ones.",
            "Compute it once for the whole data set, keep the results, and look them up: for a frozen module, its "
            "features."
            if one.in_module
            else "Compute it once for the whole data set, keep the results, and look them up.",
        )
    return (
        f"Its inputs do not change: in {one.calls} calls they were equal, byte by byte.",
        "Compute it once, before the loop, and keep the result, in a module with register_buffer. Where an input "
        "changes at times, compute it then.",
    )
