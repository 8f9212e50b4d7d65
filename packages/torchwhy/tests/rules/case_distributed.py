"""Communication between ranks, seen from one of them."""

from tests.rules.cases import fires, silent
from tests.traces import Story

ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"


def exchange(compute, comm, size=25_000_000, n=4, times=1, ranks=2, wrapper=None, **top):
    """Steps of 1 ms with a kernel that computes and collectives on another stream; each (at, us) within the step."""
    top.setdefault("distributedInfo", {"backend": "nccl", "rank": 0, "world_size": ranks})
    story = Story(**top)
    for i in range(n):
        at = 1000 * i
        story.step(i + 3, at, 990)
        if wrapper:
            story.note(wrapper, at + 5, 20)
        story.kernel("gemm", at + compute[0], compute[1], launch_at=at + 10)
        for k in range(times):
            launch = at + 30 + 5 * k
            args = {"Collective name": "allreduce", "In msg nelems": size // 4, "Out msg nelems": size // 4}
            args |= {"dtype": "Float", "Group size": ranks, "Process Group Name": "0", "Seq": i * times + k}
            story.op("record_param_comms", launch - 1, 5, **args)
            story.kernel(ALL_REDUCE, at + comm[0] + comm[1] * k, comm[1], launch_at=launch, stream=20, **args)
    return story


@fires("exposed-comm")
def nothing_beside_the_exchange():
    return exchange((50, 400), (500, 300))


def training(story):
    """With an optimizer at the end of each step."""
    for i in range(4):
        story.note("Optimizer.step#SGD.step", 1000 * i + 970, 5)
    return story


@fires("exposed-comm")
def under_ddp():
    return exchange((50, 400), (500, 300), wrapper="DistributedDataParallel.forward")


@silent("exposed-comm")
def much_but_hidden():
    return exchange((50, 900), (500, 300))


@silent("exposed-comm")
def little():
    return exchange((50, 900), (955, 20))


@fires("small-collectives")
@silent("exposed-comm")
def a_hundred_small_ones():
    """One exchange, one finding."""
    return training(exchange((50, 200), (300, 6), size=40_000, times=100))


@silent("small-collectives")
def a_hundred_small_ones_of_an_inference():
    """Tensor parallelism needs each all-reduce before the next operator."""
    return exchange((50, 200), (300, 6), size=40_000, times=100)


@silent("small-collectives")
def a_hundred_large_ones():
    return training(exchange((50, 200), (300, 6), size=40_000_000, times=100))


@silent("small-collectives")
def small_ones_beside_the_work():
    return training(exchange((50, 940), (300, 6), size=40_000, times=100))


def replicas(name, devices=2):
    story = Story()
    for at in story.steps(4, 990, every=1000):
        story.note(name, at + 10, 600)
        for device in range(devices):
            story.kernel("gemm", at + 100 + 200 * device, 200, launch_at=at + 50, device=device)
    return story


@fires("dataparallel")
def one_process_for_two_devices():
    return replicas("DataParallel.forward")


@silent("dataparallel")
def one_process_each():
    return replicas("DistributedDataParallel.forward")


@silent("dataparallel")
def wrapped_but_alone():
    return replicas("DataParallel.forward", devices=1)


def through_the_host(kind, wait, **top):
    story = Story(distributedInfo={"backend": kind, "rank": 0, "world_size": 2}, **top)
    for at in story.steps(4, 990, every=1000):
        story.kernel("gemm", at + 20, 980 - wait, launch_at=at + 10)
        story.note("gloo:all_reduce", at + 990 - wait, wait - 20, tid=200)
    return story


@fires("backend")
def gloo_between_gpus():
    return through_the_host("gloo", 400)


@silent("backend")
def gloo_beside_nccl():
    return through_the_host("cpu:gloo,cuda:nccl", 400)


@silent("backend")
def gloo_without_gpus():
    return through_the_host("gloo", 400, gpu=None, deviceProperties=[])


def searching(name, us=5):
    story = Story(gpu=None)
    for at in story.steps(4, 990, every=1000):
        story.note("DistributedDataParallel.forward", at + 10, 400)
        story.op(name, at + 20, us)
    return story


@fires("find-unused")
def a_search_per_step():
    return searching("torch.distributed.ddp.reducer::search_unused_parameters", 100)


@silent("find-unused")
def other_work_of_the_reducer():
    return searching("torch.distributed.ddp.reducer::copy_bucket_to_grad", 100)


def on_processors(*, computing, exchanging):
    """Steps of 1 ms on two threads: operators, and Gloo's all-reduce (start, end)."""
    story = Story(gpu=None, distributedInfo={"backend": "gloo", "rank": 0, "world_size": 2})
    for at in story.steps(4, 990, every=1000):
        story.op("aten::mm", at + computing[0], computing[1] - computing[0])
        story.op("c10d::allreduce_", at + exchanging[0], 20)
        story.note("gloo:all_reduce", at + exchanging[0], exchanging[1] - exchanging[0], tid=200)
    return story


@fires("cpu-exposed-comm")
def gloo_after_the_work():
    return on_processors(computing=(10, 400), exchanging=(410, 980))


@silent("cpu-exposed-comm")
def gloo_beside_the_work():
    return on_processors(computing=(10, 980), exchanging=(410, 980))


@silent("exposed-comm")
def what_runs_beside_the_exchange_was_not_recorded():
    """A replayed graph without its nodes: that nothing is computed isn't known."""
    story = exchange((50, 10), (500, 300))
    for i in range(4):
        story.call("cudaGraphLaunch", 1000 * i + 60, 20)
    return story


@fires("cpu-exposed-comm")
def gloo_within_a_backward_node():
    """The node that starts the exchange doesn't compute while it waits for it."""
    story = Story(gpu=None, distributedInfo={"backend": "gloo", "rank": 0, "world_size": 2})
    for at in story.steps(4, 990, every=1000):
        story.op("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", at + 400, 580)
        story.op("c10d::allreduce_", at + 410, 560)
        story.note("gloo:all_reduce", at + 415, 550, tid=200)
    return story


@silent("cpu-exposed-comm")
def what_a_device_library_announces_is_its_launch():
    story = Story(gpu=None, distributedInfo={"backend": "nccl", "rank": 0, "world_size": 2})
    for at in story.steps(4, 990, every=1000):
        story.note("nccl:all_reduce", at + 400, 500)
    return story


@silent("exposed-comm")
def the_exchange_of_the_step_before():
    """One recorded step begins while the last all-reduce of the step before it still runs."""
    story = Story(rank=0)
    story.step(3, 0, 990)
    story.kernel(ALL_REDUCE, 10, 400, stream=20)
    story.kernel("gemm", 420, 400, launch_at=20)
    story.kernel(ALL_REDUCE, 600, 200, launch_at=30, stream=20)
    story.call("cudaDeviceSynchronize", 40, 900)
    return story


def many_labels(name, each, times, gap):
    story = Story(gpu=None, distributedInfo={"backend": name.partition(":")[0], "rank": 0, "world_size": 2})
    for at in story.steps(4, 9900, every=10_000):
        story.op("aten::mm", at + 10, 400)
        for k in range(times):
            story.note(name, at + 500 + gap * k, each, tid=200)
    return story


@fires("host-small-collectives")
@silent("cpu-exposed-comm")
def hundreds_of_reductions_through_gloo():
    return many_labels("gloo:all_reduce", 30, 200, 40)


@fires("host-small-collectives")
def hundreds_of_reductions_whose_kernels_are_not_in_the_file():
    return many_labels("nccl:all_reduce", 30, 200, 40)


@silent("host-small-collectives")
def a_few_reductions_through_gloo():
    return many_labels("gloo:all_reduce", 300, 20, 400)
