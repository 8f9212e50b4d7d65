"""The site of torchfx; `python docs/build.py` at the repository's root builds it."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[3] / "docs"), str(Path(__file__).parent)]

from common import *  # noqa: E402, F403
from common import extensions  # noqa: E402

project = "torchfx"
html_title = "torchfx"
extensions = [*extensions, "sounds", "browser"]
command_line = "torchfx.cli.app:app"
html_extra_path = ["_generated"]
(Path(__file__).parent / "_generated").mkdir(exist_ok=True)
reference_modules = [
    "torchfx.filter", "torchfx.effect", "torchfx.spectral", "torchfx.losses", "torchfx.loudness",
    "torchfx.augment", "torchfx.realtime", "torchfx.functional", "torchfx.functional.torchaudio", "torchfx.design",
    "torchfx.response", "torchfx.voice_activity", "torchfx.distributed", "torchfx.parameters",
    "torchfx",
]  # fmt: skip
