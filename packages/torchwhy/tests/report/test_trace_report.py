"""The report's numbers are those of the trace, and its keys those that are documented."""

import json
import typing
from pathlib import Path

import msgspec
import pytest

from tests.analysis.programs import PROGRAMS, computing, distributed, report_on, training, waiting
from tests.present.documents import shown
from tests.traces import Story
from torchwhy.analysis.recording import DeviceTimes, Launches, devices_of, launches_of
from torchwhy.report.job_report import JobReport
from torchwhy.report.trace_report import MutedRule, TraceReport, describe
from torchwhy.rules.diagnose import Diagnosis

KEYS = {
    "": "schema trace window gpu launches breakdown verdict findings muted ran",
    "trace": "file events devices rank world_size repairs",
    "window": "unshown_us gpu_span_us steps inferred",
    "launches": "count without_kernel kernels_without_launch graph_launches",
    "verdict": "kind sentence",
}
DEVICE = (
    "device name span_us busy_us idle_us compute_us communication_us exposed_communication_us memcpy_us "
    "exposed_memcpy_us kernels streams"
)
FINDING = "code slug title severity confidence time_us window evidence cause fix source"


def structs(kind):
    """The struct and all that its fields hold."""
    for argument in typing.get_args(kind):
        yield from structs(argument)
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        yield kind
        for held in typing.get_type_hints(kind).values():
            yield from structs(held)


@pytest.mark.parametrize("kind", [TraceReport, JobReport])
def test_the_schema_is_described(kind):
    page = (Path(__file__).parents[2] / "docs" / "report-schema.md").read_text()
    names = {name for struct in structs(kind) for name in struct.__struct_fields__}
    assert not {name for name in names if f"`{name}`" not in page}


def test_each_part_has_its_time_in_every_step():
    breakdown = report_on(training()).breakdown
    assert len(breakdown.step_starts_us) == breakdown.steps
    for part in breakdown.parts:
        assert len(part.steps_us) == breakdown.steps
        assert part.per_step.high_us == pytest.approx(max(part.steps_us))


def test_keys():
    report = json.loads(shown(report_on(training(), waiting), "json"))
    assert report["schema"] == 1
    for part, keys in KEYS.items():
        assert set(keys.split()) <= set(report[part] if part else report)
    assert set(report["gpu"][0]) == set(DEVICE.split())
    assert set(FINDING.split()) <= set(report["findings"][0])
    assert set(report["window"]["steps"][0]) >= {"name", "start_us", "duration_us"}


@pytest.mark.parametrize("name", PROGRAMS)
def test_json_reads_back_to_the_same(name):
    report = report_on(PROGRAMS[name]())
    assert msgspec.json.decode(shown(report, "json"), type=TraceReport) == report


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["AMD Instinct MI300X"], "AMD Instinct MI300X (numbered 2 in the trace) "),
        (["AMD Instinct MI300X", "AMD Instinct MI210"], "AMD GPU (numbered 2 in the trace) "),
        (["A", "B", "AMD Radeon"], "AMD Radeon (GPU 2, 1 of 3 used) "),
        ([], "GPU without a name (GPU 2) "),
    ],
)
def test_rocm_counts_processors_too(names, words):
    story = Story(gpu=None)
    story.top["deviceProperties"] = [{"id": i, "name": name} for i, name in enumerate(names)]
    story.kernel("gemm", 10, 50, launch_at=0, device=2)
    assert shown(report_on(story)).splitlines()[1].startswith(words)


def test_device_numbers():
    story = Story()
    story.kernel("gemm", 100, 50, launch_at=90)
    story.kernel("gemm", 120, 80, launch_at=95, stream=8)  # overlaps the first: 100 to 200 is busy
    story.kernel("ncclDevKernel_AllReduce", 180, 60, launch_at=97, stream=20)  # 40 us of it alone
    story.copy("HtoD (Pinned -> Device)", 230, 30, 100, launch_at=99)  # 20 us of it alone
    story.fill(300, 10, launch_at=299)
    assert devices_of(story.trace()) == (
        DeviceTimes(
            device=0,
            name="NVIDIA A100-SXM4-80GB",
            span_us=210.0,
            busy_us=170.0,
            idle_us=40.0,
            compute_us=110.0,
            communication_us=60.0,
            exposed_communication_us=40.0,
            memcpy_us=30.0,
            exposed_memcpy_us=20.0,
            kernels=3,
            streams=3,
        ),
    )


def test_launch_numbers():
    story = Story()
    story.kernel("gemm", 100, 50, launch_at=90)
    story.kernel("before the recording", 10, 5)
    story.call("cudaLaunchKernel", 200)
    story.call("cudaGraphLaunch", 300)
    assert launches_of(story.trace()) == Launches(count=3, without_kernel=2, kernels_without_launch=1, graph_launches=1)


def test_each_device_has_its_own_numbers():
    story = computing()
    story.kernel("gemm", 0, 70, launch_at=0, device=3)
    assert [(entry.device, entry.kernels) for entry in devices_of(story.trace())] == [(0, 15), (3, 1)]


def test_place_among_ranks():
    trace = report_on(distributed()).trace
    assert (trace.rank, trace.world_size, trace.backend) == (1, 2, "nccl")


def test_a_sound_file_has_no_repairs():
    assert report_on(training()).trace.repairs == ()


def test_a_time_out_of_range_is_called_so():
    story = training()
    story.op("aten::mm", 1e16, 5)
    found = {item.kind: item.sentence for item in report_on(story).trace.repairs}
    assert found["not_numbers"] == "1 value not a number (such as NaN or N/A) or out of range"


def test_repairs_are_counted_and_told():
    import io

    from torchwhy.trace.file.scanning import scan
    from torchwhy.trace.model.trace import Trace

    text = training().text()
    cut = text[: text.rindex("{")]
    trace = Trace("cut.json", scan(io.BytesIO(cut.encode())))
    (found,) = describe(trace, Diagnosis((), {})).trace.repairs
    assert (found.kind, found.count) == ("truncated", 1)
    assert "ends early" in found.sentence


def test_wrong_times_are_told():
    story = training()
    story.kernel("long", 100, 1e12, launch_at=90)
    story.op("backwards", 10, -5)
    found = {item.kind: item.sentence for item in report_on(story).trace.repairs}
    assert found == {
        "negative": "1 event with a negative duration were given none",
        "absurd": "1 event longer than a day were left out",
    }


def test_muted_rules_are_told_and_did_not_run():
    report = report_on(training(), muted={"B9": "no GPU"}, ran=("B9", "B10"))
    assert report.muted == (MutedRule("B9", "dataloader-wait", "no GPU"),)
    assert report.ran == ("B10",)
