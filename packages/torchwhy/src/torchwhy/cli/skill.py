"""`torchwhy skill`."""

from __future__ import annotations

from pathlib import Path

from torchwhy.cli.console import answer, complain, write_file
from torchwhy.questions.skill import skill_text

__all__ = ["run"]


def run(output: Path | None) -> int:
    """Print the skill, or write it below a folder of skills; return 0, or 3 if it cannot be written."""
    text = skill_text()
    if output is None:
        answer(text)
        return 0
    path = output / "torchwhy" / "SKILL.md"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, text)
    except OSError as error:
        return complain(f"cannot write {path}: {error.strerror or error}", 3)
    answer(f"{path}\n")
    return 0
