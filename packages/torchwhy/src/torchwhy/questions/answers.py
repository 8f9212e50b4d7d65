"""A question of the catalogue, answered: the document that commands and tools render."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from torchwhy.diffing import diff as difference
from torchwhy.errors import ArgumentError, ArgumentTypeError
from torchwhy.present.comparison import comparison
from torchwhy.present.document import Document
from torchwhy.questions.about_findings import evidence, finding
from torchwhy.questions.catalogue import QUESTIONS, Question
from torchwhy.questions.opening import OpenTrace, Recording, Recordings, one_run, trace_of
from torchwhy.questions.tables import table_document
from torchwhy.questions.timeline import timeline
from torchwhy.rules.settings import chosen

__all__ = ["answered", "checked"]


def answered(question: Question, given: Mapping[str, Any], recordings: Recordings) -> Document:
    """Return the answer to a question.

    Args:
        question: of `QUESTIONS`.
        given: a value for each of its parameters; those that are missing have their defaults.
        recordings: which are open.

    Raises:
        ArgumentError, ArgumentTypeError: a value is missing, of the wrong kind, or makes no sense.
        TraceError: a recording cannot be read.
    """
    values = checked(question, given)
    if question.name == "diff":
        before, after = (one_run(recordings.open(values[name]), "diff") for name in ("before", "after"))
        return _diff(before, after)
    opened = recordings.open(values.pop("trace"), values.pop("steps"), values.pop("capture"))
    if question.name == "explain":
        return opened.explained
    document: Document = _ANSWERS[question.name](one_run(opened, question.name), **values)
    return document


def checked(question: Question, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return a value for each parameter of a question.

    Raises:
        ArgumentError: one is missing or unknown, or a number is below 1.
        ArgumentTypeError: one is of the wrong kind.
    """
    known = {one.name: one for one in question.parameters}
    for name in given:
        if name not in known:
            raise ArgumentError(f"{question.name} has the arguments {', '.join(known)}, got {name[:40]!r}")
    values: dict[str, Any] = {}
    for name, parameter in known.items():
        value = given.get(name)
        if value is None and parameter.needed:
            raise ArgumentError(f"{question.name} needs {name}: {parameter.help}")
        value = parameter.default if value is None else value
        if value is not None and type(value) is not parameter.kind:
            raise ArgumentTypeError(f"{name} must be of type {parameter.kind.__name__}, got {type(value).__name__}")
        if type(value) is int and value < 1:
            raise ArgumentError(f"{name} must be 1 or more, got {value}")
        values[name] = value
    return values


def _table(opened: Recording, name: str, sort: str | None, limit: int, by_shape: bool) -> Document:
    return table_document(trace_of(opened, "table").trace, name, sort=sort, limit=limit, by_shape=by_shape)


def _diff(before: Recording, after: Recording) -> Document:
    rules, thresholds = chosen(after.settings), after.settings.thresholds
    if isinstance(before, OpenTrace) and isinstance(after, OpenTrace):
        return comparison(difference(before.trace, after.trace, rules=rules, thresholds=thresholds))
    a, b = (one.trace if isinstance(one, OpenTrace) else one.job for one in (before, after))
    return comparison(difference(a, b, rules=rules, thresholds=thresholds))


_ANSWERS: Final[Mapping[str, Any]] = {
    "table": _table,
    "finding": finding,
    "evidence": evidence,
    "timeline": timeline,
}

assert {one.name for one in QUESTIONS} == {*_ANSWERS, "explain", "diff"}
