"""Planted hangs are named: which ranks, which call, what differs, and the line."""

import json
import os
import pickle
import subprocess
import sys
import time

import pytest

from tests.command_line import run_here
from tests.hangs.jobs import WORLD, Rank, another_collective, job, write_dumps
from torchwhy.errors import TraceError
from torchwhy.hangs import dumps as reading
from torchwhy.hangs.analysis import find_hangs
from torchwhy.hangs.dumps import dump_files, load_dumps
from torchwhy.hangs.earlier_calls import without_earlier_calls
from torchwhy.present.formats import FORMATS

TENSOR, DATA = ("1", "tensor"), ("2", "data")


def another_order(rank, number):
    for name, line in (
        (("broadcast", 33), ("all_reduce", 40)) if number == 3 else (("all_reduce", 40), ("broadcast", 33))
    ):
        rank.waits(name, line=line)


def another_size(rank, number):
    rank.waits("all_reduce", ((3,),) if number == 2 else ((4,),), line=40)


def another_type(rank, number):
    rank.waits("all_reduce", line=40, dtype="Half" if number == 1 else "Float")


def shards_of_another_size(rank, number):
    rank.waits("_reduce_scatter_base", ((16,),), out=((3,),) if number == 0 else ((4,),), line=41)


def a_rank_does_not_come(rank, number):
    if number != 2:
        rank.waits("all_reduce", line=40)


def a_rank_has_one_batch_less(rank, number):
    if number != 1:
        rank.call("all_reduce", line=40).waits("all_gather", line=44)
    else:
        rank.call("all_reduce", line=40)


def a_rank_waits_in_another_group(rank, number):
    if number in (2, 3):
        if number == 2:
            rank.waits("all_gather", group=TENSOR, line=50)
        else:
            return
    else:
        rank.waits("all_reduce", line=40)


def two_groups_in_a_circle(rank, number):
    first, second = (TENSOR, DATA) if number == 0 else (DATA, TENSOR)
    rank.waits("all_reduce", group=first, line=60 if first == TENSOR else 70)
    del second


def groups_in_another_order(rank, number):
    for group, state in zip((TENSOR, DATA) if number else (DATA, TENSOR), ("started", "scheduled"), strict=True):
        rank.waits("all_reduce", group=group, state=state, line=60 if group == TENSOR else 70)


def both_receive(rank, number):
    if number < 2:
        rank.waits("recv 0<-1" if number == 0 else "recv 1<-0", line=80 + number)


def nobody_receives(rank, number):
    if number == 0:
        rank.waits("send 0->3", line=81)


def another_size_is_received(rank, number):
    if number == 0:
        rank.waits("send 0->1", ((8,),), line=81)
    elif number == 1:
        rank.waits("recv 1<-0", ((4,),), line=82)


def the_network_is_gone(rank, number):
    rank.waits("all_reduce", line=40, state="scheduled" if number == 3 else "started")


def one_of_a_coalesced_call_differs(rank, number):
    rank.waits("all_gather_into_tensor_coalesced", line=90)
    rank.waits("_all_gather_base", ((8,),) if number == 1 else ((4,),), line=91, again=True)


def pairs(number):
    return {TENSOR: (0, 1) if number < 2 else (2, 3), DATA: range(4)}


def both_groups(number):
    return {TENSOR: (0, 1), DATA: (0, 1)}


PLANTED = [
    # calls, groups, kind, words of the title, the ranks that differ or are missed, lines
    (another_collective, None, "type", "ranks 0-2 call all_reduce and rank 3 calls broadcast", {3}, (40, 33)),
    (another_order, None, "order", "rank 3 calls broadcast", {3}, (40, 33)),
    (another_size, None, "size", "rank 2 brings [[3]]", {2}, (40,)),
    (another_type, None, "dtype", "rank 1 brings Half", {1}, (40,)),
    (shards_of_another_size, None, "size", "rank 0 brings [[16]] for [[3]]", {0}, (41,)),
    (a_rank_does_not_come, None, "missing-call", "rank 2 does not call it", {2}, (40, 20)),
    (a_rank_has_one_batch_less, None, "missing-call", "all_gather 7 of default_pg, and rank 1", {1}, (44, 40)),
    (a_rank_waits_in_another_group, pairs, "missing-call", "Rank 2 waits in all_gather 1 of tensor", {3}, (50, 20)),
    (two_groups_in_a_circle, both_groups, "missing-call", "They wait in a circle", set(), (60, 70)),
    (groups_in_another_order, both_groups, "not-finished", "They wait in a circle", set(), (60, 70)),
    (both_receive, None, "peer", "Rank 0 and rank 1 wait for each other, both in recv", {0, 1}, (80, 81)),
    (nobody_receives, None, "missing-call", "Rank 0 waits in send 1 of default_pg, and rank 3", {3}, (81, 20)),
    (another_size_is_received, None, "size", "Rank 0 sends [[8]] and rank 1 receives [[4]]", {0, 1}, (81, 82)),
    (the_network_is_gone, None, "not-finished", "Ranks 0-3 called all_reduce 6 of default_pg alike", {3}, (40,)),
    (one_of_a_coalesced_call_differs, None, "size", "_all_gather_base 6", {1}, (91,)),
]  # fmt: skip


def odd_ranks(hang):
    """The ranks that are not with most."""
    return {rank for side in hang.sides[1:] for rank in side.ranks} or {
        rank for side in hang.sides for rank in side.ranks
    }


@pytest.mark.parametrize(
    ("calls", "groups", "kind", "title", "odd", "lines"), PLANTED, ids=lambda value: getattr(value, "__name__", "")
)
def test_a_planted_hang_is_named(tmp_path, calls, groups, kind, title, odd, lines):
    ranks = 2 if groups is both_groups else 4
    folder = write_dumps(tmp_path / "dumps", job(ranks, calls, groups))
    first = find_hangs(load_dumps(folder))[0]
    assert first.kind == kind
    assert not first.follows
    assert odd <= odd_ranks(first) | {rank for side in first.sides for rank in side.ranks if kind in ("peer", "size")}
    said = run_here("explain", folder, "-v", folder=tmp_path)
    assert said.returncode == 0
    text = " ".join(said.stdout.split())
    assert title in text
    for line in lines:
        assert f"train.py({line}): step" in text


def test_a_rank_without_a_dump_is_missed(tmp_path):
    folder = write_dumps(tmp_path, job(4, lambda rank, number: rank.waits("all_reduce", line=40)), without=[2])
    [hang] = find_hangs(load_dumps(folder))
    assert (hang.kind, hang.missing) == ("missing-dump", (2,))
    said = run_here("explain", folder, folder=tmp_path).stdout
    assert "Ranks 0-1, 3 wait in all_reduce 6 of default_pg, and rank 2 left no dump" in " ".join(said.split())


def test_what_follows_from_another_hang_comes_after_it(tmp_path):
    def calls(rank, number):
        if number < 2:
            rank.waits("all_reduce", line=40)
        else:
            rank.waits("all_gather", ((4,),) if number == 2 else ((5,),), group=TENSOR, line=50, dtype=f"Kind{number}")

    cause, consequence = find_hangs(load_dumps(write_dumps(tmp_path, job(4, calls, pairs))))
    assert (cause.group, cause.kind, cause.follows) == (TENSOR, "size", False)
    assert (consequence.group, consequence.follows) == (WORLD, True)
    said = " ".join(run_here("explain", tmp_path, "-v", folder=tmp_path).stdout.split())
    assert "1 of them only since the ranks that are awaited wait elsewhere." in said


def test_a_job_that_runs_well_hangs_nowhere(tmp_path):
    def uneven(rank, number):
        rank.call("all_to_all", ((number + 1,),), line=44).call("all_gather", ((4 + number,),), line=45)

    folder = write_dumps(tmp_path, job(4, uneven))
    assert find_hangs(load_dumps(folder)) == ()
    said = run_here("explain", folder, "--fail-on", "low", folder=tmp_path)
    assert (said.returncode, "All calls that 4 ranks recorded are over." in said.stdout) == (0, True)


def test_sizes_that_may_differ_are_no_mismatch(tmp_path):
    def uneven(rank, number):
        rank.waits("all_to_all", ((number + 1,),), out=((4 - number,),), line=44)

    [hang] = find_hangs(load_dumps(write_dumps(tmp_path, job(4, uneven))))
    assert hang.kind == "not-finished"


def test_what_is_posted_in_both_directions_is_no_deadlock(tmp_path):
    def both_post(rank, number):
        mine, other = number, 1 - number
        if number < 2:
            rank.waits(f"send {mine}->{other}", line=81).waits(f"recv {mine}<-{other}", line=82)

    [hang] = find_hangs(load_dumps(write_dumps(tmp_path, job(4, both_post))))
    assert (hang.kind, hang.members) == ("not-finished", (0, 1))


def test_the_peer_of_a_send_may_have_no_dump_or_be_the_rank_itself(tmp_path):
    def sends(rank, number):
        if number == 0:
            rank.waits("send 0->2", line=81)
        if number == 1:
            rank.waits("send 1->1", line=83)

    kinds = {hang.kind: hang for hang in find_hangs(load_dumps(write_dumps(tmp_path, job(4, sends), without=[2])))}
    assert kinds["missing-dump"].missing == (2,)
    assert kinds["missing-call"].members == (1, 1)


def test_one_file_alone_names_the_others_as_missing(tmp_path):
    folder = write_dumps(tmp_path, job(3, another_collective))
    said = run_here("explain", folder / "nccl_trace_rank_1", folder=tmp_path)
    assert "Rank 1 waits in all_reduce 6 of default_pg, and ranks 0, 2 left no dump" in " ".join(said.stdout.split())


def test_the_form_of_json_is_read_without_lines(tmp_path):
    folder = write_dumps(tmp_path, job(4, another_size), as_json=True)
    [hang] = find_hangs(load_dumps(folder))
    assert (hang.kind, hang.sides[1].ranks) == ("size", (2,))
    assert "have no stacks" in " ".join(run_here("explain", folder, folder=tmp_path).stdout.split())


def test_every_format_and_exit_status(tmp_path):
    folder = write_dumps(tmp_path / "dumps", job(4, another_collective))
    for form in FORMATS:
        said = run_here("explain", folder, "--format", form, folder=tmp_path)
        assert said.returncode == 0, said.stderr
        assert "broadcast" in said.stdout
    assert "torchwhy finding" not in run_here("explain", folder, "--format", "agent", folder=tmp_path).stdout
    data = json.loads(run_here("explain", folder, "--format", "json", folder=tmp_path).stdout)
    [hang] = data["hangs"]
    assert (hang["kind"], hang["number"], hang["group"]) == ("type", 6, "default_pg")
    assert [(side["ranks"], side["call"]["line"]) for side in hang["sides"]] == [
        ([0, 1, 2], "~/train.py(40): step"),
        ([3], "~/train.py(33): step"),
    ]
    assert run_here("explain", folder, "--fail-on", "high", folder=tmp_path).returncode == 1
    refused = run_here("explain", folder, "--table", "ops", folder=tmp_path)
    assert (refused.returncode, "--table is about traces" in refused.stderr) == (2, True)


def test_what_has_not_begun_waits_for_the_call_before_it(tmp_path):
    def calls(rank, number):
        if number > 1:
            rank.waits("all_gather", group=TENSOR, line=50, dtype=f"Kind{number}")
            rank.waits("all_reduce", state="scheduled", line=40)
        else:
            rank.waits("all_reduce", line=40)

    cause, consequence = find_hangs(load_dumps(write_dumps(tmp_path, job(4, calls, pairs))))
    assert (cause.group, cause.follows) == (TENSOR, False)
    assert (consequence.group, consequence.kind, consequence.follows) == (WORLD, "not-finished", True)
    said = " ".join(run_here("explain", tmp_path, "-v", folder=tmp_path).stdout.split())
    assert "Nothing in these calls explains it" not in said
    assert "all_gather 1 of tensor at ~/train.py(50): step, called before it, is not over" in said


def test_of_calls_that_share_a_number_one_that_is_not_over_is_shown(tmp_path):
    def coalesced(rank, number):
        rank.call("all_gather", line=90).waits("all_reduce", line=91, again=True)

    [hang] = find_hangs(load_dumps(write_dumps(tmp_path, job(2, coalesced))))
    assert [side.call.name for side in hang.sides] == ["all_reduce"]


def test_a_send_that_is_posted_on_both_sides_is_not_said_to_be_called_by_both(tmp_path):
    def calls(rank, number):
        if number < 2:
            rank.waits("recv 1<-0" if number else "send 0->1", line=81)

    said = " ".join(run_here("explain", write_dumps(tmp_path, job(2, calls)), folder=tmp_path).stdout.split())
    assert "NOT OVER Send 1 of default_pg between ranks 0-1 has its other side, and is not over." in said


def test_sizes_far_down_a_list_are_compared(tmp_path):
    def calls(rank, number):
        rank.waits("allreduce_coalesced", [(9, 9)] * 99 + [(number,)], line=40)

    [hang] = find_hangs(load_dumps(write_dumps(tmp_path, job(2, calls))))
    assert hang.kind == "size"


ENDLESS = [1]
for _ in range(40):
    ENDLESS = [ENDLESS] * 10

UNREADABLE = [
    ({"version": "1.5"}, "has format 1.5; 2.0 and later"),
    ({"version": None}, "has no format"),
    ({"entries": None}, "has no list of entries"),
    ({"entries": [{}]}, "entry 0 names no call"),
    ({"entries": [{"profiling_name": "nccl:barrier", "state": 3}]}, "entry 0 names no call"),
    ({"entries": [{"profiling_name": "nccl:barrier", "state": "started", "seq_id": 1 << 70}]}, "from 0 to 2^63"),
]


@pytest.mark.parametrize(("changed", "why"), UNREADABLE, ids=lambda value: value if isinstance(value, str) else "")
def test_a_dump_that_cannot_be_read_is_left_out_with_its_reason(tmp_path, changed, why):
    ranks = job(2, another_size)
    write_dumps(tmp_path, ranks)
    (tmp_path / "nccl_trace_rank_1").write_bytes(pickle.dumps({**ranks[1].content(), **changed}, 2))
    assert why in load_dumps(tmp_path).unreadable["nccl_trace_rank_1"]


def test_lists_that_hold_each_other_without_end_are_not_written_out(tmp_path):
    content = job(1, another_size)[0].content()
    entry = content["entries"][-1]
    frames = [{"name": ENDLESS, "filename": ENDLESS, "line": ENDLESS}]
    more = dict.fromkeys(("input_sizes", "output_sizes", "input_dtypes", "timeout_ms", "retired"), ENDLESS)
    groups = {"0": {"name": ENDLESS, "desc": ENDLESS, "ranks": ENDLESS}}
    entries = [{**entry, **more, "frames": frames}]
    (tmp_path / "nccl_trace_rank_0").write_bytes(
        pickle.dumps({**content, "entries": entries, "pg_config": groups, "pg_status": ENDLESS}, 2)
    )
    [hang] = find_hangs(load_dumps(tmp_path))
    assert len(hang.sides[0].call.input_sizes) < 100


class Runs:
    def __reduce__(self):
        return os.system, ("touch torchwhy-dump-ran",)


def test_no_code_of_a_dump_is_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = write_dumps(tmp_path / "dumps", job(2, a_rank_does_not_come))
    content = {**Rank({}).content(), "entries": [Runs()]}
    (folder / "nccl_trace_rank_1").write_bytes(pickle.dumps(content, 2))
    said = run_here("explain", folder, folder=tmp_path)
    assert said.returncode == 0
    assert "nccl_trace_rank_1 is no dump of the flight recorder: it holds more than plain data" in " ".join(
        said.stdout.split()
    )
    (folder / "nccl_trace_rank_0").unlink()
    refused = run_here("explain", folder, folder=tmp_path)
    assert (refused.returncode, "no dump of the flight recorder that can be read" in refused.stderr) == (3, True)
    assert not (tmp_path / "torchwhy-dump-ran").exists()


def test_damaged_and_hostile_dumps_are_refused_or_read(tmp_path):
    content = job(2, another_size)[0].content()
    data = pickle.dumps(content, 2)
    for place in range(0, len(data), 97):
        (tmp_path / "nccl_trace_rank_0").write_bytes(data[:place] or b"\x80")
        if dump_files(tmp_path):
            with pytest.raises(TraceError, match=r"ends early|makes? no sense"):
                load_dumps(tmp_path)
    entry = content["entries"][0]
    evil = [
        None,
        7,
        {},
        *({**entry, name: value} for name in entry for value in (None, -1, "\x1b[2J" * 99, [[]], {"a": 1})),
    ]
    (tmp_path / "nccl_trace_rank_0").write_bytes(
        pickle.dumps({**content, "entries": evil, "pg_config": {"a": 1, "b": {"ranks": "["}}}, 2)
    )
    (tmp_path / "nccl_trace_rank_1").write_bytes(data)
    said = run_here("explain", tmp_path, "-v", folder=tmp_path)
    assert said.returncode == 0
    assert "\x1b" not in said.stdout


def test_files_of_other_kinds_are_no_dumps(tmp_path):
    trace = '{"schemaVersion": 1, "distributedInfo": {"pg_config": [], "pg_status": 1}, "traceEvents": []}'
    (tmp_path / "trace.json").write_text(trace)
    (tmp_path / "notes_rank_1").write_text("collective_seq_id")
    assert dump_files(tmp_path) == []
    with pytest.raises(TraceError, match="has no dumps of the flight recorder"):
        load_dumps(tmp_path)


def test_two_files_of_one_rank_and_files_without_one_are_left_out(tmp_path):
    ranks = job(2, another_size)
    write_dumps(tmp_path, ranks)
    for name in ("other_1", "nobody"):
        (tmp_path / name).write_bytes(pickle.dumps(ranks[1].content(), 2))
    found = load_dumps(tmp_path)
    assert sorted(found.unreadable) == ["nobody", "other_1"]
    assert "other_1 is of rank 1, as nccl_trace_rank_1 is" in found.unreadable["other_1"]


def test_a_thousand_ranks_are_read_in_ten_seconds_of_processor_time(tmp_path):
    calls = {number: Rank({WORLD: range(1024)}) for number in (0, 700)}
    for number, rank in calls.items():
        for i in range(60):
            rank.call("all_reduce", ((1024,),), line=i)
        rank.waits("broadcast" if number else "all_reduce", line=40)
    files = {number: pickle.dumps(rank.content(), 2) for number, rank in calls.items()}
    (tmp_path / "nccl_trace_rank_0").write_bytes(files[0])
    for number in range(1, 1024):
        if number == 700:
            (tmp_path / "nccl_trace_rank_700").write_bytes(files[700])
        else:
            (tmp_path / f"nccl_trace_rank_{number}").hardlink_to(tmp_path / "nccl_trace_rank_0")
    before = time.process_time()
    [hang] = find_hangs(load_dumps(tmp_path))
    assert time.process_time() - before < 10
    assert (hang.kind, hang.sides[1].ranks, len(hang.sides[0].ranks)) == ("type", (700,), 1023)


def test_of_a_pipeline_that_waits_for_its_first_stage_only_that_is_the_cause(tmp_path):
    ranks = job(64, lambda rank, number: number and rank.waits(f"recv {number}<-{number - 1}", line=77))
    cause, *rest = find_hangs(load_dumps(write_dumps(tmp_path, ranks)))
    assert (cause.members, cause.follows, cause.circle) == ((0, 1), False, False)
    assert len(rest) == 62
    assert all(one.follows for one in rest)
    said = " ".join(run_here("explain", tmp_path, folder=tmp_path).stdout.split())
    assert "62 further calls wait. 62 of them only since the ranks that are awaited wait elsewhere." in said


def test_of_many_that_differ_a_title_names_some(tmp_path):
    ranks = job(9, lambda rank, number: rank.waits("all_reduce", ((number + 1,),), line=40))
    said = run_here("explain", write_dumps(tmp_path, ranks), "--format", "json", folder=tmp_path)
    [hang] = json.loads(said.stdout)["hangs"]
    assert "rank 3 brings [[4]] and others differ, too" in hang["title"]
    assert len(hang["sides"]) == 9


GLOO = """
import os, sys, time, torch, torch.distributed as dist
rank = int(sys.argv[1])
dist.init_process_group("gloo", rank=rank, world_size=2, init_method="file://" + os.path.abspath("store"))
dist.all_reduce(torch.ones(4))
for _ in range(1200):
    dist.all_reduce(torch.ones(8))
if rank == 0:
    work = dist.all_reduce(torch.ones(8), async_op=True)
time.sleep(1)
open(f"trace_rank_{rank}", "wb").write(torch._C._distributed_c10d._dump_fr_trace())
dist.barrier() if rank else time.sleep(2)
os._exit(0)
"""


@pytest.mark.many
def test_a_real_job_of_gloo_is_read(tmp_path):
    (tmp_path / "job.py").write_text(GLOO)
    environment = {**os.environ, "TORCH_FR_BUFFER_SIZE": "2000"}
    command = [sys.executable, "job.py"]
    jobs = [subprocess.Popen([*command, str(rank)], cwd=tmp_path, env=environment) for rank in range(2)]
    for one in jobs:
        one.wait(timeout=60)
    [hang] = find_hangs(load_dumps(tmp_path))
    assert (hang.kind, hang.group, hang.number) == ("missing-call", WORLD, 1202)
    assert hang.sides[0].ranks == (0,)
    assert hang.sides[0].call.line.endswith("job.py(9): <module>")
    assert reading.load_dumps(tmp_path).version == "2.10"
    data = (tmp_path / "trace_rank_0").read_bytes()
    assert len(without_earlier_calls(data, 24, 512)) < len(data) / 2
