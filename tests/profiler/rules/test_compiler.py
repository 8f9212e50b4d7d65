"""What findings about torch.compile say beyond that they fire."""

import pytest

from profiler.rules import case_compiler as case
from torchfx.profiler.rules.diagnose import diagnose


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
