"""The parts of the window add up to it, and each has what belongs to it."""

import pytest

from tests.analysis.programs import PROGRAMS, compiling, distributed, exchanging, on_cpu, training
from tests.traces import Story, samples
from torchwhy.analysis.breakdown import IN_PYTHON, Spread, breakdown


def parts(story):
    return {part.name: part.time_us for part in breakdown(story.trace()).parts}


@pytest.mark.parametrize("name", PROGRAMS)
def test_parts_add_up(name):
    found = breakdown(PROGRAMS[name]().trace())
    assert sum(part.time_us for part in found.parts) == pytest.approx(found.window_us)
    assert sum(part.share for part in found.parts) == pytest.approx(1 if found.parts else 0)
    assert all(part.time_us > 0 for part in found.parts)


def test_parts_of_a_training_on_a_gpu():
    # Of 1000 us: a batch for 300, operators for 40, 400 on the device; launches 4 at a time from 528 on, within the 40.
    assert parts(training(steps=4, load=300)) == {
        "computing": 1600,
        "data": 1200,
        "dispatch": 160,
        "python": 4000 - 1600 - 1200 - 160,
    }


def test_loading_under_the_device_is_free():
    story = Story()
    story.step(1, 0, 1000)
    story.note("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", 100, 500)
    story.kernel("gemm", 50, 900, launch_at=10)
    assert "data" not in parts(story)


def test_communication_counts_where_nothing_is_computed():
    assert parts(distributed())["communication"] == 3 * 580


def test_the_profiler_is_not_the_program():
    story = training()
    story.overhead("Activity Buffer Request", 100, 200)
    assert parts(story)["profiler"] == 200


def test_while_queued_work_runs_on_the_program_does_nothing():
    story = training(work=200)
    story.kernel("gemm", 4100, 100, launch_at=3900)
    story.call("cudaDeviceSynchronize", 4050, 200)
    assert parts(story)["ended"] == 50
    assert "profiler" not in parts(story)


def test_parts_of_a_training_on_a_cpu():
    assert parts(on_cpu()) == {"optimizer": 750, "backward": 810, "operators": 810, "python": 3000 - 750 - 1620}


def test_compiling_goes_before_the_operators_within():
    assert parts(compiling()) == {"compiling": 9000, "operators": 800, "python": 100}


def test_waiting_calls_and_allocations_have_parts():
    story = Story()
    story.step(1, 0, 1000)
    story.kernel("gemm", 10, 90, launch_at=5)
    story.call("cudaStreamSynchronize", 200, 100)
    story.call("cudaMalloc", 400, 50)
    story.op("Torch-Compiled Region: 0/0", 500, 100)
    found = parts(story)
    assert (found["waiting"], found["allocation"], found["wrapper"]) == (100, 50, 100)


def test_steps_have_a_median_and_a_range():
    story = Story(gpu=None)
    for i, us in enumerate((100, 200, 600)):
        story.step(i, 1000 * i, us)
        story.op("aten::mm", 1000 * i, us // 2)
    found = breakdown(story.trace())
    assert found.step == Spread(3, 200, 100, 600)
    (operators,) = (part for part in found.parts if part.name == "operators")
    assert operators.per_step == Spread(3, 100, 50, 300)


def test_one_step_has_no_spread():
    assert breakdown(training(steps=1).trace()).step is None


def test_exchanging_data_with_other_ranks_has_a_part_of_its_own():
    assert parts(exchanging()) == {"communication": 3 * 600, "operators": 3 * 300, "python": 3 * 100}


@pytest.mark.parametrize("on_gpu", [True, False])
@pytest.mark.parametrize("frame_us", [0, 1, 450, 451, 1000, 5000])
def test_time_between_operators_is_called_python_where_frames_cover_most_of_it(on_gpu, frame_us):
    story = Story() if on_gpu else Story(gpu=None)
    story.step(1, 0, 1000)
    story.op("aten::mm", 0, 100)
    if on_gpu:
        story.kernel("gemm", 10, 90, launch_at=5)
    if frame_us:  # at first the operator, 900 us between operators after it
        story.frame("train.py(3): step", 0, 100 + frame_us)
    label = next(part.label for part in breakdown(story.trace()).parts if part.name == "python")
    assert (label == IN_PYTHON) == (frame_us > 450), label


def test_samples_of_the_stack_tell_python_too():
    story = samples(Story(gpu=None), [("train.py:3 in step",)] * 40)
    story.step(1, 0, 1000)
    story.op("aten::mm", 0, 100)
    assert IN_PYTHON in {part.label for part in breakdown(story.trace()).parts}
