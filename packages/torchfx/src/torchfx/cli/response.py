"""`torchfx response`."""

from __future__ import annotations

import io
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

from torchfx import spec
from torchfx.checks import sample_rate
from torchfx.cli.console import answer, check_format, complain, safe, show_data, shows_unicode, width, write_file
from torchfx.core.processor import FilterChain
from torchfx.errors import ArgumentError, TorchFXError
from torchfx.response.characteristics import Characteristics, characteristics, describe
from torchfx.response.picture import as_text, plot

__all__ = ["Answer", "run"]


@dataclass(frozen=True)
class Answer:
    """What `--format json` prints."""

    schema: int
    effects: list[str]
    fs: float
    filters: list[Characteristics]


def run(effects: list[str], rate: float, png: Path | None, form: str) -> int:
    """Draw and describe a chain; return 0, 2 for misuse, or 3 where the picture cannot be written."""
    try:
        check_format(form)
        plan = FilterChain(*(spec.build(text) for text in effects)).plan(sample_rate(rate))
        drawing = as_text(plan, min(max(width() - 4, 40), 100), unicode=shows_unicode(sys.stdout))
        data = Answer(1, effects, float(rate), characteristics(plan))
        described = describe(plan)
    except (ArgumentError, TypeError) as error:
        return complain(error, 2)
    if png is not None:
        try:
            picture = io.BytesIO()
            plot(plan, " | ".join(effects)).savefig(picture, dpi=110, format="png")
            write_file(png, picture.getvalue())
        except (TorchFXError, OSError) as error:
            return complain(f"cannot write {png}: {getattr(error, 'strerror', None) or error}", 3)
    if form == "json":
        show_data(data)
        return 0
    indented = "".join(f"  {text}\n" for text in drawing.splitlines())
    sentences = "".join(f"{text}\n" for line in described.splitlines() for text in textwrap.wrap(line, width()))
    answer(f"{safe(' | '.join(effects))} at {rate:g} Hz\n\n{indented}\n{sentences}")
    return 0
