"""`torchfx effects`."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

from torchfx.catalogue import Entry, available
from torchfx.cli.console import answer, check_format, complain, show_data, width
from torchfx.errors import ArgumentError
from torchfx.parameters import IGNORED_RATE, REQUIRED
from torchfx.spec import entry_of, example_text, signature_text

__all__ = ["Answer", "run"]

IN_MEMORY = "needs the whole file in memory"


@dataclass(frozen=True)
class Answer:
    """The output of `--format json`: by name, the parameters with their defaults, and the description."""

    schema: int
    effects: dict[str, dict[str, str]]


def run(name: str | None = None, form: str = "text") -> int:
    """Print what there is by families, or one filter or effect with its parameters; return 0, or 2 for misuse."""
    try:
        check_format(form)
        found = available() if name is None else {name.lower(): entry_of(name)}
    except ArgumentError as error:
        return complain(error, 2)
    if form == "json":
        show_data(Answer(1, {each: _data(entry) for each, entry in sorted(found.items())}))
    elif name is None:
        answer(_list(found))
    else:
        answer(_page(found[name.lower()]))
    return 0


def _data(entry: Entry) -> dict[str, str]:
    return {
        "parameters": signature_text(entry).partition(":")[2],
        "summary": entry.summary,
        "family": entry.family,
        "example": example_text(entry),
    }


def _list(entries: dict[str, Entry]) -> str:
    """Return all names under their families' headings; families of one stand under their package's."""
    families: dict[str, list[Entry]] = {}
    for entry in entries.values():
        families.setdefault(entry.family, []).append(entry)
    groups: dict[str, list[Entry]] = {}
    for family, members in families.items():
        package = members[0].module.rpartition(".")[2]
        groups.setdefault(family.rstrip(".") if len(members) > 1 else f"Other: {package}", []).extend(members)
    column = max(map(len, entries)) + 4
    blocks = [
        _wrapped(heading) + "".join(_row(each.name.lower(), _does(each), column) for each in sorted(members, key=_name))
        for heading, members in sorted(
            groups.items(), key=lambda item: (item[1][0].module, item[0].startswith("Other: "))
        )
    ]
    return "\n".join([*blocks, "torchfx effects NAME shows parameters, ranges and an example.\n"])


def _name(entry: Entry) -> str:
    return entry.name.lower()


def _does(entry: Entry) -> str:
    return f"{entry.summary} ({IN_MEMORY})" if entry.needs_memory else entry.summary


def _page(entry: Entry) -> str:
    """Return one filter or effect with its parameters, their defaults and ranges, and an example."""
    shown = [each for each in entry.declarations if each is not IGNORED_RATE]
    column = max((len(each.name) for each in shown), default=0) + 4
    rows = []
    for each in shown:
        default = "required" if each.default is REQUIRED else f"default {each.show(each.default)}"
        rows.append(_row(each.name, "; ".join(part for part in (default, each.documentation()) if part), column))
    parameters = ["parameters:\n", *rows, "\n"] if rows else []
    example = f"  torchfx process in.wav out.wav -e '{example_text(entry)}'\n"
    return "".join([_wrapped(f"{entry.name}: {_does(entry)}"), "\n", *parameters, "example:\n", example])


def _row(name: str, text: str, column: int) -> str:
    return _wrapped(text, f"  {name}".ljust(column), " " * column)


def _wrapped(text: str, first: str = "", others: str = "") -> str:
    return textwrap.fill(text, max(40, min(width(), 100)), initial_indent=first, subsequent_indent=others) + "\n"
