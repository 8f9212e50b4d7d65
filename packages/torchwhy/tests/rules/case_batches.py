"""Waiting for the next batch."""

from tests.rules.cases import fires, silent
from tests.traces import Story, samples

LOADER = "enumerate(DataLoader)#_{}DataLoaderIter.__next__"


def loop(wait_us, kind="MultiProcessing", gpu=True):
    """Four steps of 1 ms; the device is busy for 400 us of each, from 550 us on."""
    story = Story(gpu="NVIDIA A100-SXM4-80GB" if gpu else None)
    for i in range(4):
        at = 1000 * i
        story.step(i + 3, at, 1000)
        story.note(LOADER.format(kind), at + 10, wait_us)
        story.op("aten::mm", at + 500, 100)
        if gpu:
            story.kernel("ampere_sgemm_128x64_nn", at + 550, 400, launch_at=at + 520)
    return story


@fires("dataloader-wait")
def workers_are_too_slow():
    return loop(300)


@fires("dataloader-wait")
@silent("dataloader-single-process")
def no_workers_on_a_cpu():
    return loop(300, "SingleProcess", gpu=False)


@fires("dataloader-single-process")
@silent("dataloader-wait")
def no_workers_but_cheap_samples():
    return loop(20, "SingleProcess")


@silent("dataloader-wait")
def loading_while_the_device_works():
    """The wait is as long, but lies within a kernel's time."""
    story = Story()
    for i in range(4):
        at = 1000 * i
        story.step(i + 3, at, 1000)
        story.kernel("ampere_sgemm_128x64_nn", at + 20, 960, launch_at=at + 5)
        story.note(LOADER.format("MultiProcessing"), at + 300, 400)
    return story


@silent("dataloader-single-process")
def workers_keep_up():
    return loop(20)


def passes(start_us):
    """Passes of four steps over the data; workers take `start_us` to start, and the first batch waits for them."""
    story, at = Story(gpu=None), 0
    for number in range(12):
        story.step(number, at, 3000 + (start_us if number % 4 == 0 else 0))
        if number % 4 == 0:
            story.note("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", at + 5, 20)
            story.op("aten::empty", at + 40, 5)
            story.op("aten::randperm", at + start_us - 10, 5)
            at += start_us
        story.note("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", at + 50, 400)
        for k in range(20):
            story.op("aten::mm", at + 500 + 120 * k, 110)
        at += 3000
    return story


@fires("dataloader-wait")
@silent("between-steps-gap")
def workers_start_anew_for_each_pass():
    return passes(40_000)


@silent("dataloader-wait")
def workers_stay():
    story = passes(0)
    for event in story.events:
        if event["name"].endswith("__next__"):
            event["dur"] = 20
    return story


def in_own_process(orders=0, frame="train.py(20): main", us=300, below=()):
    """Four steps whose batches are made for `us` of 1000 us; `orders` of them draw an order, samples show a frame.

    `below`: frames that it calls.
    """
    story = loop(us, "SingleProcess", gpu=False)
    for i in range(orders):
        story.op("aten::randperm", 1000 * i + 20, 20)
    loader = ["torch/utils/data/dataloader.py(700): __next__", "train.py(20): main |for batch in loader:"]
    return samples(
        story,
        [[*below, frame, *loader] if k % 10 < us // 100 else ["train.py(22): main"] for k in range(40)],
        every=100,
    )


@fires("dataloader-wait")
def each_batch_has_a_new_iterator():
    return in_own_process(orders=4)


@fires("dataloader-wait")
def one_pass_draws_one_order():
    return in_own_process(orders=1)


@fires("dataloader-wait")
def the_collate_function_is_slow():
    return in_own_process(frame="torch/utils/data/_utils/fetch.py(55): fetch |return self.collate_fn(data)")


@fires("dataloader-wait")
def the_dataset_is_slow():
    return in_own_process(frame="torch/utils/data/_utils/fetch.py(52): fetch |data = [self.dataset[i] for i in index]")
