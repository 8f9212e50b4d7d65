"""Both scanners on the same bytes, cut into chunks in several ways; they must agree in everything."""

import dataclasses

import numpy as np

from torchwhy.trace.file.columns import ARGUMENTS
from torchwhy.trace.file.limits import LIMITS, Excess
from torchwhy.trace.file.scan_native import available, scan_native
from torchwhy.trace.file.scan_python import Scanned, scan_python

NUMBERS = ("phase", "ts", "dur", "category", "name", "pid", "tid", "flow", "offset")


def pieces(data, size):
    return [data[start : start + size] for start in range(0, len(data), size)]


def outcome(scanner, chunks, keys, limits):
    """What a scanner returns or, where a part is too large, which and by how much."""
    try:
        return scanner(chunks, keys, limits)
    except Excess as error:
        return error.limit, error.value, error.place


def assert_same(one, other):
    if not (isinstance(one, Scanned) and isinstance(other, Scanned)):
        assert one == other
        return
    assert one.has_list == other.has_list
    a, b = one.columns, other.columns
    for field in dataclasses.fields(a):
        if field.name in NUMBERS:
            x, y = getattr(a, field.name), getattr(b, field.name)
            assert x.dtype == y.dtype, field.name
            assert x.tolist() == y.tolist(), field.name
        elif field.name != "arguments":
            assert getattr(a, field.name) == getattr(b, field.name), field.name
    assert list(a.top) == list(b.top)
    assert list(a.arguments) == list(b.arguments)
    for key, x in a.arguments.items():
        y = b.arguments[key]
        assert (x.rows.dtype, x.values.dtype) == (y.rows.dtype, y.values.dtype), key
        assert x.rows.tolist() == y.rows.tolist(), key
        assert np.array_equal(x.values, y.values), key


def both(data, keys=ARGUMENTS, sizes=(1, 7, 1 << 20), limits=LIMITS):
    """What the scanner in Python finds, after the native one found the same for each size of chunks."""
    expected = outcome(scan_python, [data], keys, limits)
    if available():
        for size in sizes:
            assert_same(outcome(scan_native, pieces(data, size), keys, limits), expected)
    return expected


def columns_of(data, keys=ARGUMENTS, **how):
    return both(data, keys, **how).columns


def text(columns, index):
    return None if index < 0 else columns.texts[index]


def names(columns):
    return [text(columns, index) for index in columns.name]


def argument(columns, key):
    """An argument as {row: value}."""
    found = columns.arguments[key]
    values = found.values.tolist()
    if columns.arguments[key].values.dtype == np.int32:
        values = [columns.texts[value] for value in values]
    return dict(zip(found.rows.tolist(), values, strict=True))
