"""A document as annotations on GitHub: workflow commands for what failed, and the verdict in a line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torchwhy.finding import SEVERITIES
from torchwhy.present.document import Caveat, Check, Checks, Document, Findings, Rules, VerdictBlock
from torchwhy.present.options import Options
from torchwhy.present.phrases import failed_rules, finding_lines
from torchwhy.wording import safe

__all__ = ["render"]


def render(documents: Sequence[Document], options: Options) -> str:
    """Return the lines. A finding from `options.fail_on` on is an error; caveats are notices."""
    serious = SEVERITIES[SEVERITIES.index(options.fail_on) :]
    return "".join(f"{line}\n" for document in documents for line in _lines(document, serious))


def _lines(document: Document, serious: Sequence[str]) -> Iterator[str]:
    verdict = next((block.sentence for block in document.blocks if isinstance(block, VerdictBlock)), "")
    yield safe(": ".join(filter(None, (document.title or document.command, verdict))))
    for block in document.blocks:
        if isinstance(block, Checks):
            yield from (_failed(check, document) for check in block.items if check.outcome in ("failed", "error"))
        elif isinstance(block, Findings):
            for item in block.items:
                if item.severity in serious:
                    yield _command("error", finding_lines(item), title=f"{document.title} {item.rule}")
        elif isinstance(block, Rules):
            yield from (_command("warning", [sentence]) for sentence in failed_rules(block))
        elif isinstance(block, Caveat):
            yield _command("notice", [f"{block.label}: {block.text}"])


def _failed(check: Check, document: Document) -> str:
    where = {"file": check.file, "line": str(check.line) if check.line else ""}
    return _command("error", [check.text, *check.evidence], title=f"{document.title} {check.name}", **where)


def _command(kind: str, lines: Sequence[str], **properties: str) -> str:
    """A workflow command; in its text %, carriage returns and newlines are escaped, in properties : and , too."""
    given = ",".join(f"{name}={_escaped(safe(value), ':,')}" for name, value in properties.items() if value)
    return f"::{kind}{' ' if given else ''}{given}::{_escaped(chr(10).join(map(safe, lines)))}"


def _escaped(text: str, more: str = "") -> str:
    text = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    for character in more:
        text = text.replace(character, f"%{ord(character):02X}")
    return text
