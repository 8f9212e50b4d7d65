"""Small files that unpack to gigabytes are refused with a sentence, early, and in little memory."""

import gzip
import io
import time
import tracemalloc
import zlib

import pytest
from scanners import both

from tests.traces import Story
from torchwhy.errors import TraceError
from torchwhy.trace.file import scanning
from torchwhy.trace.file.columns import ARGUMENTS
from torchwhy.trace.file.limits import LIMITS
from torchwhy.trace.file.scan_native import available, scan_native
from torchwhy.trace.file.scan_python import scan_python
from torchwhy.trace.file.scanning import scan

MB = 1 << 20
EVENT = b'{"ph": "X", "name": "a", "ts": 1, "dur": 1}'


class Bomb:
    """A gzip stream of a beginning and one piece over and over; counts the megabytes that were read of it."""

    def __init__(self, head, piece, megabytes):
        self._piece = piece * max(1, MB // len(piece))
        self._packer = zlib.compressobj(1, zlib.DEFLATED, 31)
        self._rest = self._packer.compress(head)
        self._left = megabytes
        self.megabytes = 0

    def read(self, size):
        if not self._rest and self._left:
            self._left -= 1
            self.megabytes += 1
            self._rest = self._packer.compress(self._piece)
            self._rest += self._packer.flush(zlib.Z_SYNC_FLUSH if self._left else zlib.Z_FINISH)
        data, self._rest = self._rest[:size], self._rest[size:]
        return data


BOMBS = {
    "blanks": (b"", b" ", "element"),
    "blanks in the list": (b'{"traceEvents": [' + EVENT, b" ", "element"),
    "commas": (b"[", b",", "element"),
    "a name": (b'{"traceEvents": [{"ph": "X", "name": "', b"x", "element"),
    "a name without an end, and events in it": (b'[{"ph": "X", "name": "', b'{\\"ph\\":', "element"),
    "arguments": (b'[{"ph": "X", "args": {', b'"a": 1, ', "element"),
    "arguments that are kept": (b'[{"ph": "X", "args": {', b'"stream": 1, "grid": [1, 2], ', "element"),
    "a number": (b'[{"ph": "X", "ts": ', b"9", "element"),
    "a number below the point": (b'[{"ph": "X", "ts": 1.', b"0", "element"),
    "a key": (b'[{"', b"k", "element"),
    "a value at the top level": (b'{"a": [', b"1, ", "element"),
    "keys at the top level": (b"{", b'"a": "%s", ' % (b"x" * 1000), "top"),
    "damage": (b'{"a" 5', b"x", "element"),
    "damage in the list": (b"[" + EVENT + b", :", b":", "element"),
    "lists": (b'[{"ph": "X", "args": {"a": ', b"[", "depth"),
    "objects": (b'[{"ph": "X", "args": {"grid": ', b'{"a":', "depth"),
    "events in events": (b"[", b'{"ph": [', "depth"),
    "lists at the top level": (b'{"a": ', b"[", "depth"),
}


@pytest.mark.parametrize("scanner", [scan_native, scan_python])
@pytest.mark.parametrize("bomb", BOMBS)
def test_a_bomb_is_refused_before_it_is_unpacked(bomb, scanner, monkeypatch):
    if scanner is scan_native and not available():
        pytest.skip("no native scanner")
    monkeypatch.setattr(scanning, "available", lambda: scanner is scan_native)
    head, piece, limit = BOMBS[bomb]
    limits = LIMITS._replace(element=MB, top=MB)
    file = Bomb(head, piece, megabytes=4000)
    with pytest.raises(TraceError) as raised:
        scan(file, limits=limits)
    message = str(raised.value)
    assert message.startswith("the open file cannot be read: ")
    assert f"the limit is {getattr(limits, limit):,}" in message
    assert file.megabytes <= 4


def test_the_scanner_in_python_holds_a_part_of_the_file_only():
    blank = b" " * 100_000
    tracemalloc.start()
    found = scan_python((b"[" + blank + EVENT if i == 0 else b"," + blank + EVENT for i in range(100)), ARGUMENTS)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(found.columns) == 100
    assert peak < 10 * len(blank)


def test_what_follows_the_json_is_not_kept():
    columns = scan(Bomb(b"[" + EVENT + b"]", b" ", megabytes=50))
    assert len(columns) == 1
    assert columns.size > 50 * MB


@pytest.mark.parametrize(
    ("limit", "value", "event", "place"),
    [
        ("text", 6, b'{"ph": "X", "name": "sixsix"}', 1),
        ("text", 6, b'{"ph": "X", "name": "\\u00e9\\u00e9\\u00e9"}', 1),
        ("text", 12, b'{"ph": "X", "args": {"grid": [1, 22, 333, 4]}}', 1),
        ("text", 7, b'{"ph": "X", "pid": 1234567}', 1),
        ("texts", 12, b'{"ph": "X", "name": "abcd"}, {"ph": "X", "cat": "efgh", "name": "ijkl"}', 28),
        ("depth", 4, b'{"ph": "X", "a": [[[]]]}, {"ph": "X", "a": [{"b": [[1]]}]}', 25),
        ("events", 3, b'{"ph": "X"}, {"ph": "X"}, {}, {"ph": "X"}', 29),
        ("element", 81, b'{"ph": "X"}, {"ph": "X", "a": "%s"}' % (b"x" * 66), 12),
    ],
)
def test_each_limit_says_what_was_found_and_where(limit, value, event, place):
    small = LIMITS._replace(element=80, depth=3, text=5, texts=10, events=2)
    assert both(b"[" + event + b"]", ARGUMENTS, limits=small) == (limit, value, place)


def test_what_is_within_the_limits_is_read():
    small = LIMITS._replace(element=60, depth=3, text=5, texts=10, events=2, top=16)
    data = (
        b'{"abcd": [[[1]]], "e": 1,\n"traceEvents": [{"ph": "X", "name": "%s", "a": [[[]]]}, {"ph": "X", "cat": "hi"}]}'
    )
    assert len(both(data % "é5é".encode(), limits=small).columns) == 2
    assert both(data.replace(b"1,", b'"efghij",') % b"", limits=small) == ("top", 20, 16)


def test_a_file_of_many_distinct_names_keeps_those():
    event = b'{"ph":"X","name":"%d","ts":%d}'
    data = b"[" + b",".join(event % (i, i) for i in range(300_000)) + b"]"
    assert len(scan(io.BytesIO(gzip.compress(data, 1))).texts) == 300_000


PATTERNS = ["x", "launch", "a<(b::", "data_", "1", "aten::", "a/", "a.py(1): ", "[(", "kernel ", "triton_", " ", "N1a"]


def test_names_as_long_as_allowed_are_explained_in_time():
    """Patterns that take time with the square of a name's length would need days for these."""
    story = Story()
    for i, piece in enumerate(PATTERNS):
        name = piece * (LIMITS.text // len(piece))
        story.note(name, 100 * i, 90)
        story.op(name, 100 * i, 80)
        story.kernel(name, 100 * i + 50, 20, launch_at=100 * i + 10, launch=name)
        story.kernel("void " + name[:-5], 100 * i + 70, 20, launch_at=100 * i + 20)
    began = time.process_time()
    trace = story.trace()
    assert len(trace.kernels()) == 2 * len(PATTERNS)
    trace.ops()
    trace.diagnose()
    assert time.process_time() - began < 60
