"""Measurements and comparisons as documents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from torchwhy.present.document import Block, Caveat, Cell, Column, Document, Table, Text, VerdictBlock, rows_of
from torchwhy.schema import SCHEMA
from torchwhy.timing.comparison import Comparison
from torchwhy.timing.measurement import Measurement
from torchwhy.wording import percent, seconds

__all__ = ["timing_document"]

_COLUMNS = ("median", "IQR", "p95", "min", "runs", "median, 95% interval", "first call")


def timing_document(found: Measurement | Comparison) -> Document:
    """Return what `torchwhy measure` answers."""
    if isinstance(found, Measurement):
        return Document(
            found.name, (_times([found]), *_remarks([found])), _data("measurement", found), command="measure"
        )
    kind = "winner" if found.winner else "no winner"
    return Document(
        f"{len(found.measurements)} functions, timed alternately",
        (
            VerdictBlock(kind, found.said, look="good" if found.winner else ""),
            _times(found.measurements),
            _ratios(found),
            *_remarks(found.measurements),
        ),
        _data("comparison", found),
        command="measure",
    )


def _times(measurements: Sequence[Measurement]) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (
            m.name,
            *map(seconds, (m.median_s, m.iqr_s, m.p95_s, m.min_s)),
            str(m.n),
            f"{seconds(m.median_interval_s.low)} .. {seconds(m.median_interval_s.high)}",
            "" if m.first_s is None else seconds(m.first_s),
        )
        for m in measurements
    ]
    return Table((Column(), *(Column(title, number=True) for title in _COLUMNS)), rows_of(rows))


def _ratios(found: Comparison) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (ratio.name, f"{ratio.ratio:.3f}", f"{ratio.low:.3f} .. {ratio.high:.3f}", ratio.said) for ratio in found.ratios
    ]
    confidence = percent(found.ratios[0].required)
    columns = (Column(), Column("ratio", number=True), Column(f"{confidence} interval", number=True), Column())
    return Table(columns, rows_of(rows), title=f"Times over those of {found.measurements[0].name}")


def _remarks(measurements: Sequence[Measurement]) -> list[Block]:
    several = len(measurements) > 1
    blocks: list[Block] = [
        Caveat(warning.code, f"{m.name}: {said}" if several else said)
        for m in measurements
        for warning in m.warnings
        for said in [f"{warning.message}; {warning.advice}"]
    ]
    return [
        *blocks,
        *(Text(f"{m.name}: {m.conditions}" if several else m.conditions, look="dim") for m in measurements),
    ]


def _data(kind: str, found: Measurement | Comparison) -> dict[str, Any]:
    return {"schema": SCHEMA, "kind": kind, "torch": str(torch.__version__), **found.to_dict()}
