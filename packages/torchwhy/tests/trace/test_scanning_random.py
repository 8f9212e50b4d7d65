"""The scanners on random files: what is written is read, and no damage makes them disagree or fail."""

import io
import json
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scanners import argument, assert_same, both, names, outcome, pieces, text

from torchwhy.errors import TraceError
from torchwhy.trace.file.columns import ABSENT
from torchwhy.trace.file.limits import Limits
from torchwhy.trace.file.scan_python import scan_python
from torchwhy.trace.file.scanning import scan

KEYS = {"correlation": "int", "blocks per SM": "float", "Input Dims": "text"}

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
integers = st.integers(-(2**63) + 1, 2**63 - 1)
floats = st.floats(allow_nan=False, allow_infinity=False)
times = st.integers(-(2**62), 2**62)
values = st.recursive(
    st.none() | st.booleans() | integers | floats | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
arguments = st.fixed_dictionaries(
    {},
    optional={
        "correlation": integers,
        "blocks per SM": floats,
        "Input Dims": st.lists(st.lists(integers, max_size=3), max_size=3) | texts,
        "not kept": values,
    },
)
events = st.fixed_dictionaries(
    {"ph": st.sampled_from("XMisfC")},
    optional={
        "name": texts,
        "cat": texts,
        "pid": integers | texts,
        "tid": integers | texts,
        "ts": times,
        "dur": times,
        "id": integers,
        "args": arguments,
        "s": values,
    },
)


def microseconds(nanoseconds):
    return format(Decimal(nanoseconds).scaleb(-3), "f")


def as_json(events, draw):
    """The events' text: keys in any order, any indentation, characters escaped or not."""
    marks = {}
    shuffled = []
    for event in events:
        event = dict(draw(st.permutations(list(event.items()))))
        for key in {"ts", "dur"} & set(event):
            mark = f"@{len(marks)}@"
            marks[f'"{mark}"'] = microseconds(event[key])
            event[key] = mark
        shuffled.append(event)
    written = json.dumps(
        draw(
            st.sampled_from(
                [{"traceEvents": shuffled}, {"a": {"traceEvents": [0]}, "traceEvents": shuffled, "b": "]}"}, shuffled]
            )
        ),
        indent=draw(st.sampled_from([None, 0, 2])),
        ensure_ascii=draw(st.booleans()),
        separators=draw(st.sampled_from([(",", ":"), (", ", ": "), (" ,\r\n", "\t: ")])),
    )
    for mark, number in marks.items():
        written = written.replace(mark, number)
    return written.encode()


@settings(max_examples=5 * settings().max_examples)
@given(st.lists(events, max_size=6), st.data())
def test_what_is_written_is_read(events, data):
    written = as_json(events, data.draw)
    columns = both(written, KEYS, sizes=(data.draw(st.integers(1, 50)), 1 << 20)).columns
    assert [chr(phase) for phase in columns.phase] == [event["ph"] for event in events]
    for key, found in (("ts", columns.ts), ("dur", columns.dur)):
        assert found.tolist() == [event.get(key, ABSENT) for event in events]
    assert columns.flow.tolist() == [event.get("id", ABSENT) if event["ph"] in "sf" else ABSENT for event in events]
    assert names(columns) == [event.get("name") for event in events]
    for key, found in (("cat", columns.category), ("pid", columns.pid), ("tid", columns.tid)):
        assert [text(columns, index) for index in found] == [
            None if key not in event else str(event[key]) for event in events
        ]
    for key in ("correlation", "blocks per SM", "Input Dims"):
        expected = {row: event["args"][key] for row, event in enumerate(events) if key in event.get("args", {})}
        if key == "Input Dims":
            expected = {
                row: value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
                for row, value in expected.items()
            }
        assert argument(columns, key) == expected
    assert len(set(columns.texts)) == len(columns.texts)
    if isinstance(whole := json.loads(written), dict):
        assert {key: json.loads(value) for key, value in columns.top.items()} == {
            key: value for key, value in whole.items() if key != "traceEvents"
        }


SAMPLE = rb"""{
  "schemaVersion": 1, "traceName": "a]b}c", "metadata": {"traceEvents": [1, {"a": "b"}]},
  "traceEvents": [
  {
    "ph": "X", "cat": "cpu_op", "name": "h\u00e9 \ud83d\ude00 \ud800", "pid": 12, "tid": "stream 7",
    "ts": 1672876799191768.123, "dur": 1.5,
    "args": {"correlation": 3, "Input Dims": [[2, 3], [], {"k": "\"w\""}], "blocks per SM": 0.25, "o": {"a": [1, "x"]}}
  },
  {"ph": "f", "id": 42, "pid": -1, "tid": 1, "ts": 7e3, "cat": "ac2g", "name": "ac2g", "bp": "e"},
  {"ph": "X", "name": "say "hi", now", "ts": NaN, "args": {"correlation": "0x1f", "Input Dims": "C:\new\q", }},,
  {"name": "M", "ph": "M", "args": {"name": "thread 1 (python)"}},
  {"ph": "X", "name": "last", "ts": 1, "args": {"not kept": "a "b" c"}}
  ],
  "deviceProperties": [{"id": 0, "name": "GPU"}]
}
"""
PIECES = [
    *(bytes([byte]) for byte in b'"\\{}[],:\x01\xff-0'),
    *(
        b"}]",
        b'"}',
        b'\\"',
        b'{"ph":',
        b'}, {"name":',
        b'"traceEvents":[',
        b"\\ud800",
        b"NaN",
        b"e99",
        b"\xe2\x82",
        b", ,",
    ),
]
changes = st.lists(
    st.tuples(
        st.integers(0, len(SAMPLE)),
        st.integers(0, 40),
        st.sampled_from(PIECES) | st.binary(max_size=3) | st.sampled_from([b""]),
    ),
    min_size=1,
    max_size=5,
)


def mangled(data, changes):
    for place, count, piece in changes:
        data = data[:place] + piece + data[place + count :]
    return data


def test_every_truncation_is_survived():
    before = 0
    for length in range(len(SAMPLE) + 1):
        columns = both(SAMPLE[:length], KEYS, sizes=(50,)).columns
        assert len(columns) >= before
        before = len(columns)
    assert before == 5


@settings(max_examples=5 * settings().max_examples)
@given(changes, st.integers(1, 60))
def test_the_scanners_agree_on_mangled_files(changes, size):
    both(mangled(SAMPLE, changes), KEYS, sizes=(size, 1 << 20))


limits = st.builds(
    Limits,
    element=st.integers(20, 900),
    depth=st.integers(1, 4),
    text=st.integers(3, 60),
    texts=st.integers(20, 300),
    top=st.integers(20, 200),
    events=st.integers(1, 6),
)


@settings(max_examples=5 * settings().max_examples)
@given(changes | st.just([]), limits, st.integers(1, 60))
def test_the_scanners_agree_on_what_is_too_large(changes, limits, size):
    data = mangled(SAMPLE, changes)
    expected = both(data, KEYS, sizes=(size, 1 << 20), limits=limits)
    assert_same(outcome(scan_python, pieces(data, size), KEYS, limits), expected)


@settings(max_examples=5 * settings().max_examples)
@given(changes)
def test_a_mangled_file_is_read_or_refused(changes):
    try:
        columns = scan(io.BytesIO(mangled(SAMPLE, changes)), KEYS)
    except TraceError as error:
        assert "\n" not in str(error)  # noqa: PT017
    else:
        assert len(columns.offset) == len(columns.ts)


@settings(max_examples=5 * settings().max_examples)
@given(st.binary(max_size=60))
def test_bytes_of_no_meaning(data):
    both(data, KEYS)
    both(b'{"traceEvents":[' + data, KEYS)


@pytest.mark.parametrize("place", range(300, 1000, 7))
def test_one_wrong_byte_costs_at_most_two_events(place):
    """The one it is in, and where it joins two of them the next."""
    for byte in b'"{}[],:x\\':
        columns = both(SAMPLE[:place] + bytes([byte]) + SAMPLE[place + 1 :], KEYS, sizes=(1 << 20,)).columns
        assert len(columns) >= 3, (place, chr(byte))
