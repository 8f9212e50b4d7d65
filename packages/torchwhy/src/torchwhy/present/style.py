"""How text is drawn: how wide, with or without colour, with or without more than ASCII."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from torchwhy.trace.meaning.annotations import DATALOADER
from torchwhy.wording import safe, wrapped

__all__ = ["IN_A_FILE", "PLAIN", "Style"]

_CODES: Final = {"bold": "1", "dim": "2", "red": "1;31", "yellow": "33", "green": "32", "cyan": "36"}
_LOOKS: Final = {
    **{"high": "red", "medium": "yellow", "low": "cyan", "info": "dim"},
    **{"strong": "bold", "good": "green", "warning": "yellow", "bad": "red"},
}
_EIGHTHS: Final = " ▏▎▍▌▋▊▉"
_ASCII: Final = str.maketrans(
    {"\u00b7": "-", "\u2013": "-", "\u2026": "...", "\u00d7": "x", "\u00b5": "u", "\u2014": "-"}
)


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
        """Colour a text: "bold", "dim", a colour, a look of a document, or the name of a severity."""
        if not self.colour or not text or not any(looks):
            return text
        codes = ";".join(_CODES[_LOOKS.get(look, look)] for look in looks if look)
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
        """Return text on one line, safe to print, without what the output cannot show."""
        text = safe(text)
        return text if self.unicode else text.translate(_ASCII).encode("ascii", "replace").decode()

    def shorten(self, text: str, width: int) -> str:
        """Cut a long name in the middle, since its end often says as much as its beginning; a template at its end."""
        dots = self._dots
        if len(text) <= width or width <= len(dots) + 2:
            return text
        if "<" in text[:width] and not (text.startswith("<") or DATALOADER.names(text)):
            return text[: width - len(dots)] + dots
        head = (width - len(dots)) * 2 // 3
        return text[:head] + dots + text[len(text) - (width - len(dots) - head) :]

    def shorten_path(self, text: str, width: int) -> str:
        """Cut a long path at its beginning: the file's name and the function stay."""
        dots = self._dots
        return text if len(text) <= width else dots + text[len(text) - width + len(dots) :]

    def shorten_pair(self, a: str, b: str, width: int) -> tuple[str, str]:
        """Cut two names so that one sees where they differ.

        >>> Style().shorten_pair("gemm_with_a_rather_long_name_128x64_nn", "gemm_with_a_rather_long_name_64x64_nn", 24)
        ('gemm_with_a..._128x64_nn', 'gemm_with_a..._64x64_nn')
        """
        common = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
        if a == b or common < width // 2:
            return self.shorten(a, width), self.shorten(b, width)
        dots = self._dots
        head = width // 2 - 1
        start = max(min(common - 1, max(len(a), len(b)) - (width - head - len(dots))), head)
        cut = [
            name if len(name) <= width else name[:head] + dots + name[start : start + width - head - len(dots)]
            for name in (a, b)
        ]
        return cut[0], cut[1]

    def wrap(self, text: str, indent: int = 0) -> list[str]:
        """Break a text into lines at the width, but not between a number and its unit; colour comes afterwards."""
        return wrapped(text, max(self.width, 40), indent)

    @property
    def _dots(self) -> str:
        return "…" if self.unicode else "..."


PLAIN: Final = Style()
IN_A_FILE: Final = Style(width=100, unicode=True)
"""The style of text that is written to a file."""
