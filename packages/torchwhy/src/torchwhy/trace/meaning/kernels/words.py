"""Kernels of other libraries and of the program itself: what the words in their names suggest."""

from __future__ import annotations

import re
from typing import Final

from torchwhy.trace.meaning.kernels.name import OPERATIONS, KernelName, arguments_cut, dtype_in, shortened
from torchwhy.trace.meaning.libraries import VOCABULARIES

__all__ = ["by_words"]

_WORDS: Final = (
    *(pair for each in VOCABULARIES for pair in each.kernels),
    (r"attn_(fwd|bwd)|attention", "attention"),
    (r"adam|sgd_?momentum|lamb_stage|adagrad|optimizer", "optimizer"),
    # A product that is fused with something else takes the product's time.
    (
        r"gemm|matmul|(?<![a-z])b?mm(?![a-z])|grouped_mm|fused_moe|(?<![a-z])linear(?!ize)|cublas|tensorop|nvjet",
        "matmul",
    ),
    (r"rms_?norm|layer_?norm|group_?norm|groupnorm|ln_(fwd|bwd)|batch_?norm", "normalization"),
    (r"softmax", "softmax"),
    (r"embedding|_embs?_", "embedding"),
    (r"bucketize|permute|bounds_check|index|gather|scatter|jagged|segment", "indexing"),
    (
        r"rotary|rope|silu|gelu|swiglu|relu|sigmoid|activation|act_and_mul|elementwise|pointwise|quant|(?<!broad)cast",
        "elementwise",
    ),
    (r"conv(?!ert)", "convolution"),
    (r"cross_entropy|nll|loss", "loss"),
    (r"DeviceScan|scan", "scan"),
    (r"DeviceReduce|reduce|reduction|norm_?2|(?<![a-z])(mean|sum|argmax|argmin)(?![a-z])", "reduction"),
    (r"RadixSort|DeviceRadix|MergeSort|sort|topk|top_k|histogram|DeviceSelect|partition|unique", "sort"),
    (r"transpose|layout|nchw|nhwc", "layout"),
    (r"fft", "fft"),
    (r"copy|concat|cat_|pack|unpack|clone", "copy"),
    (r"fill|memset|zero", "fill"),
    (r"rand|philox|dropout", "random"),
    (r"pool", "pooling"),
    (r"lstm|gru|rnn", "recurrent"),
    (r"parallel_for|transform|(?<![a-z])(add|mul|div|sub)(?![a-z])|elemwise", "elementwise"),
)
_COMPILED: Final = tuple((re.compile(pattern, re.IGNORECASE), operation) for pattern, operation in _WORDS)
_LIBRARIES: Final = (
    ("cub::", "CUB"),
    ("rocprim", "rocPRIM"),
    *((each.library, each.library) for each in VOCABULARIES),
    ("thrust::", "Thrust"),
    ("fbgemm", "FBGEMM"),
    ("split_embedding", "FBGEMM"),
    ("apex", "Apex"),
    ("transformer_engine", "Transformer Engine"),
    ("vllm", "vLLM"),
    ("flashinfer", "FlashInfer"),
    ("sglang", "SGLang"),
    ("aiter", "AITER"),
    ("ck::", "Composable Kernel"),
    ("ck_tile::", "Composable Kernel"),
    ("bitsandbytes", "bitsandbytes"),
    ("at::", "PyTorch"),
)
_NAMESPACE: Final = re.compile(
    rf"(?<!\w)({'|'.join(re.escape(start.removesuffix('::')) for start, _ in _LIBRARIES)})\w*::"
)
"""A library's name, which says nothing of what its kernel does, as "fbgemm_gpu::" of one that multiplies nothing."""


def by_words(name: str) -> KernelName | None:
    """Read what the words in a kernel's name suggest; None where they suggest nothing."""
    text = arguments_cut(name)
    function = _NAMESPACE.sub("", text.partition("<")[0])
    plain = function.rpartition("::")[2]
    if plain in ("trampoline_kernel", "kernel_agent", "device_kernel"):  # what they do is in the template only
        plain = text.partition("<")[2]
    for pattern, operation in _COMPILED:
        if pattern.search(plain) or ("::" in function and pattern.search(function)):
            library = next((label for start, label in _LIBRARIES if start in name), "")
            dtype = dtype_in(text.partition("<")[2] or name)
            label = re.sub(r"_?[kK]ernel$|_cuda$", "", plain.strip("_")) or plain
            tensor = True if operation == "matmul" and re.search(r"wmma|tensorop|xdl", name) else None
            return KernelName(
                shortened(label, dtype),
                library,
                operation,
                dtype=dtype,
                tensor_core=tensor,
                description=OPERATIONS[operation],
                guessed=True,
            )
    return None
