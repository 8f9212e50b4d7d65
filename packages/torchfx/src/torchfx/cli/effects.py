"""`torchfx effects`."""

from __future__ import annotations

from dataclasses import dataclass

from torchfx.catalogue import available
from torchfx.cli.console import check_format, complain, show_data, show_table
from torchfx.errors import ArgumentError
from torchfx.spec import signature_text

__all__ = ["Answer", "run"]


@dataclass(frozen=True)
class Answer:
    """What `--format json` prints: by name, the parameters with their defaults, and what it does."""

    schema: int
    effects: dict[str, dict[str, str]]


def run(form: str = "text") -> int:
    """Print each filter and effect with its parameters and the first line of its documentation; return 0, or 2."""
    try:
        check_format(form)
    except ArgumentError as error:
        return complain(error, 2)
    found = {name: (signature_text(entry), entry.summary) for name, entry in sorted(available().items())}
    if form == "json":
        parts = {name: (text.partition(":")[2], summary) for name, (text, summary) in found.items()}
        show_data(Answer(1, {name: {"parameters": each, "summary": does} for name, (each, does) in parts.items()}))
    else:
        show_table(("name and parameters", "what it does"), list(found.values()))
    return 0
