"""A folder of traces is a job: read in parallel, summed up, compared."""

import gzip
import json
import subprocess
import sys
import time
from types import SimpleNamespace

import msgspec
import pytest

from tests.difference.pairs import loop
from tests.ranks.jobs import rank_story, write_job
from tests.traces import Story, a_finding
from torchwhy.errors import ArgumentError, TraceError
from torchwhy.loading import workers
from torchwhy.loading.job import load_job
from torchwhy.ranks.findings import merged_findings
from torchwhy.report.job_report import describe_job
from torchwhy.rules.catalogue import all_rules
from torchwhy.trace.model.intervals import Window


def slugs(job, **how):
    return [finding.slug for finding in job.diagnose(**how)]


def finding(job, slug):
    found = [item for item in job.diagnose() if item.slug == slug]
    assert len(found) == 1
    return found[0]


def report(job):
    return msgspec.to_builtins(describe_job(job, job.diagnose()))


def test_a_rank_is_summed_up(tmp_path):
    job = load_job(write_job(tmp_path / "job", 2, compute=[300, 200]))
    first, second = job.ranks.rows()
    assert (first["rank"], second["rank"]) == (0, 1)
    assert first["compute_us"] == 4 * 300
    assert second["compute_us"] == 4 * 200
    assert first["communication_us"] == 4 * 100
    assert second["communication_us"] == 4 * 200  # 100 of them waiting for rank 0
    assert second["waited_us"] == 4 * 100
    assert first["waited_for_us"] == 4 * 100
    assert second["waited_for_us"] == 0


def test_bandwidth_comes_from_the_rank_that_waits_least(tmp_path):
    job = load_job(write_job(tmp_path / "job", 4, compute=[300, 100, 100, 100], size=4_000_000))
    [row] = job.collectives().rows()
    assert (row["name"], row["group_size"], row["count"], row["median_bytes"]) == ("all_reduce", 4, 8, 4_000_000)
    assert row["algorithm_gb_s"] == pytest.approx(4_000_000 / 50e3)
    assert row["bus_gb_s"] == pytest.approx(1.5 * 4_000_000 / 50e3)
    assert row["waiting_us"] == pytest.approx(4 * 200 * 3 / 4)


@pytest.mark.parametrize("numbered", [True, False])
def test_the_rank_that_is_waited_for_is_found(tmp_path, numbered):
    job = load_job(write_job(tmp_path / "job", 4, compute=[300, 300, 450, 300], steps=8, numbered=numbered))
    top = job.stragglers().rows()[0]
    assert (top["rank"], top["last"], top["of"]) == (2, 8, 8)
    assert top["waited_for_us"] == 8 * 150
    found = finding(job, "last-rank")
    assert "Rank 2" in found.title
    assert found.confidence == ("high" if numbered else "medium")
    assert found.time_us == 8 * 150
    assert "computes 1.20 ms longer" in found.cause


def test_one_long_wait_per_step_outweighs_short_ones(tmp_path):
    """Rank 1 is late to the first collective of a step; after it the other one is, a little."""
    for rank in range(2):
        story = rank_story(rank, 2, compute=[300, 500], steps=8, collectives=3)
        for event in story.events:
            if event["args"].get("Seq", 0) % 3 and rank == 1:
                event["ts"], event["dur"] = event["ts"] - 15, event["dur"] + 15
        story.write(tmp_path / f"rank{rank}.json")
    job = load_job(tmp_path)
    rows = job.stragglers().rows()
    assert [(row["rank"], row["last"], row["of"], row["most"], row["of_steps"]) for row in rows] == [
        (1, 8, 24, 8, 8),
        (0, 16, 24, 0, 8),
    ]
    assert "Rank 1 keeps" in finding(job, "last-rank").title


def test_waiting_in_two_collectives_at_once_counts_once(tmp_path):
    for rank in range(2):
        story = rank_story(rank, 2, compute=[300, 500], steps=8, collectives=1)
        for event in [event for event in story.events if event["name"].startswith("ncclDev")]:
            args = {**event["args"], "Process Group Name": "1"}
            del args["correlation"], args["stream"]
            story.kernel(event["name"], event["ts"], event["dur"], launch_at=event["ts"] - 3, **{**args, "stream": 30})
        story.write(tmp_path / f"rank{rank}.json")
    job = load_job(tmp_path)
    assert job.stragglers().rows()[0]["last"] == 16
    assert job.stragglers().rows()[0]["waited_for_us"] == 8 * 200
    assert job.ranks["waited_us"].tolist() == [8 * 200, 0]


def test_a_late_host_is_told_from_more_work(tmp_path):
    job = load_job(write_job(tmp_path / "job", 4, compute=[300] * 4, late=[0, 0, 0, 200], steps=8))
    cause = finding(job, "last-rank").cause
    assert "it waits for the next launch" in cause
    assert "computes" not in cause
    assert "rank-imbalance" not in slugs(job)


def test_a_rank_that_sleeps_in_three_steps_comes_first(tmp_path):
    """Two ranks, one of which sleeps 50 ms: exchanging less often doesn't help."""
    job = load_job(write_job(tmp_path / "job", 2, compute=[300] * 2, late=[0, 50_000], steps=3))
    found = job.diagnose()[0]
    assert found.slug == "last-rank"
    assert "Rank 1 keeps" in found.title
    assert found.time_us == 3 * 50_000
    assert not {"exposed-comm", "exposed-transfer", "mutual-waiting"} & set(slugs(job))


def test_one_late_step_of_three_makes_no_straggler(tmp_path):
    for rank in range(2):
        story = rank_story(rank, 2, compute=[300, 300], steps=3)
        if rank == 0:  # it waits 200 us in the second step
            late = next(event for event in story.events if event["args"].get("Seq") == 2 and event["pid"] == 0)
            late["ts"], late["dur"] = late["ts"] - 200, late["dur"] + 200
        story.write(tmp_path / f"rank{rank}.json")
    assert "last-rank" not in slugs(load_job(tmp_path))


def test_two_ranks_that_are_late_together_are_not_blamed_each(tmp_path):
    """Were one of them on time, the others would still wait for the other one."""
    job = load_job(write_job(tmp_path / "job", 4, compute=[300, 300, 500, 500], steps=8))
    assert job.saved.max() == 0
    assert "last-rank" not in slugs(job)
    assert "Other ranks come little earlier" in finding(job, "mutual-waiting").cause


def test_an_even_job_transfers(tmp_path):
    job = load_job(write_job(tmp_path / "job", 4))
    found = finding(job, "exposed-transfer")
    assert "only transfers data; for 0% it waits for other ranks" in found.title
    assert found.evidence[0].note == "NCCL"
    assert "exposed-comm" not in slugs(job)


def test_where_ranks_are_missing_transfer_and_waiting_are_not_told_apart(tmp_path):
    folder = write_job(tmp_path / "job", 4)
    (folder / "rank3.json").unlink()
    job = load_job(folder)
    assert not job.compared
    assert "exposed-comm" in slugs(job)
    assert "exposed-transfer" not in slugs(job)


def test_communication_of_the_step_before_takes_no_part(tmp_path):
    """A rank's all-reduce of the step before ends in the recorded one."""
    for rank in range(2):
        story = rank_story(rank, 2, compute=[300, 300], steps=3)
        first = min(event["ts"] for event in story.events)
        story.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", first + 1, 20 if rank else 45, stream=20)
        story.write(tmp_path / f"rank{rank}.json")
    assert load_job(tmp_path).ranks["collectives"].tolist() == [6, 6]


def test_ranks_that_take_turns_are_no_stragglers(tmp_path):
    for rank in range(4):
        story = None
        for step in range(8):
            compute = [300 + 150 * (r == step % 4) for r in range(4)]
            one = rank_story(rank, 4, compute=compute, steps=1, first=3 + step)
            for event in one.events:
                event["ts"] += 1000 * step
                if "correlation" in event["args"]:
                    event["args"]["correlation"] += 1000 * step
                if "Seq" in event["args"]:
                    event["args"]["Seq"] += 2 * step
            if story is None:
                story = one
            else:
                story.events += one.events
        story.write(tmp_path / f"rank{rank}.json")
    job = load_job(tmp_path)
    assert job.stragglers()["last"].tolist() == [2, 2, 2, 2]
    assert "last-rank" not in slugs(job)
    found = finding(job, "mutual-waiting")
    assert "Smaller messages don't help" in found.fix
    assert found.time_us <= found.window.us


def test_hidden_waiting_is_no_waiting(tmp_path):
    for rank in range(2):
        story = rank_story(rank, 2, compute=[300, 100], steps=8)
        for event in [event for event in story.events if event["name"].startswith("ncclDev")]:
            story.kernel("gemm", event["ts"], event["dur"], launch_at=event["ts"] - 5)
        story.write(tmp_path / f"rank{rank}.json")
    job = load_job(tmp_path)
    assert job.stragglers()["waited_for_us"].sum() == 0
    assert "last-rank" not in slugs(job)


def test_uneven_work_is_found(tmp_path):
    job = load_job(write_job(tmp_path / "job", 4, compute=[300, 310, 420, 305], collectives=0))
    found = finding(job, "rank-imbalance")
    assert found.title.startswith("Rank 2 computes 38% longer than the median rank")
    assert found.time_us == pytest.approx(4 * (420 - 310))


def test_of_two_ranks_the_other_one_is_the_measure(tmp_path):
    job = load_job(write_job(tmp_path / "job", 2, compute=[100, 400], collectives=0))
    found = finding(job, "rank-imbalance")
    assert found.title == "Rank 1 computes 300% longer than the other one"
    assert found.time_us == pytest.approx(4 * 300)


def test_an_even_job_has_no_finding_of_its_own(tmp_path):
    job = load_job(write_job(tmp_path / "job", 4, compute=[300, 302, 301, 299], steps=8))
    assert not {"last-rank", "rank-imbalance", "rank-set"} & set(slugs(job))


def test_a_whole_job_is_not_told_to_record_all_ranks(tmp_path):
    for rank, us in enumerate((200, 600)):
        story = Story(gpu=None, distributedInfo={"backend": "gloo", "rank": rank, "world_size": 2})
        for at in story.steps(4, 990, every=1000):
            story.op("aten::mm", at, us)
            story.note("gloo:all_reduce", at + us, 960 - us, tid=200)
        story.write(tmp_path / f"rank{rank}.json")
    job = load_job(tmp_path)
    assert "last-rank" in slugs(job)
    assert "cpu-exposed-comm" not in slugs(job)
    assert [found.slug for found in job.diagnose() if "ecord" in found.fix] == []


def test_missing_ranks_are_named_and_nobody_is_blamed(tmp_path):
    folder = write_job(tmp_path / "job", 8, compute=[300] * 7 + [500], steps=8)
    for rank in (2, 3, 7):
        (folder / f"rank{rank}.json").unlink()
    job = load_job(folder)
    assert "3 of 8 ranks have no trace here: 2-3, 7" in finding(job, "rank-set").title
    assert "last-rank" not in slugs(job)  # the one all wait for isn't here


def test_asking_for_some_ranks_misses_none(tmp_path):
    job = load_job(write_job(tmp_path / "job", 8), ranks=[1, 3])
    assert job.numbers == (1, 3)
    assert "rank-set" not in slugs(job)


def test_a_rank_recorded_twice_counts_once(tmp_path):
    folder = write_job(tmp_path / "job", 2)
    rank_story(1, 2, compute=[300, 300], first=90).write(folder / "another.json")
    job = load_job(folder)
    assert len(job) == 2
    assert [summary.steps[0] for summary in job.summaries] == ["ProfilerStep#3", "ProfilerStep#3"]
    assert "1 traces too many: rank 1 there more" in finding(job, "rank-set").title
    assert report(job)["duplicates"] == ("another.json",)


def test_traces_of_different_runs_are_told(tmp_path):
    folder = write_job(tmp_path / "job", 3)
    rank_story(2, 4, compute=[300] * 4, first=50, gpu="NVIDIA H100 80GB HBM3").write(folder / "rank2.json")
    titles = " ".join(item.title for item in load_job(folder).diagnose(select=("rank-set",)))
    assert "number of ranks" in titles
    assert "Rank 2 recorded other steps" in titles
    assert "device differs" in titles


def test_findings_of_many_ranks_are_said_once(tmp_path):
    found = finding(load_job(write_job(tmp_path / "job", 4)), "hotspot")
    assert "on all 4 ranks" in found.title
    assert found.evidence[0].where.startswith("rank ")


def test_what_cannot_be_read_is_named_and_skipped(tmp_path):
    folder = write_job(tmp_path / "job", 2)
    (folder / "broken.json").write_text("{")
    (folder / "settings.json").write_text('{"learning_rate": 1}')
    (folder / "notes.txt").write_text("hello")
    job = load_job(folder)
    assert set(job.unreadable) == {"broken.json", "settings.json"}
    assert job.ignored == ("notes.txt",)
    assert len(job) == 2


@pytest.mark.parametrize("made", ["nothing", "a text", "no trace"])
def test_a_folder_without_traces_is_an_error(tmp_path, made):
    if made == "a text":
        (tmp_path / "notes.txt").write_text("hello")
    if made == "no trace":
        (tmp_path / "a.json").write_text("{}")
    with pytest.raises(TraceError, match=r"no traces in it|no readable trace"):
        load_job(tmp_path)


def test_a_folder_that_is_none_is_an_error(tmp_path):
    with pytest.raises(TraceError, match="does not exist"):
        load_job(tmp_path / "nothing")
    with pytest.raises(TraceError, match="no trace of ranks 5"):
        load_job(write_job(tmp_path / "job", 2), ranks=[5])


def test_ranks_come_from_names_of_files_or_folders_where_traces_do_not_tell(tmp_path):
    for rank in (0, 1):
        (tmp_path / f"rank_{rank}").mkdir()
        rank_story(rank, 2, compute=[300, 300], distributedInfo={}).write(tmp_path / f"rank_{rank}" / "trace.json")
    job = load_job(tmp_path)
    assert job.numbered
    assert job.numbers == (0, 1)


def test_files_are_counted_where_nothing_tells_the_rank(tmp_path):
    for name in ("a", "b"):
        rank_story(0, 2, compute=[300, 300], distributedInfo={}).write(tmp_path / f"{name}.json")
    job = load_job(tmp_path)
    assert not job.numbered
    assert job.numbers == (0, 1)
    assert "rank-set" not in slugs(job)


def test_traces_without_anything_in_them_give_a_report(tmp_path):
    for rank in range(3):
        (tmp_path / f"rank{rank}.json").write_text(json.dumps({"traceEvents": []}))
    job = load_job(tmp_path)
    assert not report(job)["collectives"]
    assert str(job.ranks)


def test_a_single_trace_is_a_job_too(tmp_path):
    job = load_job(write_job(tmp_path / "job", 1))
    assert job.numbers == (0,)
    assert report(job)["schema"] == 1


def test_everything_is_plain_values(tmp_path):
    job = load_job(write_job(tmp_path / "job", 4, compute=[300, 300, 300, 500], steps=8))
    found = report(job)
    assert [row["rank"] for row in found["ranks"]] == [0, 1, 2, 3]
    assert found["stragglers"][0]["rank"] == 3
    assert "last-rank" in {item["slug"] for item in found["findings"]}


def test_rules_can_be_chosen(tmp_path):
    job = load_job(write_job(tmp_path / "job", 4, compute=[300, 300, 300, 500], collectives=0))
    assert set(slugs(job, select=("F3", "F4"))) == {"rank-imbalance"}
    assert "rank-imbalance" not in slugs(job, ignore=("rank-imbalance",))
    assert "rank-imbalance" not in slugs(job, thresholds={"rank-imbalance": {"spread": 2.0}})


def test_processes_find_what_one_process_finds(tmp_path):
    folder = write_job(tmp_path / "job", 4, compute=[300, 300, 300, 500], steps=8)
    (folder / "broken.json").write_text("{")
    here, there = load_job(folder, processes=1), load_job(folder, processes=2)
    assert report(here) == report(there)


def test_a_program_without_a_main_guard_can_read_a_job(tmp_path):
    """Starting processes must not run the program again."""
    folder = write_job(tmp_path / "job", 2)
    program = tmp_path / "program.py"
    program.write_text(
        "import sys\nfrom torchwhy.loading.job import load_job\n"
        f"print(len(load_job({str(folder)!r}, processes=2)), 'torch' in sys.modules)\n"
    )
    ran = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["2", "False"]


def test_128_ranks_are_read_quickly(tmp_path):
    folder = tmp_path / "job"
    folder.mkdir()
    compute = [300] * 128
    compute[77] = 600
    for rank in range(128):
        text = rank_story(rank, 128, compute=compute, steps=8).text()
        (folder / f"rank{rank}.json.gz").write_bytes(gzip.compress(text.encode(), 1))
    started = time.process_time()
    job = load_job(folder, processes=1)
    assert time.process_time() - started < 60
    assert len(job) == 128
    assert job.stragglers()["rank"][0] == 77
    assert "Rank 77" in finding(job, "last-rank").title


@pytest.mark.parametrize("rule", [rule for rule in all_rules() if rule.on == "job"], ids=lambda rule: rule.slug)
def test_rules_on_jobs_have_their_cases_here(rule):
    assert rule.slug in {"exposed-transfer", "last-rank", "mutual-waiting", "rank-imbalance", "rank-set"}


def test_names_of_files_tell_ranks_apart_where_traces_all_say_the_same(tmp_path):
    for rank in range(3):
        info = {"backend": "nccl", "rank": 0, "world_size": 1}
        rank_story(rank, 3, compute=[300] * 3, distributedInfo=info).write(tmp_path / f"rank{rank}.json")
    job = load_job(tmp_path)
    assert job.numbers == (0, 1, 2)
    assert "rank-set" not in slugs(job)


def test_absurd_numbers_of_ranks_are_none(tmp_path):
    for rank in range(2):
        info = {"rank": rank, "world_size": 2**70}
        rank_story(rank, 2, compute=[300] * 2, distributedInfo=info).write(tmp_path / f"{rank}.json")
    job = load_job(tmp_path)
    assert job.world_size is None
    assert "rank-set" not in slugs(job)


def test_a_process_that_dies_costs_its_file_only(tmp_path, monkeypatch):
    folder = write_job(tmp_path / "job", 3)
    monkeypatch.setattr(workers, "_program", lambda: "import sys; sys.stdin.buffer.read(1); sys.exit(3)")
    with pytest.raises(TraceError, match="ended with status 3"):
        load_job(folder, processes=2)


def test_a_title_whose_amounts_have_other_units_is_said_once():
    window = Window("the whole trace", 0, 10**9)

    def rank(title, time_us):
        """Two findings of one rule, told apart by their titles."""
        titles = (title, "Something else")
        return SimpleNamespace(findings=[a_finding(window, title=title, time_us=time_us) for title in titles])

    ranks = [rank("Copies take 12.0 us, <0.1% of the time", 12), rank("Copies take 1.10 s, 35% of the time", 1.1e6)]
    assert sorted(finding.title for finding in merged_findings(ranks, [0, 1])) == [
        "Copies take 1.10 s, 35% of the time (rank 1; on all 2 ranks)",
        "Something else (rank 1; on all 2 ranks)",
    ]


def test_a_job_shows_itself_in_a_line(tmp_path):
    folder = write_job(tmp_path / "job", 2)
    shown = f"<LoadedJob {folder}: 2 ranks on NVIDIA A100-SXM4-80GB; .ranks, .collectives(), .stragglers()>"
    assert repr(load_job(folder)) == shown


def test_a_folder_of_traces_without_ranks_is_a_job_with_a_caution(tmp_path):
    for name in ("before.json", "after.json"):
        loop([1000] * 3).write(tmp_path / name)
    assert "2 traces, taken for ranks although they have no numbers, on NVIDIA" in repr(load_job(tmp_path))


def test_a_threshold_of_an_unknown_rule_is_the_users_mistake(tmp_path):
    folder = write_job(tmp_path / "job", 2)
    with pytest.raises(ArgumentError, match="no rule is called 'last-rnk'; nearest: F3 last-rank"):
        load_job(folder, thresholds={"last-rnk": {"share": 0.1}})
