"""`torchwhy mcp`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from torchwhy.cli.console import complain

__all__ = ["run"]


def run(folders: Sequence[Path]) -> int:
    """Serve recordings in some folders; return 0, 2 for what is no folder, 3 without the package `mcp`."""
    for folder in folders:
        if not os.path.isdir(folder):  # noqa: PTH112 - `Path` raises for a long name
            return complain(f"FOLDER must be a folder with recordings, got {folder}", 2)
    try:
        from torchwhy.mcp_server import serve
    except ImportError as error:
        if (error.name or "").split(".")[0] not in ("mcp", "mcp_types", "anyio"):
            raise
        return complain("torchwhy mcp needs the package mcp, 2.0 or later: pip install torchwhy[mcp]", 3)
    serve(folders)
    return 0
