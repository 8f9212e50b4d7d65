"""What rules about the host and about trust say: causes and advice that fit, shares of one window."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.rules import (
    case_batches,
    case_contents,
    case_host_bound,
    case_optimizer,
    case_ordinary,
    case_processor,
    case_steps,
    case_tensor_loops,
    case_trust_recorded,
    case_wasted,
)
from tests.traces import Story, samples
from torchwhy.rules.catalogue import all_rules
from torchwhy.rules.diagnose import diagnose
from torchwhy.rules.host.launch_gaps import fewer_launches
from torchwhy.trace.meaning.libraries import VOCABULARIES
from torchwhy.trace.model.intervals import Intervals
from torchwhy.wording import duration


def found(story, slug):
    """The findings of one rule."""
    return [finding for finding in diagnose(story.trace()).findings if finding.slug == slug]


def one(story, slug):
    """The only finding of one rule."""
    (finding,) = found(story, slug)
    return finding


def waiting(*calls, steps=6):
    """Steps of 1 ms: each call takes the host's time until the device is done, which then has nothing for 300 us."""
    story = Story()
    for i, at in enumerate(story.steps(steps, 1000)):
        story.kernel("gemm", at + 300, 700, launch_at=at + 280)
        story.op("aten::mm", at + 270, 20)
        story.call(calls[i % len(calls)], at + 320, 685)
    return story


def test_stacked_gradients_are_not_called_rows_of_a_buffer():
    gradients = one(case_ordinary.gradients_are_stacked_after_the_backward_pass(), "rows-stacked")
    assert "gradients" in gradients.title
    assert "_foreach" in gradients.fix
    assert "states[rows]" in one(case_ordinary.batches_are_stacked_from_long_lists(), "rows-stacked").fix


def test_steps_that_double_make_findings_on_early_ones_doubtful():
    story = case_steps.each_step_writes_all_that_was_logged()
    part = {"seconds": 1.0, "lines": []}
    lines = [["train.py(9): main", "json.dump(history, file)", 6.0, 0.0]]
    run = {"seconds": 9.0, "steps": 0, "optimizer": True, "later_steps": 300, "start_up": part}
    story.top["torchwhy_run_times"] = run | {"outside": {"seconds": 8.0, "lines": lines}}
    samples(story, [("train.py(5): main",)] * 20)
    first = diagnose(story.trace()).findings[0]
    assert (first.slug, first.severity) == ("growing-steps", "high")
    assert first.evidence[0].stack == ("train.py(9): main",)


def test_waits_are_counted_with_their_like():
    findings = found(waiting("cudaStreamSynchronize", "cudaEventSynchronize"), "explicit-sync")
    assert sorted((finding.cause.split()[1], sum(item.count for item in finding.evidence)) for finding in findings) == [
        ("host", 2),
        ("program", 3),
    ], "after the last one nothing is launched any more"


def test_the_phase_of_training_in_which_the_device_waits_is_named():
    finding = one(case_host_bound.training(forward_every_us=40), "overhead-bound")
    assert finding.title.endswith("% it waits for the next launch in the forward pass")
    assert "foreach" not in finding.fix, "the device has work while the optimizer runs"
    gaps = 4 * 29 * (40 - 5)
    assert finding.stretches.total / 1000 == pytest.approx(gaps, rel=0.1)


@pytest.mark.parametrize(("name", "slug"), [("aten::mm", "cpu-hotspot"), ("aten::copy_", "cpu-copies")])
def test_an_operator_of_many_shapes_is_shown_wherever_it_runs(name, slug):
    story = Story(gpu=None)
    for i in range(5):
        story.op(name, 3000 * i, 2900, **{"Input Dims": f"[[{8 + i}, 65536]]", "Input type": '["float"]'})
    finding = one(story, slug)
    assert finding.stretches.total / 1000 == 5 * 2900


@pytest.mark.parametrize("cold", [0, 20_000])
def test_no_share_is_over_the_window(cold):
    story = waiting("cudaStreamSynchronize")
    for event in story.events:
        event["ts"] += cold if event["ts"] >= 1000 else 0
    story.events[0]["dur"] += cold
    story.call("cudaDeviceSynchronize", 500, 480 + cold)
    for finding in diagnose(story.trace()).findings:
        assert 0 <= finding.time_us <= finding.window.us


def test_workers_that_start_anew_are_kept_alive():
    finding = one(case_batches.workers_start_anew_for_each_pass(), "dataloader-wait")
    assert "persistent_workers=True" in finding.fix
    assert "More workers" not in finding.fix
    assert "from the last batch of a pass to the first of the next" in {item.name for item in finding.evidence}


def test_slow_workers_get_others():
    assert "More workers" in one(case_batches.workers_are_too_slow(), "dataloader-wait").fix


def test_one_step_that_was_held_up_is_named_and_judges_nothing():
    findings = diagnose(case_steps.the_system_took_the_processor_away_once().trace()).findings
    assert {finding.severity for finding in findings} == {"info"}
    (tail,) = (finding for finding in findings if finding.slug == "step-tail")
    assert tail.title == "1 of 3 steps takes over 1.5 times the median 361 us, up to 3.00 ms"


@pytest.mark.parametrize(("waited_us", "severity"), [(3000.0, "info"), (2000.0, "high"), (None, "high")])
def test_slow_steps_of_a_busy_machine_are_not_the_programs(waited_us, severity):
    """Two steps lose 5 ms together."""
    story = case_steps.held_up([500, 500, 3000, 500, 500, 500, 3000, 500])
    story.top["torchwhy_processor_time"] = {"wall_us": 9000.0, "waited_us": waited_us, "load": 4.0, "cores": 2}
    finding = one(story, "step-tail")
    assert finding.severity == severity
    assert (finding.fix == "Record again on an idle machine.") == (severity == "info")


@pytest.mark.parametrize(("count", "severity"), [(10, "info"), (12, "info"), (16, "high")])
def test_the_last_batch_of_an_epoch_on_a_busy_machine_is_no_slow_step(count, severity):
    """Two steps call some more operators, as at the end of an epoch; the program waited for longer than they lost."""
    story, at = Story(gpu=None), 0
    for i in range(8):
        step_us, calls = (3000, count) if i in {3, 7} else (500, 10)
        story.step(i, at, step_us)
        for k in range(calls):
            story.op("aten::mm", at + step_us * k / calls, 20)
        at += step_us
    story.top["torchwhy_processor_time"] = {"wall_us": 9000.0, "waited_us": 5000.0, "load": 4.0, "cores": 2}
    assert one(story, "step-tail").severity == severity


@pytest.mark.parametrize(("calls", "each_us", "severity"), [(50, 175, "info"), (50, 20, "high"), (400, 5, "info")])
def test_a_step_that_is_longer_by_additional_operators_may_be_meant(calls, each_us, severity):
    """Two steps call more operators than 10. They fill the steps, or most of the time lies outside of them.

    Hundreds of small ones have as much time around them as the operators of other steps.
    """
    story, at = Story(gpu=None), 0
    for i in range(26):
        step_us, count, own_us = (9000, calls, each_us) if i in {12, 25} else (1000, 10, 98)
        story.step(i, at, step_us)
        for k in range(count):
            story.op("aten::mm", at + step_us * k / count, own_us)
        at += step_us
    assert one(story, "step-tail").severity == severity


@pytest.mark.parametrize(
    ("collecting_us", "waited_us", "found"),
    [
        (None, 0.0, True),
        (1500.0, 0.0, True),
        (900.0, 0.0, False),  # most of its time the thread did not run
        (900.0, 50_000.0, True),  # nor did it in the rest of the recording
    ],
)
def test_a_collection_counts_with_its_processor_time(collecting_us, waited_us, found):
    """One of 3 ms in 100 ms, of which 1% is needed."""
    story = case_steps.steps([4000] * 25)
    story.note("Python GC", 50_000, 3000)
    noted = {"wall_us": 100_000.0, "waited_us": waited_us, "cores": 2, "collecting_us": collecting_us}
    story.top["torchwhy_processor_time"] = noted
    findings = [finding for finding in diagnose(story.trace()).findings if finding.slug == "gc-pause"]
    assert [finding.severity for finding in findings] == ["info"] * found


def test_collections_that_take_a_twentieth_ask_for_a_change():
    story = case_steps.steps([4000] * 25)
    for at in range(0, 100_000, 20_000):
        story.note("Python GC", at, 1100)
    assert one(story, "gc-pause").severity == "medium"


def test_advice_without_a_data_loader_speaks_of_none():
    assert "DataLoader" not in one(case_steps.every_step_stops(), "between-steps-gap").fix


def test_counters_explain_missing_kernels():
    finding = one(case_trust_recorded.counters_instead_of_times(), "no-gpu-activity")
    assert "profiler_metrics" in finding.fix


def test_links_that_are_inferred_are_said_to_be():
    finding = one(case_trust_recorded.tied_by_the_operators(), "pre-window-kernels")
    assert finding.confidence == "medium"
    assert "before recording" not in finding.title


def test_work_without_ids_was_not_launched_before_the_recording():
    finding = one(case_trust_recorded.kernels_without_any_id(), "pre-window-kernels")
    assert "aren't in the trace" in finding.title


def test_a_growing_graph_names_its_numbers():
    assert "40, 80, 120, 160 nodes" in one(case_tensor_loops.the_hidden_state_keeps_its_graph(), "growing-graph").title


def test_a_growing_graph_costs_what_earlier_steps_left():
    found = one(case_tensor_loops.the_hidden_state_keeps_its_graph(), "growing-graph")
    assert found.time_us == pytest.approx((40 + 80 + 120) * 18)
    later = case_tensor_loops.training((90, 100, 110), calls=(20, 20, 20), first=7)  # 70 nodes are of steps before
    assert one(later, "growing-graph").time_us == pytest.approx((70 + 80 + 90) * 18, rel=0.01)
    elsewhere = case_tensor_loops.training((90, 100, 110), calls=(20, 20, 20), first=50)
    assert one(elsewhere, "growing-graph").time_us == pytest.approx((10 + 20) * 18, rel=0.01)


def test_python_between_operators_is_named_by_its_lines():
    story = Story(gpu=None)
    for at in story.steps(4, 10_000):
        story.op("aten::mm", at + 10, 1000)
        story.frame("train.py(40): main", at + 1100, 8000)
        story.frame("json/encoder.py(180): encode", at + 1200, 3000)
        story.frame("json/encoder.py(180): encode", at + 4300, 3000)
    finding = one(story, "between-steps-gap")
    call, line = finding.evidence[:2]
    assert (call.name, call.count) == ("json/encoder.py(180): encode", 8)
    assert (line.name, line.count) == ("train.py(40): main", 4)
    assert line.time_us == pytest.approx(32_000, rel=0.01)


def test_many_cheap_calls_are_mentioned():
    story = Story(gpu=None)
    for at in story.steps(3, 20_000):
        story.op("aten::mm", at, 15_000)
        for k in range(150):
            story.op("aten::add", at + 15_100 + 20 * k, 5)
    assert one(story, "dispatch-flood").severity == "low"


def test_updates_are_counted_once():
    story = Story(gpu=None)
    for at in story.steps(3, 2000):
        story.note("Optimizer.step#Adam.step", at + 10, 1900)
        story.note("Optimizer.step#Adam.step", at + 11, 1890)
        for k in range(60):
            story.op("aten::mul_", at + 20 + 30 * k, 25)
            story.op("aten::mul", at + 22 + 30 * k, 20)
    assert "60 operators per step" in one(story, "optimizer-for-loop").title


def test_a_cold_first_step_names_the_calls_that_took_the_time():
    story = Story()
    for i, us in enumerate((1_000_000, 1000, 1000, 1000)):
        at = 0 if i == 0 else 1_000_000 + 1000 * (i - 1)
        story.step(i, at, us)
        if i == 0:
            story.call("cudaFuncGetAttributes", 100, 995_000)
        story.kernel("gemm", at + us - 300, 200, launch_at=at + us - 320)
    finding = one(story, "first-step-cold")
    assert "cudaFuncGetAttributes 995 ms" in finding.cause
    assert finding.severity == "medium"


RULES = [rule for rule in all_rules() if rule.function.__module__.split(".")[-2] in ("host", "trust")]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.slug)
def test_known_problems_are_documented(rule):
    assert "\n\nKnown problems: " in rule.documentation


@pytest.mark.parametrize(
    ("call", "named", "advice"),
    [
        ("<built-in method tensor of type object at 0x7f>", "torch.tensor", "NumPy"),
        ("torch/serialization.py(953): save", "torch.serialization.save", "Save every N steps"),
        ("numpy/lib/npyio.py(5): load", "numpy.lib.npyio.load", "DataLoader(num_workers"),
        ("json/__init__.py(183): dumps", "json.dumps", "write them every N steps"),
        ("scipy/optimize.py(7): solve", "scipy.optimize.solve", "off the loop"),
        ("csv.py(178): __next__", "csv.__next__", "DataLoader(num_workers"),
        ("/usr/lib/python3.12/wave.py(340): readframes", "lib.python3.12.wave.readframes", "DataLoader(num_workers"),
        ("PIL/Image.py(3400): open", "PIL.Image.open", "DataLoader(num_workers"),
    ],
)
def test_the_call_that_takes_the_time_is_named(call, named, advice):
    story = case_steps.every_step_stops()
    story.frame("train.py(1): <module>", 0, 12000)
    for i in range(4):
        story.frame(call, 3000 * i + 310, 2600)
    finding = one(story, "between-steps-gap")
    assert finding.title.endswith(f" of that in {named}")
    assert advice in finding.fix
    assert (finding.evidence[0].name, finding.evidence[0].count) == (call, 4)


ADVICE = re.compile(r"NumPy|Save every|Read and decode|Log every")
WORK = (
    "mir/features/chroma.py(720): fold",
    "models/csv.py(3): forward",
    "dsp/soundfile.py(8): process",
    "torchaudio/functional/functional.py(90): spectrogram",
    "PIL/Image.py(2200): resize",
    "cv2/gapi/__init__.py(12): kernel",
    "skimage/filters/edges.py(4): sobel",
    "pandas/core/frame.py(9): groupby",
    "numpy/linalg/linalg.py(3): svd",
    "scipy/signal/_signaltools.py(7): lfilter",
    "tqdm/std.py(1160): __iter__",
    "tokenizers/__init__.py(5): encode_batch",
    "ctypes/__init__.py(390): __call__",
    "<built-in method resize of module object at 0x7f>",
    "<built-in function encode>",
    "<built-in method loader of type object at 0x7f>",
    "<built-in method opening of PyCapsule object at 0x7f>",
)
"""Functions whose work may be native code past PyTorch's operators."""

WORDS = st.from_regex(r"[a-z_]{3,12}", fullmatch=True)
FRAMES = st.one_of(
    st.sampled_from(WORK),
    st.builds("engine/{}.py({}): {}".format, WORDS, st.integers(1, 9999), WORDS),
    st.builds("ext_{}/{}.py({}): {}".format, WORDS, WORDS, st.integers(1, 9999), WORDS),
    st.builds("<built-in method ext_{} of PyCapsule object at 0x7f>".format, WORDS),
)


def stopped_in(frame, part=1.0):
    """Steps that run no operator for 2.6 ms, of which a part passes in a function."""
    story = case_steps.every_step_stops()
    story.frame("train.py(1): <module>", 0, 12000)
    for i in range(4):
        story.frame(frame, 3000 * i + 310, 2600 * part)
    return story


@given(frame=FRAMES)
@settings(deadline=None, max_examples=60)
def test_native_work_past_the_operators_is_neither_idle_nor_reading(frame):
    finding = one(stopped_in(frame), "between-steps-gap")
    assert "no PyTorch operator runs" in finding.title
    assert not ADVICE.search(finding.fix)
    assert "idle" not in finding.title + finding.cause + finding.fix


@pytest.mark.parametrize(("part", "advised"), [(0.3, False), (0.7, True)])
def test_advice_on_reading_needs_half_of_the_time_in_frames_that_read(part, advised):
    assert ("Read and decode" in one(stopped_in("soundfile.py(9): read", part), "between-steps-gap").fix) is advised


def test_the_line_that_calls_is_named():
    finding = one(stopped_in("scipy/signal/waveforms.py(720): chirp"), "between-steps-gap")
    assert finding.cause.endswith("scipy.signal.waveforms.chirp is called in train.py: <module>.")


def test_a_wrapper_is_not_named():
    story = case_steps.every_step_stops()
    story.frame("train.py(1): <module>", 0, 12000)
    for i in range(4):
        story.frame("torch/utils/_contextlib.py(113): decorate_context", 3000 * i + 310, 2600)
        story.frame("scipy/optimize.py(7): solve", 3000 * i + 315, 2590)
    assert one(story, "between-steps-gap").title.endswith(" of that in scipy.optimize.solve")


def test_a_label_of_the_backward_pass_is_no_idle_python():
    story = case_steps.every_step_stops()
    for i in range(4):
        story.note("## backward ##", 3000 * i + 305, 2620)
        story.op("aten::mm", 3000 * i + 2900, 5)
    assert not found(story, "between-steps-gap")


def test_a_copy_longer_than_any_processor_needs_is_a_wait():
    def copying(elements):
        story = Story(gpu=None)
        for at in story.steps(3, 6000):
            story.op("aten::copy_", at, 5000, **{"Input Dims": f"[[{elements}]]"})
        return story

    assert found(copying(10_000_000), "cpu-copies")
    assert not found(copying(123), "cpu-copies")


def test_code_of_the_programs_own_names_no_call():
    story = case_steps.every_step_stops()
    story.frame("train.py(1): <module>", 0, 12000)
    for i in range(4):
        story.frame("train.py(5): tokenize", 3000 * i + 310, 2600)
    finding = one(story, "between-steps-gap")
    assert "mostly" not in finding.title
    assert finding.evidence[0].name == "train.py(5): tokenize"


def test_a_program_that_ran_three_rounds_needs_no_warm_up():
    cold, warm = (one(case_steps.steps([1600, 1000, 1010, 990], first=n), "first-step-cold") for n in (0, 3))
    assert (cold.severity, warm.severity) == ("medium", "info")
    assert "Warm up" in cold.fix
    assert "Warm up" not in warm.fix
    assert "had run 3 steps before it" in warm.cause


def test_anomaly_detection_costs_what_comes_after_each_node():
    assert one(case_optimizer.gradients_are_searched_for_nan_on_a_cpu(), "anomaly-mode").time_us == 4 * 5 * 90


def test_a_lost_time_on_the_host_says_nothing_of_a_devices_clock():
    story = Story(gpu=None)
    for i in range(20):
        story.op("aten::mm", 1e16 if i == 5 else 10 * i, 5)
    assert not found(story, "clock-skew")


def test_an_overhead_bound_finding_counts_within_its_window():
    story = Story()
    for at in story.steps(4, 1000):
        for k in range(10):
            story.op("aten::add", at + 90 * k, 20)
            story.kernel("elementwise", at + 90 * k + 15, 3, launch_at=at + 90 * k + 10)
    finding = one(story, "overhead-bound")
    assert finding.title == "The device is busy 3.0% of the time; for 93% it waits for the next launch"
    assert finding.cause == (
        "The 40 kernels take 3.00 us (median). 40 times the device had run out of work before its next launch returned."
    )


def test_without_steps_an_overhead_bound_finding_names_its_window():
    story = Story()
    story.op("aten::set_up", 0, 500)
    for k in range(40):
        story.op("aten::add", 1000 + 90 * k, 20)
        story.kernel("elementwise", 1015 + 90 * k, 3, launch_at=1010 + 90 * k)
    assert " of the time from the first launch to the last work; for " in one(story, "overhead-bound").title


def test_additions_to_gradients_just_filled_are_at_stake_too():
    """Two fills of 2 us and, in the first of two backward passes, two additions of 50 us to zero: 104 us a step."""
    story = Story()
    for at in story.steps(4, 1000):
        story.note("Optimizer.zero_grad#SGD.zero_grad", at, 40)
        for k in range(2):
            story.op("aten::zero_", at + 5 + 10 * k, 8)
            story.kernel("fill", at + 10 + 10 * k, 2, launch_at=at + 6 + 10 * k)
        for k in range(4):
            story.op("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", at + 50 + 20 * k, 12)
            story.op("aten::add_", at + 52 + 20 * k, 9)
            story.kernel("add", at + 100 + 50 * k, 50, launch_at=at + 53 + 20 * k)
        story.kernel("sgemm", at + 300, 700, launch_at=at + 200)
    finding = one(story, "zero-grad-memset")
    host = 40 + 2 * 9  # zero_grad and the first two additions
    assert finding.stretches.total == 1000 * 4 * (host + 2 * 50)  # what is on the device beside zero_grad lies in it
    # The host, whose steps take 1000 us, sets the pace; after its last launch the device does.
    assert 4 * host <= finding.time_us <= 4 * host + 2 * 2 + 2 * 50


@pytest.mark.parametrize("backlog", [100, 600])
def test_a_wait_costs_what_the_host_would_run_ahead(backlog):
    """Ten kernels, the device idle for 270 us between them, then a wait, which costs that, or all it takes."""
    story = Story()
    for at in story.steps(8, 460 + backlog):
        for k in range(10):
            story.op("aten::mm", at + 60 + 40 * k, 18)
            story.kernel("sgemm", at + 60 + 40 * k + 20, 20 if k < 9 else backlog + 10, launch_at=at + 60 + 40 * k + 10)
        story.call("cudaStreamSynchronize", at + 450, backlog)
        story.op("aten::mm", at + 452 + backlog, 2)
    finding = one(story, "explicit-sync")
    assert finding.time_us == pytest.approx(8 * min(270, backlog), rel=0.15)


def test_each_cause_of_waits_for_batches_has_its_own_advice():
    """A pass draws one order of samples, and a slow dataset isn't the collate function's."""
    made_anew = one(case_batches.each_batch_has_a_new_iterator(), "dataloader-wait")
    assert "A new iterator is made for each batch" in made_anew.cause
    assert "Make the iterator once" in made_anew.fix
    once = one(case_batches.one_pass_draws_one_order(), "dataloader-wait")
    collating = one(case_batches.the_collate_function_is_slow(), "dataloader-wait")
    assert "The collate function runs in the program's own process: 67% of the stacks" in collating.cause
    assert "whole tensors" in collating.fix
    collate = "torch/utils/data/_utils/fetch.py(55): fetch |return self.collate_fn(data)"
    numbers = (
        "data.py(9): <listcomp> |x = [float(t) for t in row]",
        "data.py(9): collate |x = [float(t) for t in row]",
    )
    assert (
        "whole tensors" in one(case_batches.in_own_process(us=600, frame=collate, below=numbers), "dataloader-wait").fix
    )
    texts = ("data.py(7): mask |return self.masked[text]", "data.py(9): collate |x = [mask(t) for t in rows]")
    masking = one(case_batches.in_own_process(us=600, frame=collate, below=texts), "dataloader-wait")
    assert "The collate function runs in the program's own process" in masking.cause
    assert masking.fix.startswith("Make that line cheaper")
    dataset = one(case_batches.the_dataset_is_slow(), "dataloader-wait")
    for plain in (once, dataset):
        assert "made in the program's own process (num_workers=0)" in plain.cause
        assert plain.fix.startswith("Take each batch out of tensors at once")
        assert "a batch is made in 300 us (median)" in plain.fix
    fetch = "torch/utils/data/_utils/fetch.py(52): fetch |data = [self.dataset[i] for i in index]"
    longer = one(case_batches.in_own_process(us=600, frame=fetch), "dataloader-wait")
    assert longer.fix.startswith("Give the DataLoader num_workers=4 or so")
    own = one(case_batches.in_own_process(us=600, frame="data.py(7): __getitem__ |return row[0]"), "dataloader-wait")
    assert "data.py(7): __getitem__: return row[0]" in own.cause
    assert own.fix.startswith("Make that line cheaper")


def test_a_lock_of_another_thread_has_its_own_advice():
    held = one(case_steps.another_thread_holds_a_lock(), "between-steps-gap")
    assert "train.py(30): step: with self.lock:" in held.cause
    assert "Another thread holds the lock" in held.fix
    other = one(case_steps.a_line_that_opens_a_block_without_a_lock(), "between-steps-gap")
    assert "lock" not in other.fix


@pytest.mark.parametrize("beside", [0, 5, 15])
def test_work_from_before_runs_alone_for_as_long_as_no_other_does(beside):
    """20 kernels of 15 us from before; during each, another stream works for `beside` us on what was launched since."""
    story = Story()
    story.op("aten::mm", 0, 900)
    for k in range(20):
        story.kernel("sgemm", 500 + 20 * k, 15)  # all ids from before are lower
    for k in range(20):
        story.kernel("add", (500 if beside else 1500) + 20 * k, beside or 15, launch_at=10 + 3 * k, stream=8)
    title = one(story, "pre-window-kernels").title
    alone = 20 * (15 - beside)
    assert title.endswith(f"; for {duration(alone)} only such work runs" if alone else "launched before it")


@pytest.mark.parametrize("launch_at", [10, 14, 16, 20])
@pytest.mark.parametrize("launch_us", [3, 8])
def test_how_often_the_device_ran_dry_is_that_of_a_plain_sweep(launch_at, launch_us):
    """A launch may begin while the device still works, and return when it has run out of work."""
    story, work = Story(), []
    for at in story.steps(4, 1000):
        for k in range(10):
            start = at + 90 * k
            story.op("aten::add", start, 40)
            for first, length in ((0, 12), (20, 3)):  # the first kernel ends 27 us after the operator's beginning
                launched = start + (1 if not first else launch_at)
                story.kernel("elementwise", start + 15 + first, length, launch_at=launched, launch_us=launch_us)
                work.append((start + 15 + first, length, launched + launch_us))
    dry, busy = 0, 0.0
    for begins, length, returned in sorted(work):
        dry += begins > busy and returned > busy
        busy = max(busy, begins + length)
    assert f"{dry} times the device had run out of work" in one(story, "overhead-bound").cause


@pytest.mark.parametrize("stacks", [False, True])
def test_where_recorded_stacks_may_be_the_reason_the_fix_is_to_record_without_them(stacks):
    story = Story()
    for at in story.steps(4, 1000):
        for k in range(10):
            story.op("aten::add", at + 90 * k, 20)
            story.kernel("elementwise", at + 90 * k + 15, 50, launch_at=at + 90 * k + 10)
        if stacks:
            story.frame("train.py(3): step", at, 1000)
    finding = one(story, "overhead-bound")
    assert finding.fix.startswith("Record once more without Python stacks") == stacks
    assert finding.confidence == ("low" if stacks else "medium")


@pytest.mark.parametrize(("calls", "training_us"), [(2, 1100), (50, 790)])
def test_what_an_agent_does_before_it_trains_is_no_overhead_of_small_batches(calls, training_us):
    """A step of 9 ms calls some operators in its first 8 ms, then trains with six.

    Of two operators, milliseconds apart, the time between them is a simulation's.
    """
    story = Story(gpu=None)
    for at in story.steps(4, 9000):
        for k in range(calls):
            story.op("aten::add", at + 100 + 7000 * k / calls, 10)
        case_wasted.train_on(story, at + 8000, 1)
    finding = one(story, "small-batches")
    assert finding.time_us == pytest.approx(4 * training_us * 7 / 8, rel=0.1)


def pausing(*stack):
    """Steps of 1 ms, of which 900 us show these frames, the innermost first, and no operator."""
    story = Story(gpu=None)
    for at in story.steps(4, 1000):
        story.op("aten::mm", at, 50)
        story.op("aten::mm", at + 950, 50)
    return samples(story, [list(stack)] * 80, every=50)


LINE = "train.py(30): step |mean = np.mean(self.recent)"


def test_what_takes_the_time_on_a_line_is_named():
    finding = one(pausing("numpy/_core/_methods.py(112): _mean |arr = asanyarray(a)", LINE), "between-steps-gap")
    assert "100% in _methods.py(112): _mean: arr = asanyarray(a)" in finding.cause
    assert "item by item" in finding.fix


def test_a_line_that_goes_through_items_itself_is_to_keep_a_running_result():
    finding = one(pausing("train.py(30): step |mean = sum(x for x in self.recent) / n"), "between-steps-gap")
    assert "running result" in finding.fix
    assert "Of the samples at that line" not in finding.cause, "no function lies below it"


INDEX = ("pandas/core/indexing.py(1170): __getitem__ |return self._getitem_axis(key, axis=axis)",)


@pytest.mark.parametrize(
    ("line", "below", "advice"),
    [
        ("ids = [self.words.index(word) for word in words]", (), "make a dict"),
        ("x = rows[i] if done else torch.tensor(rows[i : i + 50])", (), "torch.tensor reads lists number by number"),
        ("x = mytorch.tensor(rows)", (), ""),
        ("ids = [self.words.index(word) for word in words]", ("numpy/strings.py(4): index |return _index(a)",), ""),
        ("ids = [self.place_of_index(word) for word in words]", (), ""),
        ("self.states = np.concatenate([self.states, state[None]])", (), "copies all that was joined so far"),
        ("self.seen = torch.cat((self.seen, x), 1)", (), "copies all that was joined so far"),
        ("x = np.concatenate([x, padding])", (), ""),
        ("table[key] = np.append(table[key], row)", (), "copies all that was joined so far"),
        ("self.states = np.concatenate([other.states, state])", (), ""),
        ("self.x = np.concatenate([self.x2, y])", (), ""),
        ("self.x = np.concatenate([self.x[1:], y])", (), ""),
        ("row = self.frame.iloc[i]", INDEX, "frame.to_numpy()"),
        ("row = self.frame.iloc[i]", ("numpy/core/records.py(9): __getitem__ |return x",), ""),
    ],
)
def test_a_line_that_makes_a_known_slow_call_has_its_own_advice(line, below, advice):
    own = f"train.py(30): step |{line}"
    known = (
        "make a dict",
        "torch.tensor reads lists number by number",
        "copies all that was joined so far",
        "frame.to_numpy()",
    )
    loading = one(case_batches.in_own_process(us=600, frame=own, below=below), "dataloader-wait")
    for finding in (one(pausing(*below, own), "between-steps-gap"), loading):
        assert [one for one in known if one in finding.fix] == [advice][: bool(advice)]
        assert f"train.py(30): step: {line}" in finding.cause


def test_a_line_that_says_nothing_gets_the_general_advice():
    finding = one(pausing("train.py(30): step |self.device.poll()"), "between-steps-gap")
    assert finding.fix.startswith("Make that line cheaper or run it less often")
    assert "record_function" not in finding.fix, "the line is known"


@pytest.mark.parametrize("call", ["__or__", "__call__"])
def test_a_package_with_a_vocabulary_computes_where_it_is_called(call):
    folder = VOCABULARIES[0].folder if VOCABULARIES else pytest.skip("no package offers a vocabulary")
    inside = f"{folder}/wave.py(88): {call} |return self.then(other)"
    assert not found(pausing(inside, LINE), "between-steps-gap")
    reading = "soundfile.py(99): read |data = self._read()"
    assert found(pausing(reading, inside, LINE), "between-steps-gap"), "it reads a file there"


@pytest.mark.parametrize(
    ("calls", "said", "advised"), [(1, "trains on 1 row", "larger batch size"), (16, "16 times with 1 row", "vmap")]
)
def test_a_loop_over_samples_is_not_a_small_batch(calls, said, advised):
    story = Story(gpu=None)
    for step, at in enumerate(story.steps(4, 4000)):
        for k in range(3 * calls):
            number, width = 100 * step + k, 64 + k % 3
            shapes = [[1, width], [64, width], [64]]
            story.op("aten::linear", at + 10 + 30 * k, 5, Input_Dims=shapes, Sequence_number=number)
            story.op(
                "autograd::engine::evaluate_function: AddmmBackward0",
                at + 1700 + 30 * k,
                5,
                Sequence_number=number,
                Fwd_thread_id=1,
            )
        story.note("Optimizer.step#SGD.step", at + 3600, 200)
    finding = one(story, "small-batches")
    assert said in finding.title
    assert advised in finding.fix


@pytest.mark.parametrize(
    ("cell", "module"), [("gru", "GRU"), ("lstm", "LSTM"), ("rnn_tanh", "RNN"), ("rnn_relu", "RNN")]
)
def test_a_loop_over_recurrent_cells_becomes_one_call_at_the_line_that_calls_them(cell, module):
    story = Story(gpu=None)
    for at in story.steps(3, 10_000):
        story.frame("net.py(9): forward", at + 5, 9000)
        for k in range(60):
            story.op("aten::select", at + 10 + 100 * k, 5, Input_Dims=[[8, 60, 4], [], []])
            story.op(f"aten::{cell}_cell", at + 20 + 100 * k, 80)
    places = [["net.py(12): forward | h = self.cell(x[:, t], h)"]] * 1500
    found = one(samples(story, places, 20), "tensor-for-loop")
    assert f"Call nn.{module} once, with the whole sequence" in found.fix
    assert "whole tensor" not in found.fix
    assert found.evidence[0].name == f"aten::{cell}_cell"
    assert found.evidence[0].stack[0] == "net.py(12): forward"


def test_a_loop_that_does_more_than_recurrent_cells_gets_the_general_advice():
    story = case_tensor_loops.over_rows(256, per_round=("aten::gru_cell", "aten::mul", "aten::mean"))
    assert "Compute on the whole tensor" in one(story, "tensor-for-loop").fix


def test_a_line_of_a_script_is_in_the_fix():
    finding = one(case_contents.a_script_without_functions_runs_a_frozen_module(), "computed-again")
    assert finding.fix.endswith("its features. See line 20 of train.py.")


@pytest.mark.parametrize("compiled_us", [0, 10, 400, 600, 1000])
def test_replaying_compiled_parts_is_advised_where_the_device_waits_for_these(compiled_us):
    """In a program that compiles a hundredth of what it calls, it would gain nothing."""
    story = Story()
    story.op("aten::mm", 0, 1000)
    if compiled_us:
        story.op("Torch-Compiled Region: 0/0", 0, compiled_us)
    advice = fewer_launches(story.trace(), Intervals.union([0], [1_000_000]))
    assert ("the compiled parts" in advice) == (compiled_us > 500)


@pytest.mark.parametrize(("trained", "severity"), [(True, "info"), (False, "low")])
def test_dropout_of_what_is_trained_is_no_fault(trained, severity):
    finding = one(case_processor.drops(trained), "cpu-hotspot")
    assert finding.severity == severity
    assert ("dropout2d" in finding.fix) == trained
