"""The bytes of a dump without the calls that are too old to be compared: reading all takes more than twice as long.

PyTorch writes each text of a dump once; later calls refer to it. So most calls have the same keys in the same order and
hold only numbers and references, and one compiled pattern finds them, with the references of their group and state.
They can be left out, since nothing refers into them. Everything between them is kept. The rest is then checked and read
like any pickle (`allocator/unpickling`): nothing here decides what is safe to read. If the rest cannot be read,
`dumps` reads the whole file.

Of gloo's calls, only their retirement says that they are over, which is not read here: more of them are kept.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

__all__ = ["without_earlier_calls"]

# The standard library's `pickletools` lists the instructions.
_REF: Final = rb"(?:h.|j.{4})"
_PUT: Final = rb"(?:q.|r.{4})?"
_NUMBER: Final = rb"(?:K.|M..|N|[\x88\x89]|J.{4}|\x8a\x08.{8}|G.{8})"
_DICT: Final = rb"\}" + _PUT + rb"\("


def _list_of(item: bytes) -> bytes:
    return rb"\]" + _PUT + rb"(?:\((?:" + item + rb")*e|(?:" + item + rb")a|(?=[hjue\]]))"  # an empty one ends at once


_FORMS: Final = (
    _REF + _REF + rb"\x86" + _PUT,  # two texts: name and description of the group
    _REF,
    _NUMBER,
    _list_of(rb"h.|" + _list_of(_NUMBER) + rb"|j.{4}|" + _NUMBER),  # frames, sizes, types
)
_GROUP: Final = 0
_ITEM: Final = re.compile(rb"(" + _REF + rb")(?:(" + rb")|(".join(_FORMS) + rb"))", re.DOTALL)
_CALL: Final = re.compile(_DICT + rb"(?:" + _REF + rb"(?:" + rb"|".join(_FORMS) + rb")){8,}u", re.DOTALL)
"""A call without new texts. It has some 20 keys; a frame of a stack has 3."""

_BEGIN: Final = re.compile(_DICT, re.DOTALL)
_TEXTS: Final = ("state", "profiling_name")
"""Keys whose values must be texts, as `dumps` requires."""


def without_earlier_calls(data: bytes, last: int, unfinished: int) -> bytes:
    """Return a dump without calls that come before the last ones of their group.

    Args:
        data: a pickle that PyTorch wrote; one of another form is returned as it is.
        last: the number of calls that are over to keep at least, of each group.
        unfinished: the number of other calls to keep at least, of each group and state.
    """
    first = _CALL.search(data)
    begin = _BEGIN.match(data, first.start()) if first is not None else None
    if first is None or begin is None:
        return data
    items = _ITEM.findall(data, begin.end(), first.end())
    keys = tuple((key, next(i for i, value in enumerate(values) if value)) for key, *values in items)
    state, called = (_reference(data, name) for name in _TEXTS)
    form = _form(keys, state, called)
    if form.groups != 3:  # the call, its group, its state
        return data
    done = _reference(data, "completed")
    parts = form.split(data[first.start() :])  # what is between two calls, then the three groups, ...
    room: dict[tuple[bytes, bytes], int] = {}
    for at in range(len(parts) - 4, 0, -4):
        kind = parts[at + 1], parts[at + 2]
        room[kind] = left = room.get(kind, last if kind[1] == done else unfinished) - 1
        if left < 0:
            parts[at] = b""
        parts[at + 1] = parts[at + 2] = b""
    return data[: first.start()] + b"".join(parts)


@lru_cache(64)
def _form(keys: tuple[tuple[bytes, int], ...], state: bytes, called: bytes) -> re.Pattern[bytes]:
    """A pattern of the calls with these keys; ranks of a job mostly share it, since compiling takes a millisecond."""
    items = b""
    for key, form in keys:
        value = _REF if key in (state, called) else _FORMS[form]
        if key == state:
            value = rb"(" + value + rb")"
        elif form == _GROUP:
            value = rb"(" + _REF + _REF + rb")" + value.removeprefix(_REF + _REF)
        items += re.escape(key) + value
    return re.compile(rb"(" + _DICT + items + rb"u)", re.DOTALL)


def _reference(data: bytes, text: str) -> bytes:
    """The instruction that refers to a text; b"" if the text is not there or not remembered."""
    written = b"X" + len(text).to_bytes(4, "little") + text.encode()
    end = data.find(written) + len(written)
    put = data[end : end + 1] if end >= len(written) else b""
    return b"h" + data[end + 1 : end + 2] if put == b"q" else b"j" + data[end + 1 : end + 5] if put == b"r" else b""
