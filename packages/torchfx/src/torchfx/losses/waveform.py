"""Losses on waveforms."""

from __future__ import annotations

import math

from torch import Tensor, nn
from torch.nn.functional import softplus

from torchfx.losses.loss import Loss, positive

__all__ = ["DCLoss", "ESRLoss", "LogCoshLoss", "SISDRLoss", "SNRLoss"]

EPSILON = 1e-8


class ESRLoss(Loss):
    """Error-to-signal ratio: energy of the difference divided by the target's energy, averaged over all signals.

    Source: A. Wright, V. Välimäki, Perceptual Loss Function for Neural Modelling of Audio Systems, ICASSP 2020. The
    paper applies a pre-emphasis filter first: `ESRLoss(torchfx.filter.Preemphasis(0.95))`.

    Args:
        prefilter: a processor that is applied to both signals first.
        eps: added to the target's energy.

    Examples:
        >>> import torch
        >>> ESRLoss()(torch.tensor([1.0, 1.0]), torch.tensor([1.0, 2.0]))
        tensor(0.2000)
    """

    def __init__(self, prefilter: nn.Module | None = None, eps: float = EPSILON) -> None:
        """Check the arguments."""
        super().__init__(prefilter)
        self.eps = positive("eps", eps)

    def distance(self, estimate: Tensor, target: Tensor) -> Tensor:
        """Return the mean ratio."""
        return ((target - estimate).square().sum(-1) / (target.square().sum(-1) + self.eps)).mean()


class DCLoss(Loss):
    """DC error: the squared mean of the difference divided by the mean power of the target, averaged over all signals.

    Source: as in `ESRLoss`; the paper uses both losses together.

    Args:
        eps: added to the target's power.

    Examples:
        >>> import torch
        >>> DCLoss()(torch.tensor([1.0, 1.0]), torch.tensor([1.0, 2.0]))
        tensor(0.1000)
    """

    def __init__(self, eps: float = EPSILON) -> None:
        """Check the argument."""
        super().__init__()
        self.eps = positive("eps", eps)

    def distance(self, estimate: Tensor, target: Tensor) -> Tensor:
        """Return the mean ratio."""
        return ((target - estimate).mean(-1).square() / (target.square().mean(-1) + self.eps)).mean()


class LogCoshLoss(Loss):
    """The mean of log(cosh(a d)) / a over all differences d: quadratic near 0, and close to |d| for large differences.

    Source: Q. Chen et al., Log Hyperbolic Cosine Loss Improves Variational Auto-Encoder, 2018.

    Args:
        a: steepness, > 0; a larger value makes the loss linear at smaller differences.
        prefilter: a processor that is applied to both signals first.

    Examples:
        >>> import torch
        >>> LogCoshLoss()(torch.tensor([0.0]), torch.tensor([1.0]))
        tensor(0.4338)
    """

    def __init__(self, a: float = 1.0, prefilter: nn.Module | None = None) -> None:
        """Check the arguments."""
        super().__init__(prefilter)
        self.a = positive("a", a)

    def distance(self, estimate: Tensor, target: Tensor) -> Tensor:
        """Return the mean; log(cosh d) = |d| + log(1 + e^(-2 |d|)) - log 2 does not overflow."""
        size = self.a * (target - estimate).abs()
        return (size + softplus(-2 * size) - math.log(2)).mean() / self.a


class SNRLoss(Loss):
    """The negative signal-to-noise ratio in dB, averaged over all signals: target energy over energy of the difference.

    Args:
        zero_mean: whether the mean of each signal is subtracted first.
        prefilter: a processor that is applied to both signals first.
        eps: added to the difference's energy and to the ratio.

    Examples:
        >>> import torch
        >>> SNRLoss(zero_mean=False)(torch.tensor([1.0, 1.0]), torch.tensor([1.0, 2.0]))
        tensor(-6.9897)
    """

    def __init__(self, zero_mean: bool = True, prefilter: nn.Module | None = None, eps: float = EPSILON) -> None:
        """Check the arguments."""
        super().__init__(prefilter)
        self.zero_mean, self.eps = zero_mean, positive("eps", eps)

    def distance(self, estimate: Tensor, target: Tensor) -> Tensor:
        """Return the negative mean ratio."""
        if self.zero_mean:
            estimate, target = (each - each.mean(-1, keepdim=True) for each in (estimate, target))
        target = self.scaled(estimate, target)
        away = (estimate - target).square().sum(-1)
        ratio = target.square().sum(-1) / (away + self.eps) + 0 * away  # NaN, not 0, of an infinite estimate
        return -(10 * (ratio + self.eps).log10()).mean()

    def scaled(self, estimate: Tensor, target: Tensor) -> Tensor:
        """Return the target that the estimate is compared with."""
        return target


class SISDRLoss(SNRLoss):
    """Scale-invariant SDR loss: `SNRLoss` with the target projected onto the estimate, so the level does not matter.

    Source: J. Le Roux et al., SDR, Half-Baked or Well Done?, ICASSP 2019.

    Examples:
        >>> import torch
        >>> x = torch.tensor([1.0, -1.0, 2.0, -2.0])
        >>> bool(SISDRLoss()(3 * x, x) < -80)
        True
    """

    def scaled(self, estimate: Tensor, target: Tensor) -> Tensor:
        """Return the projection of the estimate onto the target."""
        share = (estimate * target).sum(-1, keepdim=True) / (target.square().sum(-1, keepdim=True) + self.eps)
        return share * target
