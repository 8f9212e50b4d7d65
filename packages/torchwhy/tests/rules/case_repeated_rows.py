"""Rows that are repeated before they are computed, and products of integers."""

from tests.rules.case_algebra import layers
from tests.rules.cases import fires, silent

IMAGES, COPIES = [8, 3, 64, 64], [40, 3, 64, 64]
LAYER = [32, 3, 3, 3]


def captioned(*behind, repeats=("5", "0"), first=("aten::repeat_interleave", 20)):
    return layers(
        (*first, [IMAGES, [], [], []], {"Concrete Inputs": ["", *repeats, ""]}), *behind, backward=((1, 500),)
    )


@fires("repeated-rows")
def images_are_repeated_before_the_encoder():
    return captioned(("aten::conv2d", 600, [COPIES, LAYER, [32]]), ("aten::relu", 40, [[40, 32, 64, 64]]))


@fires("repeated-rows")
def one_row_is_repeated_before_a_layer():
    return layers(
        ("aten::repeat", 20, [[1, 512], []], {"Concrete Inputs": ["", "[64, 1]"]}),
        ("aten::linear", 900, [[64, 512], [256, 512], [256]]),
    )


@silent("repeated-rows")
def noise_differs_from_copy_to_copy():
    return captioned(("aten::add", 60, [COPIES, COPIES, []]), ("aten::conv2d", 600, [COPIES, LAYER, [32]]))


@silent("repeated-rows")
def noise_is_added_to_each_copy_apart():
    return layers(
        ("aten::repeat", 20, [[8, 512], []], {"Concrete Inputs": ["", "[5, 1]"]}),
        ("aten::view", 2, [[40, 512], []], {"Concrete Inputs": ["", "[5, 8, 512]"]}),
        ("aten::add", 30, [[5, 8, 512], [5, 1, 512], []]),
        ("aten::view", 2, [[5, 8, 512], []], {"Concrete Inputs": ["", "[40, 512]"]}),
        ("aten::linear", 900, [[40, 512], [256, 512], [256]]),
    )


@silent("repeated-rows")
def dropout_differs_from_copy_to_copy():
    return captioned(("aten::dropout", 60, [COPIES]), ("aten::conv2d", 600, [COPIES, LAYER, [32]]))


@silent("repeated-rows")
def pixels_are_repeated():
    wider = [8, 3, 320, 64]
    return captioned(("aten::conv2d", 600, [wider, LAYER, [32]]), repeats=("5", "2"))


@silent("repeated-rows")
def features_are_repeated_behind_the_encoder():
    return layers(
        ("aten::conv2d", 600, [IMAGES, LAYER, [32]]),
        ("aten::repeat_interleave", 20, [[8, 32], [], [], []], {"Concrete Inputs": ["", "5", "0", ""]}),
        ("aten::gru", 300, [[40, 12, 64], [1, 40, 64]]),
    )


def counted(kind):
    return layers(("aten::matmul", 900, [[600, 512], [512, 600]], {"Input type": [kind, kind]}))


@fires("integer-products")
def baskets_are_counted_in_whole_numbers():
    return counted("long int")


@silent("integer-products")
def small_integers_take_no_longer():
    return counted("unsigned char")


@silent("integer-products")
def baskets_are_counted_in_floats():
    return counted("float")
