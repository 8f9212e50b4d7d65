"""Every public processor, found by itself, with parameters drawn from its declarations."""

import math
import os
from fractions import Fraction
from random import Random

import torch
from torch import nn

import torchfx as fx
from torchfx.catalogue import available
from torchfx.errors import ArgumentError

FS = 48_000


def drawn(entry, seed, **given):
    """Build a processor with random parameters; some do not fit each other, and others are drawn then."""
    random = Random(f"{entry.name} {seed}")
    cls = entry.load()
    while True:
        values = {each.name: each.draw(random, FS) for each in entry.declarations}
        values |= {"fs": FS} if "fs" in values else {}
        try:
            return cls(**{**values, **given})
        except ArgumentError:
            continue


def is_special(entry):
    """Say whether a class is another public one with a parameter fixed."""
    cls, others = entry.load(), [each.load() for each in available().values()]
    return any(issubclass(cls, other) and set(cls.declarations) < set(other.declarations) for other in others)


def smooth(seed):
    """A convolution that keeps length and number of channels, the same from any seed."""
    torch.manual_seed(seed)
    return nn.Conv1d(2, 2, 7)


def tested():
    """Return the entries of every processor, or of one of each family: those that share the methods they run.

    Of a family it is the one with the most parameters.
    """
    entries = available()
    if os.environ.get("TORCHFX_CASES") == "many":
        return entries
    families = {}
    for name, entry in sorted(entries.items(), key=lambda item: len(item[1].declarations), reverse=True):
        cls = entry.load()
        methods = tuple(getattr(cls, method, None) for method in ("lti", "step", "measure", "forward"))
        families.setdefault((*methods, "fs" in cls.declarations), name)
    return {name: entries[name] for name in families.values()}


def streams(entry):
    """Say whether a stream can run a processor."""
    return entry.load().kind not in {"whole", "measured"}


QUANTISERS = {"BitCrush", "Dither"}
"""Behind other processors they make whole steps of what rounds differently."""

OTHER_LENGTH = {"Pad", "TimeStretch", "TrimSilence", "Varispeed"}
"""Their output is longer or shorter than the signal; tests/effect/test_silence.py and test_pitch.py are theirs."""

IN_CHAINS = {"Ladder": {"mode": "LPF24"}}
"""Behind a low-pass, a high-pass leaves what was filtered out, and others amplify its rounding."""

COMPOSED = {
    "chain": lambda seed: fx.FilterChain(
        *(
            drawn(entry, seed, **IN_CHAINS.get(entry.name, {}))
            for entry in tested().values()
            if streams(entry)
            and entry.name not in {"Resample", "Mono", *QUANTISERS}
            and not issubclass(entry.load(), fx.filter.Bank)
        )
    ),
    "chain with modules": lambda seed: drawn(available()["lobutterworth"], seed) | nn.Tanh() | fx.effect.Gain(0.5),
    "sum": lambda seed: drawn(available()["hibutterworth"], seed) + (drawn(available()["fir"], seed) | nn.Tanh()),
    "sum of late": lambda seed: fx.WithContext(smooth(seed), 3, 3) + fx.effect.Gain(0.5),
    "late before others": lambda seed: (
        fx.WithContext(smooth(seed), 3, 3)
        | drawn(available()["lobutterworth"], seed)
        | fx.WithContext(smooth(seed + 1), 1, 5)
        | fx.effect.Gain(0.5)
    ),
    "memoryless": lambda seed: fx.Memoryless(nn.Softplus()),
    "with context": lambda seed: fx.WithContext(smooth(seed), past_samples=4, future_samples=2),
}

CASES = {
    **{
        name: lambda seed, entry=entry: drawn(entry, seed)
        for name, entry in tested().items()
        if entry.name not in OTHER_LENGTH
    },
    **COMPOSED,
}
"""Makers of processors from a seed, by name."""

OWN = [name for name in CASES if name not in COMPOSED or name == "chain"]
"""Without modules of PyTorch's: those may round by the memory they get, and their threads do not survive a fork."""

STREAMING = [name for name in CASES if name in COMPOSED or streams(available()[name])]


def noise(*shape, seed=0, dtype=torch.float32):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def samples(module, count):
    """Return how many samples a processor makes of so many at FS."""
    return math.ceil(count * Fraction(rate_behind(module)) / FS)


def rate_behind(module):
    return module.output_rate(FS) if isinstance(module, fx.Processor) else FS


def as_type(module, dtype):
    """Convert plain modules inside; processors keep their own types."""
    return module.to(dtype)
