"""counts.json: written whole or not at all, and checked when read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from torchwhy.errors import TorchWhyError
from torchwhy.schema import SCHEMA, UNDECODABLE

__all__ = ["CountsFileError", "read_counts_file", "write_counts_file"]

NAME = "counts.json"
T = TypeVar("T")


class CountsFileError(TorchWhyError, OSError):
    """A file of counts cannot be read or written."""


def write_counts_file(path: str | Path, content: dict[str, Any]) -> Path:
    """Write `content` as JSON and return the file's path."""
    target = Path(path)
    if target.is_dir() or not target.suffix:
        target /= NAME
    part = target.with_name(f"{target.name}.{os.getpid()}.part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(msgspec.json.format(msgspec.json.encode(content)) + b"\n")
        part.replace(target)
    except OSError as error:
        raise CountsFileError(f"cannot write {target}: {error.strerror or error}") from error
    return target


def read_counts_file(path: str | Path, form: type[T]) -> T:
    """Read a counts file, or the one in a folder, as a `form`."""
    source = Path(path)
    try:
        source = source / NAME if source.is_dir() else source
        content = msgspec.json.decode(source.read_bytes())
    except FileNotFoundError as error:
        if source == Path(path):
            raise CountsFileError(f"{source} does not exist") from error
        raise CountsFileError(
            f"{path} holds no {NAME}; `torchwhy profile` writes one, `c.save({str(path)!r})` after a count too"
        ) from error
    except OSError as error:
        raise CountsFileError(f"cannot read {source}: {error.strerror or error}") from error
    except UNDECODABLE as error:
        raise CountsFileError(f"{source} is not JSON: {error}") from error
    schema = content.get("schema") if isinstance(content, dict) else None
    if schema != SCHEMA or "metrics" not in content:
        raise CountsFileError(
            f"{source} is no counts file of schema {SCHEMA} (schema {schema!r}); `c.save` writes them"
        )
    try:
        return msgspec.convert(content, form)
    except msgspec.ValidationError as error:
        raise CountsFileError(f"{source} is damaged: {error}") from error
