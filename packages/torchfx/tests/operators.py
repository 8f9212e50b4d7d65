"""One backend of an operator at a time, past whatever chooses between them."""

from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules

import pytest
import torch

from torchfx import _ops
from torchfx._ops import native


def declared(name):
    """Return an operator's folder, "torchfx._ops.sos", and its declaration."""
    [found] = [
        (f"torchfx._ops.{package.name}", operator)
        for package in iter_modules(_ops.__path__)
        if package.ispkg
        for operator in import_module(f"torchfx._ops.{package.name}.schema").OPERATORS
        if operator.name == name
    ]
    return found


def backend(name, file):
    """Return the function of `_ops/<folder>/<file>.py`, which checks its arguments and returns a list of results.

    Args:
        name: the operator, "sos_forward".
        file: "cpu", "triton", "reference" or "composite".
    """
    folder, operator = declared(name)
    defaults = {argument.name: argument.default_value for argument in torch._C.parse_schema(operator.schema).arguments}

    def run(*arguments):
        arguments = (*arguments, *list(defaults.values())[len(arguments) :])
        function = getattr(import_module(f"{folder}.{file}"), name)
        results = [torch.empty(shape, dtype=dtype) for shape, dtype in operator.shapes(*arguments)]
        if file == "composite":
            found = function(_ops.operators, *arguments)
            return [found] if isinstance(found, torch.Tensor) else list(found)
        function(*arguments, *results)
        return results

    run.__name__ = f"{name}_{file}"
    return run


def forms(name):
    """Return what to parametrize with: the native backend, where there is one, and plain PyTorch's."""
    folder, _ = declared(name)
    skip = pytest.mark.skipif(native.library is None, reason="needs the native library")
    return [
        pytest.param(backend(name, file), id=id, marks=[skip] if file == "cpu" else [])
        for file, id in (("cpu", "native"), ("reference", "reference"), ("composite", "composite"))
        if find_spec(f"{folder}.{file}") and hasattr(import_module(f"{folder}.{file}"), name)
    ]
