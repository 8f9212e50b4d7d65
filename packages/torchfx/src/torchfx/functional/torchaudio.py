"""torchaudio's filtering functions, under its names and with its arguments.

They compute in float64. As in torchaudio, `clamp` limits the result to [-1, 1] by default. Arguments that are numbers
in torchaudio's `biquad` functions may also be tensors with one value for each example. What torchaudio took from SoX is
in `sox.py` and `sox_vad.py`.

Examples:
    >>> import torch
    >>> from torchfx.functional import torchaudio as F
    >>> F.lowpass_biquad(torch.ones(1, 4), 48_000, 1000.0).shape
    torch.Size([1, 4])
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from torchfx import _ops, design
from torchfx._ops import elementwise
from torchfx._ops.checks import broadcast_shapes
from torchfx.checks import finite_number, number_text, whole_number
from torchfx.design.sinc_resampling import sinc_reach, sinc_taps
from torchfx.errors import ArgumentError
from torchfx.functional import filtering
from torchfx.functional.filtering import fftconvolve
from torchfx.functional.sox import contrast, dcshift, dither, flanger, gain, overdrive, phaser
from torchfx.functional.sox_vad import vad
from torchfx.parameters import Value
from torchfx.rate import resampled_length
from torchfx.tensors import check_signal, settings_on

__all__ = [
    "add_noise", "allpass_biquad", "band_biquad", "bandpass_biquad", "bandreject_biquad", "bass_biquad", "biquad",
    "contrast", "convolve", "dcshift", "deemph_biquad", "deemphasis", "dither", "equalizer_biquad", "fftconvolve",
    "filtfilt", "flanger", "gain", "highpass_biquad", "lfilter", "loudness", "lowpass_biquad", "overdrive", "phaser",
    "preemphasis", "resample", "riaa_biquad", "speed", "treble_biquad", "vad",
]  # fmt: skip

RIAA = {
    44_100: ((-0.2014898, 0.9233820), (0.7083149, 0.9924091)),
    48_000: ((-0.1766069, 0.9321590), (0.7396325, 0.9931330)),
    88_200: ((-0.1168735, 0.9648312), (0.8590646, 0.9964002)),
    96_000: ((-0.1141486, 0.9676817), (0.8699137, 0.9966946)),
}
"""SoX's zeros and poles of the playback curve, by the sample rate (Hz)."""

DEEMPHASIS = {44_100: (5283.0, 0.4845, -9.477), 48_000: (5356.0, 0.479, -9.62)}
"""SoX's frequency (Hz), slope and gain (dB) of the shelf of ISO 908, by the sample rate (Hz)."""

KAISER_BETA = 14.769656459379492  # torchaudio's
RESAMPLINGS = ("sinc_interp_hann", "sinc_interp_kaiser")
CHANNEL_WEIGHTS = (1.0, 1.0, 1.0, 1.41, 1.41)  # BS.1770: L R C Ls Rs


def lfilter(waveform: Tensor, a_coeffs: Tensor, b_coeffs: Tensor, clamp: bool = True, batching: bool = True) -> Tensor:
    """Filter a waveform (..., time); mind the order, the denominator comes first.

    Args:
        waveform: float32 or float64.
        a_coeffs, b_coeffs: (order + 1,), or (filters, order + 1) for several filters.
        clamp: whether the result is limited to [-1, 1].
        batching: whether each filter gets its own channel, waveform (..., filters, time); otherwise each filters
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
    """Return y[n] = x[n] + coeff y[n-1], limited to [-1, 1]."""
    return biquad(waveform, 1.0, 0.0, 0.0, 1.0, -coeff, 0.0)


def band_biquad(
    waveform: Tensor,
    sample_rate: float,
    central_freq: Value,
    Q: Value = 0.707,  # noqa: N803
    noise: bool = False,
) -> Tensor:
    """Band-pass of two poles and no zeros, `central_freq / Q` wide; limited to [-1, 1].

    Args:
        waveform: float32 or float64, (..., time).
        sample_rate: Hz.
        central_freq: Hz.
        Q: quality factor.
        noise: whether the power of white noise is kept instead of the level at the centre.

    Examples:
        >>> band_biquad(torch.ones(2, 4), 48_000, 1000.0).shape
        torch.Size([2, 4])
    """
    waveform = check_signal(waveform)
    centre, quality = (torch.as_tensor(each, dtype=torch.float64, device=waveform.device) for each in (central_freq, Q))
    w0 = 2 * math.pi * centre / sample_rate
    a2 = torch.exp(-w0 / quality)
    a1 = -4 * a2 / (1 + a2) * torch.cos(w0)
    b0 = (((1 + a2) ** 2 - a1**2) * (1 - a2) / (1 + a2)).sqrt() if noise else (1 - a1**2 / (4 * a2)).sqrt() * (1 - a2)
    return biquad(waveform, b0, 0.0, 0.0, 1.0, a1, a2)


def deemph_biquad(waveform: Tensor, sample_rate: float) -> Tensor:
    """Undo the emphasis of compact discs (ISO 908) by a high shelf of -9.5 dB; limited to [-1, 1].

    Raises:
        ArgumentError: a rate other than 44100 and 48000 Hz.

    Examples:
        >>> deemph_biquad(torch.ones(2, 4), 48_000).shape
        torch.Size([2, 4])
    """
    centre, slope, gain_db = _of_rate(DEEMPHASIS, sample_rate)
    amplitude = 10 ** (gain_db / 40)
    q = 1 / math.sqrt((amplitude + 1 / amplitude) * (1 / slope - 1) + 2)
    return _run(waveform, sample_rate, centre, q, gain_db, "highshelf")


def riaa_biquad(waveform: Tensor, sample_rate: float) -> Tensor:
    """Equalise a vinyl record's signal by the RIAA's curve, 0 dB at 1 kHz; limited to [-1, 1].

    Raises:
        ArgumentError: a rate other than 44100, 48000, 88200 and 96000 Hz.

    Examples:
        >>> riaa_biquad(torch.ones(2, 4), 48_000).shape
        torch.Size([2, 4])
    """
    zeros, poles = _of_rate(RIAA, sample_rate)
    at_1_khz = complex(math.cos(2 * math.pi * 1000 / sample_rate), -math.sin(2 * math.pi * 1000 / sample_rate))
    b, a = ((1.0, -(one + other), one * other) for one, other in (zeros, poles))
    level = abs(sum(c * at_1_khz**k for k, c in enumerate(a)) / sum(c * at_1_khz**k for k, c in enumerate(b)))
    return biquad(waveform, level * b[0], level * b[1], level * b[2], a[0], a[1], a[2])


def convolve(x: Tensor, y: Tensor, mode: str = "full") -> Tensor:
    """Convolve along the last axis; the same as `fftconvolve`, which picks the faster way itself."""
    return fftconvolve(x, y, mode)


def add_noise(waveform: Tensor, noise: Tensor, snr: Tensor, lengths: Tensor | None = None) -> Tensor:
    """Add noise, to each signal at its own ratio of both energies.

    Unlike `torchfx.functional.add_noise`, whose ratio is that of an example's channels together.

    Args:
        waveform, noise: float32 or float64, (..., time); leading dimensions broadcast.
        snr: decibels, (...).
        lengths: how many samples of each signal count, (...); None: all. Noise is added after them, too.

    Returns:
        The sum, (..., time). To silence nothing is added, and silence adds nothing, where torchaudio's result is NaN.

    Raises:
        ArgumentError: shapes that don't fit.

    Examples:
        >>> add_noise(torch.ones(1, 4), torch.tensor([[1.0, -1.0, 1.0, -1.0]]), torch.tensor([20.0]))
        tensor([[1.1000, 0.9000, 1.1000, 0.9000]])
    """
    waveform, noise = check_signal(waveform), check_signal(noise)
    if waveform.dim() != noise.dim() or snr.dim() != waveform.dim() - 1 or waveform.shape[-1] != noise.shape[-1]:
        shapes = ", ".join(str(tuple(each.shape)) for each in (waveform, noise, snr))
        raise ArgumentError(
            f"waveform, noise and snr must have the shapes (..., time), (..., time), (...), got {shapes}"
        )
    leading = {"waveform": waveform.shape[:-1], "noise": noise.shape[:-1], "snr": snr.shape}
    broadcast_shapes(**leading, **({} if lengths is None else {"lengths": lengths.shape}))
    heard = None
    if lengths is not None:
        heard = torch.arange(waveform.shape[-1], device=waveform.device) < lengths[..., None]
    signal_level, noise_level = (
        torch.linalg.vector_norm((each if heard is None else each * heard).double(), dim=-1)
        for each in (waveform, noise)
    )
    ratio = torch.where(noise_level > 0, signal_level / noise_level.where(noise_level > 0, 1.0), 0.0)
    scale = ratio * 10 ** (snr.double() / -20)
    return (waveform + scale[..., None] * noise).to(torch.promote_types(waveform.dtype, noise.dtype))


def resample(
    waveform: Tensor,
    orig_freq: int,
    new_freq: int,
    lowpass_filter_width: int = 6,
    rolloff: float = 0.99,
    resampling_method: str = "sinc_interp_hann",
    beta: float | None = None,
) -> Tensor:
    """Change the sample rate by torchaudio's windowed sinc; `torchfx.filter.Resample` suppresses aliases by 125 dB.

    Args:
        waveform: float32 or float64, (..., time).
        orig_freq, new_freq: the rates, whole numbers of Hz, > 0.
        lowpass_filter_width: zeros of the sinc on each side, > 0.
        rolloff: the cutoff as a part of half the lower rate, in (0, 1].
        resampling_method: the window, "sinc_interp_hann" or "sinc_interp_kaiser".
        beta: of the Kaiser window; None: 14.77.

    Returns:
        (..., ceil(time new_freq / orig_freq)).

    Raises:
        ArgumentError: an argument out of range.
        ArgumentTypeError: a rate that is no whole number.

    Examples:
        >>> resample(torch.randn(2, 441), 44_100, 48_000).shape
        torch.Size([2, 480])
    """
    waveform = check_signal(waveform)
    before, after, zeros, rolloff, shape = checked_resampling(
        orig_freq, new_freq, lowpass_filter_width, rolloff, resampling_method, beta
    )
    if before == after:
        return waveform
    common = math.gcd(before, after)
    up, down = after // common, before // common
    taps = settings_on(sinc_taps(up, down, zeros, rolloff, shape), waveform.device)
    length = resampled_length(waveform.shape[-1], up, down)
    return _ops.resample_forward(waveform, taps, down, sinc_reach(up, down, zeros, rolloff), length)


def checked_resampling(
    orig_freq: int, new_freq: int, lowpass_filter_width: int, rolloff: float, resampling_method: str, beta: float | None
) -> tuple[int, int, int, float, float | None]:
    """Return both rates, the sinc's zeros, its rolloff and the Kaiser window's beta, None for Hann's, or raise."""
    before, after = (
        whole_number(name, int(value) if float(value).is_integer() else value, 1)
        for name, value in (("orig_freq", orig_freq), ("new_freq", new_freq))
    )
    zeros, rolloff = whole_number("lowpass_filter_width", lowpass_filter_width, 1), finite_number("rolloff", rolloff)
    if not 0 < rolloff <= 1:
        raise ArgumentError(f"rolloff must lie in (0, 1], got {number_text(rolloff)}")
    if resampling_method not in RESAMPLINGS:
        raise ArgumentError(f"resampling_method must be one of {', '.join(RESAMPLINGS)}, got {resampling_method!r}")
    shape = None
    if resampling_method == "sinc_interp_kaiser":
        shape = KAISER_BETA if beta is None else finite_number("beta", beta)
    return before, after, zeros, rolloff, shape


def speed(
    waveform: Tensor, orig_freq: int, factor: float, lengths: Tensor | None = None
) -> tuple[Tensor, Tensor | None]:
    """Play a signal `factor` times as fast, as a tape does, by `resample`.

    Args:
        waveform: float32 or float64, (..., time).
        orig_freq: Hz; the factor is rounded down to 1 / orig_freq.
        factor: how many times as fast, > 0.
        lengths: of the signals in `waveform`, (...); None: they fill it.

    Returns:
        (..., time / factor), rounded up, and the new lengths or None.

    Examples:
        >>> speed(torch.randn(2, 300), 16_000, 1.5, torch.tensor([300, 150]))[1]
        tensor([200, 100])
    """
    before, after = int(finite_number("factor", factor) * orig_freq), int(orig_freq)
    if before < 1:
        raise ArgumentError(f"factor must be at least 1 / orig_freq, got {number_text(factor)}")
    found = resample(waveform, before, after)
    if lengths is None:
        return found, None
    common = math.gcd(before, after)
    return found, torch.ceil(lengths * (after // common) / (before // common)).to(lengths.dtype)


def loudness(waveform: Tensor, sample_rate: float) -> Tensor:
    """Measure the integrated loudness by ITU-R BS.1770-4, with torchaudio's filters, which limit to [-1, 1].

    `torchfx.loudness.integrated` doesn't limit, has the standard's filters at every rate, takes more channels and gives
    -inf for silence.

    Args:
        waveform: float32 or float64, (..., channels, time), up to 5 channels and at least 0.4 s.
        sample_rate: Hz.

    Returns:
        LKFS, (...), in the waveform's type; NaN where nothing is louder than -70 LKFS.

    Raises:
        ArgumentError: more channels, or fewer samples.

    Examples:
        >>> tone = torch.sin(2 * math.pi * 997 / 48_000 * torch.arange(96_000))
        >>> print(f"{loudness(0.5 * tone[None], 48_000):.1f}")
        -9.1
    """
    waveform = check_signal(waveform)
    width = round(0.4 * sample_rate)
    hop = round(width * 0.25)
    if waveform.dim() < 2 or waveform.shape[-2] > len(CHANNEL_WEIGHTS) or waveform.shape[-1] < width:
        raise ArgumentError(
            f"waveform must have the shape (..., channels <= {len(CHANNEL_WEIGHTS)}, time >= {width}), "
            f"got {tuple(waveform.shape)}"
        )
    weighted = treble_biquad(waveform.double(), sample_rate, 4.0, 1500.0, 1 / math.sqrt(2))
    weighted = highpass_biquad(weighted, sample_rate, 38.0, 0.5)
    powers = weighted.square().unfold(-1, width, hop).mean(-1)
    weights = settings_on(CHANNEL_WEIGHTS[: powers.shape[-2]], powers.device)
    blocks = (weights[:, None] * powers).sum(-2)

    def level(passing: Tensor) -> Tensor:
        return -0.691 + 10 * ((blocks * passing).sum(-1) / passing.sum(-1)).log10()

    loud = -0.691 + 10 * blocks.log10() > -70.0
    loud = loud & (-0.691 + 10 * blocks.log10() > level(loud)[..., None] - 10)
    return level(loud).to(waveform.dtype)


def _run(
    waveform: Tensor, sample_rate: float, cutoff: Value, q: Value, gain_db: Value, btype: design.BiquadType
) -> Tensor:
    waveform = check_signal(waveform)
    sos = design.biquad(cutoff, q, gain_db, sample_rate, btype).to(waveform.device)
    return elementwise.clamp(_ops.parallel_iir_forward(waveform, sos)[0], -1.0, 1.0)


def _of_rate(table: dict[int, Any], sample_rate: float) -> Any:
    if sample_rate not in table:
        allowed = ", ".join(map(str, table))
        raise ArgumentError(f"sample_rate must be one of {allowed} Hz, got {number_text(sample_rate)} Hz")
    return table[int(sample_rate)]
