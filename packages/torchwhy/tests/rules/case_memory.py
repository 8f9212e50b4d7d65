"""Memory: nearly full, growing, in pieces, kept for a backward pass that doesn't come."""

from tests.rules.cases import fires, silent
from tests.traces import Story

GIB = 2**30


def steps(per_step, start=10 * GIB, back=0, reserved=20 * GIB, count=6, device=0):
    """Each step allocates `per_step` more and releases `back` of it."""
    story, held = Story(gpu="NVIDIA A100-SXM4-80GB" if device >= 0 else None), start
    for at in story.steps(count, 100):
        story.op("aten::mm", at + 10, 20)
        if device >= 0:
            story.kernel("ampere_sgemm_128x64_nn", at + 20, 30, launch_at=at + 12)
        held += per_step
        story.memory(at + 15, per_step, held, reserved, device)
        held -= back
        story.memory(at + 60, -back, held, reserved, device)
    return story


@fires("memory-creep")
def a_list_of_losses():
    return steps(50_000_000)


@fires("memory-creep")
def a_list_on_the_host():
    return steps(2_000_000, device=-1)


def read_at_the_ends_of_steps(*growth, gpu=False, unread=range(0), steps_of=None):
    """What the process, or the GPU, holds more after each step; some are not read, or have these numbers."""
    story, held = Story(gpu=None), 300_000_000
    for at in story.steps(3, 100):
        story.op("aten::mm", at + 10, 20)
    rows = []
    for step, more in enumerate(growth, 1):
        held += more
        if step not in unread:
            step = steps_of(step) if steps_of else step
            rows.append([step, 300_000_000, held] if gpu else [step, held, 0])
    story.top["torchwhy_step_memory"] = rows
    return story


@fires("memory-creep")
def the_process_grows_with_each_step():
    """As where each loss is kept with its graph; the allocator gives some back at times."""
    return read_at_the_ends_of_steps(*(21_000_000 if i % 7 else -4_000_000 for i in range(40)))


@fires("memory-creep")
def tensors_on_the_gpu_grow_with_each_step():
    return read_at_the_ends_of_steps(*[3_000_000] * 20, gpu=True)


@fires("memory-creep")
def the_process_grows_while_steps_are_not_read():
    return read_at_the_ends_of_steps(*[17_000_000] * 60, unread=range(25, 57))


@silent("memory-creep")
def the_process_grows_once_while_steps_are_not_read():
    return read_at_the_ends_of_steps(*(500_000_000 if i == 40 else 2_000 for i in range(60)), unread=range(25, 57))


@silent("memory-creep")
def a_foreign_file_in_which_every_step_has_the_same_number():
    return read_at_the_ends_of_steps(*[17_000_000] * 40, steps_of=lambda step: 7)


@silent("memory-creep")
def the_process_grows_until_its_caches_are_full():
    return read_at_the_ends_of_steps(*[21_000_000] * 12, *[0] * 28)


@silent("memory-creep")
def the_process_grows_by_next_to_nothing_and_once_by_much():
    return read_at_the_ends_of_steps(*(140_000_000 if i == 25 else 3_000 for i in range(40)))


@silent("memory-creep")
def the_process_grows_once_in_a_while():
    return read_at_the_ends_of_steps(*(60_000_000 if i % 8 == 0 else 0 for i in range(40)))


@silent("memory-creep", "peak-memory", "fragmentation")
def what_a_step_takes_it_gives_back():
    return steps(50_000_000, back=50_000_000)


@silent("memory-creep")
def too_little_to_matter():
    return steps(512)


@fires("peak-memory")
def nearly_full():
    return steps(GIB, back=GIB, start=74 * GIB, reserved=76 * GIB)


@silent("peak-memory")
def three_quarters_full():
    return steps(GIB, back=GIB, start=60 * GIB, reserved=66 * GIB)


@fires("fragmentation")
def half_of_what_is_reserved_is_unused():
    return steps(GIB, back=GIB, start=30 * GIB, reserved=66 * GIB)


@silent("fragmentation")
def a_small_reserve():
    return steps(GIB, back=GIB, start=3 * GIB, reserved=10 * GIB)


def forward(numbers, backward=False):
    """Three steps of 20 operators; autograd's number grows with each where a graph is recorded."""
    story, number = Story(gpu=None), 100
    for at in story.steps(3, 900, every=1000):
        for j in range(20):
            extra = {"Sequence number": number} if numbers else {}
            story.op("aten::linear", at + 20 * j, 15, **extra)
            number += numbers == "growing"
        if backward:
            story.op("autograd::engine::evaluate_function: AddmmBackward0", at + 500, 50)
    return story


@fires("missed-no-grad")
def inference_records_a_graph():
    return forward("growing")


@silent("missed-no-grad")
def a_backward_pass_follows():
    return forward("growing", backward=True)


@silent("missed-no-grad")
def the_program_has_an_optimizer():
    story, part = forward("growing"), {"seconds": 1.0, "lines": []}
    run = {"seconds": 9.0, "steps": 0, "optimizer": True, "later_steps": 90, "start_up": part, "outside": part}
    story.top["torchwhy_run_times"] = run
    return story


@silent("missed-no-grad")
def recording_is_on_but_nothing_needs_it():
    return forward("constant")


@silent("missed-no-grad")
def under_inference_mode():
    return forward("")


def gradients(*inner, second=False):
    """Five nodes of the backward pass that call (name, number) one after another; `second` goes back through them."""
    story, node = Story(gpu=None), "autograd::engine::evaluate_function: MulBackward0"
    for step, at in enumerate(story.steps(3, 2000)):
        for k in range(5):
            first, now = 100 * step + k, at + 500 + 100 * k
            story.op("aten::mul", at + 10 + 20 * k, 10, Sequence_number=first)
            story.op(node, now, 90, Sequence_number=100 * step + 4 - k, Fwd_thread_id=1)
            for i, (name, number) in enumerate(inner):
                given = {"Sequence_number": first + number} if number else {}
                story.op(name, now + 2 + 20 * i, 18, **given)
            if second:
                story.op(node, at + 1200 + 100 * k, 90, Sequence_number=100 * step + 54 - k, Fwd_thread_id=1)
    return story


@fires("graph-of-gradients")
def gradients_record_a_graph():
    return gradients(("aten::mul", 50))


@silent("graph-of-gradients")
def gradients_record_nothing():
    return gradients(("aten::mul", 0))


@silent("graph-of-gradients")
def a_penalty_goes_back_through_them():
    return gradients(("aten::mul", 50), second=True)


@silent("graph-of-gradients")
def a_layer_is_computed_again_before_its_gradient():
    return gradients(("aten::linear", 50), ("aten::mul", 0))


@silent("graph-of-gradients")
def a_transform_calls_each_operator_within_itself():
    story = gradients(("aten::mul", 50))
    for event in [one for one in story.events if one["args"].get("Sequence number", 0) % 100 >= 50]:
        story.op("aten::mul", event["ts"] + 2, 14, Sequence_number=event["args"]["Sequence number"])
    return story
