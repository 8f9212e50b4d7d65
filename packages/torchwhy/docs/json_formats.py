"""Writes the page of the JSON formats, and a JSON Schema of each, from the code that writes them.

Most answers are classes, whose fields are read. Others are plain values: their names are read from what a command
answers for a recorded trace.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import msgspec
from sphinx.application import Sphinx

from page_commands import working_copy
from reference_pages import before_reading, write
from tests.command_line import run_here
from torchwhy.schema import SCHEMA

FOLDER = Path(__file__).parent / "_generated" / "schemas"

CLASSES: Final = {
    "torchwhy.report.trace_report:TraceReport": "`torchwhy explain TRACE`; `findings.json` of a run",
    "torchwhy.report.job_report:JobReport": "`torchwhy explain FOLDER`, of several ranks",
    "torchwhy.report.runs_report:RunsReport": "`torchwhy explain FOLDER`, of several runs",
    "torchwhy.present.hang_explanation:HangReport": "`torchwhy explain FOLDER`, of flight-recorder dumps",
    "torchwhy.present.trace_table:TableData": "`torchwhy explain TRACE --table NAME`",
    "torchwhy.questions.about_findings:FindingAnswer": "`torchwhy finding TRACE ID`",
    "torchwhy.questions.about_findings:EvidenceAnswer": "`torchwhy evidence TRACE ID`",
    "torchwhy.questions.timeline:TimelineAnswer": "`torchwhy timeline TRACE`",
    "torchwhy.present.rule_pages:RuleData": "`torchwhy rule NAME`",
    "torchwhy.present.rule_pages:RuleList": "`torchwhy rule`",
    "torchwhy.present.memory_snapshot:SnapshotData": "`torchwhy memory SNAPSHOT`",
    "torchwhy.present.memory_changes:ChangesData": "`torchwhy memory BEFORE AFTER`",
    "torchwhy.tuning.document:TryAnswer": "`torchwhy try SCRIPT`",
    "torchwhy.cli.info:Answer": "`torchwhy info`",
    "torchwhy.capture.operators:OperatorsFile": "tables of operators in a run's folder",
    "torchwhy.capture.step_counts:FlopsFile": "`flops.json` in a run's folder",
    "torchwhy.attach.recording:ServerRunFile": "`run.json` in the folder of a server's run",
    "torchwhy.run_tables:MemoryFile": "`memory.json` in a run's folder",
}
"""Every class with a field `schema`, and who writes it; a test finds those that are missing."""

TRACE: Final = "training_step.json.gz"
ANSWERS: Final = {
    "torchwhy diff A B": ("diff", "slow.json.gz", "fast.json.gz"),
    "torchwhy gate RUN": ("gate", "counts.json", "--pyproject", "budgets.toml"),
    "torchwhy measure": ("measure", "1", "--max-time", "0.1"),
    "torchwhy history add": ("history", "add", "slow.json.gz", "--commit", "1a2b3c"),
    "torchwhy history check": ("history", "check"),
    "torchwhy cut": ("cut", TRACE, "-o", "cut.json.gz", "--window", "0-1000"),
    "torchwhy merge": ("merge", "eight_ranks", "-o", "all.json.gz"),
    "torchwhy export": ("export", TRACE, "--to", "speedscope", "-o", "stacks.json"),
}
"""Commands whose answers are plain values, and the question that is asked of each."""

HEAD: Final = f"""# JSON formats

Every command that answers takes `--format json`. Each answer is an object with `schema`, which is {SCHEMA}: the number
grows when a name disappears or changes its meaning, and not when one is added. Readers should ignore unknown names.
[The report as JSON](report-schema.md) explains the names of a report and their units.

Times end in `_us` and are microseconds, sizes end in `_bytes`, bandwidths in `_gb_s`. An answer about several traces is
`{{"schema": {SCHEMA}, "reports": [...]}}`.

This page is made from the code that writes the answers.

"""


def answers() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each command with plain values and what it answers."""
    with working_copy() as folder:
        for name, words in ANSWERS.items():
            ended = run_here(*words, "--format", "json", folder=folder)
            if ended.returncode not in (0, 1):
                raise RuntimeError(f"{' '.join(words)}: {ended.stderr}")
            yield name, json.loads(ended.stdout)


def class_at(place: str) -> type:
    """Return the class "module:name"."""
    module, _, name = place.partition(":")
    found: type = getattr(import_module(module), name)
    return found


def described(place: str) -> dict[str, Any]:
    """Return the JSON Schema of a class "module:name"."""
    return msgspec.json.schema(class_at(place))


def kind(schema: Mapping[str, Any], defined: Mapping[str, Any]) -> str:
    """Return what a value is, in words, with links to the objects in it.

    Args:
        schema: of the value.
        defined: schemas by name, which others refer to.
    """
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        is_object = "properties" in defined[name]
        return f"[{name}](#{name.lower()})" if is_object else kind(defined[name], defined)
    if "anyOf" in schema:
        return " or ".join(kind(each, defined) for each in schema["anyOf"])
    if "enum" in schema:
        return ", ".join(f"`{json.dumps(value)}`" for value in schema["enum"])
    named = {"string": "text", "integer": "integer", "number": "number", "boolean": "true or false", "null": "null"}
    if schema.get("type") == "array":
        items = schema.get("items") or schema.get("prefixItems")
        several = items if isinstance(items, list) else [items] if items else []
        inner = ", ".join(kind(each, defined) for each in several) or "any"
        return f"list of {inner}"
    if schema.get("type") == "object":
        values = schema.get("additionalProperties")
        return f"object, each value {kind(values, defined)}" if isinstance(values, dict) and values else "object"
    return named.get(schema.get("type", ""), "any value")


def tables(schema: Mapping[str, Any], seen: set[str]) -> Iterator[str]:
    """Yield a section for each object in a schema that was not shown before."""
    defined = schema.get("$defs", {})
    for name, each in defined.items():
        if name in seen or "properties" not in each:
            continue
        seen.add(name)
        rows = "".join(f"| `{field}` | {kind(value, defined)} |\n" for field, value in each["properties"].items())
        text = each.get("description", "").partition("\n")[0]
        yield f"### {name}\n\n{text}\n\n| name | holds |\n|---|---|\n{rows}\n"


def paths(value: Any, before: str = "") -> Iterator[tuple[str, str]]:
    """Yield the path of each name in plain values with what it holds; `[]` stands for any item of a list."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from paths(inner, f"{before}.{name}" if before else name)
    elif isinstance(value, list) and value and isinstance(value[0], (dict, list)):
        yield from paths(value[0], f"{before}[]")
    else:
        kinds = {bool: "true or false", int: "number", float: "number", str: "text", type(None): "null", dict: "object"}
        item = f"list of {kinds[type(value[0])]}s" if isinstance(value, list) and value else "list"
        yield before, kinds.get(type(value), item)


def page() -> str:
    """Return the page."""
    parts, seen = [HEAD, "## Objects\n\n| object | written by | JSON Schema |\n|---|---|---|\n"], set[str]()
    schemas = {place: described(place) for place in CLASSES}
    for place, schema in schemas.items():
        name = place.partition(":")[2]
        link = f'<a href="schemas/{name}.json">{name}.json</a>'
        parts.append(f"| {kind(schema, schema['$defs'])} | {CLASSES[place]} | {link} |\n")
    parts.append("\n")
    for schema in schemas.values():
        parts += tables(schema, seen)
    parts.append("## Answers of plain values\n\n`[]` stands for each item of a list.\n\n")
    for command, answer in answers():
        rows = "".join(f"| `{path}` | {what} |\n" for path, what in paths(answer))
        parts.append(f"### {command}\n\n| name | holds |\n|---|---|\n{rows}\n")
    return "".join(parts)


def _write_all(app: Sphinx) -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for place in CLASSES:
        text = json.dumps(described(place), indent=2)
        (FOLDER / f"{place.partition(':')[2]}.json").write_text(text + "\n", encoding="utf-8")
    write(Path(app.srcdir) / "json-formats.md", page())


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    before_reading(app, _write_all)
    return {"parallel_read_safe": True}
