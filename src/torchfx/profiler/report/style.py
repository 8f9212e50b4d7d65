"""How text is drawn: with or without colour, with or without more than ASCII."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from torchfx.profiler.wording import wrapped

__all__ = ["PLAIN", "Style"]

_CODES: Final = {"bold": "1", "dim": "2", "red": "1;31", "yellow": "33", "green": "32", "cyan": "36"}
_SEVERITIES: Final = {"high": "red", "medium": "yellow", "low": "cyan", "info": "dim"}
_EIGHTHS: Final = " ▏▎▍▌▋▊▉"
_ASCII: Final = {"\u00b7": "-", "\u2013": "-", "\u2026": "...", "\u00d7": "x", "\u00b5": "u", "\u2014": "-"}


@dataclass(frozen=True)
class Style:
    """How wide and with what.

    Attributes:
        width: columns.
        colour: whether the output understands ANSI's escapes.
        unicode: whether it can show more than ASCII.
    """

    width: int = 80
    colour: bool = False
    unicode: bool = False

    def paint(self, text: str, *looks: str) -> str:
        """Colour a text: "bold", "dim", a colour, or the name of a severity."""
        if not self.colour or not text:
            return text
        codes = ";".join(_CODES[_SEVERITIES.get(look, look)] for look in looks)
        return f"\x1b[{codes}m{text}\x1b[0m"

    def bar(self, share: float, width: int) -> str:
        """A bar for a fraction; what isn't nothing shows at least a sliver."""
        cells = min(max(share, 0.0), 1.0) * width
        if not self.unicode:
            full = round(cells)
            return "#" * max(full, 1 if share > 0.001 else 0)
        eighths = max(round(cells * 8), 1 if share > 0.001 else 0)
        return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()

    def plain(self, text: str) -> str:
        """Replace what the output cannot show, and control characters that would harm a terminal."""
        text = "".join(character if character.isprintable() or character == "\n" else "?" for character in text)
        if self.unicode:
            return text
        for fancy, simple in _ASCII.items():
            text = text.replace(fancy, simple)
        return text.encode("ascii", "replace").decode()

    def shorten(self, text: str, width: int) -> str:
        """Cut a long name in the middle, since its end often tells as much as its beginning; a template at its end."""
        dots = "…" if self.unicode else "..."
        if len(text) <= width or width <= len(dots) + 2:
            return text
        if "<" in text[:width] and not text.startswith(("<", "enumerate")):
            return text[: width - len(dots)] + dots
        head = (width - len(dots)) * 2 // 3
        return text[:head] + dots + text[len(text) - (width - len(dots) - head) :]

    def wrap(self, text: str, indent: int = 0) -> list[str]:
        """Break a text into lines at the width, but not between a number and its unit; colour comes afterwards."""
        return wrapped(text, max(self.width, 40), indent)

    def shorten_path(self, text: str, width: int) -> str:
        """Cut a long path at its beginning: the file's name and the function stay."""
        dots = "…" if self.unicode else "..."
        return text if len(text) <= width else dots + text[len(text) - width + len(dots) :]


PLAIN: Final = Style()
