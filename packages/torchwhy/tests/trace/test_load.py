"""`torchwhy.load`: a trace, or the part of it that was asked for."""

import gzip
import io
import os
import subprocess
import sys

import pytest

import torchwhy
from tests.traces import Story
from torchwhy.errors import ArgumentError, ArgumentTypeError, TraceError
from torchwhy.loading.trace import load
from torchwhy.trace.meaning.kinds import Kind


def four_steps():
    """Steps 5 to 8 of 100 us, from 1000 us on; the kernel of each runs in the next one."""
    story = Story()
    for i in range(4):
        at = 1000 + 100 * i
        story.step(5 + i, at, 100)
        story.op(f"aten::op{i}", at + 10, 50)
        story.kernel(f"kernel{i}", at + 110, 20, launch_at=at + 20, priority=i)
        story.memory(at + 30, 8, 8)
    return story


@pytest.fixture
def path(tmp_path):
    return four_steps().write(tmp_path / "trace.json")


def names(trace):
    """Names of everything that takes part, in file order."""
    return [trace.name(row) for row in range(len(trace)) if trace.events.kind[row] != Kind.OTHER]


def kernels(trace):
    return sorted(trace.kernels()["full_name"])


def test_a_path_a_gzip_an_open_file_give_the_same(path, tmp_path):
    packed = tmp_path / "trace.json.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    whole = names(load(path))
    assert len(whole) == 20
    assert names(load(str(path))) == names(load(packed)) == names(load(io.BytesIO(path.read_bytes()))) == whole


def test_it_is_a_public_name_that_loads_no_torch(path):
    code = f"""
import sys
import torchwhy
trace = torchwhy.load({str(path)!r})
print(len(trace.steps()), trace.window.name, len(trace.kernels()))
print([name for name in ('torch', 'pandas', 'duckdb', 'rich') if name in sys.modules])
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines() == ["4 ProfilerStep#5 to ProfilerStep#8 4", "[]"]
    assert torchwhy.load is load


# Steps


@pytest.mark.parametrize("steps", ["6-7", " 6 - 7 ", (6, 7), [6, 7], [7, 6, 7], range(6, 8)])
def test_some_steps_with_the_work_launched_in_them(path, steps):
    found = load(path, steps=steps)
    assert [step.number for step in found.steps_found] == [6, 7]
    assert kernels(found) == ["kernel1", "kernel2"]
    assert names(found).count("cudaLaunchKernel") == names(found).count("[memory]") == 2
    assert (found.links.launch >= 0).all()


@pytest.mark.parametrize("steps", ["8", 8, [8]])
def test_one_step(path, steps):
    assert kernels(load(path, steps=steps)) == ["kernel3"]


def test_steps_apart(path):
    assert kernels(load(path, steps=[5, 8])) == ["kernel0", "kernel3"]


def test_work_without_launch_belongs_to_the_step_it_ran_in(tmp_path):
    story = four_steps()
    story.kernel("early", 1120, 5)
    found = load(story.write(tmp_path / "t.json"), steps=6)
    assert kernels(found) == ["early", "kernel1"]


@pytest.mark.parametrize(
    ("steps", "error"),
    [
        ("9", ArgumentError),
        ("4-6", ArgumentError),
        ("five", ArgumentError),
        ("7-6", ArgumentError),
        ([], ArgumentError),
        ((5, 99), ArgumentError),
        (2.5, ArgumentTypeError),
        ([None], ArgumentTypeError),
    ],
)
def test_steps_that_make_no_sense(path, steps, error):
    with pytest.raises(error, match="among the recorded 5 to 8; got") as raised:
        load(path, steps=steps)
    assert repr(steps) in str(raised.value)


def test_steps_of_a_trace_without(tmp_path):
    story = Story()
    story.op("aten::mm", 0, 5)
    with pytest.raises(ArgumentError, match="choose a part of it with window"):
        load(story.write(tmp_path / "t.json"), steps=1)


# Window


def test_a_window_counts_from_the_beginning_of_the_trace(path):
    found = load(path, window=(100, 200))
    assert [step.number for step in found.steps_found] == [6]
    # The kernel of step 6 was launched in the window; that of step 5 ran in it, so its launch is kept too.
    assert kernels(found) == ["kernel0", "kernel1"]
    assert (found.links.launch >= 0).all()
    assert "aten::op0" not in names(found)


def test_a_step_cut_by_the_window_is_none(path):
    assert load(path, window=(0, 250)).window.name == "ProfilerStep#5 to ProfilerStep#6"
    assert load(path, window=(10, 60)).steps_found == ()


def test_numbers_of_a_part_are_of_the_part(path):
    """What lasts on outside of the window doesn't make it longer, and times count from the whole trace's beginning."""
    found = load(path, window=(110, 190))
    window = found.window
    assert (window.name, window.start, window.us) == ("110 to 190 us of the trace", 1_110_000, 80)
    assert [row["start_us"] for row in load(path, window=(100, 200)).steps()] == [100]
    assert found.gpu.busy.clip(window.start, window.end).total == 20_000
    assert found.overlap().rows()[0]["busy_us"] == 20


def test_a_window_may_end_after_the_trace(path):
    assert len(load(path, window=(0, 10**9))) == len(load(path))


@pytest.mark.parametrize(
    ("window", "error"),
    [
        ((-1, 5), ArgumentError),
        ((5, 5), ArgumentError),
        ((10**9, 10**9 + 1), ArgumentError),
        ((float("nan"), 5), ArgumentError),
        ((1, 2, 3), ArgumentTypeError),
        ("ab", ArgumentTypeError),
        (5, ArgumentTypeError),
    ],
)
def test_windows_that_make_no_sense(path, window, error):
    with pytest.raises(error, match="window must be"):
        load(path, window=window)


def test_a_part_takes_less_memory(tmp_path):
    story = Story()
    for at in story.steps(1000, 100):
        story.op("aten::mm", at + 10, 50)
    assert len(load(story.write(tmp_path / "t.json"), steps="10-19").events.ts) == 20


# Categories, columns


def test_categories_by_the_files_name_or_the_common_one(path):
    assert set(names(load(path, categories=["kernel"]))) == {f"kernel{i}" for i in range(4)}
    assert names(load(path, categories=["cpu_op"])) == names(load(path, categories="operator"))
    assert len(names(load(path, categories=["Runtime", "memory"]))) == 8


def test_an_unknown_category(path):
    with pytest.raises(ArgumentError, match=r"categories must be among .*user_annotation.*got 'gpu'"):
        load(path, categories=["gpu"])


def test_further_arguments_are_kept_on_request(path):
    assert not load(path).events.has("priority")
    found = load(path, columns={"priority": "int"})
    kernel = found.events.rows(Kind.KERNEL)
    assert found.events.integers("priority", kernel).tolist() == [0, 1, 2, 3]
    part = load(path, columns=["priority"], steps=6)
    assert part.events.text("priority", int(part.events.rows(Kind.KERNEL)[0])) == "1"


def test_arguments_that_are_used_anyway_keep_their_kind(path):
    assert load(path, columns=["correlation"]).events.integers("correlation", [2])[0] == 1001


@pytest.mark.parametrize(
    ("columns", "error"),
    [({"priority": "number"}, ArgumentError), ({5: "int"}, ArgumentTypeError), ([7], ArgumentTypeError)],
)
def test_columns_that_make_no_sense(path, columns, error):
    with pytest.raises(error, match="columns"):
        load(path, columns=columns)


# Arguments, read again


def test_all_arguments_of_some_events(path):
    found = load(path, steps="6-7")
    rows = found.events.rows(Kind.KERNEL)[::-1]
    assert [args["priority"] for args in found.arguments(rows)] == [2, 1]
    assert found.arguments([]) == []


def test_rows_that_are_not_the_traces(path):
    with pytest.raises(ArgumentError, match=r"rows must lie in \[0, 20\), got 20"):
        load(path).arguments([0, 20])


def test_an_open_file_cannot_be_read_again(path):
    found = load(io.BytesIO(path.read_bytes()))
    with pytest.raises(TraceError, match="cannot be read a second time"):
        found.arguments([0])


def test_a_file_that_changed_cannot_be_read_again(path):
    found = load(path)
    os.utime(path, ns=(1, 1))
    with pytest.raises(TraceError, match="has changed since it was loaded"):
        found.arguments([0])
    path.unlink()
    with pytest.raises(TraceError, match="cannot be read again"):
        found.arguments([0])


# Folders


def test_a_folder_of_ranks_is_no_trace(tmp_path):
    for rank in range(2):
        Story(gpu=None).write(tmp_path / f"rank{rank}.json")
    with pytest.raises(TraceError, match=r"traces of several ranks: load_job reads them all, load one such as .*rank0"):
        load(tmp_path)


def test_a_folder_of_several_programs_is_no_trace(tmp_path):
    for name in ("resnet", "bert"):
        Story(gpu=None).write(tmp_path / f"{name}.json")
    with pytest.raises(TraceError, match=r"holds 2 traces.*name those to read, such as .*bert.json"):
        load(tmp_path)


def test_a_folder_with_one_trace_is_that_trace(tmp_path):
    story = Story(gpu=None)
    story.step(3, 0, 100)
    story.step(4, 100, 100)
    (tmp_path / "trace.json.gz").write_bytes(gzip.compress(story.text().encode()))
    (tmp_path / "operators.json").write_text("{}")
    assert [step.name for step in load(tmp_path, steps=4).steps_found] == ["ProfilerStep#4"]


def test_a_missing_file_is_said_to_be_missing():
    with pytest.raises(TraceError, match="does not exist"):
        load("no/such/trace.json")


# Diagnosing


def test_what_is_wrong_can_be_asked():
    story = Story(gpu=None)
    for at in story.steps(4, 1000):
        story.note("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at, 400)
    trace = load(io.BytesIO(story.text().encode()))
    assert [finding.slug for finding in trace.diagnose(select=("dataloader-wait",))] == ["dataloader-wait"]
    assert trace.diagnose(select=("B9",), ignore=("B",)) == ()
    assert trace.diagnose(select=("B9",), thresholds={"dataloader-wait": {"share": 0.9}}) == ()
