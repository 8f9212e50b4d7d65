"""Runs of a program over its commits, made up: with the noise that machines have."""

import numpy as np

from torchwhy.history.git import Commit
from torchwhy.history.runs import STEP, MeasuredRun
from torchwhy.history.store import StoredRun

NOISE = ("normal", "heavy tails", "two clocks", "drift", "spikes")


def noisy(random, runs, kind, us=10_000.0):
    """The median step of each run of a program that never changes."""
    away = 0.005 * random.standard_normal(runs)
    if kind == "heavy tails":
        away = 0.004 * random.standard_t(3, runs)
    elif kind == "two clocks":
        away += 0.06 * (random.random(runs) < 0.35)
    elif kind == "drift":
        wandering = np.zeros(runs)
        for i in range(1, runs):
            wandering[i] = 0.5 * wandering[i - 1] + 0.006 * random.standard_normal()
        away = away / 2 + wandering
    elif kind == "spikes":
        away += (random.random(runs) < 0.1) * random.exponential(0.2, runs)
    return us * np.exp(away)


def named(number):
    """The name of a commit."""
    return f"{number:04x}" + "0" * 36


def stored(values, *, each=1, machine="box", name="train", configuration="", first=0):
    """One run for each value; `each` of them are of one commit, a day after the one before."""
    return [
        StoredRun(
            MeasuredRun(name, STEP, machine, (float(value),), f"traces/{name}-{first + i}"),
            configuration,
            Commit(named((first + i) // each), 86_400.0 * ((first + i) // each)),
            1e9 + first + i,
        )
        for i, value in enumerate(values)
    ]
