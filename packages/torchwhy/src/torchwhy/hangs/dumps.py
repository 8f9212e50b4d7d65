"""The dumps of PyTorch's flight recorder, one file per rank: which collectives were called, and how far each came.

NCCL's watchdog writes them when a collective times out (`nccl_trace_rank_0`, TORCH_FR_DUMP_TEMP_FILE), as a pickle of
plain values; `torch._C._distributed_c10d._dump_fr_trace()` returns the same, `_dump_fr_trace_json()` JSON without
stacks. The format is that of torch/csrc/distributed/c10d/FlightRecorder.hpp, versions 2.0 to 2.10. No code of a file is
run.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from torchwhy.allocator.plain_values import dicts, frame_text, integer, plain
from torchwhy.allocator.unpickling import PickleError, unpickled
from torchwhy.errors import TraceError
from torchwhy.hangs.earlier_calls import without_earlier_calls
from torchwhy.schema import UNDECODABLE
from torchwhy.trace.meaning.frames import code_of
from torchwhy.wording import safe, shortened

__all__ = ["Call", "Dump", "Dumps", "dump_files", "load_dumps"]

LARGEST: Final = 256 << 20
"""Bytes of a dump that is read; PyTorch keeps 2,000 calls by default, some 2 MB."""

MOST_RANKS: Final = 65_536
"""Dumps of a folder that are read."""

LAST: Final = 24
"""Calls that are over, of each process group, that are kept: those near the hang."""

UNFINISHED: Final = 512
"""Calls of each process group that are not over, at most."""

_HEAD: Final = 1 << 15
_SIGNS: Final = (b"pg_status", b"nccl_comm_state", b"comm_lib_version", b"profiling_name", b"collective_seq_id")
"""Names that stand at the beginning of a dump; the order of its parts has changed with PyTorch's versions."""

_TRACE: Final = (b"traceEvents", b"schemaVersion", b"deviceProperties", b"distributedInfo")
"""Names at the beginning of a trace, which names process groups, too."""

_RANK: Final = re.compile(r"(?i)(?:rank[^0-9a-z]?(\d+)|(\d+))(?:\.(?:json|pickle|pkl|bin|dump))?$")
_FRAMES: Final = 64
_VERSION: Final = re.compile(r"2\.\d{1,4}$")
_TENSORS: Final = 512
"""At most this number of a call's tensors is compared by size and type."""


@dataclass(frozen=True)
class Call:
    """One call of a collective, or of send or recv.

    Attributes:
        group: name and description of its process group.
        number: its place among the group's collectives, or among its sends and recvs.
        name: what was called, without the library and the ranks, such as "all_reduce".
        peer: of send and recv, (from, to) within the group; None of collectives.
        input_sizes, output_sizes, types: of its tensors.
        state: "scheduled", "started" or "completed".
        done: whether it is over.
        seen_on_device: whether the recorder sees when it begins; with gloo it does not.
        created_ns: when it was called, by the rank's clock.
        timeout_ms: after which the watchdog ends the job.
        stack: Python frames, innermost first; () if the dump has no frames.
    """

    group: tuple[str, str]
    number: int
    name: str
    peer: tuple[int, int] | None
    input_sizes: str
    output_sizes: str
    types: str
    state: str
    done: bool
    seen_on_device: bool
    created_ns: int
    timeout_ms: int
    stack: tuple[str, ...]

    @property
    def line(self) -> str:
        """The program's line, as "train.py(34): step"; "" if the dump has no stacks."""
        own = {code_of(frame): frame for frame in reversed(self.stack)}  # the innermost of each
        return own.get("program", own.get("framework", ""))


@dataclass(frozen=True)
class Dump:
    """The recorded calls of one rank.

    Attributes:
        rank: of the job, by the file's name.
        file: its name.
        version: of the format.
        calls: the last ones of each group and all that are not over, in the order they were made.
        members: the ranks of each process group, by name and description; () where the dump doesn't say.
    """

    rank: int
    file: str
    version: str
    calls: tuple[Call, ...]
    members: dict[tuple[str, str], tuple[int, ...]]


@dataclass(frozen=True)
class Dumps:
    """Those of a job.

    Attributes:
        folder: where they are.
        ranks: the dumps by rank.
        unreadable: files that are no dumps, with the reason.
        version: of the format.
    """

    folder: str
    ranks: dict[int, Dump]
    unreadable: dict[str, str]
    version: str


def dump_files(path: Path) -> list[Path]:
    """Return the files at a path, or in a folder, that begin as dumps do; [] where there is no such file."""
    if path.is_file():
        return [path] if _is_dump(path) else []
    if not path.is_dir():
        return []
    files = sorted(one for one in path.iterdir() if one.is_file() and not one.name.startswith("."))
    if files and not any(map(_is_dump, files[:16])):  # most folders hold something else, and not every file is read
        return []
    return [one for one in files[:MOST_RANKS] if _is_dump(one)]


def load_dumps(path: Path) -> Dumps:
    """Read the dumps of a job, without running anything that a file may name.

    Raises:
        TraceError: nothing there is a dump, or no dump can be read.
    """
    files = dump_files(path)
    if not files:
        raise TraceError(f"{path} has no dumps of the flight recorder in it (such as nccl_trace_rank_0)")
    ranks: dict[int, Dump] = {}
    unreadable: dict[str, str] = {}
    versions: dict[str, None] = {}
    texts = _Texts()
    with _without_collector():
        for file in files:
            found = _dump(file, texts)
            if isinstance(found, Dump) and found.rank in ranks:
                found = f"{file.name} is of rank {found.rank}, as {ranks[found.rank].file} is"
            if isinstance(found, str):
                unreadable[file.name] = found
            else:
                ranks[found.rank] = found
                versions[found.version] = None
    if not ranks:
        reason = next(iter(unreadable.values()))
        raise TraceError(f"{path} has no dump of the flight recorder that can be read: {reason}")
    return Dumps(str(path), dict(sorted(ranks.items())), unreadable, ", ".join(versions))


@contextmanager
def _without_collector() -> Iterator[None]:
    """Keep Python from looking for circles among a million values without circles: three quarters of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _dump(file: Path, texts: _Texts) -> Dump | str:
    """Return a file's dump, or why it cannot be read."""
    try:
        rank, data = _rank_of(file), _bytes(file)
    except TraceError as error:
        return str(error)
    except OSError as error:
        return f"{file.name} cannot be read: {error.strerror or error}"
    recent = without_earlier_calls(data, LAST, UNFINISHED)
    if recent is not data:
        with suppress(TraceError):  # the whole file says where it is wrong
            return _read(file.name, rank, recent, texts)
    try:
        return _read(file.name, rank, data, texts)
    except TraceError as error:
        return f"{file.name} {error}"


def _read(name: str, rank: int, data: bytes, texts: _Texts) -> Dump:
    found = _content(data)
    try:
        return Dump(rank, name, texts.of(found["version"]), tuple(_calls(found, texts)), _members(found, texts))
    except TraceError as error:
        raise TraceError(f"is no dump of the flight recorder: {error}") from None


def _is_dump(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except OSError:
        return False
    if head[:1] == b"\x80":
        return any(sign in head for sign in (b"pg_config", *_SIGNS))
    return head[:1] == b"{" and any(sign in head for sign in _SIGNS) and not any(sign in head for sign in _TRACE)


def _rank_of(path: Path) -> int:
    found = _RANK.search(path.name)
    if found is None:
        raise TraceError(f"{path.name} doesn't name its rank: it must end in a number, as nccl_trace_rank_3 does")
    return int((found[1] or found[2])[:9])


def _bytes(path: Path) -> bytes:
    size = path.stat().st_size
    if size > LARGEST:
        raise TraceError(f"{path.name} has {size:,} bytes, dumps of up to {LARGEST:,} are read")
    return path.read_bytes()


def _content(data: bytes) -> dict[str, Any]:
    try:
        found = unpickled(data) if data[:1] == b"\x80" else msgspec.json.decode(data)
    except (PickleError, *UNDECODABLE) as error:
        raise TraceError(f"is no dump of the flight recorder: {error}") from None
    without = data[:1] == b"{"  # JSON leaves the list out where nothing was called
    if not isinstance(found, dict) or not isinstance(found.get("entries", [] if without else None), list):
        raise TraceError("is no dump of the flight recorder: it has no list of entries")
    version = found.get("version")
    if not (isinstance(version, str) and _VERSION.match(version)):
        has = f"format {shortened(safe(version[:99]), 20)}" if isinstance(version, str) else "no format"
        raise TraceError(f"has {has}; 2.0 and later minor versions are read")
    return found


class _Texts:
    """Texts and stacks of a job's dumps, each kept once: ranks call the same from the same lines."""

    def __init__(self) -> None:
        self._kept: dict[str, str] = {}
        self._stacks: dict[tuple[str, ...], tuple[str, ...]] = {}
        self._ranks: dict[str, tuple[int, ...]] = {}
        self._frames: dict[tuple[Any, ...], str] = {}

    def of(self, value: object) -> str:
        """A text; of anything else only numbers are shown: lists may hold each other without end."""
        text = value if isinstance(value, str) else plain(value)
        known = self._kept.get(text)
        if known is None:
            known = self._kept[text] = shortened(safe(text[:1000]), 120)
        return known

    def sizes(self, value: object) -> str:
        """Those of all tensors of a call, in full: they are compared."""
        text = f"[{', '.join(map(_size, _list(value)[:_TENSORS]))}]"
        return self._kept.setdefault(text, text)

    def ranks(self, value: object) -> tuple[int, ...]:
        """Those of a group, read once for all ranks that write the same."""
        if not isinstance(value, str):
            return _ranks(value)
        if value not in self._ranks:
            self._ranks[value] = _ranks(value)
        return self._ranks[value]

    def stack(self, frames: object) -> tuple[str, ...]:
        if not isinstance(frames, list):
            return ()
        found = tuple(map(self._frame, dicts(frames[:_FRAMES])))
        return self._stacks.setdefault(found, found)

    def _frame(self, frame: dict[str, Any]) -> str:
        key = (frame.get("filename"), frame.get("line"), frame.get("name"))
        try:
            known = self._frames.get(key)
        except TypeError:  # a name that is no text
            return self.of(frame_text(frame))
        if known is None:
            known = self._frames[key] = self.of(frame_text(frame))
        return known


def _calls(found: dict[str, Any], texts: _Texts) -> list[Call]:
    """The last calls of each group and all that are not over, in the order they were made."""
    kept: dict[tuple[object, object, bool], int] = {}
    calls: list[Call] = []
    entries = found.get("entries", [])
    for number, entry in reversed([*enumerate(entries)]):
        called, (name, desc) = _named(entry, number)
        # Only NCCL and similar libraries see when work begins and ends; of gloo's only its retirement says that it is
        # over.
        done = entry.get("state") == "completed" or (entry.get("retired") is True and called.startswith("gloo:"))
        key = (name, desc, done)
        kept[key] = kept.get(key, 0) + 1
        if kept[key] <= (LAST if done else UNFINISHED):
            calls.append(_call(entry, (texts.of(name), texts.of(desc)), called, done, texts))
    return calls[::-1]


def _named(entry: object, number: int) -> tuple[str, tuple[str, str]]:
    """The name of an entry's call, and its group; an error if the entry is not a call."""
    if isinstance(entry, dict):
        called, state, group = entry.get("profiling_name"), entry.get("state"), entry.get("process_group", ("", ""))
        if isinstance(called, str) and isinstance(state, str) and isinstance(group, list | tuple) and len(group) == 2:
            name, desc = group
            if isinstance(name, str) and isinstance(desc, str):
                return called, (name, desc)
    raise TraceError(f"entry {number:,} names no call with its state and group")


def _call(entry: dict[str, Any], group: tuple[str, str], called: str, done: bool, texts: _Texts) -> Call:
    library, _, named = called.partition(":")
    what, _, way = named.partition(" ")
    peer = _peer(what, way)
    return Call(
        group,
        _number(entry.get("p2p_seq_id" if peer else "collective_seq_id", entry.get("seq_id"))),
        texts.of(what or library),
        peer,
        texts.sizes(entry.get("input_sizes")),
        texts.sizes(entry.get("output_sizes")),
        texts.of(_types(entry)),
        texts.of(entry["state"]),
        done,
        library != "gloo",
        integer(entry.get("time_created_ns")),
        integer(entry.get("timeout_ms")),
        texts.stack(entry.get("frames")),
    )


def _types(entry: dict[str, Any]) -> str:
    kinds = [*_list(entry.get("input_dtypes")), *_list(entry.get("output_dtypes"))]
    return ", ".join(dict.fromkeys(kind for kind in kinds[:_TENSORS] if isinstance(kind, str)))


def _number(value: object) -> int:
    if not (isinstance(value, int) and 0 <= value < 1 << 63):
        raise TraceError("a call's number in its group is no number from 0 to 2^63")
    return value


def _size(value: object) -> str:
    """The size of a tensor; "?" for anything else."""
    known = isinstance(value, list | tuple) and all(isinstance(one, int) and abs(one) < 1 << 63 for one in value[:64])
    return f"[{', '.join(map(str, value[:64]))}]" if known and isinstance(value, list | tuple) else "?"


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _peer(what: str, way: str) -> tuple[int, int] | None:
    """From which to which of the group's ranks: "send 0->1", "recv 1<-0"; None of collectives."""
    if what not in ("send", "recv"):
        return None
    first, _, second = way.partition("->" if what == "send" else "<-")
    if not (first.isdecimal() and second.isdecimal() and len(way) < 24):
        return (-1, -1)
    return (int(first), int(second)) if what == "send" else (int(second), int(first))


def _members(found: dict[str, Any], texts: _Texts) -> dict[tuple[str, str], tuple[int, ...]]:
    config = found.get("pg_config")
    groups: dict[tuple[str, str], tuple[int, ...]] = {}
    for group in config.values() if isinstance(config, dict) else ():
        if not isinstance(group, dict):
            continue
        name = (texts.of(group.get("name", "")), texts.of(group.get("desc", "")))
        groups[name] = texts.ranks(group.get("ranks"))
    return groups


def _ranks(value: object) -> tuple[int, ...]:
    """The ranks of a group, which PyTorch writes as a text."""
    if isinstance(value, str):
        try:
            value = msgspec.json.decode(value.encode("utf-8", "replace"))
        except (msgspec.DecodeError, RecursionError):
            return ()
    return tuple(sorted({integer(one) for one in _list(value)[:MOST_RANKS] if isinstance(one, int)}))
