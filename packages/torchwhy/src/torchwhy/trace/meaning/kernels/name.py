"""The meaning of a kernel's name, and the pieces of names that several libraries share."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from torchwhy.trace.meaning.libraries import VOCABULARIES

__all__ = [
    "KINDS",
    "LONGEST",
    "MEMORY_BOUND",
    "OPERATIONS",
    "KernelName",
    "arguments_cut",
    "dtype_in",
    "function_name",
    "kind_of_operation",
    "short_name",
    "shortened",
    "words",
]

LONGEST: Final = 60
"""Characters of `KernelName.short`."""

OPERATIONS: Final = {
    "matmul": "matrix multiplication",
    "convolution": "convolution",
    "attention": "fused attention",
    "elementwise": "elementwise arithmetic",
    "reduction": "reduction",
    "softmax": "softmax",
    "normalization": "normalization",
    "fused": "generated kernel of several fused operators",
    "copy": "copy within the device's memory",
    "fill": "fill with a constant",
    "transfer": "copy between memories",
    "layout": "conversion of memory layout",
    "indexing": "gather, scatter or indexing",
    "embedding": "embedding lookup",
    "communication": "communication between ranks",
    "optimizer": "optimizer update",
    "foreach": "elementwise arithmetic on lists of tensors",
    "random": "random numbers",
    "pooling": "pooling",
    "scan": "prefix sum",
    "sort": "sort or top-k",
    "loss": "loss",
    "fft": "Fourier transform",
    "recurrent": "recurrent network",
    "resampling": "interpolation",
    "other": "kernel",
    **{operation: text for each in VOCABULARIES for operation, text in each.operations.items()},
}
"""Values of `KernelName.operation`, and what they mean."""

MEMORY_BOUND: Final = frozenset({"elementwise", "reduction", "softmax", "normalization", "copy", "fill", "random"})
"""Operations whose time is that of reading and writing their tensors, and that a compiler can fuse."""


KINDS: Final = {
    "GEMM": ("matmul",),
    "attention": ("attention",),
    "convolution": ("convolution",),
    "MoE": (),
    "elementwise": ("elementwise", "fused", "foreach", "optimizer", "random"),
    "reduction": ("reduction", "softmax", "scan", "sort", "loss"),
    "norm": ("normalization",),
    "embedding": ("embedding", "indexing"),
    "copy": ("copy", "fill", "layout"),
    "communication": ("communication",),
    "other": (),
    "unknown": (),
}
"""The kinds that device work is counted by, with their operations; "other" has a known name, "unknown" has not."""

_KIND_OF: Final = {operation: kind for kind, operations in KINDS.items() for operation in operations}
_EXPERTS: Final = re.compile(r"(?i:fused_?moe|(?<![a-z])moe(?![a-z])|experts)")


def kind_of_operation(operation: str) -> str:
    """Return the kind, of `KINDS`, that an operation of `OPERATIONS` belongs to."""
    return _KIND_OF.get(operation, "other")


@dataclass(frozen=True)
class KernelName:
    """A kernel's name, read.

    Attributes:
        short: at most 60 characters; distinguishes kernels of a program where their names do.
        library: "cuBLAS", "CUTLASS", "cuDNN", "PyTorch", "Triton", "NCCL", "hipBLASLt", ...; "" if unknown.
        operation: a key of `OPERATIONS`.
        tile: of the output that one block computes, such as "128x64x32"; "" where the name doesn't show it.
        layout: such as "tn" (A transposed, B not), "nhwc"; "" where the name doesn't show it.
        dtype: of the inputs, as PyTorch calls it ("float32", "bfloat16"), or "tf32", "float8", "mxfp4"; "" if unknown.
        tensor_core: whether it computes on tensor cores (AMD: matrix cores); None where the name doesn't show it.
        fused: the operators a generated kernel joins.
        guessed: whether only words in the name suggest the operation, or nothing does: no scheme of a library's names.
        alignment: elements that a matrix product of CUTLASS loads at once; 0 where the name doesn't show it.
        description: one phrase for people.
    """

    short: str
    library: str = ""
    operation: str = "other"
    tile: str = ""
    layout: str = ""
    dtype: str = ""
    tensor_core: bool | None = None
    fused: tuple[str, ...] = ()
    description: str = ""
    alignment: int = 0
    guessed: bool = False

    @property
    def spins(self) -> bool:
        """Whether it only waits, as `torch.cuda._sleep` does."""
        return self.short.startswith("spin")

    @property
    def casts(self) -> bool:
        """Whether it is PyTorch's copy into another type."""
        return self.operation == "copy" and self.library == "PyTorch" and "cast" in self.short

    @property
    def streams_a_matrix(self) -> bool:
        """Whether it belongs to a matrix product and uses each number once: a product with a vector, or an epilogue.

        Memory limits it then, and tensor cores would gain nothing.
        """
        vector = "gemv" in self.short or "gemmk1" in self.short
        return self.operation == "matmul" and (vector or "epilogue" in self.description)

    @property
    def kind(self) -> str:
        """What it is counted as, one of `KINDS`."""
        if self.operation != "communication" and _EXPERTS.search(self.short):
            return "MoE"
        return "unknown" if self.guessed and not self.known else kind_of_operation(self.operation)

    @property
    def known(self) -> bool:
        """Whether the name says what the kernel computes."""
        return self.operation != "other"


_FLOATING: Final = (
    (r"BFloat16|bfloat16(?!_t?o)|bf16", "bfloat16"),
    (r"c10::Half|__half2?\b|half_t|(?<![a-z])half(?![a-z])|(?<![a-z])f(?:p)?16(?!\d)", "float16"),
    (r"Float8_e4m3\w*|e4m3\w*", "float8"),
    (r"Float8_e5m2\w*|e5m2\w*", "float8"),
    (r"\bdouble\b|complex<double>", "float64"),
    (r"\bfloat\b|complex<float>", "float32"),
)
_WHOLE: Final = (
    (r"\blong\b|int64_t", "int64"),
    (r"\bbool\b", "bool"),
    (r"\b(?:un)?signed char\b|u?int8_t", "int8"),
    (r"\bshort\b|int16_t", "int16"),
    (r"(?<!unsigned )\bint\b", "int32"),
)
_PATTERNS: Final = tuple(
    tuple((re.compile(pattern), dtype) for pattern, dtype in group) for group in (_FLOATING, _WHOLE)
)


def dtype_in(text: str) -> str:
    """Return the first type a C++ name mentions: a floating one if there is any, since the others are often indices."""
    for group in _PATTERNS:
        found = [(match.start(), dtype) for pattern, dtype in group if (match := pattern.search(text))]
        if found:
            return min(found)[1]
    return ""


def arguments_cut(name: str) -> str:
    """Cut the list of arguments off a C++ name, and "void" before it.

    >>> arguments_cut("void ns::(anonymous namespace)::kernel<4, f(int)>(int, float*)")
    'ns::kernel<4, f(int)>'
    """
    text = name.removeprefix("void ").replace("(anonymous namespace)::", "")
    depth = 0
    for i, character in enumerate(text):
        if character == "<":
            depth += 1
        elif character == ">" and text[i - 1 : i] != "-":
            depth -= 1
        elif character == "(" and depth == 0 and i:
            return text[:i]
    return text


def function_name(name: str) -> str:
    """Return the function of a kernel without namespaces, templates and arguments; "" of a name that holds none.

    >>> function_name("void ns::(anonymous namespace)::kernel<4, f(int)>(int)"), function_name("attn_fwd.kd")
    ('kernel', 'attn_fwd')
    """
    found = arguments_cut(name).partition("<")[0].rpartition("::")[2].removesuffix(".kd").strip()
    return found if re.fullmatch(r"\w+", found, re.ASCII) else ""


def words(identifier: str) -> str:
    """Make words of an identifier.

    >>> words("CompareEq"), words("log_softmax_backward"), words("GeluCUDA")
    ('compare eq', 'log softmax backward', 'gelu')
    """
    text = re.sub(r"CUDA|Cuda|cuda|_gpu$", "", identifier)
    text = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text).replace("_", " ")
    return " ".join(text.split()).lower()


def shortened(*parts: str) -> str:
    """Join the parts that aren't empty, within `LONGEST` characters."""
    text = " ".join(part for part in parts if part)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


_NOISE: Final = re.compile(r"^void |\(anonymous namespace\)::|\bat::native::|\bat::cuda::")
_PARAMETERS: Final = re.compile(r"\((?:[^()]|\([^()]*\))*\)(?: \[clone [^\]]*\])?$")


def short_name(name: str) -> str:
    """Return an event's name without what every kernel has: `void`, namespaces, the list of parameters.

    >>> short_name("void at::native::(anonymous namespace)::softmax<float, 4>(float*, int)"), short_name("aten::mm")
    ('softmax<float, 4>', 'aten::mm')
    """
    if "::" not in name and not name.startswith("void "):
        return name
    short = _NOISE.sub("", name)
    return (_PARAMETERS.sub("", short) or short) if short != name else name
