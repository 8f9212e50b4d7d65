"""One operator that takes most of the time on the CPU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from torchfx.profiler.rules.compute.double import in_double
from torchfx.profiler.rules.evidence import severity_of
from torchfx.profiler.rules.finding import Finding
from torchfx.profiler.rules.host.cpu_time import COPIES, by_shape, own_time
from torchfx.profiler.rules.rule import rule
from torchfx.profiler.trace.file.columns import Int32, Int64
from torchfx.profiler.trace.meaning.communication import EXCHANGE
from torchfx.profiler.trace.meaning.compiler import COMPILING
from torchfx.profiler.trace.meaning.kinds import Kind
from torchfx.profiler.trace.model.trace import Trace
from torchfx.profiler.wording import percent, shortened

__all__ = ["cpu_hotspot"]

HEAVY: Final = (
    r"aten::(mm|addmm|bmm|baddbmm|addmv|mv|matmul|linear|dot|_addmm_activation|einsum"
    r"|\w*convolution\w*|\w*conv\dd?\w*|thnn_\w+|slow_conv\w*|_scaled_dot_product\w*|_fft\w*|lstm|gru|mkldnn\w*)_?$"
    r"|(mkldnn|onednn|mkl|quantized|torchfx_ext)::"
)

WRAPPERS: Final = (
    r"Torch-Compiled Region|CompiledFunction|## Call|AOTDispatcher|TorchDynamo|Pregraph|autograd::engine"
    r"|nn\.Module:|" + EXCHANGE.pattern + "|" + COMPILING.pattern
)


@rule("B22", "cpu-hotspot", source="`Self CPU time` of the profiler's table")
def cpu_hotspot(
    trace: Trace,
    *,
    share: float = 0.3,
    of_window: float = 0.15,
    short_us: float = 20.0,
    often: int = 3,
    once_us: float = 10_000.0,
) -> Iterator[Finding]:
    """One operator takes most of the time on the CPU.

    Sees: in a program without GPU, an operator with 30% or more of all operators' own time and 15% of the window;
    with the shapes it was called with, where they were recorded. Copies have a rule of their own, cpu-copies, and so
    have many calls of less than 20 us, dispatch-flood. One or two calls that take less than 10 ms may be an operator's
    first, and say nothing.

    Costs: it is where the time goes. For matrix products, convolutions and attention that is as it should be.

    Fix: for those: all physical cores (`torch.set_num_threads`), bfloat16 where the processor has instructions for it,
    channels_last for convolutions; for elementwise operators and reductions `torch.compile`, which fuses them.
    """
    if trace.has_gpu or len(trace.links.launches):
        return
    rows, own = own_time(trace)
    total, length = int(own.sum()), trace.window.end - trace.window.start
    if not total or not length:
        return
    names, which = np.unique(trace.events.name[rows], return_inverse=True)
    spent = np.bincount(which, own.astype(np.float64))
    spent[trace.events.names_matching(COPIES + "|" + WRAPPERS)[names]] = 0
    best = int(spent.argmax())
    if spent[best] < share * total or spent[best] < of_window * length:
        return
    same, times = rows[which == best], own[which == best]
    name = trace.events.texts[int(names[best])]
    heavy = bool(trace.events.names_matching(HEAVY)[names[best]])
    if not heavy and spent[best] < short_us * 1000 * len(same):  # the calls cost, not what they do
        return
    if len(same) < often and spent[best] < once_us * 1000:
        return
    part, whole = spent[best] / total, min(spent[best] / length, 1.0)
    yield Finding(
        title=f"{shortened(name)} takes {percent(part)} of the operators' time on the CPU, {percent(whole)} of all "
        "time",
        severity="info" if heavy else severity_of(whole),
        confidence="high",
        time_us=min(float(spent[best]) / 1000, trace.window.us),
        window=trace.window,
        evidence=by_shape(trace, same, times),
        cause="Heavy arithmetic, which is what the program is for."
        if heavy
        else "Not heavy arithmetic, but memory traffic or a serial algorithm.",
        fix=_hotspot_fix(trace, name, same, times, heavy=heavy),
        linked=True,
    )


def _hotspot_fix(trace: Trace, name: str, rows: Int32, times: Int64, *, heavy: bool) -> str:
    types = {trace.events.text("Input type", int(row)) or "" for row in rows[:20]}
    advice = []
    if times[in_double(trace, rows)].sum() > 0.5 * times.sum():
        advice.append("compute in float32: inputs are float64, at half the speed or less")
    if heavy:
        if "conv" in name:
            advice.append("the channels_last memory format for model and input")
        if name.startswith("aten::") and not any(
            "bfloat16" in text.lower() or "half" in text.lower() for text in types
        ):
            advice.append("torch.autocast('cpu', torch.bfloat16) on processors with AVX-512 BF16 or AMX")
        advice.append("torch.set_num_threads at the number of physical cores")
    elif name in ("aten::cat", "aten::stack"):
        often = len(rows) >= 10 * max(len(trace.steps_found), 1)
        advice.append(
            "write the pieces into one tensor made beforehand"
            + (", or collect them in a list and join them once" if often else "")
        )
    else:
        compiled = len(trace.events.find(r"Torch-Compiled Region", Kind.OPERATOR, Kind.ANNOTATION)) > 0
        advice.append(
            "write results in place or into given outputs"
            if compiled
            else "torch.compile to fuse it with its neighbours"
        )
        advice.append("look at the shapes: broadcast or strided inputs read memory badly")
    text = "; ".join(advice)
    return (text if text.startswith("torch.") else text[0].upper() + text[1:]) + "."
