"""Small programs as traces, and findings made by hand, for the report's tests; rules come and go, these stay."""

from __future__ import annotations

from tests.traces import Story
from torchwhy.finding import Evidence, Finding
from torchwhy.report.trace_report import describe
from torchwhy.rules.diagnose import Diagnosis

LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


def training(*, steps=4, load=10, work=400, gpu="NVIDIA A100-SXM4-80GB", **top):
    """Steps of 1 ms: a batch is loaded for `load` us, and from 550 us on the device computes for `work` us."""
    story = Story(gpu=gpu, **top)
    for i in range(steps):
        at = 1000 * i
        story.step(i + 3, at, 1000)
        story.note(LOADER, at + 10, load)
        story.op("aten::mm", at + 500, 40)
        for j in range(4):
            start = at + 550 + j * work // 4
            story.kernel("ampere_sgemm_128x64_nn", start, work // 4, launch_at=at + 528 + 3 * j)
    return story


def overhead():
    """Ten short kernels a step, each launched when the one before is long done."""
    story = Story()
    for at in story.steps(3, 1000):
        for j in range(10):
            story.op("aten::add", at + 95 * j + 5, 60)
            story.kernel("void at::native::add_kernel<float>(float*)", at + 95 * j + 60, 5, launch_at=at + 95 * j + 40)
    return story


def computing(**top):
    """The device has work all the time."""
    story = Story(**top)
    for i in range(3):
        at = 1000 * i
        story.step(i + 5, at, 1000)
        story.op("aten::mm", at + 5, 100)
        for j in range(5):
            story.kernel("ampere_sgemm_128x64_nn", at + 20 + 196 * j, 195, launch_at=at + 6 + j)
    return story


def distributed():
    """Half of the time only an all-reduce runs."""
    story = Story(rank=1)
    for at in story.steps(3, 1000):
        for j in range(4):
            story.kernel("ampere_sgemm_128x64_nn", at + 10 + 100 * j, 100, launch_at=at + 2 + j)
        story.kernel("ncclDevKernel_AllReduce_Sum_f32", at + 410, 580, launch_at=at + 8, stream=20)
    return story


def copying():
    """Half of the time only a copy runs."""
    story = Story()
    for at in story.steps(3, 1000):
        story.copy("HtoD (Pageable -> Device)", at + 10, 500, 10**6, launch_at=at + 2)
        for j in range(4):
            story.kernel("ampere_sgemm_128x64_nn", at + 510 + 100 * j, 100, launch_at=at + 500 + j)
    return story


def compiling():
    """A first call is compiled while being recorded, on a CPU."""
    story = Story(gpu=None)
    story.op("entire_frame_compile (dynamo_timed)", 0, 9000)
    story.op("backend_compile (dynamo_timed)", 100, 8000)
    story.op("aten::mm", 9100, 800)
    return story


def on_cpu(operator_us=90):
    """Training on a CPU; each step has a forward and a backward operator and the optimizer's."""
    story = Story(gpu=None)
    for at in story.steps(3, 1000):
        for j in range(3):
            story.op("aten::addmm", at + 10 + 100 * j, operator_us)
            story.op("autograd::engine::evaluate_function: AddmmBackward0", at + 320 + 100 * j, operator_us)
        story.note("Optimizer.step#SGD.step", at + 700, 250)
        story.op("aten::_foreach_add_", at + 710, operator_us)
    return story


def exchanging():
    """Ranks without GPUs: for more than half of the time a backward pass waits for Gloo."""
    story = Story(gpu=None, distributedInfo={"backend": "gloo", "rank": 0, "world_size": 2})
    for at in story.steps(3, 1000):
        story.op("aten::mm", at + 50, 300)
        story.note("gloo:all_reduce", at + 350, 600, tid=200)
    return story


def host_unrecorded():
    """Kernels for a fifth of the time, and nothing of what the host did."""
    story = Story()
    for i in range(20):
        story.kernel("gemm", 1000 * i, 200)
    return story


def one_gap():
    """Set-up of 50 ms before a little work."""
    story = Story()
    story.op("aten::empty", 0, 10)
    for j in range(20):
        story.kernel("gemm", 50_000 + 20 * j, 20, launch_at=49_979 + j)
    story.kernel("gemm", 20, 5, launch_at=12)
    return story


def nothing_from_the_gpu():
    """Launches without their kernels."""
    story = Story()
    for j in range(20):
        story.call("cudaLaunchKernel", 10 * j)
    return story


def unrecorded_graphs():
    """Replayed CUDA graphs of which nothing was recorded."""
    story = Story()
    for at in story.steps(3, 1000):
        story.call("cudaGraphLaunch", at + 10)
        story.kernel("gemm", at + 900, 50, launch_at=at + 800)
    return story


def no_events():
    """A sound file with nothing in it."""
    return Story()


PROGRAMS = {
    "input-bound": lambda: training(load=480),
    "overhead-bound": overhead,
    "compute-bound": computing,
    "communication-bound": distributed,
    "copy-bound": copying,
    "compile-bound": compiling,
    "on-cpu": on_cpu,
    "exchanging": exchanging,
    "host-unrecorded": host_unrecorded,
    "one-gap": one_gap,
    "nothing-from-the-gpu": nothing_from_the_gpu,
    "unrecorded-graphs": unrecorded_graphs,
    "no-events": no_events,
}


def waiting(trace, **changes):
    """A finding about waiting for data."""
    stack = ("torch/utils/data/dataloader.py(708): __next__", "train.py(34): main", "train.py(90): <module>")
    values = {
        "title": "48% of the time goes to waiting for the next batch while no device had work",
        "severity": "high",
        "confidence": "high",
        "time_us": trace.window.us * 0.48,
        "window": trace.window,
        "evidence": (Evidence(LOADER, 4, 1920.0, 10.0, "thread 100", stack, "longest 480 us"),),
        "cause": "The batches are made in the program's own process (num_workers=0), so the loop stands still.",
        "fix": "Give the DataLoader num_workers=4 or so and persistent_workers=True; then measure again.",
        "linked": True,
        "code": "B9",
        "slug": "dataloader-wait",
        "source": "hand",
    }
    return Finding(**{**values, **changes})


def hint(trace):
    """An informational finding."""
    return waiting(
        trace,
        title="The DataLoader has no workers",
        severity="info",
        confidence="medium",
        time_us=0.0,
        linked=False,
        code="B10",
        slug="dataloader-single-process",
    )


def report_on(story, *findings, muted=None, failed=None, ran=("B9", "B10"), name="run/trace.json.gz"):
    """The report on a story, with findings made by functions of the trace."""
    trace = story.trace(name)
    return describe(trace, Diagnosis(tuple(make(trace) for make in findings), muted or {}, failed or {}, tuple(ran)))
