"""Delays, with and without feedback."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from torchfx.design.first_order import dc_blocker, one_pole
from torchfx.effect.channels import matrix_of, per_example
from torchfx.effect.delay_network import DelayNetwork, Network
from torchfx.errors import ArgumentError
from torchfx.parameters import Value, duration, duration_samples, flag, frequency, number, sample_rate
from torchfx.plan import LTI
from torchfx.plan.lti import cascade

__all__ = ["Delay", "PingPongDelay"]

LONGEST_S = 600
"""The longest delay: all of it is kept in memory."""


class FeedbackDelay(DelayNetwork):
    """Base class of delays with feedback: parameters, the delay in samples, the filter in the loop."""

    time: float | str = duration(default=0.25, notes=True, plausible=10.0, doc="delay")
    bpm: float = number(
        default=120.0, low=0.0, open_low=True, high=1e4, draws=(1e3, 1e4), doc="quarters per minute", learnable=False
    )
    feedback: Value = number(
        default=0.0,
        low=-1.0,
        high=1.0,
        open_low=True,
        open_high=True,
        doc="gain of each repetition relative to the one before",
    )
    mix: Value = number(default=1.0, low=0.0, high=1.0, doc="0: input only, 1: delayed signal only")
    low_cut: Value | None = frequency(
        default=None, doc="cutoff of the high-pass in the feedback loop; None: no high-pass"
    )
    high_cut: Value | None = frequency(
        default=None, doc="cutoff of the low-pass in the feedback loop; None: no low-pass"
    )
    fs: float | None = sample_rate(default=None)

    def check_parameters(self) -> None:
        """Raise if a feedback loop would have no delay."""
        if self.fs is not None and self.lti(self.fs) is None:
            self.samples(self.fs)

    def unused(self) -> tuple[str, ...]:
        """Return `bpm`, unless the time is a note's length."""
        return () if isinstance(self.time, str) and "/" in self.time else ("bpm",)

    def any_samples(self, rate: float) -> int:
        """Return the delay."""
        found = duration_samples(self.time, rate, self.bpm)
        if found > LONGEST_S * rate:
            shown = self.declarations["time"].show(self.time)
            raise ArgumentError(f"time must be at most {LONGEST_S} s, got {shown}, which is {found / rate:.6g} s")
        return found

    def samples(self, rate: float) -> int:
        """Return the delay in samples, at least 1."""
        found = self.any_samples(rate)
        if found < 1:
            shown = self.declarations["time"].show(self.time)
            raise ArgumentError(f"time must be at least a sample where there is feedback or a mix, got {shown}")
        return found

    def loop_filter(self, rate: Any) -> Tensor | None:
        """Return the sections in the loop, (..., sections, 6), or None if there is no filter."""
        found = [
            LTI(sos=design(cutoff, rate))
            for design, cutoff in ((dc_blocker, self.low_cut), (one_pole, self.high_cut))
            if cutoff is not None
        ]
        return cascade(found).sos if found else None


class Delay(FeedbackDelay):
    """Delay a signal by a time or a note length, rounded to samples; with feedback, repeat it as echoes.

    With a delay of D samples, y[n] = (1 - mix) x[n] + mix (x[n-D] + feedback x[n-2D] + feedback^2 x[n-3D] + ...). The
    first echo is unfiltered; each further echo passes once more through `low_cut` and `high_cut`, filters with 6 dB per
    octave.

    A note "a/b" lasts a/b of a whole note, which lasts 240 / bpm seconds (four beats). A dot ("1/8." or "1/8d")
    multiplies the length by 1.5, "t" (triplet) by 2/3. The output is as long as the input; append silence (`Pad`) to
    keep echoes beyond the end. `torchfx.filter.FractionalDelay` delays by fractions of a sample.

    Examples:
        >>> import torch
        >>> Delay("1 samples", fs=48_000)(torch.tensor([1.0, 2.0, 3.0]))
        tensor([0., 1., 2.])
        >>> Delay("2 samples", feedback=0.5, fs=48_000)(torch.tensor([1.0, 0.0, 0.0, 0.0, 0.0]))
        tensor([0.0000, 0.0000, 1.0000, 0.0000, 0.5000])
        >>> Delay("1/8.", bpm=90, fs=48_000).lti(48_000)
        LTI(delay 24000)
    """

    channels_apart = True

    def lti(self, rate: Any) -> LTI | None:
        """Return the delay if there is no feedback and no dry signal."""
        if isinstance(self.feedback, Tensor) or isinstance(self.mix, Tensor) or self.feedback != 0 or self.mix != 1:
            return None
        return LTI(delay=self.any_samples(rate))

    def network(self, channels: int, rate: Any) -> Network:
        """Return one delay line with feedback."""
        feedback, mix = (torch.as_tensor(each, dtype=torch.float64) for each in (self.feedback, self.mix))
        sos = self.loop_filter(rate)
        system = matrix_of([[feedback, 1.0], [mix, 1 - mix]])
        return Network([self.samples(rate)], system, None if sos is None else sos.unsqueeze(-3))


class PingPongDelay(FeedbackDelay):
    """Ping-pong delay: echoes alternate between left and right; the output is stereo.

    The mean m of the channels is repeated on the left after D samples, on the right after 2 D samples, and so on, each
    time multiplied by `feedback`:

        left[n]  = (1 - mix) x[n] + mix (m[n-D] + feedback^2 m[n-3D] + ...)
        right[n] = (1 - mix) x[n] + mix (feedback m[n-2D] + feedback^3 m[n-4D] + ...)

    The first echo is unfiltered; each further echo passes once more through `low_cut` and `high_cut`, filters with 6 dB
    per octave. Signals have one or two channels; `time` and `bpm` work as in `Delay`.

    With `cross_feed` c below 1, a part 1 - c of each echo stays on its side: 0.5 spreads echoes equally to both sides,
    and 0 keeps the sides separate. With `stereo`, the first echo of each channel is on its own side, instead of the
    mean on the left.

    Examples:
        >>> import torch
        >>> PingPongDelay("1 samples", feedback=0.5, mix=1.0, fs=48_000)(torch.tensor([1.0, 0.0, 0.0, 0.0]))
        tensor([[0.0000, 1.0000, 0.0000, 0.2500],
                [0.0000, 0.0000, 0.5000, 0.0000]])
    """

    feedback: Value = number(
        default=0.5,
        low=-1.0,
        high=1.0,
        open_low=True,
        open_high=True,
        doc="gain of each repetition relative to the one before",
    )
    mix: Value = number(default=0.5, low=0.0, high=1.0, doc="0: input only, 1: repetitions only")
    cross_feed: Value = number(default=1.0, low=0.0, high=1.0, doc="the part of a repetition that changes sides")
    stereo: bool = flag(default=False, doc="whether each channel begins on its own side, one alone on both")

    def outputs(self, channels: int) -> int:
        """Return 2."""
        return 2

    def network(self, channels: int, rate: Any) -> Network:
        """Return two delay lines that feed each other."""
        if channels not in {1, 2}:
            raise ArgumentError(
                f"x must have 1 or 2 channels, shape (..., channels, time), for PingPongDelay, got {channels}"
            )
        names = ("feedback", "mix", "cross_feed")
        feedback, mix, crossing = (per_example(name, getattr(self, name)) for name in names)
        mean, dry = 1 / channels, 1 - mix
        entrance = [[mean] * channels, [0.0] * channels]
        if self.stereo:
            entrance = [[1.0], [1.0]] if channels == 1 else [[1.0, 0.0], [0.0, 1.0]]
        across, along = feedback * crossing, feedback * (1 - crossing)
        system = matrix_of(
            [
                [along, across, *entrance[0]],
                [across, along, *entrance[1]],
                [mix, 0.0, *([dry, 0.0] if channels == 2 else [dry])],
                [0.0, mix, *([0.0, dry] if channels == 2 else [dry])],
            ]
        )
        sos = self.loop_filter(rate)
        if sos is not None:  # one for both lines
            sos = (sos if sos.dim() == 2 else sos.squeeze(-3)).unsqueeze(-3).expand(*sos.shape[:-3], 2, *sos.shape[-2:])
        return Network([self.samples(rate)] * 2, system, sos)
