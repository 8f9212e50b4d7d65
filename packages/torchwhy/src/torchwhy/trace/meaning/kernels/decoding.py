"""Read a kernel's name: the families of names one after another, the most telling first."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Final
from zlib import crc32

from torchwhy.trace.meaning.kernels.attention import attention
from torchwhy.trace.meaning.kernels.communication import communication, transfer
from torchwhy.trace.meaning.kernels.convolution import convolution
from torchwhy.trace.meaning.kernels.generated import generated
from torchwhy.trace.meaning.kernels.matmul import matmul
from torchwhy.trace.meaning.kernels.name import LONGEST, OPERATIONS, KernelName, arguments_cut, shortened
from torchwhy.trace.meaning.kernels.native import native
from torchwhy.trace.meaning.kernels.tensile import tensile
from torchwhy.trace.meaning.kernels.words import by_words
from torchwhy.trace.meaning.kinds import LONGEST_NAME

__all__ = ["decode", "distinct"]

_READERS: Final[tuple[Callable[[str], KernelName | None], ...]] = (
    transfer,
    communication,
    generated,
    tensile,
    attention,
    convolution,
    matmul,
    native,
    by_words,
)


@lru_cache(maxsize=65536)
def decode(name: str) -> KernelName:
    """Read a kernel's name; an unknown one keeps its own words.

    >>> kernel = decode("ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_nn")
    >>> kernel.library, kernel.operation, kernel.dtype, kernel.tile, kernel.layout, kernel.tensor_core
    ('cuBLAS', 'matmul', 'bfloat16', '128x256', 'nn', True)
    >>> decode("triton_poi_fused_add_relu_0").fused
    ('add', 'relu')
    """
    text = _readable(name[:LONGEST_NAME])
    for reader in _READERS:
        found = reader(text)
        if found is not None:
            return found
    plain = arguments_cut(text).partition("<")[0].rpartition("::")[2] or text
    return KernelName(shortened(plain.strip() or "(no name)"), description=OPERATIONS["other"], guessed=True)


def distinct(names: Iterable[str]) -> dict[str, str]:
    """Return a short form of each name, different for different names.

    Names that read the same, such as two variants of one kernel, get a mark made of the whole name: the same in every
    trace.
    """
    unique = dict.fromkeys(names)
    readers: dict[str, int] = {}
    for name in unique:
        short = decode(name).short
        readers[short] = readers.get(short, 0) + 1
    return {name: _marked(name) if readers[decode(name).short] > 1 else decode(name).short for name in unique}


def _marked(name: str) -> str:
    mark = f" #{crc32(name.encode(errors='replace')):08x}"[:6]
    return decode(name).short[: LONGEST - len(mark)] + mark


def _readable(name: str) -> str:
    """The identifiers of a mangled C++ name: enough to recognize it."""
    if not name.startswith("_Z"):
        return name
    found, i = [], 0
    while match := re.compile(r"(?<![\d_])\d{1,3}(?=[A-Za-z_])|\d{1,3}(?=_GLOBAL_)|\d{1,3}(?=[A-Za-z_])").search(
        name, i
    ):
        length = int(match[0])
        identifier = name[match.end() : match.end() + length]
        if len(identifier) < length or not identifier.isidentifier():
            i = match.end()
            continue
        found.append(identifier)
        i = match.end() + length
    return "::".join(part for part in found if not part.startswith("_GLOBAL_")) or name
