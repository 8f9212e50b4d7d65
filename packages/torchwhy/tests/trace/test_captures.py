"""Traces of replayed CUDA graphs joined with recordings of their capture, or of the same program without graphs."""

import gzip
import itertools
import json
import random
from pathlib import Path

import numpy as np
import pytest

import torchwhy
from tests.replays import LAYER, MODEL, Program, dims
from torchwhy.errors import TraceError
from torchwhy.trace.captures.alignment import certain_pairs
from torchwhy.trace.derived.ownership import operators_of_work, own_line, stack_of


def joined(folder, replayed, *captures):
    """The replay joined with captures in a folder."""
    there = folder / "captures"
    there.mkdir(exist_ok=True)
    for i, capture in enumerate(captures):
        capture.write(there / f"capture_{i}.json")
    return torchwhy.load(replayed.write(folder / "serving.json"), capture=there)


def names(trace):
    """The operator and the shapes of each piece of work, None where it has none."""
    events = trace.events
    return [
        (trace.name(row), events.text("Input Dims", row)) if row >= 0 else None
        for row in trace.derived(operators_of_work).tolist()
    ]


def truth(work, batch, first=0):
    return [
        (operator, dims(operator, batch, place).replace(" ", "")) for place, (operator, *_) in enumerate(work, first)
    ]


def plain(found):
    return [one and (one[0], one[1].replace(" ", "")) for one in found]


@pytest.mark.parametrize("grids", [True, False])
def test_a_replayed_kernel_has_operator_shapes_module_and_line_of_the_captured_one(tmp_path, grids):
    capture, serving = Program(), Program()
    capture.capture(MODEL, 8)
    serving.replay(MODEL, 8, grids=grids)
    trace = joined(tmp_path, serving, capture)
    assert plain(names(trace)) == truth(MODEL, 8)
    assert (trace.captured.named, trace.captured.work) == (len(MODEL), len(MODEL))
    last = int(trace.links.work[-1])
    assert stack_of(trace, last) == ["nn.Module: Model_0", "server.py(7): run"]
    assert own_line(trace, last) == "server.py(7): run"


def test_tables_count_replays_and_take_no_time_of_the_host(tmp_path):
    capture, serving = Program(), Program()
    capture.capture(MODEL, 8)
    for _ in range(5):
        serving.replay(MODEL, 8)
    trace = joined(tmp_path, serving, capture)
    ops = {row["name"]: row for row in trace.ops()}
    assert ops["aten::mm"]["calls"] == 5 * 7
    assert ops["aten::mm"]["device_self_us"] == pytest.approx(5 * 7 * 3)
    assert ops["aten::mm"]["host_total_us"] == 0
    [module] = trace.modules()
    assert (module["path"], module["calls"], module["host_total_us"]) == ("Model_0", 5 * len(MODEL), 0)
    assert module["device_total_us"] == pytest.approx(5 * len(MODEL) * 3)
    assert sum(row["calls"] for row in trace.launches()) == 5  # nothing of the capture was launched here
    assert len(trace.to_table()) == len(trace)


def test_what_is_around_the_launch_of_a_graph_keeps_its_device_time(tmp_path):
    capture, serving = Program(), Program()
    capture.capture(MODEL, 8)
    serving.note("decode", 0, 100)
    serving.replay(MODEL, 8)
    [label] = joined(tmp_path, serving, capture).labels()
    assert label["device_us"] == pytest.approx(3 * len(MODEL))


def test_modules_count_work_once_if_the_graph_is_launched_in_the_captured_module(tmp_path):
    capture, serving = Program(), Program()
    capture.capture(MODEL, 8)
    serving.frame("nn.Module: Model_0", 0, 100)
    serving.replay(MODEL, 8)
    [module] = joined(tmp_path, serving, capture).modules()
    assert module["device_total_us"] == pytest.approx(3 * len(MODEL))
    assert module["calls"] == 1


def test_findings_count_recorded_events_only(tmp_path):
    capture, serving = Program(), Program()
    capture.capture(MODEL, 8)
    for i in range(1000):
        serving.frame("server.py(7): run", i, 1)
    for _ in range(20):
        serving.replay(MODEL, 8)
    trace = joined(tmp_path, serving, capture)
    alone = torchwhy.load(tmp_path / "serving.json")
    assert len(trace) == len(alone)
    told = {finding.code: [one.count for one in finding.evidence] for finding in alone.diagnose("A")}
    assert "A10" in told
    assert {finding.code: [one.count for one in finding.evidence] for finding in trace.diagnose("A")} == told


def test_rules_see_the_shapes_of_replayed_work(tmp_path):
    """A product far from the roofline: only its shapes tell, and only the capture has them."""
    work = [("aten::mm", "sm90_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize64x64", 1)]
    capture, serving = Program(), Program()
    capture.call("hipStreamBeginCapture", 0)
    shape = {"Input Dims": [[1024, 1024], [1024, 1024]], "Input type": ["float", "float"]}
    capture.op("aten::mm", 5, 8, **shape)
    capture.call("hipLaunchKernel", 7, kernel=work[0][1], grid=[8, 1, 1], block=[128, 1, 1])
    capture.call("hipStreamEndCapture", 20)
    for _ in range(20):
        serving.replay(work, 8)
        serving.events[-1]["dur"] = 4000
        serving.at += 4000
    trace = joined(tmp_path, serving, capture)
    alone = torchwhy.load(tmp_path / "serving.json")
    new = {finding.slug for finding in trace.diagnose("D")} - {finding.slug for finding in alone.diagnose("D")}
    assert any("roofline" in slug for slug in new), new


def test_grids_tell_batch_sizes_apart(tmp_path):
    capture, serving = Program(), Program()
    for batch in (32, 16, 8):
        capture.capture(MODEL, batch)
    for batch in (8, 32, 16, 8):
        serving.replay(MODEL, batch)
    trace = joined(tmp_path, serving, capture)
    assert plain(names(trace)) == [one for batch in (8, 32, 16, 8) for one in truth(MODEL, batch)]


def test_without_grids_graphs_of_two_batch_sizes_stay_unnamed_and_are_counted(tmp_path):
    capture, serving = Program(), Program()
    capture.capture(MODEL, 32)
    capture.capture(MODEL, 16)
    serving.replay(MODEL, 16, grids=False)
    trace = joined(tmp_path, serving, capture)
    assert names(trace) == [None] * len(MODEL)
    assert (trace.captured.named, trace.captured.ambiguous) == (0, len(MODEL))
    assert "0 of 14 pieces of work" in trace.captured.sentence


def test_a_batch_size_that_was_not_captured_is_not_taken_for_another(tmp_path):
    capture, serving = Program(), Program()
    capture.capture(MODEL, 32)
    serving.replay(MODEL, 16)
    serving.replay(MODEL, 32)
    trace = joined(tmp_path, serving, capture)
    assert plain(names(trace)) == [None] * len(MODEL) + truth(MODEL, 32)


def test_a_second_recording_without_python_frames_takes_nothing_away(tmp_path):
    plain_one, full, serving = Program(), Program(), Program()
    for program in (plain_one, full):
        program.capture(MODEL, 8)
    plain_one.events = [event for event in plain_one.events if event["cat"] != "python_function"]
    serving.replay(MODEL, 8)
    trace = joined(tmp_path, serving, plain_one, full)
    assert plain(names(trace)) == truth(MODEL, 8)
    assert stack_of(trace, int(trace.links.work[0])) == ["nn.Module: Model_0", "server.py(7): run"]


def test_a_graph_captured_again_is_named(tmp_path):
    first, second, serving = Program(), Program(), Program()
    first.capture(MODEL, 8)
    second.capture(MODEL, 8)
    serving.replay(MODEL, 8)
    assert plain(names(joined(tmp_path, serving, first, second))) == truth(MODEL, 8)


def pieces(program, batch, how):
    """The graphs of a model in pieces, as between attention that runs without: first, layers all alike, last."""
    yield MODEL[:1], "Embedding_0", 0
    for i in range(4):
        yield LAYER, f"Layer_{i}", 0
    yield MODEL[-1:], "Head_0", 1


def test_the_layers_of_a_model_in_pieces_are_told_apart_by_their_order(tmp_path):
    capture, serving = Program(), Program()
    for work, module, first in pieces(capture, 8, None):
        capture.capture(work, 8, module=module, first=first)
    for _ in range(2):
        for work, _, _ in pieces(serving, 8, None):
            serving.replay(work, 8)
    trace = joined(tmp_path, serving, capture)
    assert trace.captured.named == trace.captured.work
    modules = [stack_of(trace, row)[0] for row in trace.links.work.tolist()]
    layers = [f"nn.Module: Layer_{i}" for i in range(4) for _ in LAYER]
    assert modules == ["nn.Module: Embedding_0", *layers, "nn.Module: Head_0"] * 2


def test_layers_without_the_beginning_or_the_end_of_the_model_have_no_module(tmp_path):
    capture, serving = Program(), Program()
    for work, module, first in pieces(capture, 8, None):
        capture.capture(work, 8, module=module, first=first)
    serving.replay(LAYER, 8)
    serving.replay(LAYER, 8)
    serving.replay(MODEL[-1:], 8)
    trace = joined(tmp_path, serving, capture)
    assert plain(names(trace)) == truth(LAYER, 8) * 2 + truth(MODEL[-1:], 8, 1)
    assert [stack_of(trace, row)[:1] for row in trace.links.work.tolist()] == [[]] * 8 + [["nn.Module: Head_0"]]
    assert trace.captured.somewhere == 8


def test_graphs_of_batch_sizes_are_not_told_apart_by_order(tmp_path):
    capture, serving = Program(), Program()
    capture.capture(MODEL[:1], 32)
    for batch in (24, 16):
        capture.capture(LAYER, batch)
    capture.capture(MODEL[-1:], 8)
    serving.replay(MODEL[:1], 32, grids=False)
    serving.replay(LAYER, 16, grids=False)  # the order of serving is not that of the capture
    serving.replay(LAYER, 24, grids=False)
    serving.replay(MODEL[-1:], 8, grids=False)
    trace = joined(tmp_path, serving, capture)
    assert [one is None for one in names(trace)] == [False, *[True] * 8, False]


def test_kernels_missing_in_the_replay_leave_the_others_named(tmp_path):
    capture, serving = Program(), Program()
    capture.capture(MODEL, 8)
    lost = 5
    serving.replay([one for i, one in enumerate(MODEL) if i != lost], 8)
    trace = joined(tmp_path, serving, capture)
    found = plain(names(trace))
    right = [one for i, one in enumerate(truth(MODEL, 8)) if i != lost]
    assert all(one in (None, correct) for one, correct in zip(found, right, strict=True))
    assert sum(one is not None for one in found) >= len(found) - 2


def test_a_run_without_graphs_names_the_work_where_the_capture_names_no_kernels(tmp_path):
    capture, serving = Program(), Program()
    for _ in range(3):
        capture.launches(MODEL, 8, run=True)
    capture.capture(MODEL, 8, named=False)
    serving.replay(MODEL, 8)
    assert plain(names(joined(tmp_path, serving, capture))) == truth(MODEL, 8)


def test_branches_on_several_streams(tmp_path):
    capture, serving = Program(), Program()
    branches = [("aten::mm", "gemm", 1), ("aten::mm", "gemm", 1), ("aten::add", "add", 2), ("aten::mul", "mul", 3)]
    capture.capture(branches, 8)
    mixed = [branches[1], branches[0], branches[3], branches[2]]
    serving.replay(mixed, 8, streams=(7, 9))
    found = plain(names(joined(tmp_path, serving, capture)))
    right = truth(branches, 8)
    assert found == [None, None, right[3], right[2]]  # which of the equal kernels came first isn't known


def test_nodes_tell_the_order_of_branches(tmp_path):
    capture, serving = Program(), Program()
    capture.capture(MODEL, 8)
    serving.replay(MODEL, 8, streams=(7, 9), nodes=True)
    late = [event for event in serving.events if event["cat"] == "kernel"][3]
    late["ts"] += 30
    trace = joined(tmp_path, serving, capture)
    right = dict(zip(range(len(MODEL)), truth(MODEL, 8), strict=True))
    node = trace.events.integers("graph node id", trace.links.work) & 0xFFFFFFFF
    assert plain(names(trace)) == [right[i] for i in node.tolist()]


@pytest.mark.parametrize("seed", range(30))
def test_a_run_without_graphs_as_its_own_replay_has_no_wrong_name(tmp_path, seed):
    """The operators of the eager run are known: what is named in its replay must be named so."""
    rng = random.Random(seed)
    eager, serving = Program(), Program()
    sizes = [rng.randint(4, 12), *(rng.randint(1, 12) for _ in range(rng.randint(1, 4)))]
    graphs = [([rng.choice(MODEL) for _ in range(size)], rng.choice([4, 8, 16])) for size in sizes]
    for work, batch in graphs * 2:
        eager.launches(work, batch, run=True)
    replayed = [graphs[0], *rng.choices(graphs, k=8)]
    for work, batch in replayed:
        serving.replay(work, batch, grids=rng.random() < 0.7)
    found = plain(names(joined(tmp_path, serving, eager)))
    expected = [one for work, batch in replayed for one in truth(work, batch)]
    assert all(one in (None, right) for one, right in zip(found, expected, strict=True))


def replayed(events, stretches):
    """Events of a run without graphs as if stretches of its work, lists of correlation ids, were graphs."""
    graph = {one: stretch[0] for stretch in stretches for one in stretch}
    found = []
    for event in events:
        one = event.get("args", {}).get("correlation")
        if one not in graph or event["cat"] not in {"kernel", "gpu_memcpy", "gpu_memset"}:
            if one == graph.get(one) and one is not None and "aunch" in event["name"]:
                found.append(event | {"name": "cudaGraphLaunch"})
            elif one not in graph and event.get("cat") not in {"cpu_op", "python_function", "cuda_runtime"}:
                found.append(event)
            continue
        args = {key: value for key, value in event["args"].items() if key != "External id"}
        found.append(event | {"args": args | {"correlation": graph[one]}})
    return found


@pytest.mark.parametrize("seed", range(5))
def test_stretches_of_a_recorded_training_step_as_graphs_have_no_wrong_name(tmp_path, seed):
    rng = random.Random(seed)
    recorded = Path(__file__).parent.parent / "recorded" / "training_step.json.gz"
    eager = torchwhy.load(recorded)
    with gzip.open(recorded) as file:
        content = json.load(file)
    launched = eager.links.launch
    order = np.lexsort((eager.events.ts[launched], eager.events.lane[launched]))
    ids = eager.events.integers("correlation", eager.links.work[order]).tolist()
    kernels = set(eager.events.integers("correlation", eager.gpu.kernels).tolist())
    cuts = [0, *sorted(rng.sample(range(1, len(ids)), 6)), len(ids)]
    stretches = [ids[a:b] for a, b in itertools.pairwise(cuts) if b - a > 3 and ids[a] in kernels]
    content["traceEvents"] = replayed(content["traceEvents"], stretches)
    serving = tmp_path / "serving.json"
    serving.write_text(json.dumps(content))
    trace = torchwhy.load(serving, capture=recorded)
    start = {int(eager.events.ts[row]): one for row, one in zip(eager.links.work.tolist(), names(eager), strict=True)}
    offset = int(trace.events.ts[trace.links.work[0]]) - int(eager.events.ts[eager.links.work[0]])
    assert trace.captured.work == sum(map(len, stretches))
    graph = np.isin(trace.links.launch, trace.links.graph_launches)
    for row, one in zip(trace.links.work[graph].tolist(), np.array(names(trace), object)[graph].tolist(), strict=True):
        assert one is None or tuple(one) == start[int(trace.events.ts[row]) - offset]
    assert trace.captured.named > trace.captured.work / 2


def test_a_short_graph_is_not_looked_for_in_a_run_without_graphs(tmp_path):
    eager, serving = Program(), Program()
    eager.launches(MODEL, 8, run=True)
    serving.replay(MODEL, 8)
    serving.replay(MODEL[3:4], 8)
    assert plain(names(joined(tmp_path, serving, eager))) == [*truth(MODEL, 8), None]


@pytest.mark.parametrize("seed", range(40))
def test_perturbed_sequences_have_no_wrong_name(tmp_path, seed):
    """Work is lost, foreign work comes in, or neighbours change places; what is named is named right."""
    rng = random.Random(seed)
    capture, serving = Program(), Program()
    layers = [rng.choice(LAYER) for _ in range(rng.randint(2, 4))]
    work = [MODEL[0], *layers * rng.randint(2, 6), MODEL[-1]]
    for batch in (8, 16):
        capture.capture(work, batch)
    replayed = list(enumerate(work))
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(replayed) - 1)
        change = rng.choice(["lose", "insert", "swap"])
        if change == "lose":
            del replayed[at]
        elif change == "insert":
            replayed.insert(at, (-1, ("", "foreign", 1)))
        elif replayed[at][1][1:] != replayed[at + 1][1][1:]:
            replayed[at], replayed[at + 1] = replayed[at + 1], replayed[at]
    serving.replay([one for _, one in replayed], 8)
    serving.replay(work, 8)
    found = plain(names(joined(tmp_path, serving, capture)))
    right = truth(work, 8)
    for one, (place, _) in zip(found, replayed, strict=False):
        assert one is None or (place >= 0 and one == right[place])
    assert found[len(replayed) :] == right


def test_pairs_of_every_longest_common_subsequence():
    equal = np.array([[a == b for b in "xabay"] for a in "xaby"])
    assert certain_pairs(equal, np.arange(5))[1].tolist() == [0, 1, 2, 4]
    equal = np.array([[a == b for b in "xaay"] for a in "xay"])
    assert certain_pairs(equal, np.arange(4))[1].tolist() == [0, -1, 3]
    assert certain_pairs(equal, np.array([0, 1, 1, 2]))[1].tolist() == [0, 1, 3]


def test_nothing_that_matches_is_an_error_that_says_what_was_compared(tmp_path):
    capture, serving = Program(), Program()
    capture.capture(LAYER, 8)
    serving.replay(MODEL, 8)
    with pytest.raises(TraceError, match=r"1 graph launch .*serving.json \(14 .*1 captured graph: no graph has"):
        joined(tmp_path, serving, capture)


def test_a_capture_that_names_no_kernels_is_an_error_that_says_so(tmp_path):
    capture, serving = Program(), Program()
    capture.capture(MODEL, 8, named=False)
    serving.replay(MODEL, 8)
    with pytest.raises(TraceError, match="do not name their kernels"):
        joined(tmp_path, serving, capture)


def test_a_trace_without_graphs_has_nothing_to_name(tmp_path):
    capture, serving = Program(), Program()
    capture.capture(MODEL, 8)
    serving.launches(MODEL, 8, run=True)
    with pytest.raises(TraceError, match=r"serving.json has no work of replayed graphs.*launches no CUDA or HIP graph"):
        joined(tmp_path, serving, capture)


def test_a_wrong_file_is_named(tmp_path):
    serving = Program()
    serving.replay(MODEL, 8)
    serving.write(tmp_path / "serving.json")
    wrong = tmp_path / "notes.json"
    wrong.write_text("not a trace")
    with pytest.raises(TraceError, match=r"notes\.json"):
        torchwhy.load(tmp_path / "serving.json", capture=wrong)
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(TraceError, match=r"empty has no trace of a capture"):
        torchwhy.load(tmp_path / "serving.json", capture=empty)
