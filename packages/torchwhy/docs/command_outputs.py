"""The directive `run`: commands of a page with what they print (`page_commands.py`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from page_commands import block_of, outputs, working_copy


class Run(SphinxDirective):
    """Shows each command with its output as a block of code."""

    has_content: ClassVar[bool] = True
    option_spec: ClassVar[dict[str, Any]] = {"status": str, "shows": str}

    def run(self) -> list[nodes.Node]:
        """Run the commands; all blocks of a page share a folder."""
        options = "".join(f":{name}: {value}\n" for name, value in self.options.items())
        block = block_of(options + "\n".join(self.content))
        of_this_page = self.env.temp_data
        if "run-folder" not in of_this_page:
            of_this_page["run-folder"] = working_copy()
        shown = zip(block.commands, outputs(block, Path(of_this_page["run-folder"].name)), strict=True)
        text = "\n\n".join(f"$ {command}\n{output}" for command, output in shown)
        return [nodes.literal_block(text, text, language="text")]


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.add_directive("run", Run)
    return {"parallel_read_safe": True}
