"""Augmentation: filters, effects, noise, room responses and codecs with random parameters for each example of a batch.

    Random(fx.filter.Peaking, cutoff=log_uniform(100, 8000), gain_db=uniform(-6, 6), p=0.5)

An augmentation is an `nn.Module` that takes signals (examples, channels, time) and returns the same shape (except
`Crop`, which changes the time). Further leading dimensions are examples too, and (channels, time), as a Dataset returns
it, is one example. In `eval()` mode it returns its input. Filters use the wave's rate, `torchfx.sample_rate`, or their
parameter `fs`.

Parameters are tensors with one value per example, so a batch is one call. If a parameter cannot be a tensor (an order,
a name, a time in samples), there is one call for each of its values.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from torchfx.augment.augmentation import (
    AddNoise,
    Augmentation,
    Compose,
    Distribution,
    OneOf,
    Random,
    SomeOf,
    choice,
    log_uniform,
    uniform,
)
from torchfx.augment.recordings import BackgroundNoise, Convolve
from torchfx.augment.time import Crop, Shift, TimeMask, TimeStretch, Varispeed
from torchfx.augment.transmission import Codec, PacketLoss
from torchfx.other_names import missing as _missing

__all__ = [
    "AddNoise",
    "Augmentation",
    "BackgroundNoise",
    "Codec",
    "Compose",
    "Convolve",
    "Crop",
    "Distribution",
    "OneOf",
    "PacketLoss",
    "Random",
    "Shift",
    "SomeOf",
    "TimeMask",
    "TimeStretch",
    "Varispeed",
    "choice",
    "log_uniform",
    "uniform",
]

if not _TYPE_CHECKING:  # a type checker reports names that do not exist
    __getattr__ = _missing(__name__)
