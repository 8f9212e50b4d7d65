"""What a reader asks of a view; a renderer takes from it what its format knows."""

from __future__ import annotations

from dataclasses import dataclass

from torchwhy.present.style import PLAIN, Style

__all__ = ["Options"]


@dataclass(frozen=True)
class Options:
    """How to draw a document.

    Attributes:
        style: of text: width, colour and characters.
        verbose: the full view; JSON, SARIF and JUnit always have everything.
        fail_on: of JUnit and of annotations: the severity from which a finding is a failure.
    """

    style: Style = PLAIN
    verbose: bool = False
    fail_on: str = "medium"
