"""Blocks about the devices' counters."""

from __future__ import annotations

from typing import Final

from torchwhy.analysis.device_counters import CounterTimes, EnergyUse, MeasuredActivity
from torchwhy.present.document import Cell, Column, Name, Table, Text, rows_of
from torchwhy.wording import counted, digits

__all__ = ["activity_lines", "counter_table", "energy_lines"]

_NEAR: Final = 60.0
"""Percent of a peak. Below, for compute and for memory, a device is bound by latency: the rule SOLBottleneck of
NVIDIA's Nsight Compute."""


def counter_table(rows: tuple[CounterTimes, ...]) -> tuple[Table, ...]:
    """Return the counters of the window, for the full view; nothing where none were recorded."""
    several = len({row.device for row in rows}) > 1
    cells: list[tuple[Cell, ...]] = [
        (
            *((str(row.device),) if several else ()),
            Name(row.counter),
            row.unit,
            *(_number(value) for value in (row.busy_mean, row.mean, row.lowest, row.highest)),
        )
        for row in rows
    ]
    numbers = (Column(title, number=True) for title in ("while busy", "mean", "lowest", "highest"))
    columns = (*((Column("GPU", number=True),) if several else ()), Column("counter"), Column("unit"), *numbers)
    title = "Counters of the GPU"
    return (Table(columns, rows_of(cells), title, noun=("counter", "counters"), when="full"),) if cells else ()


def _number(value: float | None) -> str:
    return "" if value is None else digits(value)


def activity_lines(devices: tuple[MeasuredActivity, ...]) -> tuple[Text, ...]:
    """Return a sentence for each device: how near its peaks it was while it worked, by its counters."""
    return tuple(Text(_activity(one)) for one in devices)


def _activity(one: MeasuredActivity) -> str:
    parts = []
    if one.compute is not None:
        parts.append(f"its multiprocessors reach {one.compute:.0f}% of their peak")
    if one.memory is not None:
        parts.append(f"its memory {one.memory:.0f}%" if parts else f"its memory reaches {one.memory:.0f}% of its peak")
    if one.active is not None:
        parts.append(f"{one.active:.0f}% of the multiprocessors have work")
    sentence = f"Counted while GPU {one.device} works: {', '.join(parts)}"
    compute, memory = one.compute, one.memory
    if compute is None or memory is None:
        return f"{sentence}."
    if max(compute, memory) < _NEAR:
        return f"{sentence}: neither is near its peak, so latency or too little work in a kernel is the limit."
    return f"{sentence}: bound by {'memory' if memory >= compute else 'compute'}."


def energy_lines(devices: tuple[EnergyUse, ...]) -> tuple[Text, ...]:
    """Return a sentence for each device: its power, the energy of the window and of a step."""
    return tuple(Text(_energy(one)) for one in devices)


def _energy(one: EnergyUse) -> str:
    sentence = f"Energy of GPU {one.device}: {digits(one.joules)} J at {digits(one.power_w)} W on average"
    if one.joules_per_step is None:
        return f"{sentence}."
    sentence = f"{sentence}, {digits(one.joules_per_step)} J for each of {counted(one.steps, 'step')}"
    if one.price_per_step is not None:
        sentence = f"{sentence}; a million steps cost {one.price_per_step * 1e6:,.2f}"
    return f"{sentence}."
