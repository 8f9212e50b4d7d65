"""torchaudio's filtering functions, under its names and with its arguments.

They compute in float64. As in torchaudio, `clamp` limits the result to [-1, 1] by default. Arguments that are numbers
in torchaudio's `biquad` functions may also be tensors with one value for each example.

Examples:
    >>> import torch
    >>> from torchfx.functional import torchaudio as F
    >>> F.lowpass_biquad(torch.ones(1, 4), 48_000, 1000.0).shape
    torch.Size([1, 4])
"""

from __future__ import annotations

from torch import Tensor

from torchfx import _ops, design
from torchfx._ops import elementwise
from torchfx.functional import filtering
from torchfx.functional.filtering import fftconvolve
from torchfx.parameters import Value
from torchfx.tensors import check_signal

__all__ = [
    "allpass_biquad",
    "bandpass_biquad",
    "bandreject_biquad",
    "bass_biquad",
    "biquad",
    "deemphasis",
    "equalizer_biquad",
    "fftconvolve",
    "filtfilt",
    "highpass_biquad",
    "lfilter",
    "lowpass_biquad",
    "preemphasis",
    "treble_biquad",
]


def lfilter(waveform: Tensor, a_coeffs: Tensor, b_coeffs: Tensor, clamp: bool = True, batching: bool = True) -> Tensor:
    """Filter a waveform (..., time); mind the order, the denominator comes first.

    Args:
        waveform: float32 or float64.
        a_coeffs, b_coeffs: (order + 1,), or (filters, order + 1) for several filters.
        clamp: whether the result is limited to [-1, 1].
        batching: whether each filter gets a channel of its own, waveform (..., filters, time); otherwise each filters
            the whole waveform, and the result is (..., filters, time).

    Examples:
        >>> import torch
        >>> lfilter(torch.tensor([1.0, 0.0, 0.0]), torch.tensor([1.0, -0.5]), torch.tensor([0.5, 0.0]))
        tensor([0.5000, 0.2500, 0.1250])
    """
    if not batching and a_coeffs.dim() > 1:
        waveform = check_signal(waveform).unsqueeze(-2)
    y: Tensor = filtering.lfilter(b_coeffs, a_coeffs, waveform)
    return elementwise.clamp(y, -1.0, 1.0) if clamp else y


def filtfilt(waveform: Tensor, a_coeffs: Tensor, b_coeffs: Tensor, clamp: bool = True) -> Tensor:
    """Filter forwards and backwards, each time from rest and without extension beyond the edges."""
    forwards = elementwise.flip(lfilter(waveform, a_coeffs, b_coeffs, clamp=False))
    return elementwise.flip(lfilter(forwards, a_coeffs, b_coeffs, clamp=clamp))


def biquad(waveform: Tensor, b0: Value, b1: Value, b2: Value, a0: Value, a1: Value, a2: Value) -> Tensor:
    """Run one second-order section; the result is limited to [-1, 1]."""
    return elementwise.clamp(filtering.biquad(waveform, b0, b1, b2, a0, a1, a2), -1.0, 1.0)


def lowpass_biquad(waveform: Tensor, sample_rate: float, cutoff_freq: Value, Q: Value = 0.707) -> Tensor:  # noqa: N803
    """Low-pass of second order."""
    return _run(waveform, sample_rate, cutoff_freq, Q, 0.0, "lowpass")


def highpass_biquad(waveform: Tensor, sample_rate: float, cutoff_freq: Value, Q: Value = 0.707) -> Tensor:  # noqa: N803
    """High-pass of second order."""
    return _run(waveform, sample_rate, cutoff_freq, Q, 0.0, "highpass")


def allpass_biquad(waveform: Tensor, sample_rate: float, central_freq: Value, Q: Value = 0.707) -> Tensor:  # noqa: N803
    """All-pass of second order."""
    return _run(waveform, sample_rate, central_freq, Q, 0.0, "allpass")


def bandpass_biquad(
    waveform: Tensor,
    sample_rate: float,
    central_freq: Value,
    Q: Value = 0.707,  # noqa: N803
    const_skirt_gain: bool = False,
) -> Tensor:
    """Band-pass; its peak gain is 1, or Q with `const_skirt_gain`."""
    return _run(waveform, sample_rate, central_freq, Q, 0.0, "bandpass_skirt" if const_skirt_gain else "bandpass")


def bandreject_biquad(
    waveform: Tensor,
    sample_rate: float,
    central_freq: Value,
    Q: Value = 0.707,  # noqa: N803
) -> Tensor:
    """Notch."""
    return _run(waveform, sample_rate, central_freq, Q, 0.0, "notch")


def equalizer_biquad(
    waveform: Tensor,
    sample_rate: float,
    center_freq: Value,
    gain: Value,
    Q: Value = 0.707,  # noqa: N803
) -> Tensor:
    """Peak of `gain` dB."""
    return _run(waveform, sample_rate, center_freq, Q, gain, "peaking")


def bass_biquad(
    waveform: Tensor,
    sample_rate: float,
    gain: Value,
    central_freq: Value = 100.0,
    Q: Value = 0.707,  # noqa: N803
) -> Tensor:
    """Low shelf of `gain` dB."""
    return _run(waveform, sample_rate, central_freq, Q, gain, "lowshelf")


def treble_biquad(
    waveform: Tensor,
    sample_rate: float,
    gain: Value,
    central_freq: Value = 3000.0,
    Q: Value = 0.707,  # noqa: N803
) -> Tensor:
    """High shelf of `gain` dB."""
    return _run(waveform, sample_rate, central_freq, Q, gain, "highshelf")


def preemphasis(waveform: Tensor, coeff: Value = 0.97) -> Tensor:
    """Return y[n] = x[n] - coeff x[n-1]."""
    return filtering.biquad(waveform, 1.0, -coeff, 0.0, 1.0, 0.0, 0.0)


def deemphasis(waveform: Tensor, coeff: Value = 0.97) -> Tensor:
    """Return y[n] = x[n] + coeff y[n-1]."""
    return filtering.biquad(waveform, 1.0, 0.0, 0.0, 1.0, -coeff, 0.0)


def _run(
    waveform: Tensor, sample_rate: float, cutoff: Value, q: Value, gain_db: Value, btype: design.BiquadType
) -> Tensor:
    waveform = check_signal(waveform)
    sos = design.biquad(cutoff, q, gain_db, sample_rate, btype).to(waveform.device)
    return elementwise.clamp(_ops.parallel_iir_forward(waveform, sos)[0], -1.0, 1.0)
