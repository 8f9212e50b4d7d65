"""Rules that broke off while looking, in sentences."""

from __future__ import annotations

from typing import Any

__all__ = ["failures"]


def failures(report: dict[str, Any]) -> list[str]:
    """Return a sentence for each rule that raised an error, and for each package whose rules could not be loaded."""
    return [
        f"Rule {item['code']} {item['slug']} could not look: {item['error']}"
        if item["slug"]
        else f"The rules of {item['code']} could not be loaded: {item['error']}"
        for item in report["failed"]
    ]
