"""Autograd for a declared operator, backwards and forwards, from one `Gradient`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import new_class
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor
from torch.autograd import forward_ad

from torchfx._ops.observers import gradients_are_batched, transforms_active

__all__ = ["Differentiable", "Gradient", "differentiable", "write_gradients"]

Tensors = Sequence[Tensor | None]


@dataclass(frozen=True)
class Gradient:
    """How an operator is differentiated.

    `arguments` are all of the operator's, in order; gradients and tangents are those of its tensor arguments, in order.

    Attributes:
        backward: (forward, arguments, gradients of the results) -> gradients, in plain PyTorch, so that they can be
            differentiated again. `forward` is the operator itself.
        tangent: (forward, arguments, tangents) -> tangents of the results, in plain PyTorch. None: the operator has a
            composite, which forward mode and torch.func's transforms go through.
        first: (operators, arguments, kept, gradients of the results, which are needed) -> gradients that won't be
            differentiated again, by the operators of the same folder. None: `backward`.
        keeps: arguments -> whether `first` is going to use what `recording` keeps.
        recording: the operator with the same arguments that returns the same results and then what it keeps.
        keeps_results: whether `first` is given the results as what is kept; without `keeps` and `recording`.
    """

    backward: Callable[..., Tensors]
    tangent: Callable[..., Tensors] | None
    first: Callable[..., Tensors] | None = None
    keeps: Callable[[Sequence[Any]], bool] | None = None
    recording: str = ""
    keeps_results: bool = False


class ByDispatcher(Mapping[str, Callable[..., Any]]):
    """The operators as the dispatcher calls them, by name."""

    def __getitem__(self, name: str) -> Callable[..., Any]:
        found: Callable[..., Any] = getattr(torch.ops.torchfx_ext, name).default
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(torch.ops.torchfx_ext)

    def __len__(self) -> int:
        return len(list(iter(self)))


BY_DISPATCHER = ByDispatcher()


def write_gradients(
    name: str, backward: Callable[..., Tensors], arguments: Sequence[Any], grads: Tensors, *needed_and_results: Any
) -> None:
    """Write what an operator's definition of its gradients returns, where it is needed, into results."""
    found = backward(BY_DISPATCHER[name], arguments, grads)
    needed, results = needed_and_results[: len(found)], needed_and_results[len(found) :]
    for result, value, need in zip(results, found, needed, strict=True):
        if need:
            result.copy_(value)


class Differentiable(NamedTuple):
    """The operator with its gradient.

    Attributes:
        recorded: for a call that autograd or forward-mode differentiation records.
        transformed: the same under torch.func's transforms.
    """

    recorded: Callable[..., Any]
    transformed: Callable[..., Any]


class Registered(Protocol):
    """The interface of an operator that is differentiated here."""

    @property
    def name(self) -> str: ...
    @property
    def tensors(self) -> list[int]: ...
    @property
    def single(self) -> bool: ...
    @property
    def overload(self) -> Any: ...
    @property
    def entry(self) -> Callable[..., Any]: ...
    @property
    def result_leads(self) -> list[int]: ...
    def below_autograd(self, *arguments: Any) -> Any: ...
    def with_batch(
        self, size: int, in_dims: Sequence[int | None], arguments: Sequence[Any]
    ) -> tuple[list[Any], dict[str, int]]: ...


def differentiable(
    operator: Registered, gradient: Gradient, operators: Mapping[str, Callable[..., Any]]
) -> Differentiable:
    """Return an operator's differentiable forms; `operators` are the entry points of its folder, by name."""
    tensors = operator.tensors
    count = len(operator.overload._schema.returns)

    def forward(keep: bool, *arguments: Any) -> Any:
        return operators[gradient.recording](*arguments) if keep else operator.below_autograd(*arguments)

    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        keep, *arguments = inputs
        kept = output[count:] if keep else ()
        ctx.mark_non_differentiable(*kept)
        given = [arguments[i] for i in tensors]
        ctx.save_for_backward(*given, *(output if gradient.keeps_results else kept))
        ctx.save_for_forward(*given)
        ctx.others = [None if i in tensors else value for i, value in enumerate(arguments)]
        ctx.kept = len(kept)
        ctx.set_materialize_grads(False)  # else zeros as large as the kept tensors are filled in, without use

    def restored(ctx: Any) -> tuple[list[Any], tuple[Tensor, ...]]:
        arguments, saved = list(ctx.others), ctx.saved_tensors
        for i, tensor in zip(tensors, saved, strict=False):
            arguments[i] = tensor
        return arguments, saved[len(tensors) :]

    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        arguments, kept = restored(ctx)
        if all(grad is None for grad in grads[:count]):
            return (None,) * (1 + len(arguments))
        needed = [ctx.needs_input_grad[1 + i] for i in tensors]
        callees = BY_DISPATCHER if gradients_are_batched() else operators
        if gradient.first is None or torch.is_grad_enabled():  # a gradient of the gradient is wanted
            found = gradient.backward(callees[operator.name], arguments, grads[:count])
        else:
            found = gradient.first(callees, arguments, kept, grads[:count], needed)
        by_argument: list[Tensor | None] = [None] * (1 + len(arguments))
        for i, value, need in zip(tensors, found, needed, strict=True):
            by_argument[1 + i] = value if need else None
        return tuple(by_argument)

    def jvp(ctx: Any, *tangents: Tensor | None) -> Any:
        arguments, _ = restored(ctx)
        assert gradient.tangent is not None
        nested = transforms_active()
        if nested:  # what an outer jvp differentiates are the values without this one's tangents
            for i in tensors:
                if arguments[i] is not None:
                    arguments[i] = forward_ad.unpack_dual(arguments[i], level=0).primal
        with forward_ad._set_fwd_grad_enabled(nested):  # PyTorch switches the outer ones' tangents off in here
            found = tuple(gradient.tangent(operator.entry, arguments, [tangents[1 + i] for i in tensors]))
        return found[0] if operator.single else (*found, *(None,) * ctx.kept)

    # The transforms want `setup_context` apart from `forward`, and then `apply` binds every call's arguments to the
    # signature first, which takes 12 us: outside of them, PyTorch's own `apply` is reached without that.
    def forward_with_context(ctx: Any, *inputs: Any) -> Any:
        output = forward(*inputs)
        setup_context(ctx, inputs, output)
        return output

    def vmap(info: Any, in_dims: Sequence[int | None], keep: bool, *arguments: Any) -> Any:
        batched, _ = operator.with_batch(info.batch_size, in_dims[1:], arguments)
        out_dims = operator.result_leads[0] if operator.single else (*operator.result_leads, *[0] * keep)
        return transforming.apply(keep, *batched), out_dims

    # Named when it is made: so is the node in the graph that profilers show.
    name = "".join(word.title() for word in operator.name.split("_"))
    parts: dict[str, Callable[..., Any]] = {"backward": backward, "jvp": jvp}
    outside = _function(name, {**parts, "forward": forward_with_context})
    apply = super(torch.autograd.Function, outside).apply  # type: ignore[misc]
    transforming = _function(name, {**parts, "forward": forward, "setup_context": setup_context, "vmap": vmap})
    keeps = gradient.keeps
    if keeps is None:
        return Differentiable(partial(apply, False), partial(transforming.apply, False))

    def keeping(apply: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *arguments: apply(keeps(arguments), *arguments)[:count]

    return Differentiable(keeping(apply), keeping(transforming.apply))


def _function(name: str, parts: dict[str, Callable[..., Any]]) -> type[torch.autograd.Function]:
    body = {part: staticmethod(function) for part, function in parts.items()}
    made: type[torch.autograd.Function] = new_class(
        name, (torch.autograd.Function,), exec_body=lambda space: space.update(body)
    )
    return made
