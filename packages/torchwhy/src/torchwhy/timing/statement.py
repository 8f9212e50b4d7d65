"""A statement from the command line, as a function."""

from __future__ import annotations

import ast
from collections.abc import Callable
from types import CodeType
from typing import Any

from torchwhy.errors import ArgumentError

__all__ = ["function_from", "run_setup"]


def run_setup(setup: str) -> dict[str, Any]:
    """Run code once and return its names; `torch` is there already.

    Raises:
        ArgumentError: `setup` is not Python. What it raises itself passes through.

    >>> run_setup("x = torch.ones(2)")["x"]
    tensor([1., 1.])
    """
    import torch

    names: dict[str, Any] = {"torch": torch, "__name__": "__setup__"}
    exec(_compiled(_parse(setup, "setup"), "setup"), names)
    return names


def function_from(statement: str, names: dict[str, Any]) -> Callable[[], Any]:
    """Return a function that runs a statement among `names`; the last expression is its result.

    Names that the statement assigns and that exist already are global in it, so `x = x + 1` counts up, call by call.

    Raises:
        ArgumentError: not Python, or empty.

    >>> names = {"x": 1}
    >>> function_from("x += 1; x", names)(), names["x"]
    (2, 2)
    """
    body = _parse(statement, "statement").body
    if not body:
        raise ArgumentError(f"the statement is empty, got {statement!r}")
    stored = {n.id for part in body for n in ast.walk(part) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    if shared := sorted(stored & set(names)):
        body.insert(0, ast.Global(names=shared))
    if isinstance(body[-1], ast.Expr):
        body[-1] = ast.Return(value=body[-1].value)
    module = ast.parse("def statement(): pass")
    module.body[0].body = body  # type: ignore[attr-defined]
    exec(_compiled(ast.fix_missing_locations(module), "statement"), names)
    function: Callable[[], Any] = names["statement"]
    return function


def _compiled(module: ast.Module, what: str) -> CodeType:
    try:
        return compile(module, f"<{what}>", "exec")
    except SyntaxError as error:  # such as a break outside a loop
        raise ArgumentError(f"the {what} is not Python: {error.msg}") from error


def _parse(code: str, what: str) -> ast.Module:
    try:
        return ast.parse(code)
    except SyntaxError as error:
        raise ArgumentError(f"the {what} is not Python: {error.msg} in {(error.text or code).strip()!r}") from error
