"""Commits at which a series changed: found where they are, and seldom where there are none."""

import os

import numpy as np
import pytest

from tests.history.runs_of_a_program import NOISE, named, noisy, stored
from torchwhy.errors import ArgumentError
from torchwhy.history.changes import WINDOW, Series, changes_in, series_of
from torchwhy.history.check import check_series

MANY = 400 if os.environ.get("TORCHWHY_CASES") == "many" else 100


def checked(values, **options):
    (found,) = check_series(series_of(stored(values)), **options)
    return found


@pytest.mark.parametrize("kind", NOISE)
@pytest.mark.parametrize("runs", [12, WINDOW])
def test_of_a_hundred_unchanged_series_less_than_one_has_a_change(kind, runs):
    random = np.random.default_rng(runs)
    alarms = sum(bool(changes_in(noisy(random, runs, kind), range(1, runs))) for _ in range(MANY))
    assert alarms < MANY / 100


@pytest.mark.parametrize("kind", ["normal", "heavy tails", "two clocks", "drift"])
def test_of_a_hundred_unchanged_pairs_less_than_one_is_called_different(kind):
    """The gate with one commit that has several runs, and one before it."""
    random = np.random.default_rng(3)
    alarms = sum(bool(changes_in(noisy(random, 18, kind), [12])) for _ in range(4 * MANY))
    assert alarms < 4 * MANY / 100


def test_a_history_that_is_checked_after_every_run_fails_seldom():
    random = np.random.default_rng(11)
    for _ in range(MANY // 50):
        values = noisy(random, 50, "heavy tails")
        checks = [changes_in(values[max(0, n - WINDOW) : n], range(1, min(n, WINDOW))) for n in range(8, 51, 3)]
        assert not any(checks)


def test_machines_that_differ_by_a_fifth_are_apart():
    random = np.random.default_rng(5)
    runs = stored(noisy(random, 20, "normal")) + stored(
        noisy(random, 20, "normal", us=12_000), machine="other", first=10
    )
    checks = check_series(series_of(runs))
    assert [check.kind for check in checks] == ["no slowdown"] * 2
    assert [len(check.series.runs) for check in checks] == [20, 20]


@pytest.mark.parametrize(("kind", "after", "share"), [("normal", 5, 0.9), ("heavy tails", 10, 0.8), ("drift", 12, 0.7)])
def test_three_percent_more_is_found_at_its_commit(kind, after, share):
    random, found = np.random.default_rng(1), 0
    for _ in range(40):
        values = noisy(random, 30 + after, kind)
        values[30:] *= 1.03
        changes = changes_in(values, range(1, len(values)))
        found += bool(changes) and changes[-1].slower and abs(changes[-1].at - 30) <= 1
    assert found >= 40 * share


def test_the_ratio_and_the_runs_are_said_with_the_commit():
    random = np.random.default_rng(2)
    values = noisy(random, 30, "normal")
    values[20:] *= 1.1
    found = checked(values)
    assert (found.kind, found.since.at, found.passed) == ("slower", 20, False)
    assert found.since.shift.low <= 1.1 <= found.since.shift.high
    assert f"since {named(20)[:10]}: " in found.sentence
    assert "in 20 runs before" in found.sentence
    assert "in 10 runs from there on" in found.sentence


def test_a_change_begins_with_a_commit():
    """Three runs of each commit, the slower ones begin in the middle of one: that commit cannot be the reason."""
    random = np.random.default_rng(4)
    values = noisy(random, 30, "normal")
    values[19:] *= 1.1
    (series,) = series_of(stored(values, each=3))
    assert series.starts == tuple(range(3, 30, 3))
    assert [change.at for change in series.changes()] in ([18], [21])


def test_a_slowdown_that_was_undone_passes():
    random = np.random.default_rng(6)
    values = noisy(random, 36, "normal")
    values[12:24] *= 1.08
    found = checked(values)
    assert [(change.at, change.slower) for change in found.changes] == [(12, True), (24, False)]
    assert found.passed


def test_a_slowdown_that_was_undone_in_part_fails():
    random = np.random.default_rng(6)
    values = noisy(random, 36, "normal")
    values[12:24] *= 1.2
    values[24:] *= 1.1
    found = checked(values)
    assert (found.kind, found.since.at) == ("slower", 12)
    assert "1 later change did not undo it" in found.sentence


def test_what_is_allowed_passes():
    random = np.random.default_rng(8)
    values = noisy(random, 30, "normal")
    values[15:] *= 1.05
    assert not checked(values).passed
    assert checked(values, allowed=0.1).passed


def test_runs_from_an_intended_slowdown_on_pass():
    random = np.random.default_rng(8)
    values = noisy(random, 30, "normal")
    values[15:] *= 1.05
    assert checked(values, since=named(15)).passed
    with pytest.raises(ArgumentError, match="--since must be a commit of a run in the history, got 'beef'"):
        checked(values, since="beef")


def test_few_runs_are_said_to_be_too_few():
    assert [checked([10.0, 20.0] * (n // 2)).kind for n in (2, 6)] == ["too few runs"] * 2
    assert checked([10.0] * 20 + [20.0] * 4).kind == "slower"
    assert checked([10.0] * 24).kind == "no slowdown"


@pytest.mark.parametrize("runs", [1, 2, 3, 7, 14, 24, WINDOW])
def test_what_can_be_judged_is_what_a_doubling_is_found_in(runs):
    """By trying each place for a doubling without noise."""
    (series,) = series_of(stored([10.0] * runs))
    doubled = [np.where(np.arange(runs) < k, 10.0, 20.0) for k in range(1, runs)]
    assert series.can_be_judged == any(changes_in(values, range(1, runs)) for values in doubled)


def test_runs_without_a_commit_each_begin_a_change():
    runs = stored([10.0] * 3)
    blank = [type(one)(one.run, one.configuration, type(one.commit)(), one.added_s) for one in runs]
    assert Series(tuple(blank)).starts == (1, 2)


def test_values_of_any_size_are_judged():
    """Counts may be 0, times have any magnitude."""
    for scale in (0.0, 1e-9, 1.0, 1e15):
        assert changes_in(np.array([scale] * 24), range(1, 24)) == ()
    (change,) = changes_in(np.array([0.0] * 12 + [3.0] * 12), range(1, 24))
    assert change.at == 12
