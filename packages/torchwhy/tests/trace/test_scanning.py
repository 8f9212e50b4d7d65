"""The scanners on files a person can check, whole ones and damaged ones."""

import io
import json

import pytest
from scanners import argument, both, columns_of, names, text

from torchwhy.errors import ArgumentError, TraceError
from torchwhy.trace.file.columns import ABSENT, ARGUMENTS, Repairs
from torchwhy.trace.file.scanning import scan

GOOD = b'{"ph": "X", "name": "good", "ts": 5, "dur": 1}'


def trace(*events, before=b"", after=b""):
    """A trace of the given texts of events."""
    return b'{"schemaVersion": 1, ' + before + b'"traceEvents": [\n  ' + b",\n  ".join(events) + b"\n]" + after + b"}"


def among_good(event):
    """The columns of a trace with an odd event between two good ones."""
    return columns_of(trace(GOOD, event, GOOD))


# Whole files


def test_every_field_of_an_event():
    data = trace(
        b'{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 12.345, "dur": 1.5, "args": {'
        b'"correlation": 42, "stream": 7, "grid": [1, 2, 3], "blocks per SM": 0.25, "dtype": "float", "x": {"a": 1}}}',
        b'{"ph": "f", "cat": "ac2g", "name": "ac2g", "id": 42, "pid": "Spans", "tid": "stream 7", "ts": 12, "bp": "e"}',
    )
    columns = columns_of(data)
    assert bytes(columns.phase) == b"Xf"
    assert columns.ts.tolist() == [12345, 12000]
    assert columns.dur.tolist() == [1500, ABSENT]
    assert columns.flow.tolist() == [ABSENT, 42]
    assert names(columns) == ["gemm", "ac2g"]
    assert [text(columns, i) for i in columns.category] == ["kernel", "ac2g"]
    assert [text(columns, i) for i in columns.pid] == ["0", "Spans"]
    assert [text(columns, i) for i in columns.tid] == ["7", "stream 7"]
    assert columns.offset.tolist() == [data.index(b'{"ph": "X"'), data.index(b'{"ph": "f"')]
    assert argument(columns, "correlation") == {0: 42}
    assert argument(columns, "grid") == {0: "[1,2,3]"}
    assert argument(columns, "blocks per SM") == {0: 0.25}
    assert argument(columns, "dtype") == {0: "float"}
    assert argument(columns, "Addr") == {}
    assert columns.size == len(data)
    assert columns.top == {"schemaVersion": "1"}
    assert columns.repairs == Repairs()


def test_what_an_event_lacks_is_absent():
    columns = columns_of(trace(b'{"args": {}}', b'{"ph": "", "name": null, "ts": null, "pid": null}'))
    assert columns.phase.tolist() == [0, 0]
    assert columns.ts.tolist() == columns.dur.tolist() == columns.flow.tolist() == [ABSENT, ABSENT]
    for column in (columns.name, columns.category, columns.pid, columns.tid):
        assert column.tolist() == [-1, -1]
    assert columns.repairs == Repairs()


def test_top_level_values_are_kept_as_json_wherever_they_stand():
    data = trace(
        GOOD, before=b'"a": {"traceEvents": [1, {"ph": "X"}]}, "traceName": "x]}[{\\"",', after=b', "z": [ 1 , "\\n" ]'
    )
    columns = columns_of(data)
    assert len(columns) == 1
    assert {key: json.loads(value) for key, value in columns.top.items()} == {
        "schemaVersion": 1,
        "a": {"traceEvents": [1, {"ph": "X"}]},
        "traceName": 'x]}[{"',
        "z": [1, "\n"],
    }
    assert columns.top["z"] == '[1,"\\u000a"]'


def test_a_bare_list():
    columns = columns_of(b"[" + GOOD + b", " + GOOD + b"]")
    assert len(columns) == 2
    assert columns.repairs == Repairs(bare_list=True)


def test_empty_objects_among_the_events_are_none():
    columns = columns_of(trace(GOOD, b"{}", b"{ }"))
    assert len(columns) == 1
    assert columns.repairs == Repairs()


def test_no_events():
    assert len(scan(io.BytesIO(trace()))) == 0
    assert len(scan(io.BytesIO(b'{"traceEvents": null}'))) == 0


def test_the_last_of_two_equal_keys_wins():
    columns = columns_of(
        trace(b'{"ph": "B", "ph": "X", "ts": 1, "ts": 2, "args": {"stream": 1}, "args": {"device": 1, "device": 2}}')
    )
    assert bytes(columns.phase) == b"X"
    assert columns.ts.tolist() == [2000]
    assert argument(columns, "stream") == {}
    assert argument(columns, "device") == {0: 2}


def test_only_the_arguments_asked_for_are_kept():
    columns = columns_of(trace(b'{"ph": "X", "args": {"a": 1, "b": "2", "c": {"a": 5}}}'), {"b": "float"})
    assert list(columns.arguments) == ["b"]
    assert argument(columns, "b") == {0: 2.0}
    with pytest.raises(ArgumentError, match="'int', 'float', 'text', got 'double'"):
        scan(io.BytesIO(b"{}"), {"a": "double"})


# Numbers


@pytest.mark.parametrize(
    ("written", "nanoseconds"),
    [
        ("0", 0),
        ("-0", 0),
        ("1", 1000),
        ("-1.5", -1500),
        ("0.001", 1),
        ("1672876799191768", 1672876799191768000),
        ("1672876799191768.123", 1672876799191768123),
        ("1.672876799191768e15", 1672876799191768000),
        ("1.7E+15", 1700000000000000000),
        ("12e-3", 12),
        ("0.0004", 0),
        ("0.0005", 1),
        ("-0.0005", -1),
        ("0.00049999999999999999999999", 0),
        ("1.2345", 1235),
        ("9223372036854775.807", 2**63 - 1),
        ("-9223372036854775.807", -(2**63) + 1),
        ("0.000000000000000000000000001e30", 1000000),
        ("0e99999999999999999999", 0),
        ("1e-99999999999999999999", 0),
        ('"12.5"', 12500),
        ("5" + "0" * 50 + "e-50", 5000),
    ],
)
def test_times_are_exact(written, nanoseconds):
    columns = columns_of(trace(b'{"ph": "X", "ts": %s}' % written.encode()))
    assert columns.ts.tolist() == [nanoseconds]
    assert columns.repairs == Repairs()


@pytest.mark.parametrize(
    "written", ["9223372036854775.808", "1e16", "1e99999999999999999999", '"abc"', '""', "[1]", "{}", '" 1"']
)
def test_times_that_are_none_are_absent_and_counted(written):
    columns = columns_of(trace(b'{"ph": "X", "ts": %s, "dur": 1}' % written.encode()))
    assert columns.ts.tolist() == [ABSENT]
    assert columns.dur.tolist() == [1000]
    assert columns.repairs == Repairs(not_numbers=1)


@pytest.mark.parametrize(
    "word",
    ["NaN", "Infinity", "-Infinity", "N/A", "nan", "-nan(ind)", "inf", "None", "01", "1.", ".5", "+1", "0x10", ""],
)
def test_bare_words_for_numbers(word):
    columns = among_good(
        b'{"ph": "X", "name": "odd", "ts": 1, "dur": %s, "args": {"queued": %s}}' % (2 * (word.encode(),))
    )
    assert names(columns) == ["good", "odd", "good"]
    assert columns.dur[1] == ABSENT
    assert columns.repairs == Repairs(not_numbers=2)


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("7", 7), ("-1", -1), ("4294967295", 4294967295), ("3.0", 3), ("1e3", 1000), ('"12"', 12), ('"0x1F"', 31),
        ("true", 1), ("false", 0), ("9223372036854775807", 2**63 - 1),
        ("3.5", None), ("null", None), ('"0/0"', None), ("9223372036854775808", None), ("[1]", None), ("{}", None),
        ('"0x8000000000000000"', None), ('"0x"', None), ('"12 "', None), ("1e-400", None),
    ],
)  # fmt: skip
def test_arguments_that_are_whole_numbers(written, value):
    columns = columns_of(trace(b'{"ph": "X", "args": {"stream": %s}}' % written.encode()))
    assert argument(columns, "stream") == ({} if value is None else {0: value})
    assert columns.repairs == Repairs()


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("7", 7.0), ("-0.1", -0.1), ("1e22", 1e22), ("1.797693134862315e308", 1.797693134862315e308),
        ('"0.25"', 0.25), ('"inf"', float("inf")), ('"-Infinity"', float("-inf")), ("true", 1.0), ("0.0e5", 0.0),
        ("5e-324", 5e-324),
        ('"nan"', None), ("null", None), ("1e999", None), ("1e-999", None), ('"1.5 "', None), ("[1]", None),
        ('"0x1"', None),
    ],
)  # fmt: skip
def test_arguments_that_are_real_numbers(written, value):
    columns = columns_of(trace(b'{"ph": "X", "args": {"blocks per SM": %s}}' % written.encode()))
    assert argument(columns, "blocks per SM") == ({} if value is None else {0: value})
    assert columns.repairs == Repairs()


def test_a_bare_infinity_is_kept_and_counted():
    columns = columns_of(trace(b'{"ph": "X", "args": {"blocks per SM": Infinity, "est. achieved occupancy %": NaN}}'))
    assert argument(columns, "blocks per SM") == {0: float("inf")}
    assert argument(columns, "est. achieved occupancy %") == {}
    assert columns.repairs == Repairs(not_numbers=2)


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ('"a"', "a"), ('""', ""), ("1.50", "1.50"), ("true", "true"), ("null", None), ("[ 1 ,[ ] , {} ]", "[1,[],{}]"),
        ('{"a" : "x y" , "b":[null,-1e5]}', '{"a":"x y","b":[null,-1e5]}'), ('["\\u00e9\\/"]', '["\u00e9/"]'),
    ],
)  # fmt: skip
def test_arguments_that_are_texts(written, value):
    columns = columns_of(trace(b'{"ph": "X", "args": {"Input Dims": %s}}' % written.encode()))
    assert argument(columns, "Input Dims") == ({} if value is None else {0: value})
    assert columns.repairs == Repairs()


@pytest.mark.parametrize(("written", "flow"), [("5", 5), ('"5"', 5), ('"0x12"', 18), ('"a"', ABSENT), ("[]", ABSENT)])
def test_ids_of_flows(written, flow):
    columns = columns_of(
        trace(b'{"id": %s, "ph": "s"}' % written.encode(), b'{"id": %s, "ph": "b"}' % written.encode())
    )
    assert columns.flow.tolist() == [flow, ABSENT]
    assert columns.repairs == Repairs()


# Texts


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (rb"\"\\\/\b\f\n\r\t", '"\\/\b\f\n\r\t'),
        (rb"\u00e9\u20AC\ud83d\ude00\u0000", "é€😀\0"),
        ("é€😀".encode(), "é€😀"),
        (rb"\ud83d \ude00 \ud83d\u0041", "\ufffd \ufffd \ufffdA"),
        (rb"C:\Windows\x\u12\q", "C:\\Windows\\x\\u12\\q"),
        (b"]}[{,:", "]}[{,:"),
    ],
)
def test_escapes(written, meant):
    columns = columns_of(trace(b'{"ph": "X", "name": "%s", "args": {"Input Dims": ["%s"]}}' % (written, written)))
    assert names(columns) == [meant]
    assert json.loads(argument(columns, "Input Dims")[0]) == [meant]
    assert columns.repairs == Repairs()


def test_control_characters_in_strings():
    columns = among_good(b'{"ph": "X", "name": "a\nb\x00\t", "args": {"x": "\x01", "Input Dims": ["\x1f"]}}')
    assert names(columns)[1] == "a\nb\0\t"
    assert argument(columns, "Input Dims") == {1: '["\\u001f"]'}
    assert columns.repairs == Repairs(control_characters=3)


@pytest.mark.parametrize(
    "raw",
    [
        b"\xff",
        b"\xe2\x82",
        b"\xe2\x82x",
        b"\xc0\xaf",
        b"\xed\xa0\x80",
        b"\xf4\x90\x80\x80",
        b"\xf0\x9f\x98",
        b"\x80\x80",
        b"\xe0\x80\xaf",
    ],
)
def test_invalid_utf8_is_replaced_as_python_does(raw):
    columns = among_good(
        b'{"ph": "X", "name": "a%sb\\n", "cat": "%s", "args": {"Input Dims": ["%s"], "x": "%s"}}' % (4 * (raw,))
    )
    assert names(columns)[1] == f"a{raw.decode('utf-8', 'replace')}b\n"
    assert text(columns, columns.category[1]) == raw.decode("utf-8", "replace")
    assert argument(columns, "Input Dims") == {1: f'["{raw.decode("utf-8", "replace")}"]'}
    assert columns.repairs == Repairs(invalid_utf8=4)


def test_every_sequence_of_bytes_is_replaced_as_python_does(rng):
    for _ in range(300):
        raw = bytes(
            rng.choice([0x41, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC2, 0xE0, 0xE2, 0xED, 0xF0, 0xF4, 0xF5], 8).tolist()
        )
        assert names(columns_of(trace(b'{"ph": "X", "name": "%s"}' % raw), sizes=(1 << 20,))) == [
            raw.decode("utf-8", "replace")
        ]


@pytest.mark.parametrize(
    ("written", "meant", "quotes"),
    [
        (b'say "hi" now', 'say "hi" now', 2),
        (b'"all"', '"all"', 2),
        (b'foo", bar', 'foo", bar', 1),
        (b'f("a", "b")', 'f("a", "b")', 4),
        (b'{"a": 1}', '{"a": 1}', 2),
        (b'{"a": "b"}', '{"a": "b"}', 4),
        (b'["x", "y"]', '["x", "y"]', 4),
        (b'at end"', 'at end"', 1),
    ],
)
@pytest.mark.parametrize("key", [b"Call stack", b"not kept"])
def test_unescaped_quotes_in_arguments(written, meant, quotes, key):
    columns = among_good(
        b'{"ph": "X", "name": "odd", "args": {"stream": 1, "%s": "%s", "device": 2}, "ts": 3}' % (key, written)
    )
    assert names(columns) == ["good", "odd", "good"]
    assert argument(columns, "stream") == {1: 1}
    assert argument(columns, "device") == {1: 2}
    assert columns.ts.tolist() == [5000, 3000, 5000]
    assert argument(columns, "Call stack") == ({1: meant} if key == b"Call stack" else {})
    assert columns.repairs == Repairs(unescaped_quotes=quotes)


@pytest.mark.parametrize(
    "event", [b'{"ph": "X", "name": "foo", bar", "ts": 1}', b'{"ph": "X", "ts": 1, "args": {"name": "foo", bar"}}']
)
def test_an_unescaped_quote_before_a_comma(event):
    columns = among_good(event)
    assert len(columns) == 3
    assert 'foo", bar' in columns.texts
    assert columns.ts.tolist() == [5000, 1000, 5000]


def test_unescaped_quotes_in_a_list():
    columns = among_good(b'{"ph": "X", "args": {"Input Dims": ["a "b" c", "d"], "stream": 1}}')
    assert json.loads(argument(columns, "Input Dims")[1]) == ['a "b" c', "d"]
    assert argument(columns, "stream") == {1: 1}


def test_a_path_that_ends_with_a_backslash():
    columns = among_good(b'{"ph": "X", "name": "odd", "args": {"Call stack": "C:\\dir\\", "stream": 1}}')
    assert argument(columns, "Call stack") == {1: "C:\\dir\\"}
    assert argument(columns, "stream") == {1: 1}
    assert columns.repairs == Repairs(unescaped_quotes=1)


# Form


def test_stray_commas():
    columns = columns_of(
        b'{,"traceEvents": [, {"ph": "X", "args": {"grid": [1, 2,], "stream": 1,, "device": 2, },},, ' + GOOD + b",], }"
    )
    assert len(columns) == 2
    assert argument(columns, "grid") == {0: "[1,2]"}
    assert argument(columns, "stream") == {0: 1}
    assert argument(columns, "device") == {0: 2}
    assert columns.repairs == Repairs(stray_commas=9)


def test_a_missing_comma_between_events():
    assert names(columns_of(b'{"traceEvents": [' + GOOD + b"\n" + GOOD + b"]}")) == ["good", "good"]


@pytest.mark.parametrize(
    "damaged",
    [
        b'{"ph": "X", "name": "lost", "args": {"stream": 1 "device": 2}}',
        b'{"ph": "X", "name": "lost", "args": {"stream" 1}}',
        b'{"ph": "X", "name": "lost, "ts": 1}',
        b'{"ph": "X", "name": "lost", "args": {"grid": [1, 2}}',
        b'{"ph": "X", "name": "lost", "args": {"stream": 1}',
        b'{"ph": "X", "name": lost\x80}',
        b'"ph": "X", "name": "lost"}',
        b"null",
        b'"text"',
        b"[1, [2]]",
        b":",
    ],
)
def test_a_damaged_event_costs_no_other(damaged):
    columns = among_good(damaged)
    assert names(columns) == ["good", "good"]
    assert columns.repairs == Repairs(damaged_events=1)


@pytest.mark.parametrize("last", [b'{"ph": "X", "name" 1}', b'{"ph": "X", "name": "a}', b"#"])
def test_a_damaged_event_at_the_end(last):
    columns = columns_of(trace(GOOD, last, after=b', "traceName": "x"'))
    assert names(columns) == ["good"]
    assert columns.top["traceName"] == '"x"'
    assert columns.repairs.damaged_events == 1 or last == b"#"


def test_events_with_their_keys_in_another_order_are_found_again():
    good = b'{"name": "good", "ph": "X", "ts": 5}'
    columns = columns_of(trace(good, b'{"name": "lost", "ph": 5 6}', good))
    assert names(columns) == ["good", "good"]
    assert columns.repairs == Repairs(damaged_events=1)


def test_a_file_cut_at_any_byte_keeps_what_is_complete():
    event = b'{"ph": "X", "name": "a \\"b\\" \xc3\xa9", "ts": 1.5, "args": {"grid": [1, 2], "Call stack": "x]}"}}'
    data = trace(event, event, event, after=b', "traceName": "x"')
    ends = [i + len(event) for i in range(len(data)) if data.startswith(event, i)]
    for length in range(len(data)):
        columns = columns_of(data[:length])
        assert len(columns) == sum(end <= length for end in ends)
        assert columns.repairs == Repairs(truncated=True)
    assert not columns_of(data).repairs.truncated


def test_garbage_behind_the_end():
    columns = columns_of(trace(GOOD) + b"\n\x00\x00garbage } ] {")
    assert len(columns) == 1
    assert columns.repairs == Repairs()


@pytest.mark.parametrize("broken", [b'"a": "C:\\dir\\",', b'"a": "say "hi" now",', b'"a": {"b" 1},', b'"a" 1,'])
def test_damage_before_the_events(broken):
    columns = columns_of(trace(GOOD, before=broken))
    assert names(columns) == ["good"]
    assert columns.top == {"schemaVersion": "1"}


def test_damage_behind_the_events():
    columns = columns_of(trace(GOOD, after=b', "a": "say "hi" now"'))
    assert names(columns) == ["good"]
    assert columns.repairs == Repairs(truncated=True)


def test_a_missing_bracket_behind_the_events():
    columns = columns_of(b'{"traceEvents": [' + GOOD + b', "traceName": "x"}')
    assert names(columns) == ["good"]
    assert columns.top == {"traceName": '"x"'}


def test_a_byte_order_mark_counts_as_bytes():
    columns = columns_of(b"\xef\xbb\xbf" + b"[" + GOOD + b"]")
    assert columns.offset.tolist() == [4]


# Size


def test_deep_nesting():
    deep = b"[" * 500 + b"]" * 500
    columns = columns_of(
        trace(b'{"ph": "X", "args": {"x": %s, "Input Dims": %s}}' % (deep, deep), after=b', "a": ' + deep),
        sizes=(1000,),
    )
    assert argument(columns, "Input Dims") == {0: deep.decode()}
    assert columns.top["a"] == deep.decode()
    assert len(columns_of(trace(GOOD, b'{"ph": "X", "args": ' + b'{"a":[' * 250), sizes=(1000,))) == 1


def test_a_long_text():
    long = b"a\\n" * 500_000
    columns = columns_of(trace(b'{"ph": "X", "name": "%s"}' % long, GOOD), sizes=(1 << 16,))
    assert names(columns) == ["a\n" * 500_000, "good"]


def test_many_quotes_in_a_damaged_event():
    columns = columns_of(trace(GOOD, b'{"ph": "X", "name": "%s"}' % (b'"x", ' * 20_000), GOOD), sizes=(1 << 16,))
    assert names(columns)[0] == names(columns)[-1] == "good"


# What is no trace


@pytest.mark.parametrize(
    "data", [b"[]", b"[1, 2]", b"{}", b'{"a": [{"ph": "X"}]}', b"[{}]", b'[{"a": 1}]', b"{", b'{"a": 1', b"   "]
)
def test_json_that_is_no_trace(data):
    both(data)
    with pytest.raises(TraceError, match="the open file is not a trace"):
        scan(io.BytesIO(data))


def test_the_columns_outlive_the_scanner():
    stacked = [scan(io.BytesIO(trace(*[GOOD] * 5000))) for _ in range(20)]
    assert all((columns.ts == 5000).all() for columns in stacked)
    kept = [columns.ts for columns in stacked]
    del stacked
    assert all((ts == 5000).all() for ts in kept)


def test_all_arguments_of_the_list_are_known():
    assert set(ARGUMENTS.values()) <= {"int", "float", "text"}
