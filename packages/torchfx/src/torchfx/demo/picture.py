"""The spectra as a picture, or as text where there is no matplotlib."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from torchfx.demo.spectrum import Spectra

__all__ = ["as_text", "save_png"]

BANDS = [16, 31.5, 63, 125, 250, 500, 1000, 2000, 4000, 8000, 16000]  # octave bands of IEC 61260, Hz
WIDTH = 44


def save_png(spectra: Spectra, title: str, path: Path) -> None:
    """Draw the spectra before and after, and the chain's response; write a PNG."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 7), layout="constrained")
    FigureCanvasAgg(figure)
    power, response = figure.subplots(2, 1, sharex=True, height_ratios=[2, 1])
    power.semilogx(spectra.frequency, spectra.before, label="before", color="#9aa5b1", linewidth=1)
    power.semilogx(spectra.frequency, spectra.after, label="after", color="#0b69a3", linewidth=1)
    power.set_ylabel("power density, dBFS/Hz")
    power.set_ylim(max(-160.0, float(spectra.after.min())), float(spectra.before.max()) + 6)
    power.set_title(title)
    power.legend(loc="lower left")
    measured = spectra.after - spectra.before
    response.semilogx(spectra.frequency, measured, label="measured (after - before)", color="#9aa5b1", linewidth=1)
    response.semilogx(spectra.frequency, spectra.response, label="chain", color="#c1440e", linewidth=1.5)
    response.set_ylabel("response, dB")
    response.set_xlabel("frequency, Hz")
    response.set_ylim(-80, 6)
    response.set_xlim(16, float(spectra.frequency[-1]))
    response.legend(loc="lower center")
    for axes in (power, response):
        axes.grid(True, which="both", alpha=0.25)
    figure.savefig(path, dpi=110, format="png")


def as_text(spectra: Spectra) -> str:
    """Draw octave-band levels before and after, and the response at the bands' centres, with plain characters."""
    edges = [(centre / 2**0.5, centre * 2**0.5) for centre in BANDS]
    inside = [(spectra.frequency >= low) & (spectra.frequency < high) for low, high in edges]
    rows = [(c, m) for c, m in zip(BANDS, inside, strict=True) if m.any()]
    before = [10 * np.log10(np.sum(10 ** (spectra.before[m] / 10))) for _, m in rows]
    after = [10 * np.log10(np.sum(10 ** (spectra.after[m] / 10))) for _, m in rows]
    top, bottom = max(before), min(after)
    lines = [f"{'band':>8}  {'before':<{WIDTH}}", f"{'Hz':>8}  {'after':<{WIDTH}} {'chain':>9}"]
    for (centre, _), level_before, level_after in zip(rows, before, after, strict=True):
        chain = np.interp(centre, spectra.frequency, spectra.response)
        lines.append(f"{centre:>8g}  {_bar(level_before, bottom, top, '-')}")
        lines.append(f"{'':>8}  {_bar(level_after, bottom, top, '=')} {chain:>6.1f} dB")
    return "\n".join(lines)


def _bar(level: float, bottom: float, top: float, mark: str) -> str:
    filled = 1 + round((WIDTH - 1) * (level - bottom) / max(top - bottom, 1e-9))
    return (mark * filled).ljust(WIDTH)
