"""Time stretching, pitch shifting, and varispeed."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from torchfx import _ops
from torchfx.checks import settled
from torchfx.core.processor import Processor
from torchfx.design.resampling import resampling_reach, resampling_taps
from torchfx.errors import ArgumentError, StreamError
from torchfx.functional.stretching import (
    METHODS,
    OVERLAP,
    stretched,
    stretched_length,
    stretched_pieces,
    time_stretch,
    vocoder_window,
)
from torchfx.parameters import choice, count, number
from torchfx.pieces import PIECE, Pieces
from torchfx.plan import LTI, Handover, State
from torchfx.rate import resampled_length
from torchfx.tensors import settings_on

__all__ = ["PitchShift", "TimeStretch", "Varispeed"]

METHOD_DOC = "phase_vocoder for music, wsola for speech and single notes"
N_FFT_DOC = "samples in a window, a power of two; fewer keep attacks shorter, more resolve lower chords"
CLOSE = 5e-6
"""How far off a ratio may be, as a part of it: 0.01 cents."""

MOST_PHASES = 5000
"""The largest number of phases of a low-pass. Shifts by less than 0.4 cents may be off by more than `CLOSE`: they
become no shift."""


class TimeStretch(Processor):
    """Change the speed and keep the pitch; n samples become round(n / rate).

    See `torchfx.functional.time_stretch` for both methods and their sources.

    Examples:
        >>> import torch
        >>> TimeStretch(1.5)(torch.randn(2, 3000)).shape
        torch.Size([2, 2000])
    """

    rate: float = number(
        default=1.0,
        low=0.1,
        high=10.0,
        draws=(0.5, 2.0),
        doc="speed relative to the original",
        learnable=False,
        typical="1.25",
    )
    method: str = choice(METHODS, default="phase_vocoder", doc=METHOD_DOC)
    n_fft: int = count(default=4096, low=256, high=65_536, draws=(256, 256), doc=N_FFT_DOC)

    def check_parameters(self) -> None:
        """Raise if a parameter is invalid."""
        _check_power_of_two(self.n_fft)

    def refusal(self) -> str:
        """Return the reason why the processor cannot run in a stream."""
        return "needs the whole signal, whose duration it changes"

    def forward(self, x: Tensor) -> Tensor:
        """Return the signal with its new length."""
        return time_stretch(x, self.rate, self.method, self.n_fft)

    def in_pieces(self, x: Pieces) -> Iterator[Tensor]:
        """Yield the signal with its new length."""
        return stretched_pieces(x, self.rate, self.method, self.n_fft, stretched_length(x.time, self.rate))


class Varispeed(Processor):
    """Play a signal faster or slower, like a tape machine: pitch and duration change together.

    n samples become round(n / rate). The anti-aliasing low-pass is the same as in `torchfx.filter.Resample`.

    Examples:
        >>> import torch
        >>> Varispeed(2.0)(torch.randn(2, 3000)).shape
        torch.Size([2, 1500])
    """

    rate: float = number(
        default=1.0,
        low=0.1,
        high=10.0,
        draws=(0.5, 2.0),
        doc="speed relative to the original",
        learnable=False,
        typical="1.25",
    )

    def refusal(self) -> str:
        """Return the reason why the processor cannot run in a stream."""
        return "needs the whole signal, whose duration it changes"

    def forward(self, x: Tensor) -> Tensor:
        """Return the signal with its new length."""
        down, up = simple_ratio(self.rate)
        return _varied(x, up, down, stretched_length(x.shape[-1], self.rate))

    def in_pieces(self, x: Pieces) -> Iterator[Tensor]:
        """Yield the signal with its new length."""
        (down, up), length = simple_ratio(self.rate), stretched_length(x.time, self.rate)
        reach = resampling_reach(up, down, "HQ") if up != down else 0
        taps = resampling_taps(up, down, "HQ") if up != down else None
        for start in range(0, length, PIECE):
            count = min(PIECE, length - start)
            begin = (start * down - reach) // up
            heard = x.read(begin, ((start + count) * down + reach) // up + 1)
            if taps is None:
                yield heard[..., :count]
            else:
                yield _ops.resample_forward(heard, taps, down, reach + start * down - begin * up, count)


class PitchShift(Processor):
    """Change the pitch and keep the duration: stretch the signal in time, then resample it to its original length.

    Streams need the phase vocoder. They lag by about a window of `n_fft` samples, more if the pitch is lowered, and
    restart when `semitones` changes. WSOLA needs the whole signal in memory.

    Examples:
        >>> import math, torch
        >>> a4 = torch.sin(2 * math.pi * 440 / 48_000 * torch.arange(48_000))
        >>> spectrum = torch.fft.rfft(PitchShift(12)(a4)).abs()
        >>> int(spectrum.argmax())
        880
    """

    semitones: float = number(
        default=0.0,
        low=-36.0,
        high=36.0,
        draws=(-12.0, 12.0),
        doc="pitch shift upwards; negative values shift down",
        learnable=False,
        typical="4",
    )
    method: str = choice(
        METHODS,
        default="phase_vocoder",
        draws=("phase_vocoder",),
        doc=f"{METHOD_DOC}; wsola needs a whole file in memory",
    )
    n_fft: int = count(default=4096, low=256, high=65_536, draws=(256, 256), doc=N_FFT_DOC)

    def check_parameters(self) -> None:
        """Raise if a parameter is invalid."""
        _check_power_of_two(self.n_fft)

    def refusal(self) -> str:
        """Return the reason why the processor cannot run in a stream; "" if it can."""
        if self.method == "phase_vocoder":
            return ""
        return f'with method="{self.method}" needs the whole signal (streams need method="phase_vocoder")'

    def lti(self, rate: Any) -> LTI | None:
        """Return the identity if the pitch does not change."""
        down, up = self.ratio()
        return LTI() if down == up else None

    def ratio(self) -> tuple[int, int]:
        """Return the pitch ratio as a fraction of integers."""
        return simple_ratio(2 ** (self.semitones / 12))

    def whole(self, x: Tensor, rate: Any) -> Tensor:
        """Return the aligned result in one call."""
        (down, up), time = self.ratio(), x.shape[-1]
        length = resampled_length(time, down, up) + resampled_length(self._reach(), 1, up)
        return _varied(stretched(x, up / down, self.method, self.n_fft, length), up, down, time)

    # What a stream has done depends on the number n of its inputs alone: frames whose windows lie in the input,
    # stretched samples that no later frame adds to, and outputs whose low-pass lies in these.

    def latency_samples(self, rate: Any) -> int:
        """Return the look-ahead of a frame's window, an output frame and the low-pass, in samples."""
        (down, up), half = self.ratio(), self.n_fft // 2
        if down == up or self.method != "phase_vocoder":
            return 0
        return math.ceil(half + half * up / down + self._reach() / down) + 1

    def _reach(self) -> int:
        down, up = self.ratio()
        return resampling_reach(up, down, "HQ")

    def _frames(self, n: int) -> int:
        (down, up), hop, half = self.ratio(), self.n_fft // OVERLAP, self.n_fft // 2
        u = max(0, int((n - half) * down / (hop * up)) + 2)
        while (
            u > 0 and math.floor((u - 1) * hop * (up / down) + 0.5) + half > n
        ):  # where the operator reads frame u - 1
            u -= 1
        return u

    def _outputs(self, n: int) -> int:
        down, up = self.ratio()
        final = self._frames(n) * (self.n_fft // OVERLAP) - self.n_fft // 2
        return max(0, resampled_length(final * up - self._reach(), 1, down))

    def init_state(
        self, shape: tuple[int, ...], rate: Any, dtype: torch.dtype = torch.float32, device: Any = "cpu"
    ) -> State:
        """Return the state at rest.

        It holds past input, the last spectrum, the pending overlap-add output, the last stretched samples, the last
        outputs, and the number of inputs with the pitch ratio.
        """
        if self.refusal():
            raise StreamError(f"{self._get_name()} {self.refusal()}")
        (down, up), hop = self.ratio(), self.n_fft // OVERLAP
        n_taps = 2 * self._reach() // up + 1
        kept = (self.n_fft + hop, self.n_fft - hop, n_taps, resampled_length(hop, up, down) + 6)
        types = (dtype, torch.float64, dtype, dtype)  # sums in double: they are the same however the signal is cut
        past, *others = (
            torch.zeros(*shape, each, dtype=kind, device=device) for each, kind in zip(kept, types, strict=True)
        )
        spectrum = torch.zeros(*shape, self.n_fft // 2 + 1, 2, dtype=torch.float64, device=device)
        return past, spectrum, *others, torch.tensor([0, down, up])

    def step(self, x: Tensor, state: State, rate: Any) -> tuple[Tensor, State]:
        """Shift the next block; the output lags by `latency_samples`."""
        (down, up), time = self.ratio(), x.shape[-1]
        if down == up:
            return x, state
        if state[-1][1:].tolist() != [down, up]:
            state = self.init_state(tuple(x.shape[:-1]), rate, x.dtype, x.device)
        past, spectrum, tail, longer, ready, place = state
        n = int(place[0])
        # Stretch.
        hop, half = self.n_fft // OVERLAP, self.n_fft // 2
        first, frames = self._frames(n), self._frames(n + time) - self._frames(n)
        window, missing = vocoder_window(self.n_fft, x.device)
        heard = torch.cat([past, x], dim=-1)
        y, spectrum = _ops.phase_vocoder_forward(
            heard.double(), window, spectrum, up / down, hop, first, past.shape[-1] - n, frames
        )
        y = y + pad(tail, (0, frames * hop))
        tail, begin = y[..., frames * hop :], first * hop - half
        fresh = y[..., max(0, -begin) : frames * hop]
        begin = max(0, begin)
        if begin < hop:
            among = missing[begin : begin + fresh.shape[-1]]
            fresh = torch.cat([fresh[..., : len(among)] / among, fresh[..., len(among) :]], dim=-1)
        # Resample.
        longer = torch.cat([longer, fresh.to(x.dtype)], dim=-1)
        done, outputs = self._outputs(n), self._outputs(n + time) - self._outputs(n)
        origin = done * down + self._reach() + (longer.shape[-1] - fresh.shape[-1] - begin) * up
        taps = settings_on(resampling_taps(up, down, "HQ"), x.device)
        ready = torch.cat([ready, _ops.resample_forward(longer, taps, down, origin, outputs)], dim=-1)
        # Give those that are due.
        late = done + outputs - (n + time - self.latency_samples(rate))
        end = max(0, ready.shape[-1] - late)
        due = ready[..., max(0, end - time) : end]
        due = pad(due, (time - due.shape[-1], 0))
        kept = [heard, longer, ready]
        past, longer, ready = (
            each[..., each.shape[-1] - before.shape[-1] :]
            for each, before in zip(kept, (state[0], state[3], state[4]), strict=True)
        )
        return due, (past, spectrum, tail, longer, ready, torch.tensor([n + time, down, up]))

    def take_over(self, before: Any, shape: tuple[int, ...], old: State, new: State, rate: Any) -> Handover:
        """Return the state at rest, since spectra and stretched samples depend on the pitch. The new pitch fades in
        when they are complete.
        """
        return Handover((None,) * len(new), 2 * self.latency_samples(rate))


def simple_ratio(value: float) -> tuple[int, int]:
    """Return numerator and denominator of the first convergent of a number's continued fraction that is close enough.

    The denominator is bounded, since it is the number of phases of the resampler's low-pass.
    """
    value = settled(value)
    above, below, above_before, below_before, rest = 1, 0, 0, 1, value
    while True:
        whole = int(rest)
        above, above_before = whole * above + above_before, above
        below, below_before = whole * below + below_before, below
        if below > MOST_PHASES:
            return above_before, below_before
        if abs(above / (below * value) - 1) < CLOSE:
            return above, below
        rest = 1 / (rest - whole)


def _varied(x: Tensor, up: int, down: int, length: int) -> Tensor:
    """Return a signal played down/up times as fast."""
    if up == down:
        return pad(x, (0, length - x.shape[-1]))
    taps = settings_on(resampling_taps(up, down, "HQ"), x.device)
    return _ops.resample_forward(x, taps, down, resampling_reach(up, down, "HQ"), length)


def _check_power_of_two(n_fft: int) -> None:
    if n_fft & (n_fft - 1):
        raise ArgumentError(f"n_fft must be a power of two, got {n_fft}")
