"""Losses on magnitude spectra, computed by the native code of `torchfx.spectral`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from torchfx._ops.operator import is_native
from torchfx.checks import finite_number, number_text
from torchfx.errors import ArgumentError
from torchfx.losses.loss import Loss, positive
from torchfx.spectral import MelSpectrogram, Spectrogram

__all__ = ["MelSTFTLoss", "MultiResolutionSTFTLoss", "STFTLoss", "SumAndDifferenceLoss"]

EPSILON = 1e-8
DISTANCES = ("L1", "L2")
PART = 1 << 17
"""Magnitudes that are processed at a time: a few arrays of this size fit into a processor's second-level cache."""

Parts = Sequence[tuple[Tensor, Tensor]]
"""Magnitudes of the estimate and of the target, part by part."""


class STFTLoss(Loss):
    """Distance between the magnitude spectra of two signals: spectral convergence, log and linear terms.

    With magnitudes X of the estimate and Y of the target, the loss is

        w_convergence ||Y - X|| / ||Y||  +  w_log mean |log X - log Y|  +  w_linear mean |X - Y|

    where the norm is the root of the sum of squares. Source: R. Yamamoto, E. Song, J.-M. Kim, Parallel WaveGAN, ICASSP
    2020; S. Ö. Arık et al., Fast Spectrogram Inversion Using Multi-Head Convolutional Neural Networks, 2018.

    Args:
        n_fft: samples of each transform.
        hop_length: samples between windows.
        win_length: samples of the window; None: n_fft.
        window: a name that `scipy.signal.get_window` knows.
        w_convergence, w_log, w_linear: weights, >= 0; a term of weight 0 is not computed.
        distance: "L1" (absolute differences) or "L2" (their squares).
        prefilter: a processor that is applied to both signals first.
        eps: lower bound of the powers.

    Raises:
        ArgumentError: an argument is out of range, or all weights are 0.

    Examples:
        >>> import torch
        >>> x = torch.randn(2, 1, 4000)
        >>> STFTLoss()(x, x)
        tensor(0.)
    """

    def __init__(
        self,
        n_fft: int = 1024,
        hop_length: int = 256,
        win_length: int | None = None,
        window: Any = "hann",
        w_convergence: float = 1.0,
        w_log: float = 1.0,
        w_linear: float = 0.0,
        distance: str = "L1",
        prefilter: nn.Module | None = None,
        eps: float = EPSILON,
    ) -> None:
        """Check the arguments."""
        super().__init__(prefilter)
        weights = {"w_convergence": w_convergence, "w_log": w_log, "w_linear": w_linear}
        for name, weight in weights.items():
            if finite_number(name, weight) < 0:
                raise ArgumentError(f"{name} must be >= 0, got {number_text(weight)}")
        if not any(weights.values()):
            raise ArgumentError(f"one of {', '.join(weights)} must be > 0, got 0 for each")
        if distance not in DISTANCES:
            raise ArgumentError(f"distance must be one of {', '.join(DISTANCES)}, got {distance!r}")
        self.w_convergence, self.w_log, self.w_linear, self.kind = w_convergence, w_log, w_linear, distance
        self.eps = positive("eps", eps)
        self.spectrum = self.measure(n_fft, hop_length, win_length, window)

    def measure(self, n_fft: int, hop_length: int, win_length: int | None, window: Any) -> nn.Module:
        """Return the function that computes the magnitudes of a signal."""
        return Spectrogram(n_fft, win_length, hop_length, window=window, power=1.0)

    def distance(self, estimate: Tensor, target: Tensor) -> Tensor:
        """Return the weighted sum."""
        recorded = [each.requires_grad and torch.is_grad_enabled() for each in (estimate, target)]
        if torch.compiler.is_dynamo_compiling() or not is_native(estimate) or recorded[1]:
            return self.composed(estimate, target)
        if recorded[0]:
            found: Tensor = _WithGradient.apply(self, estimate, target)  # type: ignore[no-untyped-call]
            return found
        return self._sums(_parts(self.spectrum(estimate), self.spectrum(target)))[0]

    def composed(self, estimate: Tensor, target: Tensor) -> Tensor:
        """Return the weighted sum, computed by separate operators that can be differentiated any number of times."""
        least = self.eps**0.5
        x, y = (self.spectrum(each).clamp(min=least) for each in (estimate, target))
        found: Tensor = x.new_zeros(())
        difference = y - x
        if self.w_convergence:
            found = found + self.w_convergence * _norm(difference) / _norm(y)
        if self.w_log:
            found = found + self.w_log * self._mean(x.log() - y.log())
        if self.w_linear:
            found = found + self.w_linear * self._mean(difference)
        return found

    def _mean(self, difference: Tensor) -> Tensor:
        return difference.abs().mean() if self.kind == "L1" else difference.square().mean()

    def with_gradient(self, estimate: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """Return the weighted sum, and its gradient with respect to the estimate.

        Only two spectra are in memory; the rest is computed in chunks that fit into the CPU caches.
        """
        leaf = estimate.detach().requires_grad_()
        with torch.enable_grad():
            x = self.spectrum(leaf)
        y = self.spectrum(target.detach()).contiguous()
        parts = _parts(x.detach(), y)
        value, away, size = self._sums(parts)
        # The slope of ||Y - X|| / ||Y|| is (X - Y) / (||Y - X|| ||Y||), and 0 where X = Y.
        slope = torch.where(away > 0, self.w_convergence / (away * size), 0.0)
        for a, b in parts:
            b.copy_(self._slopes(a, b, slope, x.numel()))
        (grad,) = torch.autograd.grad(x, leaf, y)
        return value, grad

    def _sums(self, parts: Parts) -> tuple[Tensor, Tensor, Tensor]:
        """Return the weighted sum, ||Y - X|| and ||Y|| of magnitudes given part by part."""
        least, by_part = self.eps**0.5, []
        norm, zero = torch.linalg.vector_norm, parts[0][0].new_zeros(())
        for a, b in parts:
            x, y = a.clamp(min=least), b.clamp(min=least)
            difference = y - x
            logs = self._sum(x.div_(y).log_()) if self.w_log else zero
            linear = self._sum(difference) if self.w_linear else zero
            by_part.append(torch.stack([norm(difference), norm(y), logs, linear]))
        sums = torch.stack(by_part)
        (away, size), (logs, linear) = norm(sums[:, :2], dim=0), sums[:, 2:].sum(0)
        count = sum(a.numel() for a, _ in parts)
        value = (self.w_log * logs + self.w_linear * linear) / count
        return value + self.w_convergence * away / size if self.w_convergence else value, away, size

    def _sum(self, difference: Tensor) -> Tensor:
        return (difference.abs() if self.kind == "L1" else difference.square()).sum()

    def _slopes(self, a: Tensor, b: Tensor, slope: Tensor, count: int) -> Tensor:
        """Return the sum's gradient with respect to some of the estimate's magnitudes a; b are the target's."""
        least = self.eps**0.5
        x, y = a.clamp(min=least), b.clamp(min=least)
        difference = x - y
        found = difference * slope
        if self.w_linear:
            by_term = difference.sign() if self.kind == "L1" else 2 * difference
            found.add_(by_term, alpha=self.w_linear / count)
        if self.w_log:
            by_term = difference.sign() if self.kind == "L1" else 2 * (x / y).log_()
            found.add_(by_term.div_(x), alpha=self.w_log / count)
        return found.mul_(a >= least)


def _parts(x: Tensor, y: Tensor) -> Parts:
    return list(zip(x.flatten().split(PART), y.flatten().split(PART), strict=True))


def _norm(x: Tensor) -> Tensor:
    # In two steps: one over 18 million float32 magnitudes is off by 5e-4.
    found: Tensor = torch.linalg.vector_norm(torch.linalg.vector_norm(x, dim=-1))
    return found


class _WithGradient(torch.autograd.Function):
    """A loss that computes its gradient at once, so that no spectrum is kept for the backward pass."""

    @staticmethod
    def forward(ctx: Any, loss: STFTLoss, estimate: Tensor, target: Tensor) -> Tensor:
        value, grad = loss.with_gradient(estimate, target)
        ctx.loss = loss
        ctx.save_for_backward(estimate, target, grad)
        return value

    @staticmethod
    def backward(ctx: Any, grad_value: Tensor) -> tuple[None, Tensor, None]:
        estimate, target, grad = ctx.saved_tensors
        if torch.is_grad_enabled():  # a gradient of the gradient is wanted
            (grad,) = torch.autograd.grad(ctx.loss.composed(estimate, target), estimate, create_graph=True)
        return None, grad_value * grad, None


class MelSTFTLoss(STFTLoss):
    """`STFTLoss` on mel bands.

    Args:
        fs: sample rate, Hz.
        n_fft, hop_length, win_length, window, w_convergence, w_log, w_linear, distance, prefilter, eps: as in
            `STFTLoss`.
        n_mels: number of bands.
        f_min, f_max: lower edge of the lowest band and upper edge of the highest, Hz; None: fs / 2.
        norm, mel_scale: as in `torchfx.spectral.MelSpectrogram`; the defaults are librosa's.

    Examples:
        >>> import torch
        >>> x = torch.randn(2, 1, 4000)
        >>> MelSTFTLoss(16_000, n_mels=40)(x, x)
        tensor(0.)
    """

    def __init__(
        self,
        fs: float,
        n_fft: int = 1024,
        hop_length: int = 256,
        win_length: int | None = None,
        window: Any = "hann",
        w_convergence: float = 1.0,
        w_log: float = 1.0,
        w_linear: float = 0.0,
        distance: str = "L1",
        prefilter: nn.Module | None = None,
        eps: float = EPSILON,
        n_mels: int = 128,
        f_min: float = 0.0,
        f_max: float | None = None,
        norm: str | None = "slaney",
        mel_scale: str = "slaney",
    ) -> None:
        """Check the arguments."""
        self._mel: dict[str, Any] = {
            "n_mels": n_mels, "f_min": f_min, "f_max": f_max, "norm": norm, "mel_scale": mel_scale, "fs": fs,
        }  # fmt: skip
        super().__init__(
            n_fft, hop_length, win_length, window, w_convergence, w_log, w_linear, distance, prefilter, eps
        )

    def measure(self, n_fft: int, hop_length: int, win_length: int | None, window: Any) -> nn.Module:
        """Return the function that computes the bands of a signal."""
        return MelSpectrogram(n_fft, win_length, hop_length, window=window, power=1.0, **self._mel)


class MultiResolutionSTFTLoss(Loss):
    """The mean of `STFTLoss` at several resolutions.

    Args:
        n_ffts, hop_lengths, win_lengths: one value per resolution.
        options: further arguments of each `STFTLoss`.

    Raises:
        ArgumentError: the lists have different lengths.

    Examples:
        >>> import torch
        >>> x = torch.randn(2, 1, 8000)
        >>> bool(MultiResolutionSTFTLoss()(x, 0.5 * x) > 0.5)
        True
    """

    def __init__(
        self,
        n_ffts: Sequence[int] = (1024, 2048, 512),
        hop_lengths: Sequence[int] = (120, 240, 50),
        win_lengths: Sequence[int] = (600, 1200, 240),
        **options: Any,
    ) -> None:
        """Create a loss for each resolution."""
        super().__init__(options.pop("prefilter", None))
        if not len(n_ffts) == len(hop_lengths) == len(win_lengths) > 0:
            counts = f"{len(n_ffts)}, {len(hop_lengths)}, {len(win_lengths)}"
            raise ArgumentError(f"n_ffts, hop_lengths and win_lengths must have equal lengths, got {counts}")
        resolutions = zip(n_ffts, hop_lengths, win_lengths, strict=True)
        self.losses = nn.ModuleList(STFTLoss(*resolution, **options) for resolution in resolutions)

    def distance(self, estimate: Tensor, target: Tensor) -> Tensor:
        """Return the mean."""
        return torch.stack([loss(estimate, target) for loss in self.losses]).mean()


class SumAndDifferenceLoss(Loss):
    """Stereo loss that ignores swapped channels: the weighted mean of a loss on their sum and on their difference.

    Source: C. J. Steinmetz et al., Automatic Multitrack Mixing with a Differentiable Mixing Console of Neural Audio
    Effects, ICASSP 2021.

    Args:
        loss: the loss for sum and difference; None: `MultiResolutionSTFTLoss`.
        w_sum, w_difference: weights, >= 0.

    Raises:
        ArgumentError: the signals do not have two channels.

    Examples:
        >>> import torch
        >>> x = torch.randn(3, 2, 8000)
        >>> SumAndDifferenceLoss()(x, x)
        tensor(0.)
    """

    def __init__(self, loss: nn.Module | None = None, w_sum: float = 1.0, w_difference: float = 1.0) -> None:
        """Check the weights."""
        super().__init__()
        for name, weight in (("w_sum", w_sum), ("w_difference", w_difference)):
            if finite_number(name, weight) < 0:
                raise ArgumentError(f"{name} must be >= 0, got {number_text(weight)}")
        self.loss = MultiResolutionSTFTLoss() if loss is None else loss
        self.w_sum, self.w_difference = w_sum, w_difference

    def distance(self, estimate: Tensor, target: Tensor) -> Tensor:
        """Return half the weighted sum."""
        if estimate.dim() < 2 or estimate.shape[-2] != 2:
            raise ArgumentError(f"estimate must have the shape (..., 2, time), got {tuple(estimate.shape)}")
        (left, right), (left_target, right_target) = estimate.unbind(-2), target.unbind(-2)
        by_sum: Tensor = self.loss(left + right, left_target + right_target)
        by_difference: Tensor = self.loss(left - right, left_target - right_target)
        return (self.w_sum * by_sum + self.w_difference * by_difference) / 2
