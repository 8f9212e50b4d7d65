"""The report on the traces of several ranks."""

import msgspec
import pytest

from tests.present.documents import shown
from tests.ranks.jobs import write_job
from tests.traces import Story
from torchwhy.loading.job import load_job
from torchwhy.present.formats import FORMATS
from torchwhy.present.style import Style
from torchwhy.report.job_report import JobReport, describe_job
from torchwhy.rules.catalogue import all_rules
from torchwhy.rules.rule import rule


def report_on(folder, **how):
    job = load_job(write_job(folder / "job", 4, **how))
    return describe_job(job, job.diagnose(("F",)), ("F3",))


def test_text_has_the_ranks_and_who_came_last(tmp_path):
    drawn = shown(report_on(tmp_path, compute=[300, 300, 300, 420]), style=Style(width=100, unicode=True))
    assert drawn.startswith("job\n4 ranks · 112 events\n\nCOMMUNICATION-BOUND\n")
    assert "  3     2.40 ms  595 us       70%        17%     0%   13%  100% of 4\n" in drawn
    assert "  all_reduce  NCCL         4         8  760 us      0%        53%    47%  4.00 MB     120.0\n" in drawn
    assert "F3 last-rank, high: 480 us" in drawn
    assert max(map(len, drawn.splitlines())) <= 100


@pytest.mark.parametrize(("compute", "kind"), [(100, "communication-bound"), (2000, "compute-bound")])
def test_verdict(tmp_path, compute, kind):
    assert report_on(tmp_path, compute=[compute] * 4).verdict.kind == kind


@pytest.mark.parametrize("form", FORMATS)
def test_every_view(tmp_path, form):
    assert "last-rank" in shown(report_on(tmp_path, compute=[300, 300, 300, 420]), form)


def test_json_is_plain(tmp_path):
    report = report_on(tmp_path)
    assert msgspec.json.decode(shown(report, "json"), type=JobReport) == report
    assert set(msgspec.to_builtins(report)) >= {
        "schema",
        "trace",
        "ranks",
        "collectives",
        "stragglers",
        "verdict",
        "findings",
    }


def test_a_size_nobody_recorded_is_left_blank(tmp_path):
    report = report_on(tmp_path)
    (row,) = report.collectives
    blank = msgspec.structs.replace(report, collectives=(msgspec.structs.replace(row, median_bytes=None),))
    assert "  all_reduce  NCCL         4         8  " in shown(blank)


def test_ranks_without_gpus_are_not_said_to_have_some(tmp_path):
    folder = tmp_path / "job"
    folder.mkdir()
    for rank in range(2):
        story = Story(gpu=None, rank=rank)
        for at in story.steps(3, 1000):
            story.op("aten::mm", at, 700)
        story.write(folder / f"rank{rank}.json")
    found = describe_job(load_job(folder), ()).verdict
    assert found.kind == "compute-bound"
    assert "the GPU" not in found.sentence
    assert "The processor is the limit: operators run for 70%" in found.sentence


def test_what_takes_no_part_is_told(tmp_path):
    folder = write_job(tmp_path / "job", 2)
    (folder / "broken.json").write_text("nonsense")
    job = load_job(folder)
    drawn = shown(describe_job(job, ()))
    assert "Left out: broken.json could not be read:" in drawn


def write_gloo(folder, computing):
    folder.mkdir()
    for rank, us in enumerate(computing):
        story = Story(gpu=None, distributedInfo={"backend": "gloo", "rank": rank, "world_size": len(computing)})
        for at in story.steps(3, 1000):
            story.op("aten::mm", at, us)
            story.op("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", at + us, 960 - us)
            story.op("c10d::allreduce_", at + us, 960 - us)
            story.note("gloo:all_reduce", at + us, 960 - us, tid=200)
        story.write(folder / f"rank{rank}.json")
    return load_job(folder)


def test_all_numbers_of_the_verdict_are_one_ranks(tmp_path):
    found = describe_job(write_gloo(tmp_path / "job", [200, 900]), ()).verdict
    assert found.kind == "communication-bound"
    assert "operators compute for 20% of the time, it only communicates for 76%" in found.sentence
    assert "does neither for 4.0%" in found.sentence
    found = describe_job(write_gloo(tmp_path / "three", [900, 200, 500]), ()).verdict
    assert "on rank 2, the median of 3 ranks by communication, operators compute for 50%" in found.sentence


def test_waiting_within_a_backward_node_is_not_computing(tmp_path):
    job = write_gloo(tmp_path / "job", [400, 400])
    assert [row["compute_us"] for row in job.ranks.rows()] == [1200, 1200]
    assert [row["exposed_us"] for row in job.ranks.rows()] == [3 * 560, 3 * 560]


@rule("X9", "breaks-off", source="a test", on="job")
def breaks_off(job):
    """Fails."""
    raise KeyError("ranks")
    yield


@rule("X6", "breaks-off-on-a-trace", source="a test")
def breaks_off_on_a_trace(trace):
    """Fails."""
    raise KeyError("name")
    yield


def test_rules_that_fail_are_named_and_the_others_are_heard(tmp_path, monkeypatch):
    rules = (*all_rules(), breaks_off, breaks_off_on_a_trace)
    for module in ("rules.catalogue", "rules.diagnose", "report.trace_report"):
        monkeypatch.setattr(f"torchwhy.{module}.all_rules", lambda: rules)
    job = load_job(write_job(tmp_path / "job", 4, compute=[300, 300, 300, 420]), workers=1)
    report = describe_job(job, job.diagnose(), ("F3", "X6", "X9"))
    assert "last-rank" in [finding.slug for finding in report.findings]
    assert [(item.code, item.error) for item in report.failed] == [
        ("X6", "on rank 0: KeyError: 'name'"),
        ("X9", "KeyError: 'ranks'"),
    ]
    assert report.ran == ("F3",)
    for form in FORMATS:
        assert "breaks-off-on-a-trace" in shown(report, form) or form == "sarif"


def test_ranks_that_agree_give_the_job_their_verdict(tmp_path):
    for rank in range(3):
        story = Story(rank=rank)
        for at in story.steps(3, 1000):
            for j in range(10):
                story.op("aten::add", at + 95 * j + 5, 60)
                story.kernel("add", at + 95 * j + 60, 5, launch_at=at + 95 * j + 40)
        story.write(tmp_path / f"rank{rank}.json")
    found = describe_job(load_job(tmp_path), ()).verdict
    assert found.kind == "overhead-bound"
    assert found.sentence.startswith("All 3 ranks have this verdict. On rank 1: The GPU waits for the program:")
