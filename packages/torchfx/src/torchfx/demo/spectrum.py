"""Spectra of a recording before and after a chain, and the chain's own response: numbers, no drawing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from torchfx.rate import sample_rate

__all__ = ["Spectra", "spectra"]

Signal = npt.NDArray[np.float64]
SEGMENT = 16_384


@dataclass(frozen=True)
class Spectra:
    """Power spectra and response over frequency.

    Attributes:
        frequency: Hz, (bins,).
        before, after: power density in dB re full scale per Hz, mean over channels, (bins,).
        response: the chain's magnitude response in dB, from its impulse response, (bins,).
    """

    frequency: Signal
    before: Signal
    after: Signal
    response: Signal


def spectra(before: npt.NDArray[np.float32], after: npt.NDArray[np.float32], chain: nn.Module, fs: int) -> Spectra:
    """Analyse two recordings (channels, time) and the linear chain between them (Welch, Hann window)."""
    from scipy.signal import welch

    frequency, power_before = welch(before.astype(np.float64), fs, nperseg=SEGMENT)
    _, power_after = welch(after.astype(np.float64), fs, nperseg=SEGMENT)
    impulse = torch.zeros(1, SEGMENT, dtype=torch.float64)
    impulse[0, 0] = 1
    with sample_rate(fs):
        response = np.abs(np.fft.rfft(chain(impulse)[0].numpy()))
    return Spectra(
        frequency[1:],
        _decibels(power_before.mean(0)[1:], 10),
        _decibels(power_after.mean(0)[1:], 10),
        _decibels(response[1:], 20),
    )


def _decibels(values: Signal, factor: float) -> Signal:
    result: Signal = factor * np.log10(np.maximum(values, 1e-20))
    return result
