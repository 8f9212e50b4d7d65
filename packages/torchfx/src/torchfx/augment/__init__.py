"""Augmentation: filters, effects, noises, rooms and codecs, drawn for each example of a batch.

    Random(fx.filter.Peaking, cutoff=log_uniform(100, 8000), gain_db=uniform(-6, 6), p=0.5)

An augmentation is an `nn.Module`: signals (examples, channels, time) in, the same shape out (but for `Crop`, which sets
the time); more leading dimensions are examples too, and (channels, time), as a Dataset gives it, is one example. In
`eval()` it returns its input. Filters follow the wave's rate or `torchfx.sample_rate`, or get `fs=...` like any
parameter.

Parameters are tensors with a value for each example, so that a batch is one call, except where a parameter cannot be a
tensor (an order, a name, a time in samples): then there is one call for each of its values.
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
