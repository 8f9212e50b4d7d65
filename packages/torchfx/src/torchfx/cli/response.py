"""`torchfx response`."""

from __future__ import annotations

import io
import math
import sys
from dataclasses import dataclass
from pathlib import Path

from torchfx import spec
from torchfx.checks import sample_rate
from torchfx.cli.console import (
    answer,
    check_format,
    complain,
    safe,
    show_data,
    show_table,
    shows_unicode,
    width,
    write_file,
)
from torchfx.core.processor import FilterChain
from torchfx.errors import ArgumentError, TorchFXError
from torchfx.response.characteristics import Characteristics, characteristics
from torchfx.response.picture import as_text, plot

__all__ = ["Answer", "run"]


COLUMNS = (
    "kind", "gain dB", "centre Hz", "edges Hz", "ripple dB", "octave beyond, dB", "resonance, dB", "delay, samples",
    "pole radius", "-60 dB after ms",
)  # fmt: skip


@dataclass(frozen=True)
class Answer:
    """The output of `--format json`."""

    schema: int
    effects: list[str]
    fs: float
    filters: list[Characteristics]


def run(effects: list[str], rate: float, png: Path | None, form: str) -> int:
    """Draw a chain's response and print its characteristics; return 0, 2 for misuse, 3 if no picture can be written."""
    try:
        check_format(form)
        plan = FilterChain(*(spec.build(text) for text in effects)).plan(sample_rate(rate))
        drawing = as_text(plan, min(max(width() - 4, 40), 100), unicode=shows_unicode(sys.stdout))
        data = Answer(1, effects, float(rate), characteristics(plan))
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
    answer(f"{safe(' | '.join(effects))} at {rate:g} Hz\n\n{indented}\n")
    rows = [_cells(each) for each in data.filters]
    used = [i for i in range(len(COLUMNS)) if any(row[i] != "-" for row in rows)]
    show_table([COLUMNS[i] for i in used], [[row[i] for i in used] for row in rows], numbers=COLUMNS[1:])
    return 0


def _cells(found: Characteristics) -> tuple[str, ...]:
    low, high = (_number(delay, 2) for delay in found.group_delay)
    return (
        found.kind,
        _number(found.gain_db, 2),
        _hertz(found.centre_hz),
        ", ".join(map(_hertz, found.edges_hz)) or "-",
        _number(found.ripple_db, 2),
        ", ".join(f"{_number(db, 1)} at {_hertz(hz)} Hz" for hz, db in found.octave_beyond) or "-",
        "-" if found.resonance is None else f"{found.resonance[1]:.1f} at {_hertz(found.resonance[0])} Hz",
        low if low == high else f"{low} ... {high}",
        _number(found.pole_radius, 6),
        _number(found.decay_ms, 2),
    )


def _hertz(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None or not math.isfinite(value) else f"{value:.{digits}f}"
