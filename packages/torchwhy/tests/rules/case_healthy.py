"""Programs with nothing to complain about."""

from tests.rules.cases import silent
from tests.traces import Story

COMPLAINTS = (
    "overhead-bound",
    "dispatch-flood",
    "launch-outliers",
    "explicit-sync",
    "dataloader-wait",
    "dataloader-single-process",
    "first-step-cold",
    "step-tail",
    "between-steps-gap",
    "gc-pause",
    "optimizer-for-loop",
    "zero-grad-memset",
    "tensor-for-loop",
    "allocator-thrash",
    "view-dispatch",
    "cpu-copies",
    "python-bound",
    "stalled-queue",
    "dropped-kernels",
    "clock-skew",
    "graph-replay-unrecorded",
    "one-giant-gap",
    "lazy-loading",
)


@silent(*COMPLAINTS, "item-per-step", "cpu-hotspot")
def training_on_a_gpu():
    """Workers load, the queue is deep, the optimizer is fused, the loss is read in every fifth step."""
    story, free = Story(), 100
    for i, at in enumerate(story.steps(10, 5000)):
        story.note("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", at + 5, 40)
        story.op("aten::to", at + 60, 30)
        story.copy("HtoD (Pinned -> Device)", free, 80, 2_000_000, launch_at=at + 70)
        free += 80
        for k in range(40):
            story.op("aten::linear", at + 100 + 30 * k, 26)
            story.kernel("sm80_xmma_gemm_bf16", free, 115, launch_at=at + 115 + 30 * k)
            free += 116
        story.note("Optimizer.zero_grad#AdamW.zero_grad", at + 1400, 40)
        story.note("Optimizer.step#AdamW.step", at + 1500, 200)
        story.op("aten::_fused_adamw_", at + 1510, 150)
        story.kernel("multi_tensor_apply_kernel FusedAdam", free, 200, launch_at=at + 1600)
        free += 202
        if i % 5 == 4:
            story.op("aten::item", at + 1800, free - at - 1790)
            story.call("cudaStreamSynchronize", at + 1810, free - at - 1805)
        free = max(free, 5000 * (i + 1) + 120)
    return story


@silent(*COMPLAINTS, "item-per-step")
def inference_on_a_cpu():
    story = Story(gpu=None)
    for at in story.steps(10, 2000):
        for k, (name, us) in enumerate([("convolution", 700), ("relu", 200), ("addmm", 600), ("softmax", 300)]):
            story.op(f"aten::{name}", at + 3 + 5 * k + (0, 700, 900, 1500)[k], us)
        story.op("aten::clone", at + 1850, 40)
        story.op("aten::copy_", at + 1852, 30)
    return story


@silent(*COMPLAINTS, "item-per-step", "closing-sync")
def replaying_a_graph():
    story = Story()
    for at in story.steps(20, 1000):
        launch = story.call("cudaGraphLaunch", at + 10, 15)
        for k in range(30):
            event = story.kernel(f"node {k}", at + 40 + 33 * k, 32)
            event["args"]["correlation"] = launch["args"]["correlation"]
    return story
