"""Costly operators that a watch after the recorded steps looked at, and ran again in other ways."""

from tests.rules.case_computed_again import CHANGES, FORWARD, LOOP, MODULE, PRODUCT, watched
from tests.rules.cases import fires, silent

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
