"""The numbers of findings about copies and kernels: what is counted, and what isn't."""

import pytest

from profiler.rules import case_compute_kernels as kernels
from profiler.rules import case_compute_products as products
from profiler.rules import case_copies as copies
from profiler.rules import case_memory as memory
from torchfx.profiler.rules.catalogue import find_rule


def only(slug, story, **thresholds):
    (finding,) = find_rule(slug).check(story.trace(), thresholds)
    return finding


@pytest.mark.parametrize(
    ("slug", "story", "time_us"),
    [
        ("pageable-copy", copies.batches_from_pageable_memory, 4 * 200),
        ("transfer-share", copies.an_eighth_of_the_time_in_copies, 4 * 130),
        ("sync-copy", copies.the_waiting_call_of_rocm, 4 * 180),
        ("device-ping-pong", copies.to_the_host_and_back, 4 * 2 * 60),
        ("hidden-dtod-before-gemm", copies.a_bias_of_a_compiled_product, 4 * 33),
        ("out-of-place-clone", copies.masked_fill_copies_its_input, 4 * 100),
        ("dtod-volume", copies.much_is_concatenated, 4 * 200),
        ("create-on-cpu-then-copy", copies.zeros_and_then_to, 4 * (40 + 60)),
        ("fp32-matmul-no-tc", products.single_precision_on_an_a100, 4 * 800),
        ("fp64", products.products_in_double, 4 * 300),
        ("unfused-attention", products.by_hand, 4 * 3 * 90),
        ("elementwise-chain", kernels.add_multiply_activate, 4 * 400),
        ("elementwise-chain", kernels.add_multiply_tanh_on_the_cpu, 3 * 3 * 190),
        ("small-grid", kernels.a_quarter_of_the_multiprocessors, 4 * 900 * 0.75),
        ("recompute-share", kernels.a_layer_computed_twice, 3 * 400),
        ("recompute-share", kernels.as_its_frames_tell, 3 * 400),
        ("streams-serial", kernels.one_stream_after_the_other, 4 * 400),
        # Of six times the median is 582.5; above it are 1084, 1050 and 585.
        ("same-kernel-varies", kernels.one_step_in_five_is_twice_as_slow, 1084 + 1050 + 585 - 3 * 582.5),
        # 2 * 4096 * 1024 * 4096 operations at 312 TFLOPS, and 70 % of that as the aim.
        ("low-roofline", kernels.a_product_at_a_tenth_of_the_peak, 4 * (1100 - 110.13 / 0.7)),
        ("memory-creep", memory.a_list_of_losses, 0),
    ],
)
def test_time_at_stake(slug, story, time_us):
    assert only(slug, story()).time_us == pytest.approx(time_us, rel=1e-3)


def test_copies_under_kernels_are_not_counted():
    """Half of each copy runs beside a kernel."""
    story = copies.batches_from_pageable_memory()
    for i in range(4):
        story.kernel(copies.GEMM, 1000 * i + 150, 100, launch_at=1000 * i + 30, stream=9)
    assert only("pageable-copy", story).time_us == pytest.approx(4 * 100)


def test_pinning_is_advised_where_the_program_needs_it():
    assert "pin_memory=True" in only("pageable-copy", copies.batches_from_pageable_memory()).fix
    fetched = copies.copying("DtoH (Device -> Pageable)", 2_000_000, 200)
    assert "DataLoader" not in only("pageable-copy", fetched).fix


def test_advice_fits_the_device():
    ampere = only("fp32-matmul-no-tc", products.single_precision_on_an_a100()).fix
    volta = only("fp32-matmul-no-tc", products.single_precision_on_a_v100()).fix
    assert "set_float32_matmul_precision" in ampere
    assert "float16" in volta
    assert "bfloat16" not in volta
    assert "set_float32_matmul_precision" not in volta


def test_dimensions_are_named():
    assert "30522 (pad to 30528)" in only("misaligned-dims", products.a_vocabulary_of_30522()).cause


def test_a_device_that_waits_for_launches_lowers_the_severity():
    """The same kernels, launched one after another only when the one before has ended."""
    assert only("fp32-matmul-no-tc", products.single_precision_on_an_a100()).severity == "high"
    late = products.Story()
    for i in range(8):
        late.step(i, 1000 * i, 1000)
        late.kernel(products.SGEMM, 1000 * i + 100, 700, launch_at=1000 * i + 50)
    finding = only("fp32-matmul-no-tc", late)
    assert finding.severity == "low"
    assert "the host comes first" in finding.cause


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
    assert only("pageable-copy", story).time_us == pytest.approx(4 * 200)


def test_only_kernels_with_a_share_of_their_own_count_as_small():
    """A second small kernel with 2 % of the time is left out."""
    story = kernels.steps((kernels.HALF, 900, kernels.grid(0.25, 10)), (kernels.GELU, 18, kernels.grid(0.1, 5)))
    finding = only("small-grid", story)
    assert [item.name for item in finding.evidence] == [kernels.HALF]
    assert "0.25 blocks" in finding.title


def test_chains_beside_compiled_regions_are_told_so():
    story = kernels.steps((kernels.HALF, 300), (kernels.ADD, 200), (kernels.MUL, 200), (kernels.GELU, 200))
    assert "widen" not in only("elementwise-chain", story).fix
    story.kernel("triton_poi_fused_add_0", 1500, 10, launch_at=1400)
    assert "widen" in only("elementwise-chain", story).fix


def test_copies_of_gradients_into_buckets():
    """Those are made while gradients accumulate, in a program that communicates."""
    story = copies.Story()
    for i in range(4):
        at = 1000 * i
        story.step(i, at, 1000)
        story.op("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", at + 10, 50)
        story.copy("DtoD (Device -> Device)", at + 100, 200, 100_000_000, launch_at=at + 20)
        story.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL(args)", at + 300, 100, launch_at=at + 70, stream=9)
    assert "gradient_as_bucket_view=True" in only("dtod-volume", story).fix


def test_advice_for_slow_products_fits_their_sizes():
    odd = kernels.shaped("aten::mm", kernels.HALF, 1100, [[4096, 1000], [1000, 4096]])
    assert "multiples of 64" in only("low-roofline", odd).fix
    assert "multiples of 64" not in only("low-roofline", kernels.a_product_at_a_tenth_of_the_peak()).fix
