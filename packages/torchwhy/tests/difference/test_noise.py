"""Whether a difference is called one: against the rates the tests promise."""

import numpy as np
import pytest
from scipy import stats

from torchwhy.difference.noise import Spread, differs, shift_of


@pytest.mark.parametrize(("n", "m"), [(3, 3), (3, 5), (4, 4), (6, 5), (10, 12), (25, 25)])
@pytest.mark.parametrize("spread", [0.02, 0.3])
def test_equal_programs_are_called_different_in_one_of_twenty_at_most(n, m, spread):
    random = np.random.default_rng(n * 100 + m)
    steps = np.exp(spread * random.standard_normal((400, n + m)))
    called = [shift_of(row[:n], row[n:]).beyond_noise for row in steps]
    assert np.mean(called) <= 0.05


@pytest.mark.parametrize("slow_share", [0.1, 0.3])
def test_now_and_then_a_slow_step_is_no_difference(slow_share):
    random = np.random.default_rng(1)
    steps = 100 + 40 * (random.random((400, 12)) < slow_share) + random.standard_normal((400, 12))
    assert np.mean([shift_of(row[:6], row[6:]).beyond_noise for row in steps]) <= 0.05


@pytest.mark.parametrize("n", [3, 4, 6, 10])
def test_a_fifth_is_found_where_steps_vary_by_a_fiftieth(n):
    random = np.random.default_rng(n)
    steps = np.exp(0.02 * random.standard_normal((200, 2 * n)))
    shifts = [shift_of(row[:n], 1.2 * row[n:]) for row in steps]
    assert np.mean([shift.beyond_noise for shift in shifts]) >= 0.95
    assert np.median([shift.ratio for shift in shifts]) == pytest.approx(1.2, rel=0.02)
    assert np.mean([shift.low <= 1.2 <= shift.high for shift in shifts]) >= 0.93


@pytest.mark.parametrize(
    ("n", "m", "confidence"),
    [
        (4, 4, 0.95),
        (5, 6, 0.95),
        (8, 7, 0.95),
        (30, 25, 0.95),
        (3, 20, 0.99),
        (9, 12, 0.9999),
        (20, 20, 0.9),
        (3, 3, 0.5),
    ],
)
def test_the_interval_inverts_the_test_of_mann_and_whitney(n, m, confidence):
    """Shifting b by a value inside the interval makes the test accept, by one outside reject."""
    random = np.random.default_rng(n)
    a, b = np.exp(0.1 * random.standard_normal(n)), np.exp(0.1 * random.standard_normal(m) + 0.3)
    shift = shift_of(zigzag(a), zigzag(b), confidence)
    assert shift.judged

    def accepted(ratio):
        return stats.mannwhitneyu(a, b / ratio, method="exact" if n + m <= 40 else "asymptotic").pvalue > 1 - confidence

    assert accepted(shift.low * 1.0001)
    assert accepted(shift.high / 1.0001)
    assert not accepted(shift.low * 0.97)
    assert not accepted(shift.high * 1.03)


@pytest.mark.parametrize(("n", "m"), [(3, 3), (3, 20), (4, 9), (20, 20)])
@pytest.mark.parametrize("confidence", [0.9, 0.99, 0.999, 0.99999])
def test_a_confidence_that_so_few_values_cannot_give_is_not_claimed(n, m, confidence):
    best = stats.mannwhitneyu(np.arange(n), np.arange(m) + n, method="exact").pvalue
    assert shift_of(np.arange(n) + 1, np.arange(m) + n + 1, confidence).judged == (best <= 1 - confidence)


def zigzag(values):
    """The same values in an order in which none resembles the one before."""
    values = np.sort(values)
    order = [i for pair in zip(range(len(values)), reversed(range(len(values))), strict=True) for i in pair]
    return values[order[: len(values)]]


def test_a_machine_that_slows_down_half_way_makes_steps_say_less():
    """The same program twice, recorded on a busy machine: the first recording begins before it became busy."""
    a = [6732, 7980, 8299, 8212, 20174, 15772, 16147, 16334]
    b = [20717, 17580, 29811, 22007, 21453, 23371, 21036, 17562]
    assert not shift_of(a, b).beyond_noise
    assert shift_of(zigzag(a), b).beyond_noise


def test_steps_that_resemble_each_other_are_called_different_seldom():
    random = np.random.default_rng(3)
    called = 0
    for _ in range(300):
        steps = random.standard_normal((2, 40))
        for i in range(1, 40):
            steps[:, i] += 0.6 * steps[:, i - 1]
        called += shift_of(*np.exp(0.05 * steps)).beyond_noise
    assert called / 300 <= 0.1  # 0.3 if they counted as independent


def test_one_slow_step_among_many_changes_little():
    a, b = [100.0, 101, 99, 100, 102, 98, 103, 97], [80.0, 81, 79, 80, 82, 78, 83, 77]
    clean, disturbed = shift_of(a, b), shift_of(a, [*b[:-1], 500])
    assert disturbed.beyond_noise
    assert disturbed.ratio == pytest.approx(clean.ratio, rel=0.02)


def test_two_steps_tell_nothing_about_noise():
    shift = shift_of([100, 100], [50, 50, 50])
    assert (shift.judged, shift.beyond_noise, round(shift.ratio, 6)) == (False, False, 0.5)


def test_a_hundredth_is_no_difference_however_steady():
    assert not shift_of([100] * 10, [100.9] * 10).beyond_noise
    assert shift_of([100] * 10, [101.5] * 10).beyond_noise


def test_swapping_sides_inverts_the_ratio():
    a, b = [100, 104, 98, 99, 120], [130, 128, 140, 127]
    there, back = shift_of(a, b), shift_of(b, a)
    assert there.ratio == pytest.approx(1 / back.ratio)
    assert (there.low, there.high) == (pytest.approx(1 / back.high), pytest.approx(1 / back.low))


def test_rows_are_compared_one_by_one_as_by_welch():
    random = np.random.default_rng(0)
    a, b = random.normal(10, 1, (50, 4)), random.normal(12, 2, (50, 6))
    found = differs(Spread.of(a), Spread.of(b))
    expected = stats.ttest_ind(a, b, axis=1, equal_var=False).pvalue < 0.01
    assert np.mean(found == expected) > 0.9  # degrees of freedom are rounded down
    assert not (found & ~expected).any()


def test_amounts_in_pieces_spread_as_their_sums_by_step():
    random = np.random.default_rng(0)
    name, step, amount = random.integers(0, 5, 60), random.integers(0, 4, 60), random.normal(10, 3, 60)
    name[name == 3] = 2  # the name 3 has nothing
    sums = np.zeros((5, 4))
    np.add.at(sums, (name, step), amount)
    found, expected = Spread.of_parts(name, step, amount, 5, 4), Spread.of(sums)
    assert found.mean == pytest.approx(expected.mean)
    assert found.variance == pytest.approx(expected.variance)
    assert found.take(np.array([4, -1])).mean.tolist() == [found.mean[4], 0]


def test_many_names_in_many_steps_need_no_table_of_both():
    ends = np.array([0, 10**6 - 1])
    found = Spread.of_parts(ends, ends, np.ones(2), 10**6, 10**6)  # as a table 8 TB
    assert (np.count_nonzero(found.mean), found.mean[-1]) == (2, 1e-6)


def test_many_steps_are_thinned():
    random = np.random.default_rng(0)
    a, b = random.normal(100, 5, 5000), random.normal(103, 5, 4000)
    assert shift_of(a, b).ratio == pytest.approx(1.03, rel=0.005)
