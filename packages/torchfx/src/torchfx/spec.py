"""Modules from text, as the command line takes them: `hibutterworth:cutoff=80,order=4`, `gain:-3dB`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torchfx.catalogue import Entry, available, named
from torchfx.errors import ArgumentError
from torchfx.other_names import close_to, lookup, meant
from torchfx.parameters import REQUIRED, accepted

if TYPE_CHECKING:
    from torchfx.core.processor import Processor

__all__ = ["build", "entry_of", "example_text", "signature_text"]


def build(text: str) -> Processor:
    """Build a module from `name`, `name:value,...` or `name:parameter=value,...`.

    Values may have units, as in Python: 1.5kHz, 5ms, -3dB. Lists are in brackets, matrices in double brackets:
    `channelmatrix:[[1,0],[0.5,0.5]]`.

    Raises:
        ArgumentError: an unknown name or parameter, or an invalid value.

    Examples:
        >>> build("hibutterworth:cutoff=80,order=4")
        HiButterworth(cutoff=80, order=4)
        >>> build("designablefir:[300, 3.4kHz], 101, pass_zero=false")
        DesignableFIR(cutoff=[300, 3400], num_taps=101, pass_zero=False)
        >>> build("gain:-3dB")
        Gain(-3 dB)
    """
    name, _, rest = text.partition(":")
    entry = entry_of(name)
    declared, values = accepted(entry.declarations), {}
    names = [declaration.name for declaration in entry.declarations]
    for i, part in enumerate(_split(rest)):
        key, equals, value = part.partition("=")
        if not equals:
            if i >= len(names):
                raise ArgumentError(f"{signature_text(entry)} takes at most {len(names)} parameters, got {text!r}")
            key, value = names[i], part
        key = key.strip()
        if key not in declared:
            close = meant(key, declared)
            hint = f"; did you mean {close!r}?" if close else ""
            raise ArgumentError(f"{entry.name} has no parameter {key!r}; it is {signature_text(entry)}{hint}")
        if key in values:
            raise ArgumentError(f"{key} is given twice in {text!r}")
        values[key] = value.strip() if declared[key].has_unit else declared[key].parse(value.strip())
    try:
        entry.signature().bind(**values)
    except TypeError as error:
        raise ArgumentError(f"{signature_text(entry)}: {error}") from error
    made: Processor = entry.load()(**values)
    return made


def signature_text(entry: Entry) -> str:
    """Return a class's parameters as the command line takes them, with their defaults."""
    parts = [
        each.name if each.default is REQUIRED else f"{each.name}={_shown(each.default)}" for each in entry.declarations
    ]
    return f"{entry.name.lower()}:{','.join(parts)}" if parts else entry.name.lower()


def example_text(entry: Entry) -> str:
    """Return a text that builds a processor: its name, and values that it needs, or without which it does nothing."""
    given, positional = [], True
    for each in entry.declarations:
        value = each.example() if each.default is REQUIRED else each.typical
        if value:
            given.append(value if positional else f"{each.name}={value}")
        positional = positional and bool(value)
    return f"{entry.name.lower()}:{','.join(given)}" if given else entry.name.lower()


def entry_of(name: str) -> Entry:
    """Return the filter or effect of a name; letter case does not matter.

    Raises:
        ArgumentError: the name is unknown.
    """
    name = name.strip().lower()
    entry = named(name)
    if entry is not None:
        return entry
    others = [path.rpartition(".")[2].lower() for path in lookup(name) if path.startswith(("filter.", "effect."))]
    close = close_to(name, available())
    likely = others or ([close] if close else [])
    hint = f"did you mean {' or '.join(map(repr, likely))}?" if likely else "see torchfx effects"
    raise ArgumentError(f"there is no filter or effect {name!r}; {hint}")


def _split(text: str) -> list[str]:
    """Split at commas outside of brackets, which may stand within each other."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "[") - (letter == "]")
        if depth < 0:
            break
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    if depth != 0:
        raise ArgumentError(f"brackets must come in pairs, got {text!r}")
    return [part.strip() for part in parts if part.strip()]


def _shown(default: Any) -> str:
    return str(default).lower() if isinstance(default, bool) else str(default)
