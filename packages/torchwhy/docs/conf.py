"""The site of torchwhy; `python docs/build.py` at the repository's root builds it."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[3] / "docs"), str(Path(__file__).parent)]

from common import *  # noqa: E402, F403
from common import extensions  # noqa: E402

project = "torchwhy"
html_title = "torchwhy"
extensions = [*extensions, "rule_pages", "example_reports", "command_outputs", "json_formats"]
command_line = "torchwhy.cli.app:app"
html_extra_path = ["_generated"]
(Path(__file__).parent / "_generated").mkdir(exist_ok=True)
reference_modules = [
    "torchwhy", "torchwhy.timing", "torchwhy.counters", "torchwhy.experiment", "torchwhy.errors",
    "torchwhy.trace.meaning.vocabulary", "torchwhy.rules.rule", "torchwhy.finding",
]  # fmt: skip
