"""`torchfx suggest`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from torchfx.cli.console import check_format, complain, line, show_data
from torchfx.errors import TorchFXError
from torchfx.parameters import duration, duration_samples, named

if TYPE_CHECKING:
    from torchfx.suggest import Suggestion

__all__ = ["Answer", "run"]


@dataclass(frozen=True)
class Answer:
    """The output of `--format json`."""

    schema: int
    suggestion: Suggestion


def run(effects: list[str], length: str, channels: int, rate: float, form: str) -> int:
    """Print the faster device and why; return 0, or 2 for misuse."""
    try:
        check_format(form)
        samples = duration_samples(named("length", duration()).check(length, None), rate)
        from torchfx import spec
        from torchfx.core.processor import FilterChain
        from torchfx.suggest import suggest_device

        found = suggest_device(FilterChain(*map(spec.build, effects)), channels, samples, rate)
    except TorchFXError as error:
        return complain(error, 2)
    if form == "json":
        show_data(Answer(1, found))
    else:
        line(str(found))
    return 0
