"""Amounts are worded alike everywhere, and can be told from the words around them."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.consistency import uneven_amounts
from torchwhy.wording import AMOUNT, digits, duration, duration_ns, part_of, percent, seconds, size_text


@pytest.mark.parametrize("power", range(-3, 9))
@pytest.mark.parametrize("first", [1.0, 2.5, 9.994, 9.996, 99.94, 99.96, 999.4, 999.6])
def test_a_duration_has_three_digits_and_never_a_thousand_of_a_unit(power, first):
    number, unit = duration(first * 10**power).split()
    value = float(number.replace(",", ""))
    assert value < 1000 or unit == "min"
    scale = {"ns": 1e-3, "us": 1, "ms": 1e3, "s": 1e6, "min": 60e6}[unit]
    coarse = 0.05 if unit == "ns" and value < 0.1 else 0.0051  # below a hundredth of a nanosecond nothing is shown
    assert math.isclose(value * scale, first * 10**power, rel_tol=coarse)


def test_one_time_reads_the_same_from_every_unit():
    assert duration(2570) == duration_ns(2_570_000) == seconds(0.00257) == "2.57 ms"


def test_a_part_is_never_nothing_and_never_all():
    assert [percent(share) for share in (1e-9, 0.00099, 0.9949, 0.995, 1 - 1e-9)] == [
        "<0.1%",
        "<0.1%",
        "99%",
        ">99%",
        ">99%",
    ]


@given(st.integers(1, 10**13), st.floats(0, 1), st.sampled_from((duration, size_text)))
def test_a_share_follows_from_a_part_and_the_whole(whole, share, text):
    part = int(share * whole)
    said = f"{percent(part / whole)} of it ({part_of(part, whole, text)})"
    assert not uneven_amounts(said), said


@pytest.mark.parametrize(
    "amount",
    [
        *(duration(us) for us in (0, 0.0123, 7, 12_345, 3e6, 9e9)),
        *(percent(share) for share in (0, 0.0001, 0.05, 0.4, 0.999, 1)),
        *(size_text(size) for size in (7, 2048, 3e6, 4e9, 5e12)),
        "1,234",
    ],
)
def test_an_amount_is_found_in_a_sentence_with_its_unit(amount):
    assert AMOUNT.sub("#", f"It takes {amount} of the time, more than B") == "It takes # of the time, more than B"


@given(st.floats(1e-3, 1e15, exclude_max=True), st.integers(2, 5))
def test_a_number_is_written_with_its_digits_and_no_exponent(number, count):
    text = digits(number, count)
    assert "e" not in text
    assert math.isclose(float(text.replace(",", "")), number, rel_tol=0.5001 * 10 ** (1 - count))
