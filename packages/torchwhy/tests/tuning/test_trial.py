"""What is concluded from measured changes: simulated programs, whose noise has heavy tails, drifts and bursts."""

import math
import os

import numpy as np
import pytest

from torchwhy.tuning.change import Change
from torchwhy.tuning.records import Record, Results
from torchwhy.tuning.trial import ERROR, ROUNDS, SCREENING, ProgramFailedError, try_changes

UNCHANGED = Results(losses=[1.0, 0.5])


def change(name):
    return Change(name, (f"write {name}",))


class Simulated:
    """A program whose step takes a second, times a factor for each change, times noise."""

    def __init__(self, seed, factors=None, spread=0.03, drift=0.0, bursts=0.0, results=None, fails=()):
        self.random = np.random.default_rng(seed)
        self.factors, self.spread, self.drift, self.bursts = factors or {}, spread, drift, bursts
        self.results, self.fails = results or {}, fails
        self.runs = 0
        self.left = 0  # runs of a burst

    def measure(self, change):
        name = change.name if change else ""
        self.runs += 1
        if name in self.fails:
            return Record(error="RuntimeError: no such device")
        if not self.left and self.random.random() < self.bursts:
            self.left = self.random.integers(1, 6)
        slow = 1.5 if self.left else 1.0
        self.left = max(0, self.left - 1)
        noise = math.exp(self.spread * self.random.standard_t(2)) * slow * (1 + self.drift * self.runs)
        step_us = 1e6 * self.factors.get(name, 1.0) * noise
        return Record([step_us] * 20, results=self.results.get(name, UNCHANGED), wall_s=20.0)

    def tried(self, changes, **options):
        found, _ = try_changes(changes, self.measure, shuffle=self.random.shuffle, **options)
        return {one.change.name: one for one in found}


NOISES = {
    "heavy tails": {},
    "wide": {"spread": 0.15},
    "drift": {"drift": 0.01},
    "bursts": {"bursts": 0.1},
}


@pytest.mark.parametrize("noise", NOISES.values(), ids=NOISES)
def test_healthy_programs_are_rarely_said_to_get_faster(noise):
    """At most 5 % of programs for which nothing helps, of all changes together."""
    programs = 2000 if os.environ.get("TORCHWHY_CASES") == "many" else 60
    changes = [change(f"change {i}") for i in range(12)]
    wrong = sum(any(one.faster for one in Simulated(seed, **noise).tried(changes).values()) for seed in range(programs))
    # So many or fewer have a probability of 99.9 % where each is wrong with a probability of `ERROR`.
    assert wrong <= programs * ERROR + 3.1 * math.sqrt(programs * ERROR * (1 - ERROR))


def test_a_test_without_confidence_would_fail(monkeypatch):
    """The simulation can show what the correction prevents."""
    monkeypatch.setattr("torchwhy.tuning.trial.ERROR", 12 * 0.5)
    changes = [change(f"change {i}") for i in range(12)]
    wrong = sum(any(one.faster for one in Simulated(seed).tried(changes).values()) for seed in range(40))
    assert wrong > 40 * 0.25


@pytest.mark.parametrize(("factor", "spread", "found"), [(0.7, 0.03, 0.95), (0.9, 0.01, 0.95), (0.95, 0.01, 0.8)])
def test_what_helps_is_found_among_others(factor, spread, found):
    changes = [change(f"change {i}") for i in range(8)]
    verdicts = [Simulated(seed, {"change 3": factor}, spread).tried(changes)["change 3"] for seed in range(30)]
    assert np.mean([one.kind == "helps" for one in verdicts]) >= found


def test_the_interval_holds_the_true_speed():
    changes = [change("a"), change("b")]
    factor = 0.8
    several = [Simulated(seed, {"a": factor}).tried(changes)["a"].shift for seed in range(50)]
    assert np.mean([one.low <= factor <= one.high for one in several]) >= 0.9


def test_each_verdict():
    results = {"other losses": Results(losses=[1.0, 0.6]), "rounded": Results(losses=[1.0, 0.5001])}
    program = Simulated(
        1, {"helps": 0.5, "slow": 1.5, "other losses": 0.5, "rounded": 0.5}, 0.005, results=results, fails=("broken",)
    )
    names = ("helps", "slow", "nothing", "other losses", "rounded", "broken")
    found = program.tried([change(name) for name in names])
    kinds = {name: one.kind for name, one in found.items()}
    assert kinds == {
        "helps": "helps", "slow": "slower", "nothing": "no difference seen", "other losses": "changes the results",
        "rounded": "helps", "broken": "could not be tried",
    }  # fmt: skip
    assert found["other losses"].faster
    assert found["broken"].reason == "RuntimeError: no such device"
    assert (found["helps"].runs, found["slow"].runs) == (ROUNDS, SCREENING)
    assert found["helps"].agreement.largest == 0
    assert found["rounded"].agreement.said == "equal within rounding (losses differ by 8.9e-05)"


def test_what_the_budget_cuts_off_is_not_judged():
    program = Simulated(0, {"fast": 0.5})
    found = program.tried([change("fast"), change("same")], time_left=lambda: program.runs < 8)
    assert {one.kind for one in found.values()} == {"could not be tried"}
    assert {one.reason for one in found.values()} == {"the budget ended before"}
    program = Simulated(0, {"fast": 0.5, "slow": 2.0}, 0.005)
    several = [change(name) for name in ("fast", "slow", "c", "d", "e")]
    found = program.tried(several, time_left=lambda: program.runs < 3 * 7 + 1)
    assert found["fast"].reason.startswith("it looks ")
    assert found["slow"].kind == "slower"


def test_when_the_budget_ends_whole_rounds_count():
    program = Simulated(0, {"fast": 0.5}, 0.005)
    several = [change(name) for name in ("fast", "b", "c", "d", "e")]
    found = program.tried(several, time_left=lambda: program.runs < 3 * 7 + 9)
    assert found["fast"].kind == "helps"
    assert SCREENING < found["fast"].runs < ROUNDS


def test_a_program_that_fails_unchanged_is_an_error():
    with pytest.raises(ProgramFailedError, match="no such device"):
        Simulated(0, fails=("",)).tried([change("a")])


def test_another_number_of_steps_is_no_speed():
    def measure(change):
        return Record([1e6] * (10 if change else 20), results=UNCHANGED)

    [one], _ = try_changes([change("a")], measure)
    assert (one.kind, one.reason) == ("could not be tried", "its runs have 10 steps, not 20")
