"""Operators by what they compute: products, convolutions, attention, elementwise work."""

from __future__ import annotations

from typing import Final

from torchfx.profiler.trace.meaning.kinds import Kind, Meaning

__all__ = [
    "ADD_IN_PLACE",
    "ATTENTION_IN_PARTS",
    "ATTENTION_STAGE",
    "BATCHED_PRODUCT",
    "BATCH_NORM",
    "BIASED_PRODUCT",
    "CONVOLUTION",
    "DROPOUT",
    "ELEMENTWISE",
    "FOREACH",
    "LIBRARY_CONVOLUTION",
    "MATRIX_PRODUCT",
    "MEMORY_SPEED",
    "NATIVE_ATTENTION",
    "SOFTMAX",
    "STREAMING",
]

_O: Final = Kind.OPERATOR

MATRIX_PRODUCT: Final = Meaning(r"aten::(mm|addmm|bmm|baddbmm)(_out)?$", _O)
BATCHED_PRODUCT: Final = Meaning(r"aten::(bmm|baddbmm)$", _O)
BIASED_PRODUCT: Final = Meaning(r"aten::(addmm|baddbmm|addbmm)(_out|_)?$", _O)
"""Products that add a tensor: C + A B."""

SOFTMAX: Final = Meaning(r"aten::_(safe_)?softmax$", _O)
DROPOUT: Final = Meaning(r"aten::(native_)?dropout$", _O)

ATTENTION_STAGE: Final = SOFTMAX | Meaning(r"aten::(bmm|baddbmm|mm|addmm|convolution)$", _O)
"""What stands in a row where attention is written out: product, softmax, product, and what ends such a row."""

ATTENTION_IN_PARTS: Final = Meaning(r"aten::_scaled_dot_product_attention_math$", _O)
"""The implementation of scaled dot-product attention that is not fused."""

NATIVE_ATTENTION: Final = Meaning(r"aten::_native_multi_head_attention$", _O)
"""The fast path of nn.MultiheadAttention."""

CONVOLUTION: Final = Meaning(r"aten::conv[123]d$", _O)
LIBRARY_CONVOLUTION: Final = Meaning(r"aten::(cudnn|miopen)_convolution", _O)
"""A convolution as cuDNN or MIOpen computes it."""

BATCH_NORM: Final = Meaning(r"aten::batch_norm$", _O)
ADD_IN_PLACE: Final = Meaning(r"aten::add_$", _O)

ELEMENTWISE: Final = Meaning(
    r"aten::(add|sub|mul|div|neg|abs|exp|exp2|log|log2|log10|log1p|expm1|sqrt|rsqrt|pow|sin|cos|tan|tanh|sigmoid|relu"
    r"|gelu|silu|erf|clamp|clamp_min|clamp_max|where|lerp|addcmul|addcdiv|reciprocal|square|sign|floor|ceil|round"
    r"|maximum|minimum|leaky_relu|elu|softplus|hardtanh|threshold|masked_fill|atan2|fmod|remainder|bitwise_and"
    r"|logical_and|eq|ne|lt|le|gt|ge)_?$",
    _O,
)
"""One result per element, from the elements at the same place: what a compiler fuses."""

FOREACH: Final = Meaning(r"aten::_foreach_", _O)
"""Elementwise work on a list of tensors."""

STREAMING: Final = Meaning(
    r"aten::(add|sub|mul|div|neg|exp|sqrt|rsqrt|sigmoid|tanh|relu|gelu|silu|clamp|copy|addcmul|lerp|_softmax"
    r"|_log_softmax)_?$",
    _O,
)
"""Operators that read their inputs once and write one result of the same size: bytes by their shapes."""

MEMORY_SPEED: Final = Meaning(
    r"aten::(add|sub|mul|div|neg|abs|sqrt|rsqrt|square|relu|clamp|clamp_min|clamp_max|threshold_backward|maximum"
    r"|minimum|lerp|addcmul|addcdiv|fill|zero|copy)_?$",
    _O,
)
"""Operators that a processor computes as fast as it reads: some GB/s on one core, whatever the layout."""
