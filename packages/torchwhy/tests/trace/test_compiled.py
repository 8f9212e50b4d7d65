"""Regions, lookups, graphs and compilations, in the names of several years."""

import pytest

from tests.traces import Story
from torchwhy.trace.derived.compiled import compiled_of
from torchwhy.trace.derived.labels import own_labels
from torchwhy.trace.derived.modules import modules

REGION, LOOKUP = "Torch-Compiled Region: {}", "TorchDynamo Cache Lookup"


def compiled(story):
    return story.trace().derived(compiled_of)


def cpu():
    return Story(gpu=None)


def test_stages_within_stages_count_once():
    story = cpu()
    story.op("dynamo", 0, 100)
    story.op("_compile.compile_inner (dynamo_timed)", 5, 90)
    story.op("compile_fx_inner (dynamo_timed)", 10, 50)
    story.op("entire_backward_compile", 200, 40)
    story.op("backward._backward_impl (dynamo_timed)", 205, 30)
    found = compiled(story)
    assert found.compiling.total == 140_000
    assert [(c.start, c.end, c.backward) for c in found.compilations] == [(0, 100_000, False), (200_000, 240_000, True)]


def test_stages_on_two_threads_at_once_take_that_time_once():
    story = cpu()
    story.op("a (dynamo_timed)", 0, 100)
    story.op("b (dynamo_timed)", 50, 100, tid=7)
    assert compiled(story).compiling.total == 150_000


def test_a_program_may_say_dynamo():
    story = cpu()
    story.note("dynamo", 0, 100)
    assert not compiled(story)


def test_an_annotation_names_what_is_compiled():
    story = cpu()
    story.op("dynamo", 0, 100)
    story.note("dynamo_data: compile_id=3/2", 2, 1)
    story.op("x (dynamo_timed)", 5, 50)
    [one] = compiled(story).compilations
    assert (one.frame, one.version, one.id) == (3, 2, "3/2")


def test_compiled_autograd_has_a_number_of_its_own():
    story = cpu()
    story.op(REGION.format("!0/4/1"), 0, 100)
    found = compiled(story)
    assert (found.frame.tolist(), found.version.tolist()) == ([4], [1])


def test_the_region_entered_next_names_what_was_compiled():
    story = cpu()
    story.op("_compile.compile_inner (dynamo_timed)", 0, 100)
    story.op(REGION.format("1/0"), 110, 20)
    story.op("_compile.compile_inner (dynamo_timed)", 200, 100)
    story.op(REGION.format("1/1"), 310, 20)
    assert [c.id for c in compiled(story).compilations] == ["1/0", "1/1"]


def test_regions_without_numbers():
    """As PyTorch wrote them before 2.5."""
    story = cpu()
    story.op("Torch-Compiled Region", 0, 100)
    found = compiled(story)
    assert found
    assert found.frame.tolist() == [-1]
    assert found.running.total == 100_000


def test_a_region_inside_another_knows_it():
    story = cpu()
    story.op(REGION.format("0/0"), 0, 100)
    story.op(REGION.format("1/0"), 40, 50)
    story.op(REGION.format("2/0"), 200, 50)
    assert compiled(story).outer.tolist() == [-1, 0, -1]


def test_regions_of_other_threads_are_not_around():
    story = cpu()
    story.op(REGION.format("0/0"), 0, 100)
    story.op(REGION.format("1/0"), 40, 50, tid=7)
    assert compiled(story).outer.tolist() == [-1, -1]


def test_lookups_that_lead_nowhere():
    story = cpu()
    story.op(LOOKUP, 0, 5)
    story.op(REGION.format("0/0"), 6, 20)
    story.op(LOOKUP, 100, 5)
    story.op("aten::mm", 110, 5)
    story.op(LOOKUP, 200, 5)
    story.op("x (dynamo_timed)", 210, 50)
    story.op(LOOKUP, 300, 5)  # the trace may end here
    found = compiled(story)
    assert found.without_region.tolist() == [2]


def test_device_annotations_are_no_calls():
    """Exporters repeat an annotation on the device's timeline."""
    story = Story()
    story.note("## Call CompiledFxGraph fabc ##", 0, 10)
    story.add("gpu_user_annotation", "## Call CompiledFxGraph fabc ##", 5, 50, tid=7, pid=0)
    assert len(compiled(story).graphs) == 1


@pytest.mark.parametrize("name", ["CachingAutotuner.benchmark_all_configs (dynamo_timed)", "benchmark_all_configs"])
def test_tuning(name):
    story = cpu()
    story.op(name, 0, 10)
    assert compiled(story).tuning.total == 10_000


def test_an_empty_trace_has_nothing_compiled():
    found = compiled(cpu())
    assert not found
    assert found.compilations == ()
    assert found.without_region.tolist() == []
    assert found.compiling.total == found.running.total == found.tuning.total == 0


def two_labelled_compilations():
    """Forward and backward of two regions, each compiled under a label of its own."""
    story = cpu()
    for k, label in enumerate(("resnet18 compile", "bert compile")):
        at = 1000 * k
        story.note(label, at, 900)
        story.op("dynamo", at + 1, 300)
        story.note(f"dynamo_data: compile_id={k}/0", at + 2, 1)
        story.op("_compile.compile_inner (dynamo_timed)", at + 10, 280)
        story.op("code_gen", at + 20, 100)
        story.op("code_gen (dynamo_timed)", at + 21, 98)
        story.op("compile_file (dynamo_timed)", at + 30, 60)
        story.op(REGION.format(f"{k}/0"), at + 310, 200)
        story.op("CompiledFunction", at + 320, 150, **{"Sequence number": k + 1})
        story.op(f"## Call CompiledFxGraph fab{k} ##", at + 340, 100)
        backward = "autograd::engine::evaluate_function: CompiledFunctionBackward"
        story.op(backward, at + 600, 200, **{"Sequence number": k + 1, "Fwd thread id": 1})
        story.op("CompiledFunctionBackward", at + 605, 190, **{"Sequence number": k + 1, "Fwd thread id": 1})
        story.op(f"## Call CompiledFxGraph fcd{k} ##", at + 620, 100)
    return story


def rows_of(story, kind):
    return [row for row in story.trace().compile() if row["kind"] == kind]


def test_compilations_are_told_apart_by_region_and_label():
    found = [
        (row["id"], row["label"], row["calls"], row["host_us"])
        for row in rows_of(two_labelled_compilations(), "compile")
    ]
    assert found == [("0/0", "resnet18 compile", 1, 300), ("1/0", "bert compile", 1, 300)]


def test_stages_are_a_table_per_compilation():
    """Announced twice, a stage counts once; what it holds is left out of its own time."""
    found = {
        (row["id"], row["name"]): (row["calls"], row["host_us"], row["self_us"])
        for row in rows_of(two_labelled_compilations(), "stage")
    }
    assert found["0/0", "code_gen"] == (1, 100, 40)
    assert found["1/0", "compile_file"] == (1, 60, 60)
    assert found["1/0", "_compile.compile_inner"] == (1, 280, 180)


def test_backward_passes_belong_to_the_region_of_their_forward_pass():
    story = two_labelled_compilations()
    assert [(row["id"], row["host_us"]) for row in rows_of(story, "backward")] == [("0/0", 200), ("1/0", 200)]
    assert [(row["id"], row["code"]) for row in rows_of(story, "graph")] == [
        ("0/0", "fxgraph/ab/fab0"),
        ("0/0", "fxgraph/cd/fcd0"),
        ("1/0", "fxgraph/ab/fab1"),
        ("1/0", "fxgraph/cd/fcd1"),
    ]


def test_a_label_that_speaks_of_compiling_is_a_label():
    """PyTorch's own names are known by their exact form, so the program's may contain any of their words."""
    trace = two_labelled_compilations().trace()
    assert {module.name for module in trace.derived(modules)} == {"resnet18 compile", "bert compile"}
    assert {trace.name(row) for row in trace.derived(own_labels).tolist()} == {"resnet18 compile", "bert compile"}


def test_compiled_code_of_older_versions_is_compiled_code():
    story = cpu()
    story.op("CompiledFunction", 0, 100)
    assert compiled(story)


def test_nothing_found_in_a_cache_while_something_is_compiled():
    story = cpu()
    story.step(1, 0, 1000)
    story.op(LOOKUP, 10, 5)
    story.op(REGION.format("0/0"), 20, 100)
    assert compiled(story).found_in_cache == 1
    story.op("x (dynamo_timed)", 200, 100)
    assert compiled(story).found_in_cache == 0


@pytest.mark.parametrize("regions", [False, True])
def test_functions_stand_for_regions_in_traces_that_have_none(regions):
    """PyTorch before 2.1 announces compiled code as CompiledFunction alone."""
    story = cpu()
    for at in (0, 1000):
        if regions:
            story.op(REGION.format("0/0"), at, 500)
        story.op("CompiledFunction", at + 10, 300)
    found = [(row["name"], row["calls"], row["host_us"]) for row in rows_of(story, "function")]
    assert found == ([] if regions else [("CompiledFunction", 2, 600)])
