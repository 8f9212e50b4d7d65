"""The report on the traces of several ranks."""

import json

import pytest

from profiler.ranks.jobs import write_job
from profiler.traces import Story
from torchfx.profiler.ranks import load_job
from torchfx.profiler.report import FORMATS, Style, render
from torchfx.profiler.report.job import describe_job
from torchfx.profiler.report.text import text


def report_on(folder, **how):
    job = load_job(write_job(folder / "job", 4, **how))
    return describe_job(job, job.diagnose(("F",)), ("F3",))


def test_text_has_the_ranks_and_who_came_last(tmp_path):
    shown = text(report_on(tmp_path, compute=[300, 300, 300, 420]), Style(width=80, unicode=True))
    assert shown.startswith("job\n4 ranks · 112 events\n\nCOMMUNICATION-BOUND\n")
    assert "  3     2.40 ms  595 us       70%         17%   13%  100% of 4\n" in shown
    assert "  all_reduce      4         8  760 us            47%  4.00 MB     120.0\n" in shown
    assert "F3 last-rank, high: 480 us" in shown
    assert max(map(len, shown.splitlines())) <= 80


@pytest.mark.parametrize(("compute", "kind"), [(100, "communication-bound"), (2000, "compute-bound")])
def test_verdict(tmp_path, compute, kind):
    assert report_on(tmp_path, compute=[compute] * 4)["verdict"]["kind"] == kind


@pytest.mark.parametrize("form", FORMATS)
def test_every_view(tmp_path, form):
    assert "last-rank" in render(report_on(tmp_path, compute=[300, 300, 300, 420]), form)


def test_json_is_plain(tmp_path):
    report = report_on(tmp_path)
    assert json.loads(render(report, "json")) == report
    assert set(report) >= {"schema", "trace", "ranks", "collectives", "stragglers", "verdict", "findings"}


def test_a_size_nobody_recorded_is_left_blank(tmp_path):
    report = report_on(tmp_path)
    report["collectives"][0]["median_bytes"] = None
    assert "  all_reduce      4         8  " in text(report, Style(width=80))


def test_ranks_without_gpus_are_not_said_to_have_some(tmp_path):
    folder = tmp_path / "job"
    folder.mkdir()
    for rank in range(2):
        story = Story(gpu=None, rank=rank)
        for i in range(3):
            story.step(i, 1000 * i, 1000)
            story.op("aten::mm", 1000 * i, 700)
        story.write(folder / f"rank{rank}.json")
    found = describe_job(load_job(folder), ())["verdict"]
    assert found["kind"] == "compute-bound"
    assert "GPU" not in found["sentence"]
    assert "operators compute for 70% of the time" in found["sentence"]


def test_what_takes_no_part_is_told(tmp_path):
    folder = write_job(tmp_path / "job", 2)
    (folder / "broken.json").write_text("nonsense")
    job = load_job(folder)
    shown = text(describe_job(job, ()), Style(width=80))
    assert "Left out: broken.json could not be read:" in shown
