"""How long work takes a device, and the names and arguments that a profiler writes for it."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from tests.simulator.machine import Work

COMPUTE, COMM, COPY = 7, 20, 24
"""Streams."""


@dataclass(frozen=True)
class Device:
    """A device. Bytes a microsecond, and floating point operations a microsecond for each kind of arithmetic."""

    name: str
    major: int
    minor: int
    sms: int
    memory: int
    bandwidth: float
    tensor: float
    plain: float
    double: float
    bus: float
    pageable: float


DEVICES = (
    Device("NVIDIA H100 80GB HBM3", 9, 0, 132, 85_045_477_376, 3_350e3, 989e6, 67e6, 34e6, 52e3, 11e3),
    Device("NVIDIA A100-SXM4-80GB", 8, 0, 108, 85_031_714_816, 2_039e3, 312e6, 19.5e6, 9.7e6, 25e3, 8e3),
    Device("Tesla V100-SXM2-32GB", 7, 0, 80, 34_089_730_048, 900e3, 125e6, 15.7e6, 7.8e6, 12e3, 6e3),
)

_SUM = "at::native::func_wrapper_t<c10::BFloat16, at::native::sum_functor<c10::BFloat16, float, c10::BFloat16> >"


def reduction(threads: int, width: int, function: str, dtype: str) -> str:
    """The name of a kernel that sums, or takes means or norms."""
    of = f"at::native::ReduceOp<{dtype}, {function}, unsigned int, {dtype}, 4, 4>"
    return f"void at::native::reduce_kernel<{threads}, {width}, {of} >({of})"


SUM = reduction(128, 4, _SUM, "c10::BFloat16")
MEAN = reduction(512, 1, "at::native::MeanOps<c10::BFloat16, float, float, c10::BFloat16>", "c10::BFloat16")
NORM = reduction(512, 1, "at::native::NormTwoOps<float, float, float>", "float")
LAYER_NORM = (
    "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float>"
    "(int, float, c10::BFloat16 const*)"
)
LAYER_NORM_GRADIENT = LAYER_NORM.replace("layer_norm_kernel", "layer_norm_grad_input_kernel")
GAMMA_BETA = (
    "void at::native::(anonymous namespace)::GammaBetaBackwardCUDAKernel_32x32<c10::BFloat16, float>(long, long)"
)
SOFTMAX = (
    "void (anonymous namespace)::softmax_warp_forward<c10::BFloat16, c10::BFloat16, float, 10, false, false>"
    "(c10::BFloat16*, c10::BFloat16 const*, int)"
)
FLASH = (
    "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4, false, false, cutlass::bfloat16_t>, "
    "false, false, false, false, true, true, false, false>(pytorch_flash::Flash_fwd_params)"
)
FUSED_ADAM = (
    "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<"
    "at::native::(anonymous namespace)::FusedOptimizerTensorListMetadata<4>, at::native::(anonymous namespace)::"
    "FusedAdamMathFunctor<c10::BFloat16, 4, (at::native::(anonymous namespace)::ADAM_MODE)1, false> >"
)

SIZES = {"c10::BFloat16": 2, "c10::Half": 2, "float": 4, "double": 8, "long int": 8}


def _launch_args(device: Device, blocks: int, threads: int, registers: int, occupancy: int) -> dict[str, object]:
    per_sm = blocks / device.sms
    return {
        "queued": 0,
        "device": 0,
        "context": 1,
        "registers per thread": registers,
        "shared memory": 0,
        "blocks per SM": round(per_sm, 6),
        "warps per SM": round(per_sm * threads / 32, 6),
        "grid": [blocks, 1, 1],
        "block": [threads, 1, 1],
        "est. achieved occupancy %": min(occupancy, int(100 * per_sm * threads / 2048)),
    }


def pointwise(device: Device, name: str, elements: int, size: float, *, blocks: int | None = None) -> Work:
    """A kernel that is limited by memory: `size` bytes are read or written for each element."""
    grid = max(1, ceil(elements / 512)) if blocks is None else blocks
    share = min(1.0, grid / (2 * device.sms))
    duration = int(1_200 + 1000 * elements * size / (0.85 * share * device.bandwidth))
    return Work("kernel", name, COMPUTE, duration, _launch_args(device, grid, 128, 32, 95))


def functor(name: str, dtype: str = "c10::BFloat16") -> str:
    return (
        f"void at::native::vectorized_elementwise_kernel<4, at::native::{name}<{dtype}>, std::array<char*, 3ul> >"
        f"(int, at::native::{name}<{dtype}>, std::array<char*, 3ul>)"
    )


def matmul(device: Device, batch: int, m: int, k: int, n: int, dtype: str) -> Work:
    """A matrix product: the larger of what arithmetic and memory need, at two thirds of the device's peak."""
    flops, size = 2 * batch * m * k * n, SIZES[dtype]
    moved = batch * (m * k + k * n + m * n) * size
    tiles = batch * ceil(m / 128) * ceil(n / 128)
    # Few tiles of the result: the libraries split the sum, so that each multiprocessor has a part.
    tiles *= max(1, min(ceil(device.sms / tiles), k // 256))
    waves = ceil(tiles / device.sms) / (tiles / device.sms) if tiles else 1.0
    peak = {2: device.tensor, 4: device.plain, 8: device.double}[size]
    duration = int(1_500 + 1000 * max(flops * min(waves, 4.0) / (0.7 * peak), moved / (0.8 * device.bandwidth)))
    arch = f"sm{device.major}{device.minor}"
    name = {
        2: f"{arch}_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_kernel__5x_cublas"
        if device.major == 9
        else "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn"
        if device.major == 8
        else "volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_tn",
        4: {9: "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x128x8_stage3_warpsize2x2x1_ffma_aligna4",
            8: "ampere_sgemm_128x128_tn", 7: "volta_sgemm_128x128_tn"}[device.major],
        8: {9: "sm80_xmma_gemm_f64f64_f64f64_f64_tn_n_tilesize64x64x16_cublas", 8: "ampere_dgemm_64x64_tn",
            7: "volta_dgemm_64x64_tn"}[device.major],
    }[size]  # fmt: skip
    return Work("kernel", name, COMPUTE, duration, _launch_args(device, max(1, tiles), 256, 128, 12))


def copy(device: Device, nbytes: int, way: str, stream: int = COMPUTE) -> Work:
    """A copy: "HtoD pinned", "HtoD pageable", "DtoH pinned", "DtoH pageable" or "DtoD"."""
    host = "Pinned" if way.endswith("pinned") else "Pageable"
    rate = device.bandwidth * 0.4 if way == "DtoD" else device.bus if host == "Pinned" else device.pageable
    name = {
        "HtoD": f"Memcpy HtoD ({host} -> Device)",
        "DtoH": f"Memcpy DtoH (Device -> {host})",
        "DtoD": "Memcpy DtoD (Device -> Device)",
    }[way[:4]]
    duration = int(1_100 + 1000 * nbytes / rate)
    args = {"device": 0, "context": 1, "bytes": nbytes, "memory bandwidth (GB/s)": nbytes / duration}
    return Work("gpu_memcpy", name, stream, duration, args)


def memset(device: Device, nbytes: int) -> Work:
    duration = int(1_000 + 1000 * nbytes / (0.8 * device.bandwidth))
    args = {"device": 0, "context": 1, "bytes": nbytes, "memory bandwidth (GB/s)": nbytes / duration}
    return Work("gpu_memset", "Memset (Device)", COMPUTE, duration, args)


def allreduce(device: Device, key: str, nbytes: int, rate: float, latency: float, ranks: int) -> Work:
    """An all-reduce that ends `latency + nbytes / rate` us after the last rank came (`rate` in bytes a microsecond)."""
    elements = nbytes // 2
    args = _launch_args(device, 24, 544, 96, 20) | {
        "Collective name": "allreduce",
        "In msg nelems": elements,
        "Out msg nelems": elements,
        "Group size": ranks,
        "dtype": "BFloat16",
        "In split size": "[]",
        "Out split size": "[]",
        "Process Group Name": "0",
        "Process Group Description": "default_pg",
        "Process Group Ranks": str(list(range(ranks))),
    }
    name = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
    return Work("kernel", name, COMM, int(1000 * latency + 1000 * nbytes / rate), args, collective=key)
