"""Operators: what PyTorch calls them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from torchwhy.trace.meaning.kinds import CALLED, Kind, Meaning
from torchwhy.trace.meaning.libraries import LIBRARY_OPERATOR

__all__ = [
    "ACCUMULATE_GRADIENT",
    "ADD_IN_PLACE",
    "AUTOGRAD_NODE",
    "BACKWARD",
    "BLOCKING_COPY",
    "CHECKPOINT_BACKWARD",
    "CONVERSION",
    "COPIES_OR_FILLS",
    "COPY",
    "COPY_OR_CONVERSION",
    "CUSTOM_NODE",
    "DECOMPOSITION",
    "DIAGONAL",
    "DISPATCHED",
    "DISPATCHED_COPY",
    "DRAWS_MASK",
    "DRAWS_ORDER",
    "EXPAND",
    "FINITE_CHECK",
    "FINITE_TEST",
    "FLIP",
    "FOREACH_OR_FUSED",
    "FORMATTING_BEGINS",
    "FORMATTING_STEP",
    "FROM_PYTHON",
    "HEAVY",
    "INDEXING",
    "INTO",
    "ITEM",
    "LAYOUT",
    "LEAF_GRADIENT",
    "LEARNING",
    "LIFT",
    "LOCAL_SCALAR",
    "MAGNITUDE",
    "MODULE_OF_CELL",
    "MOMENT",
    "MOVE",
    "NAN_CHECK",
    "NEEDS_VALUES",
    "NONZERO",
    "NUMBER_READ",
    "ONCE_A_STEP",
    "ON_DEVICE_ONLY",
    "PICK",
    "PYTORCHS",
    "RANDOM",
    "READS_ROWS",
    "REAL_PART",
    "RECIPE_IF_IT_CALLS",
    "RECURRENT_CELL",
    "REPEAT",
    "RESHAPE",
    "SAME_SHAPE",
    "SAMPLING",
    "SEEN_AS",
    "SIZED",
    "SIZE_BY_VALUES",
    "SLICE",
    "SLICE_WRITE_BACKWARD",
    "STACK",
    "STATISTIC",
    "STRIDED_SLICE",
    "TO_COPY_BACKWARD",
    "TRANSFER",
    "TRUTH_OF_ALL",
    "UNBIND",
    "UNSAFE_VIEW",
    "UPDATE",
    "VIEW",
    "WEIGHTED_DRAW",
    "ZERO_FILL",
    "short_operator",
]

_O: Final = Kind.OPERATOR

AUTOGRAD_NODE: Final = Meaning(r"autograd::engine::evaluate_function", *CALLED)
"""The engine runs one node of the backward pass."""

DISPATCHED: Final = Meaning(r"(?!torch::autograd)[^ ]*::[^ ]*$", _O)
"""An operator as the dispatcher knows it, "namespace::name", not a node of the backward pass."""

LEAF_GRADIENT: Final = Meaning(r"torch::autograd::AccumulateGrad$", *CALLED)
"""The gradient of a leaf, with its shape: `x.grad` receives it."""

ACCUMULATE_GRADIENT: Final = Meaning(r"autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", *CALLED)
"""The node that adds to a parameter's gradient."""

SLICE_WRITE_BACKWARD: Final = Meaning(r"(autograd::engine::evaluate_function: )?torch::autograd::CopySlices$", *CALLED)
"""The node of a write into a view, such as `x[i] = y`: it copies the gradient of all of `x`, then calls the written
part's own node."""

CHECKPOINT_BACKWARD: Final = Meaning(r"CheckpointFunctionBackward$", *CALLED)
"""The node in which activation checkpointing computes its part of the forward pass again."""

CUSTOM_NODE: Final = Meaning(
    r"autograd::engine::evaluate_function: (?!CompiledFunction|CheckpointFunction)\w*[A-Za-z_]Backward$", *CALLED
)
"""The engine runs the backward of a `torch.autograd.Function` of the program's; those of PyTorch's end in a number."""

BACKWARD: Final = AUTOGRAD_NODE | Meaning(r".*Backward\d*$", *CALLED)
"""The backward pass: nodes, and the operators that are named after them."""

LEARNING: Final = Meaning(
    r"autograd::|.*Backward\d*$|Optimizer\.|aten::_fused_(adam|sgd)|aten::native_dropout|aten::.*_backward", *CALLED
)
"""Signs that a program trains: a backward pass, an optimizer, dropout at work."""

ON_DEVICE_ONLY: Final = Meaning(
    r"aten::(_?cudnn_(?!is_acceptable)|miopen_|_flash_attention_|_efficient_attention_|_scaled_dot_product_(flash|efficient|cudnn)"
    r"_attention(_backward)?$|_cslt_|record_stream$|_pin_memory$)",
    _O,
)
"""Operators that the processor doesn't have; its flash attention is called `..._for_cpu`."""


def _aten(names: Iterable[str]) -> Meaning:
    return Meaning(rf"aten::({'|'.join(names)})$", _O)


def short_operator(name: str) -> str:
    """Return an operator's name without PyTorch's namespace: "mm" for "aten::mm"."""
    return name.removeprefix("aten::")


PYTORCHS: Final = Meaning(r"aten::", _O)
"""Operators of PyTorch's own namespace."""

ITEM: Final = _aten(("item", "_local_scalar_dense", "is_nonzero"))
"""A number is read from a tensor, and on a device waited for."""

ONCE_A_STEP: Final = (
    Meaning(
        r"Torch-Compiled Region|CompiledFunction|autograd::engine|Optimizer\.|enumerate\(DataLoader\)",
        *CALLED,
    )
    | ITEM
)
"""Operators that a program calls once per step rather than once per layer.

A lookup of compiled code (`TorchDynamo Cache Lookup`) does not count: each graph break adds one.
"""

LOCAL_SCALAR: Final = _aten(("_local_scalar_dense",))
"""The inner part of `aten::item`; alone where the outer operator isn't recorded."""

NUMBER_READ: Final = _aten(("item", "is_nonzero", "equal", "allclose"))
"""Operators that return a number or a truth value of a tensor."""

NAN_CHECK: Final = Meaning(r"aten::isnan$", _O)
"""A tensor is searched for values that are no numbers."""

REPEAT: Final = _aten(("repeat_interleave",))
INDEXING: Final = _aten(("index", "index_put", "index_put_", "_index_put_impl_"))

READS_ROWS: Final = _aten(("index", "index_select"))
"""Operators that choose some rows of a tensor."""

NONZERO: Final = _aten(("nonzero",))
"""The places of what a mask chooses: how many there are depends on values."""

SAME_SHAPE: Final = _aten(("rand_like", "randn_like", "zeros_like", "ones_like", "dropout", "bernoulli"))
"""New values for each element, whatever the others are."""

SIZED: Final = REPEAT | _aten(
    (
        *("nonzero", "nonzero_numpy", "masked_select", "bincount"),
        *("unique", "_unique", "_unique2", "unique_dim", "unique_consecutive", "unique_dim_consecutive"),
    )
)
"""The size of the result depends on the values, so that the host must know them."""

SIZE_BY_VALUES: Final = SIZED | INDEXING
"""`SIZED`, and indexing, whose result's size depends on the values of a mask."""

NEEDS_VALUES: Final = NUMBER_READ | LOCAL_SCALAR | SIZED
"""Operators for whose result the host waits for a device."""

FROM_PYTHON: Final = ("aten::empty", "aten::to", "aten::lift_fresh", "aten::detach_")
"""The calls of `torch.tensor(values)`, one after another; a dispatch mode sees only the third."""

LIFT: Final = _aten(("lift_fresh",))
"""Ends `torch.tensor(values, device=...)`, whose copy is below the dispatcher."""

CONVERSION: Final = _aten(("to", "_to_copy"))
INTO: Final = _aten(("copy_", "copy"))
"""Copies whose first argument is the target."""

DISPATCHED_COPY: Final = INTO | _aten(("_to_copy", "clone"))
"""Operators that copy, as a dispatch mode sees them."""

COPIES_OR_FILLS: Final = DISPATCHED_COPY | _aten(
    (
        *("detach_", "empty_like", "new_empty", "new_empty_strided", "new_zeros", "new_ones", "new_full"),
        *(
            "zeros_like",
            "ones_like",
            "full_like",
            "zero_",
            "fill_",
            "_foreach_zero_",
            "_foreach_copy_",
            "resize_",
            "set_",
        ),
        *("lift", "lift_fresh", "item", "_local_scalar_dense", "is_nonzero", "_unsafe_view", "is_pinned", "pin_memory"),
        "_pin_memory",
    )
)
"""Makes or fills memory without computing, or reads a number."""

BLOCKING_COPY: Final = _aten(("_to_copy", "copy_"))
"""Copies that wait unless `non_blocking` is set."""

UNSAFE_VIEW: Final = _aten(("_unsafe_view",))
"""The result shares its argument's storage although the schema hides it."""

LAYOUT: Final = _aten(("contiguous",))
RESHAPE: Final = _aten(("reshape",))

SEEN_AS: Final = {"aten::_reshape_alias": "aten::view"}
"""The calls of reshape, and its call under a dispatch mode."""

RECIPE_IF_IT_CALLS: Final = {
    "aten::max": "aten::maximum",
    "aten::min": "aten::minimum",
    "aten::repeat_interleave": "aten::clone",
    "aten::split": "aten::split_with_sizes",
    "aten::where": "aten::nonzero_numpy",
}
"""Operators with a recipe among their overloads, each with the operator that only the recipe calls."""

TRANSFER: Final = Meaning(r"aten::(_to_copy|to|copy_|cpu|_copy_from.*|cuda|pin_memory)$", _O)
"""Operators that copy between host and device."""

PICK: Final = Meaning(r"aten::(select|slice|index|narrow|unbind)$", _O)
"""One element, row or slice of a tensor is taken."""

SLICE: Final = Meaning(r"aten::(select|slice|narrow)$", _O)
"""A part of a tensor along one dimension, whose size doesn't depend on values."""

REPEATS: Final = Meaning(r"aten::(repeat|repeat_interleave|expand|expand_as|tile)$", _O)
"""Rows again and again, written or as a view."""

EXPAND: Final = Meaning(r"aten::expand(_as)?$", _O)
"""Rows again and again as a view."""

STRIDED_SLICE: Final = Meaning(r"aten::slice$", _O)
"""`x[start:end:step]` along one dimension."""

FLIP: Final = Meaning(r"aten::flip$", _O)

DIAGONAL: Final = Meaning(r"aten::(diagonal|diag|trace)$", _O)
"""One element of each row of a matrix."""

DRAWS_MASK: Final = Meaning(r"aten::(bernoulli_?|native_dropout)$", _O)
"""Random zeros and ones."""

RANDOM: Final = Meaning(
    r"aten::(rand|randn|randint|randperm|rand_like|randn_like|randint_like|multinomial|bernoulli|normal|uniform|random"
    r"|exponential|poisson|cauchy|geometric|log_normal|dropout|native_dropout|_standard_gamma|_sample_dirichlet"
    r"|binomial|rrelu|rrelu_with_noise|gumbel_softmax)_?$",
    _O,
)
"""Random numbers are drawn: the result is another one each time."""

DRAWS_ORDER: Final = Meaning(r"aten::randperm$", _O)
"""An order of samples is drawn."""

STACK: Final = Meaning(r"aten::stack$", _O)

FINITE_TEST: Final = NAN_CHECK | Meaning(r"aten::(isinf|isfinite)$", _O)
"""Each value is tested whether it is finite."""

TRUTH_OF_ALL: Final = Meaning(r"aten::(any|all)$", _O)
"""Whether any or all values of a mask are true: one answer for masks of different tensors."""

FINITE_CHECK: Final = FINITE_TEST | TRUTH_OF_ALL
"""Steps of a search for values that aren't finite."""

UNBIND: Final = Meaning(r"aten::unbind$", _O)
"""All rows of a tensor at once; a Python loop over a tensor begins with one."""

VIEW: Final = Meaning(
    r"aten::(t|transpose|permute|view|as_strided|_unsafe_view|_reshape_alias|expand|expand_as|select|slice|narrow"
    r"|unsqueeze|squeeze|flatten|unflatten|reshape|view_as|chunk|split|split_with_sizes|unbind|detach|detach_|alias"
    r"|numpy_T|resolve_conj|resolve_neg|lift_fresh|swapaxes|movedim|unsafe_chunk|unsafe_split|contiguous)$",
    _O,
)
"""Operators that compute nothing: they return another view of the same memory, mostly."""

COPY: Final = Meaning(
    r"aten::(copy_|_to_copy|to|contiguous|clone|_copy_from|_copy_from_and_resize|resolve_(conj|neg))$", _O
)
"""Operators that copy, or lead to one that does."""

MOVE: Final = Meaning(r"aten::(copy_|_copy_from|_copy_from_and_resize)$", _O)
"""Operators that move memory; the others of their family lead to them."""

COPY_OR_CONVERSION: Final = COPY | Meaning(
    r"aten::(reshape|_reshape_\w+|flatten|type_as|float|double|half|bfloat16)$", _O
)
"""Operators that copy if dtype or layout requires it."""

TO_COPY_BACKWARD: Final = Meaning(r"(autograd::engine::evaluate_function: )?ToCopyBackward", *CALLED)
"""The backward of a conversion of something that needs gradients."""

HEAVY: Final = (
    Meaning(
        r"aten::(mm|addmm|bmm|baddbmm|addmv|mv|matmul|linear|dot|_addmm_activation|einsum"
        r"|\w*convolution\w*|\w*conv\dd?\w*|thnn_\w+|slow_conv\w*|_scaled_dot_product\w*|_fft\w*|lstm|gru|mkldnn\w*)_?$"
        r"|(mkldnn|onednn|mkl|quantized)::",
        _O,
    )
    | LIBRARY_OPERATOR
)
"""Heavy arithmetic: products of matrices, convolutions, attention, transforms, and libraries made for them."""

RECURRENT_CELL: Final = Meaning(r"aten::(lstm|gru|rnn_tanh|rnn_relu)_cell$", _O)
"""One time step of a recurrent network, which needs the result of the one before."""

MODULE_OF_CELL: Final = {
    "aten::lstm_cell": "LSTM",
    "aten::gru_cell": "GRU",
    "aten::rnn_tanh_cell": "RNN",
    "aten::rnn_relu_cell": "RNN",
}
"""The module of `torch.nn` that computes a whole sequence of such steps."""

WEIGHTED_DRAW: Final = Meaning(r"aten::multinomial$", _O)
"""Draws by weights."""

STATISTIC: Final = Meaning(
    r"aten::(mean|sum|std|var|std_mean|var_mean|median|quantile|histc|amin|amax|norm|linalg_vector_norm)$", _O
)
"""A few numbers from all values of a tensor."""

DECOMPOSITION: Final = Meaning(r"aten::(_?linalg_(svd|eigh|eig|qr)|svd|symeig|_linalg_eigh|linalg_svdvals)$", _O)
"""Factors of matrices: n^3 operations and more."""

ZERO_FILL: Final = Meaning(r"aten::(zero_|_foreach_zero_)$", _O)

ADD_IN_PLACE: Final = Meaning(r"aten::add_$", _O)

UPDATE: Final = Meaning(r"aten::(addcdiv_|addcmul_|lerp_|mul_|add_|sqrt|div_|sub_)$", _O)
"""Operators that optimizers call on one parameter."""

ON_PAIRS: Final = Meaning(r"aten::(add|sub|lerp|copy|addcmul|addcdiv)_?$", _O)
"""Operators that combine two tensors element by element."""

MOMENT: Final = Meaning(r"aten::(_foreach_)?(lerp|addcmul|addcdiv)_$", _O)
"""A moment of the gradients is updated, or a parameter by them."""

FOREACH_OR_FUSED: Final = Meaning(
    r"(?i:.*(multi_tensor_apply|_foreach|fused_?(adam|sgd|adagrad|lamb|optim)|_fused_|CompiledFxGraph|triton))",
    *CALLED,
    Kind.KERNEL,
)
"""Operators and kernels that update many tensors at once."""

FORMATTING_BEGINS: Final = (
    Meaning(r"aten::isfinite$", _O),
    Meaning(r"aten::ne$", _O),
    Meaning(r"aten::(__and__|bitwise_and)$", _O),
    Meaning(r"aten::masked_select$", _O),
)
"""PyTorch's calls, one after another, where it begins to turn a tensor of floating-point numbers into text."""

FORMATTING_STEP: Final = Meaning(
    r"aten::(isfinite|ne|eq|gt|ge|lt|le|__and__|bitwise_and|masked_select|abs|to|_to_copy|copy_|min|max|ceil|div|mul|item"
    r"|_local_scalar_dense|is_nonzero|detach|detach_|unbind|select|slice|cat|stack|reshape|view|resolve_conj|resolve_neg"
    r"|lift_fresh|isnan|isinf|isreal|real|imag|squeeze|unsqueeze|narrow|numel|alias|clone|contiguous)$|detach$",
    _O,
)
"""PyTorch's further calls until the text is made."""

MAGNITUDE: Final = Meaning(r"aten::abs$", _O)
"""The absolute value; for complex numbers the square root of a sum of squares."""

REAL_PART: Final = Meaning(r"aten::(real|view_as_real)$", _O)
"""Complex numbers without their imaginary parts, mostly."""

SAMPLING: Final = Meaning(
    r"aten::(empty|random_|randperm|randint|rand|multinomial|item|_local_scalar_dense|detach|to|select|unbind"
    r"|resolve_conj|resolve_neg)$",
    _O,
)
"""Operators that a DataLoader calls to draw the order of its samples and a seed."""
