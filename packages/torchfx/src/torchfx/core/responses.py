"""Frequency and time responses of a linear time-invariant processor, chain or sum."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from torchfx import response
from torchfx.checks import sample_rate as checked_rate
from torchfx.checks import whole_number
from torchfx.errors import TorchFXError
from torchfx.plan import Plan, plan_of
from torchfx.rate import ambient_rate

__all__ = ["Responses"]

SHOWN_RATE = 48_000.0  # Hz, of pictures in notebooks where a module follows the signal's rate


class Responses(nn.Module):
    """Frequency and time responses, poles and zeros, a description, and plots.

    Each method takes a sample rate `fs` in Hz; the default is the rate that the filters were built for. All raise
    `ArgumentTypeError` if a module is not linear and time-invariant at its settings. Leading dimensions of the
    parameters (one filter per example, or the bands of a bank) become leading dimensions of the results. The responses
    are differentiable with respect to the parameters.
    """

    def response(self, freqs: Any, fs: float | None = None) -> Tensor:
        """Return the complex response at frequencies (Hz, in [0, fs/2], a number or (n,)): complex128, (..., n).

        Examples:
            >>> import torchfx as fx
            >>> round(float(fx.filter.LoButterworth(1000).response(1000, fs=48_000).abs()), 6)
            0.707107
        """
        return response.response(self._seen(fs), freqs)

    def frequency_response(self, num_freqs: int = 512, fs: float | None = None) -> tuple[Tensor, Tensor]:
        """Return evenly spaced frequencies (Hz, from 0 to below fs/2) and the complex response at them.

        Both equal the result of `scipy.signal.freqz_sos(sos, num_freqs, fs=fs)`: float64 (n,) and complex128 (..., n).

        Examples:
            >>> import torchfx as fx
            >>> freqs, h = fx.filter.LoButterworth(1000).frequency_response(fs=48_000)
            >>> freqs[1].item(), h.abs()[0].round(decimals=9).item()
            (46.875, 1.0)
        """
        count, plan = whole_number("num_freqs", num_freqs, 1), self._seen(fs)
        freqs = torch.arange(count, dtype=torch.float64) * ((plan.fs or 0.0) / (2 * count))
        return freqs, response.response(plan, freqs)

    def magnitude_db(self, freqs: Any, fs: float | None = None) -> Tensor:
        """Return the magnitude response in dB, float64, (..., n); -inf at zeros of the response.

        Examples:
            >>> import torchfx as fx
            >>> fx.filter.Peaking(1000, gain_db=6).magnitude_db([0, 1000, 24_000], fs=48_000).round(decimals=9).abs()
            tensor([0., 6., 0.], dtype=torch.float64)
        """
        return 20 * self.response(freqs, fs).abs().log10()

    def phase_response(self, freqs: Any, fs: float | None = None) -> Tensor:
        """Return the phase in radians, in (-pi, pi], float64, (..., n)."""
        return self.response(freqs, fs).angle()

    def group_delay(self, freqs: Any, fs: float | None = None) -> Tensor:
        """Return the group delay in samples, float64, (..., n), computed from the coefficients.

        Examples:
            >>> import torchfx as fx
            >>> fx.filter.DesignableFIR(1000, 101).group_delay([10, 2000], fs=48_000).round(decimals=6)
            tensor([50., 50.], dtype=torch.float64)
        """
        return response.group_delay(self._seen(fs), freqs)

    def impulse_response(self, num_samples: int, fs: float | None = None) -> Tensor:
        """Return the impulse response, float64, (..., num_samples)."""
        return response.impulse_response(self._seen(fs), whole_number("num_samples", num_samples, 1))

    def step_response(self, num_samples: int, fs: float | None = None) -> Tensor:
        """Return the step response, float64, (..., num_samples)."""
        return response.step_response(self._seen(fs), whole_number("num_samples", num_samples, 1))

    def poles(self, fs: float | None = None) -> Tensor:
        """Return the poles in the z plane, complex128, (..., n), without the poles at 0 of FIR taps and delays.

        Examples:
            >>> import torchfx as fx
            >>> float(fx.filter.SOS([[1, 0, 0, 1, -0.5, 0]]).poles().abs().max())
            0.5
        """
        return response.poles(self._seen(fs))

    def zeros(self, fs: float | None = None) -> Tensor:
        """Return the zeros in the z plane, complex128, (..., n). A sum raises, since its zeros are not those of its
        branches.
        """
        return response.zeros(self._seen(fs))

    def describe(self, fs: float | None = None) -> str:
        """Describe band type, cutoffs, attenuation, delay and stability in sentences.

        Examples:
            >>> import torchfx as fx
            >>> print(fx.filter.LoButterworth(1000, order=4).describe(fs=48_000))
            Low-pass: -3 dB at 1000 Hz; pass band at +0.00 dB, ripple 0.00 dB. An octave beyond: -24.2 dB at 2000 Hz.
            Group delay ... Stable: largest pole radius 0.951237, 0.049 inside the unit circle; it decays by 60 dB in
            2.88 ms.
        """
        from torchfx.response.characteristics import describe  # on first use, like the pictures

        return describe(self._seen(fs))

    def plot(self, fs: float | None = None) -> Any:
        """Plot magnitude and group delay over frequency; return the `matplotlib` figure.

        Raises:
            TorchFXError: matplotlib is not installed (`pip install matplotlib`).
        """
        from torchfx.response.picture import plot

        return plot(self._seen(fs), repr(self))

    def _repr_html_(self) -> str | None:
        """Return a picture for notebooks, or None, which leaves the text."""
        from html import escape

        from torchfx.response.picture import as_png

        rate = getattr(self, "fs", None) or ambient_rate() or SHOWN_RATE
        try:
            picture = as_png(self._seen(rate))
        except TorchFXError:
            return None
        return f'<pre>{escape(repr(self))}</pre><img src="data:image/png;base64,{picture}">'

    def _seen(self, fs: float | None) -> Plan:
        return plan_of(self, ambient_rate() if fs is None else checked_rate(fs))
