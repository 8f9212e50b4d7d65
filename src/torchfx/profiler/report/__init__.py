"""What to say of a trace: facts and a verdict as plain values, and the views drawn from them."""

from __future__ import annotations

from torchfx.profiler.report.formats import FORMATS, render
from torchfx.profiler.report.report import SCHEMA, describe
from torchfx.profiler.report.style import PLAIN, Style

__all__ = ["FORMATS", "PLAIN", "SCHEMA", "Style", "describe", "render"]
