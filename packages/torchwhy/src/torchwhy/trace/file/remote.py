"""Paths of files in buckets and other places that fsspec opens, such as s3://bucket/traces."""

from __future__ import annotations

import os
from pathlib import Path
from typing import cast

from torchwhy.errors import TraceError

__all__ = ["is_url", "path_of"]


def is_url(name: object) -> bool:
    """Whether a name, or a path that `path_of` returned, is a URL, as in "s3://bucket/traces"."""
    return "://" in str(name)


def path_of(name: str | os.PathLike[str]) -> Path:
    """Return the path of a name; of a URL one that lists folders and opens files to read.

    Raises:
        TraceError: the package for a URL is missing, or its server does not answer.
    """
    if not is_url(name):
        return Path(name)
    url = str(name)
    try:
        from torchwhy.trace.file.remote_paths import RemotePath
    except ImportError as error:
        raise TraceError(f"{url} needs the package universal_pathlib: pip install torchwhy[urls]") from error
    try:
        path = RemotePath(url)
        path.exists()
    except TraceError:
        raise
    except OSError as error:
        raise TraceError(f"{url} cannot be reached: {' '.join(str(error).split())}") from error
    except (ImportError, ValueError) as error:
        raise TraceError(f"{url} cannot be opened: {' '.join(str(error).split())}") from error
    return cast("Path", path)
