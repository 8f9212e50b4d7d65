"""What the host was doing, as stretches of time over all threads: loading, compiling, waiting, dispatching."""

from __future__ import annotations

from typing import Final

import numpy as np

from torchfx.profiler.trace.file.columns import Int32
from torchfx.profiler.trace.model.intervals import Intervals
from torchfx.profiler.trace.model.kinds import Kind
from torchfx.profiler.trace.model.trace import Trace

__all__ = ["ALLOCATION", "BACKWARD", "COMPILING", "LOADING", "OPTIMIZER", "WAITING", "WRAPPER", "calling", "named"]

LOADING: Final = r"enumerate\(DataLoader\)#.*__next__"
COMPILING: Final = (
    r"dynamo$|.*\(dynamo_timed\)|entire_(frame|backward)_compile|backend_compile|inductor_compile|compile_attempt_"
    r"|create_aot_dispatcher_function|aot_trace_joint_graph|bytecode_tracing|build_guards|fx_codegen_and_compile"
    r"|compile_file|async_compile\.wait|PyCodeCache\."
)
"""What PyTorch 2.x announces while torch.compile works; not what compiled code announces while it runs."""

OPTIMIZER: Final = r"Optimizer\.(step|zero_grad)#"
BACKWARD: Final = r"autograd::engine::evaluate_function|.*Backward\d*$"
WAITING: Final = r"(cuda|hip|cu)(Device|Stream|Event|Ctx)Synchronize|hipMemcpyWithStream$|cudaMemcpy$|hipMemcpy$"
WRAPPER: Final = (
    r"Torch-Compiled Region|CompiledFunction|## Call CompiledFxGraph|autograd::engine::evaluate_function: Comp"
)
"""Code that torch.compile wrote, around the kernels and operators it calls."""

ALLOCATION: Final = r"(cuda|hip)(Malloc|Free|HostAlloc|HostMalloc|HostFree|HostRegister)|cuMem(Alloc|Free|Create|Map)"


def named(trace: Trace, pattern: str, *kinds: Kind) -> Intervals:
    """When any event of such a name ran."""
    return _union(trace, trace.events.find(pattern, *kinds))


def calling(trace: Trace) -> Intervals:
    """When at least one thread was inside an operator or a call of the device's runtime."""
    rows = trace.events.rows(Kind.OPERATOR, Kind.RUNTIME)
    wrappers = trace.events.names_matching(WRAPPER)[trace.events.name[rows]]
    return _union(trace, rows[~wrappers])


def _union(trace: Trace, rows: Int32) -> Intervals:
    events = trace.events
    return Intervals.union(events.ts[rows], np.asarray(events.end[rows]))
