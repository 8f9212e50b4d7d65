"""Ordinary mistakes in PyTorch programs: what is computed in a longer way than needed, too often, or for nothing."""

from tests.rules.cases import fires, silent
from tests.traces import Story, samples

NODE = "autograd::engine::evaluate_function: "
RECOMPUTE = "torch/utils/checkpoint.py(1124): recompute_fn"


def inverse(columns):
    story = Story(gpu=None)
    for at in story.steps(3, 1000):
        story.op("aten::linalg_inv", at + 10, 700, Input_Dims=[[400, 400]])
        story.op("aten::matmul", at + 720, 50, Input_Dims=[[400, 400], [400, columns]])
    return story


@fires("inverse-for-product")
def an_inverse_is_multiplied_with_one_vector():
    return inverse(1)


@silent("inverse-for-product")
def an_inverse_is_multiplied_with_many():
    return inverse(400)


def hot(then, **dims):
    story = Story(gpu=None)
    for at in story.steps(3, 1000):
        story.op("aten::one_hot", at + 10, 100, Input_Dims=[[64], []], Concrete_Inputs=["", "500"])
        story.op("aten::to", at + 120, 100, Input_Dims=[[64, 500], [], []])
        story.op(then, at + 230, 500, Input_Dims=dims["dims"])
    return story


@fires("one-hot")
def rows_of_zeros_and_a_one_meet_a_matrix():
    return hot("aten::matmul", dims=[[64, 500], [500, 32]])


@fires("one-hot")
def rows_of_zeros_and_a_one_pick_from_scores():
    return hot("aten::mul", dims=[[64, 500], [64, 500]])


@silent("one-hot")
def rows_of_zeros_and_a_one_are_smoothed():
    return hot("aten::mul", dims=[[64, 500], []])


def normalised(root, rounds=4):
    story = Story(gpu=None)
    for at in story.steps(3, 4000):
        for k in range(rounds):
            begin = at + 900 * k
            story.op("aten::mean", begin, 20, Input_Dims=[[64, 32], [], []])
            story.op("aten::sub", begin + 30, 100, Input_Dims=[[64, 32], [64, 1], []])
            story.op("aten::pow", begin + 140, 100, Input_Dims=[[64, 32], []])
            story.op("aten::mean", begin + 250, 20, Input_Dims=[[64, 32], [], []])
            story.op(root, begin + 280, 10, Input_Dims=[[64, 1]])
            story.op("aten::div", begin + 300, 100, Input_Dims=[[64, 32], [64, 1]])
    return story


@fires("norm-by-hand")
def rows_are_centred_and_scaled():
    return normalised("aten::sqrt")


@silent("norm-by-hand")
def rows_are_scaled_by_a_sum():
    return normalised("aten::add")


def dropped(mask, backward=False):
    story = Story(gpu=None)
    for at in story.steps(3, 1000):
        story.op("aten::linear", at + 10, 300, Input_Dims=[[64, 32], [32, 32], [32]])
        story.op("aten::dropout", at + 320, 300, Input_Dims=[[64, 32], [], []])
        if mask:
            story.op("aten::bernoulli_", at + 330, 200, Input_Dims=[[64, 32], []])
        if backward:
            story.op(NODE + "MulBackward0", at + 640, 100)
    return story


@fires("dropout-at-inference")
def masks_are_drawn_and_nothing_is_trained():
    return dropped(mask=True)


@silent("dropout-at-inference")
def masks_are_drawn_in_training():
    return dropped(mask=True, backward=True)


@silent("dropout-at-inference")
def dropout_is_switched_off():
    return dropped(mask=False)


def backward_with_layers(frame):
    story = Story(gpu=None)
    for at in story.steps(3, 1000):
        story.op(NODE + "AddmmBackward0", at + 500, 300)
        if frame:
            story.frame(frame, at + 505, 250)
        story.op("aten::linear", at + 510, 240, Input_Dims=[[64, 32], [32, 32], [32]])
    return story


@fires("recomputed-forward")
def layers_run_again_within_the_backward_pass():
    return backward_with_layers(RECOMPUTE)


@silent("recomputed-forward")
def a_backward_pass_of_the_programs_own_calls_layers():
    return backward_with_layers("train.py(30): backward")


def table(rows, asked=(10, 20)):
    story = Story(gpu=None)
    for at in story.steps(3, 2000):
        story.op("aten::embedding", at + 10, 50, Input_Dims=[[rows, 32], list(asked), [], [], []])
        story.op(NODE + "EmbeddingBackward0", at + 100, 400)
        story.op("aten::embedding_dense_backward", at + 110, 380, Input_Dims=[[*asked, 32], list(asked), [], [], []])
        story.note("Optimizer.step#Adam.step", at + 600, 1000)
        story.op("aten::sqrt", at + 610, 900, Input_Dims=[[rows, 32]])
    return story


@fires("dense-table-gradient")
def a_large_table_is_updated_for_a_few_rows():
    return table(100_000)


@silent("dense-table-gradient")
def most_of_a_small_table_is_used():
    return table(300)


def padded(lengths, full=256):
    story = Story(gpu=None)
    for at in story.steps(3, 2000):
        for k in range(16):
            length = lengths[k % len(lengths)]
            amounts = f"[0, {full - length}]"
            story.op(
                "aten::constant_pad_nd",
                at + 10 * k,
                5,
                Input_Dims=[[length], [], []],
                Concrete_Inputs=["", amounts, ""],
            )
        story.op("aten::linear", at + 400, 1200, Input_Dims=[[16, full, 32], [32, 32], [32]])
    return story


@fires("padded-to-maximum")
def short_texts_are_padded_to_256():
    return padded([10, 20, 30, 40, 17])


@silent("padded-to-maximum")
def some_texts_are_nearly_as_long():
    return padded([10, 20, 30, 40, 250])


def numbers(count, reduce="aten::linalg_vector_norm"):
    story = Story(gpu=None)
    for at in story.steps(3, 4000):
        for k in range(count):
            story.op(reduce, at + 60 * k, 20, Input_Dims=[[48, 48], [], [], [], []])
            story.op("aten::item", at + 60 * k + 30, 5, Input_Dims=[[]])
    return story


@fires("numbers-one-by-one")
def a_norm_is_read_for_each_parameter():
    return numbers(50)


@silent("numbers-one-by-one")
def a_few_losses_are_read():
    return numbers(4)


@silent("numbers-one-by-one")
def numbers_are_read_that_no_reduction_made():
    return numbers(50, reduce="aten::linear")


def copied(frame):
    story = Story(gpu=None)
    for at in story.steps(4, 200):
        story.op("aten::mm", at + 10, 50, Input_Dims=[[8, 8], [8, 8]])
    mine, other = ["train.py(9): step"], [frame, "train.py(12): keep"]
    return samples(story, [other if k % 2 else mine for k in range(40)])


@fires("deepcopy-each-step")
def samples_show_deepcopy_in_every_step():
    return copied("copy.py(150): deepcopy")


@silent("deepcopy-each-step")
def samples_show_shallow_copies():
    return copied("copy.py(90): copy")


@fires("deepcopy-each-step")
@silent("cpu-copies")
def deepcopy_clones_large_tensors_among_many_frames():
    """More than half of the events are frames, which lengthen the host's time."""
    story = Story(gpu=None)
    for at in story.steps(5, 1000):
        story.op("aten::mm", at + 10, 300)
        story.frame("copy.py(128): deepcopy", at + 400, 500)
        for k in range(40):
            story.frame("copy.py(231): _deepcopy_dict", at + 402 + k, 480 - 2 * k)
        story.op("aten::clone", at + 450, 400)
        story.op("aten::copy_", at + 452, 390, Input_Dims=[[2000, 128], [2000, 128]])
    return story


@fires("deepcopy-each-step")
def frames_of_deepcopy_in_every_step():
    story = Story(gpu=None)
    for at in story.steps(4, 200):
        story.op("aten::mm", at + 10, 50, Input_Dims=[[8, 8], [8, 8]])
        story.frame("copy.py(128): deepcopy", at + 100, 60)
    return story


def stacked(dims):
    story = Story(gpu=None)
    for at in story.steps(4, 2000):
        story.op("aten::linear", at + 10, 300, Input_Dims=[[64, 32], [32, 32], [32]])
        for k in range(3):
            story.op("aten::stack", at + 700 + 400 * k, 80, Input_Dims=dims, Input_type=["TensorList", "Scalar"])
    return story


@fires("rows-stacked")
def batches_are_stacked_from_long_lists():
    return stacked([[], []])


@fires("rows-stacked")
def gradients_are_stacked_after_the_backward_pass():
    story = stacked([[], []])
    for at in range(0, 8000, 2000):
        story.op("autograd::engine::evaluate_function: AddmmBackward0", at + 400, 250)
    return story


@silent("rows-stacked")
def three_tensors_are_stacked():
    return stacked([[[64, 32]] * 3, []])


def threads(count, cores=2, each_us=800, load=1.0, **top):
    story = Story(gpu=None, **top)
    noted = {"wall_us": 9000.0, "waited_us": 0.0, "cores": cores, "threads": count, "load": load}
    story.top["torchwhy_processor_time"] = noted
    for at in story.steps(3, 1000):
        for start in range(10, 810, each_us):
            story.op("aten::addmm", at + start, each_us - 2, Input_Dims=[[32], [64, 32], [32, 32], [], []])
    return story


@fires("too-many-threads")
def thirty_two_threads_on_two_processors():
    return threads(32)


@silent("too-many-threads")
def as_many_threads_as_processors():
    return threads(2)


@fires("too-few-threads")
@silent("too-many-threads")
def one_thread_on_sixteen_processors():
    return threads(1, cores=16)


@silent("too-few-threads")
def one_thread_for_each_core_of_two_processors():
    return threads(8, cores=16)


@silent("too-few-threads")
def one_thread_for_operators_too_short_to_share():
    return threads(1, cores=16, each_us=50)


@silent("too-few-threads")
def other_programs_use_the_processors():
    return threads(1, cores=16, load=14.0)


@silent("too-few-threads")
def one_thread_for_each_of_many_ranks():
    return threads(1, cores=16, distributedInfo={"backend": "gloo", "rank": 0, "world_size": 8})


@silent("too-few-threads")
def how_many_threads_is_unknown():
    story = threads(1, cores=16)
    del story.top["torchwhy_processor_time"]["threads"]
    return story


@silent("too-few-threads")
def several_threads_of_the_program_compute():
    """A server answers with one thread of PyTorch's for each of its own."""
    story = threads(1, cores=16)
    for own in (21, 22, 23):
        for at in range(0, 3000, 1000):
            story.op("aten::addmm", at + 10, 798, tid=own, Input_Dims=[[32], [64, 32], [32, 32], [], []])
    return story


def cast_before_linear(dims, *, inside=False, types=("float", "c10::BFloat16"), steps=4, number=None):
    """In every step a tensor is cast and a linear layer called: (out, in) is the weight's shape."""
    story = Story(gpu=None)
    args = {} if number is None else {"Sequence number": number}
    for i, at in enumerate(story.steps(steps, 1000)):
        taken = {"Input_Dims": [dims, [], [], [], []], "Input_type": [types[0], "Scalar", "", "", ""]}
        if inside:
            story.op("aten::linear", at + 5, 900, Input_Dims=[[16, 300], [200, 300], [200]], Input_type=[types[1]] * 3)
        numbered = {name: value + i for name, value in args.items()}
        story.op("aten::to", at + 10, 300, **taken, **numbered)
        story.op("aten::_to_copy", at + 12, 290, **taken, **numbered)
        if not inside:
            layer = {"Input_Dims": [[16, 300], [200, 300], [200]], "Input_type": [types[1]] * 3}
            story.op("aten::linear", at + 320, 400, **layer)
        if number is not None:
            story.op(NODE + "ToCopyBackward0", at + 800, 100, **numbered, **{"Fwd thread id": 1})
    return story


@fires("repeated-cast")
def a_weight_is_cast_in_every_step():
    return cast_before_linear([200, 300])


@silent("repeated-cast")
def activations_are_cast_in_every_step():
    return cast_before_linear([16, 300])


@silent("repeated-cast")
def autocast_casts_a_weight_inside_its_operator():
    return cast_before_linear([200, 300], inside=True)


@silent("repeated-cast")
def a_weight_stays_in_its_type():
    return cast_before_linear([200, 300], types=("float", "float"))


@silent("repeated-cast")
def a_weight_is_cast_in_two_steps():
    return cast_before_linear([200, 300], steps=2)


@silent("repeated-cast")
def a_weight_that_is_trained_is_cast():
    return cast_before_linear([200, 300], number=7)


def cast_without_steps(count):
    story = cast_before_linear([200, 300], steps=count)
    story.events = [event for event in story.events if not event["name"].startswith("ProfilerStep")]
    return story


@fires("repeated-cast")
def a_weight_is_cast_thirty_times_in_a_trace_without_steps():
    return cast_without_steps(30)


@silent("repeated-cast")
def four_layers_of_one_size_in_a_trace_without_steps():
    return cast_without_steps(4)


def generation(lengths):
    story = Story(gpu=None)
    for number, at in enumerate(story.steps(len(lengths), 1000)):
        length = lengths[number]
        story.op("aten::embedding", at + 10, 50, Input_Dims=[[500, 32], [4, length], [], [], []])
        story.op("aten::linear", at + 100, 800, Input_Dims=[[4, length, 32], [32, 32], [32]])
    return story


@fires("growing-work")
def the_whole_prefix_is_computed_for_each_word():
    return generation([70, 71, 72, 73])


@silent("growing-work")
def one_position_is_computed_for_each_word():
    return generation([1, 1, 1, 1])


@silent("growing-work")
def texts_of_several_lengths():
    return generation([70, 75, 76, 90])


@fires("growing-work")
def scores_of_all_batches_are_sorted_after_each():
    story = Story(gpu=None)
    for number, at in enumerate(story.steps(6, 1000)):
        story.op("aten::argsort", at + 100, 800, Input_Dims=[[4096 * (number + 1)], [], []])
    return story


@fires("cpu-hotspot")
def all_rows_are_shuffled_in_every_step():
    story = Story(gpu=None)
    for at in story.steps(4, 4000):
        story.op("aten::randperm", at + 10, 3000, Input_Dims=[[], [], [], [], []])
        story.op("aten::mm", at + 3100, 300, Input_Dims=[[8, 8], [8, 8]])
    return story


def products(kind, each_us, size=512):
    story = Story(gpu=None)
    for at in story.steps(3, 60_000):
        shapes = [[size, size], [size, size]]
        story.op("aten::mm", at + 100, each_us, Input_Dims=shapes, Input_type=[kind, kind])
    return story


@fires("slow-half-precision")
def half_precision_in_plain_loops():
    return products("c10::Half", 50_000)  # 268 million operations: 5.4 GFLOP/s


@silent("slow-half-precision")
def half_precision_by_instructions():
    return products("c10::BFloat16", 5000)  # 54 GFLOP/s


@silent("slow-half-precision")
def single_precision_is_slow():
    return products("float", 50_000)


@fires("slow-half-precision")
def a_convolution_in_plain_loops():
    story = Story(gpu=None)
    shapes, types = [[8, 32, 16, 16], [64, 32, 3, 3], [64]], ["c10::Half"] * 3
    how = ["", "", "", "[1, 1]", "[1, 1]", "[1, 1]", "1"]
    for at in story.steps(3, 60_000):
        story.op("aten::conv2d", at + 10, 20_010, Input_Dims=shapes, Input_type=types, Concrete_Inputs=how)
        story.op("aten::_slow_conv2d_forward", at + 15, 20_000, Input_Dims=shapes, Input_type=types)
    return story


def checks(per_step=8, us=20, test="aten::isnan", read="aten::is_nonzero", apart=()):
    """Steps of 1 ms with assertions on values; `apart`: operators between the test and the answer."""
    story = Story(gpu=None)
    for at in story.steps(4, 1000):
        for k in range(per_step):
            start = at + 10 + 100 * k
            for i, name in enumerate([test, *apart, "aten::any", read]):
                story.op(name, start + (us + 1) * i, us)
        story.op("aten::mm", at + 900, 90)
    return story


@fires("value-checks")
@silent("computed-again")
def every_activation_is_searched_for_nan():
    return checks()


@silent("value-checks")
def only_the_loss_is_checked():
    return checks(per_step=1)


@silent("value-checks")
def checks_that_take_little():
    return checks(per_step=5, us=1)


@silent("value-checks")
def a_mask_that_is_computed_with():
    return checks(read="aten::mul")


@silent("value-checks")
def the_answer_is_of_something_else():
    return checks(apart=["aten::mul"])
