"""Write the tables of docs/from-torchaudio.md: each public name of torchaudio 2.11, and what to import instead.

python tools/torchaudio_names.py
"""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import torchfx
import torchfx.compat.torchaudio as compat
from torchfx.compat.torchaudio import elsewhere

PAGE = Path(__file__).parents[1] / "docs" / "from-torchaudio.md"
START, END = "<!-- names -->\n", "<!-- end of names -->\n"
HOMES = (torchfx.spectral, torchfx.filter, torchfx.effect, torchfx.augment, torchfx.functional)


def home(name: str) -> str:
    """Return where the library has the same, for chains and streams or with SciPy's arguments."""
    plain = name.replace("_", "").lower()
    found = (
        f"`{module.__name__}.{own}`"
        for module in HOMES
        for own in module.__all__
        if own.replace("_", "").lower() == plain
    )
    return next(found, "")


def table(title: str, module: ModuleType, missing: dict[str, str]) -> str:
    """Return a heading and the table of a module's names."""
    rows = [f"| `{name}` | the same name | {home(name)} |" for name in module.__all__]
    rows += [f"| `{name}` | {where} | |" for name, where in missing.items()]
    head = f"### `{title}`\n\n| torchaudio | instead | the library's own |\n|---|---|---|\n"
    return head + "\n".join(sorted(rows, key=str.lower)) + "\n"


def tables() -> str:
    """Return all tables."""
    return "\n".join(
        table(title, module, dict(missing))
        for title, module, missing in (
            ("torchaudio", compat, elsewhere.PACKAGE),
            ("torchaudio.transforms", compat.transforms, elsewhere.TRANSFORMS),
            ("torchaudio.functional", compat.functional, elsewhere.FUNCTIONAL),
            ("torchaudio.compliance.kaldi", compat.compliance.kaldi, {}),
        )
    )


def page(text: str) -> str:
    """Return the page with its tables made again."""
    before, rest = text.split(START)
    return f"{before}{START}\n{tables()}\n{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
