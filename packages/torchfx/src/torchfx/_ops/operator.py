"""Operators by declaration: one `Operator` says what an operator is, and everything PyTorch asks for follows from it.

An operator's folder holds

    schema.py      OPERATORS: one `Operator` each, with the checks of its arguments
    reference.py   a function of the operator's name, in plain PyTorch, for every device
    cpu.py         the same for CPU tensors, triton.py for CUDA tensors; each is optional and may lack operators
    gradient.py    GRADIENTS: one `Gradient` for each operator that is differentiable
    composite.py   instead of reference.py: a function that calls other operators, and is differentiated as these are
                   where gradient.py has nothing for it
    kernels.py     what triton.py launches; imported when it first does, as Triton takes long to load

`register` derives the rest: the definition in PyTorch's dispatcher and its `out=` overload, shapes on meta and fake
tensors, autograd in both directions, vmap, autocast, and the rows that `torchfx info` prints. A backend is a file: its
functions take the operator's arguments and then the results, allocated already, which they write.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd import forward_ad

from torchfx._ops import native
from torchfx._ops.differentiation import Gradient, differentiable
from torchfx._ops.memory import HUGE, empty
from torchfx._ops.observers import (
    dual_level_active,
    function_modes_active,
    is_tracing,
    modes_active,
    profiler_enabled,
    transforms_active,
)
from torchfx._ops.triton_launch import KernelError
from torchfx.errors import ArgumentError

__all__ = ["Operand", "Operator", "Row", "is_direct", "is_native", "register"]

DTYPES = frozenset((torch.float32, torch.float64))

library = torch.library.Library("torchfx_ext", "DEF")

KEYS = {"cpu": "CPU", "triton": "CUDA", "reference": "CompositeExplicitAutograd"}
"""A backend's file and the dispatch key its functions serve."""

DERIVED = ("composite", "gradient")
"""The other files that `register` reads."""

Entry = Callable[..., Any]
Shapes = Sequence[tuple[Sequence[int], torch.dtype]]


@dataclass(frozen=True)
class Operand:
    """Where a tensor's leading dimensions lie: from `lead` on, before its last `core` dimensions.

    Attributes:
        core: how many trailing dimensions are the operand's own: 1 for a signal (..., time).
        lead: how many dimensions come before the leading ones: 1 for a cascade's state (sections, ..., 2).
        exact: the leading dimensions are the result's own and don't broadcast.
    """

    core: int
    lead: int = 0
    exact: bool = False


@dataclass(frozen=True)
class Operator:
    """The definition of an operator.

    Attributes:
        schema: name, arguments and results, as PyTorch's dispatcher writes them. The first argument is a tensor; the
            results lie on its device.
        operands: the tensor arguments, by name.
        results: the results, each as an `Operand`, or as the name of the argument whose shape it has.
        shapes: checks the arguments (all of them, in order) and returns shape and dtype of each result.
        dtypes: those of the first argument that native kernels take.
    """

    schema: str
    operands: Mapping[str, Operand]
    results: Sequence[Operand | str]
    shapes: Callable[..., Shapes]
    dtypes: frozenset[torch.dtype] = DTYPES

    @property
    def name(self) -> str:
        """The operator's name, without its namespace."""
        return self.schema.partition("(")[0]


@dataclass(frozen=True)
class Implementation:
    """The functions that the files of an operator's folder provide.

    Attributes:
        backends: functions (arguments, results to write), by file.
        gradient: from gradient.py.
        composite: arguments -> results, from composite.py.
    """

    backends: Mapping[str, Entry]
    gradient: Gradient | None
    composite: Entry | None


def is_direct(x: Tensor, dtypes: frozenset[torch.dtype] = DTYPES) -> bool:
    """Return whether a call on this signal may go straight to its device's kernel, past the dispatcher.

    Not so where `is_native` says no, and not while a profiler listens to the dispatcher.
    """
    return not profiler_enabled() and is_native(x, dtypes)


def is_native(x: Tensor, dtypes: frozenset[torch.dtype] = DTYPES) -> bool:
    """Return whether native steps may run on this signal instead of PyTorch's operators.

    Not so for subclasses, for views that change the sign of their memory, for types that autocast may change, and not
    while a mode, a transform or a tracer wants to see the operators. A profiler sees them (`Program.run`).
    """
    return (
        type(x) is Tensor
        and (x.is_cpu or x.is_cuda)
        and x.dtype in dtypes
        and not (
            modes_active()
            or transforms_active()
            or forward_ad._current_level >= 0
            or function_modes_active()
            or x.is_neg()
            or is_tracing()
        )
    )


class Row(NamedTuple):
    """Which backend serves an operator.

    Attributes:
        operator: its name.
        backends: by device ("cpu", "cuda", "other"), the backend's file name.
        missing: why a backend that exists doesn't serve, by its file name.
    """

    operator: str
    backends: dict[str, str]
    missing: dict[str, str]

    def text(self, device: str) -> str:
        """Return in words what serves a device: "cpu", "cuda" or "other"."""
        file = self.backends[device]
        if file == "cpu":
            return f"native, instruction set {native.instruction_set()}"
        if file == "reference":
            why = f" (native library {self.missing['cpu']})" if device == "cpu" and "cpu" in self.missing else ""
            return f"reference in plain PyTorch{why}"
        return {"composite": "the operators it is made of"}.get(file, file)


def register(package: ModuleType, operators: dict[str, Entry]) -> list[Row]:
    """Register the operators of a folder with the dispatcher.

    Args:
        package: the folder.
        operators: the entry points of all operators, by name; those of the folder are added.

    Returns:
        Which backend serves which operator.
    """
    files = {file.stem for folder in package.__path__ for file in Path(folder).iterdir()}
    modules = {name: import_module(f"{package.__name__}.{name}") for name in sorted(files & {*KEYS, *DERIVED})}
    gradients = modules["gradient"].GRADIENTS if "gradient" in modules else {}
    rows = []
    for operator in import_module(f"{package.__name__}.schema").OPERATORS:
        backends, missing = _backends(operator, modules)
        composite = getattr(modules.get("composite"), operator.name, None)
        implementation = Implementation(
            backends,
            gradients.get(operator.name),
            None if composite is None else _checked(operator, composite, operators),
        )
        operators[operator.name] = _Registration(operator, implementation, operators).entry
        served = {device: _serves(device, implementation) for device in ("cpu", "cuda", "other")}
        rows.append(Row(operator.name, served, missing))
    return rows


def _backends(operator: Operator, modules: Mapping[str, ModuleType]) -> tuple[dict[str, Entry], dict[str, str]]:
    """Return the functions that implement an operator, by file, and why others that exist don't serve."""
    backends: dict[str, Entry] = {}
    missing: dict[str, str] = {}
    for file in KEYS:
        function = getattr(modules.get(file), operator.name, None)
        if function is None:
            continue
        reason: str = getattr(modules[file], "why_missing", "")
        if reason:
            missing[file] = reason
        else:
            backends[file] = function
    return backends, missing


def _serves(device: str, implementation: Implementation) -> str:
    file = {"cpu": "cpu", "cuda": "triton"}.get(device, "reference")
    if file in implementation.backends:
        return file
    return "composite" if implementation.composite is not None else "reference"


class _Registration:
    """One operator in the dispatcher, and its entry point."""

    def __init__(self, operator: Operator, implementation: Implementation, operators: Mapping[str, Entry]) -> None:
        self.operator, self.name, self.shapes = operator, operator.name, operator.shapes
        schema = torch._C.parse_schema(f"torchfx_ext::{operator.schema}")
        self.arguments = [argument.name for argument in schema.arguments]
        self.defaults = tuple(argument.default_value for argument in schema.arguments if argument.has_default_value())
        self.tensors = [self.arguments.index(name) for name in operator.operands]
        self.single = len(schema.returns) == 1
        self.result_leads = [result.lead for result in operator.results if isinstance(result, Operand)]
        tags = (torch.Tag.pt2_compliant_tag,)
        library.define(operator.schema, tags=tags)
        library.define(_out_schema(operator.schema, len(schema.returns)), tags=tags)
        overloads = getattr(torch.ops.torchfx_ext, self.name)
        self.overload, self.out_overload = overloads.default, overloads.out
        self.composite = implementation.composite
        backends = dict(implementation.backends)
        self.cpu = self._kernel(backends["cpu"]) if "cpu" in backends else None
        # How a call is recorded for a gradient, and how it runs under torch.func's transforms.
        self.recorded = self.transformed = self.composite
        if implementation.gradient is not None:
            self.recorded, transformed = differentiable(self, implementation.gradient, operators)
            self.transformed = self.composite or transformed
        if "reference" in backends:
            backends["reference"] = _warns_once(backends["reference"])
        if self.composite is not None:  # what it calls warns
            backends["reference"] = _writes(self.composite, len(self.arguments))
        if "triton" in backends:
            backends["triton"] = _falls_back(self.name, backends["triton"], backends["reference"])
        for file, backend in backends.items():
            library.impl(self.name, self._kernel(backend), KEYS[file])
            library.impl(f"{self.name}.out", self._out_kernel(backend), KEYS[file])
        library.impl(self.name, self._fake, "Meta")
        library.impl(f"{self.name}.out", self._out_kernel(lambda *_: None), "Meta")
        library.impl(self.name, self._autograd, "Autograd")
        library.impl(f"{self.name}.out", self._out_autograd, "Autograd")
        torch.library.register_vmap(f"torchfx_ext::{self.name}", self._batched, lib=library)
        for device in ("cpu", "cuda"):
            torch.library.register_autocast(f"torchfx_ext::{self.name}", device, torch.float32, lib=library)
        gpu = self._kernel(backends["triton"]) if "triton" in backends else None
        self.entry = self._entry(backends.get("cpu"), gpu)

    # --- the entry point ----------------------------------------------------------------------------------

    def _entry(self, cpu: Entry | None, gpu: Entry | None) -> Entry:
        """Return the function callers use: all arguments by position, and `out=` for results that exist already.

        It leaves out the dispatcher, which costs several microseconds, where nothing asks for it.
        """
        overload, out_overload, tensors, shapes, single = (
            self.overload, self.out_overload, self.tensors, self.shapes, self.single,
        )  # fmt: skip
        composite, recorded, transformed = self.composite, self.recorded, self.transformed
        dtypes = self.operator.dtypes
        compiling, grad_enabled = torch.compiler.is_dynamo_compiling, torch.is_grad_enabled

        def entry(*arguments: Any, out: Sequence[Tensor] | None = None) -> Any:
            if out is not None:
                return out_overload(*arguments, **{f"out{i}": tensor for i, tensor in enumerate(out)})
            if compiling():
                return overload(*arguments)
            x = arguments[0]
            if not is_direct(x, dtypes):
                if transformed is not None and transforms_active():
                    return transformed(*arguments)
                return overload(*arguments)
            if recorded is not None and grad_enabled():
                for i in tensors:
                    if arguments[i] is not None and arguments[i].requires_grad:
                        return recorded(*arguments)
            if not x.is_cpu:
                return overload(*arguments) if gpu is None else gpu(*arguments)
            if cpu is None:
                return overload(*arguments) if composite is None else composite(*arguments)
            results = []
            for shape, dtype in shapes(*arguments):
                # PyTorch takes sizes one by one in half the time of a shape.
                result = x.new_empty(*shape, dtype=dtype) if shape else x.new_empty((), dtype=dtype)
                results.append(result if result.nbytes < HUGE else empty(shape, dtype, x))
            cpu(*arguments, *results)
            return results[0] if single else tuple(results)

        entry.__name__ = self.name
        return entry

    def below_autograd(self, *arguments: Any) -> Any:
        """Run the operator where autograd has recorded it already."""
        if self.cpu is not None and arguments[0].is_cpu and is_direct(arguments[0], self.operator.dtypes):
            return self.cpu(*arguments)
        with torch._C._AutoDispatchBelowAutograd():
            return self.overload(*arguments)

    def wants_gradient(self, arguments: Sequence[Any]) -> bool:
        """Return whether a call has to be recorded, for a backward pass or for tangents."""
        if dual_level_active():
            return True
        return torch.is_grad_enabled() and any(
            arguments[i] is not None and arguments[i].requires_grad for i in self.tensors
        )

    def complete(self, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return all arguments; the dispatcher leaves out those at their defaults."""
        lacking = len(self.arguments) - len(arguments)
        return arguments + self.defaults[len(self.defaults) - lacking :] if lacking else arguments

    # --- kernels for dispatch keys ------------------------------------------------------------------------

    def _kernel(self, backend: Entry) -> Entry:
        count = len(self.arguments)

        def run(*arguments: Any) -> Any:
            if len(arguments) < count:
                arguments = self.complete(arguments)
            shapes = self.shapes(*arguments)
            try:
                results = [empty(shape, dtype, arguments[0]) for shape, dtype in shapes]
                backend(*arguments, *results)
            except torch.OutOfMemoryError as error:
                raise self._out_of_memory(error, shapes, arguments[0]) from error
            return results[0] if self.single else tuple(results)

        return run

    def _out_kernel(self, backend: Entry) -> Entry:
        def run(*arguments: Any, **out: Tensor) -> Any:
            arguments = self.complete(arguments)
            given, shapes = tuple(out.values()), self.shapes(*arguments)
            for i, (result, (shape, dtype)) in enumerate(zip(given, shapes, strict=True)):
                _check_out(i, result, shape, dtype, arguments[0])
            try:
                written = [
                    result if result.is_contiguous() else empty(result.shape, result.dtype, result) for result in given
                ]
                backend(*arguments, *written)
            except torch.OutOfMemoryError as error:
                raise self._out_of_memory(error, shapes, arguments[0]) from error
            for result, values in zip(given, written, strict=True):
                if result is not values:
                    result.copy_(values)
            return given[0] if self.single else given

        return run

    def _out_of_memory(self, error: torch.OutOfMemoryError, shapes: Shapes, x: Tensor) -> torch.OutOfMemoryError:
        """Return the error that says what to do; an operator that this one calls has said so already."""
        if isinstance(error.__cause__, torch.OutOfMemoryError):
            return error
        needed = sum(math.prod(shape) * dtype.itemsize for shape, dtype in shapes)
        return torch.OutOfMemoryError(
            f"{self.name} needs {needed / 2**20:.1f} MiB on {x.device} for its results, and more to work with; its "
            f"arguments are unchanged. Pass fewer channels or examples at once, or shorter blocks with their state "
            f"(torchfx.realtime.Stream). {error}"
        )

    def _fake(self, *arguments: Any) -> Any:
        arguments = self.complete(arguments)
        x = arguments[0]
        results = [x.new_empty(shape, dtype=dtype) for shape, dtype in self.shapes(*arguments)]
        return results[0] if self.single else tuple(results)

    def _autograd(self, *arguments: Any) -> Any:
        if self.recorded is not None:
            arguments = self.complete(arguments)
            if self.wants_gradient(arguments):
                if self.composite is not None and (dual_level_active() or transforms_active()):
                    return self.composite(*arguments)
                return self.recorded(*arguments)
        with torch._C._AutoDispatchBelowAutograd():
            return self.overload(*arguments)

    def _out_autograd(self, *arguments: Any, **out: Tensor) -> Any:
        if self.wants_gradient(self.complete(arguments)):
            raise ArgumentError(f"out= of {self.name} records no gradient: call it without out=, or under no_grad()")
        with torch._C._AutoDispatchBelowAutograd():
            return self.out_overload(*arguments, **out)

    # --- vmap ---------------------------------------------------------------------------------------------

    def with_batch(
        self, size: int, in_dims: Sequence[int | None], arguments: Sequence[Any]
    ) -> tuple[list[Any], dict[str, int]]:
        """Return the arguments of a call for a whole batch, which is one more leading dimension of what has it.

        Results that have an argument's shape are sums over what that argument was broadcast to; every argument gets
        the batch then, so that its items are summed apart. Where only tensors with the result's own dimensions have it,
        the first argument gets it too.

        Returns:
            The arguments, and how many dimensions of 1 each tensor got after its batch, by name.
        """
        dims = (*in_dims, *(None for _ in range(len(arguments) - len(in_dims))))
        ranks = {}
        for name, i in zip(self.operator.operands, self.tensors, strict=True):
            if arguments[i] is not None:
                operand = self.operator.operands[name]
                ranks[name] = arguments[i].dim() - operand.core - operand.lead - (dims[i] is not None)
        added = {name: max(ranks.values()) - rank for name, rank in ranks.items()}
        batched, operands = list(arguments), self.operator.operands
        summed = any(isinstance(result, str) for result in self.operator.results)
        spread = any(
            dims[i] is not None and not operands[name].exact for name, i in zip(operands, self.tensors, strict=True)
        )
        for name, i in zip(operands, self.tensors, strict=True):
            if name in ranks:
                operand = operands[name]
                always = operand.exact or summed or (i == self.tensors[0] and not spread)
                batched[i] = _with_batch(arguments[i], dims[i], size, operand, added[name], always)
        return batched, added

    def _batched(self, info: Any, in_dims: Sequence[int | None], *arguments: Any) -> Any:
        """Run a batch as one call."""
        batched, added = self.with_batch(info.batch_size, in_dims, self.complete(arguments))
        found = self.overload(*batched)
        results, out_dims = [], []
        for result, like in zip((found,) if self.single else found, self.operator.results, strict=True):
            out_dim: int | None
            if isinstance(like, Operand):
                out_dim = like.lead
            elif result.dim() == 1:  # not wanted: empty
                out_dim = None
            else:
                out_dim = self.operator.operands[like].lead
                result = result.squeeze(tuple(out_dim + 1 + j for j in range(added[like])))
            results.append(result)
            out_dims.append(out_dim)
        return (results[0], out_dims[0]) if self.single else (tuple(results), tuple(out_dims))


def _with_batch(tensor: Tensor, dim: int | None, size: int, operand: Operand, missing: int, always: bool) -> Tensor:
    """Return a tensor with the batch as its first leading dimension and `missing` dimensions of 1 after it."""
    if dim is None:
        if not always:
            return tensor
        tensor = tensor.unsqueeze(operand.lead)
        tensor = tensor.expand(*tensor.shape[: operand.lead], size, *tensor.shape[operand.lead + 1 :])
    else:
        tensor = tensor.movedim(dim, operand.lead)
    for _ in range(missing):
        tensor = tensor.unsqueeze(operand.lead + 1)
    return tensor


def _checked(operator: Operator, composite: Entry, operators: Mapping[str, Entry]) -> Entry:
    """Return a composite that checks its arguments, since it is also called directly."""

    def run(*arguments: Any) -> Any:
        operator.shapes(*arguments)
        return composite(operators, *arguments)

    return run


def _writes(composite: Entry, count: int) -> Entry:
    """Return a backend of `count` arguments that writes what a composite returns."""

    def run(*arguments_and_results: Any) -> None:
        found = composite(*arguments_and_results[:count])
        found = (found,) if isinstance(found, Tensor) else found
        for result, values in zip(arguments_and_results[count:], found, strict=True):
            result.copy_(values)

    return run


def _out_schema(schema: str, results: int) -> str:
    """Return the schema of the overload that writes into given results."""
    name, _, rest = schema.partition("(")
    arguments = rest.rpartition(") ->")[0]
    letters = "abcdefgh"[:results]
    given = ", ".join(f"Tensor({letter}!) out{i}" for i, letter in enumerate(letters))
    returned = ", ".join(f"Tensor({letter}!)" for letter in letters)
    return f"{name}.out({arguments}, *, {given}) -> {f'({returned})' if results > 1 else returned}"


def _check_out(i: int, result: Tensor, shape: Sequence[int], dtype: torch.dtype, x: Tensor) -> None:
    if tuple(result.shape) != tuple(shape) or result.dtype != dtype or result.device != x.device:
        raise ArgumentError(
            f"out[{i}] must be {dtype} of shape {tuple(shape)} on {x.device}, got {result.dtype} of shape "
            f"{tuple(result.shape)} on {result.device}"
        )


def _falls_back(name: str, backend: Entry, reference: Entry) -> Entry:
    """Run the reference, with one warning, where a backend's kernel can't be compiled for a device and type."""
    broken: set[tuple[torch.device, torch.dtype]] = set()

    def run(x: Tensor, *rest: Any) -> None:
        if (x.device, x.dtype) not in broken:
            try:
                backend(x, *rest)
            except KernelError as error:
                broken.add((x.device, x.dtype))
                _warned.add(x.device.type)
                warnings.warn(
                    f"{name} has no kernel for {x.dtype} on {x.device}: {error}; the plain PyTorch reference runs, "
                    f"which is exact but slow",
                    RuntimeWarning,
                    stacklevel=3,
                )
            else:
                return
        reference(x, *rest)

    return run


_warned: set[str] = set()


def _warns_once(backend: Entry) -> Entry:
    """Warn the first time a device other than the CPU is served by plain PyTorch."""

    def run(x: Tensor, *rest: Any) -> Any:
        device = x.device.type
        if device not in {"cpu", "meta"} and device not in _warned:
            _warned.add(device)
            warnings.warn(
                f"torchfx has no native kernel for {device!r} tensors here: the plain PyTorch reference runs, which "
                f"is exact but slow; `torchfx info` shows what is in use",
                RuntimeWarning,
                stacklevel=3,
            )
        return backend(x, *rest)

    return run
