"""What operators need by their shapes, and what is said of those that take longer."""

import pytest

from tests.rules.case_compute_kernels import ADD, HALF, shaped
from tests.traces import Story
from torchwhy.rules.catalogue import find_rule
from torchwhy.trace.derived.convolutions import convolution_output
from torchwhy.trace.derived.flops import flops_of
from torchwhy.trace.peaks import Peaks, peaks_for, peaks_of

CONVOLUTION = "sm80_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize128x128x32_kernel_cudnn"


def found_in(story, slug="low-roofline"):
    trace = story if not isinstance(story, Story) else story.trace()
    return list(find_rule(slug).check(trace))


@pytest.mark.parametrize(
    ("name", "sizes", "operations"),
    [
        ("aten::mv", [(64, 32), (32,)], 2 * 64 * 32),
        ("aten::_grouped_mm", [(100, 32), (4, 32, 16), (4,)], 2 * 100 * 32 * 16),
        ("aten::_grouped_mm", [(32, 100), (100, 16), (4,)], 2 * 32 * 100 * 16),  # a gradient: groups along the sum
        ("aten::_grouped_mm", [(4, 8, 32), (4, 32, 16)], 4 * 2 * 8 * 32 * 16),
        ("aten::_scaled_grouped_mm", [(100, 32), (4, 32, 16), (100,), (4, 16), (4,)], 2 * 100 * 32 * 16),
        ("vllm::inplace_fused_experts", [(10, 64), (8, 256, 64), (8, 64, 128), (10, 2), (10, 2)],
         2 * 10 * 2 * (256 * 64 + 64 * 128)),
        ("aten::_flash_attention_forward", [(2, 128, 8, 64)] * 3, 4 * 2 * 8 * 128 * 128 * 64),
        ("flash_attn::_flash_attn_forward", [(2, 128, 8, 64)] * 3, 4 * 2 * 8 * 128 * 128 * 64),
        ("aten::_scaled_dot_product_flash_attention_backward", [(2, 8, 128, 64)] * 5, 10 * 2 * 8 * 128 * 128 * 64),
        ("aten::convolution_backward", [(8, 16, 30, 30), (8, 3, 32, 32), (16, 3, 3, 3)], 2 * 2 * 8 * 16 * 900 * 27),
    ],
)  # fmt: skip
def test_operations_by_shapes(name, sizes, operations):
    assert flops_of(name, sizes)[0] == operations


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("aten::mm", [(64, 32), (33, 16)]),
        ("aten::convolution", [(8, 3, 32, 32), (16, 3, 3, 3)]),  # its stride isn't known
        ("aten::_flash_attention_forward", [(1000, 8, 64)] * 3),  # examples of several lengths in one tensor
        ("aten::_grouped_mm", [(100, 32), (4, 33, 16), (4,)]),
        ("vllm::moe_forward", [(10, 64), (10, 8)]),
        ("aten::add", [(64, 32), (64, 32)]),
    ],
)
def test_silent_where_shapes_do_not_tell(name, sizes):
    assert flops_of(name, sizes) is None


def convolutions(*, backward=False, bias=False, follower="aten::batch_norm", us=400):
    """Four steps with a convolution of 64 channels and stride 2, whose result is 56 x 56."""
    story = Story()
    dims = {"Input Dims": [[32, 64, 112, 112], [64, 64, 3, 3], []], "Input type": ["c10::BFloat16"] * 2 + [""]}
    result = {"Input Dims": [[32, 64, 56, 56]], "Input type": ["c10::BFloat16"]}
    for i, at in enumerate(story.steps(4, 1000, waits=True)):
        story.op("aten::conv2d", at + 10, 50, **dims, **({"Sequence number": i + 1} if backward else {}))
        story.op("aten::cudnn_convolution", at + 12, 20, **dims)
        story.kernel(CONVOLUTION, at + 100, us, launch_at=at + 15)
        if bias:
            story.op("aten::add_", at + 40, 5, **result)
        if follower:
            story.op(follower, at + 70, 10, **result)
        if backward:
            node = "autograd::engine::evaluate_function: ConvolutionBackward0"
            story.op(node, at + 200, 60, tid=200, **{"Sequence number": i + 1, "Fwd thread id": 1})
            both = {"Input Dims": [[32, 64, 56, 56], *dims["Input Dims"][:2]], "Input type": ["c10::BFloat16"] * 3}
            story.op("aten::convolution_backward", at + 205, 50, tid=200, **both)
    return story


@pytest.mark.parametrize("how", [{"follower": "aten::batch_norm"}, {"bias": True, "follower": ""},
                                 {"backward": True, "follower": ""}])  # fmt: skip
def test_what_a_convolution_makes_is_told_by_what_takes_it(how):
    trace = convolutions(**how).trace()
    row = next(row for row in range(len(trace)) if trace.name(row) == "aten::cudnn_convolution")
    assert convolution_output(trace, row) == (32, 64, 56, 56)


@pytest.mark.parametrize("follower", ["", "aten::add", "aten::max_pool2d"])
def test_nothing_is_assumed_of_a_convolution_nobody_tells_of(follower):
    trace = convolutions(follower=follower).trace()
    row = next(row for row in range(len(trace)) if trace.name(row) == "aten::cudnn_convolution")
    assert convolution_output(trace, row) == ()


def test_a_slow_convolution_is_named():
    """7.4 GFLOP take 24 us at 312 TFLOPS."""
    [finding] = found_in(convolutions())
    assert finding.title.startswith("aten::cudnn_convolution reaches")
    assert not found_in(convolutions(us=50))


def test_each_operator_has_its_own_stake():
    """A slow product and a slow addition: two findings, each with what its own operator could save."""
    story = Story()
    for at in story.steps(4, 4000, waits=True):
        product = {"Input Dims": [[4096, 1024], [1024, 4096]], "Input type": ["c10::BFloat16"] * 2}
        story.op("aten::mm", at + 5, 20, **product)
        story.kernel(HALF, at + 100, 1100, launch_at=at + 10)
        story.op("aten::add", at + 30, 20, **{"Input Dims": [[50_000_000]] * 2, "Input type": ["float"] * 2})
        story.kernel(ADD, at + 1200, 1500, launch_at=at + 35)
    addition, product = found_in(story)  # the most to gain first
    assert product.title.startswith("aten::mm")
    assert product.time_us == pytest.approx(4 * (1100 - 110.13 / 0.7), rel=1e-3)
    assert addition.title.startswith("aten::add")
    assert addition.time_us == pytest.approx(4 * (1500 - 600e6 / 2039e3 / 0.7), rel=1e-3)


def test_measured_peaks_take_the_data_sheets_place():
    trace = shaped("aten::mm", HALF, 1100, [[4096, 1024], [1024, 4096]]).trace()
    trace.given_peaks = Peaks(1700, 4, {"bfloat16": 250.0}, measured=True)
    [finding] = found_in(trace)
    assert "12% of the measured peak bfloat16 arithmetic" in finding.title
    assert "Of the data sheet's peak that is 10%" in finding.cause


def test_a_device_the_file_does_not_name():
    story = shaped("aten::mm", HALF, 1100, [[4096, 1024], [1024, 4096]])
    story.top["deviceProperties"][0]["name"] = "AMD Radeon Graphics"
    assert not found_in(story)
    trace = story.trace()
    trace.given_peaks = peaks_for("MI300X", {})
    assert found_in(trace)


def test_peaks_by_name():
    mine = Peaks(1700, measured=True)
    assert peaks_for("nvidia a100-sxm4-80gb", {"NVIDIA A100-SXM4-80GB": mine}) is mine
    assert peaks_for("A100", {"NVIDIA A100-SXM4-80GB": mine}) is mine
    assert peaks_for("H100 PCIe", {"NVIDIA A100-SXM4-80GB": mine}) == peaks_of("NVIDIA H100 PCIe")
    assert peaks_for("no such device", {}) is None


@pytest.mark.parametrize(
    "name",
    [
        "NVIDIA GeForce RTX 4090 Laptop GPU",
        "NVIDIA GeForce RTX 3090 Ti",
        "Tesla V100S-PCIE-32GB",
        "NVIDIA GeForce RTX 4080 SUPER",
        "NVIDIA A100-SXM4-80GB MIG 1g.10gb",
    ],
)
def test_variants_with_other_figures_are_not_taken_for_the_plain_device(name):
    assert peaks_of(name) is None


def test_a_kernel_is_what_its_operator_computes():
    """Words in the name say elementwise; PyTorch's operator that launched it says product."""
    story = Story()
    for at in story.steps(4, 1000, waits=True):
        story.op("aten::mm", at + 10, 20)
        story.kernel("fast_silu_gate_v2", at + 100, 700, launch_at=at + 15)
        story.kernel(ADD, at + 800, 100, launch_at=at + 40)
    [finding] = found_in(story, "hotspot")
    assert finding.cause.startswith("Matrix multiplication, launched by aten::mm")
    assert finding.evidence[0].note == "matrix multiplication"


def test_a_name_of_a_library_stands_beside_its_operator():
    """A conversion of layout within a convolution stays one."""
    story = Story()
    for at in story.steps(4, 1000, waits=True):
        story.op("aten::cudnn_convolution", at + 10, 40)
        story.kernel("void cudnn::ops::nchwToNhwcKernel<float, float>(P)", at + 100, 600, launch_at=at + 15)
        story.kernel(CONVOLUTION, at + 700, 100, launch_at=at + 30)
    assert "NCHW" in found_in(story, "hotspot")[0].cause
