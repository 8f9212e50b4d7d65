import json
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchwhy.page.encoding import packed, planes, varint, zigzag


def read_varint(data):
    found, value, shift = [], 0, 0
    for byte in data:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            found.append(value)
            value = shift = 0
    return found


@given(st.lists(st.integers(0, 2**64 - 1)))
def test_varint_is_leb128(values):
    assert read_varint(varint(np.array(values, np.uint64))) == values


@pytest.mark.parametrize("edge", [2**7, 2**14, 2**35, 2**63])
def test_varint_takes_one_more_byte_from_each_power_of_128_on(edge):
    assert len(varint(np.array([edge], np.uint64))) == 1 + len(varint(np.array([edge - 1], np.uint64)))


@given(st.lists(st.integers(0, 2**53), min_size=1))
def test_planes_hold_one_byte_of_all_after_the_other(values):
    data = planes(values)
    lines = [data[i : i + len(values)] for i in range(0, len(data), len(values))]
    assert [sum(line[i] << 8 * k for k, line in enumerate(lines)) for i in range(len(values))] == values


@given(st.lists(st.integers(-(2**62), 2**62)))
def test_zigzag_is_undone_by_its_parity(values):
    assert [-(n + 1) // 2 if n % 2 else n // 2 for n in zigzag(values).tolist()] == values


def test_a_block_tells_where_each_column_is():
    block = zlib.decompress(packed({"a": 1}, {"few": [5, 6], "many": [300] * 9, "words": "x\0é"}), -15)
    size = int.from_bytes(block[:4], "little")
    header = json.loads(block[4 : 4 + size])
    body = block[4 + size :]
    assert header["a"] == 1
    how, at, length, count = header["columns"]["words"]
    assert (how, body[at : at + length].decode()) == ("text", "x\0é")
    how, at, length, count = header["columns"]["few"]
    assert count == 2
    assert list(body[at : at + length]) == [5, 6]
