"""Waits for the device."""

from tests.rules.cases import fires, silent
from tests.traces import Story


def loop(wait, refill_us=300, steps=6):
    """Steps of 1 ms: 700 us of device work, at whose end the host waits; then `refill_us` until there is more."""
    story = Story()
    for at in story.steps(steps, 1000):
        first = at + refill_us
        for k in range(7):
            story.op("aten::mm", at + refill_us - 90 + 12 * k, 10)
            story.kernel("sgemm", first + (1000 - refill_us) / 7 * k, (1000 - refill_us) / 7, first - 85 + 12 * k)
        wait(story, first + 20, at + 1000 - first - 15)
    return story


def item(story, at, us):
    story.op("aten::item", at, us)
    story.op("aten::_local_scalar_dense", at + 1, us - 2)
    story.copy("DtoH (Device -> Pageable)", at + us - 5, 1, 4, launch_at=at + 2, launch_us=5)
    story.call("cudaStreamSynchronize", at + 8, us - 12)


@fires("explicit-sync")
@silent("item-per-step")
def item_in_every_step():
    return loop(item)


@fires("explicit-sync")
@silent("item-per-step")
def a_call_of_synchronize_in_every_step():
    return loop(lambda story, at, us: story.call("cudaDeviceSynchronize", at, us))


@fires("explicit-sync")
def nonzero_in_every_step():
    def wait(story, at, us):
        story.op("aten::nonzero", at, us)
        story.call("cudaStreamSynchronize", at + 8, us - 12)

    return loop(wait)


@fires("explicit-sync")
def a_copy_that_blocks_on_amd():
    def wait(story, at, us):
        story.op("aten::to", at, us)
        story.op("aten::copy_", at + 2, us - 4)
        story.copy(
            "DtoH (Device -> Pageable)", at + us - 5, 1, 4, launch_at=at + 8, launch="hipMemcpyWithStream",
            launch_us=us - 12,
        )  # fmt: skip

    return loop(wait)


@silent("explicit-sync")
def a_long_wait_after_which_the_device_is_fed_at_once():
    """The host waits for most of the time, and nothing is lost by it."""
    return loop(item, refill_us=8)


@silent("explicit-sync")
def a_wait_too_short_to_explain_the_gap():
    return loop(lambda story, at, us: story.call("cudaDeviceSynchronize", at + us - 10, 10))


@fires("item-per-step")
def three_items_per_step():
    def wait(story, at, us):
        for k in range(3):
            item(story, at + us / 3 * k, us / 3 - 2)

    return loop(wait, refill_us=8)


@fires("item-per-step")
def a_loop_over_values_on_the_cpu():
    story = Story(gpu=None)
    for at in story.steps(3, 1000):
        for k in range(150):
            story.op("aten::item", at + 5 * k, 2)
    return story


@silent("item-per-step", "explicit-sync")
def items_of_tensors_on_the_cpu():
    def wait(story, at, us):
        for k in range(10):
            story.op("aten::item", at + 10 * k, 2)

    return loop(wait)
