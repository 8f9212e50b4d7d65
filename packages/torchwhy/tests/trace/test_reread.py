"""Arguments that were not kept are read again from where their events begin."""

import gzip
import io
import json

import numpy as np

from torchwhy.trace.file.reread import read_arguments
from torchwhy.trace.file.scanning import scan

EVENTS = [
    {
        "ph": "X",
        "name": str(number),
        "ts": number,
        "args": {"n": number, "list": [1, {"a": None}], "text": "é" * number},
    }
    for number in range(300)
]


def offsets_of(data):
    return scan(io.BytesIO(data)).offset


def test_arguments_in_any_order():
    data = json.dumps({"a": 1, "traceEvents": EVENTS}, indent=1).encode()
    offsets = offsets_of(data)
    for wanted in (np.arange(300), np.array([250, 3, 3, 100]), np.array([], np.int64)):
        for packed in (data, gzip.compress(data)):
            assert read_arguments(io.BytesIO(packed), offsets[wanted]) == [EVENTS[i]["args"] for i in wanted]


def test_events_longer_than_a_chunk():
    events = [{"ph": "X", "args": {"text": "x" * 3_000_000}}, {"ph": "X", "args": {"b": 2}}]
    data = json.dumps(events).encode()
    assert read_arguments(io.BytesIO(data), offsets_of(data)) == [event["args"] for event in events]


def test_damaged_events():
    data = (
        b'[{"ph": "X", "args": {"a": "say "hi" now", "b": NaN, "c": 1,}}, {"ph": "X"}, {"ph": "X", "args": null},'
        b'{"ph": "X", "args": {"d": "\\x", "e": ' + b"[" * 490 + b"]" * 490 + b'}}, {"ph": "X", "args": {"f": 1'
    )
    found = read_arguments(io.BytesIO(data), offsets_of(data))
    assert found[:3] == [{"a": 'say "hi" now', "b": None, "c": 1}, {}, {}]
    assert found[3] == {"d": "\\x", "e": json.loads("[" * 490 + "]" * 490)}
    assert len(found) == 4


def test_where_no_event_begins():
    data = b'[{"ph": "X", "args": {"a": 1}}, {"ph": "X" 5}]'
    wanted = np.array([0, 2, data.index(b'{"ph": "X" 5'), len(data) - 1, 10**6])
    assert read_arguments(io.BytesIO(data), wanted) == [{}] * 5
