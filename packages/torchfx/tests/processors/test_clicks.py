"""A parameter that jumps to an end of its range while a steady signal runs: no step is heard, then or later.

Every parameter of every processor that streams is found by itself. A step in a signal is a second difference of its own
height, so the output's largest one is compared with what both settings give by themselves.
"""

import itertools
import math
from contextlib import suppress
from random import Random

import pytest
import torch

from many_cases import spread_out
from processors import cases
from processors.cases import FS, streams
from processors.test_changes import LIMITS, MANY, SHAPED, UNSTEADY, changed, made, settings_from, steady
from torchfx.catalogue import available
from torchfx.errors import ArgumentError, StreamError
from torchfx.parameters import REQUIRED, Count, Duration, Frequencies, Frequency
from torchfx.plan import plan_of
from torchfx.plan.handover import eased
from torchfx.realtime import Stream

CASES = [
    (name, each.name)
    for name, entry in cases.tested().items()
    if streams(entry) and entry.name not in {*SHAPED, *UNSTEADY}
    for each in entry.declarations
    if each.name != "fs"
]

SIGNALS = (("sine", 64, True), ("sine", 256, False), ("noise", 64, False))
"""What is heard, in blocks of how many samples, and whether the other parameters have their defaults."""

MOST = 16
"""Of whole numbers without a highest one."""

CHANGE, AFTER = 24_576, 24_000
"""When the parameter jumps, and for how long it is listened for clicks, in samples: as long as the longest wait."""

ROUGHER, LOUDER = 2.5, 1.5
"""By how much second difference and peak may exceed those of both settings, the former at the level of the louder one.

The peak may reach the sum of both, too: the old one's tail goes on beneath the new one.
"""

QUIET = 1e-4
"""Second differences below it, relative to the louder of signal and settings, are no clicks: -80 dB."""

LEVEL = {"sine": 0.5, "noise": 0.1}


def ends(declaration, random):
    """Return two values at the ends of a parameter's range, or any two where it has none."""
    if hasattr(declaration, "names"):
        return random.sample(declaration.draws, min(2, len(declaration.draws)))
    if isinstance(declaration, Count):
        return [declaration.low, min(declaration.high or MOST, max(MOST, declaration.draws[1]))]
    if isinstance(declaration, Duration):
        return [0.002, 0.3]
    if not hasattr(declaration, "bounds") or isinstance(declaration, Frequencies):
        return [declaration.draw(random, FS) for _ in range(2)]
    low, high = declaration.bounds(FS)
    least, most = LIMITS.get(declaration.name, LIMITS.get(declaration.unit, (low, high)))
    low, high = max(low, least), min(high, most)
    if isinstance(declaration, Frequency):
        low = 20.0
    if not (math.isfinite(low) and math.isfinite(high)):
        return [declaration.draw(random, FS) for _ in range(2)]
    return [low + 1e-3 * (high - low), high - 1e-3 * (high - low)]


def started(entry, parameter, to, random, is_default):
    """Return a processor to which the value may be assigned, or None where it fits no other values."""
    given = is_default and not any(each.default is REQUIRED for each in entry.declarations)
    for _ in range(100):
        with suppress(ArgumentError, StreamError):  # values may not fit each other
            settings = {} if given else settings_from(entry, random)
            given = False
            module, other = made(entry, settings), made(entry, settings)
            setattr(other, parameter, to)
            if not (plan_of(module, FS).refusal or plan_of(other, FS).refusal):
                Stream(other, FS, 2).process(torch.zeros(2, 1))
                return module
    return None


def signal(kind):
    """Return two channels of a sine, or of noise whose level stays; it fades in, for no echo to repeat its start."""
    time = torch.arange(CHANGE + AFTER, dtype=torch.float64)
    if kind == "sine":
        x = torch.sin(2 * torch.pi * 220 / FS * time)
    else:
        x = torch.randn(len(time), generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return (LEVEL[kind] * eased(time / 4800) * x).float().expand(2, -1).contiguous()


def roughness(y):
    return float(y[..., CHANGE // 2 :].diff(n=2).abs().max()) if y.shape[-1] > CHANGE else 0.0


def peak(y):
    return float(y[..., CHANGE // 2 :].abs().max())


def jump(module, entry, parameter, to, kind, block):
    """Return second difference and peak of a jump, relative to their bounds; None where the stream refuses it."""
    x = signal(kind)
    y, _, settings = changed(module, x, {CHANGE: {parameter: to}}, block)
    if len(settings) < 2:
        return None
    alone = [steady(entry, each, x) for each in settings]
    peaks = [max(peak(each), LEVEL[kind] / 10) for each in alone]  # what is left out leaves rounding
    roughest = max(roughness(each) / own for each, own in zip(alone, peaks, strict=True))
    rough = ROUGHER * roughest * max(peaks) + QUIET * max(*peaks, LEVEL[kind])
    return roughness(y) / rough, peak(y) / max(LOUDER * max(peaks), sum(peaks))


@pytest.mark.parametrize("seed", range(2 if MANY else 1))
@pytest.mark.parametrize(("name", "parameter"), spread_out(CASES))
def test_a_jump_of_one_parameter_makes_no_step(name, parameter, seed):
    entry, random = available()[name], Random(f"{name} {parameter} {seed}")
    declaration = next(each for each in entry.declarations if each.name == parameter)
    for to, (kind, block, is_default) in itertools.product(ends(declaration, random), SIGNALS):
        module = started(entry, parameter, to, random, is_default)
        found = None if module is None else jump(module, entry, parameter, to, kind, block)
        if found is not None:
            rough, loud = found
            assert rough <= 1, f"a click in {kind} at {to!r}: {rough:.3g} times the bound of the second difference"
            assert loud <= 1, f"a burst in {kind} at {to!r}: {loud:.3g} times the bound of the peak"
