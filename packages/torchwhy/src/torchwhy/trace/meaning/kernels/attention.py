"""Fused attention: FlashAttention, memory-efficient, cuDNN's, AOTriton's, Composable Kernel's, inference servers'."""

from __future__ import annotations

import re
from typing import Final

from torchwhy.trace.meaning.kernels.name import KernelName, dtype_in, shortened

__all__ = ["attention"]

_KINDS: Final = (
    (r"cudnn_generated\w*sdpa|cudnn\w*flash|cudnn::\w*fmha", "cuDNN"),
    (r"fmha_cutlass|PyTorchMemEffAttention|attention_kernel_batched_impl", "memory-efficient"),
    (r"aiter\b.*fmha|fmha_(fwd|bwd)_hd\d+|ck_tile.*Fmha|FmhaFwd|FmhaBwd", "Composable Kernel"),
    (r"[fF]lash(?![iI]nfer)", "FlashAttention"),
    (r"^(attn_(fwd|bwd)\w*|bwd_(kernel|preprocess)\w*)$", "AOTriton"),
    (
        r"paged_attention|BatchPrefill|BatchDecode|SinglePrefill|SingleDecode|mla_\w*kernel|\bunified_attention",
        "serving",
    ),
    (r"fmha|multi_?head_?attention|(?<![a-z])attention_kernel|sdpa", ""),
)
_COMPILED: Final = tuple((re.compile(pattern), library) for pattern, library in _KINDS)
_NOT: Final = re.compile(r"triton_|transform_bias_rescale_qkv|nccl")


def attention(name: str) -> KernelName | None:
    """Read the name of a fused attention kernel."""
    if _NOT.search(name):
        return None
    for pattern, library in _COMPILED:
        if pattern.search(name):
            return _made(name, library)
    return None


def _made(name: str, library: str) -> KernelName:
    backward = re.search(r"bwd|backward|Bwd|cutlassB|bprop|dkdv|dot_do_o", name) is not None
    way = "backward" if backward else "forward"
    part = re.search(r"preprocess|dot_do_o|convert_dq|combine|splitkv|dk_dv|dkdv|bwd_kernel_dq", name)
    helper = re.search(r"preprocess|dot_do_o|convert_dq|combine", name) is not None
    dtype = dtype_in(name)
    traits = re.search(r"kernel_traits<(\d+), (\d+), (\d+)", name)
    head = re.search(r"(?:hd|_d|hdim)(\d{2,3})(?!\d)", name)
    tile = f"{traits[2]}x{traits[3]}" if traits else ""
    tile = tile or (found[1] if (found := re.search(r"_(\d{2,3}x\d{2,3})(?:x\d+)?_", name)) else "")
    size = f"head {traits[1] if traits else head[1]}" if traits or head else ""  # type: ignore[index]
    short = shortened("attention", way, library, part[0] if part else "", dtype, tile, size)
    text = f"fused attention, {way}{' (' + library + ')' if library else ''}"
    return KernelName(short, library, "attention", tile, "", dtype, None if helper else True, (), text)
