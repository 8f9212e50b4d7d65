"""Operators that make, move, copy or convert tensors."""

from __future__ import annotations

import re
from typing import Final

from torchwhy.trace.meaning.kinds import Kind, Meaning

__all__ = [
    "CHANGE_OF_TYPE",
    "CLONE",
    "CONCATENATE",
    "COPY_TENSOR",
    "MAKE_TENSOR",
    "MAKE_ZEROS",
    "MOVE_TENSOR",
    "OUT_OF_PLACE",
    "TABLES",
    "tensor_sizes",
]

_O: Final = Kind.OPERATOR

MAKE_TENSOR: Final = Meaning(
    r"aten::(zeros|ones|full|zeros_like|ones_like|full_like|rand|randn|randint|randperm|rand_like|randn_like|arange"
    r"|linspace|eye|normal|bernoulli|zero_|fill_|normal_|uniform_|random_|bernoulli_|exponential_|tril_indices"
    r"|hann_window)$",
    _O,
)
"""A tensor is made, or filled with what needs no other tensor."""

MAKE_ZEROS: Final = Meaning(r"aten::zeros_like$", _O)

MOVE_TENSOR: Final = Meaning(r"aten::(to|_to_copy|cuda)$", _O)
CHANGE_OF_TYPE: Final = Meaning(r"aten::(to|_to_copy|type_as|_autocast_to\w*)$", _O)
COPY_TENSOR: Final = Meaning(r"aten::copy_$", _O)
CLONE: Final = Meaning(r"aten::clone$", _O)
CONCATENATE: Final = Meaning(r"aten::(cat|stack)$", _O)

TABLES: Final = Meaning(r"(aten::(_embedding_bag\w*|embedding_bag)|fbgemm::\w*(embedding|jagged)\w*)$", _O)
"""Bags of rows of tables are looked up, as recommenders do; `aten::embedding` is part of every language model."""

OUT_OF_PLACE: Final = Meaning(
    r"aten::(masked_fill|masked_scatter|index_put|index_add|index_copy|index_fill|scatter|scatter_add|scatter_reduce"
    r"|slice_scatter|select_scatter|diagonal_scatter|fill_diagonal|put|index_reduce)$",
    _O,
)
"""Operators that change a part of a tensor, and copy all of it first because they are asked to leave it as it is."""

_SIZES: Final = re.compile(r"\[[\d, ]*\d[\d, ]*\]")


def tensor_sizes(dims: str) -> list[str]:
    """Return the sizes of each tensor in an event's "Input Dims"; scalars have no dimension and are left out.

    >>> tensor_sizes("[[64, 3, 7, 7], [64], [], []]")
    ['[64, 3, 7, 7]', '[64]']
    """
    return _SIZES.findall(dims)
