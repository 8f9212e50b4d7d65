"""Kernels that torch.compile generates with Triton: triton_{poi,red,per,tem,for}_fused_<operators>_<number>."""

from __future__ import annotations

import re
from typing import Final

from torchwhy.trace.meaning.kernels.name import KernelName, shortened

__all__ = ["generated", "operators_in"]

_NAME = re.compile(r"triton_(poi|red|per|tem|for|mix|spl|mm|bmm|unk)_fused_(.*?)_?(\d+)?(?:_(?:\d+[dec]*)+)?$")
_KINDS: Final = {
    "poi": "pointwise",
    "red": "reduction",
    "per": "persistent reduction",
    "mix": "mixed reduction and pointwise",
    "tem": "template",
    "for": "foreach",
    "spl": "split scan",
    "mm": "matmul",
    "bmm": "matmul",
}

# Operators of PyTorch whose names have underscores, as the compiler joins them; longer ones are tried first.
_COMPOUND: Final = """
_to_copy _unsafe_view _softmax _log_softmax _softmax_backward_data _log_softmax_backward_data _unsafe_index
_unsafe_index_put _native_batch_norm_legit _native_batch_norm_legit_functional _native_batch_norm_legit_no_training
_scaled_dot_product_flash_attention _scaled_dot_product_efficient_attention _scaled_dot_product_cudnn_attention
_scaled_dot_product_flash_attention_backward _scaled_dot_product_efficient_attention_backward
_scaled_dot_product_flash_attention_for_cpu _adaptive_avg_pool2d _adaptive_avg_pool2d_backward _cdist_forward
_weight_norm_interface _fused_rms_norm _scaled_mm _int_mm _reshape_alias _weight_norm _euclidean_dist _safe_softmax
_upsample_bilinear2d_aa _upsample_bicubic2d_aa _embedding_bag _pad_circular _shape_as_tensor
native_layer_norm native_layer_norm_backward native_batch_norm native_batch_norm_backward native_group_norm
native_group_norm_backward native_dropout native_dropout_backward layer_norm rms_norm batch_norm group_norm
embedding_dense_backward embedding_bag scalar_tensor index_put index_add index_select index_fill index_copy
masked_fill masked_fill_ masked_scatter slice_scatter slice_backward select_scatter select_backward scatter_add
scatter_reduce threshold_backward gelu_backward silu_backward sigmoid_backward tanh_backward hardtanh_backward
hardswish_backward hardsigmoid_backward leaky_relu leaky_relu_backward elu_backward softplus_backward mse_loss
mse_loss_backward nll_loss_forward nll_loss_backward nll_loss2d_forward smooth_l1_loss huber_loss
binary_cross_entropy binary_cross_entropy_with_logits convolution_backward max_pool2d_with_indices
max_pool2d_with_indices_backward avg_pool2d avg_pool2d_backward avg_pool1d adaptive_avg_pool2d adaptive_max_pool2d
upsample_nearest2d upsample_nearest1d upsample_bilinear2d upsample_bicubic2d grid_sampler_2d constant_pad_nd
reflection_pad1d reflection_pad2d replication_pad1d replication_pad2d new_zeros new_ones new_full new_empty
zeros_like ones_like full_like empty_like rand_like randn_like empty_strided as_strided as_strided_scatter
bitwise_and bitwise_or bitwise_not bitwise_xor bitwise_left_shift bitwise_right_shift logical_and logical_or
logical_not logical_xor clamp_min clamp_max floor_divide split_with_sizes var_mean std_mean logit_backward
inductor_random inductor_seeds inductor_lookup_seed prepare_softmax_online online_softmax_reduction
convert_element_type device_put flex_attention flex_attention_backward fma_ gather_ any_ cat_ index_put_ copy_ add_
mul_ fill_ detach_ sum_ lift_fresh_copy alias_copy view_as_complex view_as_real pixel_shuffle pixel_unshuffle
grouped_mm bmm_dtype addcmul_ addcdiv_ div_ sub_ clamp_min_ sqrt_ lerp_ pow_ cumsum cumprod log1p log2 log10 expm1
""".split()  # noqa: SIM905 - a list of this length reads better as text
# Those of one word; other words that stand together are taken for one operator, of a library or the program itself.
_SIMPLE: Final = frozenset(
    """
add sub mul div neg abs exp exp2 log sqrt rsqrt pow sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh
sigmoid relu relu6 gelu silu mish elu selu celu hardtanh hardswish hardsigmoid softplus softsign erf erfc erfinv clamp
where lerp addcmul addcdiv reciprocal square sign signbit floor ceil round trunc frac maximum minimum fmod remainder eq
ne lt le gt ge isnan isinf isfinite sum mean amax amin max min prod any all argmax argmin var std norm logsumexp sort
topk gather scatter index select slice cat stack split chunk unbind view reshape permute transpose t expand squeeze
unsqueeze flatten unfold repeat roll flip clone copy to fill full zeros ones empty zero arange linspace eye tril triu
diagonal iota embedding bernoulli rand randn randint dropout convolution mm bmm addmm baddbmm dot mv addmv einsum linear
matmul contiguous detach alias lift fma logit xlogy hypot nonzero bucketize searchsorted sdpa softmax constant pad
""".split()  # noqa: SIM905 - a list of this length reads better as text
)
_SPLIT = re.compile("|".join(sorted(map(re.escape, _COMPOUND), key=len, reverse=True)))

_MATMULS: Final = frozenset({"mm", "bmm", "addmm", "baddbmm", "_scaled_mm", "_int_mm", "grouped_mm"})


def generated(name: str) -> KernelName | None:
    """Read the name of a kernel that torch.compile generated."""
    if not name.startswith("triton_"):
        return None
    found = _NAME.match(name)
    if found is None:
        if re.fullmatch(r"triton_+((\d+[dec]*)+)?", name):  # names of PyTorch 2.0, without operators
            return KernelName(shortened(name), "Triton", "fused", description="generated by torch.compile")
        template = re.match(r"triton_(mm|bmm|tem|flex)\w*", name)
        operation = "matmul" if template and "mm" in template[1] else "fused"
        return KernelName(shortened(name), "Triton", operation, description="Triton kernel")
    kind, number = _KINDS.get(found[1], found[1]), found[3] or ""
    fused = operators_in(found[2])
    operation = "fused"
    if kind in ("template", "matmul"):
        operation = "matmul" if _MATMULS & {*fused} else "attention" if "flex_attention" in fused else "fused"
        operation = "convolution" if "convolution" in fused else operation
    elif kind == "foreach":
        operation = "foreach"
    listed = " ".join(fused)
    tail = f" #{number}" if number else ""
    label = f"triton {found[1]} {listed}".strip()
    limit = 60 - len(tail)
    short = (label if len(label) <= limit else label[: limit - 1] + "…") + tail
    text = f"generated {kind} kernel of {len(fused)} fused operator{'s' if len(fused) > 1 else ''}: {', '.join(fused)}"
    return KernelName(short, "Triton", operation, fused=fused, description=text)


def operators_in(text: str) -> tuple[str, ...]:
    """Split joined names of operators.

    >>> operators_in("_unsafe_view_add_native_layer_norm_silu")
    ('_unsafe_view', 'add', 'native_layer_norm', 'silu')
    >>> operators_in("add_fmha_v3_fwd_mul")
    ('add', 'fmha_v3_fwd', 'mul')
    """
    found: list[str] = []
    rest, unknown = text, False
    while rest:
        match = _SPLIT.match(rest)
        if match and (match.end() == len(rest) or rest[match.end()] == "_"):
            word = match[0]
        else:
            match = re.match(r"_?[^_]+|_+", rest)
            word = match[0] if match else rest
        before, unknown = unknown, word.strip("_") not in _SIMPLE and word not in _COMPOUND
        if unknown and before:
            found[-1] += f"_{word}"
        elif word.strip("_"):
            found.append(word)
        rest = rest[len(word) :].removeprefix("_")
    return tuple(found)
