"""The whole page: static HTML, timelines, style and scripts in one file that fetches nothing."""

from __future__ import annotations

import base64
import hashlib
import html
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Final

from torchwhy.errors import ArgumentError
from torchwhy.page.size import blocks_within
from torchwhy.page.timeline import Timeline
from torchwhy.wording import safe, size_text

__all__ = ["MAX_SIZE", "joined_modules", "page"]

MAX_SIZE: Final = 8_000_000
"""Bytes of a page by default."""

_IMPORT: Final = re.compile(r'^import \{[^}]*\} from "\./([\w-]+\.js)";\n', re.M)
_EXPORT: Final = re.compile(r"^export (?=(?:async )?(?:function|class|const|let)\b)", re.M)
_TOP: Final = re.compile(r"^(?:export )?(?:async )?(?:function\*?|class|const|let) +([\w$]+)", re.M)
_COMMENT: Final = re.compile(r"^[ \t]*(?:/\*\*(?:(?!\*/).)*\*/|//[^\n]*)[ \t]*\n", re.M | re.S)
"""A comment that has its lines to itself."""
_LEFT: Final = re.compile(r"^\s*(?:import|export)\b.*", re.M)


def page(body: str, title: str, timelines: Sequence[Timeline] = (), *, max_size: int = MAX_SIZE) -> str:
    """Return a page as the text of a UTF-8 file. The same input gives the same text.

    Args:
        body: the static part, HTML whose foreign texts are escaped. A timeline is drawn into `<div id="stage">`, of
            several the first into `<div id="stage-0">`.
        title: of the page, plain text.
        timelines: what to draw.
        max_size: bytes of the file; timelines get coarser until they fit.

    Raises:
        ArgumentError: what can't be left out alone is larger than `max_size`.
    """
    script, style = _script(), _style()
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )
    head = (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width">\n'
        f"<title>{html.escape(safe(title))}</title>\n<style>{style}</style>\n</head>\n<body>\n{body}\n"
    )
    end = f'<script type="module">{script}</script>\n</body>\n</html>\n'
    room = max_size - len((head + end).encode()) - sum(len(_block_element(i, "")) for i in range(len(timelines)))
    fitting = blocks_within(timelines, room * 3 // 4 - 3 * len(timelines))
    blocks = [base64.b64encode(block).decode() for block in fitting]
    missing = sum(map(len, blocks)) - room
    if missing > 0:
        raise ArgumentError(
            f"max_size must be at least {size_text(max_size + missing)}, what this page has without any event of its "
            f"timelines; got {size_text(max_size)}"
        )
    elements = [_block_element(i, block) for i, block in enumerate(blocks)]
    return "".join([head, *elements, end])


def _block_element(number: int, data: str) -> str:
    return f'<script type="text/plain" id="timeline-{number}">{data}</script>\n'


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@cache
def _script() -> str:
    return joined_modules(_web(".js"), "main.js")


@cache
def _style() -> str:
    return "\n" + "".join(text for _, text in sorted(_web(".css").items()))


def _web(suffix: str) -> dict[str, str]:
    folder = files("torchwhy") / "web"
    return {one.name: one.read_text(encoding="utf-8") for one in folder.iterdir() if one.name.endswith(suffix)}


def joined_modules(modules: Mapping[str, str], entry: str) -> str:
    """Return ES modules as one script: each after those it imports, without imports, exports and comments.

    Args:
        modules: the text of each file. Imports are `import { a, b } from "./file.js";`, exports stand before a
            declaration, and no two modules declare the same name at their top.
        entry: the file that imports the others.

    Raises:
        ValueError: modules import each other in a circle, declare one name twice, or import or export in another form.
    """
    done: list[str] = []
    owner: dict[str, str] = {}
    parts: list[str] = []

    def visit(name: str, above: tuple[str, ...]) -> None:
        if name in above:
            raise ValueError(f"modules import each other: {' imports '.join((*above, name))}")
        if name in done:
            return
        for needed in _IMPORT.findall(modules[name]):
            visit(needed, (*above, name))
        text = _COMMENT.sub("", _EXPORT.sub("", _IMPORT.sub("", modules[name])))
        if other := _LEFT.search(text):
            raise ValueError(f"{name}: {other.group().strip()!r} is another form of import or export")
        for declared in _TOP.findall(modules[name]):
            if owner.setdefault(declared, name) != name:
                raise ValueError(f"{owner[declared]} and {name} both declare {declared}")
        done.append(name)
        parts.append(f"// {name}\n{text}")

    visit(entry, ())
    return "\n".join(parts)
