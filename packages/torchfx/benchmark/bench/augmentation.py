"""Batches of examples, each with a random filter, gain and noise, against the augmentation libraries that are there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import torch

from bench.chains import Chain, Design
from torchfx.augment import AddNoise, Compose, Random, log_uniform, uniform
from torchfx.effect import Gain
from torchfx.filter import HiButterworth, ParametricEQ

__all__ = ["Augmentation", "augmented", "by_audiomentations", "by_torch_audiomentations", "ratio_off"]

Samples = npt.NDArray[np.float32]

GAIN_DB, SNR_DB = (-12.0, 0.0), (5.0, 30.0)
BANDS = np.geomspace(40, 7600, 8)


@dataclass(frozen=True)
class Augmentation(Chain):
    """One example in each row.

    Attributes:
        filter: "high-pass" or "equalizer", of seven bands.
    """

    filters: tuple[Design, ...] = ()
    fs: int = 16_000
    filter: str = "equalizer"

    def job(self, device: str = "cpu", channels: int = 1) -> dict[str, Any]:
        """Return what the works below want to know."""
        return {"fs": self.fs, "filter": self.filter}


def composed(job: dict[str, Any]) -> Compose:
    """Return the augmentation; each begins with the same random numbers."""
    if job["filter"] == "high-pass":
        filtered = Random(HiButterworth, cutoff=log_uniform(20, 2400), fs=job["fs"])
    else:
        filtered = Random(
            ParametricEQ,
            cutoff=[log_uniform(low, high) for low, high in pairwise(BANDS)],
            gain_db=uniform(-12, 12),
            q=uniform(0.5, 2),
            btype=["lowshelf", *["peaking"] * 5, "highshelf"],
            fs=job["fs"],
        )
    return Compose(
        [filtered, Random(Gain, gain=uniform(*GAIN_DB), gain_type="db"), AddNoise(uniform(*SNR_DB))], generator=0
    )


def augmented(job: dict[str, Any], x: Samples) -> Callable[[], Any]:
    """Return a call for the whole batch."""
    augmentation, batch = composed(job), torch.from_numpy(x)[:, None]
    return lambda: augmentation(batch)[:, 0]


def ratio_off(chain: Chain, x: Samples, y: npt.NDArray[Any]) -> float:
    """Return the largest relative error of an example's ratio of signal to noise, as amplitudes, in a first call."""
    if y.shape != x.shape:
        return float("inf")
    augmentation, clean = composed(chain.job()), torch.from_numpy(x).double()[:, None]
    drawn = augmentation.draw(len(x))
    for part, own in zip(list(augmentation.parts)[:2], drawn["parts"], strict=False):
        clean = cast(Random, part).run(clean, own)
    signal, noise = clean.norm(dim=(1, 2)), (torch.from_numpy(y)[:, None] - clean).norm(dim=(1, 2))
    return float((signal / noise * 10 ** (-drawn["parts"][2]["snr_db"] / 20) - 1).abs().max())


def by_torch_audiomentations(job: dict[str, Any], x: Samples) -> Callable[[], Any]:
    """Return a call of torch-audiomentations for the whole batch; its high-pass is a windowed sinc."""
    import torch_audiomentations as others

    augmentation = others.Compose(
        [
            others.HighPassFilter(20, 2400, p=1, output_type="tensor"),
            others.Gain(*GAIN_DB, p=1, output_type="tensor"),
            others.AddColoredNoise(*SNR_DB, min_f_decay=0, max_f_decay=0, p=1, output_type="tensor"),
        ],
        output_type="tensor",
    )
    batch = torch.from_numpy(x)[:, None]
    return lambda: augmentation(batch, job["fs"])


def by_audiomentations(job: dict[str, Any], x: Samples) -> Callable[[], Any]:
    """Return a loop of audiomentations over the examples."""
    import audiomentations as others

    augmentation = others.Compose(
        [others.SevenBandParametricEQ(p=1), others.Gain(*GAIN_DB, p=1), others.AddGaussianSNR(*SNR_DB, p=1)]
    )
    return lambda: [augmentation(example, job["fs"]) for example in x]
