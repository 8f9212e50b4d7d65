"""Work that a program needn't do: results left unread, repeated passes, loops over modules, small batches."""

from tests.rules.cases import fires, silent
from tests.traces import Story

NODE = "autograd::engine::evaluate_function: "
ACCUMULATE = NODE + "torch::autograd::AccumulateGrad"


def head(read, then="aten::argmax", part=(16, 100)):
    """A product of which a slice is read, and what `read` adds."""
    story = Story(gpu=None)
    for at in story.steps(3, 1000):
        story.op("aten::linear", at + 10, 600, Input_Dims=[[32, 16, 8], [100, 8], [100]])
        story.op("aten::select", at + 620, 5, Input_Dims=[[32, 16, 100], [], []])
        story.op(then, at + 630, 20, Input_Dims=[list(part), [], []])
        if read:
            story.op("aten::mean", at + 660, 20, Input_Dims=[[32, 16, 100], []])
    return story


@fires("unread-result")
def the_last_position_is_read():
    return head(read=False)


@silent("unread-result")
def a_mean_of_all_positions_as_well():
    return head(read=True)


def normalised(read, *given):
    """A product, a softmax along its classes, and what is read of that."""
    story = Story(gpu=None)
    for at in story.steps(3, 1000):
        story.op("aten::linear", at + 10, 600, Input_Dims=[[32, 16, 8], [100, 8], [100]])
        values = {"Concrete_Inputs": ["", *given, ""]} if given else {}
        story.op("aten::log_softmax", at + 620, 50, Input_Dims=[[32, 16, 100], [], []], **values)
        story.op("aten::select", at + 680, 5, Input_Dims=[[32, 16, 100], [], []])
        story.op("aten::neg", at + 690, 20, Input_Dims=[read])
    return story


@silent("unread-result")
def one_class_of_a_softmax_over_all_classes():
    return normalised([32, 16], "-1")


@silent("unread-result")
def one_class_of_a_softmax_of_unknown_dimension():
    return normalised([32, 16])


@fires("unread-result")
def the_softmax_of_one_position():
    return normalised([32, 100], "-1")


@silent("unread-result")
def one_position_of_a_softmax_over_positions():
    return normalised([32, 100], "1")


@silent("unread-result")
def every_position_is_taken_in_turn():
    story = Story(gpu=None)
    for at in story.steps(3, 1000):
        story.op("aten::linear", at + 10, 600, Input_Dims=[[8, 16, 8], [100, 8], [100]])
        for k in range(8):
            story.op("aten::select", at + 620 + 20 * k, 5, Input_Dims=[[8, 16, 100], [], []])
            story.op("aten::argmax", at + 630 + 20 * k, 5, Input_Dims=[[16, 100], [], []])
    return story


def ranked(kept):
    story = Story(gpu=None)
    for at in story.steps(3, 1000):
        story.op("aten::argsort", at + 10, 800, Input_Dims=[[16, 1000], [], []])
        story.op("aten::slice", at + 820, 5, Input_Dims=[[16, 1000], [], [], [], []])
        story.op("aten::gather", at + 830, 10, Input_Dims=[[16, kept], [], [16, 1], []])
    return story


@fires("unread-result")
def ten_of_a_thousand_are_read():
    return ranked(10)


@silent("unread-result")
def most_of_the_order_is_read():
    return ranked(900)


def heads(count, size=8, joins=None):
    """Products of one input, one after another, and attention of each, joined at the end."""
    story = Story(gpu=None)
    for at in story.steps(3, 4000):
        for k in range(count):
            for j in range(3):
                story.op("aten::linear", at + 100 * k + 20 * j, 15, Input_Dims=[[4, 32, 128], [size, 128], []])
            story.op("aten::scaled_dot_product_attention", at + 100 * k + 60, 30, Input_Dims=[[4, 32, size]] * 3)
        story.op("aten::cat", at + 100 * count, 20, Input_Dims=[[[4, 32, size]] * (joins or count), []])
    return story


@fires("one-by-one")
def one_head_after_the_other():
    return heads(16)


@silent("one-by-one")
def two_branches():
    return heads(2)


@silent("one-by-one")
def more_is_joined_than_was_computed():
    return heads(16, joins=17)


@silent("one-by-one")
def a_round_needs_the_state_of_the_one_before():
    story = Story(gpu=None)
    for at in story.steps(3, 1000):
        for k in range(16):
            story.op("aten::linear", at + 40 * k, 15, Input_Dims=[[4, 32], [32, 32], [32]])
            story.op("aten::tanh", at + 40 * k + 20, 10, Input_Dims=[[4, 32]])
        story.op("aten::stack", at + 700, 20, Input_Dims=[[[4, 32]] * 16, []])
    return story


def convolution(taps, channels=1):
    story = Story(gpu=None)
    for at in story.steps(3, 1000):
        story.op("aten::conv1d", at + 10, 800, Input_Dims=[[2, channels, 12000], [channels, channels, taps], []])
        story.op("aten::relu", at + 820, 20, Input_Dims=[[2, channels, 12000 - taps + 1]])
    return story


def chosen_rows(count, kept, operators=("mul", "add", "clamp"), between=None):
    story = Story(gpu=None)
    for at in story.steps(3, 1000):
        for i, name in enumerate(operators):
            story.op(f"aten::{name}", at + 10 + 160 * i, 150, Input_Dims=[[count, 3, 32], [], []])
        if between:
            story.op(f"aten::{between}", at + 500, 150, Input_Dims=[[count, 3, 32], []])
        story.op("aten::index", at + 700, 50, Input_Dims=[[count, 3, 32], []])
        story.op("aten::flatten", at + 760, 10, Input_Dims=[[kept, 3, 32], [], []])
        story.op("aten::linear", at + 780, 200, Input_Dims=[[kept, 96], [10, 96], [10]])
    return story


@fires("rows-left-out")
def the_whole_set_is_augmented_for_a_batch():
    return chosen_rows(1500, 64)


@fires("rows-left-out")
def noise_for_the_whole_set():
    return chosen_rows(1500, 64, ("randn_like", "mul", "add"))


@silent("rows-left-out")
def most_rows_are_read():
    return chosen_rows(100, 64)


@silent("rows-left-out")
def other_rows_are_needed():
    """A softmax over the rows needs all of them."""
    return chosen_rows(1500, 64, between="softmax")


def transforms(length, concrete=True, kind="r2c"):
    story = Story(gpu=None)
    for at in story.steps(3, 1000):
        bins = length // 2 + 1 if kind == "c2r" else length
        given = {"Concrete_Inputs": ["", "[2]", "0", str(length)]} if concrete else {}
        story.op(f"aten::_fft_{kind}", at + 10, 300, Input_Dims=[[8, 2, bins], [], [], []], **given)
        story.op("aten::mul", at + 400, 300, Input_Dims=[[8, 2, bins], [8, 2, bins]])
    return story


@fires("transform-length")
def a_prime_length():
    return transforms(32_749)


@fires("transform-length")
def a_large_prime_factor_back_to_samples():
    return transforms(1009 * 16, kind="c2r")


@fires("transform-length")
def a_prime_length_without_recorded_values():
    return transforms(4093, concrete=False, kind="c2c")


@silent("transform-length")
def lengths_of_small_factors():
    return transforms(44_100)


@silent("transform-length")
def a_length_that_was_not_recorded():
    return transforms(32_749, concrete=False, kind="c2r")


@fires("long-convolution")
def a_reverb_of_4000_samples():
    return convolution(4000)


@silent("long-convolution")
def a_kernel_of_five():
    return convolution(5, channels=64)


@silent("long-convolution")
def many_outputs_of_a_strided_filter_bank():
    story = Story(gpu=None)
    for at in story.steps(3, 1000):
        story.op("aten::conv1d", at + 10, 800, Input_Dims=[[2, 1, 12000], [402, 1, 400], []])
        story.op("aten::abs", at + 820, 20, Input_Dims=[[2, 402, 73]])
    return story


def pairs(first, a, b, whole, between=(), result=(512, 512)):
    story = Story(gpu=None)
    for at in story.steps(3, 1000):
        story.op(first, at + 10, 400, Input_Dims=[list(a), list(b), []])
        for k, name in enumerate(between):
            story.op(name, at + 420 + 100 * k, 90, Input_Dims=[list(whole), []])
        story.op("aten::sum", at + 800, 50, Input_Dims=[list(whole), [], []])
        story.op("aten::argmin", at + 860, 10, Input_Dims=[list(result)])
    return story


ONE, OTHER, ALL = (512, 1, 32), (1, 512, 32), (512, 512, 32)


@fires("pairs-written-out")
def distances_by_broadcasting():
    return pairs("aten::sub", ONE, OTHER, ALL, ["aten::pow"])


@fires("pairs-written-out")
def a_product_written_out():
    return pairs("aten::mul", ONE, OTHER, ALL)


@silent("pairs-written-out")
def a_function_of_the_products():
    return pairs("aten::mul", ONE, OTHER, ALL, ["aten::sigmoid"])


@silent("pairs-written-out")
def differences_of_numbers():
    return pairs("aten::sub", (512, 1), (1, 512), (512, 512), ["aten::abs"], result=(512,))


def backward(passes, penalty=False, accumulates=True):
    """Shared layers, and so many backward passes through them."""
    story = Story(gpu=None)
    for at in story.steps(3, 1000):
        first = 10 + at // 100
        for k in range(4):
            story.op("aten::linear", at + 10 + 20 * k, 15, Sequence_number=first + k)
        for i in range(passes):
            for k in range(4):
                begin = at + 100 + 200 * i + 40 * k
                story.op(NODE + "AddmmBackward0", begin, 20, Sequence_number=first + 3 - k, Fwd_thread_id=1)
                story.op("aten::mm", begin + 5, 10, **({"Sequence_number": 900} if penalty else {}))
                if accumulates:
                    story.op(ACCUMULATE, begin + 22, 10)
    return story


@fires("repeated-backward")
def a_pass_for_each_of_four_losses():
    return backward(4)


@silent("repeated-backward")
def one_pass():
    return backward(1)


@silent("repeated-backward")
def a_penalty_on_gradients():
    return backward(2, penalty=True)


@silent("repeated-backward")
def the_rows_of_a_jacobian():
    return backward(4, accumulates=False)


def frozen(trained):
    """Gradients of a head and of three layers before it; the optimizer reads those of the head, and of `trained`."""
    story = Story(gpu=None)
    for at in story.steps(4, 1000):
        for k, shape in enumerate(([5, 48], [48, 24], [24, 12], [12, 3])):
            story.op(NODE + "AddmmBackward0", at + 100 + 150 * k, 120)
            story.op(ACCUMULATE, at + 225 + 150 * k, 10, Input_Dims=[shape])
        story.note("Optimizer.step#SGD.step", at + 800, 100)
        for k, shape in enumerate(([5, 48], *trained)):
            story.op("aten::add_", at + 810 + 10 * k, 5, Input_Dims=[shape, shape, []])
    return story


@fires("unread-gradients")
def a_backbone_that_is_not_trained():
    return frozen(())


@silent("unread-gradients")
def all_is_trained():
    return frozen(([48, 24], [24, 12], [12, 3]))


@silent("unread-gradients")
def the_first_layer_is_trained():
    return frozen(([12, 3],))


def parametrized(accesses):
    story = Story(gpu=None)
    for at in story.steps(3, 1000):
        story.frame("train.py(3): forward", at + 5, 900)
        for k in range(accesses):
            story.frame("nn.Module: ParametrizationList_0", at + 10 + 80 * k, 50)
            story.op("aten::matrix_exp", at + 15 + 80 * k, 40)
    return story


@fires("parametrization-uncached")
def a_rotation_in_each_time_step():
    return parametrized(10)


@silent("parametrization-uncached")
def once_per_step():
    return parametrized(1)


def evaluated(rows, weight=(64, 32), often=1):
    """Training with 16 rows, and between two steps passes without a graph."""
    story = Story(gpu=None)
    for at in story.steps(5, 1000):
        story.op("aten::linear", at + 10, 50, Input_Dims=[[16, 32], [64, 32], [64]], Sequence_number=5 + at)
        story.op(NODE + "AddmmBackward0", at + 100, 80, Sequence_number=5 + at, Fwd_thread_id=1)
        story.note("Optimizer.step#SGD.step", at + 200, 50)
        if at // 1000 % often == 0:
            for k in range(4):
                story.op("aten::linear", at + 300 + 100 * k, 90, Input_Dims=[[rows, 32], list(weight), [64]])
    return story


@fires("validation-each-step")
def validation_after_every_step():
    return evaluated(16)


@silent("validation-each-step")
def a_teacher_of_another_size():
    return evaluated(64, weight=(128, 32))


@silent("validation-each-step")
def single_samples_as_an_agent_acts():
    return evaluated(1)


@silent("validation-each-step")
def validation_in_every_fourth_step():
    return evaluated(64, often=4)


def trained_on(rows, us=20):
    story = Story(gpu=None)
    for at in story.steps(4, 1000):
        train_on(story, at, rows, us)
    return story


def train_on(story, at, rows, us=20):
    """A step's passes: products from 10 us on, and an optimizer's step to 800 us."""
    for k in range(3):
        number = 10 + at + k
        story.op("aten::linear", at + 10 + 30 * k, us, Input_Dims=[[rows, 64], [64, 64], [64]], Sequence_number=number)
        story.op(NODE + "AddmmBackward0", at + 400 - 40 * k, 30, Sequence_number=number, Fwd_thread_id=1)
    story.note("Optimizer.step#SGD.step", at + 600, 200)


@fires("small-batches")
def one_sample_per_step():
    return trained_on(1)


@silent("small-batches")
def thirty_two_samples():
    return trained_on(32)


def optimizers(first_only, frames=False):
    """Adam's steps, with state that each of them makes, or the first one only."""
    story = Story(gpu=None)
    for at in story.steps(5, 1000):
        if frames:
            story.frame("torch/optim/adam.py(33): __init__", at + 2, 40)
        for k in range(3):
            story.op(ACCUMULATE, at + 100 + 20 * k, 10)
        story.note("Optimizer.step#Adam.step", at + 300, 400)
        if not at or not first_only:
            for k in range(6):
                story.op("aten::zeros_like", at + 310 + 20 * k, 15)
        story.op("aten::_foreach_lerp_", at + 500, 100)
    return story


@fires("optimizer-each-step")
def state_is_made_in_every_step():
    return optimizers(first_only=False)


@fires("optimizer-each-step")
def as_frames_of_init_show():
    return optimizers(first_only=True, frames=True)


@silent("optimizer-each-step")
def state_is_made_once():
    return optimizers(first_only=True)


def called_twice(graph=True, weight=(64, 32), rows=16, often=1, needed=False):
    """Two layers that are trained, and run again behind the optimizer: for a metric, with or without a graph."""
    story = Story(gpu=None)
    for at in story.steps(5, 1000):
        for k in range(2):
            shapes = [[16, 32], [64, 32], [64]]
            story.op("aten::linear", at + 10 + 60 * k, 50, Input_Dims=shapes, Sequence_number=10 * at + k)
            story.op(NODE + "AddmmBackward0", at + 300 - 60 * k, 50, Sequence_number=10 * at + k, Fwd_thread_id=1)
        story.note("Optimizer.step#SGD.step", at + 400, 50)
        if at // 1000 % often == 0:
            for k in range(3):
                number = {"Sequence_number": 10 * at + 5 + k} if graph else {}
                name, shapes = (
                    ("aten::linear", [[rows, 32], list(weight), [64]]) if k < 2 else ("aten::argmax", [[16, 64]])
                )
                story.op(name, at + 500 + 100 * k, 90 if k < 2 else 5, Input_Dims=shapes, **number)
                if needed and k < 2:
                    story.op(NODE + "AddmmBackward0", at + 900 - 60 * k, 50, Fwd_thread_id=1, **number)
    return story


@fires("second-forward-pass")
def a_metric_calls_the_model_again():
    return called_twice()


@silent("second-forward-pass")
def a_target_network_without_a_graph():
    return called_twice(graph=False)


@silent("second-forward-pass")
def a_teacher_with_other_weights():
    return called_twice(weight=(64, 48))


@silent("second-forward-pass")
def two_views_that_are_both_trained_on():
    return called_twice(needed=True)


@silent("second-forward-pass")
def a_metric_in_every_fourth_step():
    return called_twice(often=4)


def own_function(backward_us, node="SoftmaxBackward"):
    """A function of the program's own, and as a node of PyTorch's."""
    story = Story(gpu=None)
    for at in story.steps(4, 1000):
        story.op("Softmax", at + 10, 20, Input_Dims=[[8, 96, 96]], Sequence_number=at)
        story.op(NODE + node, at + 100, backward_us, Sequence_number=at, Fwd_thread_id=1)
        story.op("aten::mul", at + 110, backward_us - 20, Input_Dims=[[8, 96, 96, 96], [8, 96, 1, 96]])
    return story


@fires("slow-custom-backward")
def a_jacobian_is_written_out():
    return own_function(600)


@silent("slow-custom-backward")
def a_backward_of_twice_the_forward():
    return own_function(60)


@silent("slow-custom-backward")
def a_slow_backward_of_pytorchs_own():
    return own_function(600, "SoftmaxBackward0")


@silent("slow-custom-backward")
def compiled_code_runs_backward():
    return own_function(600, "CompiledFunctionBackward")


def acted(targets):
    """Training with 16 rows, whose targets come from passes without a graph of 16 rows each."""
    story = Story(gpu=None)
    for at in story.steps(5, 1000):
        for k in range(targets):
            story.op("aten::linear", at + 10 + 100 * k, 90, Input_Dims=[[16, 32], [64, 32], [64]])
        story.op("aten::linear", at + 10 + 100 * targets, 50, Input_Dims=[[16, 32], [64, 32], [64]], Sequence_number=at)
        story.op(NODE + "AddmmBackward0", at + 800, 80, Sequence_number=at, Fwd_thread_id=1)
        story.note("Optimizer.step#SGD.step", at + 900, 50)
    return story


@silent("validation-each-step")
def double_q_learning_asks_two_networks():
    return acted(3)


def decodes(end, masked=True, keys=2048):
    """Steps that write one position of a cache and attend to all of it."""
    story = Story(gpu=None)
    cache, mask = [8, 4, keys, 64], [[1, 1, 1, keys]] if masked else []
    for at in story.steps(4, 1000):
        for k in range(2):
            inputs = ["", "2", str(end - 1), str(end), "1"]
            story.op("aten::slice", at + 10 + 30 * k, 5, Input_Dims=[cache, [], [], [], []], Concrete_Inputs=inputs)
            story.op("aten::copy_", at + 20 + 30 * k, 5, Input_Dims=[[8, 4, 1, 64], [8, 4, 1, 64], []])
        dims = [[8, 4, 1, 64], cache, cache, *mask]
        story.op("aten::scaled_dot_product_attention", at + 100, 600, Input_Dims=dims)
    return story


@fires("unfilled-cache")
def attention_over_an_empty_cache():
    return decodes(20)


@silent("unfilled-cache")
def attention_over_a_full_cache():
    return decodes(1900)


@silent("unfilled-cache")
def a_ring_buffer_needs_no_mask():
    return decodes(20, masked=False)


def columns(tables, width=8):
    story = Story(gpu=None)
    for at in story.steps(4, 2000):
        for k in range(tables):
            table = [10 + k, width if k % 2 else 8]
            story.op("aten::select", at + 40 * k, 5, Input_Dims=[[256, tables], [], []])
            story.op("aten::embedding", at + 40 * k + 10, 20, Input_Dims=[table, [256], [], [], []])
        joined = [[[256, 8]] * tables, []] if tables < 30 else [[], []]
        story.op("aten::cat", at + 40 * tables, 20, Input_Dims=joined)
    return story


@fires("tables-one-by-one")
def a_table_for_each_column():
    return columns(26)


@fires("tables-one-by-one")
def a_list_too_long_to_be_recorded():
    return columns(40)


@silent("tables-one-by-one")
def three_columns():
    return columns(3)


@silent("tables-one-by-one")
def columns_of_several_widths():
    return columns(26, width=16)
