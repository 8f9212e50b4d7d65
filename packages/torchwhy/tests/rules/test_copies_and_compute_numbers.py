"""The numbers of findings about copies and kernels: what is counted, and what isn't."""

import pytest

from tests.rules import case_compute_kernels as kernels
from tests.rules import case_compute_products as products
from tests.rules import case_copies as copies
from tests.rules import case_distributed as distributed
from tests.rules import case_memory as memory
from tests.rules import case_processor as processor
from tests.rules import case_wasted as wasted
from tests.traces import Story
from torchwhy.rules.catalogue import find_rule
from torchwhy.rules.vendor import counters_of


def only(slug, story, **thresholds):
    (finding,) = find_rule(slug).check(story.trace(), thresholds)
    return finding


@pytest.mark.parametrize(
    ("slug", "story", "time_us"),
    [
        # From pinned memory 2 MB take 80 us at 25 GB/s.
        ("pageable-copy", copies.batches_from_pageable_memory, 4 * (200 - 80)),
        # The kernel begins at 180 us; without the copy 5 us after its launch, which returns at 63 us.
        ("transfer-share", copies.an_eighth_of_the_time_in_copies, 4 * (180 - 68)),
        ("sync-copy", copies.the_waiting_call_of_rocm, 4 * 170),
        # Without the copies the kernels wait for their launches for 15 us.
        ("device-ping-pong", copies.to_the_host_and_back, 4 * (2 * 60 - 15)),
        ("hidden-dtod-before-gemm", copies.a_bias_of_a_compiled_product, 0),
        ("out-of-place-clone", copies.masked_fill_copies_its_input, 4 * 100),
        ("dtod-volume", copies.much_is_concatenated, 4 * 200),
        ("create-on-cpu-then-copy", copies.zeros_and_then_to, 4 * (40 + 60)),
        # TF32 has 156 TFLOPS on an A100, float32 19.5.
        ("fp32-matmul-no-tc", products.single_precision_on_an_a100, 4 * 800 * 7 / 8),
        ("tf32-not-16bit", products.products_in_tf32, 4 * 800 / 2),
        # 19.5 TFLOPS in float64 on an A100, 156 in TF32.
        ("fp64", products.products_in_double, 4 * 300 * 7 / 8),
        # Without shapes: half of both products' 180 us remains; and a third of 4 us between the kernels.
        ("unfused-attention", products.by_hand, 4 * (3 * 90 + 4) * 2 / 3),
        ("elementwise-chain", kernels.add_multiply_activate, 4 * 400),
        ("elementwise-chain", kernels.add_multiply_tanh_on_the_cpu, 3 * 3 * 190),
        ("small-grid", kernels.a_quarter_of_the_multiprocessors, 4 * 900 * 0.75),
        ("recompute-share", kernels.a_layer_computed_twice, 0),
        ("streams-serial", kernels.one_stream_after_the_other, 4 * 400),
        # Of six times the median is 582.5; above it are 1084, 1050 and 585.
        ("same-kernel-varies", kernels.one_step_in_five_is_twice_as_slow, 1084 + 1050 + 585 - 3 * 582.5),
        # 2 * 4096 * 1024 * 4096 operations at 312 TFLOPS, and 70 % of that as the aim.
        ("low-roofline", kernels.a_product_at_a_tenth_of_the_peak, 4 * (1100 - 110.13 / 0.7)),
        ("memory-creep", memory.a_list_of_losses, 0),
        # 196608 floats, read and written, at 3 GB/s take 524 us of 7999.
        ("starved-threads", processor.eight_milliseconds_for_a_megabyte, 20 * (7999 - 524.3)),
        ("cpu-exposed-comm", distributed.gloo_after_the_work, 4 * 570),
    ],
)
def test_time_at_stake(slug, story, time_us):
    assert only(slug, story()).time_us == pytest.approx(time_us, rel=1e-3)


def test_copies_under_kernels_are_not_counted():
    """Half of each copy runs beside a kernel, and of the other one 20 us are left of what pinned memory saves."""
    story = copies.batches_from_pageable_memory()
    for i in range(4):
        story.kernel(copies.GEMM, 1000 * i + 150, 100, launch_at=1000 * i + 30, stream=9)
    assert only("pageable-copy", story).time_us == pytest.approx(4 * 20)


def test_a_full_allocator_is_told_by_what_it_has_reserved():
    story = memory.steps(2**30, back=2**30, start=20 * 2**30, reserved=79 * 2**30)
    assert only("peak-memory", story).title.endswith("99% of its memory reserved (84.8 GB of 85.9 GB)")


def test_pinning_is_advised_where_the_program_needs_it():
    assert "pin_memory=True" in only("pageable-copy", copies.batches_from_pageable_memory()).fix
    fetched = copies.few_outputs_go_to_pageable_memory()
    assert "DataLoader" not in only("pageable-copy", fetched).fix


@pytest.mark.parametrize(
    ("others", "asks"),
    [((), False), ((("aten::mul", "long int"),), False), ((("aten::add", "float"),), True),
     ((("aten::linear", "double"),), True), ((("aten::embedding", "double"),), True)],
)  # fmt: skip
def test_double_precision_alone_without_layers_is_a_choice(others, asks):
    assert (only("fp64", products.solving(*others)).severity != "info") == asks


def test_advice_fits_the_device():
    ampere = only("fp32-matmul-no-tc", products.single_precision_on_an_a100()).fix
    volta = only("fp32-matmul-no-tc", products.single_precision_on_a_v100()).fix
    assert "set_float32_matmul_precision" in ampere
    assert "float16" in volta
    assert "bfloat16" not in volta
    assert "set_float32_matmul_precision" not in volta


def test_dimensions_are_named():
    assert "30522 (pad to 30528)" in only("misaligned-dims", products.a_vocabulary_of_30522()).cause


def test_a_small_product_of_known_size_says_nothing_of_large_ones():
    name = "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_256x128_64x3_tn_align2>(Params)"
    story = Story()
    for at in story.steps(4, 2000, waits=True):
        story.op("aten::mm", at + 5, 9, **{"Input Dims": [[64, 62], [62, 30]], "Input type": ["c10::BFloat16"] * 2})
        story.kernel(name, at + 100, 20, launch_at=at + 6)
        story.kernel(name, at + 130, 800, launch_at=at + 20)
    assert only("misaligned-dims", story).time_us == pytest.approx(4 * (20 + 800 / 2), rel=0.03)


def test_a_device_that_waits_for_launches_lowers_the_severity():
    """The same kernels, launched one after another only when the one before has ended."""
    assert only("fp32-matmul-no-tc", products.single_precision_on_an_a100()).severity == "high"
    late = products.Story()
    for i in range(20):
        late.step(i, 1000 * i, 1000)
        late.kernel(products.SGEMM, 1000 * i + 100, 700, launch_at=1000 * i + 50)
    finding = only("fp32-matmul-no-tc", late)
    assert finding.severity == "low"
    assert "the device waits for the host" in finding.cause


def test_a_budget_of_kernels_can_be_a_threshold():
    assert not list(find_rule("kernel-budget").check(kernels.nothing_declared().trace()))
    finding = only("kernel-budget", kernels.nothing_declared(), kernels_per_step=3)
    assert "2 kernels instead of 3" in finding.title


def test_slow_pinned_copies_lose_what_the_bus_could_do():
    """1 MB in 300 us is 3.33 GB/s of 18 / 0.7 on an A100's bus."""
    finding = only("low-bandwidth", copies.pinned_but_slow())
    assert finding.time_us == pytest.approx(4 * 300 * (1 - (1000 / 300) / (18 / 0.7)), rel=1e-3)


def test_an_exporter_that_names_every_copy_memcpy():
    """Way and memory are arguments then."""
    story = copies.batches_from_pageable_memory()
    for event in story.events:
        if event["cat"] == "gpu_memcpy":
            event["name"] = "Memcpy"
            event["args"] |= {"copy kind": "HtoD", "src kind": "Pageable", "dst kind": "Device"}
    assert only("pageable-copy", story).time_us == pytest.approx(4 * (200 - 80))


@pytest.mark.parametrize(("name", "pageable"), [("M2D (MEMORY(Unknown) -> DEVICE)", 1), ("H2D (HOST -> DEVICE)", 0)])
def test_intels_names_of_copies(name, pageable):
    """M is memory the driver doesn't know; H it has allocated itself."""
    story = copies.copying(name, 2_000_000, 200)
    assert len(list(find_rule("pageable-copy").check(story.trace()))) == pageable
    others = [one.time_us for one in find_rule("transfer-share").check(story.trace())]
    assert others == ([] if pageable else [pytest.approx(4 * (250 - 68))])


def test_only_kernels_with_a_share_of_their_own_count_as_small():
    """A second small kernel with 2 % of the time is left out."""
    story = kernels.steps((kernels.HALF, 900, kernels.grid(0.25, 10)), (kernels.GELU, 18, kernels.grid(0.1, 5)))
    finding = only("small-grid", story)
    assert [item.name for item in finding.evidence] == [kernels.HALF]
    assert "use 25% of the GPU" in finding.title


def test_chains_beside_compiled_regions_are_told_so():
    story = kernels.steps((kernels.HALF, 300), (kernels.ADD, 200), (kernels.MUL, 200), (kernels.GELU, 200))
    assert "extend" not in only("elementwise-chain", story).fix
    story.kernel("triton_poi_fused_add_0", 1500, 10, launch_at=1400)
    assert "extend" in only("elementwise-chain", story).fix


def test_copies_of_gradients_into_buckets():
    """Those are made while gradients accumulate, in a program that communicates."""
    story = copies.Story()
    for at in story.steps(4, 1000, waits=True):
        story.op("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", at + 10, 50)
        story.copy("DtoD (Device -> Device)", at + 100, 200, 100_000_000, launch_at=at + 20)
        story.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL(args)", at + 300, 100, launch_at=at + 70, stream=9)
    assert "gradient_as_bucket_view=True" in only("dtod-volume", story).fix


def test_advice_for_slow_products_fits_their_sizes():
    odd = kernels.shaped("aten::mm", kernels.HALF, 1100, [[4096, 1000], [1000, 4096]])
    assert "multiples of 64" in only("low-roofline", odd).fix
    assert "multiples of 64" not in only("low-roofline", kernels.a_product_at_a_tenth_of_the_peak()).fix


def test_why_attention_falls_back_depends_on_the_device():
    """On the CPU the fused implementation takes float32, but no dropout."""
    names = ("aten::bmm", "aten::_softmax", "aten::dropout", "aten::bmm")
    outer = "aten::_scaled_dot_product_attention_math"
    here = only("sdpa-math-backend", products.attention(*names, gpu=False, outer=outer))
    there = only("sdpa-math-backend", products.attention(*names, outer=outer))
    assert ("float32" in here.cause, "float32" in there.cause) == (False, True)
    assert "dropout_p" in here.cause
    assert [item.name for item in here.evidence] == [outer]


def test_advice_about_growing_memory_fits_its_place():
    assert "torch.cuda" in only("memory-creep", memory.a_list_of_losses()).fix
    assert "torch.cuda" not in only("memory-creep", memory.a_list_on_the_host()).fix


def test_memory_that_the_profiler_may_hold_is_less_sure():
    """With record_shapes=True it keeps what torch.func's transforms wrap; there is no optimizer then."""
    story = memory.a_list_on_the_host()
    story.top["record_shapes"] = 1
    story.op("autograd::engine::evaluate_function: MmBackward0", 40, 10)
    assert only("memory-creep", story).confidence == "low"
    story.note("Optimizer.step#SGD.step", 55, 10)
    assert only("memory-creep", story).confidence == "medium"


def test_collectives_at_one_time_take_it_once():
    story = distributed.gloo_after_the_work()
    for i in range(4):
        story.note("gloo:all_reduce", 1000 * i + 500, 480, tid=201)
    finding = only("cpu-exposed-comm", story)
    assert sum(item.time_us for item in finding.evidence) == pytest.approx(finding.time_us) == 4 * 570


def test_a_product_in_16_bits_on_tensor_cores_is_not_told_to_become_one():
    half, single = (kernels.steps((name, 700), (kernels.ADD, 100)) for name in (kernels.HALF, products.SGEMM))
    assert "in 16 bits already" in only("hotspot", half).fix
    assert "16 bits on tensor cores?" in only("hotspot", single).fix


def test_stages_of_a_pipeline_are_advised_about_stages():
    story = distributed.exchange((50, 400), (500, 300))
    assert "pipeline" not in only("exposed-comm", story).fix
    for event in story.events:
        if "Collective name" in event["args"]:
            event["args"]["Collective name"] = "recv"
    assert "micro-batches" in only("exposed-comm", story).fix


def copies_within(*above, types=("float", "float")):
    """Copies of 400 us in every step inside these operators, the outermost first."""
    story = processor.program([(above[0], 400, 2), ("aten::mm", 200, 2)])
    for i in range(3):
        for depth, name in enumerate((*above[1:], "aten::copy_"), 1):
            dims = {"Input Dims": [[512, 512], [512, 512], []], "Input type": [*types, "Scalar"]}
            story.op(name, 606 * i + depth, 400 - 2 * depth, **dims)
    return story


def test_copies_are_laid_at_the_door_of_what_the_program_says():
    found = only("cpu-copies", copies_within("aten::contiguous", "aten::clone"))
    assert "aten::contiguous" in found.cause
    assert "clone" not in found.fix
    assert "aten::clone" in only("cpu-copies", copies_within("aten::clone")).cause


def test_conversions_to_16_bits_are_not_blamed_on_loading():
    halves = only("cpu-copies", copies_within("aten::to", "aten::_to_copy", types=("c10::BFloat16", "float")))
    assert "autocast" in halves.fix
    assert "when data is loaded" not in halves.fix
    doubles = only("cpu-copies", copies_within("aten::to", "aten::_to_copy", types=("float", "double")))
    assert "when data is loaded" in doubles.fix


def test_conversions_of_what_needs_gradients_are_not_blamed_on_loading():
    story = processor.conversions_in_every_step()
    for event in story.events:
        event["args"].pop("Input type", None)
    assert "when data is loaded" in only("cpu-copies", story).fix
    story.op("autograd::engine::evaluate_function: ToCopyBackward0", 900, 10, tid=7)
    assert "autocast" in only("cpu-copies", story).fix


def test_chains_that_overlap_or_reach_beyond_the_window_cost_no_more_than_it():
    story = kernels.add_multiply_tanh_on_the_cpu()
    for event in story.events:
        if event["cat"] == "cpu_op" and event["ts"] > 2300:
            event["dur"] = 10**9
    trace = story.trace()
    (found,) = find_rule("elementwise-chain").check(trace)
    assert 0 < found.time_us <= trace.window.us


def test_chains_on_several_streams_at_once_cost_that_time_once():
    story = kernels.add_multiply_activate()
    alone = only("elementwise-chain", story).time_us
    again = kernels.add_multiply_activate()
    for event in [dict(event) for event in again.events if event["cat"] in ("kernel", "cuda_runtime")]:
        event["args"] = {**event["args"], "correlation": event["args"]["correlation"] + 10_000}
        if event["cat"] == "kernel":
            event["args"]["stream"] = event["tid"] = 9
        again.events.append(event)
    assert alone <= only("elementwise-chain", again).time_us <= 4 * 600


def test_attention_in_no_time_at_all_costs_none():
    story = Story()
    for name in ("aten::bmm", "aten::_softmax", "aten::bmm"):
        story.op(name, 10, 0)
    story.kernel(products.HALF, 20, 100, launch_at=12)
    assert list(find_rule("unfused-attention").check(story.trace())) == []


def trained_attention(gpu, numbered=True):
    """Four steps: attention in 300 us forward, its three nodes in 540 us backward, and another layer's node.

    On a device the host is soon done and waits: its nodes take 9 us each.
    """
    story = products.attention("aten::bmm", "aten::_softmax", "aten::bmm", gpu=gpu, us=100)
    story.events = [event for event in story.events if event["name"] != "cudaStreamSynchronize"]
    operators = [event for event in story.events if event["cat"] == "cpu_op"]
    for i, event in enumerate(operators):
        event["args"] |= {"Sequence number": i} if numbered else {}
        step, place = divmod(i, 3)
        at, us = (1000 * step + 70 - 10 * place, 9) if gpu else (1000 * step + 700 - 180 * place, 179)
        name = event["name"].removeprefix("aten::").strip("_").capitalize()
        numbers = {"Sequence number": i, "Fwd thread id": 1} if numbered else {}
        story.op(f"autograd::engine::evaluate_function: {name}Backward0", at, us, tid=200, **numbers)
        if gpu:
            story.kernel("bmm_backward", 1000 * step + 710 - 160 * place, 150, launch_at=at + 5, tid=200)
    for step in range(4):
        at, node = 1000 * step + (36 if gpu else 306), 1000 * step + (40 if gpu else 901)
        story.op("aten::relu", at, 3, **({"Sequence number": 100 + step} if numbered else {}))
        numbers = {"Sequence number": 100 + step, "Fwd thread id": 1} if numbered else {}
        story.op("autograd::engine::evaluate_function: ReluBackward0", node, 9, tid=200, **numbers)
        if gpu:
            story.kernel("relu_backward", 1000 * step + 350, 30, launch_at=node + 5, tid=200)
            story.call("cudaStreamSynchronize", 1000 * step + 80, 781)
    return story


@pytest.mark.parametrize(("gpu", "forward", "backward"), [(True, 3 * 90, 3 * 150), (False, 299, 3 * 179)])
def test_attention_costs_its_backward_pass_too(gpu, forward, backward):
    """Without shapes half of the products' time remains on a device."""
    kept = (180 + 450) / 2 if gpu else 0
    assert only("unfused-attention", trained_attention(gpu)).time_us == pytest.approx(4 * (forward + backward - kept))


@pytest.mark.parametrize(("gpu", "forward"), [(True, 3 * 90), (False, 299)])
def test_a_backward_pass_that_nothing_ties_to_attention_is_not_counted(gpu, forward):
    kept = 180 / 2 if gpu else 0
    found = only("unfused-attention", trained_attention(gpu, numbered=False))
    assert found.time_us == pytest.approx(4 * (forward - kept), rel=0.02)  # between kernels a device takes a moment


@pytest.mark.parametrize(("long", "short", "advised"), [("float", "double", False), ("double", "float", True)])
def test_float64_is_blamed_for_what_it_takes_and_not_for_how_often_it_is_called(long, short, advised):
    story = Story(gpu=None)
    for i in range(12):
        story.op("aten::sub", 10 * i, 5, **{"Input Dims": "[[], []]", "Input type": f'["{short}", "{short}"]'})
    for i in range(3):
        dims = {"Input Dims": "[[16, 44100], [16, 44100]]", "Input type": f'["{long}", "{long}"]'}
        story.op("aten::sub", 1000 + 3000 * i, 2900, **dims)
    assert ("float32" in only("cpu-hotspot", story).fix) is advised


def test_three_steps_tell_less_surely_than_five_that_kernels_vary():
    assert only("same-kernel-varies", kernels.one_of_three_steps_is_twice_as_slow()).confidence == "low"
    assert only("same-kernel-varies", kernels.one_step_in_five_is_twice_as_slow()).confidence == "medium"


def test_a_kernel_that_varies_is_told_by_its_median_and_its_mean():
    story = Story()
    for at in story.steps(5, 4000):
        story.op("aten::mm", at, 20)
        story.kernel("ampere_sgemm_128x64_nn", at + 30, 3100 if at == 0 else 580, launch_at=at + 5)
    finding = only("same-kernel-varies", story)
    assert "580 us at the median, 1.08 ms on average, from 580 us to 3.10 ms" in finding.cause


@pytest.mark.parametrize("first", [0, 7, 100])
@pytest.mark.parametrize("slow", range(5))
def test_a_step_is_named_by_its_number(first, slow):
    story = Story()
    for i in range(5):
        story.step(first + i, 4000 * i, 4000)
        story.kernel("ampere_sgemm_128x64_nn", 4000 * i + 30, 3100 if i == slow else 580, launch_at=4000 * i + 5)
    assert f"most in step {first + slow}: " in only("same-kernel-varies", story).cause


def test_the_last_result_counts_though_its_slice_is_read_after_the_recording():
    story = wasted.the_last_position_is_read()
    whole = only("unread-result", story)
    del story.events[-1]  # what reads the slice in the last step
    assert only("unread-result", story).time_us == pytest.approx(whole.time_us)


@pytest.mark.parametrize(
    ("gpu", "kernel", "command"),
    [
        ("NVIDIA H100", "ampere_sgemm_128x64_nn", "ncu --set full -k ampere_sgemm_128x64_nn -c 1 python PROGRAM"),
        ("NVIDIA H100", "void at::native::(anonymous namespace)::softmax<float, f<int>>(int, float*)", "-k softmax -c"),
        ("NVIDIA H100", "void cutlass::Kernel2<cutlass_80_tensorop<3>>(Params)", "-k Kernel2 -c 1"),
        ("AMD Instinct MI300X", "attn_fwd.kd", "rocprof-compute profile -n attn_fwd -k attn_fwd -- python PROGRAM"),
        ("AMD Instinct MI300X", "Cijk_Alik_MT256", "-k Cijk_Alik_MT256 --"),
        ("NVIDIA H100", "odd; rm -rf", ""),
        ("NVIDIA H100", "", ""),
        ("Quadro GP100", "sgemm", ""),
    ],
)
def test_counters_are_read_for_the_function_of_a_kernel(gpu, kernel, command):
    found = counters_of(Story(gpu=gpu).trace(), kernel)
    assert command in found
    assert bool(command) == bool(found)


def test_what_an_operator_calls_counts_as_its_own():
    """Drawing by weights draws, divides and sorts: the program calls none of these itself."""
    story = Story(gpu=None)
    for at in story.steps(4, 4000):
        story.op("aten::multinomial", at + 10, 3000, Input_Dims=[[400_000], [], [], []])
        for i, name in enumerate(("exponential_", "div", "topk")):
            story.op(f"aten::{name}", at + 20 + 990 * i, 980, Input_Dims=[[400_000], [], []])
        story.op("aten::mm", at + 3100, 300, Input_Dims=[[8, 8], [8, 8]])
    found = only("cpu-hotspot", story)
    assert found.title.startswith("aten::multinomial takes 91%")
    assert "searchsorted" in found.fix
    assert found.severity == "medium"


@pytest.mark.parametrize(("us", "severity"), [(800, "low"), (500, "info")])
def test_from_half_of_the_operators_time_on_an_operator_is_told(us, severity):
    story = Story(gpu=None)
    for at in story.steps(4, 2000):
        story.op("aten::std", at + 10, us, Input_Dims=[[300_000, 40], [], [], []])
        for i, name in enumerate(("mm", "tanh", "add")):
            story.op(f"aten::{name}", at + 900 + 250 * i, 200, Input_Dims=[[8, 8], [8, 8]])
    found = only("cpu-hotspot", story)
    assert found.severity == severity
    assert "before the loop" in found.fix


def test_attention_that_drops_weights_out_on_the_cpu_is_a_choice():
    outer = "aten::_scaled_dot_product_attention_math"
    chosen = products.attention("aten::bmm", "aten::_softmax", "aten::dropout", "aten::bmm", gpu=False, outer=outer)
    plain = products.attention("aten::bmm", "aten::_softmax", "aten::bmm", gpu=False, outer=outer)
    assert (only("sdpa-math-backend", chosen).severity, only("sdpa-math-backend", plain).severity) == ("low", "high")


@pytest.mark.parametrize(
    ("mask", "trained", "severity"),
    [("float", True, "info"), ("float", False, "high"), ("bool", True, "high"), (None, True, "high")],
)
def test_a_learned_bias_of_attention_is_no_fault_on_the_cpu(mask, trained, severity):
    story, shape = Story(gpu=None), [2, 8, 128, 64]
    for at in story.steps(4, 1000):
        dims = [shape] * 3 + ([[2, 8, 128, 128]] if mask else [])
        kinds = ["float"] * 3 + ([mask] if mask else [])
        story.op("aten::_scaled_dot_product_attention_math", at + 2, 500, **{"Input Dims": dims, "Input type": kinds})
        given = {"Sequence number": 7 + at, "Fwd thread id": 0} if trained else {}
        story.op("aten::bmm", at + 10, 400, **given)
        if trained:
            given = {"Sequence number": 7 + at, "Fwd thread id": 1}
            story.op("autograd::engine::evaluate_function: BmmBackward0", at + 600, 300, **given)
    assert only("sdpa-math-backend", story).severity == severity


def decomposed(name, given, dims):
    """Steps of one decomposition."""
    story = Story(gpu=None)
    for at in story.steps(4, 20_000):
        story.op(name, at + 10, 19_000, Input_Dims=[dims, [], []], **{"Concrete Inputs": ["", given, ""]})
    return story


@pytest.mark.parametrize(
    ("name", "given", "dims", "advised"),
    [
        ("aten::linalg_svd", "True", [4000, 80], True),
        ("aten::linalg_svd", "True", [80, 4000], True),
        ("aten::linalg_qr", "complete", [8, 4000, 80], True),
        ("aten::linalg_svd", "False", [4000, 80], False),
        ("aten::linalg_svd", "True", [100, 80], False),
        ("aten::linalg_qr", "reduced", [4000, 80], False),
    ],
)
def test_factors_completed_to_square_matrices_are_advised_against(name, given, dims, advised):
    assert ("full_matrices=False" in only("cpu-hotspot", decomposed(name, given, dims)).fix) == advised


@pytest.mark.parametrize("trained", [False, True])
def test_a_decomposition_without_a_gradient_may_be_kept(trained):
    story = Story(gpu=None)
    for step, at in enumerate(story.steps(4, 20_000)):
        story.op("aten::linalg_eigh", at + 10, 15_000, Input_Dims=[[300, 300], []], Sequence_number=step)
        node = "autograd::engine::evaluate_function: LinalgEighBackward0"
        if trained:
            story.op(node, at + 16_000, 50, Sequence_number=step, Fwd_thread_id=1)
    assert only("cpu-hotspot", story).fix.startswith("Where its matrix doesn't change from step to step") != trained


@pytest.mark.parametrize(("filled", "advised"), [([512, 256], True), ([512, 255], False)])
def test_weights_that_are_filled_again_belong_before_the_loop(filled, advised):
    story = Story(gpu=None)
    for at in story.steps(4, 20_000):
        story.op("aten::uniform_", at + 10, 15_000, Input_Dims=[filled, [], [], []])
        story.op("aten::linear", at + 16_000, 2_000, Input_Dims=[[8, 256], [512, 256], [512]])
    assert ("Build the model once" in only("cpu-hotspot", story).fix) == advised
