"""Responses drawn: with matplotlib, or with characters."""

from __future__ import annotations

import base64
import io
import math
from typing import Any

import numpy as np
import torch

from torchfx.errors import ArgumentError, TorchFXError
from torchfx.plan import Plan
from torchfx.response.characteristics import decibels, grid
from torchfx.response.systems import group_delay, response

__all__ = ["as_png", "as_text", "plot"]

SHOWN_DB = 90.0  # below the highest gain, in a picture
TEXT_DB = 72.0  # likewise, in characters
STEP_DB = 6.0
LOWEST_HZ = 20.0
LABELLED = 12  # curves; with more, a legend hides them
DOTS = (0x01, 0x02, 0x04, 0x40, 0x08, 0x10, 0x20, 0x80)  # of a braille character: left column, then right one


def plot(plan: Plan, title: str = "") -> Any:
    """Draw magnitude (dB) and group delay (ms) over a logarithmic frequency axis; return the `matplotlib` figure.

    Each filter of a batch or bank is a curve.

    Raises:
        ArgumentTypeError, ArgumentError: as `response`.
        TorchFXError: matplotlib is not installed.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise TorchFXError("a picture needs matplotlib: pip install matplotlib") from error
    with torch.no_grad():
        freqs = grid(plan)[1:]
        gains, delays = decibels(response(plan, freqs)), group_delay(plan, freqs).cpu().numpy()
    assert plan.fs is not None
    delays = np.broadcast_to(delays, gains.shape).reshape(-1, len(freqs)) / plan.fs * 1000
    gains = gains.reshape(-1, len(freqs))
    figure = Figure(figsize=(9, 6), layout="constrained")
    FigureCanvasAgg(figure)
    magnitude, delay = figure.subplots(2, 1, sharex=True, height_ratios=[2, 1])
    for i, (db, ms) in enumerate(zip(gains, delays, strict=True)):
        magnitude.semilogx(freqs, db, color=f"C{i % 10}", linewidth=1.5, label=str(i + 1))
        delay.semilogx(freqs, np.where(db > gains.max() - SHOWN_DB, ms, np.nan), color=f"C{i % 10}", linewidth=1)
    top = float(gains.max())
    magnitude.set_ylim(max(float(gains.min()), top - SHOWN_DB) - 3, top + 3)
    magnitude.set_ylabel("magnitude, dB")
    delay.set_ylabel("group delay, ms")
    delay.set_xlabel(f"frequency, Hz (fs = {plan.fs:g} Hz)")
    delay.set_xlim(max(float(freqs[0]), min(LOWEST_HZ, plan.fs / 2000)), float(freqs[-1]))
    if 1 < len(gains) <= LABELLED:
        magnitude.legend(fontsize=7)
    for axes in (magnitude, delay):
        axes.grid(visible=True, which="both", alpha=0.25)
    magnitude.set_title(title, fontsize=9)
    return figure


def as_png(plan: Plan, title: str = "") -> str:
    """Return the picture as the base64 text of a PNG."""
    buffer = io.BytesIO()
    plot(plan, title).savefig(buffer, dpi=80, format="png")
    return base64.b64encode(buffer.getvalue()).decode()


def as_text(plan: Plan, width: int = 80, height: int = 16, unicode: bool = False) -> str:
    """Draw the magnitude over a logarithmic frequency axis with characters; all filters of a batch or bank together.

    Args:
        plan: of linear time-invariant steps.
        width, height: characters, of the whole drawing and of the curve; at least 40 and 4.
        unicode: draw with braille dots instead of stars.
    """
    if width < 40 or height < 4:
        raise ArgumentError(f"width and height must be at least 40 and 4 characters, got {width} and {height}")
    response(plan, 0.0)  # raises if the plan has no response
    assert plan.fs is not None
    nyquist = plan.fs / 2
    lowest = min(LOWEST_HZ, nyquist / 1000)
    across, down = (2, 4) if unicode else (1, 1)
    columns, rows = (width - 10) * across, height * down
    freqs = np.geomspace(lowest, nyquist, columns * 8)
    freqs[-1] = nyquist  # and no rounding beyond it
    with torch.no_grad():
        gains = decibels(response(plan, freqs)).reshape(-1, columns, 8)
    top = STEP_DB * math.ceil(float(gains.max()) / STEP_DB + 0.01)
    bottom = STEP_DB * math.floor(max(float(gains.min()), top - TEXT_DB) / STEP_DB)
    place = np.clip(np.rint((top - gains) / (top - bottom) * (rows - 1)), -1, rows).astype(int)
    pixels = np.zeros((rows, columns), bool)
    for curve in place:
        high, low = curve.min(-1), curve.max(-1)
        # A column begins where the one before it ended: steep slopes are unbroken.
        reach_high, reach_low = np.minimum(high[1:], low[:-1] + 1), np.maximum(low[1:], high[:-1] - 1)
        high[1:], low[1:] = np.minimum(reach_high, high[1:]), np.maximum(reach_low, low[1:])
        for column in range(columns):
            pixels[max(high[column], 0) : low[column] + 1, column] = True
    lines = _braille(pixels) if unicode else ["".join("*" if pixel else " " for pixel in row) for row in pixels]
    labels = _labels(top, bottom, height)
    text = [f"{label:>8} |{line}".rstrip() for label, line in zip(labels, lines, strict=True)]
    return "\n".join(["      dB", *text, *_axis(lowest, nyquist, width - 10)])


def _braille(pixels: Any) -> list[str]:
    rows, columns = pixels.shape
    cells = pixels.reshape(rows // 4, 4, columns // 2, 2).transpose(0, 2, 3, 1).reshape(rows // 4, columns // 2, 8)
    codes = (cells * np.array(DOTS)).sum(-1)
    return ["".join(chr(0x2800 + code) if code else " " for code in row) for row in codes]


def _labels(top: float, bottom: float, height: int) -> list[str]:
    """Return a label for each line: whole steps, at most one in two lines."""
    step = STEP_DB * max(1, math.ceil((top - bottom) / STEP_DB / (height / 2)))
    values = np.arange(top, bottom - 1, -step)
    labels = [""] * height
    for value in values:
        labels[round((top - value) / (top - bottom) * (height - 1))] = f"{value:g}"
    return labels


def _axis(lowest: float, nyquist: float, width: int) -> list[str]:
    line, text = ["-"] * width, [" "] * width
    span = math.log(nyquist / lowest)
    for exponent in range(math.floor(math.log10(lowest)), math.ceil(math.log10(nyquist))):
        for digit in (1, 2, 5):
            freq = digit * 10.0**exponent
            if lowest * 0.999 <= freq <= nyquist:
                at = round(math.log(freq / lowest) / span * (width - 1))
                label = f"{freq / 1000:g}k" if freq >= 1000 else f"{freq:g}"
                line[at] = "+"
                at = min(at, width - len(label))
                if not "".join(text[max(at - 1, 0) : at + len(label) + 1]).strip():
                    text[at : at + len(label)] = label
    return [" " * 9 + "+" + "".join(line), f"{'Hz':>8}  {''.join(text).rstrip()}"]
