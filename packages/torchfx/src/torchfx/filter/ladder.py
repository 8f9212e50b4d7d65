"""The transistor ladder: four one-pole low-passes in a feedback loop that saturates."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from torchfx import _ops
from torchfx.core.processor import Processor
from torchfx.design.biquad import second_order, section
from torchfx.design.state_space import LADDER_MODES, ladder
from torchfx.errors import ArgumentError
from torchfx.parameters import Value, choice, frequency, number, sample_rate
from torchfx.plan import LTI, Handover, State, kept
from torchfx.plan.handover import LONGEST_WAIT_S, NEAR_CORNER, samples
from torchfx.tensors import settings_on

__all__ = ["Ladder"]

HALF_POWER = 0.5**0.5

FED_BACK = "LPF24"

PERIODS = 3.0
"""Periods of the cutoff until a ladder from rest has settled; a strong resonance grows from silence for longer."""


class Ladder(Processor):
    """Moog ladder filter with resonance and saturation.

    Four one-pole low-passes in series; the output is fed back to the input, which a tanh saturates. The loop is solved
    for each sample (trapezoidal integrators, no delay in the feedback), so cutoff and resonance match the circuit. As
    in the circuit, resonance reduces the gain of the low-pass modes at 0 Hz to 1 / (1 + 4 resonance). With a drive of 0
    the filter is linear, and chains fuse it.

    `mode` selects the output: low-pass or high-pass with 12 or 24 dB per octave, or a band-pass that rises with 6 or 12
    dB per octave up to the cutoff and falls with 12 dB per octave above it. Each mode is a weighted sum of the four
    stages and their input; "LPF24" is the last stage.

    Source: V. Zavalishin, The Art of VA Filter Design, 2012, chapter 5 (the saturator after the feedback, and modes).

    Examples:
        >>> import torch
        >>> Ladder(800, resonance=0.9)
        Ladder(cutoff=800, resonance=0.9, drive=1)
        >>> settled = Ladder(800, resonance=0.5, drive=0, fs=48_000)(torch.ones(1, 48_000))
        >>> round(float(settled[0, -1]), 6)  # 1 / (1 + 4 * 0.5)
        0.333333
    """

    cutoff: Value = frequency(doc="frequency of the resonance")
    resonance: Value = number(default=0.5, low=0.0, high=1.0, doc="1 sings by itself, which it can only do with drive")
    drive: Value = number(default=1.0, low=0.0, high=1000.0, draws=(0.1, 4.0), doc="drive; 0 is linear")
    mode: str = choice(tuple(LADDER_MODES), default="LPF24", doc="low-, high- or band-pass, dB per octave")
    fs: float | None = sample_rate(default=None)

    def check_parameters(self) -> None:
        """Raise if the linear ladder would be unstable."""
        numbers = not isinstance(self.drive, Tensor) and not isinstance(self.resonance, Tensor)
        if numbers and self.drive == 0 and self.resonance >= 1:
            raise ArgumentError(f"resonance must stay below 1 where drive is 0, got {self.resonance:g}")

    def lti(self, rate: Any) -> LTI | None:
        """Return the filter as two sections if it is linear.

        The loop 1 / ((s + 1)^4 + 4 resonance) has its poles at -1 + (4 resonance)^(1/4) e^(j pi (2m + 1) / 4). A
        learned resonance uses `step`, because the fourth root has no derivative at 0.
        """
        if isinstance(self.drive, Tensor) or self.drive != 0 or isinstance(self.resonance, Tensor):
            return None
        radius: float = (4 * self.resonance) ** 0.25
        _, numerators = LADDER_MODES[self.mode]
        rows = []
        for sign, numerator in zip((1, -1), numerators, strict=True):
            real = sign * HALF_POWER * radius
            denominator = (1.0, 2 - 2 * real, 1 - 2 * real + radius**2)
            rows.append(section(second_order(numerator, denominator, self.cutoff, rate)))
        return LTI(sos=torch.cat(rows, dim=-2))

    def init_state(
        self, shape: tuple[int, ...], rate: Any, dtype: torch.dtype = torch.float32, device: Any = "cpu"
    ) -> State:
        """Return the four integrators at rest."""
        return (torch.zeros(*self.output_shape(tuple(shape)), 4, dtype=torch.float64, device=device),)

    def step(self, x: Tensor, state: State, rate: Any) -> tuple[Tensor, State]:
        """Process a block.

        The input of the stages follows from the last stage's output. The stages then run again from the same state to
        compute the mode's sum.
        """
        system, feedback, drive = self._settings(rate, x.device)
        if self.mode == FED_BACK:
            y, after = _ops.saturated_forward(x, system, feedback, drive, state[0])
            return y, (after,)
        fed_back, _ = _ops.saturated_forward(x.double(), system, feedback, drive, state[0])
        z, limit = x - feedback[..., None] * fed_back, torch.where(drive == 0, 1.0, drive)[..., None]
        driven = torch.where(drive[..., None] == 0, z, torch.tanh(limit * z) / limit)
        y, after = _ops.state_space_forward(driven, self._system(self.mode, rate, x.device), state[0])
        return y.to(x.dtype), (after,)

    def take_over(self, before: Any, shape: tuple[int, ...], old: State, new: State, rate: Any) -> Handover:
        """Return the integrators unchanged if the cutoff moves by little, else the state at rest."""
        was, own = (torch.as_tensor(each.cutoff, dtype=torch.float64).detach() for each in (before, self))
        if bool(((own / was).log().abs() <= NEAR_CORNER).all()):
            return kept(old, new, rate)
        return Handover((None,), samples(min(LONGEST_WAIT_S, PERIODS / float(own.min())), rate), rises=True)

    def native(self, program: Any, source: int, state: State, rate: Any) -> int | None:
        """Append the filter, if nothing in it is learned."""
        settings = self._settings(rate, torch.device("cpu"))
        if any(each.requires_grad for each in settings) or state[0].shape[:-1] != program.shape:
            return None
        system, feedback, drive = settings
        output = self._system(self.mode, rate, system.device)[..., 0, -1, :]
        found: int = program.saturated(source, system, output, feedback, drive, state[0])
        return found

    def _settings(self, rate: Any, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
        """Return the system, the loop's gain and the amplifier's drive."""
        system = self._system(FED_BACK, rate, device)
        return system, settings_on(4 * self.resonance, device), settings_on(self.drive, device)

    def _system(self, mode: str, rate: Any, device: torch.device) -> Tensor:
        """Return the four stages, with the sum that a mode puts out."""
        return settings_on(ladder(self.cutoff, rate, mode), device).unsqueeze(-3)
