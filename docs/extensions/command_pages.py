"""Writes the pages of a command line from the commands: what `--help` says of each.

A package's `conf.py` names its Typer application in `command_line`, as "module:attribute".
"""

from __future__ import annotations

from importlib import import_module
from inspect import cleandoc
from pathlib import Path
from typing import Any

import typer
from sphinx.application import Sphinx

from reference_pages import before_reading, write


def pages(application: typer.Typer) -> dict[str, str]:
    """Return the text of each page by its file's name: one for each command, and the index."""
    command = typer.main.get_command(application)
    texts, rows = {}, ""
    with command.make_context(command.name, ["--help"], resilient_parsing=True) as context:
        for name in command.list_commands(context):
            each = command.get_command(context, name)
            if each.hidden:
                continue
            rows += f"| [{name}]({name}.md) | {each.get_short_help_str(200)} |\n"
            texts[f"{name}.md"] = f"# {command.name} {name}\n\n{_help(each, f'{command.name} {name}')}"
    names = "".join(f"{path.removesuffix('.md')}\n" for path in texts)
    texts["index.md"] = (
        f"# The command {command.name}\n\n| command | description |\n|---|---|\n{rows}\n"
        f"```{{toctree}}\n:hidden:\n\n{names}```\n"
    )
    return texts


def _help(command: Any, name: str) -> str:
    """Return usage, description, arguments and options of a command as Markdown."""
    with command.make_context(name, ["--help"], resilient_parsing=True) as context:
        usage = command.get_usage(context).removeprefix("Usage: ")
        parts = [f"```text\n{usage}\n```\n\n{_prose(command.help or '', name)}\n\n"]
        rows = [record for each in command.params if (record := each.get_help_record(context)) is not None]
        arguments = [each for each in command.params if each.param_type_name == "argument"]
    described = {each.human_readable_name: (each.help or "") for each in arguments if getattr(each, "help", None)}
    if described:
        parts.append(_table("argument", described.items()))
    options = [row for row in rows if row[0].startswith("-")]
    if options:
        parts.append(_table("option", options))
    return "".join(parts)


def _prose(text: str, name: str) -> str:
    """Return a command's description; a paragraph is a block of code if each of its lines calls the command."""
    found = []
    for paragraph in cleandoc(text).split("\n\n"):
        example = all(f"{name} " in f"{line} " for line in paragraph.splitlines()) and not paragraph.endswith(".")
        found.append(f"```sh\n{paragraph}\n```" if example else _escaped(paragraph))
    return "\n\n".join(found)


def _table(title: str, rows: Any) -> str:
    body = "".join(f"| `{_cell(name)}` | {_cell(_escaped(text))} |\n" for name, text in rows)
    return f"| {title} | description |\n|---|---|\n{body}\n"


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


def _escaped(text: str) -> str:
    return text.replace("<", "&lt;").replace("*", "\\*").replace("[", "\\[")


def _write_all(app: Sphinx) -> None:
    module, _, attribute = app.config.command_line.partition(":")
    if module:
        for path, text in pages(getattr(import_module(module), attribute)).items():
            write(Path(app.srcdir) / "commands" / path, text)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.add_config_value("command_line", "", "env", str)
    before_reading(app, _write_all)
    return {"parallel_read_safe": True}
