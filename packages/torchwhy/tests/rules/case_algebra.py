"""Work that other operators save: patches, thin factors, joined pairs, penalties, gradients that nothing reads."""

from tests.rules.cases import fires, silent
from tests.traces import Story

NODE = "autograd::engine::evaluate_function: "


def layers(*operators, backward=(), update=None):
    """Steps that call (name, us, dims, more) one after another; `backward` names nodes by the place of an operator.

    `update` is the shape of the tensors that the optimizer takes.
    """
    story = Story(gpu=None)
    for step, at in enumerate(story.steps(4, 4000)):
        first, now = 100 * step, at + 10
        for k, (name, us, dims, *more) in enumerate(operators):
            story.op(name, now, us, Input_Dims=dims, Sequence_number=first + k, **(more[0] if more else {}))
            now += us + 5
        for k, us in backward:
            story.op(NODE + "SomeBackward0", now, us, Sequence_number=first + k, Fwd_thread_id=1)
            now += us + 5
        if update is not None:
            story.op(NODE + "torch::autograd::AccumulateGrad", now, 9)
            story.op("torch::autograd::AccumulateGrad", now + 1, 7, Input_Dims=[[8, 3, 96, 96]])
            story.note("Optimizer.step#SGD.step", 3500 + at, 100)
            story.op("aten::_foreach_add_", 3510 + at, 80, Input_Dims=[[update], [update], []])
    return story


def patches(weight, kernel="[3, 3]"):
    given = {"Concrete Inputs": ["", kernel, "[1, 1]", "[1, 1]", "[1, 1]"]}
    return layers(
        ("aten::im2col", 500, [[8, 4, 48, 48], [], [], [], []], given),
        ("aten::flatten", 5, [[32, 4, 3, 3], [], []]),
        ("aten::matmul", 500, [weight, [8, 36, 2304]]),
        backward=((2, 400), (0, 400)),
    )


@fires("unfolded-convolution")
def a_matrix_multiplies_all_patches():
    return patches([32, 36])


@silent("unfolded-convolution")
def each_image_has_its_own_matrix():
    return patches([8, 32, 36])


@silent("unfolded-convolution")
def the_product_reads_something_else():
    return patches([32, 36], kernel="[5, 5]")


def adapter(rank, between="aten::mul", backward=((0, 300), (1, 100), (2, 100), (3, 300)), rows=16):
    weight = [3072, 768]
    return layers(
        ("aten::matmul", 300, [[3072, rank], [rank, 768]]),
        (between, 200, [weight, []]),
        ("aten::add", 200, [weight, weight, []]),
        ("aten::linear", 300, [[4, rows, 768], weight, [3072]]),
        backward=backward,
    )


@fires("low-rank-weight")
def an_adapter_is_added_to_the_weight_in_training():
    return adapter(8)


@fires("low-rank-weight")
def an_adapter_is_added_to_serve_few_rows():
    return adapter(8, backward=())


@silent("low-rank-weight")
def an_adapter_is_added_to_serve_many_rows():
    return adapter(8, backward=(), rows=1024)


@silent("low-rank-weight")
def the_factors_are_as_large_as_the_weight():
    return adapter(512)


@silent("low-rank-weight")
def the_weight_is_divided_by_its_norm():
    return adapter(8, between="aten::linalg_vector_norm")


@silent("low-rank-weight")
def activations_of_a_perceptron_have_the_shape_of_a_weight():
    return layers(
        ("aten::linear", 300, [[512, 8], [512, 8], [512]]),
        ("aten::tanh", 200, [[512, 512]]),
        ("aten::linear", 300, [[512, 512], [512, 512], [512]]),
        backward=((0, 300), (1, 100), (2, 300)),
    )


def squares(dims, reduce="aten::sum", backward=((1, 200), (2, 50), (3, 200), (4, 50)), exponent="2"):
    given = {"Concrete Inputs": ["", exponent]}
    return layers(
        ("aten::linear", 100, [[4, 768], [300, 768], [300]]),
        ("aten::pow", 200, [dims[0], []], given),
        (reduce, 50, [dims[0], []]),
        ("aten::pow", 200, [dims[1], []], given),
        (reduce, 50, [dims[1], []]),
        ("aten::linear", 100, [[4, 300], [20, 300], [20]]),
        backward=backward,
    )


@fires("penalty-in-loss")
def squares_of_two_weights_are_summed():
    return squares(([300, 768], [20, 300]))


@silent("penalty-in-loss")
def squares_of_activations_are_summed():
    return squares(([4, 300], [4, 20]))


@silent("penalty-in-loss")
def norms_are_logged_without_a_gradient():
    return squares(([300, 768], [20, 300]), backward=())


@silent("penalty-in-loss")
def weights_are_standardised():
    return squares(([300, 768], [20, 300]), reduce="aten::mean")


@silent("penalty-in-loss")
def fourth_powers_are_summed():
    return squares(([300, 768], [20, 300]), exponent="4")


def images(update):
    return layers(
        ("aten::conv2d", 500, [[8, 3, 96, 96], [64, 3, 11, 11], [64], [], [], [], []]),
        ("aten::relu", 50, [[8, 64, 96, 96]]),
        backward=((0, 1000),),
        update=update,
    )


@fires("input-gradient")
def images_require_gradients():
    return images([64, 3, 11, 11])


@silent("input-gradient")
def the_optimizer_updates_the_images():
    return images([8, 3, 96, 96])


@silent("input-gradient")
def the_gradient_is_read():
    story = images([64, 3, 11, 11])
    for step in range(4):
        story.op("aten::sign", 4000 * step + 3000, 50, Input_Dims=[[8, 3, 96, 96]])
    return story


def pairs(second="aten::repeat", source=(50, 16), then="aten::matmul"):
    return layers(
        ("aten::repeat_interleave", 200, [[50, 16], [], [], []]),
        (second, 200, [list(source), []]),
        ("aten::cat", 300, [[[2500, 16], [2500, 16]], []]),
        (then, 300, [[2500, 32], [32, 1]]),
        backward=((3, 300), (2, 100), (1, 200), (0, 200)),
    )


@fires("joined-pairs")
def all_pairs_of_rows_meet_one_matrix():
    return pairs()


@silent("joined-pairs")
def one_part_differs_in_every_row():
    return pairs(source=(2500, 16))


@silent("joined-pairs")
def pairs_are_multiplied_elementwise():
    return pairs(then="aten::mul")


@silent("joined-pairs")
def single_numbers_are_joined():
    return layers(("aten::cat", 500, [[[], []], []]), ("aten::linear", 500, [[4, 2], [8, 2], [8]]))


def frames(outputs, size=512):
    return layers(
        ("aten::conv1d", 800, [[8, 1, 32000], [outputs, 1, size], [], [], [], []]),
        ("aten::square", 100, [[8, outputs, 121]]),
    )


@fires("fourier-basis")
def sines_and_cosines_are_convolved():
    return frames(514)


@fires("fourier-basis")
def cosines_alone_are_convolved():
    return frames(257)


@silent("fourier-basis")
def filters_are_learned():
    return frames(256)


def rollout(count, whole, *, written=1.0):
    """Steps that write `count` parts into a tensor; the backward pass copies as much as the tensor is large."""
    story = Story(gpu=None)
    for step, at in enumerate(story.steps(4, 4000)):
        part = [int(whole[0] * written) // count, *whole[1:]]
        for k in range(count):
            number, now, back = 1000 * step + 2 * k, at + 10 + 30 * k, at + 3000 - 70 * k
            story.op("aten::mm", now, 15, Input_Dims=[[64, 64], [64, 64]], Sequence_number=number)
            story.op("aten::copy_", now + 16, 4, Input_Dims=[part, part, []], Sequence_number=number)
            ids = {"Sequence_number": number + 1, "Fwd_thread_id": 1}
            story.op(NODE + "torch::autograd::CopySlices", back, 66, **ids)
            story.op("torch::autograd::CopySlices", back + 1, 64, Input_Dims=[whole], **ids)
            story.op("aten::copy_", back + 2, 50, Input_Dims=[whole, whole, []])
            ids["Sequence_number"] = number
            story.op("torch::autograd::CopyBackwards", back + 55, 8, Input_Dims=[part], **ids)
    return story


@fires("slice-writes")
def states_are_written_one_by_one():
    return rollout(20, [20, 4096])


@silent("slice-writes")
def halves_are_written():
    return rollout(4, [20, 4096])


@silent("slice-writes")
def parts_are_written_again_and_again():
    return rollout(20, [160, 512], written=2.5)
