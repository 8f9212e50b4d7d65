"""What torch.compile announces: compilation and its stages, and compiled code as it runs.

The names are those PyTorch has given since 2.1: `TorchDynamo Cache Lookup`, then `Torch-Compiled Region: K/M` (frame
K, its M-th recompilation; without the numbers before 2.5), in it `## Call CompiledFxGraph <hash> ##`. Compilation
announces its stages as `... (dynamo_timed)`, recent versions also as `dynamo`, `entire_frame_compile` and others.
"""

from __future__ import annotations

import re
from typing import Final

from torchwhy.trace.meaning.kinds import CALLED, Kind, Meaning

__all__ = [
    "COMPILED_BACKWARD",
    "COMPILED_CODE",
    "COMPILED_FUNCTION",
    "COMPILE_ID",
    "COMPILING",
    "COMPILING_BACKWARD",
    "EAGER_KERNEL",
    "ENTERING",
    "FUSED_KERNEL",
    "GRAPH",
    "LOOKUP",
    "OF_A_COMPILER",
    "REGION",
    "RESUMED",
    "STAGE",
    "TUNING",
    "TUNING_FRAME",
    "break_place",
    "cached_graph",
    "compile_id",
    "graph_hash",
    "stage_name",
]

REGION: Final = Meaning(r"Torch-Compiled Region", *CALLED)
LOOKUP: Final = Meaning(r"TorchDynamo Cache Lookup", *CALLED)
GRAPH: Final = Meaning(r"## Call CompiledFxGraph ", *CALLED)
COMPILED_FUNCTION: Final = Meaning(r"CompiledFunction$", *CALLED)
COMPILED_BACKWARD: Final = Meaning(r"(autograd::engine::evaluate_function: )?CompiledFunctionBackward$", *CALLED)

ENTERING: Final = Meaning(
    r"Torch-Compiled Region|TorchDynamo Cache Lookup|Pregraph bytecode|AOTDispatcher Runtime Wrapper|CompiledFunction$",
    *CALLED,
)
"""The way into compiled code: guards, wrappers, the region itself."""

COMPILED_CODE: Final = Meaning(
    r"Torch-Compiled Region|CompiledFunction|## Call CompiledFxGraph|autograd::engine::evaluate_function: Comp"
    r"|AOTDispatcher Runtime Wrapper|Pregraph bytecode",
    *CALLED,
)
"""Code that torch.compile wrote, around the kernels and operators it calls."""

STAGE: Final = Meaning(r".*\(dynamo_timed\)$", *CALLED)

COMPILING_BACKWARD: Final = Meaning(
    r"(entire_backward_compile|backward\._backward_impl|compile_fx\.<locals>\.bw_compiler)", *CALLED
)

COMPILING: Final = (
    STAGE
    | COMPILING_BACKWARD
    | Meaning(
        r"(dynamo|_compile\.compile_inner|entire_frame_compile|backend_compile|inductor_compile|compile_attempt_\d+"
        r"|compile_fx(\.<locals>\.\w+)?|OutputGraph\.call_user_compiler|create_aot_dispatcher_function"
        r"|aot_trace_joint_graph|bytecode_tracing|build_guards|code_gen|compile_file|async_compile\.wait"
        r"|PyCodeCache\.load_by_key_path|fx_codegen_and_compile|GraphLowering\.\w+|Scheduler\.\w+)$",
        *CALLED,
    )
)
"""What torch.compile announces while it compiles; not what compiled code announces while it runs.

A program may use such names. `derived.compiled` believes them only in a trace that has a `STAGE`."""

TUNING: Final = Meaning(
    r"(CachingAutotuner\.(benchmark_all_configs|coordinate_descent_tuning|benchmark)|benchmark_all_configs"
    r"|AlgorithmSelectorCache\.|autotune_select_algorithm|benchmark_fused_nodes|.*_template_autotuning|.*_autotuning"
    r"|InductorBenchmarker|benchmark_gpu|TritonBenchmarker)",
    *CALLED,
)
"""Stages that run variants of a kernel to find the fastest."""

RESUMED: Final = Meaning(r".*: torch_dynamo_resume_in_", Kind.PYTHON)
"""Code after a graph break."""

TUNING_FRAME: Final = Meaning(r".*triton_heuristics\.py\(\d+\): (benchmark_all_configs|autotune_to_one)", Kind.PYTHON)

FUSED_KERNEL: Final = Meaning(r"triton_[a-z]+_fused_", Kind.KERNEL)

EAGER_KERNEL: Final = Meaning(r".*\bat::native::", Kind.KERNEL)
"""PyTorch's own kernels; within compiled code those that Inductor didn't replace."""

OF_A_COMPILER: Final = Meaning(
    r"CompiledFunction|Torch-Compiled|TorchDynamo|triton_|## |torch::jit::|TensorRT|.*GraphModule",
    *CALLED,
    Kind.KERNEL,
)
"""Signs of any compiler of models at work: torch.compile, TorchScript, TensorRT, FX."""

COMPILE_ID: Final = Meaning(r".*compile_id=", *CALLED)
_ID: Final = re.compile(r"(?:!\d{1,9}/)?(\d{1,9})/(\d{1,9})")
_RESUMED: Final = re.compile(r"(.*)\(\d+\): torch_dynamo_resume_in_(.+)_at_(\d+)$")
_HASH: Final = re.compile(r"## Call CompiledFxGraph (\S+) ##")


def compile_id(text: str) -> tuple[int, int]:
    """K and M of a name that has "K/M" or "compile_id=K/M" in it; (-1, -1) without one.

    >>> compile_id("Torch-Compiled Region: 3/1"), compile_id("Torch-Compiled Region")
    ((3, 1), (-1, -1))
    """
    found = _ID.search(text.rpartition("compile_id=")[2])
    return (int(found[1]), int(found[2])) if found else (-1, -1)


def break_place(name: str) -> str:
    """Where a graph broke, of a frame that continues after it; "" of any other.

    >>> break_place("train.py(33): torch_dynamo_resume_in_forward_at_20")
    'train.py:20 in forward'
    """
    found = _RESUMED.match(name)
    return f"{found[1]}:{found[3]} in {found[2]}" if found else ""


def graph_hash(name: str) -> str:
    """The hash that names a compiled graph, and its generated code on disk; "" if the name does not give it."""
    found = _HASH.match(name)
    return found[1] if found else ""


def cached_graph(key: str) -> str:
    """Where Inductor keeps a compiled graph of a hash, below its cache folder; "" without a hash.

    PyTorch's FxGraphCache: `fxgraph/` and the hash's second and third character.

    >>> cached_graph("fv5udnjvbrmcs")
    'fxgraph/v5/fv5udnjvbrmcs'
    """
    return f"fxgraph/{key[1:3]}/{key}" if key else ""


def stage_name(name: str) -> str:
    """A stage's name without the mark that Dynamo timed it: many stages are announced with and without that.

    >>> stage_name("bytecode_tracing (dynamo_timed)"), stage_name("dynamo")
    ('bytecode_tracing', 'dynamo')
    """
    return name.removesuffix(" (dynamo_timed)")
