"""Matrix multiplications of cuBLAS, cuBLASLt and CUTLASS."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from torchwhy.trace.meaning.kernels.name import KernelName, arguments_cut, dtype_in, shortened

__all__ = ["instruction", "matmul", "xmma_dtype"]

_ARCHITECTURE: Final = r"(?:maxwell|pascal|volta|turing|ampere|hopper|ada|blackwell)"

# ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_nn, volta_sgemm_64x64_nt, turing_h1688gemm_...
_CUBLAS = re.compile(rf"{_ARCHITECTURE}_(?:(\w+?)_)?(g?[a-z])(\d+)?gemm_(.*)")
# cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_64x64_64x6_tn_align8, cutlass_80_wmma_..., cutlass_80_simt_sgemm
_CUTLASS = re.compile(
    r"cutlass(?:_(\d+))?_(?:wmma_)?(tensorop|simt)_(?:(\w+?)_)?([a-z])(\d*)(tf32|bf16|f16)?gemm(?:_([\w]*))?"
)
_CUTLASS3 = re.compile(r"cutlass3x_sm(\d+)_(tensorop|simt)_([\w]+)")
_XMMA = re.compile(r"sm(\d+)_xmma_gemm_([a-z]+\d+[a-z]*\d*)_([a-z]+\d+[a-z]*\d*)_([a-z]+\d+)_([ntc]+)_[nt]_(.*)")
# nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NTT, nvjet_sm100_tst_64x32_64x16_...
_NVJET = re.compile(r"nvjet_(?:sm\d+_)?([a-z]+)_(?:mma_)?(\d+x\d+)(?:x\d+)?_(.*)")
_NVJET_TYPES: Final = {"h": "float16", "t": "bfloat16", "s": "tf32", "q": "float8", "d": "float64", "o": "float4"}

_LETTERS: Final = {"s": "float32", "d": "float64", "h": "float16", "c": "complex64", "z": "complex128", "i": "int8"}
_TYPES: Final = {
    "bf16": "bfloat16",
    "fp16": "float16",
    "f16": "float16",
    "h16": "float16",
    "tf32": "tf32",
    "f32": "float32",
    "fp32": "float32",
    "f64": "float64",
    "i8": "int8",
    "int8": "int8",
    "e4m3": "float8",
    "e5m2": "float8",
}

_OTHERS: Final = (
    (r".*splitK_?reduce", "matmul", "sum of the parts of a split matrix multiplication"),
    (r".*gemvx?|.*gemv2", "matmul", "matrix times vector"),
    (r".*gemm[kK]1|.*gemmSN|.*gemm_kernel2x|.*gemmBatched", "matmul", "small matrix multiplication"),
    (r".*dot_kernel|.*reduce_1Block_kernel", "reduction", "dot product"),
    (r".*(trsm|triangular_solve|getrf|getrs|potrf|syrk|herk)", "matmul", "linear algebra"),
    (r"(void )?cublasLt::epilogue::|.*epilogue::impl::globalKernel", "matmul", "epilogue of a matrix multiplication"),
    (r".*scal_kernel.*cublas|.*axpy_kernel", "elementwise", "scaling of vectors"),
)
_COMPILED: Final = tuple((re.compile(pattern), operation, text) for pattern, operation, text in _OTHERS)


def matmul(name: str) -> KernelName | None:
    """Read a matrix multiplication's name."""
    if found := _XMMA.search(name):
        return _xmma(found)
    if found := _CUTLASS.search(name):
        return _cutlass(found)
    if found := _CUTLASS3.search(name):
        dtype, rest = dtype_in(found[3].replace("_", " ")), found[3]
        tile, layout = re.search(r"_(\d{2,3}x\d{2,3}x\d+)_", rest), re.search(r"_([nt]{2})[nt]_", rest)
        tile_text, layout_text = tile[1] if tile else "", layout[1] if layout else ""
        return _made("CUTLASS", dtype, tile_text, layout_text, found[2] == "tensorop", f"sm{found[1]}")
    if found := _NVJET.search(name):
        dtype = _NVJET_TYPES.get(found[1][0], "")
        return _made("cuBLAS", dtype, found[2], _last(found[3]).lower(), True, "nvjet " + _rest(found[3]))
    if found := _CUBLAS.search(name):
        return _cublas(found)
    if name.startswith("void cutlass::Kernel") or "cutlass::device_kernel" in name or "GemmUniversal" in name:
        return _made("CUTLASS", dtype_in(name.partition("<")[2]), "", "", None, "")
    if re.match(r".*deep_?gemm", name, re.IGNORECASE):
        return _made("DeepGEMM", dtype_in(name) or "float8", "", "", True, "")
    if re.search(r"marlin|machete|awq_gemm|gptq", name, re.IGNORECASE):
        return KernelName(shortened("quantised matmul", arguments_cut(name)), "", "matmul", tensor_core=True)
    for pattern, operation, text in _COMPILED:
        if pattern.match(name):
            dtype, library = dtype_in(name), "rocBLAS" if "rocblas" in name else "cuBLAS"
            tensor = False if "gem" in pattern.pattern else None
            kind = re.search(r"gemv\w*|gemmk1|gemmSN_\w+|splitKreduce|dot_kernel|globalKernel", name)
            short = shortened(kind[0] if kind else text, dtype)
            return KernelName(short, library, operation, dtype=dtype, tensor_core=tensor, description=text)
    return None


def instruction(letter: str, shape: str, named: str) -> tuple[str, bool]:
    """Return dtype and use of tensor cores of a name such as s16816 (letter s, shape 16816) with its named dtype."""
    if not shape:
        return named or _LETTERS.get(letter.removeprefix("g"), ""), False
    if named:
        return named, True
    # Without a named type: half accumulates in half (h), else TF32 has 1688, FP64 has 884 with letter d.
    return {"d": "float64", "h": "float16", "i": "int8"}.get(letter, "tf32" if shape == "1688" else "float16"), True


def xmma_dtype(pair: str) -> str:
    """Return the inputs' dtype of a pair such as tf32f32 or f16f16."""
    for token in ("bf16", "tf32", "e4m3", "e5m2", "f16", "f32", "f64", "i8"):
        if pair.startswith(token):
            return _TYPES[token]
    return ""


def _cublas(found: re.Match[str]) -> KernelName:
    rest = found[4]
    named = next(
        (_TYPES[part] for part in (*(found[1] or "").split("_"), rest.partition("_")[0]) if part in _TYPES), ""
    )
    dtype, tensor = instruction(found[2], found[3] or "", named)
    detail = " ".join(re.findall(r"sliced\dx\d|splitK\w*|relu|ldg8|stages_\d+x\d+", rest))
    return _made("cuBLAS", dtype, _tile(rest), _layout(rest), tensor, detail)


def _cutlass(found: re.Match[str]) -> KernelName:
    named = _TYPES.get((found[3] or "").partition("_")[0], "") or _TYPES.get(found[6] or "", "")
    dtype, tensor = instruction(found[4], found[5] if found[2] == "tensorop" else "", named)
    rest = found[7] or ""
    depth = re.search(r"\d+x\d+_(\d+)x(\d+)", rest)
    align = re.search(r"align(\d+)", rest)
    tile = _tile(rest) + (f"x{depth[1]}" if depth else "")
    detail = " ".join(filter(None, ("relu" if "relu" in rest else "", align[0] if align else "")))
    made = _made("CUTLASS", dtype, tile, _layout(rest), tensor, detail)
    return replace(made, alignment=int(align[1])) if align else made


def _xmma(found: re.Match[str]) -> KernelName:
    dtype = xmma_dtype(found[3])
    tensor = "tensor" in found[6] or (int(found[1]) >= 90 and dtype != "float32")
    if not tensor and dtype not in ("float32", "float64"):
        tensor = True
    tile = re.search(r"tilesize(\d+x\d+x\d+)", found[6])
    split = "splitK" if re.search(r"splitk|segment_k_on|stream_k", found[6], re.IGNORECASE) else ""
    return _made("cuBLAS", dtype, tile[1] if tile else "", found[5], tensor, split)


def _made(library: str, dtype: str, tile: str, layout: str, tensor: bool | None, detail: str) -> KernelName:
    units = {True: " on tensor cores", False: " without tensor cores", None: ""}[tensor]
    text = f"{dtype} matrix multiplication{units} ({library}{', ' + detail if detail else ''})".strip()
    short = shortened("matmul", dtype, tile, layout, detail)
    return KernelName(short, library, "matmul", tile, layout, dtype, tensor, (), text)


def _tile(rest: str) -> str:
    found = re.search(r"(?<![\dx])(\d{2,3}x\d{2,3})(?![\dx]*x)", rest)
    return found[1] if found else ""


def _layout(rest: str) -> str:
    found = re.findall(r"(?:^|_)([ntc]{2})(?=_|$)", rest)
    return found[-1] if found else ""


def _last(rest: str) -> str:
    found = re.findall(r"(?:^|_)([NT]{3,4})(?=_|$)", rest)
    return found[-1][:2] if found else ""


def _rest(rest: str) -> str:
    return re.sub(r"_?[NT]{3,4}$", "", rest).replace("_", " ")
