"""Optimizers, gradients and memory."""

from tests.rules.cases import fires, silent
from tests.traces import Story


def training(update="aten::add_", updates=60, kernel="elementwise", zeros=0, steps=4):
    story = Story()
    for at in story.steps(steps, 2000):
        story.note("Optimizer.zero_grad#Adam.zero_grad", at, 200)
        for k in range(zeros):
            story.op("aten::zero_", at + 5 + 10 * k, 8)
            story.kernel("fill", at + 10 + 10 * k, 2, launch_at=at + 7 + 10 * k)
        story.op("aten::mm", at + 250, 20)
        story.kernel("sgemm", at + 280, 600, launch_at=at + 255)
        story.note("Optimizer.step#Adam.step", at + 900, 1000)
        for k in range(updates):
            story.op(update, at + 905 + 15 * k, 12)
            story.kernel(kernel, at + 915 + 15 * k, 3, launch_at=at + 907 + 15 * k)
    return story


@fires("optimizer-for-loop")
@silent("zero-grad-memset", "dispatch-flood")
def sixty_updates():
    return training()


@silent("optimizer-for-loop")
def many_tensors_at_once():
    return training("aten::_foreach_addcdiv_", 40, "multi_tensor_apply_kernel")


@silent("optimizer-for-loop")
def few_parameters():
    return training(updates=8)


@fires("optimizer-for-loop")
def single_tensor_frames_on_a_cpu():
    story = Story(gpu=None)
    for at in story.steps(3, 1000):
        story.note("Optimizer.step#AdamW.step", at + 500, 450)
        story.frame("torch/optim/adamw.py(300): _single_tensor_adamw", at + 510, 430)
        for k in range(40):
            story.op("aten::mul_", at + 515 + 10 * k, 8)
    return story


@silent("optimizer-for-loop")
def one_that_has_no_other_implementation():
    story = single_tensor_frames_on_a_cpu()
    for event in story.events:
        event["name"] = event["name"].replace("AdamW", "LBFGS")
    return story


@fires("zero-grad-memset")
def gradients_are_zeroed():
    return training(zeros=10)


def averaging(names=("aten::mul", "aten::lerp_"), weights=30, gpu=None, steps=4, us=6, shape=(64, 64)):
    """A backward pass that gives gradients to weights, an optimizer, and operators on a pair of tensors for each."""
    story = Story(gpu=gpu)
    node = "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad"
    pair = {"Input Dims": str([list(shape), list(shape)])}
    for at in story.steps(steps, 4000):
        story.op("aten::mm", at + 5, 800, **pair)
        for k in range(weights):
            story.op(node, at + 810 + 10 * k, 8, tid=200)
            story.op("aten::detach", at + 812 + 10 * k, 3, tid=200, **{"Input Dims": str([list(shape)])})
        story.note("Optimizer.step#SGD.step", at + 1200, 60)
        story.op("aten::_fused_sgd_", at + 1205, 50)
        for k in range(weights):
            for j, name in enumerate(names):
                start = at + 1300 + (us + 4) * (len(names) * k + j)
                story.op(name, start, us, **pair)
                if gpu:
                    story.kernel("elementwise", start + 5, 3, launch_at=start + 2, launch_us=2)
    return story


@fires("weight-for-loop")
@silent("dispatch-flood", "optimizer-for-loop")
def a_moving_average_of_the_weights():
    return averaging()


@fires("weight-for-loop")
def a_moving_average_of_the_weights_on_a_gpu():
    return averaging(gpu="NVIDIA A100-SXM4-80GB")


@fires("weight-for-loop")
@silent("dispatch-flood")
def copies_of_many_weights():
    return averaging(names=("aten::copy_",), weights=120)


@silent("weight-for-loop")
def a_moving_average_in_one_call():
    return averaging(names=("aten::_foreach_lerp_",), weights=1)


@silent("weight-for-loop")
def a_moving_average_of_a_few_weights():
    return averaging(weights=6)


@silent("weight-for-loop")
def additions_of_other_shapes():
    story = averaging()
    for event in story.events:
        if event["name"] == "aten::lerp_":
            event["args"]["Input Dims"] = "[[8, 64], [8, 64]]"
    return story


def allocating(calls, steps=5):
    story = Story()
    for i, at in enumerate(story.steps(steps, 2000)):
        for name, us in calls if i else [("cudaMalloc", 300)]:
            story.call(name, at + 100, us)
        story.op("aten::mm", at + 600, 20)
        story.kernel("sgemm", at + 630, 1200, launch_at=at + 605)
    return story


@fires("allocator-thrash")
def empty_cache_in_every_step():
    return allocating([("cudaFree", 200), ("cudaMalloc", 150)])


@fires("allocator-thrash")
def shapes_that_grow():
    return allocating([("hipMalloc", 150)])


@silent("allocator-thrash")
def allocation_in_the_first_step():
    return allocating([])


def backward(check=True, gpu="NVIDIA A100-SXM4-80GB"):
    story = Story(gpu=gpu)
    for i in range(4):
        at = 2000 * i
        story.step(i, at, 2000)
        for k in range(5):
            begin = at + 300 * k
            story.op("autograd::engine::evaluate_function: MulBackward0", begin, 250)
            story.op("MulBackward0", begin + 5, 150)
            if check:
                story.op("aten::isnan", begin + 160, 10)
                story.op("aten::_is_any_true", begin + 180, 10)
    return story


@fires("anomaly-mode")
def gradients_are_searched_for_nan():
    return backward()


@fires("anomaly-mode")
def gradients_are_searched_for_nan_on_a_cpu():
    return backward(gpu=None)


@silent("anomaly-mode")
def the_program_itself_looks_for_nan():
    story = backward(check=False)
    for i in range(4):
        for k in range(5):
            story.op("aten::isnan", 2000 * i + 300 * k + 260, 10)
    return story


def in_groups(groups=24, each=1, update="aten::_fused_adamw_", steps=4, us=12):
    """Steps of 1 ms whose optimizer calls a fused operator for each group of `each` tensors."""
    story = Story(gpu=None)
    for at in story.steps(steps, 1000):
        story.op("aten::mm", at + 10, 300)
        story.note("Optimizer.step#AdamW.step", at + 400, 20 + (us + 4) * groups)
        for k in range(groups):
            shapes = [[[8, 8]] * each] * 4
            story.op(update, at + 410 + (us + 4) * k, us, Input_Dims=shapes)
    return story


@fires("parameter-groups")
@silent("optimizer-for-loop")
def a_group_for_each_parameter():
    return in_groups()


@fires("parameter-groups")
def foreach_operators_for_groups_of_one():
    return in_groups(update="aten::_foreach_addcdiv_")


@silent("parameter-groups")
def groups_of_many_parameters():
    return in_groups(each=12)


@silent("parameter-groups")
def few_groups():
    return in_groups(groups=8, us=40)


@silent("parameter-groups")
def groups_whose_update_takes_little():
    return in_groups(groups=20, us=0)
