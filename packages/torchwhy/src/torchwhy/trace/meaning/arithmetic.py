"""Operators by what they compute: products, convolutions, attention, elementwise work."""

from __future__ import annotations

import re
from typing import Final

from torchwhy.trace.meaning.kinds import Kind, Meaning

__all__ = [
    "ADD_IN_PLACE",
    "AFTER_CONVOLUTION",
    "ATTENTION_CALL",
    "ATTENTION_IN_PARTS",
    "ATTENTION_STAGE",
    "BATCHED_PRODUCT",
    "BATCH_NORM",
    "BIASED_PRODUCT",
    "CHECKING",
    "COMPLEX_FOURIER",
    "CONVOLUTION",
    "CONVOLUTION_BACKWARD",
    "CONVOLVING",
    "COSINE",
    "DENSE_TABLE_GRADIENT",
    "DIAGONAL_STAYS",
    "DIVIDE",
    "DROPOUT",
    "ELEMENTWISE",
    "ERROR_FUNCTION",
    "FACTORISATION",
    "FILLING",
    "FOREACH",
    "FOURIER",
    "FUSED_ATTENTION",
    "FUSED_EXPERTS",
    "GENERAL_EIGENVALUES",
    "GENERATED",
    "HYPERBOLIC_TANGENT",
    "INVERSE",
    "INVERSE_COMPLEX_FOURIER",
    "INVERSE_FOURIER",
    "LIBRARY_CONVOLUTION",
    "LINEAR",
    "LOGARITHM",
    "MAKES_DIAGONAL",
    "MATRIX_PRODUCT",
    "MEAN_OR_VARIANCE",
    "MEMORY_SPEED",
    "MULTIPLY",
    "NATIVE_ATTENTION",
    "ONE_HOT",
    "OUTER_PRODUCT",
    "PADDING",
    "PATCHES",
    "POOLED_TO_SIZE",
    "POWER",
    "PRODUCT",
    "READS_ALL",
    "READS_AND_WRITES",
    "REDUCING",
    "ROOT",
    "ROWWISE",
    "SCANNING",
    "SOFTMAX",
    "SOFTMAX_CALL",
    "SORT",
    "SUBTRACT",
    "SUM",
    "SUM_OR_MEAN",
    "TABLE_LOOKUP",
    "TOP_K",
    "TRIANGULAR_SOLVE",
    "TRUTH_VALUES",
    "UPSAMPLING",
    "operation_of",
]

_O: Final = Kind.OPERATOR

FOURIER: Final = Meaning(r"aten::_fft_(r2c|c2r|c2c)$", _O)
INVERSE_FOURIER: Final = Meaning(r"aten::_fft_c2r$", _O)
"""The transform to real numbers: their number is an argument."""

COMPLEX_FOURIER: Final = Meaning(r"aten::fft_(fft|fft2|fftn)$", _O)
INVERSE_COMPLEX_FOURIER: Final = Meaning(r"aten::fft_(ifft|ifft2|ifftn)$", _O)
"""Transforms of complex numbers, as a program calls them."""

MATRIX_PRODUCT: Final = Meaning(r"aten::(mm|addmm|bmm|baddbmm)(_out)?$", _O)
BATCHED_PRODUCT: Final = Meaning(r"aten::(bmm|baddbmm)$", _O)
BIASED_PRODUCT: Final = Meaning(r"aten::(addmm|baddbmm|addbmm)(_out|_)?$", _O)
"""Products that add a tensor: C + A B."""

LINEAR: Final = Meaning(r"aten::linear$", _O)
PRODUCT: Final = LINEAR | MATRIX_PRODUCT | Meaning(r"aten::(matmul|mv|addmv)$", _O)
"""A product of matrices, as a program calls it."""

SOFTMAX: Final = Meaning(r"aten::_(safe_)?softmax$", _O)
SOFTMAX_CALL: Final = Meaning(r"aten::softmax$", _O) | SOFTMAX
"""Softmax at any depth."""
DROPOUT: Final = Meaning(r"aten::(native_)?dropout$", _O)

ATTENTION_STAGE: Final = SOFTMAX | Meaning(r"aten::(bmm|baddbmm|mm|addmm|convolution)$", _O)
"""What stands in a row where attention is written out: product, softmax, product, and what ends such a row."""

ATTENTION_IN_PARTS: Final = Meaning(r"aten::_scaled_dot_product_attention_math$", _O)
"""The implementation of scaled dot-product attention that is not fused."""

ATTENTION_CALL: Final = Meaning(r"aten::scaled_dot_product_attention$", _O)
"""Attention as a program calls it."""

NATIVE_ATTENTION: Final = Meaning(r"aten::_native_multi_head_attention$", _O)
"""The fast path of nn.MultiheadAttention."""

CONVOLUTION: Final = Meaning(r"aten::conv[123]d$", _O)
LIBRARY_CONVOLUTION: Final = Meaning(r"aten::(cudnn|miopen)_convolution", _O)
"""A convolution as cuDNN or MIOpen computes it."""

CONVOLVING: Final = Meaning(r"aten::(_?convolution|(cudnn|miopen)_convolution\w*|conv[123]d)$", _O)
"""A convolution at any depth, from `aten::conv2d` to the library's."""

CONVOLUTION_BACKWARD: Final = Meaning(r"aten::convolution_backward$", _O)

AFTER_CONVOLUTION: Final = Meaning(
    r"aten::((native_)?(batch|group|instance)_norm|relu|silu|gelu|leaky_relu|elu|hardswish|hardtanh|sigmoid|tanh)_?$",
    _O,
)
"""Operators that usually take a convolution's result unchanged."""

FUSED_ATTENTION: Final = Meaning(
    r"aten::(_scaled_dot_product_|_(flash|efficient|cudnn)_attention_)|flash_attn\w*::_flash_attn_(forward|backward)$",
    _O,
)
"""Attention by one kernel, forward or backward: PyTorch's, and the flash-attn package's."""

FUSED_EXPERTS: Final = Meaning(r"\w+::\w*fused_experts\w*$", _O)
"""Both products of a mixture of experts, of vLLM and SGLang."""

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

MULTIPLY: Final = Meaning(r"aten::mul$", _O)
SUBTRACT: Final = Meaning(r"aten::(sub|rsub)$", _O)
DIVIDE: Final = Meaning(r"aten::div_?$", _O)
MEAN_OR_VARIANCE: Final = Meaning(r"aten::(mean|var|var_mean|std)$", _O)
ERROR_FUNCTION: Final = Meaning(r"aten::erf$", _O)
HYPERBOLIC_TANGENT: Final = Meaning(r"aten::tanh$", _O)
POWER: Final = Meaning(r"aten::(pow|square)$", _O)
ROOT: Final = Meaning(r"aten::r?sqrt$", _O)
LOGARITHM: Final = Meaning(r"aten::log_?$", _O)
GENERAL_EIGENVALUES: Final = Meaning(r"aten::linalg_eig$", _O)
"""Eigenvalues and eigenvectors of matrices that need not be symmetric: complex numbers."""
INVERSE: Final = Meaning(r"aten::(linalg_inv|inverse|linalg_pinv|pinverse)$", _O)
MAKES_DIAGONAL: Final = Meaning(r"aten::(diag|diag_embed)$", _O)
"""A matrix is made of its diagonal (`diag` of a matrix reads it)."""
FACTORISATION: Final = Meaning(
    r"aten::(linalg_(cholesky|inv|solve|lu_factor|lu|ldl_factor)(_ex)?|linalg_(eigh|eigvalsh|eig|qr|svd|det|slogdet)"
    r"|cholesky|cholesky_inverse|inverse|pinverse|linalg_pinv|logdet|slogdet|det|svd|lu_solve)$",
    _O,
)
"""A matrix is factorised, or what needs its factors is computed: n^3 operations."""
TRIANGULAR_SOLVE: Final = Meaning(r"aten::(linalg_solve_triangular|triangular_solve|cholesky_solve)$", _O)
"""Equations are solved by factors."""
DIAGONAL_STAYS: Final = Meaning(r"aten::(mul|div|neg|abs|sqrt|square|mT)_?$", _O)
"""Zeros of one matrix stay zeros, whatever else an operator takes."""
CHECKING: Final = Meaning(
    r"aten::(isclose|allclose|isfinite|isnan|eq|ne|lt|le|gt|ge|all|any|_is_all_true|is_nonzero|item)$", _O
)
"""Values are compared: the results are true or false."""
OUTER_PRODUCT: Final = Meaning(r"aten::(outer|ger)$", _O)
TOP_K: Final = Meaning(r"aten::topk$", _O)
ONE_HOT: Final = Meaning(r"aten::one_hot$", _O)
PATCHES: Final = Meaning(r"aten::im2col$", _O)
"""All patches of an image, as `F.unfold` copies them."""
SUM: Final = Meaning(r"aten::sum$", _O)
SUM_OR_MEAN: Final = Meaning(r"aten::(sum|mean)$", _O)
COSINE: Final = Meaning(r"aten::cosine_similarity$", _O)
UPSAMPLING: Final = Meaning(r"aten::_?upsample_(nearest(_exact)?|linear|bilinear|bicubic|trilinear)[123]d$", _O)
"""`F.interpolate`, except for areas."""
POOLED_TO_SIZE: Final = Meaning(r"aten::adaptive_avg_pool2d$", _O)
"""An average pooling to a given size, as `F.interpolate` calls it for areas."""
TABLE_LOOKUP: Final = Meaning(r"aten::embedding$", _O)
DENSE_TABLE_GRADIENT: Final = Meaning(r"aten::embedding_dense_backward$", _O)
"""The gradient of a whole table of vectors, of which a batch reads some rows."""
PADDING: Final = Meaning(r"aten::constant_pad_nd$", _O)
SORT: Final = Meaning(r"aten::(sort|argsort|msort)$", _O)
REDUCING: Final = Meaning(r"aten::(sum|mean|norm|linalg_vector_norm|linalg_norm|amax)$", _O)
"""A sum, a mean or a norm over some dimensions."""

ROWWISE: Final = (
    ELEMENTWISE | DROPOUT | Meaning(r"aten::((log_)?softmax|_(log_)?softmax|(native_)?layer_norm|rms_norm)$", _O)
)
"""A result of the input's shape, each row of it (or each element) from the same row of the input."""

FOREACH: Final = Meaning(r"aten::_foreach_", _O)
"""Elementwise work on a list of tensors."""

READS_AND_WRITES: Final = ELEMENTWISE | Meaning(
    r"aten::(_softmax|_log_softmax|_safe_softmax|_softmax_backward_data|_log_softmax_backward_data|copy_"
    r"|(gelu|silu|tanh|sigmoid|threshold|hardtanh|leaky_relu|elu|softplus|hardswish)_backward"
    r"|native_(layer|batch|group)_norm(_backward)?|(cudnn|miopen)_batch_norm(_backward)?|_fused_rms_norm(_backward)?"
    r"|native_dropout_backward|masked_scale|clone|hardswish|mish|isnan)_?$",
    _O,
)
"""Operators that read their inputs once, and write one result as large as the largest: bytes by their shapes."""

TRUTH_VALUES: Final = Meaning(r"aten::(eq|ne|lt|le|gt|ge|logical_and|isnan)$", _O)
"""Operators whose results are true or false, a byte each."""

SCANNING: Final = SORT | Meaning(r"aten::(cumsum|cumprod|topk|unique\w*|_unique\w*|histc|bincount|searchsorted)$", _O)
"""Operators that order, count or add up all elements of a tensor."""

READS_ALL: Final = Meaning(
    r"aten::(sum|mean|amax|amin|max|min|prod|norm|linalg_vector_norm|argmax|argmin|all|any|var|std|var_mean|logsumexp)$",
    _O,
)
"""Reductions: they read their input and write little."""

GENERATED: Final = Meaning(r"triton_", _O)
"""A kernel that torch.compile made, called as an operator."""

FILLING: Final = Meaning(r"aten::(fill|zero|normal|uniform|random|bernoulli)_$", _O)
"""Operators that write a tensor and read nothing of it."""

MEMORY_SPEED: Final = Meaning(
    r"aten::(add|sub|mul|div|neg|abs|sqrt|rsqrt|square|relu|clamp|clamp_min|clamp_max|threshold_backward|maximum"
    r"|minimum|lerp|addcmul|addcdiv|fill|zero|copy)_?$",
    _O,
)
"""Operators that a processor computes as fast as it reads: some GB/s on one core, whatever the layout."""

_OPERATIONS: Final = tuple(
    (re.compile(rf"aten::_?({pattern})(_backward\w*)?(_out)?_?$"), operation)
    for pattern, operation in (
        (r"(scaled_|grouped_|int_|weight_int\dpack_|scaled_grouped_)?mm|addmm|bmm|baddbmm|addbmm|mv|addmv|linear"
         r"|matmul|cslt_sparse_mm|addmm_activation", "matmul"),
        (r"\w*convolution\w*|conv[123]d|conv_depthwise\w*|slow_conv\w*|thnn_conv\w*", "convolution"),
        (r"(scaled_dot_product_|)(flash|efficient|cudnn|fused)\w*attention\w*|flex_attention", "attention"),
        (r"(log_)?softmax|safe_softmax", "softmax"),
        (r"(native_|cudnn_|miopen_|fused_)?(layer|batch|group|rms|instance)_norm\w*", "normalization"),
        (r"embedding\w*", "embedding"),
        (r"index(_select|_put|_put_impl|_add|_copy|_fill)?|gather|scatter\w*|masked_(select|scatter)|nonzero|take"
         r"|embedding_renorm", "indexing"),
        (r"sort|topk|kthvalue|argsort|unique\w*|msort", "sort"),
        (r"cumsum|cumprod|logcumsumexp|cummax|cummin", "scan"),
        (r"fft_\w+", "fft"),
        (r"fused_(adam|adamw|sgd|adagrad)", "optimizer"),
        (r"foreach_\w+", "foreach"),
        (r"\w*_loss(_forward|2d_forward)?", "loss"),
        (r"sum|mean|amax|amin|max|min|prod|norm|linalg_vector_norm|argmax|argmin|all|any|var|std|var_mean|logsumexp",
         "reduction"),
        (r"upsample\w*|grid_sampler\w*", "resampling"),
        (r"\w*(max|avg)_pool\w*", "pooling"),
    )
)  # fmt: skip


def operation_of(operator: str) -> str:
    """The operation of a PyTorch operator, a word of `kernels.OPERATIONS`; "" where its name doesn't show it.

    >>> operation_of("aten::addmm"), operation_of("aten::native_layer_norm_backward"), operation_of("aten::to")
    ('matmul', 'normalization', '')
    """
    if ELEMENTWISE.names(operator):
        return "elementwise"
    return next((operation for pattern, operation in _OPERATIONS if pattern.match(operator)), "")
