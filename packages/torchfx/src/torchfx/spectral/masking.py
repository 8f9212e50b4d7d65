"""Random time and frequency masking, for training."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor

from torchfx.core.feature import Feature
from torchfx.parameters import count, flag, number

__all__ = ["FrequencyMasking", "SpecAugment", "TimeMasking"]

DRAWN_OVER_ALL = "needs the whole signal, since masks are drawn for all of its frames"


def masked(x: Tensor, longest: int, dim: int, apart: bool, value: Tensor | float) -> Tensor:
    """Return features with a random range of a dimension replaced.

    The length is uniform in [0, longest), and the start is uniform over the possible positions. PyTorch's generator
    draws both.

    Args:
        x: (..., bins, frames).
        longest: maximum length in bins or frames.
        dim: -2 or -1.
        apart: whether each example and channel gets a separate range.
        value: the replacement.
    """
    if longest < 1:
        return x
    size = x.shape[dim]
    shape = (*x.shape[:-2], 1, 1) if apart else (1,) * x.dim()
    length = torch.rand(shape, device=x.device) * min(longest, size)
    start = (torch.rand(shape, device=x.device) * (size - length)).floor()
    at = torch.arange(size, device=x.device)
    at = at[:, None] if dim == -2 else at
    return torch.where((at >= start) & (at < start + length.floor()), torch.as_tensor(value, dtype=x.dtype), x)


class TimeMasking(Feature):
    """Mask a random range of frames.

    Source: D. S. Park et al., SpecAugment: A Simple Data Augmentation Method for Automatic Speech Recognition,
    Interspeech 2019.

    Examples:
        >>> import torch
        >>> blanked = TimeMasking(10)(torch.ones(4, 100)) == 0
        >>> bool(blanked.all(0).sum() < 10)
        True
    """

    takes: ClassVar[str] = "features"
    time_mask_param: int = count(draws=(1, 4), doc="longest stretch, frames; shorter ones are equally likely")
    iid_masks: bool = flag(default=False, doc="whether each example and channel has its own stretch")
    p: float = number(default=1.0, low=0.0, high=1.0, learnable=False, doc="at most this part of all frames")
    mask_value: float = number(default=0.0, draws=(-1.0, 1.0), learnable=False, doc="value that replaces masked parts")

    def output_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape unchanged."""
        return shape

    def refusal(self) -> str:
        """Return the reason why the processor cannot run in a stream."""
        return DRAWN_OVER_ALL

    def features(self, x: Tensor, rate: Any) -> Tensor:
        """Return the masked features."""
        longest = min(self.time_mask_param, int(x.shape[-1] * self.p))
        return masked(x, longest, -1, self.iid_masks, self.mask_value)


class FrequencyMasking(Feature):
    """Mask a random range of bins; see `TimeMasking`.

    Examples:
        >>> import torch
        >>> blanked = FrequencyMasking(10)(torch.ones(40, 5)) == 0
        >>> bool(blanked.all(-1).sum() < 10)
        True
    """

    takes: ClassVar[str] = "features"
    freq_mask_param: int = count(draws=(1, 4), doc="widest band, bins; narrower ones are equally likely")
    iid_masks: bool = flag(default=False, doc="whether each example and channel has its own band")
    mask_value: float = number(default=0.0, draws=(-1.0, 1.0), learnable=False, doc="value that replaces masked parts")

    def output_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape unchanged."""
        return shape

    def refusal(self) -> str:
        """Return the reason why the processor cannot run in a stream."""
        return DRAWN_OVER_ALL

    def features(self, x: Tensor, rate: Any) -> Tensor:
        """Return the masked features."""
        return masked(x, self.freq_mask_param, -2, self.iid_masks, self.mask_value)


class SpecAugment(Feature):
    """Mask several random ranges of frames and of bins; see `TimeMasking`.

    Examples:
        >>> import torch
        >>> augment = SpecAugment(2, 10, 2, 5, zero_masking=True)
        >>> augment(torch.ones(3, 40, 100)).shape
        torch.Size([3, 40, 100])
    """

    takes: ClassVar[str] = "features"
    n_time_masks: int = count(low=0, draws=(0, 2), doc="stretches of frames")
    time_mask_param: int = count(draws=(1, 4), doc="longest stretch, frames")
    n_freq_masks: int = count(low=0, draws=(0, 2), doc="bands of bins")
    freq_mask_param: int = count(draws=(1, 4), doc="widest band, bins")
    iid_masks: bool = flag(default=True, doc="whether each example and channel has its own stretches and bands")
    p: float = number(
        default=1.0, low=0.0, high=1.0, learnable=False, doc="a stretch is at most this part of all frames"
    )
    zero_masking: bool = flag(default=False, doc="replaces masked parts with 0 instead of the mean of all features")

    def output_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape unchanged."""
        return shape

    def refusal(self) -> str:
        """Return the reason why the processor cannot run in a stream."""
        return DRAWN_OVER_ALL

    def features(self, x: Tensor, rate: Any) -> Tensor:
        """Return the masked features."""
        value = 0.0 if self.zero_masking else x.mean()
        longest = min(self.time_mask_param, int(x.shape[-1] * self.p))
        for _ in range(self.n_time_masks):
            x = masked(x, longest, -1, self.iid_masks, value)
        for _ in range(self.n_freq_masks):
            x = masked(x, self.freq_mask_param, -2, self.iid_masks, value)
        return x
