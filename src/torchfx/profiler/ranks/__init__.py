"""Jobs of many ranks: a folder with one trace per rank, read in parallel, one small summary kept of each."""

from __future__ import annotations

from torchfx.profiler.ranks.job import Job, load_job

__all__ = ["Job", "load_job"]
