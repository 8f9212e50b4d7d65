"""Modules from text, as the command line takes them: `hibutterworth:cutoff=80,order=4`, `gain:-3dB`.

Names and parameters are read off the classes and their signatures, so a new filter or effect is here by itself.
"""

from __future__ import annotations

import difflib
import inspect
import re
import types
from collections.abc import Sequence
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from torchfx import effect, filter
from torchfx.errors import ArgumentError
from torchfx.processor import Processor

__all__ = ["available", "build", "signature_text"]

UNITS = {"": 1.0, "hz": 1.0, "khz": 1000.0}
WORDS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


def available() -> dict[str, type[Processor]]:
    """Return every filter and effect that can be built, by its name in lower case.

    Examples:
        >>> sorted(available())[:3]
        ['designablefir', 'fir', 'gain']
    """
    found = [getattr(module, name) for module in (filter, effect) for name in module.__all__]
    return {cls.__name__.lower(): cls for cls in found if issubclass(cls, Processor) and not _is_abstract(cls)}


def build(text: str) -> Processor:
    """Build a module from `name`, `name:value,...` or `name:parameter=value,...`.

    Frequencies may carry Hz or kHz, lists stand in brackets.

    Raises:
        ArgumentError: an unknown name or parameter, a value the parameter cannot take.

    Examples:
        >>> build("hibutterworth:cutoff=80,order=4")
        HiButterworth(cutoff=80, order=4)
        >>> build("designablefir:[300, 3.4kHz], 101, pass_zero=false")
        DesignableFIR(cutoff=[300.0, 3400.0], num_taps=101, pass_zero=False)
        >>> build("gain:-3dB")
        Gain(-3 dB)
    """
    name, _, rest = text.partition(":")
    cls = _find(name.strip().lower())
    hints = get_type_hints(cls.__init__)
    parameters = list(inspect.signature(cls).parameters)
    values: dict[str, Any] = {}
    for i, part in enumerate(_split(rest)):
        key, equals, value = part.partition("=")
        if not equals:
            if i >= len(parameters):
                raise ArgumentError(f"{signature_text(cls)} takes at most {len(parameters)} parameters, got {text!r}")
            key, value = parameters[i], part
        key = key.strip()
        if key not in parameters:
            raise ArgumentError(f"{cls.__name__} has no parameter {key!r}; it is {signature_text(cls)}")
        if key in values:
            raise ArgumentError(f"{key} is given twice in {text!r}")
        values[key] = _value(key, value.strip(), hints[key])
    try:
        inspect.signature(cls).bind(**values)
    except TypeError as error:
        raise ArgumentError(f"{signature_text(cls)}: {error}") from error
    return cls(**values)


def signature_text(cls: type[Processor]) -> str:
    """Return a class's parameters as the command line takes them, with their defaults."""
    parts = []
    for name, parameter in inspect.signature(cls).parameters.items():
        required = parameter.default is inspect.Parameter.empty
        parts.append(name if required else f"{name}={_shown(parameter.default)}")
    return f"{cls.__name__.lower()}:{','.join(parts)}" if parts else cls.__name__.lower()


def _find(name: str) -> type[Processor]:
    known = available()
    if name in known:
        return known[name]
    close = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    raise ArgumentError(f"there is no filter or effect {name!r}; {hint}available: {', '.join(sorted(known))}")


def _is_abstract(cls: type) -> bool:
    return any(getattr(getattr(cls, name), "__isabstractmethod__", False) for name in dir(cls))


def _split(text: str) -> list[str]:
    """Split at commas outside of brackets."""
    if text.count("[") != text.count("]"):
        raise ArgumentError(f"brackets must come in pairs, got {text!r}")
    parts = re.findall(r"(?:\[[^\]]*\]|[^,\[])+", text)
    return [part.strip() for part in parts if part.strip()]


def _value(name: str, text: str, hint: Any) -> Any:
    """Read a value as one of the types the parameter's annotation allows."""
    kinds = _alternatives(hint)
    for kind in kinds:
        value = _read(text, kind)
        if value is not None:
            return value
    if type(None) in kinds and text.lower() == "none":
        return None
    allowed = ", ".join(dict.fromkeys(_described(kind) for kind in kinds if _described(kind)))
    raise ArgumentError(f"{name} must be {allowed}, got {text!r}")


def _alternatives(hint: Any) -> list[Any]:
    if get_origin(hint) in (Union, types.UnionType):
        return [kind for part in get_args(hint) for kind in _alternatives(part)]
    return [hint]


def _read(text: str, kind: Any) -> Any:
    if kind is bool:
        return WORDS.get(text.lower())
    if kind is int:
        return int(text) if re.fullmatch(r"[+-]?\d+", text) else None
    if kind is float:
        return _number(text)
    if kind is str:
        return text
    if get_origin(kind) is Literal:
        return text if text in get_args(kind) else None
    if get_origin(kind) is not None and issubclass(get_origin(kind), Sequence) and re.fullmatch(r"\[.*\]", text):
        numbers = [_number(part) for part in _split(text[1:-1])]
        return None if None in numbers else numbers
    return None


def _number(text: str) -> float | None:
    match = re.fullmatch(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*([a-zA-Z]*)", text)
    if match is None or match[2].lower() not in UNITS:
        return None
    number = float(match[1]) * UNITS[match[2].lower()]
    return int(number) if number.is_integer() and "." not in match[1] else number


def _described(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return "one of " + "/".join(map(str, get_args(kind)))
    names = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}
    if kind in names:
        return names[kind]
    is_sequence = get_origin(kind) is not None and issubclass(get_origin(kind), Sequence)
    return "a list such as [300,3000]" if is_sequence else ""


def _shown(default: object) -> str:
    return str(default).lower() if isinstance(default, bool) else str(default)
