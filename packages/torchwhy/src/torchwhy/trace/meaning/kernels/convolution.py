"""Convolutions and what goes with them: cuDNN's, MIOpen's, Composable Kernel's."""

from __future__ import annotations

import re
from typing import Final

from torchwhy.trace.meaning.kernels.matmul import instruction, xmma_dtype
from torchwhy.trace.meaning.kernels.name import KernelName, arguments_cut, dtype_in, shortened, words

__all__ = ["convolution"]

_DIRECTIONS: Final = (
    (r"dgrad|bwd_data|Bwd_?Data|bwd_d\b|BwdD|igemm_bwd", "gradient of the input"),
    (r"wgrad|wrw|bwd_weight|Bwd_?Weight|BwdW", "gradient of the weights"),
    (r"fprop|fwd|Fwd|relu|convolve_sgemm|winogradForward", "forward"),
)

# sm80_xmma_fprop_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc_nchw_tilesize128x128x16_..._tensor16x8x8_...
_XMMA = re.compile(r"sm(\d+)_xmma_(fprop|dgrad|wgrad)_\w*?((?:bf16|tf32|e4m3|f16|f32|f64|i8)\w*?)_(\w*)")
# volta_scudnn_128x64_relu_interior_nn_v1, turing_fp16_s1688cudnn_fp16_..., ampere_scudnn_...
_ASSEMBLY = re.compile(
    r"(?:maxwell|pascal|volta|turing|ampere|hopper)_(?:(bf16|fp16|f16|int8)_)?([a-z])(\d+)?cudnn_(.*)"
)
# cutlass_tensorop_bf16_s16816fprop_optimized_bf16_256x64_32x4_nhwc_align8
_CUTLASS = re.compile(
    r"cutlass(?:_\d+)?_(tensorop|simt)_(?:(\w+?)_)?([a-z])(\d*)(tf32|bf16|f16)?(fprop|dgrad|wgrad)_(\w*)"
)
# igemm_fwd_gtcx3_nhwc_bf16_bx0_ex1_bt128x256x32_...
_IGEMM = re.compile(r"igemm_(fwd|bwd|wrw)_\w*?_(nhwc|nchw)_(bf16|fp16|fp32|int8)_\w*?bt(\d+x\d+x\d+)")

_NORMS: Final = re.compile(
    r"(?:cudnn(?:::\w+)*::)?bn_(bw|fw)_|batchnorm|BatchNorm|bn_add_relu|MIOpenBatchNorm", re.IGNORECASE
)
_TURNS: Final = re.compile(
    r"nchwToNhwc|nhwcToNchw|nchw2nhwc|nhwc2nchw|batched_transpose|transpose_readWrite|TensorTranspose|"
    r"genericTranspose|transpose_NCHW|transpose_CNHW|permutationKernel|nchwAddPadding|foldedNhwc",
    re.IGNORECASE,
)
_OTHERS: Final = (
    (r"(implicit|explicit|precomputed)_convolve_\w+|convolve_common_engine\w*", "convolution"),
    (r"(dgrad|wgrad)\w*_engine|(dgrad|wgrad)2d\w*|wgrad_alg\w*|dgrad_alg\w*", "convolution"),
    (r"winograd(?!_)\w+|(?<!::)[wW]inograd\w*(?!::)|miopenSp3AsmConv\w*", "convolution"),
    (r"(conv|Conv)(_?depthwise)?\w*(forward|backward|2d|3d|1d|Uni|Fwd|Bwd|1x1|grouped|direct)\w*", "convolution"),
    (r"kernel_grouped_conv\w*|gcnAsmConv\w*|naive_conv\w*|MIOpenConv\w*", "convolution"),
    (r"reduce_wgrad\w*|wrw_reduction\w*|computeOffsetsKernel|im2col\w*|Im2d?2?Col\w*|col2im\w*", "convolution"),
    (r"generateWinogradTiles\w*|flip_filter|scalePackedTensor\w*", "convolution"),
    (r"fft[12]d_\w+|(?<!\w)(?:regular|vector|composite)_fft\w*|fft_(fwd|back)\w*", "fft"),
    (r"pooling_(fw|bw)\w*|mloPooling\w*", "pooling"),
    (r"(?:RNN|LSTM|GRU|elemWiseRNN)\w*", "recurrent"),
    (
        r"op_(generic_)?tensor_kernel\w*|add_tensor_kernel\w*|SubTensorOp\w*|Op[1-5]dTensor\w*|OpTensor\w*",
        "elementwise",
    ),
    (r"softmax_(fw|bw)_kernel\w*", "softmax"),
    (r"cudnn_generated\w*|cudnn::fusion\w*", "fused"),
)
_COMPILED: Final = tuple((re.compile(pattern), operation) for pattern, operation in _OTHERS)


def convolution(name: str) -> KernelName | None:
    """Read a name of cuDNN, MIOpen or Composable Kernel."""
    if found := _XMMA.search(name):
        dtype = xmma_dtype(found[3])
        tile = re.search(r"tilesize(\d+x\d+x\d+)", found[4])
        tensor = "tensor" in found[4] or dtype not in ("float32", "float64")
        return _made("cuDNN", name, dtype, tile[1] if tile else "", tensor)
    if found := _ASSEMBLY.search(name):
        dtype, tensor = instruction(
            found[2], found[3] or "", {"bf16": "bfloat16", "int8": "int8"}.get(found[1], "float16" if found[1] else "")
        )
        tile = re.search(r"\d+x\d+", found[4])
        detail = re.sub(r"^\d+x\d+_|_v\d+$", "", found[4]).replace("_", " ")
        return _made("cuDNN", name, dtype, tile[0] if tile else "", tensor, detail)
    if found := _CUTLASS.search(name):
        named = {"bf16": "bfloat16", "f16": "float16", "tf32": "tf32"}.get(
            (found[2] or "").partition("_")[0] or found[5] or "", ""
        )
        dtype, tensor = instruction(found[3], found[4] if found[1] == "tensorop" else "", named)
        tile = re.search(r"(\d+x\d+)_(\d+)x", found[7])
        return _made("cuDNN", name, dtype, f"{tile[1]}x{tile[2]}" if tile else "", tensor)
    if found := _IGEMM.search(name):
        dtype = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32", "int8": "int8"}[found[3]]
        return _made("MIOpen", name, dtype, found[4], True)
    if not _of_these(name):
        return None
    plain = arguments_cut(name)
    function = plain.partition("<")[0]
    if _TURNS.search(function):
        text = "conversion between NCHW and NHWC" if re.search(r"n[ch]", function, re.IGNORECASE) else "transposition"
        short = shortened(function.rpartition("::")[2].removesuffix("Kernel"), dtype_in(name))
        return KernelName(short, _library(name), "layout", dtype=dtype_in(name), description=text)
    if _NORMS.search(function):
        way = "backward" if re.search(r"bn_bw|Bwd|backward", function) else "forward"
        return KernelName(
            shortened("batch norm", way, dtype_in(name), _variant(function, r"1C11_\w+|Spatial\w*")),
            _library(name),
            "normalization",
            dtype=dtype_in(name),
            description=f"batch normalization, {way}",
        )
    for pattern, operation in _COMPILED:
        if found := pattern.search(function):
            if operation == "convolution":
                return _made(_library(name), name, dtype_in(name), "", _units(name), found[0] + _numbers(plain))
            short = shortened(words(found[0]), dtype_in(name))
            return KernelName(short, _library(name), operation, dtype=dtype_in(name), description=words(found[0]))
    return None


def _of_these(name: str) -> bool:
    return "at::native" not in name and not name.startswith("triton_")


def _units(name: str) -> bool | None:
    """FP32 engines of cuDNN without "tensor" in their names compute on CUDA cores."""
    if re.search(r"scalePacked|computeOffsets|reduce_wgrad|wrw_reduction|im2col|Im2|col2im|flip_filter|Tiles", name):
        return None  # they prepare or finish a convolution
    if re.search(r"xdl|wmma|tensorop|hmma|mma", name.lower()):
        return True
    return False if dtype_in(name) in ("float32", "float64") and "MIOpen" not in _library(name) else None


def _library(name: str) -> str:
    if re.search(r"(^|\W)ck(_tile)?::|tensor_operation", name):
        return "Composable Kernel"
    if re.search(r"miopen|MIOpen|mlo|igemm_|gcnAsm|SubTensorOp|Op[1-5]dTensor|batched_transpose|naive_conv|wrw_", name):
        return "MIOpen"
    return "cuDNN"


def _numbers(plain: str) -> str:
    """The leading whole numbers of the template: they distinguish variants of one engine."""
    found = re.findall(r"(?<=[<, ])\d+(?=[,>])", plain)
    return f"<{','.join(found[:3])}>" if found else ""


def _variant(function: str, pattern: str) -> str:
    found = re.search(pattern, function)
    return found[0].lower() if found else ""


def _made(library: str, name: str, dtype: str, tile: str, tensor: bool | None, detail: str = "") -> KernelName:
    way = next((text for pattern, text in _DIRECTIONS if re.search(pattern, name)), "")
    layout = next((token for token in ("nhwc", "nchw") if token in name.lower()), "")
    label = {"forward": "fwd", "gradient of the input": "dgrad", "gradient of the weights": "wgrad"}.get(way, "")
    units = {True: " on tensor cores", False: " without tensor cores", None: ""}[tensor]
    text = f"{dtype} convolution{', ' + way if way else ''}{units} ({library})".strip()
    return KernelName(
        shortened("conv", label, dtype, tile, layout, detail),
        library,
        "convolution",
        tile,
        layout,
        dtype,
        tensor,
        (),
        text,
    )
