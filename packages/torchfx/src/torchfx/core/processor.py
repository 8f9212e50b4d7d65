"""Base class of every filter and effect, and the containers that `|` and `+` build.

A subclass implements one method, which determines the kind of processor:

    lti(rate)                          linear and time-invariant: filters, gains, delays, convolutions
    step(x, state, rate), init_state   causal, with a memory (which may be empty): dynamics, modulation, feedback
    forward(x)                         needs the whole signal: reversing, trimming, stretching

Everything else is derived: a plan (`torchfx.plan`) runs whole files, streams and batches.
"""

from __future__ import annotations

import difflib
import inspect
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from typing_extensions import Self, TypeIs

from torchfx.checks import sample_rate as checked_rate
from torchfx.core.responses import Responses
from torchfx.errors import ArgumentError, ArgumentTypeError, StreamError, TorchFXError
from torchfx.other_names import hint as likely_name
from torchfx.parameters import Declaration, Declared, accepted, documented, signature
from torchfx.plan import (
    LTI,
    NEEDS_WHOLE,
    Handover,
    Plan,
    State,
    WatchedModules,
    assigning,
    call_again,
    changes,
    has_hooks,
    kept,
    plan_of,
    run_plan,
)
from torchfx.plan.steps import named_error
from torchfx.rate import ambient_rate, followed_rate, resolve_rate
from torchfx.tensors import broadcast_shapes, check_signal, is_readable, lacks_float64, no_device, through_cpu

__all__ = ["FilterChain", "Parallel", "Processor"]

is_compiling = torch.compiler.is_dynamo_compiling
"""Without the look-ups of its name: each call asks."""

KINDS = {"lti": "lti", "step": "causal", "measure": "measured", "forward": "whole", "features": "feature"}
"""The method an author writes, and the kind of processor that it makes."""


class Processor(Responses, Declared):
    """A signal processor: `module(x)` maps a tensor (..., time) to a tensor (..., time).

    Calls keep no state.

    `a | b` runs `a`, then `b` (in series). `a + b` runs both on the same input (in parallel) and adds the results.

    To write your own processor, declare its parameters (`torchfx.parameters`) and implement one of

    - `lti(rate)`, for linear time-invariant processors: chains fuse them with their neighbours;
    - `step(x, state, rate)`, for causal processors, and `init_state` unless the state is empty. A processor that is
      linear only at some settings also implements `lti`, which returns None at all other settings;
    - `measure(x, state, rate)` in addition to `step`, for processors that need a first pass over the whole signal:
      `measure` updates the state block by block, and `step` starts with the resulting state;
    - `forward(x)`, for processors that need the whole signal. To support files of any length, also implement
      `in_pieces(x)`, which reads a `torchfx.pieces.Pieces` and yields the result of `forward` piece by piece.

    The rest is derived: whole signals, streams, batches, gradients, repr, the command line. A subclass fixes a
    parameter of its base class by assigning a value (`btype = "lowpass"`).

    Parameters with a unit accept strings, as on the command line: "1kHz", "5ms", "-3dB". Every processor accepts `fs=`;
    a processor that does not depend on the sample rate checks and ignores it. `state_dict` contains parameters that are
    tensors (learned, or one value per example), but not plain numbers.

    Examples:
        A filter, with a parameter that depends on the sample rate:

        >>> import math, torch, torchfx as fx
        >>> from torchfx.parameters import Value, frequency, number, sample_rate
        >>> class OnePole(fx.Processor):
        ...     '''First-order low-pass, matched in impulse response.'''
        ...     cutoff: Value = frequency()
        ...     fs: float | None = sample_rate(default=None)
        ...
        ...     def lti(self, rate):
        ...         pole = math.exp(-2 * math.pi * self.cutoff / rate)
        ...         return fx.LTI(sos=torch.tensor([[1 - pole, 0, 0, 1, -pole, 0]], dtype=torch.float64))
        >>> OnePole(1000, fs=48_000) | fx.effect.Gain(0.5)
        FilterChain(
          (0): OnePole(cutoff=1000, fs=48000)
          (1): Gain(0.5)
        )
        >>> OnePole(50_000, fs=48_000)
        Traceback (most recent call last):
        torchfx.errors.ArgumentError: cutoff must lie in (0, fs/2) = (0, 24000) Hz, got 50000

        An effect with a state, which also works in streams:

        >>> class Difference(fx.Processor):
        ...     '''Difference between samples.'''
        ...     amount: Value = number(default=1.0, low=0.0, high=1.0)
        ...
        ...     def init_state(self, shape, rate, dtype, device):
        ...         return (torch.zeros(*shape, 1, dtype=dtype, device=device),)
        ...
        ...     def step(self, x, state, rate):
        ...         before = torch.cat([state[0], x], dim=-1)
        ...         return x - self.amount * before[..., :-1], (before[..., -1:],)
        >>> Difference()(torch.tensor([1.0, 3.0, 4.0]))
        tensor([1., 2., 1.])
    """

    kind: ClassVar[str] = ""
    """How plans run it: "lti", "causal", "measured" or "whole"; "chain" and "parallel" for the containers."""

    derived_kind: ClassVar[str] = ""
    """How plans run the `forward` that a class with its own `forward` calls by `super().forward`; otherwise `kind`."""

    takes: ClassVar[str] = "samples"
    gives: ClassVar[str] = "samples"
    """The kind of input and output: "samples" (..., time) or "features" (..., bins, frames); see `Feature`."""

    has_whole: ClassVar[bool] = False
    """Whether a class defines `whole` for every signal."""

    in_pieces: ClassVar[Any] = None
    """A method that does the work of `forward` piece by piece, for signals too long for memory; or None."""

    missing: ClassVar[tuple[str, ...]] = ()
    """The abstract methods that a class does not implement."""

    written_constructor: ClassVar[bool] = False
    """Whether an author wrote `__init__`, and with it attributes that are no declared parameters."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        own = vars(cls)
        written = [method for method in KINDS if method in own]
        if "forward" in written and len(written) > 1:
            raise ArgumentTypeError(
                f"{cls.__name__} defines both forward and {written[0]}: define only one, the other is derived"
            )
        if "forward" in written:
            cls.kind = "whole"
            cls.forward = _checking(cls.forward)  # type: ignore[method-assign]
            if "in_pieces" not in own:
                cls.in_pieces = None  # a parent's does what the parent's forward does
        elif written:
            # "measure" says more than the "step" beside it; "lti" may decline, and then "step" is called. What makes
            # features has a "step" for streams.
            is_feature = "features" in written or cls.derived_kind == "feature"
            decides = "features" if is_feature else "measure" if "measure" in written else written[0]
            cls.kind = cls.derived_kind = KINDS[decides]
            cls.forward = Processor.forward  # type: ignore[method-assign]
        cls.has_whole = cls.whole is not Processor.whole
        if "step" in own and "native" not in own:
            cls.native = Processor.native  # type: ignore[method-assign]  # a parent's does what the parent's step does
        declared = {name: value for name, value in own.items() if isinstance(value, Declaration)}
        for name in declared:
            delattr(cls, name)  # the instance's own value is found first, and mistakes are errors
        inherited = {name: each for name, each in cls.declarations.items() if not _fixed(own.get(name))}
        cls.declarations = {**inherited, **declared}
        cls.__signature__ = _signature(cls)  # type: ignore[attr-defined]
        if own.get("__doc__"):
            cls.__doc__ = documented(cls.__doc__ or "", list(cls.declarations.values()))
        cls.missing = _missing(cls)
        cls.written_constructor = cls.written_constructor or "__init__" in own

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Check and store the declared parameters."""
        cls = type(self)
        if self.missing:
            raise ArgumentTypeError(f"{cls.__name__} is abstract: a subclass must define {', '.join(self.missing)}")
        takes = signature(list(self.declarations.values()))
        for name in kwargs:
            if name not in takes.parameters:
                text = (
                    f"{cls.__name__}: got an unexpected keyword argument {name!r}{likely_name(name, takes.parameters)}"
                )
                raise ArgumentTypeError(text)
        try:
            given = takes.bind(*args, **kwargs)
        except TypeError as error:
            raise ArgumentTypeError(f"{cls.__name__}: {error}") from None
        super().__init__()
        vars(self)["_modules"] = WatchedModules()  # no change: nothing is known of this processor yet
        given.apply_defaults()
        declared = accepted(self.declarations.values())
        for name in sorted(declared, key=lambda name: name != "fs"):  # ranges of others depend on the rate
            value = declared[name].check(given.arguments[name], self.fs)
            if name in self.declarations:
                self._keep(name, value)
        self.check_parameters()

    # --- parameters ---------------------------------------------------------------------------------------

    def check_parameters(self) -> None:
        """Raise if parameters are inconsistent; called at construction and after each assignment."""

    def __setattr__(self, name: str, value: Any) -> None:
        """Assign an attribute; a declared parameter is checked first, alone and together with the others.

        Other threads see either the old or the new value.
        """
        if name in self.declarations and not isinstance(getattr(type(self), name, None), property):
            assign([self], name, value)
            return
        if not (name.startswith("_") or name in self.__dict__):
            self._check_attribute(name, value)
        if hasattr(getattr(type(self), name, None), "__set__"):  # it assigns to others
            super().__setattr__(name, value)
            self._changed()
            return
        with assigning:
            if name == "_modules":  # as when a module is deleted from an `nn.Sequential`
                object.__setattr__(self, name, WatchedModules(value))
            else:
                if isinstance(value, (Tensor, nn.Module)):
                    self._copy_places()
                super().__setattr__(name, value)
            self._changed()

    def __delattr__(self, name: str) -> None:
        """Delete an attribute that is not a parameter, or a tensor that PyTorch's parametrizations replace."""
        if name in self.declarations and not isinstance(getattr(self, name), Tensor):
            raise ArgumentError(f"{name} is a parameter of {self._get_name()} and cannot be deleted")
        with assigning:
            self._copy_places()
            super().__delattr__(name)
            self._changed()

    def __getattr__(self, name: str) -> Tensor | nn.Module:
        """Return an attribute that PyTorch stores separately (parameters, buffers, submodules)."""
        try:
            return super().__getattr__(name)
        except (AttributeError, KeyError):
            if torch.compiler.is_dynamo_compiling():
                raise
            with assigning:  # now everything has its place
                try:
                    found: Tensor | nn.Module = object.__getattribute__(self, name)
                except AttributeError:
                    found = super().__getattr__(name)
                return found

    def __setstate__(self, state: Any) -> None:
        """Restore the attributes of a copied or unpickled processor."""
        super().__setstate__(state)  # type: ignore[no-untyped-call]
        self._changed()

    def _changed(self, result: Any = None) -> Any:
        """Let plans made of this processor lapse, and return what the change gave."""
        vars(self)["_stamp"] = object()
        changes.note()
        return result

    def _copy_places(self) -> None:
        """Let threads that iterate over tensors go on with those there were."""
        own = vars(self)
        own["_parameters"], own["_buffers"] = own["_parameters"].copy(), own["_buffers"].copy()

    def _check_attribute(self, name: str, value: Any) -> None:
        """Raise where an attribute that is no parameter was surely meant to be one."""
        close = difflib.get_close_matches(name, self.declarations, n=1, cutoff=0.8)
        if close and not hasattr(type(self), name):
            raise ArgumentError(f"{self._get_name()} has no parameter {name!r}; did you mean {close[0]!r}?")
        if name == "fs" and value is not None and not self.written_constructor:
            raise ArgumentError(f"{self._get_name()} does not depend on a sample rate, got fs={value}")

    def _now(self) -> Self:
        """Return this processor as it is now: parameters that are assigned later do not reach what is returned.

        A call of a processor with memory works with this, so that all it reads held together: the sizes of its state
        follow from parameters. Attributes that are no parameters are the processor's own.
        """
        return self if torch.compiler.is_dynamo_compiling() else self._made_of(vars(self))

    def _made_of(self, own: dict[str, Any]) -> Self:
        """Return a processor of this class with given attributes."""
        cls = type(self)
        if hasattr(cls, "__del__"):  # what it gives back is still used by this one
            cls = type(cls.__name__, (cls,), {"__del__": lambda _: None})
        found = object.__new__(cls)
        object.__setattr__(found, "__dict__", own)
        return found

    def _twin(self) -> Self:
        """Return a processor with the same attributes, to which others can be assigned."""
        own = vars(self).copy()
        own["_parameters"], own["_buffers"] = own["_parameters"].copy(), own["_buffers"].copy()
        own["_modules"] = WatchedModules(own["_modules"])
        return self._made_of(own)

    def _with(self, name: str, value: Any) -> Self:
        """Return a twin with another value of a parameter, or raise where it is invalid or does not fit others."""
        twin = self._twin()
        twin._keep(name, self.declarations[name].check(value, self.fs))
        if name == "fs":
            for each, declaration in self.declarations.items():
                declaration.check(getattr(twin, each), twin.fs)
        twin.check_parameters()
        return twin

    def _become(self, twin: Processor) -> None:
        """Take all attributes of a twin over in one step."""
        own = vars(twin)
        own["_stamp"] = object()
        object.__setattr__(self, "__dict__", own)
        changes.note()

    def _keep(self, name: str, value: Any) -> None:
        """Store a checked value: parameters, buffers, modules where PyTorch keeps them, all else as an attribute."""
        own = vars(self)
        for place in (own, own["_parameters"], own["_buffers"], own["_modules"]):
            if name in place:
                del place[name]
        if not isinstance(value, (Tensor, nn.Module)):
            own[name] = value
        elif isinstance(value, nn.Parameter):
            self.register_parameter(name, value)
        elif isinstance(value, nn.Module):
            self._modules[name] = value
        elif not value.requires_grad and is_readable(value):
            self.register_buffer(name, value)
        else:
            own[name] = value

    @contextmanager
    def _replaced(self) -> Iterator[Self]:
        """Give a twin to be changed in many steps, and take over what became of it in one."""
        with assigning:
            twin, cls = self._twin(), type(self)
            learned: Any = twin._modules.get("parametrizations")
            if learned is not None:  # PyTorch is going to change both this module and the class it made
                own = {name: value for name, value in vars(cls).items() if name not in {"__dict__", "__weakref__"}}
                object.__setattr__(twin, "__class__", type(cls.__name__, cls.__bases__, own))
                twin._modules["parametrizations"] = nn.ModuleDict(learned.items())
            yield twin
            self._become(twin)
            object.__setattr__(self, "__class__", type(twin))

    def _get_name(self) -> str:
        """Return the class's name, without what PyTorch's parametrizations put before it."""
        cls = type(self)
        return (cls.__bases__[0] if "parametrizations" in self._modules else cls).__name__

    def extra_repr(self) -> str:
        """Return the parameters as text."""
        parts = []
        for name, declaration in self.declarations.items():
            value = getattr(self, name)
            if declaration.shown(value) and name not in self.unused():
                alone = name == self._get_name().lower()
                parts.append(declaration.show(value) if alone else f"{name}={declaration.show(value)}")
        return ", ".join(parts)

    # --- what authors write -------------------------------------------------------------------------------

    def unused(self) -> tuple[str, ...]:
        """Return the parameters that have no effect at the current settings; the repr omits them."""
        return ()

    def lti(self, rate: Any) -> LTI | None:
        """Return the processor as a linear time-invariant system, or None if it is not LTI at its current settings.

        Args:
            rate: the sample rate in Hz; None if it is unknown and the processor declares no `fs`.
        """
        return None

    def init_state(
        self, shape: tuple[int, ...], rate: Any, dtype: torch.dtype = torch.float32, device: Any = "cpu"
    ) -> State:
        """Return the state at rest: a tuple of tensors on the signal's device.

        Args:
            shape: the signal's leading dimensions.
            rate: sample rate, Hz.
            dtype, device: of the signal.
        """
        if type(self).step is not Processor.step:  # written by an author who needs none
            return ()
        return self._streaming(rate).init_state(tuple(shape), dtype, torch.device(device))

    def step(self, x: Tensor, state: State, rate: Any) -> tuple[Tensor, State]:
        """Process the next block.

        Args:
            x: (..., time); time may be 0.
            state: returned by `init_state`, or by the previous step.
            rate: sample rate, Hz.

        Returns:
            The block's output, which lags by `latency_samples`, and the state for the next block.

        Raises:
            StreamError: the processor needs the whole signal.
        """
        return self._streaming(rate).step(x, state)

    def measure(self, x: Tensor, state: State, rate: Any) -> State:
        """Update the state with a block of a first pass over the whole signal, for processors that need it."""
        return state

    def whole(self, x: Tensor, rate: Any) -> Tensor | None:
        """Return the aligned result for a whole signal, if one call can compute it; None: use `step` from rest."""
        return None

    def refusal(self) -> str:
        """Return the reason why the processor cannot run in a stream, as the end of a sentence; "" if it can."""
        return NEEDS_WHOLE if self.kind == "whole" else ""

    def latency_samples(self, rate: Any) -> int:
        """Return the latency of `step` in output samples; whole signals are aligned."""
        return plan_of(self, rate).latency if self.kind in {"chain", "parallel"} else 0

    def output_rate(self, rate: Any) -> Any:
        """Return the output's sample rate (Hz) for an input of this rate; n samples become ceil(n output / rate)."""
        return plan_of(self, rate).output_rate if self.kind in {"chain", "parallel"} else rate

    def output_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the output's leading dimensions: by default the signal's, broadcast with the parameters'."""
        return self.broadcast_shape(shape)

    def broadcast_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return leading dimensions broadcast with those of tensor parameters; raise if they do not broadcast."""
        tensors = {
            name: value.shape
            for name, declared in self.declarations.items()
            if declared.number is not None and isinstance(value := getattr(self, name), Tensor)
        }
        return broadcast_shapes(x=shape, **tensors) if tensors else tuple(shape)

    def native(self, program: Any, source: int, state: State, rate: Any) -> int | None:
        """Append native steps to a program (`torchfx._ops.program`); return the output buffer, or None without native
        steps.

        They must equal `step` within rounding. Streams and whole signals use them if no gradient is recorded.
        """
        return None

    def take_over(self, before: Any, shape: tuple[int, ...], old: State, new: State, rate: Any) -> Handover:
        """Return how the processor continues a running signal from another processor of its class with other values.

        By default the whole state is kept, which suits levels, phases and past samples. A state that depends on the
        parameters must start from rest; `waiting` then gives the time before the crossfade starts.

        Args:
            before: the other processor.
            shape: the signal's leading dimensions.
            old: its state; the values do not matter.
            new: the state of this processor at rest.
            rate: sample rate, Hz.
        """
        return kept(old, new, rate)

    # --- derived ------------------------------------------------------------------------------------------

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module, as PyTorch does; a signal like the previous one goes straight to a native program."""
        if not (kwargs or is_compiling()) and len(args) == 1:
            y = call_again(self, args[0])
            if y is not None:
                return y
        return super().__call__(*args, **kwargs)

    def forward(self, x: Tensor) -> Tensor:
        """Process a whole signal (..., time), float32 or float64, from rest."""
        if isinstance(x, Tensor) and not x.is_cpu and lacks_float64(x):
            joined = self.derived_kind in {"chain", "parallel"}  # their parts may have modules on the device among them
            return plan_of(self, ambient_rate()).run(x) if joined else through_cpu(self.forward, x)
        given = x.dtype if isinstance(x, Tensor) else None
        x = check_signal(x, self._half) if type(self).checked is Processor.checked else self.checked(x)
        # The compiler cannot follow context variables. Asked here, not in a function, which it might compile alone.
        rate = None if torch.compiler.is_dynamo_compiling() else ambient_rate()
        # A `forward` on top of this one, or another one in its place, has to be called each time.
        is_whole = type(self).forward is Processor.forward and type(self).checked is Processor.checked
        y = run_plan(self, rate, x) if is_whole else plan_of(self, rate).run(x)
        return y.to(given) if given is not None and given is self._half else y

    def checked(self, x: Any) -> Tensor:
        """Return the checked signal, or raise if `x` is not a valid signal."""
        return check_signal(x, self._half)

    def rate_for(self, rate: float | None) -> float | None:
        """Return the rate (Hz) for a signal of this rate: the processor's own rate, if it declares one."""
        if "fs" not in self.declarations and self.fs is None:
            return rate
        if self.fs is None and not torch.compiler.is_dynamo_compiling():
            rate = followed_rate(self, rate)
        return resolve_rate(self.fs, rate, self._get_name())

    @property
    def device(self) -> torch.device | None:
        """The device that `.to()` set; None: the coefficients follow the signal."""
        return self._device

    def _streaming(self, rate: float | None) -> Plan:
        if self.kind == "whole":
            raise StreamError(f"{self._get_name()} {self.refusal()}")
        return plan_of(self, rate)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Any:
        """Move parameters and buffers; their types stay, since a rounded coefficient is another filter."""

        def moved(tensor: Tensor) -> Tensor:
            found = fn(tensor)
            return found if found.dtype == tensor.dtype else tensor.to(found.device)

        was = self._device or torch.device("cpu")
        try:
            now = fn(torch.empty(0, device=was, dtype=self._half or torch.float32))
        except (RuntimeError, AssertionError) as error:
            raise no_device(error) from error
        here = not lacks_float64(now)  # if signals are moved to the processor, its tensors stay
        with assigning:
            if here:
                super()._apply(moved, recurse=False)  # type: ignore[no-untyped-call]
            for name, child in self.named_children() if recurse else ():
                if name != "parametrizations":
                    child._apply(fn)
                elif here:
                    child._apply(moved)  # the free numbers of what is learned
            if here and now.device != was:
                self._device = now.device
            self._half = now.dtype if now.dtype in {torch.float16, torch.bfloat16} else None
            self._changed()
        return self

    def register_forward_hook(self, *args: Any, **kwargs: Any) -> Any:
        """Like `nn.Module`'s; chains then call the module, so that the hook runs."""
        return self._changed(super().register_forward_hook(*args, **kwargs))

    def register_forward_pre_hook(self, *args: Any, **kwargs: Any) -> Any:
        """Like `nn.Module`'s; chains then call the module, so that the hook runs."""
        return self._changed(super().register_forward_pre_hook(*args, **kwargs))

    def register_full_backward_hook(self, *args: Any, **kwargs: Any) -> Any:
        """Like `nn.Module`'s; chains then call the module, so that the hook runs."""
        return self._changed(super().register_full_backward_hook(*args, **kwargs))

    def register_full_backward_pre_hook(self, *args: Any, **kwargs: Any) -> Any:
        """Like `nn.Module`'s; chains then call the module, so that the hook runs."""
        return self._changed(super().register_full_backward_pre_hook(*args, **kwargs))

    # --- joining ------------------------------------------------------------------------------------------

    def __or__(self, other: object) -> FilterChain:
        """Combine in series: this module, then `other`."""
        return FilterChain(self, other) if _is_built(other) else NotImplemented

    def __ror__(self, other: object) -> FilterChain:
        """Combine in series: `other`, a plain `nn.Module`, then this module."""
        return FilterChain(other, self) if _is_built(other) else NotImplemented

    def __add__(self, other: object) -> Parallel:
        """Combine in parallel: the outputs are added."""
        return Parallel(self, other) if _is_built(other) else NotImplemented

    def __radd__(self, other: object) -> Parallel:
        """Combine in parallel with a plain `nn.Module` on the left."""
        return Parallel(other, self) if _is_built(other) else NotImplemented


def assign(processors: Sequence[Processor], name: str, value: Any, shared: bool = False) -> None:
    """Assign a value to a parameter of several processors: to all of them, or to none if one rejects it.

    Args:
        processors: the processors that have the parameter.
        name: name of the parameter.
        value: the new value.
        shared: whether errors name the processor, because several get the value.
    """
    found = _twins(processors, name, value, shared)
    with assigning:
        if not all(each._stamp is stamp for each, stamp, _ in found):
            found = _twins(processors, name, value, shared)  # another thread assigned something in the meantime
        for each, _, twin in found:
            each._become(twin)


def _twins(
    processors: Sequence[Processor], name: str, value: Any, shared: bool
) -> list[tuple[Processor, object, Processor]]:
    """Return processors, their stamps, and twins with another value of a parameter; raise where one refuses it."""
    found: list[tuple[Processor, object, Processor]] = []
    for each in processors:
        stamp = each._stamp
        try:
            found.append((each, stamp, each._with(name, value)))
        except TorchFXError as error:
            if shared:
                raise named_error(each._get_name(), error) from error
            raise
    return found


def _fixed(value: Any) -> bool:
    """Return whether a class gives a parameter of its base a value, which ends its being a parameter."""
    return value is not None and not isinstance(value, (property, Declaration))


def _is_built(other: object) -> TypeIs[nn.Module]:
    """Return whether this is a module; raise where it is a module's class, which somebody forgot to call."""
    if isinstance(other, type) and issubclass(other, nn.Module):
        raise ArgumentTypeError(f"modules are joined, got the class: write {other.__name__}(...)")
    return isinstance(other, nn.Module)


def _checking(forward: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Return a written `forward` whose signal is checked like every processor's."""

    @wraps(forward)
    def checked(self: Processor, x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if isinstance(x, Tensor) and not x.is_cpu and lacks_float64(x):
            return through_cpu(lambda x: checked(self, x, *args, **kwargs), x)
        y = forward(self, check_signal(x, self._half), *args, **kwargs)
        return y.to(x.dtype) if x.dtype is self._half else y

    return checked


def _signature(cls: type[Processor]) -> inspect.Signature:
    """Return the signature of the nearest constructor: a written one, or the one that the declarations make."""
    for base in cls.__mro__:
        if base is Processor:
            break
        if "__init__" in vars(base):
            written = inspect.signature(vars(base)["__init__"])
            return written.replace(parameters=list(written.parameters.values())[1:])
    return signature(list(cls.declarations.values()))


def _missing(cls: type[Processor]) -> tuple[str, ...]:
    """Return what a class has to define before it can be built."""
    own = [vars(base) for base in cls.__mro__ if base not in nn.Module.__mro__]
    declared = {name for base in own for name, value in base.items() if getattr(value, "__isabstractmethod__", False)}
    abstract = sorted(name for name in declared if getattr(getattr(cls, name), "__isabstractmethod__", False))
    constants = [
        name
        for base in own
        for name, annotation in base.get("__annotations__", {}).items()
        if str(annotation).startswith("ClassVar") and not hasattr(cls, name)
    ]
    if not cls.kind:
        abstract.append("lti(rate), step(x, state, rate) or forward(x)")
    return (*constants, *abstract)


def _laid_flat(container: type[Processor], modules: Iterable[Any]) -> dict[str, nn.Module]:
    """Return numbered modules, those of containers of this very kind among them in the containers' places."""
    flat: list[nn.Module] = []
    for module in modules:
        own = type(_module(module)) is container and not has_hooks(module)
        flat += module._modules.values() if own else [module]
    return {str(i): module for i, module in enumerate(flat)}


class _SharedRate:
    """The sample rate of a container: that of its filters."""

    def __get__(self, container: Processor | None, owner: type) -> float | None:
        if container is None:
            return None
        return next((part.fs for part in self._parts(container) if part.fs is not None), None)

    def __set__(self, container: Processor, fs: float | None) -> None:
        parts = self._parts(container)
        if not parts:
            raise ArgumentError(f"{type(container).__name__} has no part that depends on a sample rate, got fs={fs}")
        assign(parts, "fs", fs, shared=True)

    def _parts(self, container: Processor) -> list[Processor]:
        return [part for part in container.modules() if isinstance(part, Processor) and "fs" in part.declarations]


class FilterChain(Processor, nn.Sequential):  # type: ignore[misc]  # `+` adds outputs here, not modules
    """Modules in series, fused into few operator calls: any number of recursive filters is one call.

    `a | b | c` builds one. It is an `nn.Sequential`: index it, slice it, append to it.

    Args:
        modules: the modules in order; nested chains are flattened. Or one ordered dict of named modules.

    Examples:
        >>> import torchfx as fx
        >>> chain = fx.filter.HiButterworth(80, order=4) | fx.filter.LoButterworth(12_000) | fx.effect.Gain("-3dB")
        >>> len(chain)
        3
        >>> chain.explain(48_000)
        plan at 48000 Hz: 3 modules -> 1 operator call
          1. torchfx_ext::sos_forward  3 sections
             HiButterworth(cutoff=80, order=4)
             LoButterworth(cutoff=12000, order=2)
             Gain(-3 dB)
        two channels:
          1. whole signals: sos_forward: cpu native, instruction set ...; cuda ...; other reference in plain PyTorch
          1. streams: native program of sos on the CPU, otherwise sos_forward
    """

    kind = derived_kind = "chain"
    fs = _SharedRate()
    """The rate (Hz) its filters were built for; assigning it assigns theirs, or raises and leaves all as they are."""

    def __init__(self, *modules: nn.Module | OrderedDict[str, nn.Module]) -> None:
        """Flatten nested chains."""
        super().__init__()
        if len(modules) == 1 and isinstance(modules[0], OrderedDict):
            self._modules.update({name: _module(module) for name, module in modules[0].items()})
        else:
            self._modules.update(_laid_flat(FilterChain, modules))

    def plan(self, fs: float | None = None) -> Plan:
        """Return the plan of the chain for a sample rate (Hz), by default the rate its filters were built for."""
        return _plan(self, fs)

    def explain(self, fs: float | None = None) -> None:
        """Print the plan for a sample rate (Hz), like a database's EXPLAIN, and the backend of each step for two
        channels.

        A step runs as an operator with its backends, a native program with its kinds of steps, or a processor's method.
        Without `fs`, the rate that the filters were built for is used.
        """
        _explain(self, fs)

    def checked(self, x: Any) -> Tensor:
        """Return the checked input of the first module, or raise."""
        first = next(iter(self._modules.values()), None)
        return first.checked(x) if isinstance(first, Processor) else super().checked(x)

    def __iadd__(self, other: object) -> Parallel:  # type: ignore[override]
        """Combine in parallel, like `self + other`; an `nn.Sequential` would append instead."""
        return self + other


class Parallel(Processor):
    """Modules in parallel on the same input; their outputs are added.

    `a + b` builds one; its branches may be chains.

    Args:
        modules: the branches; nested sums are flattened.

    Examples:
        >>> import torch, torchfx as fx
        >>> dry_and_wet = fx.effect.Gain(0.5) + fx.effect.Gain(0.25)
        >>> dry_and_wet(torch.ones(3))
        tensor([0.7500, 0.7500, 0.7500])
    """

    kind = derived_kind = "parallel"
    fs = _SharedRate()
    """As a chain's."""

    def __init__(self, *modules: nn.Module) -> None:
        """Flatten nested sums."""
        super().__init__()
        if not modules:
            raise ArgumentError("Parallel needs at least one module, got none")
        self._modules.update(_laid_flat(Parallel, modules))

    def branches(self) -> list[nn.Module]:
        """Return the parallel modules."""
        return [module for module in self._modules.values() if module is not None]

    def plan(self, fs: float | None = None) -> Plan:
        """Return the plan of the sum; see `FilterChain.plan`."""
        return _plan(self, fs)

    def explain(self, fs: float | None = None) -> None:
        """Print the plan of the sum; see `FilterChain.explain`."""
        _explain(self, fs)


def _plan(module: Processor, fs: float | None) -> Plan:
    return plan_of(module, ambient_rate() if fs is None else checked_rate(fs))


def _explain(module: Processor, fs: float | None) -> None:
    plan = _plan(module, fs)
    print(plan, "two channels:", *(f"  {line}" for line in plan.runs((2,))), sep="\n")


def _module(module: object) -> nn.Module:
    if not isinstance(module, nn.Module):
        raise ArgumentTypeError(f"modules must be nn.Modules, got {module!r} ({type(module).__name__})")
    return module
