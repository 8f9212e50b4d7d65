"""Steps in the order that takes more work, and general operators where a special one does."""

from tests.rules.case_algebra import layers
from tests.rules.cases import fires, silent


def given(*values):
    return {"Concrete Inputs": ["", *values]}


def upsampled(kernel=1, outputs=12, features=(4, 128, 16, 16)):
    return layers(
        ("aten::upsample_bilinear2d", 600, [list(features), [], [], []]),
        ("aten::conv2d", 400, [[4, 128, 128, 128], [outputs, 128, kernel, kernel], [outputs]]),
        backward=((1, 400), (0, 600)),
    )


@fires("upsampled-before-pointwise")
def channels_are_upsampled_to_be_dropped():
    return upsampled()


@silent("upsampled-before-pointwise")
def the_convolution_has_a_wider_kernel():
    return upsampled(kernel=3)


@silent("upsampled-before-pointwise")
def the_convolution_keeps_the_channels():
    return upsampled(outputs=128)


@silent("upsampled-before-pointwise")
def the_convolution_reads_hardly_more_points():
    return upsampled(features=(4, 128, 100, 100))


def skipped(step="2", *more):
    result = [8, 48, 64, 64]
    return layers(
        (
            "aten::conv2d",
            800,
            [[8, 24, 64, 64], [48, 24, 3, 3], [48]],
            given("", "", "[1, 1]", "[1, 1]", "[1, 1]", "1"),
        ),
        ("aten::relu", 40, [result]),
        ("aten::slice", 5, [result, [], [], [], []], given("2", "0", "9223372036854775807", step)),
        ("aten::slice", 5, [[8, 48, 32, 64], [], [], [], []], given("3", "0", "9223372036854775807", step)),
        *more,
        backward=((0, 900),),
    )


@fires("skipped-outputs")
def every_second_row_and_column_is_read():
    return skipped()


@silent("skipped-outputs")
def a_border_is_cut_off():
    return skipped("1")


@silent("skipped-outputs")
def other_slices_take_the_rest():
    other = ("aten::slice", 5, [[8, 48, 64, 64], [], [], [], []], given("2", "1", "9223372036854775807", "2"))
    return skipped("2", other)


@silent("skipped-outputs")
def the_whole_result_is_added_later():
    return skipped("2", ("aten::add", 50, [[8, 48, 64, 64], [8, 48, 64, 64], []]))


def gathered(nodes=3000, outputs=64, read=60_000):
    return layers(
        ("aten::index", 500, [[nodes, 256], []]),
        ("aten::linear", 500, [[read, 256], [outputs, 256], [outputs]]),
        backward=((1, 400), (0, 400)),
    )


@fires("gathered-before-product")
def the_rows_of_edges_are_multiplied():
    return gathered()


@fires("gathered-before-product")
def few_words_are_looked_up_often():
    return layers(
        ("aten::embedding", 400, [[500, 256], [64, 128], [], [], []]),
        ("aten::linear", 500, [[64, 128, 256], [64, 256], [64]]),
    )


@silent("gathered-before-product")
def fewer_rows_are_read_than_there_are():
    return gathered(nodes=100_000)


@silent("gathered-before-product")
def the_layer_makes_more_columns():
    return gathered(outputs=1024)


def chain(columns, factor=(1000, 1000)):
    return layers(
        ("aten::matmul", 900, [[1000, 1000], list(factor)]),
        ("aten::matmul", 100, [[1000, factor[1]], [factor[1], columns]]),
        backward=((1, 200), (0, 900)),
    )


@fires("product-order")
def two_large_matrices_are_multiplied_for_a_thin_one():
    return chain(64)


@silent("product-order")
def the_last_factor_is_as_wide():
    return chain(1000)


@silent("product-order")
def the_first_product_is_thin():
    return chain(1000, factor=(1000, 64))


@silent("product-order")
def a_softmax_lies_in_between():
    return layers(
        ("aten::matmul", 600, [[8, 1024, 64], [8, 64, 1024]]),
        ("aten::softmax", 100, [[8, 1024, 1024], [], []]),
        ("aten::matmul", 600, [[8, 1024, 1024], [8, 1024, 64]]),
    )


def transforms(kind="float", reader="aten::real"):
    typed = {"Input type": [kind, "Scalar", "Scalar", ""]}
    spectrum = {"Input type": ["c10::complex<float>", "Scalar", "Scalar", ""]}
    return layers(
        ("aten::fft_fft", 600, [[16, 72000], [], [], []], typed),
        ("aten::mul", 200, [[16, 72000], [72000]]),
        ("aten::fft_ifft", 600, [[16, 72000], [], [], []], spectrum),
        (reader, 5, [[16, 72000]]),
    )


@fires("complex-transform")
def the_real_part_is_taken_of_the_way_back():
    return transforms()


@fires("complex-transform")
def the_magnitude_of_the_spectrum_is_taken():
    typed = {"Input type": ["double", "Scalar", "Scalar", ""]}
    return layers(("aten::fft_fft", 900, [[64, 4096], [], [], []], typed), ("aten::abs", 100, [[64, 4096]]))


@silent("complex-transform")
def the_signal_is_complex():
    return transforms("c10::complex<float>")


@silent("complex-transform")
def the_result_stays_complex():
    return transforms(reader="aten::mul")


def heads(times, copy="aten::reshape"):
    kept = [8, 2 * times, 910, 32]
    repeated = (
        ("aten::expand", 3, [[8, 2, 1, 910, 32], [], []]),
        ("aten::reshape", 500, [[8, 2, times, 910, 32], []]),
    )
    copies = repeated if copy == "aten::reshape" else ((copy, 500, [[8, 2, 910, 32], [], [], []]),)
    attention = ("aten::scaled_dot_product_attention", 600, [[8, 2 * times, 1, 32], kept, kept, [], [], [], [], []])
    return layers(*copies, *copies, attention)


@fires("repeated-heads")
def expanded_keys_are_written_out():
    return heads(8)


@fires("repeated-heads")
def keys_are_repeated():
    return heads(8, copy="aten::repeat_interleave")


@silent("repeated-heads")
def each_head_has_its_keys():
    return heads(1)


def bag(length, axis="[1]"):
    return layers(
        ("aten::embedding", 600, [[50_000, 128], [256, length], [], [], []]),
        ("aten::mean", 300, [[256, length, 128], [], [], []], given(axis, "False", "")),
    )


@fires("summed-rows")
def the_mean_of_words_is_taken():
    return bag(200)


@silent("summed-rows")
def few_words_are_added():
    return bag(3)


@silent("summed-rows")
def the_mean_goes_over_features():
    return bag(200, axis="[2]")


def columns(read):
    return layers(("aten::index", 900, [[1000, 40_000], []]), ("aten::numpy_T", 5, [read]))


@fires("gathered-columns")
def columns_are_samples():
    return columns([1000, 512])


@silent("gathered-columns")
def rows_are_samples():
    return columns([512, 40_000])


@silent("gathered-columns")
def pairs_are_chosen():
    return columns([512])


@fires("general-eigenvalues")
def the_real_part_is_taken_of_eigenvalues():
    return layers(("aten::linalg_eig", 900, [[324, 324]]), ("aten::real", 5, [[324]]))


@silent("general-eigenvalues")
def eigenvalues_stay_complex():
    return layers(("aten::linalg_eig", 900, [[324, 324]]), ("aten::abs", 5, [[324]]), ("aten::max", 5, [[324]]))


def augmented(size="[64, 64]", channels=3, backward=()):
    images = [16, channels, 384, 384]
    return layers(
        ("aten::mul", 400, [images, [16, 3, 1, 1]]),
        ("aten::sub", 400, [images, [1, 3, 1, 1], []]),
        ("aten::adaptive_avg_pool2d", 100, [images, []], given(size)),
        backward=backward,
    )


@fires("augmented-before-shrinking")
def photographs_are_shrunk_last():
    return augmented()


@silent("augmented-before-shrinking")
def features_are_pooled():
    return augmented(channels=64)


@silent("augmented-before-shrinking")
def images_hardly_shrink():
    return augmented(size="[300, 300]")


@silent("augmented-before-shrinking")
def what_is_shrunk_is_trained():
    return augmented(backward=((1, 300), (0, 300)))


def gelu(function="aten::tanh", exponent="3", last="aten::mul"):
    shape = [16, 128, 512]
    return layers(
        ("aten::mul", 200, [shape, []]),
        ("aten::pow", 300, [shape, []], given(exponent)),
        ("aten::mul", 200, [shape, []]),
        ("aten::add", 200, [shape, shape, []]),
        (function, 300, [shape]),
        ("aten::add", 200, [shape, [], []]),
        (last, 200, [shape, shape]),
        backward=((4, 300), (1, 300)),
    )


@fires("gelu-by-hand")
def a_cube_and_a_tangent():
    return gelu()


@fires("gelu-by-hand")
def an_error_function():
    return gelu("aten::erf", exponent="2")


@silent("gelu-by-hand")
def a_square_and_a_tangent():
    return gelu(exponent="2")


@silent("gelu-by-hand")
def a_sine_and_a_cube():
    return gelu("aten::sin")


@silent("gelu-by-hand")
def nothing_is_multiplied_behind():
    return gelu(last="aten::sub")


@silent("gelu-by-hand")
def the_probability_below_a_value():
    shape = [16, 128, 512]
    return layers(
        ("aten::sub", 200, [shape, [], []]),
        ("aten::div", 200, [shape, []]),
        ("aten::erf", 300, [shape]),
        ("aten::add", 200, [shape, [], []]),
        ("aten::mul", 200, [shape, []]),
    )
