"""`torchfx effects`."""

from __future__ import annotations

import inspect

from torchfx import spec
from torchfx.cli.console import out

__all__ = ["run"]


def run() -> int:
    """Print each filter and effect with its parameters and the first line of its documentation."""
    known = spec.available()
    texts = {name: spec.signature_text(cls) for name, cls in sorted(known.items())}
    width = max(map(len, texts.values()))
    for name, text in texts.items():
        summary = (inspect.getdoc(known[name]) or "").splitlines()[0]
        out.print(f"{text:<{width}}  {summary}", markup=False)
    return 0
