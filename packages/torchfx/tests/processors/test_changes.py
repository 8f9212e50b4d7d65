"""Parameters that jump while a stream runs: nothing bursts, nothing clicks, and in the end the new setting is heard.

Every processor that streams is found by itself. Each parameter jumps from anywhere to anywhere in its range: one of
them or all at once, again before the first change has ended, and in sweeps. What comes out is compared with what the
settings give by themselves: their steady outputs.
"""

import math
import os
from contextlib import suppress
from random import Random

import pytest
import torch

from many_cases import spread_out
from processors import cases
from processors.cases import FS, streams
from torchfx.errors import ArgumentError, StreamError
from torchfx.plan import plan_of
from torchfx.plan.handover import LONGEST_WAIT_S
from torchfx.plan.steps import LTIStep, wait_of
from torchfx.realtime import Stream
from torchfx.realtime.stream import GLIDE_MS

MANY = os.environ.get("TORCHFX_CASES") == "many"
JUMPS = 12 if MANY else 2
SWEEPS = (30, 1000) if MANY else (30,)

CASES = {name: entry for name, entry in cases.tested().items() if streams(entry) and entry.declarations}

UNSTEADY = {"Dither"}
"""Their output is noise."""

SHAPED = {"Resample"}
"""They can change nothing in a running stream."""

LIMITS = {
    "ms": (0.0, 500.0),
    "dB": (-60.0, 30.0),
    "gain": (0.0, 8.0),
    "peak": (0.0, 8.0),
    "q": (0.05, 100.0),
    "delay": (0.0, 5000.0),
}
"""Of what has no limit, or one that no ear would ask for; of a delay (samples), what a new filter waits for."""

CHANGE = FS // 2
"""When the first change comes: all that was heard before it has settled by then."""

FADE = round(FS * GLIDE_MS / 1000)


def anywhere(declaration, random):
    """Return a value from anywhere in the range of a parameter, its ends included."""
    kind = type(declaration).__name__
    if kind == "Frequency" or (kind == "Frequencies" and declaration.drawn == 1):
        return math.exp(random.uniform(math.log(10), math.log(0.498 * FS)))
    if declaration.name == "order":
        return random.randint(1, 12)
    low, high = declaration.bounds(FS) if hasattr(declaration, "bounds") else (math.nan, math.nan)
    least, most = LIMITS.get(declaration.name, LIMITS.get(getattr(declaration, "unit", ""), (low, high)))
    low, high = max(low, least), min(high, most)
    if not (math.isfinite(low) and math.isfinite(high)) or random.random() < 0.5:
        return declaration.draw(random, FS)
    if random.random() < 0.3:
        return random.choice([low, high])
    if low > 0 or (low == 0 and random.random() < 0.5):
        return math.exp(random.uniform(math.log(max(low, 1e-3 * high)), math.log(high)))
    return random.uniform(low, high)


def settings_from(entry, random, names=None):
    """Return values of all parameters, or of some, that may not fit each other."""
    return {
        each.name: anywhere(each, random)
        for each in entry.declarations
        if each.name != "fs" and (names is None or each.name in names)
    }


def made(entry, settings):
    rate = {"fs": FS} if any(each.name == "fs" for each in entry.declarations) else {}
    return entry.load()(**settings, **rate)


def built(entry, random):
    """Return a processor with such values."""
    while True:
        with suppress(ArgumentError):  # values may not fit each other
            module = made(entry, settings_from(entry, random))
            if not plan_of(module, FS).refusal:
                return module


def signal(kind, random, samples):
    """Return two channels of a signal."""
    time = torch.arange(samples, dtype=torch.float64) / FS
    if kind == "sine":
        hertz = math.exp(random.uniform(math.log(30), math.log(12_000)))
        x = 0.5 * torch.sin(2 * torch.pi * hertz * time + random.uniform(0, 6))
    elif kind == "noise":
        x = 0.2 * torch.randn(
            samples, dtype=torch.float64, generator=torch.Generator().manual_seed(random.randrange(99))
        )
    else:
        x = torch.zeros(samples, dtype=torch.float64)
        if kind == "impulses":
            x[:: random.randint(500, 5000)] = 0.5
    return x.to(random.choice([torch.float32, torch.float64])).expand(2, -1).contiguous()


def changed(module, x, changes, block):
    """Return a stream's output, where in it a change is on its way, and all settings that were heard.

    Args:
        module: it is changed.
        x: the signal.
        changes: values to assign, by the sample before whose block they are assigned.
        block: samples of a block.
    """
    stream, parts, crossing, settings = Stream(module, FS, 2), [], [], [values(module)]
    for start in range(0, x.shape[-1], block):
        for name, value in changes.pop(start, {}).items():
            with suppress(ArgumentError):  # it may not fit the others
                setattr(module, name, value)
        try:
            plan_of(module, FS)
        except ArgumentError:  # a filter that float64 cannot hold
            restore(module, settings[-1])
        now = values(module)
        try:
            parts.append(stream.process(x[:, start : start + block]))
        except StreamError as error:  # another number of bands
            if "cannot" not in str(error):
                raise
            restore(module, settings[-1])
            parts.append(stream.process(x[:, start : start + block]))
        else:
            if any(now[name] is not value for name, value in settings[-1].items()):
                settings.append(now)
        crossing.append(torch.full((parts[-1].shape[-1],), stream._transition is not None))
    return torch.cat(parts, dim=-1).double(), torch.cat(crossing), settings


def restore(module, settings):
    """Assign values that fit each other, in any order."""
    for _ in settings:
        for name, value in settings.items():
            with suppress(ArgumentError):
                setattr(module, name, value)


def values(module):
    return {name: getattr(module, name) for name in module.declarations if name != "fs"}


def steady(entry, settings, x):
    """Return what one setting makes of the signal by itself."""
    return Stream(made(entry, settings), FS, 2).process(x).double()


def peak(y):
    return float(y[..., CHANGE // 2 :].abs().max()) if y.numel() else 0.0


def roughness(y):
    """Return the largest second difference: a click is a step, whose second difference is its height."""
    return float(y[..., CHANGE // 2 :].diff(n=2).abs().max())


def check(entry, x, y, crossing, steadies):
    """Compare what a stream gave with what its settings give by themselves."""
    assert y.isfinite().all()
    linear = entry.load().kind == "lti"
    peaks = sorted(peak(each) if linear else float(each.abs().max()) for each in steadies)  # a detector begins at rest
    scale = max(float(x.abs().max()), 1e-9)
    bound = 1.5 * peaks[-1] + torch.where(crossing, sum(peaks[-2:]), 0.0) + 1e-3 * scale
    after = slice(CHANGE, None)
    assert bool((y.abs() <= bound)[..., after].all()), (
        f"{float((y.abs() / bound)[..., after].max()):.3g} times the bound"
    )
    if entry.name not in UNSTEADY:
        rough = roughness(y) / (3 * max(map(roughness, steadies)) + 2e-4 * max(1.0, sum(peaks[-2:])))
        assert rough <= 1, f"a click: {rough:.3g} times the bound of the second difference"


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("seed", range(JUMPS))
def test_a_jump_neither_bursts_nor_clicks(name, seed):
    entry, random = CASES[name], Random(f"{name} {seed}")
    module = built(entry, random)
    x = signal(random.choice(["sine", "sine", "noise", "impulses", "silence"]), random, 3 * FS // 2)
    names = [each.name for each in entry.declarations if each.name != "fs"]
    if random.random() < 0.6:
        names = [random.choice(names)]
    block = random.choice([64, 64, 256, 1000])
    times = [CHANGE // block * block]
    if random.random() < 0.3:
        times.append(times[0] + block)  # while the first is on its way
    changes = {time: settings_from(entry, random, names) for time in times}
    y, crossing, settings = changed(module, x, changes, block)
    steadies = [steady(entry, each, x) for each in settings]
    check(entry, x, y, crossing, steadies)
    steps = plan_of(module, FS).steps
    remembered = wait_of(steps, (2,), FS)
    late = slice(times[-1] + 4 * remembered + 4 * FADE + round(LONGEST_WAIT_S * FS), None)
    if all(isinstance(step, LTIStep) for step in steps) and late.start < x.shape[-1]:
        apart = float((y - steadies[-1])[..., late].abs().max())
        assert apart <= 1e-4 * max(peak(steadies[-1]), float(x.abs().max()))


@pytest.mark.parametrize("name", spread_out(name for name, entry in CASES.items() if entry.name not in SHAPED))
@pytest.mark.parametrize("steps", SWEEPS)
def test_a_sweep_neither_bursts_nor_clicks(name, steps):
    entry, random = CASES[name], Random(f"{name} {steps}")
    swept = [each for each in entry.declarations if hasattr(each, "bounds") and each.name != "fs"]
    if not swept:
        pytest.skip("no parameter is a number")
    module, each = built(entry, random), random.choice(swept)
    before, ends = getattr(module, each.name), [anywhere(each, random) for _ in range(2)]
    if not all(isinstance(end, (int, float)) for end in [*ends, before]):
        pytest.skip(f"{each.name} is not one number")
    logarithmic = min(ends) > 0
    along = [i / (steps - 1) for i in range(steps)]
    path = [ends[0] * (ends[1] / ends[0]) ** u if logarithmic else ends[0] + u * (ends[1] - ends[0]) for u in along]
    block = 64
    every = max(1, 1000 // steps)
    start = CHANGE // block * block
    changes = {start + i * every * block: {each.name: value} for i, value in enumerate(path)}
    x = signal(random.choice(["sine", "sine", "noise"]), random, start + 1000 * block + FS // 2)
    y, crossing, settings = changed(module, x, changes, block)
    some = settings[:2] + settings[2 :: max(1, len(settings) // 20)] + settings[-1:]
    check(entry, x, y, crossing, [steady(entry, one, x) for one in some])
