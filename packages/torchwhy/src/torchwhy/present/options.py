"""Options of a view; a renderer uses those that its format supports."""

from __future__ import annotations

from dataclasses import dataclass, replace

from torchwhy.errors import ArgumentError
from torchwhy.present.budget import checked_tokens
from torchwhy.present.style import PLAIN, Style

__all__ = ["Options"]


@dataclass(frozen=True)
class Options:
    """How to draw a document.

    Attributes:
        style: of text: width, colour and characters.
        verbose: the full view; JSON, SARIF and JUnit always have everything.
        fail_on: of JUnit and of annotations: the severity from which a finding is a failure.
        tokens: of what agents read: how many it may take (`present.budget.tokens_in`).
        tool: of what agents read: whether they ask on by tools of `torchwhy mcp`, else by commands.
    """

    style: Style = PLAIN
    verbose: bool = False
    fail_on: str = "medium"
    tokens: int = 2000
    tool: bool = False

    def within(self, tokens: int | None, form: str) -> Options:
        """Return the same with a budget of tokens; None keeps the usual one.

        Raises:
            ArgumentError: the format has no limit, or the limit is too small.
        """
        if tokens is None:
            return self
        if form != "agent":
            raise ArgumentError(f"--tokens is for --format agent, got --format {form}")
        return replace(self, tokens=checked_tokens(tokens, "--tokens"))
