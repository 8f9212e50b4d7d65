"""Operators whose inputs and results were equal in several calls, under a watch after the recorded steps."""

from tests.rules.cases import fires, silent
from tests.traces import Story

MODULE = "torch/nn/modules/module.py(1789): _call_impl"
LOOP = "train.py(30): main"
PRODUCT, SUM = [[64, 64], [64, 64]], [[64, 64]]


def watched(*sites, us=300):
    """Steps with an operator for each site that is no backward pass's, and what the watch saw.

    A site: name, shapes, stack, calls that were judged, repeated ones, those in a row, the stack of an earlier call.
    """
    story = Story(gpu=None)
    stacks = []
    for site in sites:
        stacks += [stack for stack in (site[2], *site[6:]) if stack and stack not in stacks]
    frames = sorted({frame for stack in stacks for frame in stack})
    for at in story.steps(5, us=1000):
        for i, (name, shapes, *_) in enumerate(sites):
            story.op(name, at + 10 + i * (us + 10), us, **{"Input Dims": shapes})
    story.top["torchwhy_contents"] = {
        "frames": frames,
        "lines": ["" for _ in frames],
        "stacks": [[frames.index(frame) for frame in stack] for stack in stacks],
        "sites": [
            {
                **{"operator": name, "stack": stacks.index(stack) if stack else -1, "judged": judged, "again": again},
                **{"time_us": again * us, "values": 1, "in_a_row": in_a_row},
                "earlier": stacks.index(earlier[0]) if earlier else -1,
                "shapes": [[str(shapes), max(judged, 1), again]],
            }
            for name, shapes, stack, judged, again, in_a_row, *earlier in sites
        ],
    }
    return story


CHANGES = ("aten::sum", SUM, [LOOP], 12, 0, 0)
FORWARD = ["net.py(9): forward", MODULE, LOOP]


@fires("computed-again")
def a_product_of_constants_is_computed_in_each_step():
    return watched(("aten::mm", PRODUCT, FORWARD, 10, 10, 10), CHANGES)


@fires("computed-again")
def the_same_product_is_computed_twice_in_a_step():
    first, second = ["net.py(7): forward", *FORWARD[1:]], FORWARD
    return watched(("aten::mm", PRODUCT, first, 12, 0, 0), ("aten::mm", PRODUCT, second, 11, 11, 0, first))


@fires("computed-again")
def a_frozen_module_runs_over_the_same_batches():
    layer = ["torch/nn/modules/linear.py(134): forward", MODULE, "train.py(20): main"]
    return watched(("aten::addmm", PRODUCT, layer, 10, 10, 0), CHANGES)


@silent("computed-again")
def inputs_change():
    return watched(("aten::mm", PRODUCT, FORWARD, 12, 0, 0), CHANGES)


@silent("computed-again")
def most_calls_have_new_inputs():
    return watched(("aten::mm", PRODUCT, FORWARD, 12, 4, 4), CHANGES)


@silent("computed-again")
def a_benchmark_runs_on_one_input():
    return watched(("aten::mm", PRODUCT, FORWARD, 10, 10, 10), ("aten::sum", SUM, [LOOP], 10, 10, 10))


@silent("computed-again")
def what_is_repeated_is_cheap():
    return watched(("aten::mm", PRODUCT, FORWARD, 10, 10, 10), CHANGES, us=20)


@silent("computed-again")
def a_backward_pass_computes_again():
    return watched(("aten::mm", PRODUCT, [], 0, 0, 0), CHANGES)


@fires("computed-again")
def a_script_without_functions_runs_a_frozen_module():
    layer = ["torch/nn/modules/linear.py(134): forward", MODULE, "train.py(20): <module>"]
    return watched(("aten::addmm", PRODUCT, layer, 10, 10, 0), ("aten::sum", SUM, [LOOP], 12, 0, 0))
