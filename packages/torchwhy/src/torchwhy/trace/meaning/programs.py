"""Names by which a program is known again in another recording of it, or in another way of writing it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from torchwhy.trace.meaning.kinds import Kind, Meaning

__all__ = ["AUTOGRAD", "EVERYWHERE", "PRODUCTS", "kin", "stable_name", "unnumbered"]

_O: Final = Kind.OPERATOR

EVERYWHERE: Final = Meaning(
    r"aten::(empty|zeros|ones|full|fill|zero|copy|to|_to_copy|clone|contiguous|detach|view|_unsafe_view|reshape|resize"
    r"|as_strided|t|transpose|permute|expand|select|slice|narrow|squeeze|unsqueeze|flatten|item|_local_scalar_dense"
    r"|is_nonzero|add|mul|set|lift_fresh|empty_strided|empty_like|zeros_like|ones_like|result_type|alias)_?$",
    _O,
)
"""Operators that every program calls, whatever it computes."""

AUTOGRAD: Final = Meaning(r"(torch::)?autograd::", _O)
"""The calls of autograd's engine around the operators of a backward pass."""

PRODUCTS: Final[Mapping[str, Meaning]] = {
    "matmul": Meaning(
        r"aten::(mm|addmm|_addmm_activation|bmm|baddbmm|addbmm|matmul|linear|mkldnn_linear|mv|addmv|dot|_scaled_mm"
        r"|_int_mm|_?grouped_mm|_scaled_grouped_mm)(_out|_)?$",
        _O,
    ),
    "convolution": Meaning(
        r"aten::(conv(_transpose)?[123]d|_?convolution(_overrideable)?|(cudnn|miopen|mkldnn)_convolution\w*"
        r"|thnn_conv2d|_slow_conv2d_forward|slow_conv\w+|_conv_depthwise2d|conv_depthwise3d)$",
        _O,
    ),
    "attention": Meaning(
        r"aten::(scaled_dot_product_attention|_scaled_dot_product_\w*attention\w*|_flash_attention_forward"
        r"|_efficient_attention_forward|_cudnn_attention_forward|_native_multi_head_attention)$",
        _O,
    ),
}
"""What carries a program's arithmetic, by family. However it is written, fused or compiled, these calls remain: a
product and a sum become `addmm`, `linear` calls one of them."""

_CHANGING: Final = (
    (re.compile(r"(## Call CompiledFxGraph) \S+ ##"), r"\1 ##"),  # a hash of the graph
    (re.compile(r"^ProfilerStep\*?#?\d*$"), "ProfilerStep"),
    (re.compile(r"\b0x[0-9a-fA-F]{4,}"), "0x"),  # an address
    (re.compile(r"^(triton_[a-z]+_fused_\w*?)_\d+$"), r"\1"),  # numbered in the order of code generation
)

_STEP_NUMBER: Final = re.compile(r"[*#]*\d+$")


@lru_cache(maxsize=1 << 16)
def stable_name(name: str) -> str:
    """Leave out what changes from one run of a program to the next: hashes, addresses, numbers of steps.

    >>> stable_name("## Call CompiledFxGraph fv5udnjvbrmcs ##"), stable_name("triton_poi_fused_add_relu_3")
    ('## Call CompiledFxGraph ##', 'triton_poi_fused_add_relu')
    """
    for pattern, replacement in _CHANGING:
        name = pattern.sub(replacement, name)
    return name


def unnumbered(name: str) -> str:
    """Return a step's name without its number.

    >>> unnumbered("ProfilerStep*#5"), unnumbered("train_step#12"), unnumbered("7")
    ('ProfilerStep', 'train_step', '7')
    """
    return _STEP_NUMBER.sub("", name) or name


def kin(name: str) -> str:
    """Return the family of an operator that computes products; of any other its name without namespace and "_".

    >>> kin("aten::addmm"), kin("aten::relu_"), kin("aten::native_layer_norm")
    ('matmul', 'relu', 'native_layer_norm')
    """
    for family, meaning in PRODUCTS.items():
        if meaning.names(name):
            return family
    return name.rpartition("::")[2].strip("_")
