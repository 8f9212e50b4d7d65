"""Evidence of trials: where the program calls operators that were run again in another way."""

from __future__ import annotations

from collections.abc import Sequence

from torchwhy.finding import Evidence
from torchwhy.trace.derived.contents import Trial, contents
from torchwhy.trace.meaning.frames import line_of, own_place, place_in_script
from torchwhy.trace.meaning.operators import short_operator
from torchwhy.trace.model.trace import Trace

__all__ = ["lines_of", "place_of", "short_names"]


def lines_of(trace: Trace, trials: Sequence[Trial]) -> tuple[Evidence, ...]:
    """Return the program's lines that call the operators of some trials, three at most, in their order."""
    noted, found = trace.derived(contents), dict[str, Evidence]()
    for trial in trials:
        stack = noted.stack_of(trial)
        own = own_place(stack)
        if own and own not in found:
            rest = stack[stack.index(own) :]
            found[own] = Evidence(line_of(own), trial.looks, stack=rest, note=noted.source.get(own, ""))
    return tuple(found.values())[:3]


def place_of(trace: Trace, trials: Sequence[Trial]) -> str:
    """Return the first of these lines in words, " It is in ..." or ""."""
    noted = trace.derived(contents)
    own = next((own for trial in trials if (own := own_place(noted.stack_of(trial)))), "")
    return f" It is in {place_in_script(own) or own}." if own else ""


def short_names(trials: Sequence[Trial]) -> str:
    """Return the operators' names, each once, three at most."""
    names = list(dict.fromkeys(short_operator(trial.operator).lstrip("_") for trial in trials))
    return ", ".join(names[:3]) + (" and others" if len(names) > 3 else "")
