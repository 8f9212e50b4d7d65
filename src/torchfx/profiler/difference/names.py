"""Names as two recordings of one program share them, and as people can read them."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

__all__ = ["canonical", "short", "short_pair"]

_CHANGING: Final = (
    (re.compile(r"(## Call CompiledFxGraph) \S+ ##"), r"\1 ##"),  # a hash of the graph
    (re.compile(r"^ProfilerStep\*?#?\d*$"), "ProfilerStep"),
    (re.compile(r"\b0x[0-9a-fA-F]{4,}"), "0x"),  # an address
    (re.compile(r"^(triton_[a-z]+_fused_\w*?)_\d+$"), r"\1"),  # numbered in the order of code generation
)


_NAMESPACES: Final = re.compile(r"\(anonymous namespace\)::|\bat::(native::|detail::)?(?=\w)|\bstd::(?=\w)")


@lru_cache(maxsize=1 << 16)
def canonical(name: str) -> str:
    """Leave out what changes from one run of a program to the next: hashes, addresses, numbers of steps.

    >>> canonical("## Call CompiledFxGraph fv5udnjvbrmcs ##"), canonical("triton_poi_fused_add_relu_3")
    ('## Call CompiledFxGraph ##', 'triton_poi_fused_add_relu')
    """
    for pattern, replacement in _CHANGING:
        name = pattern.sub(replacement, name)
    return name


def short(name: str, width: int = 0) -> str:
    """Shorten a kernel's C++ name: its parameters and namespaces go, and from a width on what is in the middle.

    >>> short("void at::native::reduce_kernel<512, 1>(at::native::ReduceOp<float>)")
    'reduce_kernel<512, 1>'
    """
    name = _bare(name)
    if not width or len(name) <= width:
        return name
    tail = (width - 3) // 3
    return f"{name[: width - 3 - tail]}...{name[-tail:]}"


def short_pair(a: str, b: str, width: int = 36) -> tuple[str, str]:
    """Shorten two names so that one sees where they differ.

    >>> short_pair("gemm_kernel_with_a_rather_long_name_128x64_nn", "gemm_kernel_with_a_rather_long_name_64x64_nn", 24)
    ('gemm_kernel..._128x64_nn', 'gemm_kernel..._64x64_nn')
    """
    first, second = short(a, width), short(b, width)
    whole = _bare(a), _bare(b)
    common = next((i for i, (x, y) in enumerate(zip(*whole, strict=False)) if x != y), min(map(len, whole)))
    if a == b or common < width // 2:
        return first, second
    head = width // 2 - 1
    start = max(min(common - 1, max(map(len, whole)) - (width - head - 3)), head)
    cut = [f"{name[:head]}...{name[start : start + width - head - 3]}" for name in whole]
    return cut[0], cut[1]


def _bare(name: str) -> str:
    name = name.removeprefix("void ")
    if name.endswith(")") and (start := _parameters(name)) > 0 and name[start - 1] != " ":
        name = name[:start]
    return _NAMESPACES.sub("", name)


def _parameters(name: str) -> int:
    """Where the last pair of brackets opens."""
    depth = 0
    for i in range(len(name) - 1, -1, -1):
        depth += (name[i] == ")") - (name[i] == "(")
        if depth == 0:
            return i
    return -1
