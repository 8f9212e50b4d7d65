"""The operators' Python entry points; callers look them up here at call time, so a wrapper put in place is called.

All take float32 or float64 signals (..., time) on any device, compute in float64, and return the output and the
state after it (float64, SciPy's zi layout), from which the next block continues. Coefficients may have leading
dimensions, which broadcast with the signal's: each example, channel or band can have a different filter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, Final

from torch import Tensor

from torchfx._ops.operator import Row, register

__all__ = [
    "allpole_forward",
    "ballistics_forward",
    "biquad_forward",
    "delay_network_forward",
    "dynamics_forward",
    "error_feedback_forward",
    "fir_forward",
    "lfilter_forward",
    "lfilter_zero_phase",
    "limiter_forward",
    "lti_forward",
    "magnitude",
    "mel_forward",
    "modulated_delay_forward",
    "modulated_gain_forward",
    "noise_forward",
    "noise_magnitude",
    "operators",
    "parallel_iir_forward",
    "phase_vocoder_forward",
    "phaser_forward",
    "resample_forward",
    "rows",
    "saturated_forward",
    "sliding_max",
    "sliding_median",
    "sos_zero_phase",
    "state_space_forward",
]

operators: Final[dict[str, Callable[..., Any]]] = {}
"""The declared operators by name; they take all arguments by position."""

rows: Final[list[Row]] = []
"""Which backend serves which operator, for `torchfx info`."""

for _module in iter_modules(__path__):
    if _module.ispkg:
        rows.extend(register(import_module(f"{__name__}.{_module.name}"), operators))


def parallel_iir_forward(
    x: Tensor,
    sos: Tensor,
    state: Tensor | None = None,
    threshold: int | None = None,
    out: Sequence[Tensor] | None = None,
) -> tuple[Tensor, Tensor]:
    """Filter a signal through a whole cascade of second-order sections: one call at any depth.

    Args:
        x: float32 or float64, (..., time).
        sos: float64, (..., sections, 6), rows b0 b1 b2 a0 a1 a2; leading dimensions broadcast with the signal's.
        state: float64, (sections, ..., 2), SciPy's `sosfilt` zi; None starts from rest.
        threshold: signals of at least this many samples may be split along time;
            None means `splitting.THRESHOLD`.
        out: output and state after to write into, instead of new tensors.

    Returns:
        The output like x (with the sections' leading dimensions), and the state after it like `state`.

    Raises:
        ArgumentError: a wrong shape or device, a NaN or infinite coefficient, an unstable section.
        ArgumentTypeError: a wrong dtype.

    Examples:
        >>> import torch
        >>> sos = torch.tensor([[0.5, 0.5, 0.0, 1.0, 0.0, 0.0]], dtype=torch.float64)
        >>> y, state = parallel_iir_forward(torch.tensor([1.0, 0.0, 2.0]), sos)
        >>> y
        tensor([0.5000, 0.5000, 1.0000])
    """
    return operators["sos_forward"](x, sos, state, threshold, out=out)


def biquad_forward(
    x: Tensor, b: Tensor, a: Tensor, state: Tensor | None = None, threshold: int | None = None
) -> tuple[Tensor, Tensor]:
    """Filter a signal through one second-order section.

    Args:
        x: float32 or float64, (..., time).
        b: float64, (..., 3), numerator.
        a: float64, (..., 3), denominator.
        state: float64, (..., 2), SciPy's `lfilter` zi; None starts from rest.
        threshold: as in `parallel_iir_forward`.

    Returns:
        The output like x, and the state after it like `state`.
    """
    return operators["biquad_forward"](x, b, a, state, threshold)


def fir_forward(
    x: Tensor, taps: Tensor, state: Tensor | None = None, out: Sequence[Tensor] | None = None
) -> tuple[Tensor, Tensor]:
    """Filter a signal through a finite impulse response.

    Args:
        x: float32 or float64, (..., time).
        taps: float64, (..., n); leading dimensions broadcast with the signal's.
        state: float64, (..., n - 1), SciPy's `lfilter` zi; None starts from rest.
        out: output and state after to write into, instead of new tensors.

    Returns:
        The output like x, and the state after it like `state`.
    """
    return operators["fir_forward"](x, taps, state, out=out)


def lfilter_forward(x: Tensor, b: Tensor, a: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Filter a signal with a transfer function as it is, in the transposed direct form; stable or not.

    Args:
        x: float32 or float64, (..., time).
        b, a: float64, (..., order + 1), order >= 1; a0 is taken for 1.
        state: float64, (..., order), SciPy's `lfilter` zi; None starts from rest.

    Returns:
        The output like x, and the state after it like `state`.
    """
    return operators["lfilter_forward"](x, b, a, state)


def lfilter_zero_phase(x: Tensor, b: Tensor, a: Tensor, edge: int, extension: str) -> Tensor:
    """Filter a signal with a transfer function forwards and then backwards.

    Args:
        x: float32 or float64, (..., time).
        b, a: as in `lfilter_forward`; `a` doesn't sum to zero.
        edge, extension: as in `sos_zero_phase`.

    Returns:
        The output like x.
    """
    return operators["lfilter_zero_phase"](x, b, a, edge, extension)


def sos_zero_phase(x: Tensor, sos: Tensor, edge: int, extension: str) -> Tensor:
    """Filter a signal through a cascade forwards and then backwards.

    Each time the cascade starts from the state in which it has settled on the first sample it meets.

    Args:
        x: float32 or float64, (..., time).
        sos: float64, (..., sections, 6), as in `parallel_iir_forward`.
        edge: by how many samples, fewer than it has, the signal continues beyond each of its ends.
        extension: how: "odd", "even" or "constant", as SciPy's `padtype`.

    Returns:
        The output like x.
    """
    return operators["sos_zero_phase"](x, sos, edge, extension)


def lti_forward(
    x: Tensor,
    taps: Tensor,
    sos: Tensor,
    taps_state: Tensor | None = None,
    state: Tensor | None = None,
    threshold: int | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Filter a signal through a finite impulse response and then a cascade, in float64 between the two.

    Args:
        x: float32 or float64, (..., time).
        taps: float64, (..., n).
        sos: float64, (..., sections, 6).
        taps_state: float64, (..., n - 1), the response's state; None starts from rest.
        state: float64, (sections, ..., 2), the cascade's state; None starts from rest.
        threshold: as in `parallel_iir_forward`.

    Returns:
        The output like x, the response's state after it, the cascade's state after it.
    """
    return operators["lti_forward"](x, taps, sos, taps_state, state, threshold)


def allpole_forward(x: Tensor, a: Tensor, past: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Run y[t] = x[t] - a[1] y[t-1] - ... - a[order] y[t-order], with coefficients that may change at every sample.

    Args:
        x: float32 or float64, (..., time).
        a: float32 or float64, (..., 1, order) for all samples, or (..., time, order), a row for each.
        past: float64, (..., order), the outputs before the first, latest first (not SciPy's zi); None starts from rest.

    Returns:
        The output like x, and the last outputs like `past`.

    Raises:
        ArgumentError: a wrong shape or device, a constant coefficient that is NaN or infinite.
        ArgumentTypeError: a wrong dtype.
    """
    return operators["allpole_forward"](x, a, past)


def state_space_forward(x: Tensor, system: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Run [s'; y] = M [s; x], a linear system of 1 to 4 states that may change at every sample.

    Args:
        x: float32 or float64, (..., time).
        system: float64, (..., times, n + 1, n + 1), each matrix M = [[A, B], [C, D]] for time / times samples.
        state: float64, (..., n); None starts from rest.

    Returns:
        The output like x, and the state after it like `state`.

    Raises:
        ArgumentError: a wrong shape or device, a constant system that is not finite, a number of matrices that does not
            divide the signal evenly.
        ArgumentTypeError: a wrong dtype.
    """
    return operators["state_space_forward"](x, system, state)


def saturated_forward(
    x: Tensor, system: Tensor, feedback: Tensor, drive: Tensor, state: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Run a system whose input is tanh(drive (x - feedback y)) / drive, with its output y of the same instant.

    Args:
        x, system, state: as in `state_space_forward`.
        feedback, drive: float64, (...), one value for each channel. Where drive is 0 the input is x - feedback y.
            feedback times M's last element must not be negative, or the loop may have several solutions.

    Returns:
        The output like x, and the state after it like `state`.
    """
    return operators["saturated_forward"](x, system, feedback, drive, state)


def error_feedback_forward(
    x: Tensor, dither: Tensor, taps: Tensor, errors: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Round to whole numbers, with dither, and shape the errors' spectrum: they come back through a filter.

    See `_ops/error_feedback/schema.py` for the formulas and their source.

    Args:
        x: float32 or float64, (..., time), in steps of the quantiser.
        dither: like x, what is added before rounding; leading dimensions broadcast.
        taps: float64, (..., n): the errors' spectrum is that of 1 - taps[0] z^-1 - ... - taps[n-1] z^-n.
        errors: float64, (..., n), the errors before the first sample, latest first; None starts from rest.

    Returns:
        The output like x, and the last errors like `errors`. The gradient is 0.

    Raises:
        ArgumentError: a wrong shape or device, a tap that is NaN or infinite.
        ArgumentTypeError: a wrong dtype.
    """
    return operators["error_feedback_forward"](x, dither, taps, errors)


def noise_forward(x: Tensor, gain: Tensor, place: Tensor, key: int, density: str, rounded: bool = False) -> Tensor:
    """Add noise that depends on its key and place alone, or round after it.

    See `_ops/noise/schema.py` for what the numbers are.

    Args:
        x: float32 or float64, (..., time).
        gain: float64, (...): what the noise is multiplied by; leading dimensions broadcast.
        place: int64, (...): that of the first sample's number; leading dimensions broadcast.
        key: the noise's place among all others.
        density: "normal", "rectangular", "triangular" or "differences".
        rounded: return gain round(x / gain + noise), halves to the even number, instead of x + gain noise.

    Returns:
        The output, of x's dtype. Its gradient is 0 if rounded.

    Raises:
        ArgumentError: a wrong shape, device or density.
        ArgumentTypeError: a wrong dtype.
    """
    return operators["noise_forward"](x, gain, place, key, density, rounded)


def noise_magnitude(place: Tensor, time: int, key: int) -> Tensor:
    """Return the root of the sum of squares of `time` normal numbers from each place on; see `noise_forward`.

    Returns:
        float64, like `place`.
    """
    return operators["noise_magnitude"](place, time, key)


def magnitude(x: Tensor) -> Tensor:
    """Return the root of the sum of squares over time, computed in float64.

    Args:
        x: float32 or float64, (..., time).

    Returns:
        float64, (...). The gradient of silence is 0.
    """
    return operators["magnitude"](x)


def phase_vocoder_forward(
    x: Tensor,
    window: Tensor,
    state: Tensor | None,
    rate: float,
    hop: int,
    first: int,
    origin: int,
    count: int,
    out: Sequence[Tensor] | None = None,
) -> tuple[Tensor, Tensor]:
    """Stretch time: frames of spectra, read `rate` times as far apart as they are laid down, with locked phases.

    See `_ops/phase_vocoder/schema.py` for the formulas and their sources.

    Args:
        x: float32 or float64, (..., time); zero outside of it.
        window: float64, (n,), n a power of two >= 256: what frames are multiplied by, before and after.
        state: float64, (..., n / 2 + 1, 2): real and imaginary part of the spectrum laid down last; None: none was.
        rate: input samples for an output sample.
        hop: samples of the output between two frames; it divides n.
        first: the number of the first frame; frame u is read around x[origin + u hop rate].
        origin: where in x the input's time 0 lies.
        count: how many frames.
        out: output and state after to write into, instead of new tensors.

    Returns:
        The frames' sum, (..., (count - 1) hop + n), which begins n / 2 before the first one's middle, and the state
        after it.

    Examples:
        >>> import torch
        >>> x, window = torch.ones(2048), torch.hann_window(256, dtype=torch.float64)
        >>> y, _ = phase_vocoder_forward(x, window, None, 0.5, 64, 0, 0, 64)
        >>> y.shape, round(float(y[2000]), 4)
        (torch.Size([4288]), 1.5)
    """
    return operators["phase_vocoder_forward"](x, window, state, rate, hop, first, origin, count, out=out)


def resample_forward(
    x: Tensor, taps: Tensor, down: int, origin: int, length: int, out: Sequence[Tensor] | None = None
) -> Tensor:
    """Change the sample rate by up/down: y[m] = sum over k of taps[p, k] x[q - k] with q up + p = m down + origin.

    Args:
        x: float32 or float64, (..., time); zero outside of it.
        taps: float64, (up, n): the phases of a low-pass at `up` times x's rate.
        down: >= 1, without a divisor in common with up.
        origin: where output 0 lies, in sampling intervals of x over `up`; of any sign.
        length: how many outputs.
        out: a tensor to write into, instead of a new one, in a sequence.

    Returns:
        Like x, (..., length).

    Examples:
        >>> import torch
        >>> hold = torch.ones(2, 1, dtype=torch.float64)
        >>> resample_forward(torch.tensor([1.0, 2.0]), hold, 1, 0, 4)
        tensor([1., 1., 2., 2.])
    """
    return operators["resample_forward"](x, taps, down, origin, length, out=out)


def delay_network_forward(
    x: Tensor,
    delays: Sequence[int],
    system: Tensor,
    sos: Tensor | None = None,
    lines: Tensor | None = None,
    state: Tensor | None = None,
    filter_first: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    """Run delay lines that feed each other, each through its own filter: feedback delays, combs, reverberators.

    r_i[t] = s_i[t - delays[i]], s = F(A r) + B x, y = C r + D x, with M = [[A, B], [C, D]].

    Args:
        x: float32 or float64, (..., inputs, time).
        delays: of n lines, in samples, >= 1.
        system: float64, (..., n + outputs, n + inputs): M. The loops have to decay; that is not checked.
        sos: float64, (..., n, sections, 6): the sections of each line's filter F; None: they change nothing.
        lines: float64, (..., sum of delays): what went into the lines last, oldest first, one line after the other;
            None for silence.
        state: float64, (sections, ..., n, 2): the filters', SciPy's `sosfilt` zi; None starts from rest.
        filter_first: s = A F(r) + B x instead.

    Returns:
        The output (..., outputs, time) like x, and both states after it.

    Raises:
        ArgumentError: a wrong shape or device, a coefficient that is NaN or infinite, an unstable section.
        ArgumentTypeError: a wrong dtype.

    Examples:
        >>> import torch
        >>> echo = torch.tensor([[0.5, 1.0], [1.0, 0.0]], dtype=torch.float64)
        >>> delay_network_forward(torch.tensor([[1.0, 0, 0, 0, 0, 0, 0]]), [2], echo)[0]
        tensor([[0.0000, 0.0000, 1.0000, 0.0000, 0.5000, 0.0000, 0.2500]])
    """
    return operators["delay_network_forward"](x, delays, system, sos, lines, state, filter_first)


def ballistics_forward(x: Tensor, coefficients: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Follow a signal with one coefficient up and another one down: y[t] = y[t-1] + c (x[t] - y[t-1]).

    c is `rise` where x[t] > y[t-1], else `fall`. In derivatives, which of both a sample takes is held constant.

    Args:
        x: float32 or float64, (..., time).
        coefficients: float64, (..., 2), rise and fall in [0, 1]; leading dimensions broadcast with the signal's.
        state: float64, (...), the output before the first; None is 0.

    Returns:
        The output like x, and the last output like `state`.

    Examples:
        >>> import torch
        >>> ballistics_forward(torch.tensor([1.0, 1.0, 0.0]), torch.tensor([0.5, 0.25], dtype=torch.float64))[0]
        tensor([0.5000, 0.7500, 0.5625])
    """
    return operators["ballistics_forward"](x, coefficients, state)


def dynamics_forward(
    x: Tensor, key: Tensor | None, settings: Tensor, state: Tensor | None = None, link: int | None = None
) -> tuple[Tensor, Tensor]:
    """Multiply a signal by the gain of a compressor, expander or gate.

    Args:
        x: float32 or float64, (..., time).
        key: the detector's input, of x's dtype, (..., time); None is x.
        settings: float64, (..., 8): threshold_db, above, below, knee_db, lowest_db, makeup_db, rise, fall. With
            o = 20 log10 |key| - threshold_db and k(o) = 0 for o <= -knee/2, o for o >= knee/2 and
            (o + knee/2)^2 / (2 knee) between, max(above k(o) + below k(-o), lowest_db) is smoothed as by
            `ballistics_forward`. Leading dimensions broadcast with the key's.
        state: float64, (...), the smoothed gain before the first sample, dB; None is 0.
        link: the key's dimension, from the end, whose channels share the gain of the loudest; it becomes 1. None: no.

    Returns:
        x times 10^((smoothed gain + makeup_db) / 20), and the last smoothed gain like `state`.
    """
    return operators["dynamics_forward"](x, key, settings, state, link)


def limiter_forward(
    x: Tensor,
    past: Tensor,
    peaks: Tensor | None,
    settings: Tensor,
    state: Tensor,
    ramp: Tensor,
    link: int | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Keep a signal's peaks below a threshold, late by as many samples as `past` holds.

    With z the samples of `past` and then x, y[t] is z[t] times 1 less the mean of r[t - ahead ... t]. r follows
    1 - threshold / max(largest of peaks[t ... t + window - 1], threshold), up at once and down with `fall`.

    Args:
        x: float32 or float64, (..., time).
        past: of x's dtype, (..., delay), the signal before x.
        peaks: likewise, (..., time + window - 1); None is |z|, with a window of delay + 1.
        settings: float64, (..., 2): threshold, a factor, and the coefficient `fall` in [0, 1].
        state: float64, (...), r before the first sample.
        ramp: float64, (..., ahead), the last ones of r.
        link: the dimension, from the end, whose channels share the gain of the loudest; it becomes 1. None: no.

    Returns:
        The output, and `state` and `ramp` after it.
    """
    return operators["limiter_forward"](x, past, peaks, settings, state, ramp, link)


def sliding_max(x: Tensor, window: int) -> Tensor:
    """Return the largest of each `window` samples in a row.

    Args:
        x: float32 or float64, (..., time).
        window: how many samples, in [1, time + 1].

    Returns:
        Like x, (..., time - window + 1).

    Examples:
        >>> import torch
        >>> sliding_max(torch.tensor([1.0, 3.0, 2.0, 0.0]), 2)
        tensor([3., 3., 2.])
    """
    return operators["sliding_max"](x, window)


def sliding_median(x: Tensor, window: int) -> Tensor:
    """Return the median of each `window` samples in a row, NaN where one of them is.

    Args:
        x: float32 or float64, (..., time).
        window: how many samples, odd, in [1, time + 1].

    Returns:
        Like x, (..., time - window + 1).

    Examples:
        >>> import torch
        >>> sliding_median(torch.tensor([1.0, 3.0, 2.0, 0.0]), 3)
        tensor([2., 2.])
    """
    return operators["sliding_median"](x, window)


def modulated_gain_forward(x: Tensor, settings: Tensor, phase: Tensor) -> tuple[Tensor, Tensor]:
    """Multiply by a gain that swings with an oscillator: y[n] = x[n] (middle + depth sin(2 pi (phase + turns n))).

    Args:
        x: float32 or float64, (..., time).
        settings: float64, (..., 3): turns per sample, middle and depth; leading dimensions broadcast with the signal's.
        phase: float64, (...), of the oscillator at the first sample, in turns.

    Returns:
        The output like x, and the phase after the last sample, in [0, 1].

    Examples:
        >>> import torch
        >>> swings = torch.tensor([0.25, 1.0, 0.5], dtype=torch.float64)
        >>> modulated_gain_forward(torch.ones(4), swings, torch.zeros((), dtype=torch.float64))[0]
        tensor([1.0000, 1.5000, 1.0000, 0.5000])
    """
    return operators["modulated_gain_forward"](x, settings, phase)


def modulated_delay_forward(x: Tensor, settings: Tensor, phase: Tensor, past: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Mix a signal with itself, delayed by a time that swings with an oscillator, with or without feedback.

    See `_ops/modulation/schema.py` for the formulas.

    Args:
        x: float32 or float64, (..., time).
        past: like x, (..., kept): the samples in the delay before. The delay is at most kept - 2.
        settings: float64, (..., 4) or (..., 5): turns per sample, centre and depth of the delay in samples, mix,
            feedback.
        phase: as in `modulated_gain_forward`.

    Returns:
        The output like x, the phase after the last sample, and the last `kept` samples in the delay.
    """
    return operators["modulated_delay_forward"](x, settings, phase, past)


def phaser_forward(x: Tensor, settings: Tensor, phase: Tensor, state: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Mix a signal with itself after all-pass filters of first order, whose corner swings with an oscillator.

    See `_ops/modulation/schema.py` for the formulas.

    Args:
        x: float32 or float64, (..., time).
        settings: float64, (..., 4) or (..., 5): turns per sample, the corner's centre in cycles per sample, how many
            octaves it swings, mix, feedback.
        phase: as in `modulated_gain_forward`.
        state: float64, (stages, ...): of each filter.

    Returns:
        The output like x, the phase after the last sample, and the filters' state.
    """
    return operators["phaser_forward"](x, settings, phase, state)


def mel_forward(
    x: Tensor,
    window: Tensor,
    filters: Tensor | None,
    n_fft: int,
    hop: int,
    origin: int,
    count: int,
    reflect: bool = True,
    power: float = 2.0,
    preemphasis: float = 0.0,
    centred: bool = False,
    gain: float = 0.0,
    floor: float = 0.0,
    offset: float = 0.0,
) -> Tensor:
    """Return bands of the spectra of frames, or their logarithms, in one pass: in the samples' precision.

    See `_ops/mel/schema.py` for the formulas.

    Args:
        x: float32 or float64, (..., time).
        window: float64, (n,), n <= n_fft: each frame's samples are multiplied by it.
        filters: float64, (bands, n_fft // 2 + 1); None: each bin is a band.
        n_fft: samples of a transform.
        hop: samples from one frame to the next.
        origin: how many samples before the signal the first frame begins.
        count: frames, >= 0.
        reflect: whether the signal is reflected at its ends; else zeros lie there.
        power: exponent of magnitudes, > 0.
        preemphasis: of each frame.
        centred: whether each frame's mean is subtracted.
        gain: of the natural logarithm; 0: none is taken.
        floor, offset: max(band + offset, floor) goes into the logarithm.

    Returns:
        Like x, (..., bands, count).

    Examples:
        >>> import torch
        >>> tone = torch.cos(torch.pi / 2 * torch.arange(64))
        >>> mel_forward(tone, torch.ones(8, dtype=torch.float64), None, 8, 8, 0, 8)[:, 0].round()
        tensor([ 0.,  0., 16.,  0.,  0.])
    """
    return operators["mel_forward"](
        x, window, filters, n_fft, hop, origin, count, reflect, power, preemphasis, centred, gain, floor, offset
    )
