"""`torchfx response`."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path

from torchfx import spec
from torchfx.checks import sample_rate
from torchfx.cli.documents import show, terminal_style
from torchfx.cli.streams import complain, write_file
from torchfx.core.processor import FilterChain
from torchfx.errors import ArgumentError, TorchFXError
from torchfx.profiler.present.document import Block, Code, Document, Text
from torchfx.profiler.present.formats import check_format
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
        style = terminal_style()
        drawing = as_text(plan, min(max(style.width - 4, 40), 100), unicode=style.unicode)
        data = Answer(1, effects, float(rate), characteristics(plan))
        blocks: list[Block] = [Code(tuple(drawing.splitlines())), *map(Text, describe(plan).splitlines())]
    except (ArgumentError, TypeError) as error:
        return complain(error, 2)
    if png is not None:
        try:
            picture = io.BytesIO()
            plot(plan, " | ".join(effects)).savefig(picture, dpi=110, format="png")
            write_file(png, picture.getvalue())
        except (TorchFXError, OSError) as error:
            return complain(f"cannot write {png}: {getattr(error, 'strerror', None) or error}", 3)
    show(Document(f"{' | '.join(effects)} at {rate:g} Hz", tuple(blocks), data, command="response"), form)
    return 0
