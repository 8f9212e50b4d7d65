"""Order statistics: what they hold, against the binomial distribution, PyTorch's own, and simulation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom
from torch.utils.benchmark import Measurement as TorchMeasurement
from torch.utils.benchmark.utils.common import TaskSpec

from torchwhy.timing.quantiles import iqr, median_interval, quantile

times = st.lists(st.floats(1e-9, 1e3), min_size=1, max_size=200)


@pytest.mark.parametrize("n", [6, 7, 10, 25, 70, 501, 2000])
def test_interval_is_the_narrowest_that_is_confident_enough(n):
    found = median_interval(list(range(n)))
    k = int(found.low)
    assert found.high == n - 1 - k
    assert found.confidence == pytest.approx(1 - 2 * binom.cdf(k, n, 0.5), rel=1e-12)
    assert found.confidence >= 0.95
    assert 1 - 2 * binom.cdf(k + 1, n, 0.5) < 0.95


@pytest.mark.parametrize(("n", "confidence"), [(1, 0.0), (2, 0.5), (3, 0.75), (5, 0.9375)])
def test_too_few_values_give_the_range_and_say_what_it_is_worth(n, confidence):
    found = median_interval(list(range(n)))
    assert (found.low, found.high, found.confidence) == (0, n - 1, confidence)


def test_interval_covers_the_median_of_a_skewed_distribution_as_often_as_it_says(rng):
    samples = rng.lognormal(size=(2000, 20))  # its median is 1
    covered = [found.low <= 1 <= found.high for found in map(median_interval, samples.tolist())]
    expected = median_interval(list(range(20))).confidence
    assert abs(np.mean(covered) - expected) < 4 * np.sqrt(expected * (1 - expected) / 2000)


@given(times)
def test_interval_holds_the_sample_median_and_ignores_order(values):
    found = median_interval(values)
    assert found.low <= quantile(values, 0.5) * (1 + 1e-12)
    assert quantile(values, 0.5) <= found.high * (1 + 1e-12)
    assert median_interval(values[::-1]) == found


@given(times)
def test_median_and_iqr_are_those_of_torch_benchmark(values):
    theirs = TorchMeasurement(1, values, TaskSpec(stmt="", setup=""))
    assert quantile(values, 0.5) == pytest.approx(theirs.median, rel=1e-5)
    assert iqr(values) == pytest.approx(theirs.iqr, rel=1e-4, abs=1e-5 * max(values))
