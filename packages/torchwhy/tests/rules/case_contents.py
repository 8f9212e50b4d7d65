"""Operators under a watch after the recorded steps: equal inputs in several calls, and runs in other ways."""

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
def masks_of_different_tensors_are_equal():
    return watched(("aten::any", SUM, FORWARD, 10, 10, 10), CHANGES)


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


ADJACENCY = [[5000, 5000], [5000, 64]]
BACKWARD = ("aten::mm", ADJACENCY, [], 0, 0, 0)
TRIAL = {
    **dict.fromkeys(("looks", "subnormal", "undefined", "weights", "steps", "reruns", "faster", "products"), 0),
    **dict.fromkeys(("plain_us", "flushed_us", "floored_us", "zeros", "dense_us", "sparse_us", "layout_us"), 0.0),
    **{"matrix": [], "changing": False},
}
DECAYS = {
    "looks": 30,
    "subnormal": 28,
    "reruns": 8,
    "faster": 8,
    "plain_us": 8000.0,
    "flushed_us": 500.0,
    "floored_us": 900.0,
}
ZEROS = {
    **{"looks": 30, "zeros": 0.998, "matrix": [5000, 5000], "products": 8},
    **{"dense_us": 8000.0, "sparse_us": 400.0, "layout_us": 9000.0},
}
NAN = {"looks": 30, "undefined": 30, "weights": 30, "steps": 20}


def tried(name, shapes, stack, *others, us=300, **seen):
    """A program with an operator that was tried, and others that were not."""
    story = watched((name, shapes, stack, 10, 0, 0), *others, us=us)
    noted = story.top["torchwhy_contents"]
    noted["trials"] = [TRIAL | {"operator": name, "stack": 0 if stack else -1, "shapes": str(shapes)} | seen]
    return story


@fires("subnormal-numbers")
def a_state_decays():
    return tried("aten::mul", PRODUCT, FORWARD, CHANGES, **DECAYS)


@fires("subnormal-numbers")
def gradients_are_subnormal():
    return tried("aten::mm", PRODUCT, [], CHANGES, **DECAYS)


@fires("subnormal-numbers")
def square_roots_do_not_follow_the_processors_mode():
    return tried("aten::sqrt", PRODUCT, FORWARD, CHANGES, **DECAYS | {"flushed_us": 8100.0})


@silent("subnormal-numbers")
def subnormal_numbers_cost_nothing():
    return tried(
        "aten::mul", PRODUCT, FORWARD, CHANGES, **DECAYS | {"faster": 1, "flushed_us": 7000.0, "floored_us": 7000.0}
    )


@silent("subnormal-numbers")
def few_calls_have_subnormal_numbers():
    return tried("aten::mul", PRODUCT, FORWARD, CHANGES, **DECAYS | {"subnormal": 10})


@silent("subnormal-numbers")
def subnormal_numbers_are_in_a_cheap_operator():
    return tried("aten::mul", PRODUCT, FORWARD, CHANGES, us=20, **DECAYS)


@fires("multiplied-zeros")
def an_adjacency_is_multiplied_densely():
    return tried("aten::mm", ADJACENCY, FORWARD, BACKWARD, CHANGES, **ZEROS)


@silent("multiplied-zeros")
def a_matrix_with_zeros_is_made_anew_for_each_product():
    return tried("aten::mm", ADJACENCY, FORWARD, CHANGES, **ZEROS | {"changing": True})


@silent("multiplied-zeros")
def a_sparse_product_takes_as_long():
    return tried("aten::mm", ADJACENCY, FORWARD, CHANGES, **ZEROS | {"zeros": 0.95, "sparse_us": 7000.0})


@fires("not-a-number")
def training_goes_on_with_nan():
    layer = ["torch/nn/modules/linear.py(134): forward", MODULE, LOOP]
    return tried("aten::addmm", PRODUCT, layer, CHANGES, **NAN)


@silent("not-a-number")
def a_batch_is_nan_and_the_parameters_are_not():
    return tried("aten::addmm", PRODUCT, FORWARD, CHANGES, **NAN | {"weights": 0})


@silent("not-a-number")
def one_step_is_nan():
    return tried("aten::addmm", PRODUCT, FORWARD, CHANGES, **NAN | {"undefined": 2, "weights": 2, "steps": 1})
