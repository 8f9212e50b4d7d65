"""The verdict names what limits the program, with its numbers; or says why it can't."""

import pytest

from tests.analysis.programs import LOADER, PROGRAMS, computing, on_cpu, overhead, report_on, training, waiting
from tests.rules.case_launches import stands_still_once
from tests.traces import Story
from torchwhy import load
from torchwhy.analysis.critical_path import critical_parts
from torchwhy.analysis.names import VerdictKind
from torchwhy.report.trace_report import describe
from torchwhy.rules.diagnose import diagnose

EXPECTED = {
    "input-bound": ("input-bound", "for 48% of the 4 steps (1.92 ms of 4.00 ms)"),
    "overhead-bound": ("overhead-bound", "for 95% of the 3 steps (2.85 ms of 3.00 ms)"),
    "compute-bound": ("compute-bound", "it computes for 98% of the 3 steps"),
    "communication-bound": ("communication-bound", "for 58% of the 3 steps"),
    "copy-bound": ("copy-bound", "for 50% of the 3 steps"),
    "compile-bound": ("compile-bound", "for 91% of the recording (9.00 ms of 9.90 ms)"),
    "on-cpu": ("compute-bound", "operators run for 63% of the 3 steps"),
    "exchanging": ("communication-bound", "Exchanging data with other ranks is the limit: for 60% of the 3 steps"),
    "host-unrecorded": ("unknown", "Can't tell, because the host wasn't recorded: for 79%"),
    "one-gap": ("unknown", "Can't tell, because one stretch of 50.0 ms in which the host launches nothing"),
    "nothing-from-the-gpu": ("unknown", "nothing of the device's work was recorded, although it worked (20 launches)"),
    "unrecorded-graphs": ("unknown", "3 CUDA graphs were replayed, and the kernels in them were not recorded"),
    "no-events": ("unknown", "the file holds no events with a duration"),
}


def verdict(story, *findings):
    return report_on(story, *findings).verdict


@pytest.mark.parametrize("name", PROGRAMS)
def test_kind_and_sentence(name):
    found = verdict(PROGRAMS[name]())
    kind, words = EXPECTED[name]
    assert found.kind == kind
    assert words in found.sentence
    assert found.sentence.endswith(".")
    assert isinstance(found.kind, VerdictKind)


def test_a_file_of_another_tool_is_not_called_empty():
    story = Story(gpu=None)
    story.add("fee", "main (a.py:1)", 0, 100)
    assert "another tool may have made it" in verdict(story).sentence


def two_thirds_at_work():
    """The device computes for 69% of the time, and the host doesn't wait for it."""
    story = training(load=10, work=440)
    for i in range(4):
        story.kernel("gemm", 1000 * i + 250, 250, launch_at=1000 * i + 200)
    return story


def test_the_host_is_the_limit_where_it_does_not_wait_for_the_device():
    assert verdict(training(work=420, load=10, steps=3)).kind == "overhead-bound"
    found = verdict(two_thirds_at_work())
    assert found.kind == "overhead-bound"
    assert found.sentence.endswith("it computes for 69%.")


def test_a_device_that_the_host_waits_for_is_the_limit():
    story = two_thirds_at_work()
    for i in range(4):
        story.call("cudaStreamSynchronize", 1000 * i + 600, 395)
    found = verdict(story)
    assert found.kind == "compute-bound"
    assert found.sentence.startswith("The GPU's work takes more time than anything it waits for: it computes for 69%")
    assert "waits for the program" in found.sentence


def test_a_rule_that_found_overhead_is_believed():
    story = training(load=10, work=440)
    for i in range(4):
        story.kernel("gemm", 1000 * i + 250, 250, launch_at=1000 * i + 200)
    assert verdict(story, lambda trace: waiting(trace, slug="overhead-bound")).kind == "overhead-bound"


def test_recorded_stacks_make_waiting_doubtful():
    story = training(load=10, work=440)
    for i in range(400):
        story.frame("train.py(3): main", 10 * i, 5)
    found = verdict(story)
    assert found.kind == "unknown"
    assert "record once more without stacks" in found.sentence


def test_recorded_stacks_are_a_caveat_where_the_device_hardly_works():
    story = overhead()
    for i in range(300):
        story.frame("train.py(3): main", 10 * i, 5)
    found = verdict(story)
    assert found.kind == "overhead-bound"
    assert any("stacks were recorded" in caveat for caveat in found.caveats)


def test_few_kernels_are_a_caveat():
    story = Story()
    for i in range(6):
        story.op("aten::add", 150 * i, 140)
        story.kernel("gemm", 150 * i + 100, 3, launch_at=150 * i + 90)
    found = verdict(story)
    assert found.kind == "overhead-bound"
    assert found.caveats[-1] == "Only 6 kernels in this recording: record a few whole steps to be sure."


def test_a_captured_graph_says_nothing_of_the_program():
    story = Story()
    story.call("cudaStreamBeginCapture", 0, 5)
    for i in range(100):
        story.op("aten::mm", 10 + 10 * i, 8)
        story.call("cudaLaunchKernel", 12 + 10 * i)
    story.call("cudaStreamEndCapture", 1020, 10)
    story.call("cudaGraphInstantiate", 1040, 100)
    story.kernel("gemm", 1200, 50, launch_at=1190, launch="cudaGraphLaunch")
    found = verdict(story)
    assert found.kind == "unknown"
    assert "a CUDA graph was captured for" in found.sentence


def test_work_that_does_not_begin_is_not_the_hosts():
    story = training(load=10)
    story.kernel("gemm", 4900, 100, launch_at=4100)
    found = {part.name: part.time_us for part in report_on(story).breakdown.parts}
    assert "queued" not in found
    story.step(7, 4000, 1000)
    found = {part.name: part.time_us for part in report_on(story).breakdown.parts}
    assert found["queued"] == 4900 - 4103


def test_a_device_that_is_late_to_begin_is_not_the_limit():
    story = Story()
    for i, at in enumerate(story.steps(3, 100)):
        story.op("aten::mm", at + 10, 40)
        story.kernel("gemm", 2500 + 10 * i, 8, launch_at=at + 20)
    story.call("cudaDeviceSynchronize", 320, 2300)
    found = verdict(story)
    assert found.kind == "unknown"
    assert "the GPU's work in the first 99% of the window was not recorded" in found.sentence


@pytest.mark.parametrize(("every", "kind"), [(33, "unknown"), (60, "overhead-bound")])
def test_a_stretch_that_happened_once_is_either_set_up_or_a_late_launch(every, kind):
    trace = stands_still_once(1200, every).trace()
    diagnosis = diagnose(trace)
    found = describe(trace, diagnosis).verdict
    assert found.kind == kind
    assert ("overhead-bound" in {finding.slug for finding in diagnosis.findings}) == (kind == "overhead-bound")
    assert "one stretch" in found.sentence


def test_small_operators_on_a_cpu_are_overhead():
    found = verdict(on_cpu(operator_us=4))
    assert found.kind == "overhead-bound"
    assert found.sentence == (
        "The time between operators is the limit: for 97% of the 3 steps (2.92 ms of 3.00 ms) no operator runs; "
        "operators run for 2.8%."
    )


def mixture(load, short, heavy):
    """Steps of 1 ms on a CPU: a batch, operators of 5 us each, and one long operator, for so many us."""
    story = Story(gpu=None)
    for at in story.steps(3, 1000):
        story.note(LOADER, at, load)
        for k in range(short // 5):
            story.op("aten::mul", at + load + 5 * k, 5)
        story.op("aten::convolution", at + load + short, heavy)
    return story


@pytest.mark.parametrize(
    ("parts", "kind", "words"),
    [
        ((0, 150, 850), "compute-bound", "operators run for 100%"),
        ((0, 450, 550), "overhead-bound", "45% of the 3 steps (1.35 ms of 3.00 ms) goes to operators of less than"),
        ((300, 100, 600), "input-bound", "for 30% of the 3 steps (900 us of 3.00 ms) it waits for the next batch"),
        (
            (300, 310, 390),
            "mixed",
            "of the 3 steps (3.00 ms), 39% goes to longer operators, 31% to short operators and the Python "
            "around them and 30% to waiting for the next batch.",
        ),
        ((550, 300, 150), "input-bound", "for 55%"),
    ],
)
def test_on_a_cpu_time_decides_and_not_the_number_of_calls(parts, kind, words):
    found = verdict(mixture(*parts))
    assert found.kind == kind
    assert words in found.sentence


def held_up(shape, usual=5, count=19):
    """Short operators, one of 20 of which takes most of the step."""
    story = Story(gpu=None)
    for at in story.steps(3, 1000):
        for k in range(count):
            story.op("aten::mul", at + 10 * k, usual, **{"Input Dims": [[8]]})
        story.op("aten::mul", at + 200, 800, **{"Input Dims": [[shape]]})
    return story


def test_short_operators_stay_short_where_one_of_them_is_held_up():
    found = verdict(held_up(8))
    assert found.kind == "overhead-bound"
    assert "goes to operators of less than 10 us" in found.sentence


def test_one_operator_may_do_little_and_much():
    assert verdict(held_up(8_000_000)).kind == "compute-bound"


@pytest.mark.parametrize(("frame_us", "what"), [(0, "The time between operators"), (1000, "Python")])
def test_what_runs_between_operators_is_python_where_frames_say_so(frame_us, what):
    story = Story(gpu=None)
    story.step(1, 0, 1000)
    story.op("aten::convolution", 0, 300)
    if frame_us:
        story.frame("train.py(3): step", 0, frame_us)
    assert verdict(story).sentence == (
        f"{what} is the limit: for 70% of the one recorded step (700 us of 1.00 ms) no operator runs; operators run "
        "for 30%."
    )


def loop_after_set_up(pause):
    """Half a second of set-up, then without steps a hundred rounds: an operator of 1 ms and a pause."""
    story = Story(gpu=None)
    story.op("aten::empty", 0, 10)
    for i in range(100):
        story.op("aten::stft", 500_000 + (1000 + pause) * i, 1000)
    return story


def test_a_long_set_up_is_told_where_the_rest_is_alike():
    assert verdict(loop_after_set_up(4000)).sentence == (
        "The time between operators is the limit: for 90% of the recording (896 ms of 996 ms) no operator runs, 500 ms "
        "of it in one stretch; operators run for 10%."
    )


def test_a_long_set_up_is_not_taken_for_the_program():
    found = verdict(loop_after_set_up(100))
    assert found.kind == "unknown"
    assert found.sentence == (
        "Can't tell, because one stretch of 500 ms without operators takes 82% of the recording, such as set-up, "
        "imports or a checkpoint; in the rest operators run for 91%: record several steps after warming up."
    )


def test_steps_leave_no_doubt_about_a_stretch():
    story = loop_after_set_up(100)
    story.step(1, 0, 610_000)
    assert verdict(story).kind == "overhead-bound"


def test_compiled_code_is_not_called_overhead():
    story = Story(gpu=None)
    story.step(1, 0, 1000)
    story.op("Torch-Compiled Region: 0/0", 0, 900)
    found = verdict(story)
    assert found.kind == "compute-bound"
    assert "operators and compiled code run for 90%" in found.sentence


def test_a_step_that_first_keeps_the_host_busy_has_two_limits():
    story = Story()
    story.step(6, 0, 1000)
    story.op("tokenize", 0, 580)
    for k in range(40):
        story.kernel("gemm", 600 + 10 * k, 10, launch_at=590 + k)
    found = verdict(story)
    assert found.kind == "mixed"
    assert found.sentence == (
        "No single limit: for 60% of the one recorded step (600 us of 1.00 ms) the host does something else in one "
        "stretch (97% of it in tokenize), and the GPU has no work; in the other 400 us the GPU is the limit, with work "
        "for 100% of the time."
    )


def test_two_stalls_alike_are_no_single_limit():
    found = verdict(training(load=300, work=280))
    assert found.kind == "mixed"
    assert found.sentence == (
        "No single limit: of the 4 steps (4.00 ms), the GPU waits for the program for 42% and waits for the next batch "
        "for 30%; it computes for 28%."
    )


def test_caveats():
    assert verdict(computing()).caveats == ()
    story = Story()
    story.kernel("gemm", 10, 990, launch_at=0)
    assert verdict(story).caveats == (
        "No steps are marked, so this is about the whole recording, its start and end included.",
        "Only 1 kernel in this recording: record a few whole steps to be sure.",
        "No operator of PyTorch was recorded.",
    )
    found = verdict(computing(), lambda trace: waiting(trace, slug="clock-skew"))
    assert found.caveats == ("Clocks of host and device disagree in this file.",)


def test_one_long_step_is_a_caveat():
    story = Story(gpu=None)
    for i, us in enumerate((5000, 1000, 1000)):
        story.step(i + 3, 10_000 * i, us)
        story.op("aten::mm", 10_000 * i, us)
    assert verdict(story).caveats == (
        "The first step takes 5.00 ms, as cold ones do; the shares are those of the steps after it.",
    )


def test_one_long_step_among_others_is_a_caveat():
    story = Story(gpu=None)
    for i, us in enumerate((1000, 5000, 1000)):
        story.step(i + 3, 10_000 * i, us)
        story.op("aten::mm", 10_000 * i, us)
    assert verdict(story).caveats == (
        "One step takes 5.00 ms, the others 1.00 ms (median): it is 71% of the recorded steps.",
    )


def only_steps():
    story = Story(gpu=None)
    for i in range(4):
        story.step(i, 1000 * i, 1000)
    return story


def test_threads_whose_operators_were_not_recorded_may_have_worked():
    found = verdict(only_steps())
    assert found.kind == "unknown"
    assert "no operator was recorded in the 4 steps" in found.sentence


def test_without_operators_the_loader_may_still_be_the_limit():
    story = only_steps()
    story.note(LOADER, 0, 3000)
    assert verdict(story).kind == "input-bound"


def test_launches_of_another_maker_without_kernels():
    story = Story(gpu=None)
    for k in range(20):
        story.op("aten::mm", 100 * k, 90)
        story.call("launch", 100 * k + 10, cat="privateuse1_driver")
    assert "although it worked (20 launches)" in verdict(story).sentence


def test_a_rank_that_computes_longer_than_it_exchanges_has_no_single_limit():
    story = Story(gpu=None, distributedInfo={"backend": "gloo", "rank": 0, "world_size": 2})
    for at in story.steps(3, 1000):
        story.op("aten::mm", at, 550)
        story.note("gloo:all_reduce", at + 550, 400, tid=200)
    found = verdict(story)
    assert found.kind == "mixed"
    assert "55% goes to longer operators and 40% to exchanging data with other ranks" in found.sentence


def test_a_file_cut_before_the_devices_events_is_not_taken_for_a_cpu_program(tmp_path):
    story = Story()
    for i in range(3):
        story.step(i, at=1000 * i, us=1000)
        story.op("aten::mm", at=1000 * i + 10, us=900)
    host = story.text()
    story.kernel("gemm", at=100, us=800)
    path = tmp_path / "cut.json"
    path.write_text(story.text()[: len(host) - 2])
    trace = load(path)
    assert trace.repairs.truncated
    found = describe(trace, diagnose(trace)).verdict
    assert found.kind == "unknown"
    assert "what the NVIDIA A100-SXM4-80GB did may have been in the part that is lost" in found.sentence


@pytest.mark.parametrize("whole", [False, True])
def test_a_file_that_ends_early_is_the_reason_why_a_device_has_no_work(tmp_path, whole):
    """Work of the device may have been asked for: it would stand in the part that is lost."""
    story = Story()
    for i in range(3):
        story.step(i, at=1000 * i, us=1000)
        story.op("aten::_scaled_dot_product_flash_attention", at=1000 * i + 10, us=900)
    path = tmp_path / "trace.json"
    text = story.text()
    path.write_text(text if whole else text[: len(text) - 2])
    trace = load(path)
    diagnosis = diagnose(trace)
    assert describe(trace, diagnosis).verdict.sentence.startswith(
        "Can't tell, because nothing of" if whole else "Can't tell, because the file ends early, and nothing of"
    )
    missing = next(finding for finding in diagnosis.findings if finding.slug == "no-gpu-activity")
    assert ("The file ends early" in missing.cause) == (not whole)
    assert ("ProfilerActivity.CUDA" in missing.fix) == whole


def test_a_cold_first_step_is_said_to_be_left_out_where_nothing_can_be_told():
    story = Story(gpu=None)
    for i, us in enumerate((5000, 1000, 1000)):
        story.step(i, 10_000 * i, us)
    story.op("aten::mm", 0, 5000)
    found = verdict(story)
    assert found.kind == "unknown"
    assert found.caveats == (
        "The first step takes 5.00 ms, as cold ones do; the shares are those of the steps after it.",
    )


@pytest.mark.parametrize("host", [False, True])
def test_time_of_a_host_that_was_not_recorded_is_no_thread_s(host):
    story = Story()
    if host:
        story.op("aten::mm", 0, 20)
    for k in range(20):  # on two streams
        story.kernel("gemm", 100 + 90 * k, 10, stream=7 + k % 2)
    where = {part.where for part in critical_parts(story.trace())}
    assert any(one.startswith("thread") for one in where) == host


@pytest.mark.parametrize(("us", "named"), [(400, True), (20, False)])
def test_work_of_no_step_is_named_where_it_changes_the_shares(us, named):
    story = Story()
    story.kernel("earlier", 0, us)
    for at in story.steps(3, 1000):
        story.op("aten::mm", at + 10, 40)
        story.kernel("gemm", max(at + 60, us), 900, launch_at=at + 20)
    said = [line for line in verdict(story).caveats if "launched before the recording" in line]
    assert said == (
        ["For 400 us the GPU only does work that was launched before the recording, and belongs to no step."] * named
    )


def filtered(*kept):
    """Exchanges of two devices, as in a file from which everything else was taken out, and what was kept of it."""
    story = Story()
    for k in range(6):
        story.add("kernel", "ncclDevKernel_Generic", 1000 * k, 600, tid=20, pid=0, stream=20, device=0)
    for add in kept:
        add(story)
    return story


KEPT = {
    "a kernel": lambda story: story.add("kernel", "sgemm", 700, 200, tid=7, pid=0, stream=7, device=0),
    "an operator": lambda story: story.op("aten::mm", 10, 900),
    "a launch": lambda story: story.call("cudaLaunchKernel", 10),
    "a label": lambda story: story.note("forward", 10, 900),
}


def test_a_file_of_exchanges_alone_does_not_show_that_nothing_is_computed():
    story = filtered()
    found = report_on(story)
    assert (found.verdict.kind, "nothing else" in found.verdict.sentence) == ("unknown", True)
    assert not any("hidden" in one.title for one in diagnose(story.trace()).findings)


@pytest.mark.parametrize("kept", KEPT)
def test_whatever_else_is_in_the_file_it_is_judged(kept):
    assert "nothing else" not in verdict(filtered(KEPT[kept])).sentence


@pytest.mark.parametrize("nodes", [0, 1, 3, 40])
def test_a_backward_pass_of_which_some_nodes_are_in_the_file_is_not_time_between_operators(nodes):
    """Autograd runs a few of them in the thread that waits for the others."""
    story = Story(gpu=None)
    for at in story.steps(3, 1000):
        story.op("aten::mm", at + 10, 300)
        story.note("## backward ##", at + 400, 500)
        for k in range(nodes):
            story.op("autograd::engine::evaluate_function: AccumulateGrad", at + 402 + 12 * k, 3 if nodes < 40 else 11)
    parts = {part.name: part.time_us for part in report_on(story).breakdown.parts}
    assert ("unrecorded" in parts or "unknown" in parts) == (nodes < 40), parts


@pytest.mark.parametrize("us", [100, 440, 490])
def test_a_wait_for_the_device_within_a_backward_pass_is_no_missing_thread(us):
    story = Story()
    for at in story.steps(3, 1000):
        story.kernel("sgemm", at + 20, 800, launch_at=at + 10)
        story.note("## backward ##", at + 400, 500)
        story.op("autograd::engine::evaluate_function: AccumulateGrad", at + 401, 8)
        story.call("cudaDeviceSynchronize", at + 409, us)
        story.op("aten::mm", at + 409 + us, 491 - us)
    parts = {part.name: part.time_us for part in report_on(story).breakdown.parts}
    assert not {"unrecorded", "unknown"} & {*parts}, parts
