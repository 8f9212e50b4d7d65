"""The questions as tools of a server: what each is called with, which files it may see, errors as answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from torchwhy.errors import ArgumentError, ArgumentTypeError, TorchWhyError
from torchwhy.plugins import in_a_line
from torchwhy.present.agent import quoted
from torchwhy.present.budget import FEWEST_TOKENS, checked_tokens, cut_to
from torchwhy.present.formats import render
from torchwhy.present.options import Options
from torchwhy.questions.answers import answered
from torchwhy.questions.catalogue import QUESTIONS, Parameter, Question
from torchwhy.questions.opening import Recordings

__all__ = ["Tools", "schema"]

_JSON: Final = {str: "string", int: "integer", bool: "boolean"}

_TOKENS: Final = Parameter("tokens", "The answer takes no more than this.", int, default=Options.tokens)


class Tools:
    """The answers of a server, without its protocol. It only reads.

    Args:
        folders: in which recordings may lie; nothing else is read.
        recordings: those kept open.
    """

    def __init__(self, folders: Sequence[Path], recordings: Recordings | None = None) -> None:
        self._folders = tuple(folder.resolve() for folder in folders)
        self._recordings = Recordings(keep=False) if recordings is None else recordings

    def call(self, name: str, arguments: Mapping[str, Any]) -> tuple[str, bool]:
        """Return a tool's answer and whether it is an error; nothing is raised, whatever is asked."""
        tokens = FEWEST_TOKENS
        try:
            given = dict(arguments)
            tokens = _tokens(given.pop("tokens", None))
            question = _called(name)
            for parameter in question.parameters:
                if parameter.recording and isinstance(given.get(parameter.name), str):
                    given[parameter.name] = self._inside(parameter.name, given[parameter.name])
            document = answered(question, given, self._recordings)
            return render(document, "agent", Options(tokens=tokens, tool=True)), False
        except (TorchWhyError, OSError) as error:
            said = str(error)
        except Exception as error:  # noqa: BLE001
            # Whatever it is, the agent learns it, and the next question has a server to go to.
            said = in_a_line(error)
        return cut_to(f"error: {quoted(said)}", tokens), True

    def _inside(self, name: str, path: str) -> str:
        """The path of a recording within the folders; relative ones are looked for in each, then in the current folder.

        Raises:
            ArgumentError: it lies elsewhere, in it is a link to elsewhere, or it isn't there.
        """
        if "\0" in path:
            raise ArgumentError(f"{name} must be a path, got {path[:200]!r}")
        for folder, beside in ((folder, beside) for beside in (None, Path.cwd()) for folder in self._folders):
            found = ((beside or folder) / path).resolve()  # absolute paths stay; links are followed before looking
            if found.is_relative_to(folder) and found.exists():
                links = (each for each in found.rglob("*") if each.is_symlink()) if found.is_dir() else ()
                if all(link.resolve().is_relative_to(folder) for link in links):
                    return str(found)
        folders = ", ".join(map(str, self._folders))
        raise ArgumentError(f"{name} must be a file or folder in {folders}; got {path[:200]!r}")


def _tokens(given: object) -> int:
    if given is None:
        return Options.tokens
    if type(given) is not int:
        raise ArgumentTypeError(f"tokens must be a whole number, got {type(given).__name__}")
    return checked_tokens(given)


def _called(name: str) -> Question:
    for one in QUESTIONS:
        if one.name == name:
            return one
    raise ArgumentError(f"there is no tool {name[:40]!r}; there are {', '.join(one.name for one in QUESTIONS)}")


def schema(question: Question) -> dict[str, Any]:
    """Return the JSON schema of a tool's arguments."""
    parameters = (*question.parameters, _TOKENS)
    return {
        "type": "object",
        "properties": {one.name: _property(one) for one in parameters},
        "required": [one.name for one in parameters if one.needed],
        "additionalProperties": False,
    }


def _property(one: Parameter) -> dict[str, Any]:
    least = {"minimum": FEWEST_TOKENS if one is _TOKENS else 1} if one.kind is int else {}
    default = {} if one.default is None else {"default": one.default}
    return {"type": _JSON[one.kind], "description": one.help, **least, **default}
