"""A program whose copies and kernels leave nothing to say."""

from tests.rules.cases import silent
from tests.traces import Story

HALF = "ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_nn"
FLASH = "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128, 128, 4> >()"
FUSED = "triton_per_fused_add_native_layer_norm_{}"
ADAM = "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<FusedAdamMathFunctor<float, 4> >()"

COPIES = (
    "pageable-copy",
    "low-bandwidth",
    "sync-copy",
    "sync-memset",
    "transfer-share",
    "device-ping-pong",
    "hidden-dtod-before-gemm",
    "out-of-place-clone",
    "dtod-volume",
    "create-on-cpu-then-copy",
    "many-tiny-copies",
    "peak-memory",
    "memory-creep",
    "fragmentation",
    "missed-no-grad",
)
COMPUTE = (
    "fp32-matmul-no-tc",
    "tf32-not-16bit",
    "fp64",
    "misaligned-dims",
    "layout-conversion",
    "conv-bias-before-bn",
    "unfused-attention",
    "sdpa-math-backend",
    "elementwise-chain",
    "small-grid",
    "occupancy",
    "low-roofline",
    "same-kernel-varies",
    "recompute-share",
    "cudnn-benchmark",
    "streams-serial",
    "low-mfu",
    "kernel-budget",
)


@silent(*COPIES, *COMPUTE)
def training_in_bfloat16():
    """Six steps: a pinned batch arrives beside the work, products of good sizes near the peak, one fused optimizer."""
    story, held = Story(), 20 * 2**30
    product = {"Input Dims": [[8192, 4096], [4096, 4096]], "Input type": ["c10::BFloat16"] * 2}
    heads = {"Input Dims": [[4, 2048, 32, 64]] * 3, "Input type": ["c10::BFloat16"] * 3}
    full = {"blocks per SM": 9.5, "est. achieved occupancy %": 12}
    for i in range(6):
        at, launch = 20_000 * i, 20_000 * i + 10
        story.step(i, at, 20_000)
        story.memory(at + 5, 10**9, held + 10**9, 24 * 2**30)
        story.copy("HtoD (Pinned -> Device)", at + 300, 200, 4_800_000, launch_at=at + 8, stream=20)
        now = at + 100
        for j in range(12):
            story.op("aten::mm", launch, 10, **product)
            story.kernel(HALF, now, 1100 + 5 * (i % 2), launch_at=launch + 2, **full)
            story.op("aten::_flash_attention_forward", launch + 12, 10, **heads)
            story.kernel(FLASH, now + 1110, 400, launch_at=launch + 14, **full)
            story.kernel(FUSED.format(j % 3), now + 1515, 60, launch_at=launch + 24, **full)
            now, launch = now + 1580, launch + 40
        story.note("Optimizer.step#AdamW.step", launch, 60)
        story.op("aten::_fused_adamw_", launch + 5, 40)
        story.kernel(ADAM, now, 500, launch_at=launch + 10, **full)
        story.memory(at + 19_000, -(10**9), held, 24 * 2**30)
    return story


@silent(*COPIES, *COMPUTE)
def inference_on_a_cpu():
    """Products and one normalization per layer, in float32, under inference_mode."""
    story = Story(gpu=None)
    for i in range(4):
        story.step(i, 10_000 * i, 10_000)
        for j in range(8):
            at = 10_000 * i + 1200 * j
            dims = {"Input Dims": [[256, 1024], [1024, 1024]], "Input type": ["float", "float"]}
            story.op("aten::mm", at, 1000, **dims)
            story.op("aten::native_layer_norm", at + 1010, 100, **dims)
            story.op("aten::gelu", at + 1120, 70, **dims)
    return story
