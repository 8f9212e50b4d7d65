"""Process many signals of different lengths in parallel."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from torchfx._ops.operator import is_direct
from torchfx.checks import number_text
from torchfx.core.processor import FilterChain
from torchfx.core.wave import Wave
from torchfx.errors import ArgumentTypeError, SampleRateError
from torchfx.plan import plan_of, plan_to_run
from torchfx.rate import ambient_rate
from torchfx.tensors import check_signal

__all__ = ["batch_process"]

Signal = TypeVar("Signal", Wave, Tensor)

FEW = 4
"""A joint call needs more than this number of signals per thread, and no signal above 1/FEW of a thread's share."""


def batch_process(waves: Sequence[Signal], effect: nn.Module) -> list[Signal]:
    """Process signals with a module in parallel, on as many threads as PyTorch uses (`torch.set_num_threads`).

    One thread processes each signal, so the results equal a loop's, for any module and any lengths. Random
    numbers from PyTorch's default generator are drawn in arbitrary order. Many short signals take less time than in a
    loop; a chain of only recursive filters makes one native call for all signals.

    On a GPU, signals with the same number of channels run as one batch, padded with silence, if the module is a chain
    of filters and effects that do not need the whole signal, have no latency and keep the sample rate.

    Args:
        waves: waves of one sample rate, or tensors (..., time) at the rate of `torchfx.sample_rate`.
        effect: a filter, an effect, a chain.

    Returns:
        `wave | effect` for each wave, with its metadata; `effect(x)` for each tensor.

    Raises:
        SampleRateError: the waves have different rates.
        ArgumentTypeError: waves and tensors are mixed, or an argument is not a module.

    Examples:
        >>> import torch, torchfx as fx
        >>> waves = [fx.Wave(torch.randn(2, n), 48_000) for n in (30_000, 48_000)]
        >>> batch_process(waves, fx.filter.HiButterworth(80) | fx.effect.Compressor(-20))[1]
        Wave(2 channels, 1.000 s, 48000 Hz, torch.float32, cpu)
    """
    if not isinstance(effect, nn.Module):
        raise ArgumentTypeError(f"effect must be an nn.Module, got {type(effect).__name__}")
    given: list[Any] = list(waves)
    kinds = {Wave if isinstance(wave, Wave) else Tensor if isinstance(wave, Tensor) else type(wave) for wave in given}
    if kinds - {Wave, Tensor} or len(kinds) > 1:
        names = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise ArgumentTypeError(f"waves must hold waves, or tensors (..., time), got {names}")
    rates = {wave.fs for wave in given if isinstance(wave, Wave)}
    if len(rates) > 1:
        found = ", ".join(number_text(rate) for rate in sorted(rates))
        raise SampleRateError(f"waves must share one sample rate, got {found} Hz")
    for wave in given:
        check_signal(wave.ys if isinstance(wave, Wave) else wave)
    if len(given) > 1 and all((wave.ys if isinstance(wave, Wave) else wave).is_cuda for wave in given):
        together = _stacked(given, effect)
        if together is not None:
            return together
    threads = torch.get_num_threads()
    if len(given) > FEW * threads and all(map(_is_plain, given)):
        together = _filtered(given, effect, threads)
        if together is not None:
            return together
    results: list[Any] = [None] * len(given)
    rest = iter(range(len(given)))

    def run(count: int) -> None:
        """Process the next signals, at most `count`, that no other thread has taken."""
        for _, i in zip(range(count), rest, strict=False):
            wave = given[i]
            results[i] = wave | effect if isinstance(wave, Wave) else effect(wave)

    run(1)  # plans are made once
    if threads == 1 or len(given) < 3 or not all(map(_is_plain, given)):
        run(len(given))
        return results
    recording, inferring = torch.is_grad_enabled(), torch.is_inference_mode_enabled()

    def run_apart() -> None:
        with torch.inference_mode(inferring), torch.set_grad_enabled(recording):
            run(len(given))

    torch.set_num_threads(1)  # in the threads that begin now, too
    try:
        with ThreadPoolExecutor(threads - 1) as pool:
            others = [pool.submit(copy_context().run, run_apart) for _ in range(threads - 1)]
            run(len(given))
            for other in others:
                other.result()
    finally:
        torch.set_num_threads(threads)
    return results


def _filtered(given: list[Any], effect: nn.Module, threads: int) -> list[Any] | None:
    """Return the results of one native call for all signals; None where the module is more than one cascade.

    Nor for a long signal that would keep one thread busy after the others have finished.
    """
    signals = [wave.ys if isinstance(wave, Wave) else wave for wave in given]
    fs = given[0].fs if isinstance(given[0], Wave) else ambient_rate()
    sizes = [x.numel() for x in signals]
    recording = torch.is_grad_enabled() and any(x.requires_grad for x in signals)
    if recording or min(sizes) == 0 or FEW * threads * max(sizes) > sum(sizes):
        return None
    plan = plan_of(effect, fs) if fs is None else plan_to_run(effect, fs)
    return None if plan is None else _as_given(given, plan.run_each(signals))


def _stacked(given: list[Any], effect: nn.Module) -> list[Any] | None:
    """Return the results of signals that run as the rows of one; None where they would not be those of each alone."""
    signals = [wave.ys if isinstance(wave, Wave) else wave for wave in given]
    first = signals[0]
    fs = given[0].fs if isinstance(given[0], Wave) else ambient_rate()
    plan = plan_of(FilterChain(effect), fs)
    alike = all(
        (each.shape[:-1], each.dtype, each.device) == (first.shape[:-1], first.dtype, first.device) for each in signals
    )
    if not alike or plan.refusal or plan.latency or plan.output_rate != fs or plan.gives == "features":
        return None
    rows = torch.stack([pad(each, (0, max(map(_samples, signals)) - _samples(each))) for each in signals])
    return _as_given(given, [row[..., : _samples(each)] for row, each in zip(plan.run(rows), signals, strict=True)])


def _as_given(given: list[Any], found: list[Tensor] | None) -> list[Any] | None:
    """Return results as waves with the metadata of those given, or as tensors."""
    if found is None:
        return None
    return [wave._with(y) if isinstance(wave, Wave) else y for wave, y in zip(given, found, strict=True)]


def _samples(x: Tensor) -> int:
    return x.shape[-1]


def _is_plain(wave: Wave | Tensor) -> bool:
    """Return whether another thread would do the same: modes, transforms and autocast are each thread's own."""
    signal = wave.ys if isinstance(wave, Wave) else wave
    return signal.is_cpu and is_direct(signal) and not torch.is_autocast_enabled("cpu")
