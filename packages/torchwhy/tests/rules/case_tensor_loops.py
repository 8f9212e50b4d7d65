"""Loops over the rows and elements of a tensor, texts made of tensors, graphs that grow."""

from tests.rules.cases import fires, silent
from tests.traces import Story, samples


def over_rows(rows, per_round=("aten::mul", "aten::mean"), us=8):
    """Steps that take all rows of a tensor by one call and go over them."""
    story = Story(gpu=None)
    for at in story.steps(3, 20_000):
        story.op("aten::unbind", at + 10, 2 * rows + 2, Input_Dims=[[rows, 4], []])
        for k in range(rows):
            story.op("aten::select", at + 11 + 2 * k, 1, Input_Dims=[[rows, 4], [], []])
        at += 2 * rows + 20
        for k in range(rows):
            for j, name in enumerate(per_round):
                story.op(name, at + (us + 4) * (len(per_round) * k + j), us)
        story.op("aten::stack", at + (us + 4) * len(per_round) * rows + 10, 50)
    return story


@fires("tensor-for-loop")
@silent("dispatch-flood", "python-bound", "item-per-step")
def for_row_in_batch():
    return over_rows(256)


@fires("tensor-for-loop")
def rows_that_python_goes_over():
    return samples(over_rows(256), [["train.py(9): step |for row in batch:"]] * 60, every=1000)


@silent("tensor-for-loop")
def rows_that_another_library_draws():
    frames = ["matplotlib/image.py(800): draw", "train.py(9): step |axis.imshow(row)"]
    return samples(over_rows(256), [frames] * 60, every=1000)


@fires("tensor-for-loop")
def rounds_that_differ():
    story = over_rows(256)
    extra = [event for event in story.events if event["name"] == "aten::mean"][::3]
    for event in extra:
        event["name"] = "aten::flip"
    return story


@silent("tensor-for-loop")
def three_parts_of_a_tensor():
    return over_rows(3)


@silent("tensor-for-loop")
def rows_that_are_joined_again():
    return over_rows(256, per_round=())


def over_images(masked, of_slice=True):
    """Steps that go over the images of a batch; a mask chooses elements of each, or of the whole batch."""
    story = Story(gpu=None)
    for at in story.steps(3, 10_000):
        for k in range(64):
            story.op("aten::select", at + 100 * k, 5, Input_Dims=[[64, 300, 4], [], []])
            story.op("aten::index", at + 100 * k + 10, 40, Input_Dims=[[300, 4] if of_slice else [64, 300, 4], [[300]]])
            if masked:
                story.op("aten::nonzero", at + 100 * k + 12, 10, Input_Dims=[[300]])
    return story


@silent("tensor-for-loop")
def each_image_keeps_its_own_number_of_boxes():
    return over_images(masked=True)


@fires("tensor-for-loop")
def each_image_keeps_as_many_boxes():
    return over_images(masked=False)


@fires("tensor-for-loop")
def a_mask_of_the_whole_batch_for_each_image():
    return over_images(masked=True, of_slice=False)


def over_elements(us=2):
    story = Story(gpu=None)
    for at in story.steps(3, 10_000):
        for k in range(500):
            story.op("aten::select", at + 12 * k, us, Input_Dims=[[500], [], []])
            story.op("aten::item", at + 12 * k + us + 2, us)
    return story


@fires("item-per-step")
@silent("tensor-for-loop", "dispatch-flood")
def a_number_after_the_other():
    return over_elements()


@silent("item-per-step")
def an_operator_reads_numbers_itself():
    story = Story(gpu=None)
    for at in story.steps(3, 10_000):
        story.op("aten::unique_dim", at + 10, 9000)
        for k in range(500):
            story.op("aten::item", at + 20 + 12 * k, 4)
    return story


def texts(formats=True, reads=100):
    """Steps that turn a tensor into text; or the same operators without those it begins with."""
    story = Story(gpu=None)
    for at in story.steps(3, 10_000):
        story.op("aten::linear", at + 10, 1000)
        names = ["isfinite", "ne", "__and__", "masked_select"] if formats else ["isfinite", "sum"]
        names += ["abs", "min", "max", "unbind", "ceil", "ne", "is_nonzero", *["detach", "item"] * reads]
        for k, name in enumerate(names):
            story.op(f"aten::{name}", at + 1100 + 15 * k, 10)
        story.op("aten::linear", at + 9000, 900)
    return story


@fires("tensors-to-text")
@silent("python-bound", "tensor-for-loop", "item-per-step", "dispatch-flood")
def a_tensor_is_logged_in_every_step():
    return texts()


@fires("tensors-to-text")
def as_frames_tell():
    story = Story(gpu=None)
    for at in story.steps(3, 1000):
        story.frame("train.py(12): log", at + 100, 500)
        story.frame("torch/_tensor_str.py(706): _str", at + 110, 480)
        story.op("aten::abs", at + 200, 20)
    return story


@silent("tensors-to-text")
def the_finite_numbers_are_picked_out():
    return texts(reads=1)


@silent("tensors-to-text")
def numbers_are_read_alone():
    return texts(formats=False)


def training(nodes, calls=(20, 20, 20, 20), first=0, inside=(0, 0, 0, 0)):
    story = Story(gpu=None)
    for i, (back, forward) in enumerate(zip(nodes, calls, strict=True)):
        at = 10_000 * i
        story.step(first + i, at, 10_000)
        for k in range(forward):
            story.op("aten::linear", at + 50 * k, 40)
        if inside[i]:
            story.op("aten::gru", at + 1000, 1900)
        for k in range(inside[i]):
            story.op("aten::mm", at + 1010 + 10 * k, 8)
        for k in range(back):
            story.op("autograd::engine::evaluate_function: AddmmBackward0", at + 3000 + 20 * k, 18)
    return story


@fires("growing-graph")
def the_hidden_state_keeps_its_graph():
    return training((40, 80, 120, 160))


@silent("growing-graph")
def the_same_backward_in_every_step():
    return training((40, 40, 41, 40))


@silent("growing-graph")
def sequences_become_longer():
    return training((40, 80, 120, 160), calls=(20, 40, 60, 80))


@silent("growing-graph")
def a_recurrent_layer_goes_through_longer_sequences():
    return training((40, 80, 120, 160), inside=(40, 80, 120, 160))


@silent("growing-graph")
def two_steps():
    story = training((40, 80, 0, 0), calls=(20, 20, 0, 0))
    story.events = [event for event in story.events if event["ts"] < 20_000]
    return story
