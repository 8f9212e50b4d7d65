"""Matrix products: types, sizes, layouts, attention."""

from tests.rules.cases import fires, silent
from tests.traces import Story

SGEMM = "ampere_sgemm_128x64_nn"
HALF = "ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_nn"
TF32 = "sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x32_stage3_warpsize2x2x1_tensor16x8x8_kernel"
ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >()"
TURN = "void cudnn::ops::nchwToNhwcKernel<float, float, float, false, true, (cudnnKernelDataType_t)2>()"


def steps(*kernels, gpu="NVIDIA A100-SXM4-80GB", op="aten::mm", dims=None, kind="c10::BFloat16"):
    """Four steps that launch these (name, microseconds) back to back from one operator each."""
    story = Story(gpu=gpu)
    for start in story.steps(4, 2000, waits=True):
        at = start
        shapes = {"Input Dims": dims, "Input type": [kind] * len(dims)} if dims else {}
        for j, (name, us) in enumerate(kernels):
            story.op(op, start + 5 + 10 * j, 9, **shapes)
            story.kernel(name, at + 100, us, launch_at=start + 6 + 10 * j)
            at += us
    return story


@fires("fp32-matmul-no-tc")
@silent("tf32-not-16bit", "fp64", "misaligned-dims", "layout-conversion")
def single_precision_on_an_a100():
    return steps((SGEMM, 800), (ADD, 200))


@fires("fp32-matmul-no-tc")
def single_precision_on_a_v100():
    return steps(("volta_sgemm_64x64_nt", 800), (ADD, 200), gpu="Tesla V100-SXM2-32GB")


@silent("fp32-matmul-no-tc")
def mostly_additions():
    return steps((SGEMM, 100), (ADD, 900))


@silent("fp32-matmul-no-tc")
def a_matrix_times_a_vector():
    return steps(("void gemv2T_kernel_val<int, int, float, float, float, float, 128, 16, 4, 4, false>()", 800))


@fires("tf32-not-16bit")
@silent("fp32-matmul-no-tc")
def products_in_tf32():
    return steps((TF32, 800), (ADD, 200))


@silent("tf32-not-16bit", "misaligned-dims")
def products_in_bfloat16():
    return steps((HALF, 800), (ADD, 200), dims=[[4096, 1024], [1024, 4096]])


@fires("fp64")
def products_in_double():
    return steps(("ampere_dgemm_64x64_nn", 300), (ADD, 500))


@silent("fp64")
def a_little_double():
    return steps(
        ("void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<double> >()", 20), (ADD, 900)
    )


def on_the_cpu(kind, us):
    story = Story(gpu=None)
    for at in story.steps(3, 1000, waits=True):
        story.op("aten::mul", at + 10, us, **{"Input Dims": [[8, 48000]], "Input type": [kind]})
        story.op("aten::add", at + 20 + us, 100, **{"Input Dims": [[8, 48000]], "Input type": ["float"]})
    return story


@fires("fp64")
def double_on_the_cpu():
    return on_the_cpu("double", 800)


def solving(*others):
    """Double precision alone, and other operators."""
    story = Story(gpu=None)
    for at in story.steps(3, 1000, waits=True):
        story.op("aten::mv", at + 10, 800, **{"Input Dims": [[900, 900], [900]], "Input type": ["double", "double"]})
        for name, kind in others:
            story.op(name, at + 820, 100, **{"Input Dims": [[900, 900], [900, 900]], "Input type": [kind, kind]})
    return story


@silent("fp64")
def float_on_the_cpu():
    return on_the_cpu("float", 800)


@silent("fp64")
def a_number_in_double_times_a_vector():
    story = Story(gpu=None)
    for at in story.steps(3, 1000, waits=True):
        story.op("aten::mul", at + 10, 800, **{"Input Dims": [[], [8, 48000]], "Input type": ["double", "float"]})
    return story


@silent("fp64")
def calls_on_double_that_only_cost_their_call():
    story = Story(gpu=None)
    for at in story.steps(3, 1000, waits=True):
        for k in range(250):
            story.op("aten::mul", at + 4 * k, 3, **{"Input Dims": [[512]], "Input type": ["double"]})
    return story


@fires("misaligned-dims")
def a_vocabulary_of_30522():
    name = "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_256x128_64x3_tn_align2>(Params)"
    return steps((name, 600), (ADD, 200), op="aten::addmm", dims=[[30522], [512, 768], [768, 30522]])


@fires("misaligned-dims")
def sizes_tell_where_the_name_does_not():
    return steps(("nvjet_tst_192x208_64x4_1x2_h_bz_coopB_TNT", 600), dims=[[512, 766], [766, 4096]])


@silent("misaligned-dims")
def well_aligned():
    name = "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_256x128_64x3_tn_align8>(Params)"
    return steps((name, 600), dims=[[511, 768], [768, 30528]])


@fires("layout-conversion")
def channels_first_for_kernels_that_want_them_last():
    return steps((TURN, 100), (HALF, 500))


@silent("layout-conversion")
def one_small_conversion():
    return steps((TURN, 10), (HALF, 900))


def convolution(bias, follower="aten::batch_norm"):
    story = Story()
    for at in story.steps(4, 1000, waits=True):
        dims = [[8, 3, 64, 64], [16, 3, 3, 3], [16] if bias else [], [], [], [], []]
        story.op("aten::conv2d", at + 10, 60, **{"Input Dims": dims, "Input type": ["float"] * 7})
        story.op("aten::_convolution", at + 12, 55)
        story.op("aten::cudnn_convolution", at + 14, 20)
        story.kernel("volta_scudnn_128x64_relu_interior_nn_v1", at + 50, 300, launch_at=at + 20)
        story.op("aten::add_", at + 40, 20)
        story.kernel(ADD, at + 350, 40, launch_at=at + 45)
        story.op(follower, at + 80, 30, **{"Input Dims": [[8, 16, 64, 64]], "Input type": ["float"]})
    return story


@fires("conv-bias-before-bn")
def a_bias_that_is_taken_away_again():
    return convolution(bias=True)


@silent("conv-bias-before-bn")
def no_bias():
    return convolution(bias=False)


@silent("conv-bias-before-bn")
def a_bias_before_an_activation():
    return convolution(bias=True, follower="aten::relu")


SOFTMAX = "void (anonymous namespace)::softmax_warp_forward<float, float, float, 7, false, false>()"
FLASH = "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128, 128, 4> >()"


def attention(*operators, gpu=True, outer=None, us=100):
    story = Story(gpu="NVIDIA A100-SXM4-80GB" if gpu else None)
    for at in story.steps(4, 1000, waits=True):
        each = 10 if gpu else us
        if outer:
            dims = [[2, 8, 128, 64]] * 3
            story.op(outer, at + 2, each * len(operators) + 8, **{"Input Dims": dims, "Input type": ["float"] * 3})
        for j, name in enumerate(operators):
            story.op(name, at + 5 + each * j, each - 1)
            if gpu:
                kernel = {"aten::_softmax": SOFTMAX, "aten::_flash_attention_forward": FLASH}.get(name, HALF)
                story.kernel(kernel, at + 50 + us * j, us - 10, launch_at=at + 6 + each * j)
    return story


@fires("unfused-attention")
@silent("sdpa-math-backend")
def by_hand():
    return attention("aten::bmm", "aten::_softmax", "aten::bmm")


@fires("unfused-attention")
def by_hand_on_a_cpu():
    return attention("aten::bmm", "aten::_softmax", "aten::bmm", gpu=False)


@silent("unfused-attention", "sdpa-math-backend")
def fused():
    return attention("aten::_flash_attention_forward", "aten::mm")


@silent("unfused-attention")
def a_softmax_between_layers():
    return attention("aten::addmm", "aten::_softmax", "aten::bmm")


def fast_path(keys):
    """What nn.TransformerEncoder calls in eval mode on a CPU: (sequences, heads, queries, keys) go to the softmax."""
    story = Story(gpu=None)
    for at in story.steps(4, 1000):
        story.op("aten::_native_multi_head_attention", at + 2, 320)
        story.op("aten::bmm", at + 10, 90)
        story.op("aten::_softmax", at + 110, 90, **{"Input Dims": [[2, 8, keys, keys], [], [], [2, 8, keys, keys]]})
        story.op("aten::bmm", at + 210, 90)
    return story


@fires("unfused-attention")
def the_fast_path_on_long_sequences():
    return fast_path(1024)


@silent("unfused-attention")
def the_fast_path_on_short_sequences():
    return fast_path(64)


@fires("sdpa-math-backend")
@silent("unfused-attention")
def a_call_that_falls_back():
    names = ("aten::bmm", "aten::_softmax", "aten::bmm")
    return attention(*names, outer="aten::_scaled_dot_product_attention_math")
