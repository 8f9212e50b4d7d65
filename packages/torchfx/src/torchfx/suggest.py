"""Suggest the faster device for a chain, measured on this machine."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor, nn

from torchfx.checks import sample_rate as checked_rate
from torchfx.checks import whole_number
from torchfx.errors import ArgumentTypeError
from torchfx.plan import plan_of
from torchfx.rate import ambient_rate, sample_rate

__all__ = ["Suggestion", "suggest_device"]

MEASURED = 1 << 20
"""Samples (over all channels) that are run at most to learn a cost; longer signals are extrapolated."""

MIN_RUN_S = 0.02  # how long each measurement repeats its work


@dataclass(frozen=True)
class Suggestion:
    """The faster device for a chain and a signal, with the measured times.

    Attributes:
        device: "cpu" or "cuda".
        reason: the reason, in one sentence.
        cpu_s: time of the chain on the CPU, seconds.
        gpu_s: time on the GPU, without copies, seconds; None without a GPU.
        transfer_s: time to copy the samples to the GPU and the result back, seconds; None without a GPU.
    """

    device: str
    reason: str
    cpu_s: float
    gpu_s: float | None
    transfer_s: float | None

    def __str__(self) -> str:
        """Return the device and the reason."""
        return f"{self.device}: {self.reason}"


def suggest_device(chain: nn.Module, channels: int, samples: int, fs: float) -> Suggestion:
    """Suggest the faster device to process a signal whose input and output are in CPU memory.

    The times are measured: the chain processes noise for a few hundredths of a second per device. The result is cached
    for each chain and signal size.

    Args:
        chain: any module that maps (channels, time) to (channels, time).
        channels: >= 1.
        samples: per channel, >= 1.
        fs: sample rate, Hz.

    Returns:
        The device, the reason and the times. If the signal is already on the GPU and can stay there, compare only
        `gpu_s` and `cpu_s`.

    Raises:
        ArgumentError, ArgumentTypeError: an argument out of range.

    Examples:
        >>> import torchfx as fx
        >>> suggestion = suggest_device(fx.filter.LoButterworth(1000), channels=2, samples=4800, fs=48_000)
        >>> suggestion.device in {"cpu", "cuda"}
        True
        >>> 0 < suggestion.cpu_s < 1
        True
    """
    if not isinstance(chain, nn.Module):
        raise ArgumentTypeError(f"chain must be an nn.Module, got {chain!r} ({type(chain).__name__})")
    shape = (whole_number("channels", channels, 1), whole_number("samples", samples, 1))
    rate = checked_rate(fs)
    with sample_rate(rate), torch.no_grad():
        cpu_s = _cost(chain, shape, "cpu")
        if not torch.cuda.is_available():
            return decide(cpu_s, shape[1] / rate)
        return decide(cpu_s, shape[1] / rate, _cost(chain, shape, "cuda"), _transfer_cost(shape))


def decide(cpu_s: float, signal_s: float, gpu_s: float | None = None, transfer_s: float | None = None) -> Suggestion:
    """Compare costs and say why.

    Examples:
        >>> print(decide(cpu_s=0.5, signal_s=60.0, gpu_s=0.001, transfer_s=0.1))
        cuda: 0.101 s on the GPU (0.1 s of it copying there and back) against 0.5 s on the CPU
        >>> print(decide(cpu_s=0.5, signal_s=60.0))
        cpu: there is no GPU that PyTorch can use; the CPU takes 0.5 s for 60 s of audio
    """
    if gpu_s is None or transfer_s is None:
        reason = f"there is no GPU that PyTorch can use; the CPU takes {cpu_s:.3g} s for {signal_s:.3g} s of audio"
        return Suggestion("cpu", reason, cpu_s, None, None)
    total = gpu_s + transfer_s
    on_gpu = f"{total:.3g} s on the GPU ({transfer_s:.3g} s of it copying there and back)"
    on_cpu = f"{cpu_s:.3g} s on the CPU"
    if total < cpu_s:
        return Suggestion("cuda", f"{on_gpu} against {on_cpu}", cpu_s, gpu_s, transfer_s)
    return Suggestion("cpu", f"{on_cpu} against {on_gpu}", cpu_s, gpu_s, transfer_s)


_costs: dict[tuple[Any, ...], float] = {}


def _cost(chain: nn.Module, shape: tuple[int, int], device: str) -> float:
    """Return the seconds that a chain takes on a signal, measured, or extrapolated from two shorter ones."""
    channels, samples = shape
    longest = max(2, MEASURED // channels)
    if samples <= longest:
        return _measured(chain, shape, device)
    half, whole = (_measured(chain, (channels, size), device) for size in (longest // 2, longest))
    per_sample = max(0.0, whole - half) / (longest - longest // 2)
    return whole + per_sample * (samples - longest)


def _measured(chain: nn.Module, shape: tuple[int, int], device: str) -> float:
    # The plan names modules by their own parameters; those inside of a plain module are in its repr alone.
    key = (str(plan_of(chain, ambient_rate())), repr(chain), shape, device, torch.get_num_threads())
    if key not in _costs:
        module = copy.deepcopy(chain).to(device)  # the chain itself stays where it is
        x = torch.randn(shape, generator=torch.Generator().manual_seed(0)).to(device)
        _costs[key] = _median_time(lambda: plan_of(module, ambient_rate()).run(x))
    return _costs[key]


def _transfer_cost(shape: tuple[int, int]) -> float:
    """Return the seconds to copy a float32 signal to the GPU and back."""
    channels, samples = shape
    size = min(channels * samples, MEASURED)
    return _measured_transfer(size) * (channels * samples / size)


@lru_cache(64)
def _measured_transfer(size: int) -> float:
    x = torch.zeros(size)
    return _median_time(lambda: x.to("cuda").cpu())


def _median_time(work: Callable[[], Tensor]) -> float:
    from torch.utils.benchmark import Timer

    timer = Timer("work()", globals={"work": work}, num_threads=torch.get_num_threads())
    return timer.blocked_autorange(min_run_time=MIN_RUN_S).median
