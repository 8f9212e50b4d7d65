"""Archives of audio files through a chain: threads or Ray, resumed where they were stopped.

Without effects no PyTorch is loaded.
"""

from torchfx.distributed.archive import Plan, Report, album_recipe, plan, process
from torchfx.distributed.files import Outcome
from torchfx.distributed.recipe import Recipe, preset
from torchfx.distributed.sources import Arrivals, Job, Source, find

__all__ = [
    "Arrivals",
    "Job",
    "Outcome",
    "Plan",
    "Recipe",
    "Report",
    "Source",
    "album_recipe",
    "find",
    "plan",
    "preset",
    "process",
]
