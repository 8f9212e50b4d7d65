"""The effects that torchaudio took from SoX, with its arguments and results.

Signals are (..., time), and come back in their type; between the two all is computed in float64. Where SoX limits to
full scale, so do these. `torchfx.effect` has effects of these names without SoX's peculiarities.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from torchfx.checks import finite_number, number_text
from torchfx.checks import sample_rate as checked_rate
from torchfx.errors import ArgumentError
from torchfx.functional import filtering
from torchfx.tensors import check_signal

__all__ = ["contrast", "dcshift", "dither", "flanger", "gain", "overdrive", "phaser"]

MOST_FLANGED = 4
"""Channels: SoX's limit, and torchaudio's."""

FORGOTTEN = 1e-18
"""Below the rounding of float64 relative to what it is added to."""


def gain(waveform: Tensor, gain_db: float | Tensor = 1.0) -> Tensor:
    """Multiply by 10^(gain_db / 20).

    Args:
        waveform: float32 or float64, (..., time).
        gain_db: decibels; a tensor broadcasts with the waveform.

    Examples:
        >>> gain(torch.tensor([0.1, -0.2]), 20.0)
        tensor([ 1., -2.])
    """
    found: Tensor = check_signal(waveform) * 10 ** (gain_db / 20)
    return found


def contrast(waveform: Tensor, enhancement_amount: float = 75.0) -> Tensor:
    """Make a signal sound louder: y = sin(u + c sin 4u), u = pi x / 2, c = enhancement_amount / 750.

    Args:
        waveform: float32 or float64, (..., time).
        enhancement_amount: from 0 to 100; 0 still is the sine.

    Raises:
        ArgumentError: an amount out of range.

    Examples:
        >>> contrast(torch.tensor([0.0, 0.5, 1.0]), 0.0)
        tensor([0.0000, 0.7071, 1.0000])
    """
    amount = _within("enhancement_amount", enhancement_amount, 0, 100)
    u = check_signal(waveform) * (math.pi / 2)
    return torch.sin(u + amount / 750 * torch.sin(4 * u))


def dcshift(waveform: Tensor, shift: float, limiter_gain: float | None = None) -> Tensor:
    """Add a constant and limit to [-1, 1]; unlike torchaudio's function, leave `waveform` as it was.

    Args:
        waveform: float32 or float64, (..., time).
        shift: what is added, from -2 to 2.
        limiter_gain: slope of the peaks beyond 1 - |shift| + limiter_gain on the side that `shift` points to, such as
            0.02, instead of clipping them.

    Raises:
        ArgumentError: a shift out of range, or a limiter's gain not below |shift|, for which there is no such peak.

    Examples:
        >>> dcshift(torch.tensor([-0.5, 0.0, 0.9]), 0.2)
        tensor([-0.3000,  0.2000,  1.0000])
    """
    waveform = check_signal(waveform)
    shift = _within("shift", shift, -2, 2)
    plain = (waveform + shift).clamp(-1.0, 1.0)
    if limiter_gain is None or shift == 0:
        return plain
    slope = finite_number("limiter_gain", limiter_gain)
    threshold = 1 - (abs(shift) - slope)
    if threshold >= 1:
        raise ArgumentError(
            f"limiter_gain must be less than |shift| = {number_text(abs(shift))}, got {number_text(slope)}"
        )
    towards = waveform * math.copysign(1, shift)
    peaks = ((towards - threshold) * slope / (1 - threshold) + threshold + abs(shift)).clamp(max=threshold)
    return torch.where(towards > threshold, peaks * math.copysign(1, shift), plain)


def overdrive(waveform: Tensor, gain: float = 20, colour: float = 20) -> Tensor:
    """Distort: half the signal and 3/4 of its cubic, clipped at 2/3, with the constant part taken out.

    With u = 10^(gain / 20) x + colour / 200, the cubic is u - u^3 / 3 within [-1, 1]; the constant part is taken out by
    (1 - 1/z) / (1 - 0.995/z), and the sum is limited to [-1, 1].

    Args:
        waveform: float32 or float64, (..., time).
        gain: decibels, from 0 to 100.
        colour: even harmonics, from 0 to 100.

    Raises:
        ArgumentError: an argument out of range.

    Examples:
        >>> overdrive(torch.tensor([1.0, 0.0, 0.0]), gain=0.0, colour=0.0)
        tensor([ 1.0000, -0.0025, -0.0025])
    """
    waveform = check_signal(waveform)
    factor = 10 ** (_within("gain", gain, 0, 100) / 20)
    u = (waveform.double() * factor + _within("colour", colour, 0, 100) / 200).clamp(-1.0, 1.0)
    shaped = filtering.biquad(u - u**3 / 3, 1.0, -1.0, 0.0, 1.0, -0.995, 0.0)
    return (waveform * 0.5 + shaped * 0.75).clamp(-1.0, 1.0).to(waveform.dtype)


def phaser(
    waveform: Tensor,
    sample_rate: float,
    gain_in: float = 0.4,
    gain_out: float = 0.74,
    delay_ms: float = 3.0,
    decay: float = 0.4,
    mod_speed: float = 0.5,
    sinusoidal: bool = True,
) -> Tensor:
    """Add a signal's own echo at a delay that swings: w[n] = gain_in x[n] + decay w[n - d(n)], y = gain_out w.

    d(n) is a whole number of samples between 1 and `delay_ms`, 1 at the start; y is limited to [-1, 1].

    Args:
        waveform: float32 or float64, (..., time).
        sample_rate: Hz.
        gain_in: from 0 to 1.
        gain_out: at least 0.
        delay_ms: the longest delay, up to 5 ms, at least one sample.
        decay: of the echo, from 0 to 0.99.
        mod_speed: how often the delay swings, from 0.1 to 2 Hz.
        sinusoidal: whether it swings with a sine; otherwise with a triangle.

    Raises:
        ArgumentError: an argument out of range.

    Examples:
        >>> phaser(torch.tensor([1.0, 0.0, 0.0]), 8000, gain_in=0.5, gain_out=1.0, decay=0.5)
        tensor([0.5000, 0.2500, 0.1250])
    """
    waveform = check_signal(waveform)
    gain_in, gain_out = _within("gain_in", gain_in, 0, 1), _within("gain_out", gain_out, 0, 1e9)
    decay, speed = _within("decay", decay, 0, 0.99), _within("mod_speed", mod_speed, 0.1, 2)
    fs = checked_rate(sample_rate)
    longest = int(_within("delay_ms", delay_ms, 0, 5) * 0.001 * fs + 0.5)
    if longest < 1:
        raise ArgumentError(f"delay_ms must be at least one sample, got {number_text(delay_ms)} ms")
    table = _wave(int(fs / speed + 0.5), 0.25, sinusoidal) * (longest - 1) + 1
    time = torch.arange(waveform.shape[-1], device=waveform.device)
    delay = longest + 1 - (table + 0.5).floor().long().to(waveform.device)[time % len(table)]
    # w = v + decay S w, where S reads d(n) samples back. Each round doubles the length of the echoes that are summed:
    # (1 - q)^-1 = (1 + q)(1 + q^2)(1 + q^4) ..., and each power of S reads one earlier sample, too.
    w, source, factor = waveform.double() * gain_in, time - delay, decay
    for _ in range((len(time) - 1).bit_length()):
        if factor < FORGOTTEN:
            break
        at, heard = source.clamp(min=0), source >= 0
        w = w + factor * torch.where(heard, w[..., at], 0.0)
        source, factor = torch.where(heard, source[at], -1), factor * factor
    return (w * gain_out).clamp(-1.0, 1.0).to(waveform.dtype)


def flanger(
    waveform: Tensor,
    sample_rate: float,
    delay: float = 0.0,
    depth: float = 2.0,
    regen: float = 0.0,
    width: float = 71.0,
    speed: float = 0.5,
    phase: float = 25.0,
    modulation: str = "sinusoidal",
    interpolation: str = "linear",
) -> Tensor:
    """Mix a signal with itself at a delay that swings, fed back by `regen`.

    With r = regen / 100 and g = width / 100: y = (x + g (1 - |r|) v) / (1 + g), limited to [-1, 1], where v is
    x[n] + r v[n - 1], delayed.

    Args:
        waveform: float32 or float64, (..., channels, time), up to 4 channels.
        sample_rate: Hz.
        delay: the shortest delay, from 0 to 30 ms.
        depth: how far it swings beyond, from 0 to 10 ms.
        regen: feedback, from -95 to 95 percent. Where it isn't 0, the signal is computed in steps no longer than its
            delay, which takes some 100 times as long at short delays.
        width: the delayed part, from 0 to 100 percent.
        speed: how often the delay swings, from 0.1 to 10 Hz.
        phase: how far the swings of neighbouring channels lie apart, from 0 to 100 percent of a turn.
        modulation: "sinusoidal" or "triangular".
        interpolation: between samples, "linear" or "quadratic".

    Raises:
        ArgumentError: an argument out of range, or more than 4 channels.

    Examples:
        >>> flanger(torch.tensor([[1.0, 0.0, 0.0]]), 1000, delay=2.0, depth=0.0, width=100.0)
        tensor([[0.5000, 0.0000, 0.5000]])
    """
    waveform = check_signal(waveform)
    if waveform.dim() < 2 or waveform.shape[-2] > MOST_FLANGED:
        raise ArgumentError(
            f"waveform must have the shape (..., channels <= {MOST_FLANGED}, time), got {tuple(waveform.shape)}"
        )
    shortest, deep = _within("delay", delay, 0, 30) / 1000, _within("depth", depth, 0, 10) / 1000
    feedback, amount = _within("regen", regen, -95, 95) / 100, _within("width", width, 0, 100) / 100
    turn, rate = _within("phase", phase, 0, 100) / 100, _within("speed", speed, 0.1, 10)
    for name, value, options in (
        ("modulation", modulation, ("sinusoidal", "triangular")),
        ("interpolation", interpolation, ("linear", "quadratic")),
    ):
        if value not in options:
            raise ArgumentError(f"{name} must be one of {', '.join(options)}, got {value!r}")
    fs = checked_rate(sample_rate)
    lowest, highest = math.floor(shortest * fs + 0.5), int((shortest + deep) * fs + 0.5)
    table = _wave(int(fs / rate), 0.75, modulation == "sinusoidal") * (highest - lowest) + lowest
    channels, time = waveform.shape[-2:]
    starts = torch.tensor([int(channel * len(table) * turn + 0.5) for channel in range(channels)])
    places = table.float().double()[(torch.arange(time) + starts[:, None]) % len(table)].to(waveform.device)
    whole = places.floor()
    part = places - whole
    taps = [1 - part, part]
    if interpolation == "quadratic":  # the parabola through three samples
        taps = [(part - 1) * (part - 2) / 2, part * (2 - part), part * (part - 1) / 2]
    weights, back = torch.stack(taps, dim=-1), whole.long()
    delayed = _fed_back(waveform.double(), weights, back, feedback, highest + len(taps))
    y = (waveform + delayed * (amount * (1 - abs(feedback)))) / (1 + amount)
    return y.clamp(-1.0, 1.0).to(waveform.dtype)


def _fed_back(x: Tensor, weights: Tensor, back: Tensor, feedback: float, reach: int) -> Tensor:
    """Return v[n] = sum over j of weights[n, j] w[n - back[n] - j], where w[n] = x[n] + feedback v[n - 1].

    Args:
        x: (..., channels, time).
        weights: (channels, time, n).
        back: int64, (channels, time), >= 0.
        feedback: below 1.
        reach: more than the largest back + n - 1.
    """
    time, offsets = x.shape[-1], torch.arange(weights.shape[-1], device=x.device)
    ends = [time]
    if feedback:
        # A step may only read values that are already known: v[n] needs x[n] and v[n - 1] if back is 0.
        nearest, ends, start = (back.amin(0) + 1).tolist() if len(back) else [1] * time, [], 0
        while start < time:
            end = start + 1
            while end < time and end - nearest[end] < start:
                end += 1
            ends.append(end)
            start = end
    past, v, parts, start = x.new_zeros(*x.shape[:-1], reach), x.new_zeros(*x.shape[:-1], 1), [], 0
    for end in ends:
        fresh = x[..., start:end]
        if feedback:  # only the first of the new w may depend on a v of this step, which it doesn't: v[n - 1] is known
            fresh = torch.cat([fresh[..., :1] + feedback * v[..., -1:], fresh[..., 1:]], dim=-1)
        heard = torch.cat([past, fresh], dim=-1)
        at = torch.arange(end - start, device=x.device)[:, None] + reach - back[:, start:end, None] - offsets
        v = (heard[..., torch.arange(len(back), device=x.device)[:, None, None], at] * weights[:, start:end]).sum(-1)
        parts.append(v)
        if feedback and end - start > 1:
            fresh = torch.cat([fresh[..., :1], x[..., start + 1 : end] + feedback * v[..., :-1]], dim=-1)
            heard = torch.cat([past, fresh], dim=-1)
        past, start = heard[..., heard.shape[-1] - reach :], end
    return torch.cat(parts, dim=-1)


def dither(waveform: Tensor, density_function: str = "TPDF", noise_shaping: bool = False) -> Tensor:
    """Round to 16 bits as torchaudio does: (32766 x + d) / 32768, rounded.

    In spite of the names, d is no noise: a triangle over the signal's time, from 0 to 1 and back ("TPDF"), or one
    number for the whole signal, picked from its own samples: one of them - 0.5 ("RPDF"), or the sum of seven ("GPDF").
    `torchfx.effect.Dither` adds noise of these densities.

    Args:
        waveform: float32 or float64, (..., time).
        density_function: "TPDF", "RPDF" or "GPDF"; the samples are picked by PyTorch's generator.
        noise_shaping: whether each sample's error is added to the next sample, which puts the error's zero at half the
            sample rate.

    Raises:
        ArgumentError: an unknown density.

    Examples:
        >>> dither(torch.tensor([0.1, 0.2, 0.3])) * 2**15
        tensor([3277., 6554., 9830.])
    """
    waveform = check_signal(waveform)
    if density_function not in ("TPDF", "RPDF", "GPDF"):
        raise ArgumentError(f"density_function must be one of TPDF, RPDF, GPDF, got {density_function!r}")
    if waveform.numel() == 0:
        return waveform.clone()
    rows, time = waveform.reshape(-1, waveform.shape[-1]), waveform.shape[-1]
    if density_function == "TPDF":
        added = torch.bartlett_window(time, dtype=waveform.dtype, device=waveform.device)
    else:
        picked = torch.stack([_picked(rows) for _ in range(1 if density_function == "RPDF" else 7)])
        added = picked.sum() - (0.5 if density_function == "RPDF" else 0.0)
    rounded = torch.round(waveform * (2**15 - 2) + added) / 2**15
    if not noise_shaping:
        return rounded
    return rounded + torch.nn.functional.pad((rounded - waveform)[..., :-1], (1, 0))


def _picked(rows: Tensor) -> Tensor:
    """Return one of the samples (rows, time), except for the last row and the last sample where there are others."""
    row, sample = (int(torch.randint(size - 1, (1,))) if size > 1 else 0 for size in rows.shape)
    return rows[row, sample]


def _wave(length: int, start: float, sinusoidal: bool) -> Tensor:
    """Return one turn of a wave between 0 and 1, float64, (length,), from a part of the turn on."""
    point = (torch.arange(length) + int(start * length + 0.5)) % length
    if sinusoidal:
        return (torch.sin(point.double() / length * 2 * math.pi) + 1) / 2
    slope, quarter = point.double() * 2 / length, 4 * point // length
    return torch.where(quarter == 0, slope + 0.5, torch.where(quarter == 3, slope - 1.5, 1.5 - slope))


def _within(name: str, value: float, low: float, high: float) -> float:
    number = finite_number(name, int(value) if isinstance(value, bool) else value)  # torchaudio takes True for 1, too
    if not low <= number <= high:
        raise ArgumentError(f"{name} must lie in [{number_text(low)}, {number_text(high)}], got {number_text(number)}")
    return number
