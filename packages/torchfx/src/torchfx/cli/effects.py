"""`torchfx effects`."""

from __future__ import annotations

from torchfx.catalogue import available
from torchfx.cli.streams import answer
from torchfx.spec import signature_text

__all__ = ["run"]


def run() -> int:
    """Print each filter and effect with its parameters and the first line of its documentation."""
    lines = {signature_text(entry): entry.summary for _, entry in sorted(available().items())}
    width = max(map(len, lines))
    answer("".join(f"{text:<{width}}  {summary}\n" for text, summary in lines.items()))
    return 0
