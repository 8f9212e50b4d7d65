"""The data of a document as JSON."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import msgspec

from torchwhy.present.document import Document
from torchwhy.present.options import Options
from torchwhy.schema import SCHEMA

__all__ = ["encoded", "render"]

_STEERING: Final = re.compile("[\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]")
"""Characters that JSON allows and a terminal or viewer obeys: C1, and characters of direction or without width."""


def render(documents: Sequence[Document], options: Options) -> str:
    """Return the data of one document as it is, those of several as {"schema": SCHEMA, "reports": [...]}."""
    if len(documents) == 1:
        return encoded(documents[0].data)
    return encoded({"schema": SCHEMA, "reports": [document.data for document in documents]})


def encoded(value: object) -> str:
    """Return indented JSON in which every steering character is an escape; it reads back to the same value."""
    text = msgspec.json.format(msgspec.json.encode(value)).decode()
    return _STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", text) + "\n"
