"""Kernels of compiled graphs: those Inductor made, and those it left to PyTorch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.compiled import compiled_of
from torchwhy.trace.derived.kernels import kernel_names
from torchwhy.trace.file.columns import Int32
from torchwhy.trace.meaning.compiler import EAGER_KERNEL, FUSED_KERNEL, cached_graph, graph_hash
from torchwhy.trace.meaning.kernels import decode
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import counted, duration, percent

__all__ = ["fallback_kernels", "inductor_names"]

LINES: Final = 5
"""Lines of the program that are named of a fused kernel."""


@rule(
    "E4",
    "fallback-kernels",
    source="PyTorch's own kernels (at::native) launched by compiled graphs; 50 us per call, 5% of the device's time",
    needs={"gpu"},
    frees="device",
)
def fallback_kernels(trace: Trace, *, per_call_us: float = 50.0, share: float = 0.05) -> Iterator[Finding]:
    """A compiled graph runs kernels of uncompiled PyTorch.

    Sees: kernels named at::native launched from within `## Call CompiledFxGraph`. Kernels of vendors' libraries are
    what Inductor is meant to call; what runs between graphs belongs to a graph break.

    Costs: such an operator is fused with nothing: its inputs and results go through memory.

    Fix: TORCH_LOGS=inductor and TORCH_LOGS=output_code show what was left as an extern or fallback call. Write it with
    operators Inductor lowers, or register a lowering or a Triton kernel for it.

    Known problems: some operators are faster in PyTorch's own kernel, and Inductor leaves them to it on purpose.
    """
    compiled = trace.derived(compiled_of)
    events, links = trace.events, trace.links
    if not len(compiled.graphs):
        return
    kernels = trace.gpu.kernels
    eager = kernels[events.are(EAGER_KERNEL, kernels)]
    launch = links.of(eager)
    inside = np.zeros(len(eager), np.bool_)
    for lane in np.unique(events.lane[compiled.graphs]).tolist():
        graphs = compiled.graphs[events.lane[compiled.graphs] == lane]
        calls = events.times_of(graphs)
        covered = events.covered(launch, calls) > 0
        inside |= (launch >= 0) & (events.lane[launch] == lane) & covered
    eager = eager[inside]
    spent = trace.when(eager)
    total, busy = spent.total / 1000, trace.gpu.busy.clip(trace.window.start, trace.window.end).total / 1000
    if not total or total < share * busy or total < per_call_us * len(compiled.graphs):
        return
    yield Finding(
        title=f"{len(eager)} kernels of uncompiled PyTorch run in compiled graphs, {duration(total)}, "
        f"{percent(total / busy)} of the device's time",
        confidence="medium",
        stretches=spent,
        window=trace.window,
        evidence=evidence(trace, eager),
        cause="Inductor has no lowering for these operators, or leaves them to PyTorch on purpose, and fuses nothing "
        "with them.",
        fix="TORCH_LOGS=output_code shows the extern calls. Replace the operator by ones that fuse, or give it a "
        "custom Triton kernel.",
        linked=True,
    )


@rule(
    "E12",
    "inductor-name-legend",
    source="Inductor's naming of kernels: triton_<kind>_fused_<operators>_<number>",
    frees="nothing",
)
def inductor_names(trace: Trace, *, share: float = 0.05) -> Iterator[Finding]:
    """The meaning of the names of Inductor's kernels.

    Sees: kernels called triton_poi_fused_..., triton_red_fused_..., triton_per_fused_... that take five percent of the
    device's time or more.

    Costs: nothing; this explains.

    Fix: none is needed. poi is pointwise, red a reduction in a loop, per one that fits in registers, tem a template;
    then follow the fused operators and the number in the graph. TORCH_LOGS=output_code prints the code by that name;
    the finding says where it lies on disk.

    Known problems: a name lists ten operators at most (torch._inductor.config.kernel_name_max_ops). The cache folder is
    that of the machine that recorded.
    """
    events = trace.events
    rows = events.of(FUSED_KERNEL)
    busy = trace.gpu.busy.clip(trace.window.start, trace.window.end).total
    spent = trace.when(rows)
    total = spent.total
    if not busy or total < share * busy:
        return
    found, log = [], trace.compile_log
    for item in evidence(trace, rows, limit=3):
        kernel = decode(item.name)
        if kernel.fused:
            lines = log.kernels.get(item.name, ()) if log is not None else ()
            made = f", of {', '.join(lines[:LINES])}{', ...' if len(lines) > LINES else ''}" if lines else ""
            found.append(replace(item, stack=(), note=f"{kernel.description}{made}"))
    if not found:
        return
    names = len(np.unique(events.name[rows]))
    yield Finding(
        title=f"Inductor made {counted(names, 'fused kernel')} that take{'s' if names == 1 else ''} "
        f"{percent(total / busy)} of the device's time",
        severity="info",
        confidence="high",
        stretches=spent,
        window=trace.window,
        evidence=tuple(found),
        cause="Their names say kind, fused operators and number: poi is pointwise, red a reduction in a loop, per one "
        "in registers, tem a template." + _where_code_is(trace, rows) + _cached(trace),
        fix="",
        linked=True,
    )


def _where_code_is(trace: Trace, kernels: Int32) -> str:
    """Where generated code lies on disk: the file that the kernel's operator names, else the graph's cache entry."""
    events = trace.events
    operators = trace.derived(kernel_names).operators_of(kernels)
    operators = operators[operators >= 0]
    file = next((text for row in operators.tolist() if (text := events.text("kernel_file", row))), "")
    if file:
        return f" The code of the first: {file}."
    graphs = trace.derived(compiled_of).graphs.tolist()
    entry = next((path for row in graphs if (path := cached_graph(graph_hash(trace.name(row))))), "")
    return f" Their graph is kept in Inductor's cache folder, in {entry} (TORCHINDUCTOR_CACHE_DIR)." if entry else ""


def _cached(trace: Trace) -> str:
    hits = trace.derived(compiled_of).found_in_cache
    return f" The window's {counted(hits, 'lookup')} found compiled code: nothing is compiled again." if hits else ""
