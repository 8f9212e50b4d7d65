"""Matrix products in a wider type than the tensor cores are fast at."""

from __future__ import annotations

from collections.abc import Iterator

from torchwhy.finding import Finding
from torchwhy.rules.compute.kernels import about_kernels
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.device_peaks import used_peaks
from torchwhy.trace.derived.kernels import kernels_of
from torchwhy.trace.meaning.annotations import OPTIMIZER
from torchwhy.trace.meaning.kernels import KernelName
from torchwhy.trace.meaning.operators import AUTOGRAD_NODE
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import percent

__all__ = ["fp32_matmul_no_tc", "tf32_not_16bit"]

PRODUCTS = ("matmul", "convolution")


def _without_units(name: KernelName) -> bool:
    """A product in float32 that tensor cores could compute; a matrix times a vector is limited by memory."""
    product = name.operation in PRODUCTS and not name.streams_a_matrix
    return product and name.dtype == "float32" and name.tensor_core is False


@rule(
    "D2",
    "fp32-matmul-no-tc",
    source="torch.profiler's pattern matcher, FP32 matmul, and the TensorBoard plugin; 20% of the kernels' time",
    needs={"gpu"},
    frees="device",
)
def fp32_matmul_no_tc(trace: Trace, *, share: float = 0.2) -> Iterator[Finding]:
    """Matrix products in float32 don't use the tensor cores.

    Sees: kernels of matrix multiplications and convolutions in float32 whose names show ordinary cores (`sgemm`,
    `scudnn`, cuDNN's float engines), on a device with tensor cores (compute capability 7.0 and later), if they take at
    least 20% of the kernels' time.

    Costs: tensor cores are about eight times as fast in TF32 or half precision. At stake is the share of the
    time that tensor cores would save according to the data sheet, or 7/8 if unknown.

    Fix: on V100 and T4 `torch.autocast("cuda", dtype=torch.float16)` with a `GradScaler`; from Ampere on
    `torch.set_float32_matmul_precision("high")` for TF32, or autocast with bfloat16.

    Known problems: libraries choose float32 cores on purpose for tiny or odd shapes. Accuracy that needs float32 can't
    be seen.
    """
    kernels = trace.derived(kernels_of)
    capability = _capability(trace)
    chosen = kernels.that(_without_units)
    part = kernels.share(chosen)
    if capability < (7, 0) or trace.info.vendor == "amd" or part < share:
        return
    rows = kernels.rows[chosen]
    trains = trace.events.any_of(AUTOGRAD_NODE | OPTIMIZER)
    scaler = " with torch.amp.GradScaler, since gradients are computed" if trains else ""
    if capability < (8, 0):
        cause = "Inputs are float32, and this device has no TF32."
        fix = (
            f'Run the forward pass under torch.autocast("cuda", dtype=torch.float16){scaler}: this device\'s tensor '
            "cores compute in half precision only."
        )
    else:
        cause = "Inputs are float32, and TF32 isn't allowed for these products."
        fix = (
            'torch.set_float32_matmul_precision("high") lets matrix products use TF32 (convolutions: '
            "torch.backends.cudnn.allow_tf32), with 10 bits of mantissa; torch.autocast with bfloat16 is faster still."
        )
    peaks = used_peaks(trace)
    slow, fast = (peaks.flops("float32"), peaks.flops("tf32") or peaks.flops("float16")) if peaks else (0.0, 0.0)
    yield from about_kernels(
        trace,
        rows,
        title=f"{percent(part)} of the compute kernels' time goes to float32 matrix products and convolutions "
        "without tensor cores",
        cause=cause,
        fix=fix,
        part=1 - slow / fast if 0 < slow < fast else 7 / 8,
    )


@rule(
    "D3",
    "tf32-not-16bit",
    source="`tf32` and `s1688gemm` in names of kernels; 20% of the kernels' time",
    needs={"gpu"},
    frees="device",
)
def tf32_not_16bit(trace: Trace, *, share: float = 0.2) -> Iterator[Finding]:
    """Matrix products run in TF32, where 16 bits would do.

    Sees: matrix multiplications and convolutions whose kernels are named TF32, in 20% of the kernels' time or more.

    Costs: bfloat16 and float16 are up to twice as fast on the same tensor cores and move half the bytes: at stake is
    half of the time.

    Fix: `torch.autocast("cuda", dtype=torch.bfloat16)` if the model's accuracy allows it.

    Known problems: a trace doesn't show whether the model's accuracy allows 16 bits.
    """
    kernels = trace.derived(kernels_of)
    chosen = kernels.that(lambda name: name.operation in PRODUCTS and name.dtype == "tf32")
    part = kernels.share(chosen)
    if part < share or _capability(trace) < (8, 0):
        return
    rows = kernels.rows[chosen]
    yield from about_kernels(
        trace,
        rows,
        title=f"{percent(part)} of the compute kernels' time goes to products in TF32; 16-bit types would need "
        "half of it at best",
        confidence="medium",
        cause="Inputs are float32 and the program allows TF32. In 16 bits tensor cores do twice as much at a time, and "
        "half as many bytes move.",
        fix='Run the forward pass under torch.autocast("cuda", dtype=torch.bfloat16) if accuracy allows it, or hold '
        "the weights in bfloat16 for inference.",
        part=1 / 2,
    )


def _capability(trace: Trace) -> tuple[int, int]:
    return trace.info.devices[0].capability if trace.info.devices else (0, 0)
