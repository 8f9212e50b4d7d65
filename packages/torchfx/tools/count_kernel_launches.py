#!/usr/bin/env python3
"""Count how often a chain of recursive filters crosses into native code, fused and unfused.

    python tools/count_kernel_launches.py --depths 2,5,10,20

`native_calls` are dispatches of torchfx_ext:: operators, `cuda_launches` are kernel launches on the GPU (0 on the CPU).
Fused is `wave | (f1 | f2 | ...)`, unfused is `wave | f1 | f2 | ...`. Both give the same samples, which is checked.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import msgspec
import torch
from rich.console import Console
from rich.table import Table
from torch.profiler import ProfilerActivity, profile
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.benchmark import Timer

import torchfx as fx

FS = 48_000


@dataclass(frozen=True)
class Row:
    """One measurement: `depth` filters, one `path`."""

    depth: int
    path: str
    native_calls: int
    cuda_launches: int
    time_us: float


class NativeCalls(TorchDispatchMode):
    """Counts torchfx_ext:: operators while active."""

    def __init__(self) -> None:
        """Start at zero."""
        super().__init__()  # type: ignore[no-untyped-call]
        self.count: int = 0

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Count the operator and run it."""
        self.count += func.namespace == "torchfx_ext"
        return func(*args, **(kwargs or {}))


def native_calls(run: Callable[[], object]) -> int:
    """Return how many torchfx_ext:: operators `run` dispatches."""
    calls = NativeCalls()
    with calls:
        run()
    return calls.count


def cuda_launches(run: Callable[[], object]) -> int:
    """Return how many kernels `run` launches on the GPU."""
    if not torch.cuda.is_available():
        return 0
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as captured:
        run()
        torch.cuda.synchronize()
    names = [event.name for event in captured.events() or []]
    return sum("LaunchKernel" in str(name) or "GraphLaunch" in name for name in names)


def measure(depth: int, wave: fx.Wave) -> list[Row]:
    """Measure a chain of `depth` filters, fused and unfused, after checking that they agree."""
    filters = [
        fx.filter.HiButterworth(40 + 10 * i) if i % 2 else fx.filter.LoButterworth(9000 - i) for i in range(depth)
    ]
    chain = fx.FilterChain(*filters)

    def fused() -> fx.Wave:
        return wave | chain

    def unfused() -> fx.Wave:
        y = wave
        for module in filters:
            y = y | module
        return y

    difference = (fused().ys - unfused().ys).abs().max() / unfused().ys.abs().max()
    if difference > depth * 1e-7:
        raise SystemExit(f"fused and unfused differ by {difference:.1e} of the peak at depth {depth}")
    rows = []
    for path, run in (("fused", fused), ("unfused", unfused)):
        timing = Timer("run()", globals={"run": run}).blocked_autorange(min_run_time=0.1)
        rows.append(Row(depth, path, native_calls(run), cuda_launches(run), timing.median * 1e6))
    return rows


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--depths", nargs="+", default=["2,5,10,20"], help="filters per chain, commas or spaces")
    parser.add_argument("--channels", type=int, default=2)
    parser.add_argument("--samples", type=int, default=FS, help="per channel")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args(arguments)
    try:
        depths = [int(part) for text in options.depths for part in text.split(",") if part.strip()]
    except ValueError:
        parser.error(f"--depths must be whole numbers, got {' '.join(options.depths)!r}")
    if not depths or min(depths) < 1:
        parser.error(f"--depths must be at least 1, got {depths}")

    noise = torch.randn(options.channels, options.samples, generator=torch.Generator().manual_seed(0))
    wave = fx.Wave(noise, FS, options.device)
    rows = [row for depth in depths for row in measure(depth, wave)]
    if options.json:
        answer = {"schema": 1, "device": str(wave.device), "shape": list(wave.ys.shape), "rows": [*map(asdict, rows)]}
        print(msgspec.json.format(msgspec.json.encode(answer)).decode())
    else:
        Console().print(_table(rows, wave))
    return 0


def _table(rows: list[Row], wave: fx.Wave) -> Table:
    channels, samples = wave.ys.shape
    table = Table(title=f"{channels} channels x {samples} samples on {wave.device}", title_justify="left")
    for name in ("depth", "path", "native_calls", "cuda_launches", "time per call"):
        table.add_column(name, justify="left" if name == "path" else "right")
    for row in rows:
        table.add_row(str(row.depth), row.path, str(row.native_calls), str(row.cuda_launches), f"{row.time_us:,.0f} us")
    return table


if __name__ == "__main__":
    sys.exit(main())
