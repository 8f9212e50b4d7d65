"""`torchfx demo`."""

from __future__ import annotations

from pathlib import Path

from torchfx.cli.console import answer, complain, rich_console, show_table
from torchfx.demo.run import run as run_demo
from torchfx.errors import AudioFileError

__all__ = ["run"]


def run() -> int:
    """Run the demonstration below the current folder and print what it found."""
    try:
        with rich_console(stderr=True).status("making a recording, filtering it, timing it"):
            report = run_demo(Path.cwd())
    except AudioFileError as error:
        return complain(error, 3)
    out = rich_console()
    factor = report.audio_s / report.median_s
    spread = f"median {report.median_s * 1e3:.2f} ms, interquartile range {report.iqr_s * 1e3:.2f} ms"
    facts = [
        ("time", f"{spread}, {report.passes} passes after warming up"),
        ("", f"for {report.audio_s:g} s of stereo: {factor:,.0f} times faster than it plays"),
        ("deviation", f"{report.deviation:.1e} of the peak, largest difference from SciPy in float64"),
        ("files", f"{report.folder}/: {', '.join(report.files)}"),
    ]
    answer(f"{report.plan}\n\n")
    show_table(("", ""), facts)
    if report.drawing:
        out.print(f"\n{report.drawing}\n\nFor a picture: pip install matplotlib, then torchfx demo", markup=False)
    return 0
