"""A batch of stereo items, each through its own parametric equaliser: one call against a loop over SciPy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.chains import Chain, Design

__all__ = ["Equalizers", "equalized", "sosfilt_per_item", "trained"]

BANDS = 5
Samples = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Equalizers(Chain):
    """Peaking filters, `BANDS` for each item, all different; a chain whose sections are (channels, bands, 6)."""

    filters: tuple[Design, ...] = ()
    items: int = 256

    def parameters(self) -> dict[str, npt.NDArray[np.float64]]:
        """Return cutoff, q and gain_db, (items, 1, bands) each."""
        random, shape = np.random.default_rng(0), (self.items, 1, BANDS)
        cutoff = np.exp(random.uniform(np.log(40), np.log(15_000), shape))
        return {"cutoff": cutoff, "q": random.uniform(0.5, 4, shape), "gain_db": random.uniform(-12, 12, shape)}

    def sos(self) -> npt.NDArray[np.float64]:
        """Return the sections of each channel, by the cookbook's formula."""
        cutoff, q, gain_db = self.parameters().values()
        angle = 2 * np.pi * cutoff / self.fs
        alpha, amplitude, middle = np.sin(angle) / (2 * q), 10 ** (gain_db / 40), -2 * np.cos(angle)
        rise, fall = alpha * amplitude, alpha / amplitude
        rows = np.stack([1 + rise, middle, 1 - rise, 1 + fall, middle, 1 - fall], axis=-1) / (1 + fall)[..., None]
        return rows.repeat(2, axis=1).reshape(-1, BANDS, 6)

    def taps(self) -> None:
        """Return None: the filters are recursive."""

    def job(self, device: str = "cpu", channels: int = 1) -> dict[str, Any]:
        """Return what the works below want to know."""
        return {"fs": self.fs, "parameters": self.parameters(), "sos": self.sos()}

    def __str__(self) -> str:
        """Return the work in words."""
        return f"{BANDS} peaking filters for each of {self.items} stereo items at {self.fs} Hz"


def equalized(job: dict[str, Any], x: Samples) -> Callable[[], Any]:
    """Return a call of one module on the whole batch."""
    import torch

    eq, batch = _equalizer(job, lambda values: values), torch.from_numpy(x).unflatten(0, (-1, 2))
    return lambda: eq(batch).flatten(0, 1)


def trained(job: dict[str, Any], x: Samples) -> Callable[[], Any]:
    """Return the same with the gradients of all parameters."""
    import torch

    eq, batch = _equalizer(job, torch.nn.Parameter), torch.from_numpy(x).unflatten(0, (-1, 2))
    grad = batch.flip(-1)

    def run() -> Any:
        y = eq(batch)
        y.backward(grad)
        eq.zero_grad()
        return y.detach().flatten(0, 1)

    return run


def sosfilt_per_item(job: dict[str, Any], x: Samples) -> Callable[[], Any]:
    """Return a loop of `scipy.signal.sosfilt` over the items."""
    from scipy import signal

    sos = job["sos"]
    return lambda: [signal.sosfilt(sos[i], x[i : i + 2]) for i in range(0, len(x), 2)]


def _equalizer(job: dict[str, Any], form: Callable[[Any], Any]) -> Any:
    import torch

    from torchfx.filter import ParametricEQ

    values = {name: form(torch.from_numpy(each)) for name, each in job["parameters"].items()}
    return ParametricEQ(**values, fs=job["fs"])
