"""A sweep in the terminal."""

from __future__ import annotations

from torchfx.profiler.experiment.sweep import Sweep
from torchfx.profiler.wording import seconds

__all__ = ["draw", "finding"]

WIDTH = 40


def draw(found: Sweep) -> str:
    """Return a bar per size: the share of its time that is work.

    >>> from torchfx.profiler.experiment.case import Case
    >>> from torchfx.profiler.experiment.sweep import Point
    >>> print(draw(Sweep("matmul-add", Case(64), 1e-6, (Point(64, 2e-6, 0.0, 2e-6, 0.5, 1e9),), None)))
    matmul-add bf16, eager, on cpu: share of the time that is work, not overhead
        size         time     GFLOP/s  0%                50%               100%
          64      2.00 us           1  ####################|                       mixed
    more than half the time is work at every size: none is overhead-bound
    """
    case = found.case
    batch = f"batch {case.batch}, " if case.batch is not None else ""
    scale = "0%".ljust(WIDTH // 2 - 1) + "50%".ljust(WIDTH // 2 - 1) + "100%"
    title = f"{found.experiment} {batch}{case.dtype}, {case.variant}, on {case.device}"
    lines = [f"{title}: share of the time that is work, not overhead"]
    lines.append(f"{'size':>8} {'time':>12} {'GFLOP/s':>11}  {scale}")
    for point in found.points:
        numbers = f"{point.size:>8} {seconds(point.median_s):>12} {point.flops_per_s / 1e9:>11,.0f}"
        lines.append(f"{numbers}  {_bar(point.work_share)}  {point.regime}")
    return "\n".join([*lines, finding(found)])


def finding(found: Sweep) -> str:
    """Return where overhead-bound turns into compute-bound, in one line; with a caution on a busy machine."""
    caution = "; roughly, since other processes took the processors" if any(p.disturbed for p in found.points) else ""
    return _where(found) + caution


def _where(found: Sweep) -> str:
    if found.crossover_size is not None:
        return f"overhead-bound below size {found.crossover_size:.0f}; above it, more than half the time is work"
    if found.points[-1].regime == "overhead-bound":
        return f"overhead-bound up to size {found.points[-1].size}: more than half of every time is overhead"
    return "more than half the time is work at every size: none is overhead-bound"


def _bar(share: float) -> str:
    filled = round(share * WIDTH)
    cells = ["#" if i < filled else " " for i in range(WIDTH)]
    cells.insert(WIDTH // 2, "|")
    return "".join(cells)
