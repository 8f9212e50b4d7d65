"""Work on tensors whose contents the operators before show: diagonals, products of lines, chosen experts, casts."""

from tests.rules.case_algebra import layers
from tests.rules.cases import fires, silent
from tests.traces import Story

CHOL = "aten::linalg_cholesky"
SQUARE, SQUARES = [64, 64], [8, 64, 64]


def given(*inputs):
    return {"Concrete Inputs": list(inputs)}


def diagonal(*between, made=("aten::diag_embed", 100, [[8, 64], [], [], []]), then=CHOL, before=()):
    return layers(
        *before, made, *between, (then, 500, [SQUARES, []]), backward=((len(before) + len(between) + 1, 900),)
    )


@fires("diagonal-matrix")
def a_covariance_is_checked_and_factorised():
    return diagonal(
        ("aten::expand", 5, [SQUARES, [], []]),
        ("aten::full", 9, [[], []], given("[8]", "True")),
        ("aten::isclose", 50, [SQUARES, SQUARES, [], [], []]),
        ("aten::all", 20, [SQUARES, [], []]),
        ("aten::mul", 30, [SQUARES, []]),
    )


@fires("diagonal-matrix")
def a_vector_becomes_a_matrix_that_is_inverted():
    return layers(("aten::diag", 100, [[64], []]), ("aten::linalg_inv", 900, [SQUARE]))


@silent("diagonal-matrix")
def noise_is_added_to_another_matrix():
    return diagonal(("aten::add", 50, [SQUARES, SQUARES, []]))


@silent("diagonal-matrix")
def all_elements_change_on_the_way():
    return diagonal(("aten::exp", 50, [SQUARES]))


@silent("diagonal-matrix")
def a_product_of_other_tensors_is_factorised():
    return diagonal(("aten::bmm", 200, [[8, 64, 5], [8, 5, 64]]))


@silent("diagonal-matrix")
def distances_of_other_tensors_are_factorised():
    return diagonal(("aten::cdist", 200, [[8, 64, 5], [8, 64, 5], [], []]))


@silent("diagonal-matrix")
def differences_of_all_pairs_are_factorised():
    return diagonal(("aten::sub", 200, [[8, 64, 1], [8, 1, 64], []]))


@silent("diagonal-matrix")
def random_numbers_are_factorised():
    return diagonal(("aten::randn", 200, [[], []], given("[8, 64, 64]")))


@silent("diagonal-matrix")
def there_was_another_matrix():
    return diagonal(before=(("aten::exp", 100, [SQUARES]),))


@silent("diagonal-matrix")
def a_diagonal_is_read():
    return diagonal(made=("aten::diag", 100, [SQUARE, []]))


@silent("diagonal-matrix")
def equations_with_another_matrix():
    return layers(("aten::diag", 100, [[64], []]), ("aten::linalg_solve", 900, [SQUARE, SQUARE]))


def blur(*makers, kernel=(3, 1, 11, 11), views=1):
    more = [("aten::expand", 5, [list(kernel[2:]), [], []])] * views
    return layers(*makers, *more, ("aten::conv2d", 900, [[8, 3, 96, 96], list(kernel), []]))


@fires("separable-convolution")
def a_column_times_a_row():
    return blur(("aten::mul", 5, [[11, 1], [11]]))


@fires("separable-convolution")
def a_row_times_a_column():
    return blur(("aten::mul", 5, [[1, 9], [11, 1]]), kernel=(3, 1, 11, 9))


@fires("separable-convolution")
def a_matrix_product_of_two_lines():
    return blur(("aten::matmul", 5, [[11, 1], [1, 11]]))


@fires("separable-convolution")
def an_outer_product():
    return blur(("aten::outer", 5, [[11], [11]]))


@silent("separable-convolution")
def a_kernel_of_unknown_make():
    return blur()


@silent("separable-convolution")
def a_kernel_of_another_size():
    return blur(("aten::mul", 5, [[7, 1], [7]]))


@silent("separable-convolution")
def a_product_of_two_squares():
    return blur(("aten::mul", 5, [[11, 11], [11, 11]]))


@silent("separable-convolution")
def a_sum_over_two_pairs_of_lines():
    return blur(("aten::matmul", 5, [[11, 2], [2, 11]]))


@silent("separable-convolution")
def the_kernel_mixes_channels():
    return blur(("aten::mul", 5, [[11, 1], [11]]), kernel=(3, 3, 11, 11))


@fires("separable-convolution")
@silent("long-convolution")
def a_long_kernel_of_two_lines():
    return layers(
        ("aten::mul", 5, [[31, 1], [31]]),
        ("aten::conv2d", 900, [[8, 3, 96, 96], [3, 1, 31, 31], []]),
        ("aten::relu", 50, [[8, 3, 96, 96]]),
    )


def experts(count=8, chosen="2", rows=512, each=1, dim="-1"):
    linear = [
        ("aten::linear", 100, [[rows, 32], [96, 32], [96]]),
        ("aten::gelu", 20, [[rows, 96], []]),
        ("aten::linear", 100, [[rows, 96], [32, 96], [32]]),
    ]
    return layers(
        ("aten::topk", 50, [[512, 8], [], [], [], []], given("", chosen, dim, "True", "True")),
        *(linear * count * each),
        backward=((1, 300), (3, 300)),
    )


@fires("all-experts")
def two_of_eight_count():
    return experts()


@fires("all-experts")
def each_has_a_gate_of_the_same_shape():
    return experts(each=2)


@silent("all-experts")
def each_computes_its_own_tokens():
    return experts(rows=128)


@silent("all-experts")
def six_layers_follow_a_choice_of_eight():
    return experts(count=6)


@silent("all-experts")
def seven_of_eight_count():
    return experts(chosen="7")


@silent("all-experts")
def rows_are_chosen():
    return experts(dim="0")


@silent("all-experts")
def the_choice_was_not_recorded():
    return layers(
        ("aten::topk", 50, [[512, 8], [], [], [], []]),
        *[("aten::linear", 100, [[512, 32], [32, 32], [32]])] * 16,
    )


def casts(wide="float", narrow="c10::BFloat16", between=(), back=(512, 64), by_layer=True):
    """Activations cast to a wide type, and the next layer, which casts them to a narrow one as autocast does."""
    story, shape = Story(gpu=None), [512, 64]
    for at in story.steps(3, 2000):
        story.op("aten::to", at + 10, 100, Input_Dims=[shape, [], [], []], Input_type=[narrow, "", "", ""])
        story.op("aten::copy_", at + 12, 90, Input_Dims=[shape, shape, []], Input_type=[wide, narrow, ""])
        for k, (name, dims) in enumerate(between):
            story.op(name, at + 120 + 20 * k, 15, Input_Dims=dims)
        if by_layer:
            story.op("aten::linear", at + 200, 400, Input_Dims=[list(back), [64, 64]], Input_type=[wide] * 2)
        story.op("aten::to", at + 210, 100, Input_Dims=[list(back), [], [], []], Input_type=[wide, "", "", ""])
        story.op("aten::copy_", at + 212, 90, Input_Dims=[list(back)] * 2 + [[]], Input_type=[narrow, wide, ""])
    return story


@fires("cast-and-back")
def activations_are_widened_before_a_layer():
    return casts()


@fires("cast-and-back")
def the_program_casts_back_itself():
    return casts(by_layer=False)


@silent("cast-and-back")
def what_is_computed_in_between_needs_the_digits():
    return casts(between=(("aten::layer_norm", [[512, 64], [], [64], [64], [], []]),))


@silent("cast-and-back")
def digits_are_lost_on_the_way():
    return casts(wide="c10::BFloat16", narrow="float")


@silent("cast-and-back")
def another_tensor_is_cast():
    return casts(back=(256, 64))
