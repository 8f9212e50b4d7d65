"""Different values are counted, or found by sorting columns: as `np.unique` finds them."""

import numpy as np
import pytest

from torchwhy.trace.file.columns import distinct, numbered, numbered_together


@pytest.mark.parametrize("lowest", [-1, 0])
@pytest.mark.parametrize("count", [0, 1, 5000])
def test_numbered_is_what_unique_answers(lowest, count):
    indices = np.random.default_rng(count).integers(lowest, 300, count).astype(np.int32)
    values, which = numbered(indices, 300)
    expected, inverse = np.unique(indices, return_inverse=True)
    assert values.tolist() == expected.tolist()
    assert which.tolist() == inverse.tolist()
    assert distinct(indices, 300).tolist() == [value for value in expected.tolist() if value >= 0]


@pytest.mark.parametrize("count", [0, 1, 5000])
def test_rows_numbered_together_are_what_unique_answers(count):
    random = np.random.default_rng(count)
    large = random.choice(np.array([-(2**63), -1, 0, 2**62]), count)
    columns = [large, random.integers(-2, 5, count).astype(np.int32), random.random(count) < 0.5]
    rows, which = numbered_together(*columns)
    expected, inverse = np.unique(np.stack(columns).astype(np.int64), axis=1, return_inverse=True)
    assert rows.tolist() == expected.tolist()
    assert which.tolist() == inverse.reshape(-1).tolist()
