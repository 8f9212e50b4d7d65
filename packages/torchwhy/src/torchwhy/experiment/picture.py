"""A sweep as a picture."""

from __future__ import annotations

from pathlib import Path
from textwrap import fill

from torchwhy.experiment.sweep import Sweep, finding
from torchwhy.experiment.workload import CannotRunError

__all__ = ["paint"]


def paint(found: Sweep, path: Path) -> None:
    """Write a PNG: time per call and share of work over size, and where the one regime becomes the other.

    Raises:
        CannotRunError: matplotlib is not installed.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise CannotRunError("no picture without matplotlib: pip install matplotlib") from error
    figure = Figure(figsize=(8, 6), layout="constrained")
    FigureCanvasAgg(figure)
    time_axes, share_axes = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    sizes = [point.size for point in found.points]
    medians, spreads = [p.median_s for p in found.points], [p.iqr_s / 2 for p in found.points]
    time_axes.errorbar(sizes, medians, yerr=spreads, marker="o", capsize=3, label="median and IQR")
    time_axes.axhline(found.floor_s, color="grey", linestyle="--", label="overhead: the same call on size 1")
    time_axes.set(xscale="log", yscale="log", ylabel="time per call (s)")
    time_axes.set_title(_title(found), fontsize=10)
    share_axes.plot(sizes, [100 * point.work_share for point in found.points], marker="o")
    share_axes.axhline(50, color="grey", linewidth=0.8)
    share_axes.set(xlabel="size", ylabel="work (% of the time)", ylim=(0, 105))
    share_axes.set_xticks(sizes, labels=[str(size) for size in sizes])
    share_axes.minorticks_off()
    if found.crossover_size is not None:
        for axes in (time_axes, share_axes):
            axes.axvline(found.crossover_size, color="tab:red", linestyle=":")
    time_axes.legend()
    figure.savefig(path, dpi=120, format="png")


def _title(found: Sweep) -> str:
    case = found.case
    head = f"{found.experiment}, {case.dtype}, {case.variant}, on {case.device}"
    return f"{head}\n{fill(finding(found), 90)}"
