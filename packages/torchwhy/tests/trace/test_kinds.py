"""Device work by kind: closed forms of arithmetic, bytes and time to gain."""

import json

import pytest

from tests.traces import Story
from torchwhy.report.trace_report import describe
from torchwhy.rules.diagnose import diagnose
from torchwhy.trace.derived.flops import flops_of, moved_by, output_of
from torchwhy.trace.meaning.kernels import KINDS, decode
from torchwhy.trace.peaks import Peaks, assumed_peaks, peaks_of

HALF = "ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_nn"
ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >()"
FLASH = "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128, 128, 4> >()"
CONVOLUTION = "sm80_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize128x128x32_kernel_cudnn"
SOFTMAX = "void (anonymous namespace)::softmax_warp_forward<float, float, float, 7, false, false>()"
NORM = "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>(int, float)"
A100 = peaks_of("NVIDIA A100-SXM4-80GB")


def work(*items, gpu="NVIDIA A100-SXM4-80GB", kind="c10::BFloat16"):
    """One step that launches these, one after another: operator, kernel, microseconds, shapes, values."""
    story, now = Story(gpu=gpu), 1000
    story.step(1, 0, 1000 + sum(item[2] for item in items) + 10)
    for i, (operator, kernel, us, dims, *values) in enumerate(items):
        args = {"Input Dims": dims, "Input type": [kind if dim else "" for dim in dims]}
        args |= {"Concrete Inputs": values[0]} if values else {}
        if operator:
            story.op(operator, 10 + 20 * i, 15, **args)
        story.kernel(kernel, now, us, launch_at=12 + 20 * i)
        now += us
    return story


def kinds(*items, **how):
    return {row["kind"]: row for row in work(*items, **how).trace().kinds().rows()}


def test_products_by_their_shapes():
    row = kinds(("aten::mm", HALF, 1100, [[4096, 1024], [1024, 4096]]))["GEMM"]
    operations = 2 * 4096 * 1024 * 4096
    moved = 2 * (2 * 4096 * 1024 + 4096 * 4096)
    ideal = operations / 312e12 * 1e6
    assert row["tflops"] == pytest.approx(operations / 1100e-6 / 1e12)
    assert row["gb_s"] == pytest.approx(moved / 1100e-6 / 1e9)
    assert row["roofline_share"] == pytest.approx(ideal / 1100)
    assert row["bound"] == "compute"
    assert row["gain_us"] == pytest.approx(1100 - ideal / 0.7)
    assert row["judged_share"] == 1


def test_a_matrix_of_one_row_is_bound_by_memory():
    row = kinds(("aten::mm", HALF, 100, [[1, 8192], [8192, 8192]]))["GEMM"]
    assert row["bound"] == "memory"
    assert row["roofline_share"] == pytest.approx(2 * (8192 * 8192 + 2 * 8192) / 2039e9 / 100e-6)


def test_a_call_with_little_to_do_is_bound_by_latency():
    """Two calls of 20 us each: nothing brings a kernel below 5 us."""
    row = kinds(*[("aten::mm", HALF, 20, [[64, 64], [64, 64]])] * 2)["GEMM"]
    assert row["bound"] == "latency"
    assert row["gain_us"] == pytest.approx(2 * (20 - 5))


@pytest.mark.parametrize(("causal", "part"), [("False", 1), ("True", 1025 / 2048)])
def test_attention_causal_or_not(causal, part):
    values = ["", "", "", "", "", "1024", "1024", "0.", causal, "False", "0.125"]
    dims = [[4, 1024, 16, 64]] * 3 + [[]] * 8
    row = kinds(("aten::_flash_attention_forward", FLASH, 500, dims, values))["attention"]
    operations = 4 * 4 * 16 * 1024 * 1024 * 64 * part
    assert row["tflops"] == pytest.approx(operations / 500e-6 / 1e12)


def test_attention_in_parts_is_attention_by_the_shapes_of_the_whole():
    story = work()
    dims = {"Input Dims": [[4, 16, 1024, 64]] * 3, "Input type": ["c10::BFloat16"] * 3}
    story.op("aten::_scaled_dot_product_attention_math", 10, 200, **dims)
    pairs = [[64, 1024, 64], [64, 64, 1024]]
    for i, (name, kernel) in enumerate((("aten::bmm", HALF), ("aten::_softmax", SOFTMAX), ("aten::bmm", HALF))):
        story.op(name, 20 + 30 * i, 20, **{"Input Dims": pairs, "Input type": ["c10::BFloat16"] * 2})
        story.kernel(kernel, 300 + 100 * i, 100, launch_at=25 + 30 * i)
    (row,) = story.trace().kinds().rows()
    assert row["kind"] == "attention"
    assert row["tflops"] == pytest.approx(4 * 4 * 16 * 1024 * 1024 * 64 / 300e-6 / 1e12)


@pytest.mark.parametrize(
    ("operator", "values"),
    [
        ("aten::conv2d", ["", "", "", "[2, 2]", "[1, 1]", "[1, 1]", "1"]),
        ("aten::convolution", ["", "", "", "[2, 2]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1"]),
        ("aten::cudnn_convolution", ["", "", "[1, 1]", "[2, 2]", "[1, 1]", "1", "False", "False", "True"]),
        ("aten::miopen_convolution", ["", "", "", "[1, 1]", "[2, 2]", "[1, 1]", "1", "False", "False"]),
    ],
)
def test_convolutions_by_their_strides(operator, values):
    dims = [[32, 64, 112, 112], [128, 64, 3, 3]] + [[]] * (len(values) - 2)
    row = kinds((operator, CONVOLUTION, 400, dims, values))["convolution"]
    assert row["tflops"] == pytest.approx(2 * 32 * 128 * 56 * 56 * 64 * 9 / 400e-6 / 1e12)


@pytest.mark.parametrize(
    ("into", "weight", "stride", "padding", "dilation"),
    [
        ((2, 8, 33), (16, 8, 5), "[3]", "[2]", "[2]"),
        ((2, 8, 20, 31), (16, 2, 3, 5), "[2, 1]", "[1, 0]", "[1, 3]"),
        ((1, 4, 9, 9, 9), (8, 4, 3, 3, 3), "[1, 1, 1]", "[0]", "[2, 2, 2]"),
    ],
)
def test_outputs_of_convolutions_as_pytorch_makes_them(into, weight, stride, padding, dilation):
    torch = pytest.importorskip("torch")
    plain = len(into) - 2
    spread = [json.loads(text) * (plain if len(json.loads(text)) == 1 else 1) for text in (stride, padding, dilation)]
    groups = into[1] // weight[1]
    made = torch.nn.functional
    convolve = (made.conv1d, made.conv2d, made.conv3d)[plain - 1]
    wanted = convolve(torch.zeros(into), torch.zeros(weight), None, *spread, groups).shape
    found = output_of(f"aten::conv{plain}d", [into, weight], ["", "", "", stride, padding, dilation, str(groups)])
    assert found == tuple(wanted)


def test_a_transposed_convolution_is_not_judged():
    values = ["", "", "", "[2, 2]", "[1, 1]", "[1, 1]", "True", "[1, 1]", "1"]
    assert output_of("aten::convolution", [(8, 64, 32, 32), (64, 32, 3, 3)], values) == ()


def test_only_the_experts_that_tokens_choose_are_read():
    few = flops_of("vllm::inplace_fused_experts", [(1, 64), (128, 256, 64), (128, 64, 128), (1, 2), (1, 2)])
    many = flops_of("vllm::inplace_fused_experts", [(4096, 64), (128, 256, 64), (128, 64, 128), (4096, 2), (4096, 2)])
    each = 256 * 64 + 64 * 128
    assert few == (2 * 2 * each, pytest.approx(2 * 64 + 2 * each + 2 * (256 + 128)))
    assert many[1] == pytest.approx(2 * 4096 * 64 + 128 * each + 8192 * (256 + 128))


@pytest.mark.parametrize(
    ("name", "tensors", "moved"),
    [
        ("aten::add", [((1000, 50), 4), ((1, 50), 4)], 4 * (50_000 + 50 + 50_000)),
        ("aten::gt", [((1000, 50), 4)], 4 * 50_000 + 50_000),
        ("aten::copy_", [((1000,), 2), ((1000,), 4)], 6000),
        ("aten::fill_", [((1000,), 4)], 4000),
        ("aten::_softmax", [((64, 100), 2)], 2 * 2 * 6400),
        ("aten::native_layer_norm", [((64, 100), 4), ((100,), 4), ((100,), 4)], 4 * (6400 + 200 + 6400)),
        ("aten::sum", [((64, 100), 4)], 4 * 6400),
        ("aten::mm", [((64, 100), 4), ((100, 64), 4)], 0),
    ],
)
def test_bytes_by_shapes(name, tensors, moved):
    assert moved_by(name, tensors) == moved


def test_generated_kernels_read_no_more_than_their_elements():
    """A table of 36864 rows is given, 4096 are used: the kernel's number of elements stands last."""
    tensors = [((2, 4096, 64), 2), ((36864, 64), 2)]
    assert moved_by("triton_poi_fused_add_0", tensors, ["", "", str(2 * 4096 * 64)]) == 2 * 2 * 2 * 4096 * 64


def test_every_kind_of_work_has_a_line_and_nothing_is_lost():
    story = work(
        ("aten::mm", HALF, 100, [[512, 512], [512, 512]]),
        ("aten::add", ADD, 80, [[1000, 1000]]),
        ("aten::native_layer_norm", NORM, 70, [[1000, 1000]]),
        ("", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(args)", 60, []),
        ("", "xyzzy", 50, []),
    )
    story.copy("HtoD (Pinned -> Device)", 5000, 40, 4_000_000, launch_at=900)
    story.copy("DtoD (Device -> Device)", 5100, 30, 4_000_000, launch_at=905)
    story.fill(5200, 20, launch_at=910)
    story.step(2, 4900, 500)
    rows = {row["kind"]: row for row in story.trace().kinds().rows()}
    assert {kind: row["time_us"] for kind, row in rows.items()} == {
        "GEMM": 100, "elementwise": 80, "norm": 70, "communication": 60, "unknown": 50, "transfer": 40, "copy": 50,
    }  # fmt: skip
    assert sum(row["share"] for row in rows.values()) == pytest.approx(1)
    assert rows["transfer"]["gb_s"] == pytest.approx(100)
    assert rows["copy"]["gb_s"] == pytest.approx(2 * 4e6 / 30e3)
    assert rows["copy"]["gain_us"] == pytest.approx(30 - 2 * 4e6 / 2039e3 / 0.7)
    assert rows["copy"]["judged_share"] == pytest.approx(30 / 50)


def test_eight_bits_have_their_own_peak():
    row = kinds(("aten::_int_mm", "int8_gemm_kernel", 400, [[4096, 4096], [4096, 4096]]), kind="signed char")["GEMM"]
    assert row["roofline_share"] == pytest.approx(2 * 4096**3 / A100.flops("int8") / 400e-6)
    assert A100.flops("int8") == 2 * A100.flops("bfloat16")


def test_without_peaks_there_is_no_roofline_and_the_report_says_so():
    story = work(("aten::mm", HALF, 1100, [[4096, 1024], [1024, 4096]]), gpu="NVIDIA Unheard Of")
    trace = story.trace()
    (row,) = trace.kinds().rows()
    assert row["tflops"] > 0
    assert row["gain_us"] != row["gain_us"]
    assert row["bound"] == ""
    report = describe(trace, diagnose(trace))
    assert report.kinds.peaks == ""
    assert report.kinds.rows[0].gain_us is None
    trace = story.trace()
    trace.given_peaks = Peaks(1700, 4, {"bfloat16": 250.0}, measured=True)
    assert trace.kinds().rows()[0]["roofline_share"] == pytest.approx(2 * 4096 * 4096 * 1024 / 250e12 / 1100e-6)


@pytest.mark.parametrize(
    ("name", "assumed"),
    [
        ("Cijk_Ailk_Bljk_BBS_BH_MT256x128x64_gfx942_SN", "MI300X"),
        ("void cutlass3x_sm90_tensorop_s64x128x16gemm", "H100"),
        ("sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n", ""),  # runs on later chips as well
    ],
)
def test_a_chip_by_its_kernels(name, assumed):
    found = assumed_peaks([name])
    assert (found.assumed if found else "") == assumed


def test_kinds_are_told_by_names_where_they_tell():
    assert decode("fused_moe_kernel").kind == "MoE"
    assert decode(HALF).kind == "GEMM"
    assert decode("xyzzy").kind == "unknown"
    assert decode("void deep_ep::intranode::dispatch<8>()").kind == "communication"
    assert {decode(name).kind for name in (HALF, ADD, FLASH, CONVOLUTION, SOFTMAX, NORM)} <= {*KINDS}


@pytest.mark.parametrize("size", [1, 4096, 10**6, 10**9])
@pytest.mark.parametrize("count", [1, 20])
def test_small_copies_are_latency_and_gain_nothing_below_it(size, count):
    """Copies of a few bytes take some microseconds on any device: nothing is to gain there."""
    story = Story(gpu="NVIDIA A100-SXM4-80GB")
    at_best = 2 * size / A100.bandwidth / 1000  # us
    length = max(3.0, 2 * at_best)
    for i in range(count):
        story.copy("DtoD (Device -> Device)", 100 + i * (length + 10), length, size, launch_at=10 + i * (length + 10))
    (row,) = story.trace().kinds().rows()
    assert row["bound"] == ("latency" if at_best / 0.7 < 5 else "memory")
    assert row["gain_us"] == pytest.approx(count * max(length - max(at_best / 0.7, 5), 0), rel=1e-3, abs=1e-2)
