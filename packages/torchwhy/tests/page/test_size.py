import re

import numpy as np
import pytest

from tests.page.generated import generated
from torchwhy.page.block import block_of
from torchwhy.page.size import _steps, blocks_within, without
from torchwhy.page.timeline import timeline_of
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.wording import duration_ns


@pytest.fixture(scope="module")
def timeline():
    return timeline_of(generated(6000))


def numbers(note):
    return [int(digits.replace(",", "")) for digits in re.findall(r"\d[\d,]*", note)]


def test_a_page_that_fits_stays_exact(timeline):
    assert blocks_within([timeline], 10**9) == [block_of(timeline)]


@pytest.mark.parametrize("share", [0.9, 0.5, 0.1])
def test_the_bound_is_held(timeline, share):
    bound = int(share * len(block_of(timeline)))
    assert sum(map(len, blocks_within([timeline], bound))) <= bound


def test_each_step_is_told_with_its_count(timeline):
    steps = list(_steps(timeline))
    assert steps[0][2] == []
    changed = (timeline.start % 1000 != 0) | (timeline.end % 1000 != 0)
    assert numbers(steps[3][2][0])[0] == int(changed.sum())
    for noun, limit in (("Python frame", 1_000), ("event", 20_000)):
        brief = timeline.end - timeline.start < limit
        if noun != "event":
            brief &= timeline.kind == Kind.PYTHON
        said = f"shorter than {duration_ns(limit)} left out"
        smaller, _, notes = next(step for step in steps[4:] if noun != "event" or said in step[2][-1])
        assert len(timeline) - len(smaller) == int(brief.sum())
        if brief.any():
            assert numbers(notes[-1])[0] == int(brief.sum())


def test_links_and_positions_follow_the_events_that_stay(timeline):
    brief = timeline.end - timeline.start < 20_000
    smaller = without(timeline, brief)
    both = ~brief[timeline.launch] & ~brief[timeline.work]
    assert (smaller.start[smaller.work] == timeline.start[timeline.work[both]]).all()
    assert smaller.row_sizes.sum() == len(smaller)
    assert [smaller.names[i] for i in smaller.name] == [timeline.names[i] for i in timeline.name[~brief]]
    assert set(smaller.name.tolist()) == set(range(len(smaller.names)))
    there = smaller.position >= 0
    assert (smaller.start[smaller.position[there]] == timeline.start[timeline.position[there]]).all()
    assert np.count_nonzero(there) == len(smaller)
