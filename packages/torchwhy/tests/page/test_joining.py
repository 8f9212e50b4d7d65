import numpy as np
import pytest

from tests.traces import Story
from torchwhy.page.joining import Source, joined
from torchwhy.page.timeline import timeline_of


def rank(number):
    """Both ranks use the same ids."""
    story = Story()
    story.step(1, at=0, us=100)
    story.op("aten::mm", at=10, us=20)
    story.kernel(f"void gemm{number}<float>()", at=40, us=30, launch_at=15)
    return timeline_of(story.trace())


@pytest.fixture(scope="module")
def both():
    return joined([Source("rank 0", rank(0), 0), Source("rank 1", rank(1), 5_000)])


def test_ranks_stand_one_below_the_other(both):
    assert [(band.source, band.side) for band in both.bands] == [
        (name, side) for name in ("rank 0", "rank 1") for side in ("host", "device")
    ]
    assert both.row_sizes.tolist() == rank(0).row_sizes.tolist() * 2


def test_times_are_those_of_a_common_clock(both):
    half = len(both) // 2
    assert (both.start[half:] - both.start[:half] == 5_000).all()
    assert both.window == (0, 105_000)


def test_a_launch_belongs_to_the_work_of_its_own_rank(both):
    names = [both.names[i] for i in both.name]
    assert [names[i] for i in both.work] == ["void gemm0<float>()", "void gemm1<float>()"]
    assert [names[i] for i in both.launch] == ["cudaLaunchKernel"] * 2
    assert (both.start[both.launch] == np.array([15_000, 20_000])).all()


def test_arguments_move_with_their_events():
    story = Story()
    story.op("aten::mm", at=10, us=20, **{"Input Dims": [[2]]})
    one = timeline_of(story.trace())
    found = joined([Source("rank 0", one, 0), Source("rank 1", one, 0)]).arguments
    assert [(column.label, column.events.tolist()) for column in found] == [("shapes", [0]), ("shapes", [1])]


def test_names_are_shared(both):
    assert len(set(both.names)) == len(both.names) == 5
    assert both.short_names[both.names.index("void gemm1<float>()")] == "gemm1 float32"
