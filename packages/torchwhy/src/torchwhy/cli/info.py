"""`torchwhy info`."""

from __future__ import annotations

import platform
import sys
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from torchwhy.cli.console import complain
from torchwhy.cli.documents import show
from torchwhy.errors import ArgumentError
from torchwhy.present.document import Column, Document, Row, Table
from torchwhy.present.formats import check_format
from torchwhy.schema import SCHEMA

__all__ = ["Answer", "run"]

OPTIONAL = ("pandas", "pyarrow", "duckdb", "tensorboard", "lightning", "transformers", "viztracer")


@dataclass(frozen=True)
class Answer:
    """The output of `--format json`."""

    schema: int
    facts: dict[str, str]


def run(form: str) -> int:
    """Print one fact a line; return 0, or 2 for misuse."""
    try:
        check_format(form)
    except ArgumentError as error:
        return complain(error, 2)
    facts = _facts()
    table = Table((Column("what"), Column("found")), tuple(Row(pair) for pair in facts.items()), noun=("fact", "facts"))
    show(Document("torchwhy", (table,), Answer(SCHEMA, facts), command="info"), form)
    return 0


def _facts() -> dict[str, str]:
    from torchwhy import plugins
    from torchwhy.rules.catalogue import all_rules, not_loaded
    from torchwhy.trace.file.scan_native import available, missing

    others = [rule for rule in all_rules() if not rule.function.__module__.startswith("torchwhy.")]
    facts = {
        "torchwhy": version("torchwhy"),
        "Python": f"{platform.python_version()} on {sys.platform}",
        "PyTorch": _installed("torch") or "not installed: reads traces; recording needs pip install torch",
        "devices": _devices() if find_spec("torch") else "-",
        "scanner of traces": "native" if available() else f"Python, slower: {missing}",
        "rules": f"{len(all_rules()) - len(others)} of torchwhy, {len(others)} of other packages",
        "vocabulary of": ", ".join(
            sorted(str(getattr(v, "library", v)) for v in plugins.offered(plugins.VOCABULARY)[0])
        )
        or "no other package",
        "also installed": ", ".join(f"{name} {_installed(name)}" for name in OPTIONAL if _installed(name)) or "-",
    }
    return facts | {f"entry point {name}": f"cannot be loaded: {error}" for name, error in not_loaded().items()}


def _installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _devices() -> str:
    import torch

    names = ["cpu"]
    if torch.cuda.is_available():
        names += [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    return ", ".join(names)
