"""Plain data come back as Python's own reader gives them; anything else is refused before it can do anything."""

import contextlib
import os
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torchwhy.allocator import unpickling
from torchwhy.allocator.unpickling import PickleError, unpickled

texts = st.text(max_size=300)
plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False)
    | texts
    | st.binary(max_size=300),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner)
        | st.tuples(inner, inner, inner, inner)
        | st.dictionaries(texts | st.integers(-9, 9**12), inner, max_size=4)
    ),
    max_leaves=30,
)


@settings(max_examples=5 * settings().max_examples)
@given(plain, st.integers(3, 5))
def test_plain_data_are_read(value, protocol):
    assert unpickled(pickle.dumps([value, value], protocol)) == [value, value]


def test_protocol_2_and_many_items():
    value = {"a": [{"b": i, "c": (0, i)} for i in range(3000)], "é" * 300: 2**40, 5: -1.5}
    for protocol in (2, 3, 4, 5):
        assert unpickled(pickle.dumps(value, protocol)) == value


class Runs:
    def __reduce__(self):
        return os.system, ("touch /tmp/torchwhy-pickle-ran",)


class State:
    def __init__(self):
        self.x = 1


@pytest.mark.parametrize("value", [Runs(), State(), os.system, {1, 2}, 2**100, range(3), 1j])
def test_whatever_is_no_plain_data_is_refused(value):
    for protocol in (0, 1, 2, 3, 4, 5):
        with pytest.raises(PickleError):
            unpickled(pickle.dumps({"segments": [value]}, protocol))
    assert not os.path.exists("/tmp/torchwhy-pickle-ran")  # noqa: PTH110


def test_code_is_named():
    with pytest.raises(PickleError, match=r"STACK_GLOBAL at byte .* would run code"):
        unpickled(pickle.dumps(Runs(), 4))
    with pytest.raises(PickleError, match="GLOBAL at byte 2 would run code"):
        unpickled(pickle.dumps(os.system, 2))


@pytest.mark.parametrize(
    "data",
    [
        b"", b".", b"\x80\x04", b"\x80\x04]", b"\x80\x04(.", b"u.", b"e.", b"a.", b"s.", b"]]]a", b"h\x05.", b"2.",
        b"X\xff\xff\xff\xff", b"\x8d" + b"\xff" * 8 + b"a", b"\x8e" + b"\x7f" * 8 + b"a", b"\x8b\xff\xff\xff\x7f",
        b"\x8a\xff" + b"a" * 255 + b".", b"}(]K\x01u.", b"}(K\x01u.", b"\x85.", b"(\x86.", b"t.", b"\x8c\x01\xff.",
        b"}" + b"(" + b")\x85" * 3 + b"K\x01u.",
    ],
)  # fmt: skip
def test_nonsense_is_refused(data):
    with pytest.raises(PickleError):
        unpickled(data)


def test_keys_that_cannot_be_hashed_safely():
    deep = b"}(" + b")" + b"\x85" * 1_000_000 + b"K\x01u."
    with pytest.raises(PickleError, match="make no sense"):
        unpickled(deep)


SAMPLE = pickle.dumps(
    {"segments": [{"address": 2**40, "blocks": [{"size": 512, "frames": [{"name": "f"}]}]}], "x": (1, 2.5)}, 4
)


@settings(max_examples=5 * settings().max_examples)
@given(st.integers(0, len(SAMPLE)), st.integers(0, 9), st.binary(max_size=6))
def test_mangled_files_are_read_or_refused(place, count, piece):
    with contextlib.suppress(PickleError):
        unpickled(SAMPLE[:place] + piece + SAMPLE[place + count :])


@settings(max_examples=5 * settings().max_examples)
@given(plain, st.integers(0, 200), st.integers(0, 9), st.binary(max_size=6))
def test_the_interpreters_reader_only_gets_what_reads_the_same_here(value, place, count, piece):
    data = pickle.dumps([value, {"pair": ("a", value)}], 2)
    data = data[:place] + piece + data[place + count :]
    if unpickling._is_plain(data):
        with contextlib.suppress(PickleError):
            assert repr(unpickling.read_here(data)) == repr(unpickled(data))


def test_room_for_values_that_are_not_there_is_not_made():
    data = b"\x80\x02]r\xff\xff\xff\xff."
    assert not unpickling._is_plain(data)
    assert unpickled(data) == []


def test_pairs_inside_pairs_are_bounded():
    data = b"\x80\x02}(K\x01" + b"K\x01\x86" * 1_000_000 + b"K\x01u."
    assert not unpickling._is_plain(data)
    with pytest.raises(PickleError, match="make no sense"):
        unpickled(data)
