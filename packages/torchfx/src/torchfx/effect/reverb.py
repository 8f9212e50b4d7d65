"""Freeverb: parallel damped comb filters, followed by Freeverb's all-pass approximations."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from torchfx.effect.channels import matrix_of, per_example
from torchfx.effect.delay_network import DelayNetwork, Network, block_matrix
from torchfx.errors import ArgumentError
from torchfx.parameters import Value, flag, number, sample_rate

__all__ = ["Reverb"]

COMBS = (1116, 1188, 1277, 1356, 1422, 1491, 1557, 1617)
ALL_PASSES = (556, 441, 341, 225)
SPREAD = 23
TUNED_AT = 44_100
"""Delays in samples at this rate; those of the right channel are longer by the spread."""

INPUT_GAIN, WET_SCALE, DRY_SCALE, DAMPING_SCALE = 0.015, 3.0, 2.0, 0.4
LEAST_FEEDBACK, FEEDBACK_SCALE, ALL_PASS_FEEDBACK = 0.7, 0.28, 0.5


class Reverb(DelayNetwork):
    """Freeverb: eight parallel damped comb filters, followed by four all-passes in series, for each channel.

    Parameters, delays and gains equal those of `Reverb` in JUCE and pedalboard. The output of a comb's delay line is
    fed back, multiplied by 0.7 + 0.28 room_size and damped by y[n] = (1 - d) x[n] + d y[n-1] with d = 0.4 damping at
    any sample rate. The sum of both channels feeds the combs of both channels; `width` sets the difference between the
    left and right reverberation. Signals have one or two channels. To set decay times in seconds, use `FDNReverb`.

    Source: Jezar at Dreampoint, Freeverb, 2000; J. O. Smith, Physical Audio Signal Processing, "Freeverb".

    Examples:
        >>> import torch
        >>> click = torch.zeros(2, 48_000)
        >>> click[:, 0] = 1
        >>> tail = Reverb(room_size=0.8, wet_level=1.0, dry_level=0.0, fs=48_000)(click)
        >>> int(tail[0].nonzero()[0])  # the shortest comb's delay; the all-passes add no delay
        1214
    """

    room_size: Value = number(default=0.5, low=0.0, high=1.0, doc="length of the decay")
    damping: Value = number(default=0.5, low=0.0, high=1.0, doc="how much faster high frequencies decay")
    wet_level: Value = number(default=0.33, low=0.0, high=1.0, doc="of the reverberation, times 3")
    dry_level: Value = number(default=0.4, low=0.0, high=1.0, doc="of the signal, times 2")
    width: Value = number(default=1.0, low=0.0, high=1.0, doc="1 keeps the channels apart, 0 makes them equal")
    freeze_mode: bool = flag(default=False, doc="holds the tail forever and ignores further input")
    fs: float | None = sample_rate(default=None)

    def network(self, channels: int, rate: Any) -> Network:
        """Return the combs and all-passes of each channel as a network of delay lines."""
        if channels not in {1, 2}:
            raise ArgumentError(f"x must have 1 or 2 channels, shape (..., channels, time), for Reverb, got {channels}")
        room, damping, wet, dry, width = (
            per_example(name, getattr(self, name))
            for name in ("room_size", "damping", "wet_level", "dry_level", "width")
        )
        if self.freeze_mode:
            feedback, damping = torch.ones_like(room), torch.zeros_like(damping)
        else:
            feedback = LEAST_FEEDBACK + FEEDBACK_SCALE * room
        near, far = WET_SCALE * wet * (1 + width) / 2, WET_SCALE * wet * (1 - width) / 2
        mixed = matrix_of([[near, far], [far, near]] if channels == 2 else [[near]])
        return Network(
            [
                max(1, int(rate) * (length + SPREAD * channel) // TUNED_AT)
                for channel in range(channels)
                for length in (*COMBS, *ALL_PASSES)
            ],
            _system(channels, feedback, mixed, DRY_SCALE * dry, 0.0 if self.freeze_mode else INPUT_GAIN),
            _dampers(channels, DAMPING_SCALE * damping),
        )


def _system(channels: int, feedback: Tensor, mixed: Tensor, dry: Tensor, gain: float) -> Tensor:
    """Return how the lines of all channels are joined.

    An all-pass with the line output r is y = r - u for the input u, and its line gets u + r / 2. Its input is the
    output of the one before, and that of the first the sum of the combs: all of them are sums of lines' outputs.

    Args:
        channels: how many.
        feedback: of the combs, (...).
        mixed: outputs by channels, (..., channels, channels).
        dry: the gain from each input to the output of the same channel, (...).
        gain: of the inputs, before the combs.
    """
    combs, passes = len(COMBS), len(ALL_PASSES)
    inputs = [
        [(-1.0) ** k] * combs
        + [(-1.0) ** (k - 1 - j) if j < k else ALL_PASS_FEEDBACK * (j == k) for j in range(passes)]
        for k in range(passes + 1)
    ]  # of each all-pass's line; the last row is their output
    options: Any = {"dtype": torch.float64, "device": feedback.device}
    own = torch.tensor([*[[0.0] * (combs + passes)] * combs, *inputs[:-1]], **options)
    is_comb = torch.tensor(([1.0] * combs + [0.0] * passes) * channels, **options)
    joined = torch.block_diag(*[own] * channels) + feedback[..., None, None] * torch.diag(is_comb)
    put_out = mixed @ torch.block_diag(*[torch.tensor(inputs[-1:], **options)] * channels)
    entrance = gain * is_comb[:, None].expand(-1, channels)
    direct = dry[..., None, None] * torch.eye(channels, **options)
    return block_matrix([[joined, entrance], [put_out, direct]])


def _dampers(channels: int, d: Tensor) -> Tensor:
    """Return the combs' low-passes as sections, (..., lines, 1, 6); those of the all-passes' lines change nothing."""
    options: Any = {"dtype": torch.float64, "device": d.device}
    is_comb = torch.tensor(([1.0] * len(COMBS) + [0.0] * len(ALL_PASSES)) * channels, **options)
    through = torch.tensor([1.0, 0.0, 0.0, 1.0, 0.0, 0.0], **options)
    change = torch.tensor([-1.0, 0.0, 0.0, 0.0, -1.0, 0.0], **options)
    return through + (d[..., None] * is_comb)[..., None, None] * change
