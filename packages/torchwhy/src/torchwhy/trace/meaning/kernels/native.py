"""PyTorch's own kernels: at::native::..., with what they compute hidden in a functor's or lambda's name."""

from __future__ import annotations

import re
from typing import Final

from torchwhy.trace.meaning.kernels.name import (
    OPERATIONS,
    KernelName,
    arguments_cut,
    dtype_in,
    shortened,
    words,
)

__all__ = ["native"]

_FORMS: Final = (
    # by the kernel's own name: how it walks over memory
    ("vectorized_elementwise_kernel", "elementwise", "vec"),
    ("unrolled_elementwise_kernel", "elementwise", "unrolled"),
    ("elementwise_kernel_manual_unroll", "elementwise", "strided"),
    ("elementwise_kernel_with_index", "elementwise", "with index"),
    ("elementwise_kernel", "elementwise", "strided"),
    ("vectorized_templated_elementwise_kernel", "elementwise", "vec"),
    ("reduce_kernel", "reduction", ""),
)

# Parts of names that say how, not what.
_STRUCTURE: Final = frozenset(
    """
    vectorized_elementwise unrolled_elementwise elementwise reduce gpu index_elementwise
    vectorized_templated_elementwise Binary AUnary BUnary Unary Reduce Norm binary_internal opmath_symmetric_gpu
    multi_tensor_apply lambda BinaryOpScalar BinaryOpListAlpha UnaryOp PointwiseOpScalar PointwiseOpScalarList
    PointwiseOpList gpu_index opmath_gpu jitted_gpu templates
    """.split()  # noqa: SIM905 - a list of this length reads better as text
)
_WHAT = re.compile(
    r"CUDAFunctor_?(?P<a>[A-Za-z]\w{0,80})"
    r"|(?P<k>[A-Za-z]\w{0,80}?)(?:_scalar)?_kernel(?:_cuda|_impl|_scalar)?(?![a-z])"
    r"|(?P<b>[A-Za-z]\w{0,80}?)_cuda_kernel"
    r"|(?P<c>[A-Za-z]\w{0,80}?)(?:CUDA)?Kernel(?:Impl)?\b"
    r"|launch_(?P<d>[a-z]\w{0,80}?)(?:_scalar|_kernel)?\b"
    r"|(?P<e>[A-Za-z]\w{0,80}?)_?[fF]unctor\b"
    r"|(?P<f>[A-Z]\w{0,80}?)Ops\b"
)
_FUNCTORS: Final = {
    "direct_copy": "copy",
    "bfloat16_copy": "cast to bfloat16",
    "bfloat16tofloat32_copy": "cast to float32",
}

_TOPICS: Final = (
    (r"multi_tensor_apply_kernel", "foreach"),
    (r"fused_adam\w*|adam\w*|sgd\w*|lamb\w*|adagrad", "optimizer"),
    (r"softmax|SoftMax", "softmax"),
    (
        r"layer_norm|LayerNorm|group_?norm|GroupNorm|RowwiseMoments|rms_?norm|GammaBeta|batch_norm|instance_norm",
        "normalization",
    ),
    (r"embedding|EmbeddingBag", "embedding"),
    (r"[sS]ort|topk|TopK|kthvalue|median|unique|Bitonic|radix|compute_mode", "sort"),
    (r"index|gather|scatter|take_|put_|masked_s|nonzero|write_indices|flip", "indexing"),
    (r"CatArray|concat|split_cuda", "copy"),
    (r"triu_tril|tril_indices", "elementwise"),
    (r"dropout", "random"),
    (r"distribution|philox|random|bernoulli|uniform|normal_|multinomial|exponential", "random"),
    (r"max_pool|avg_pool|average_pool|adaptive", "pooling"),
    (r"conv_depthwise|col2im|im2col|slow_conv|vol2col", "convolution"),
    (r"[sS]can|cumsum|cumprod|logcumsumexp", "scan"),
    (r"nll_loss|mse|ctc_loss|cross_entropy", "loss"),
    (r"upsample|grid_sampl|interpolat", "resampling"),
    (r"lstm|gru|rnn", "recurrent"),
    (r"reflection_pad|replication_pad", "copy"),
    (r"transform_bias_rescale_qkv|transform_0213", "layout"),
    (r"fft|Fft", "fft"),
    (r"spin_kernel|spin|sleep", "other"),
)
_COMPILED: Final = tuple((re.compile(pattern), operation) for pattern, operation in _TOPICS)


def native(name: str) -> KernelName | None:
    """Read the name of a kernel of PyTorch."""
    if not re.match(
        r"(?:void )?(?:at::|\(anonymous namespace\)::|c10::|std::|std::enable_if|multi_tensor_apply|c10d::)", name
    ):
        return None
    text = arguments_cut(name).removeprefix("at::native::")
    function = text.partition("<")[0].rpartition("::")[2]
    dtype = dtype_in(text[len(function) :]) or dtype_in(name)
    for form, operation, how in _FORMS:
        if function == form:
            return _elementwise(text, operation, how, dtype)
    return _topic(text, function, dtype)


def _elementwise(text: str, operation: str, how: str, dtype: str) -> KernelName:
    what = _what(text.partition("<")[2])
    count = re.match(r"[^<]*<(\d+)", text)
    how = f"{how}{count[1]}" if how == "vec" and count else how
    if operation == "elementwise":
        operation = {"copy": "copy", "fill": "fill"}.get(what, operation)
        operation = "copy" if what.startswith("cast to") else "random" if "dropout" in what else operation
        text = f"{what or 'elementwise arithmetic'} on {dtype or 'tensors'}"
        return KernelName(
            shortened(what or "elementwise", dtype, how), "PyTorch", operation, dtype=dtype, description=text
        )
    block = f"block {count[1]}" if count else ""
    return KernelName(
        shortened(what, "reduction", dtype, block),
        "PyTorch",
        operation,
        dtype=dtype,
        description=f"reduction: {what or 'sum'}",
    )


def _topic(text: str, function: str, dtype: str) -> KernelName | None:
    operation = next((operation for pattern, operation in _COMPILED if pattern.search(function)), None)
    if operation is None:
        return None
    plain = re.sub(r"_?[kK]ernel(_impl)?(_vec)?$|_?cuda$|^cunn_", "", function).replace("SoftMax", "Softmax")
    label = words(plain)
    if operation == "foreach":
        inner = re.findall(r"(\w+?)_?[fF]unctor", text)
        chosen = next((part for part in inner if part not in _STRUCTURE), inner[0] if inner else "")
        functor = re.search(
            r"std::(plus|minus|multiplies|divides)|(?:at::native::)?(Sqrt|Abs|Neg|Reciprocal|Exp)\b", text
        )
        if chosen in _STRUCTURE or not chosen:
            chosen = (functor[1] or functor[2]) if functor else "foreach"
        label = words(chosen)
        updates = re.search(r"adam|sgd|lamb|adagrad|lars", text, re.IGNORECASE)
        operation = "optimizer" if updates else "foreach"
        depth = re.search(r"TensorListMetadata<(\d)>", text)
        label = shortened("multi-tensor", label, f"({depth[1]} lists)" if depth else "")
    if operation == "random" and (inner_name := _distribution(text)):
        label = inner_name
    if "backward" in text.lower() and "backward" not in label and "grad" not in label:
        label += " backward"
    numbers = re.findall(r"(?<=[<, ])-?\d+(?=[,>])", text)
    mark = f"<{','.join(numbers[:3])}>" if numbers and operation not in ("foreach", "optimizer") else ""
    description = f"{label} ({OPERATIONS[operation]})"
    return KernelName(shortened(label, dtype, mark), "PyTorch", operation, dtype=dtype, description=description)


def _distribution(text: str) -> str:
    found = re.search(r"(uniform|normal|bernoulli|exponential|random|cauchy|geometric)\w*", text)
    return f"{found[1]} random numbers" if found and "dropout" not in text else ""


def _what(inner: str) -> str:
    """Find the functor, or the function whose lambda it is, that says what is computed."""
    for match in _WHAT.finditer(inner):
        raw = next(group for group in match.groups() if group)
        if raw in _FUNCTORS:
            return _FUNCTORS[raw]
        if raw not in _STRUCTURE and not raw.startswith("gpu_kernel"):
            found = words(raw)
            if "backward" in inner and "backward" not in found and f"{raw}_backward" in inner:
                found += " backward"
            return found
    return ""
