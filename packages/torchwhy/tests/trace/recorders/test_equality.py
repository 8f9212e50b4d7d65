"""The same program recorded by PyTorch's profiler and by others: busy, idle, launches, copies and labels are equal."""

import gzip
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings

from tests.command_line import run_here
from tests.random_stories import build, stories
from tests.trace.recorders.writers import (
    CALL_KINDS,
    HOST_KINDS,
    WORK_KINDS,
    loaded,
    write_nsight,
    write_perfetto,
    write_rocm_json,
    write_rocpd,
)
from tests.traces import Story
from torchwhy.analysis.breakdown import breakdown
from torchwhy.analysis.recording import devices_of, launches_of, window_of
from torchwhy.loading.trace import load

RECORDED = Path(__file__).parents[2] / "recorded"
WRITERS = {"nsight": write_nsight, "rocpd": write_rocpd, "rocm json": write_rocm_json, "perfetto": write_perfetto}

AMD = ("rocpd", "rocm json")
"""There fills are kernels, and copies do not tell pageable from pinned memory."""


def command(*words, folder="."):
    return run_here(*words, folder=folder)


def gpu_facts(trace, *, fills=True):
    """All times of the device; with kernels and fills told apart, or together (AMD's fills are kernels)."""
    devices = []
    for work, times in zip(trace.gpus, devices_of(trace), strict=True):
        busy = (times.device, times.span_us, times.busy_us, times.idle_us, times.compute_us, times.communication_us)
        exposed = (times.exposed_communication_us, times.memcpy_us, times.exposed_memcpy_us, times.streams)
        devices.append((busy, exposed, times.kernels if fills else len(work.rows)))
    launches = launches_of(trace)
    return devices, (launches.count, launches.graph_launches, *([launches.without_kernel] if fills else []))


def facts(trace, **how):
    window = window_of(trace)
    parts = [(part.name, part.time_us) for part in breakdown(trace).parts]
    idle = [
        (row["start_us"], row["length_us"], row["cause"], row["host"], row["host_us"]) for row in trace.idle().rows()
    ]
    labels = trace.labels().rows()
    return gpu_facts(trace, **how), window.duration_us, window.steps, parts, idle, labels


def work_by_stream(trace, *, places=True):
    """Each piece of work with its device, stream, name, times and the call that put it there."""
    events, links = trace.events, trace.links
    streams = events.integers("stream", links.work).tolist()
    found = []
    for row, launch, stream in zip(links.work.tolist(), links.launch.tolist(), streams, strict=True):
        call = (trace.name(launch), int(events.ts[launch]), trace.lane(launch).tid) if launch >= 0 else None
        name = trace.name(row) if places else trace.name(row).partition(" (")[0]
        found.append((stream, int(events.ts[row]), int(events.end[row]), name, call))
    return sorted(found, key=repr)


def several_streams():
    story = Story()
    for number in range(3):
        start = 1000 * number
        story.note("my label", start + 5, 400)
        story.op("aten::linear", start + 10, 30, **{"Input Dims": [[4, 8], [8, 8]]})
        story.kernel("sgemm", start + 40, 50.125, launch_at=start + 15, grid=[4, 2, 1], block=[128, 1, 1])
        story.kernel("add", start + 60, 100, launch_at=start + 45, stream=20)
        story.copy("HtoD (Pageable -> Device)", start + 200, 30, 4096, launch_at=start + 190)
        story.copy("DtoH (Device -> Pinned)", start + 240, 30, 512, launch_at=start + 235, stream=21)
        story.call("cudaStreamSynchronize", start + 300, 50)
        story.step(number, start, 900)
    return story


def with_fills():
    story = several_streams()
    story.fill(3000, 7.5, launch_at=2990)
    story.kernel("before the recording", 1, 3)
    return story


STORIES = {"several streams": several_streams, "fills": with_fills}


@pytest.fixture(scope="module")
def read(tmp_path_factory):
    """Read a trace as JSON and as another recorder's file."""

    def pair(text, writer):
        folder = tmp_path_factory.mktemp("pair")
        (folder / "story.json").write_text(text)
        other = WRITERS[writer](loaded(text), folder / "story.other")
        return load(folder / "story.json"), load(other)

    return pair


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("name", ["training_step", "matmul_add_graph", "matmul_add_compiled"])
def test_a_recording_of_a_gpu_is_equal(read, name, writer):
    text = gzip.decompress((RECORDED / f"{name}.json.gz").read_bytes()).decode()
    ours, theirs = read(text, writer)
    fills, whole = writer not in AMD, name != "matmul_add_compiled" or writer == "perfetto"
    compared = facts if whole else gpu_facts  # emit_nvtx doesn't tell labels of compiled code from the program's
    assert compared(theirs, fills=fills) == compared(ours, fills=fills)
    if fills:
        assert work_by_stream(theirs) == work_by_stream(ours)
        assert theirs.kernels().rows() == ours.kernels().rows()


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("story", STORIES)
def test_streams_copies_and_labels_are_equal(read, story, writer):
    ours, theirs = read(STORIES[story]().text(), writer)
    exact = writer not in AMD
    assert facts(theirs, fills=exact) == facts(ours, fills=exact)
    if exact or story == "several streams":
        assert work_by_stream(theirs, places=exact) == work_by_stream(ours, places=exact)
        assert [row["bytes"] for row in theirs.copies().rows()] == [row["bytes"] for row in ours.copies().rows()]


@pytest.mark.parametrize("writer", ["nsight", "perfetto"])
def test_random_programs_are_equal(read, writer):
    @settings(max_examples=8, deadline=None, phases=[Phase.generate])
    @given(stories)
    def holds(recipe):
        story = build(recipe)
        kept = (*HOST_KINDS, *CALL_KINDS, *WORK_KINDS)
        story.events = [event for event in story.events if event["cat"] in kept]
        for event in story.events:
            if event["cat"] not in HOST_KINDS:  # only PyTorch's profiler notes the operator around a call
                event["args"].pop("External id", None)
        ours, theirs = read(story.text(), writer)
        assert gpu_facts(theirs) == gpu_facts(ours)
        assert breakdown(theirs).window_us == breakdown(ours).window_us

    holds()


def test_explaining_an_export_says_the_same(tmp_path):
    path = RECORDED / "training_step.json.gz"
    other = write_nsight(loaded(gzip.decompress(path.read_bytes()).decode()), tmp_path / "step.sqlite")
    ours, theirs = (command("explain", each).stdout.splitlines() for each in (path, other))
    assert theirs[1] == ours[1].replace("857 events · recorded with shapes", "566 events · recorded by Nsight Systems")
    assert theirs[2:] == ours[2:]


def test_a_part_is_cut_and_arguments_are_read_again(tmp_path):
    other = write_nsight(loaded(several_streams().text()), tmp_path / "story.sqlite")
    assert command("cut", other, "--steps", "1", "-o", tmp_path / "one.json").returncode == 0
    one, whole = load(tmp_path / "one.json"), load(other)
    assert one.gpu.busy.total == load(other, steps="1").gpu.busy.total == whole.gpu.busy.total // 3
    assert one.info.recorder == "Nsight Systems"
    assert whole.arguments(whole.gpu.kernels)[0]["grid"] == [4, 2, 1]


@pytest.mark.parametrize("writer", WRITERS)
def test_packed_files_and_open_ones_are_equal(tmp_path, writer):
    path = WRITERS[writer](loaded(several_streams().text()), tmp_path / "story")
    packed = tmp_path / "story.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    whole = facts(load(path), fills=False)
    with path.open("rb") as file:
        assert facts(load(file), fills=False) == facts(load(packed), fills=False) == whole


def test_a_folder_of_exports_is_a_job(tmp_path):
    for rank in (0, 1):
        write_nsight(loaded(several_streams().text()), tmp_path / f"report_rank{rank}.sqlite")
    ran = command("explain", tmp_path)
    assert ran.returncode == 0
    assert "2 ranks" in ran.stdout
