"""Time that goes to compiling instead of computing."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from torchwhy.finding import Evidence, Finding
from torchwhy.rules.compiler.logged import compilations_as_evidence, failed_guard, guards_of, with_reason
from torchwhy.rules.compiler.shapes import changed_shape
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.compiled import Compilation, compiled_of
from torchwhy.trace.derived.idle import at_stake
from torchwhy.trace.meaning.compiler import TUNING, TUNING_FRAME
from torchwhy.trace.model.intervals import Intervals
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import counted, duration, duration_ns, enumeration

__all__ = ["autotune_in_window", "compile_in_window", "recompiles"]


@rule(
    "E1",
    "compile-in-window",
    source="torch.compile's own stages (`... (dynamo_timed)`); 1% of the window",
    frees="host",
)
def compile_in_window(trace: Trace, *, share: float = 0.01) -> Iterator[Finding]:
    """Code is compiled while the program is being measured.

    Sees: the time in stages of torch.compile (Dynamo, AOTAutograd, Inductor), stages within stages counted once, as
    a share of the window; with a GPU only while it has no work. Compilations that repeat an earlier one are
    `recompiles`.

    Costs: seconds, once. The times of everything else in such a window say little about the program's steady state.

    Fix: run what is to be measured a few times before the profiler starts, backward pass included, since that is
    compiled when it first runs. Between runs of the program, Inductor's cache on disk saves most of it.

    Known problems: with caches on disk a compilation is short and still counts. Stages on other threads are counted
    while they run, whoever waits for them.
    """
    first, _ = _by_kind(trace)
    lost = at_stake(trace, _union(first))
    if not lost or trace.window.share(lost) < share:
        return
    inside = [c for c in first if lost.overlap([c.start], [c.end])[0] > 0]
    steps = _step_names(trace, [c.start for c in inside])
    backward = sum(c.backward for c in inside)
    parts = counted(len(inside), "compilation")
    parts += f", {backward} for backward passes" if backward else ""
    if steps and len(steps) < len(trace.steps_found):
        fix = f"Leave {', '.join(steps[:3])} out of the measurement: a schedule with more warm-up steps does that. "
    else:
        fix = "Run the same work once or twice before the profiler starts. "
    yield Finding(
        title=f"{duration_ns(lost.total)} of {duration(trace.window.us)} go to torch.compile ({parts})",
        confidence="high",
        stretches=lost,
        window=trace.window,
        evidence=compilations_as_evidence(trace, inside, lost, compile_in_window.frees)
        or _evidence(trace, inside, lost),
        cause="Functions run for the first time in this window, so they are compiled in it.",
        fix=fix + "To study the compilation itself, torch._dynamo.utils.compile_times() has it by stage.",
        linked=True,
    )


@rule(
    "E2",
    "recompiles",
    source="the number M of `Torch-Compiled Region: K/M` and of the compilation's own `compile_id`",
    frees="host",
)
def recompiles(trace: Trace, *, share: float = 0.01, steps: int = 3) -> Iterator[Finding]:
    """A function that was compiled already is compiled again.

    Sees: compilations with a number K/M where M is 1 or more, and their time; in traces without numbers, compilations
    in three or more steps. With a GPU, only time in which it has no work.

    Costs: each takes as long as the first did, and every variant makes each later call look through more of them.
    After eight variants PyTorch gives up on the function and runs it uncompiled.

    Fix: the compiler's log (`torchwhy profile --compile-log`) or TORCH_LOGS=recompiles names the guard that failed: a
    size, a dtype, a Python value, the grad mode. Mark sizes
    that vary (torch._dynamo.mark_dynamic, or dynamic=True), keep numbers that vary out of the arguments (pass tensors),
    pad to few sizes.

    Known problems: compiling for both training and evaluation, or for two dtypes, is two variants and no fault.
    """
    first, again = _by_kind(trace)
    certain = bool(again)
    if not certain:
        again = _later_steps(trace, first, steps)
    lost = at_stake(trace, _union(again))
    if not again or not lost or trace.window.share(lost) < share:
        return
    forward = [c for c in again if not c.backward] or again
    names = ", ".join(dict.fromkeys(c.id for c in forward if c.id))
    where = _step_names(trace, [c.start for c in again])
    refused = _refused(trace, forward)
    made = len(forward) - len(refused)
    limit = f"{counted(len(refused), 'attempt')} beyond the limit" if refused else ""
    number = enumeration([*([counted(made, "recompilation")] if made else []), *([limit] if limit else [])])
    verb = "take" if made + len(refused) > 1 else "takes"
    guard = failed_guard(trace, [c.id for c in forward])
    changed = guard or changed_shape(trace, forward)
    once = len(forward) == 1 and len(trace.steps_found) >= 3
    dynamic = (
        "If the size of an input varies, say so before the first call (torch._dynamo.mark_dynamic or dynamic=True). "
    )
    known = guards_of(trace, [c.id for c in forward])
    number_of_python = re.match(r"(\w+) == -?[0-9.]+\b", known[0][1].guard) if known else None
    if number_of_python:
        advice = f"{number_of_python[1]} is a Python number: pass it as a tensor, or let it take only a few values."
    else:
        advice = f"{dynamic}Keep changing Python numbers out of it."
    title = f"{number} {verb} {duration_ns(lost.total)} of {duration(trace.window.us)}" + (
        f" ({names})" if names else ""
    )
    yield Finding(
        title=with_reason(title, known[0][1].guard if known else ""),
        most="low" if once else "high",
        once=once,
        confidence="high" if certain else "low",
        stretches=lost,
        window=trace.window,
        evidence=compilations_as_evidence(trace, again, lost, recompiles.frees) or _evidence(trace, again, lost),
        cause=(changed or "A guard of the compiled code failed: its inputs or other values that it depends on differ.")
        + (f" It happened in {', '.join(where[:4])}{' and others' if len(where) > 4 else ''}." if where else ""),
        fix=("" if guard else "TORCH_LOGS=recompiles prints which guard failed. ") + advice,
        linked=bool(changed) and (not guard or trace.compile_log is None or trace.compile_log.ours),
    )


@rule(
    "E10",
    "autotune-in-window",
    source="Inductor's stages that benchmark variants of a kernel (CachingAutotuner, AlgorithmSelectorCache)",
    frees="host",
)
def autotune_in_window(trace: Trace, *, share: float = 0.01) -> Iterator[Finding]:
    """Variants of kernels are tried out while the program is being measured.

    Sees: the time in Inductor's tuning stages or, where Python frames were recorded, in its functions that benchmark.
    This is a part of what `compile-in-window` counts, where both fire.

    Costs: every candidate is compiled and run dozens of times; with mode="max-autotune" minutes for a large model. The
    kernels launched meanwhile are no part of the program's work, yet appear in every table of it.

    Fix: warm up before measuring. The winners are remembered on disk (TORCHINDUCTOR_CACHE_DIR), so keep that folder.

    Known problems: tuning of kernels that the program will run a million times is time well spent.
    """
    rows = trace.events.of(TUNING)
    if trace.has_stacks:
        rows = np.concatenate((rows, trace.events.of(TUNING_FRAME))).astype(np.int32)
    if not len(rows):
        return
    spent = trace.events.times_of(rows).clip(trace.window.start, trace.window.end)
    if not spent or trace.window.share(spent) < share:
        return
    yield Finding(
        title=f"{duration_ns(spent.total)} of {duration(trace.window.us)} go to trying out variants of kernels",
        confidence="high",
        stretches=spent,
        window=trace.window,
        evidence=evidence(trace, rows, times=trace.events.covered(rows, spent)),
        cause="Kernels are tuned when they first run; that happened in this window.",
        fix="Run the same shapes once before the profiler starts, and keep Inductor's cache folder between runs.",
        linked=True,
    )


def _by_kind(trace: Trace) -> tuple[list[Compilation], list[Compilation]]:
    """Compilations of something new, and of something compiled before."""
    found = trace.derived(compiled_of).compilations
    return [c for c in found if c.version <= 0], [c for c in found if c.version > 0]


def _refused(trace: Trace, found: list[Compilation]) -> list[Compilation]:
    """Compilations that PyTorch gave up, since the function has too many variants, as the log says."""
    frames = trace.compile_log.frames if trace.compile_log is not None else {}
    return [one for one in found if one.id in frames and frames[one.id].gave_up]


def _later_steps(trace: Trace, found: list[Compilation], steps: int) -> list[Compilation]:
    """Without numbers: compilations after the first step that has any, if that many steps have some."""
    unnamed = [c for c in found if not c.id]
    inside = [s for s in trace.steps_found if any(s.start <= c.start < s.end for c in unnamed)]
    return [c for c in unnamed if c.start >= inside[0].end] if len(inside) >= steps else []


def _union(found: list[Compilation]) -> Intervals:
    return Intervals.union([c.start for c in found], [c.end for c in found])


def _evidence(trace: Trace, found: list[Compilation], lost: Intervals) -> tuple[Evidence, ...]:
    rows = np.array([c.row for c in found], np.int32)
    times = lost.overlap([c.start for c in found], [c.end for c in found])
    names = ", ".join(dict.fromkeys(c.id for c in found if c.id))
    return evidence(trace, rows, times=times, note=names)


def _step_names(trace: Trace, moments: list[int]) -> list[str]:
    """The names of the steps in which these moments lie, each once, in order."""
    return [s.name for s in trace.steps_found if any(s.start <= moment < s.end for moment in moments)]
