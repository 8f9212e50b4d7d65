"""Makes what readers open or download: report pages for `examples.md`, and the traces of the tutorials."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from page_commands import working_copy
from reference_pages import before_reading

RECORDED = Path(__file__).parents[1] / "tests" / "recorded"
FOLDER = Path(__file__).parent / "_generated" / "reports"
TRACES = ("training_step", "matmul_add_64", "matmul_add_4096", "matmul_add_compiled")


def _write_all(app: Sphinx) -> None:
    with working_copy() as folder:
        shutil.make_archive(str(FOLDER.with_name("traces")), "zip", folder)
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in TRACES:
        trace, page = RECORDED / f"{name}.json.gz", FOLDER / f"{name}.html"
        if not page.exists() or page.stat().st_mtime < trace.stat().st_mtime:
            command = [sys.executable, "-m", "torchwhy", "report", str(trace), "-o", str(page)]
            subprocess.run(command, check=True, capture_output=True)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    before_reading(app, _write_all)
    return {"parallel_read_safe": True}
