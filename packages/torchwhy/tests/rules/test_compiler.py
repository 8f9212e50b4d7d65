"""What findings about torch.compile say beyond that they fire."""

import pytest

from tests.rules import case_compiler as case
from torchwhy.rules.diagnose import diagnose
from torchwhy.trace.compile_log.log import CompiledFrame, CompileLog


def finding(story, slug):
    [found] = [item for item in diagnose(story.trace()).findings if item.slug == slug]
    return found


def test_a_recompilation_names_the_input_that_changed():
    def entered(story, at, version, rows):
        story.op(case.REGION.format(f"0/{version}"), at, 100)
        story.op("CompiledFunction", at + 10, 50, **{"Input Dims": [[8, 8], [rows, 8]], "Input type": ["float"] * 2})

    def each(story, at, i):
        if i == 3:
            case.compile_(story, at, 500, "0/1")
        entered(story, at + 600, int(i >= 3), 16 if i >= 3 else 12)

    found = finding(case.steps(each), "recompiles")
    assert "Input 1 of the graph was float[12, 8] and became float[16, 8]." in found.cause
    assert found.linked
    assert found.severity == "low"  # once


def test_time_of_compilation_is_that_of_its_outermost_stages():
    assert finding(case.first_call_is_recorded(), "compile-in-window").time_us == 900


def test_compilations_leave_no_step_out_of_account():
    found = finding(case.sizes_change(), "recompiles")
    assert found.time_us == 5 * 500
    assert "0/1, 0/2, 0/3, 0/4, 0/5" in found.title


def test_a_break_names_its_line():
    found = finding(case.a_function_breaks_at_a_known_line(), "graph-breaks")
    assert "train.py:33 in forward" in found.title
    assert found.linked


def test_a_break_costs_what_entering_the_rest_takes():
    """A lookup of 10 us, then 100 us of the region outside its graph, in each of five steps."""
    assert finding(case.a_function_breaks(), "graph-breaks").time_us == pytest.approx(5 * (10 + 100), rel=0.02)


def test_an_interrupted_entry_does_not_count_in_full():
    def each(story, at, i):
        case.call(story, at, before=500 if i == 2 else 90, graph_us=20, after=10)

    found = finding(case.steps(each), "compile-overhead")
    assert found.time_us < 5 * 150 + 250


def test_names_of_kernels_are_explained():
    found = finding(case.compiled_and_waited_for(), "inductor-name-legend")
    assert found.evidence[0].note == "generated pointwise kernel of 1 fused operator: add"


def test_entries_of_threads_at_one_time_cost_no_more_than_that_time():
    story = case.tiny_functions()
    story.events += [{**event, "tid": 7} for event in story.events if "Step" not in event["name"]]
    found = finding(story, "compile-overhead")
    assert found.time_us == finding(case.tiny_functions(), "compile-overhead").time_us


def test_breaks_are_never_hidden_for_their_entries_are_short():
    """A break costs fusion first; the entries that can be measured are 1 % of the window here."""

    def each(story, at, i):
        story.op(case.REGION.format("0/0"), at, 950)
        story.op(case.GRAPH.format("a"), at + 1, 500)
        story.op(case.REGION.format("1/0"), at + 510, 430)
        story.op(case.GRAPH.format("b"), at + 512, 427)

    found = finding(case.steps(each), "graph-breaks")
    assert found.severity == "low"
    assert "lost fusion" in found.cause


def test_pieces_of_older_traces_are_breaks():
    found = finding(case.an_older_trace_in_pieces(), "graph-breaks")
    assert "runs in 3 pieces" in found.title
    assert found.confidence == "medium"


def test_splits_by_buckets_are_told_from_breaks():
    assert "one graph per bucket" in finding(case.older("DistributedDataParallel.forward"), "graph-breaks").cause
    assert "bucket" not in finding(case.an_older_trace_in_pieces(), "graph-breaks").cause


def entering(*before):
    """Five steps that enter a small graph, each after so many microseconds."""

    def each(story, at, i):
        case.call(story, at, before=before[i], graph_us=20, after=10)

    return case.steps(each, us=750)


def test_what_entering_costs_is_the_median_with_its_range():
    found = finding(entering(20, 40, 50, 60, 600), "compile-overhead")
    assert "median 70.0 us in 5 calls" in found.title
    assert "from 40.0 us to 620 us" in found.cause
    assert found.severity != "high"
    assert found.confidence == "low"


def test_entries_that_are_alike_need_no_range():
    found = finding(entering(400, 410, 420, 430, 440), "compile-overhead")
    assert " to " not in found.cause
    assert found.confidence == "medium"


def test_lookups_that_all_find_code_are_said_to():
    assert "All 5 lookups find compiled code" in finding(entering(400, 410, 420, 430, 440), "compile-overhead").cause


def test_generated_code_is_said_to_lie_where_its_operator_says():
    story = case.compiled_and_waited_for()
    assert "fxgraph/" in finding(story, "inductor-name-legend").cause
    launch = next(e for e in story.events if e["cat"] == "cuda_runtime")
    story.op(
        "triton_poi_fused_add_0", launch["ts"] - 0.5, launch["dur"] + 1, kernel_file="/tmp/torchinductor/ab/cab.py"
    )
    assert "/tmp/torchinductor/ab/cab.py" in finding(story, "inductor-name-legend").cause


def test_an_attempt_beyond_the_limit_is_no_recompilation():
    trace = case.sizes_change().trace()
    given_up = CompiledFrame(0, 5, "train.py(3): f", error="recompile_limit reached")
    trace.compile_log = CompileLog("compile.log", frames={"0/5": given_up})
    [found] = [item for item in diagnose(trace).findings if item.slug == "recompiles"]
    assert found.title.startswith("4 recompilations and 1 attempt beyond the limit take 2.50 ms of ")
