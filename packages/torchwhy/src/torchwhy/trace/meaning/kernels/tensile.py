"""Matrix multiplications of AMD's Tensile (rocBLAS, hipBLASLt) and Composable Kernel."""

from __future__ import annotations

import re
from typing import Final

from torchwhy.trace.meaning.kernels.name import KernelName, shortened

__all__ = ["tensile"]

# Cijk_Alik_Bljk_BBS_BH_Bias_..._MT256x192x64_MI16x16x1_...
_TENSILE = re.compile(r"Cijk_(A\w{3})_(B\w{3})_([A-Z0-9]+)(?:_|$)(.*)")
_SCALING = re.compile(r"Cijk_(?:Dijk_)?([A-Z0-9]+)_.*|Cijk_\w+")

# Types of the inputs by the first letters of the problem type, as Tensile abbreviates them.
_TYPES: Final = (
    ("F8", "float8"),
    ("B8", "float8"),
    ("I8", "int8"),
    ("4xi8", "int8"),
    ("H", "float16"),
    ("B", "bfloat16"),
    ("S", "float32"),
    ("D", "float64"),
    ("X", "tf32"),
    ("C", "complex64"),
    ("Z", "complex128"),
)


def tensile(name: str) -> KernelName | None:
    """Read a name of Tensile or of Composable Kernel's matrix multiplications."""
    if found := _TENSILE.match(name):
        return _gemm(found)
    if found := _SCALING.match(name):
        return KernelName("scaling before a matmul", "rocBLAS", "matmul", description="scales or sums the output")
    if re.match(r"(?:void )?ck(?:_tile)?::|ck::", name) and re.search(r"gemm|Gemm", name) and "conv" not in name:
        part = re.search(r"kernel_\w*gemm\w*|\w*Gemm\w*", name)
        return KernelName(
            shortened("matmul", part[0] if part else ""),
            "Composable Kernel",
            "matmul",
            tensor_core=True if "xdl" in name.lower() or "wmma" in name.lower() else None,
            description="matrix multiplication (Composable Kernel)",
        )
    return None


def _gemm(found: re.Match[str]) -> KernelName:
    a, b, types, rest = found.groups()
    dtype = next((dtype for start, dtype in _TYPES if types.startswith(start)), "")
    tile = re.search(r"_?MT(\d+x\d+x\d+)", "_" + rest)
    unit = re.search(r"(?:^|_)MI(\d+x\d+x\d+)", rest)
    # The index that varies fastest comes first: Alik holds rows of the summed index, so A is transposed.
    layout = ("t" if a[1] == "l" else "n") + ("n" if b[1] == "l" else "t")
    library = "hipBLASLt" if "UserArgs" in rest else "rocBLAS"
    partial = "sum of the parts" if "PostGSU" in rest else ""
    streams = "stream-K" if re.search(r"(?:^|_)SK[1-9]", rest) else ""
    units = " on matrix cores" if unit else ""
    size = tile[1] if tile else ""
    return KernelName(
        shortened("matmul", dtype, size, layout, partial or streams),
        library,
        "matmul",
        size,
        layout,
        dtype,
        True if unit else None if partial else False,
        (),
        f"{dtype} matrix multiplication{units} ({library})".strip(),
    )
