"""Trends: against Kendall's rank correlation, and false alarms on noise."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau

from torchwhy.timing.trend import mann_kendall, relative_drift


@given(st.lists(st.integers(0, 50), min_size=3, max_size=60))
def test_sign_is_that_of_kendalls_tau_against_time(values):
    if len(set(values)) == 1:
        assert mann_kendall(values) == 0
        return
    tau = kendalltau(range(len(values)), values).statistic
    assert np.sign(mann_kendall(values)) in {np.sign(tau), 0.0}
    assert mann_kendall(values[::-1]) == pytest.approx(-mann_kendall(values))


def test_noise_rarely_looks_like_a_trend(rng):
    alarms = [abs(mann_kendall(rng.lognormal(size=40))) > 3 for _ in range(1000)]
    assert sum(alarms) <= 8


def test_drift_is_relative_to_the_beginning():
    assert relative_drift([4.0] * 10 + [3.0] * 10 + [2.0] * 10) == -0.5
    assert relative_drift([1.0]) == 0.0
