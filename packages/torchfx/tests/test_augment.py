"""Augmentation: what is drawn for each example, and that a batch gives what its examples give."""

import copy
import math
import os
import pickle

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

import torchfx as fx
from processors.cases import OTHER_LENGTH, noise
from torchfx.augment import AddNoise, Compose, Distribution, OneOf, Random, SomeOf, choice, log_uniform, uniform
from torchfx.catalogue import available
from torchfx.errors import ArgumentError, ArgumentTypeError, StreamError

FS = 16_000


def bell(**options):
    return Random(fx.filter.Peaking, cutoff=log_uniform(100, 7000), gain_db=uniform(-6, 6), fs=FS, **options)


def one_by_one(augmentation, x, drawn):
    """Apply to each example the processor that its own values make."""
    y = x.clone()
    for i in drawn["applied"].nonzero().flatten().tolist():
        own = {name: drawn[name][i] for name in augmentation.given if name in drawn}
        own = {name: value.tolist() if isinstance(value, torch.Tensor) else value for name, value in own.items()}
        y[i] = augmentation.make(**{**augmentation.given, **own})(x[i])
    return y


CASES = {
    "peak": bell(p=0.5),
    "all": bell(),
    "bands": Random(
        fx.filter.ParametricEQ,
        cutoff=[80, log_uniform(200, 2000), 5000],
        gain_db=uniform(-9, 9),
        q=uniform(0.5, 2),
        btype=["lowshelf", "peaking", "highshelf"],
        fs=FS,
    ),
    "edges": Random(
        fx.filter.Butterworth, cutoff=[uniform(100, 300), uniform(2000, 7000)], btype="bandpass", fs=FS, p=0.7
    ),
    "order": Random(fx.filter.LoButterworth, cutoff=uniform(500, 7000), order=choice([1, 2, 12]), fs=FS, p=0.8),
    "name": Random(fx.effect.Dither, bits=choice([4, 8]), shape=choice(["TPDF", "RPDF"])),
    "decibels": Random(fx.effect.Gain, gain=uniform(-12, 12), gain_type="db", p=0.5),
    "measured": Random(fx.effect.Normalize, peak=uniform(0.1, 1.0)),
    "modulated": Random(fx.effect.Tremolo, depth=uniform(0, 1), fs=FS),
    "curve": Random(fx.effect.Overdrive, oversample=1, p=0.5),
    "time": Random(fx.effect.Delay, time=uniform(0.001, 0.01), fs=FS),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("examples", [1, 5])
def test_a_batch_gives_what_each_example_s_own_processor_gives(name, examples):
    augmentation, x = CASES[name], noise(examples, 2, 1025) / 4
    torch.manual_seed(examples)
    drawn = augmentation.draw(examples)
    y = augmentation.run(x, drawn)
    expected = one_by_one(augmentation, x, drawn)
    assert (y - expected).abs().max() <= 2e-7 * expected.abs().max()
    assert torch.equal(y[~drawn["applied"]], x[~drawn["applied"]])


@pytest.mark.many
@pytest.mark.parametrize("name", available())
def test_so_does_every_processor_that_has_a_number(name):
    entry = available()[name]
    if entry.name in OTHER_LENGTH or entry.name in {"Mono", "Resample"} or issubclass(entry.load(), fx.filter.Bank):
        pytest.skip("its result has another shape")
    numbers = {each.name: each.number for each in entry.declarations if each.number is not None}
    ranges = {key: each.drawn_range(FS) for key, each in numbers.items() if each.default is not None}
    rate = {"fs": FS} if "fs" in {each.name for each in entry.declarations} else {}
    try:
        augmentation = Random(
            entry.load(),
            **{key: (log_uniform if numbers[key].logarithmic else uniform)(*ends) for key, ends in ranges.items()},
            **rate,
        )
    except (ArgumentError, ArgumentTypeError):
        pytest.skip("it needs values that fit each other")
    x = noise(3, 2, 1025)
    drawn = augmentation.draw(3)
    expected = one_by_one(augmentation, x, drawn)
    assert (augmentation.run(x, drawn) - expected).abs().max() <= 1e-6 * expected.abs().max()


def test_a_batch_is_one_call(monkeypatch):
    calls = []
    forward = fx.plan.steps._ops.parallel_iir_forward
    monkeypatch.setattr(fx.plan.steps._ops, "parallel_iir_forward", lambda *args: calls.append(args) or forward(*args))
    bell()(noise(64, 2, 100))
    assert len(calls) == 1


def test_filters_and_gains_in_a_row_are_one_call(monkeypatch):
    calls = []
    forward = fx.plan.steps._ops.parallel_iir_forward
    monkeypatch.setattr(fx.plan.steps._ops, "parallel_iir_forward", lambda *args: calls.append(args) or forward(*args))
    gain = Random(fx.effect.Gain, gain=uniform(-12, 0), gain_type="db")
    x, row = noise(64, 2, 100), Compose([bell(), gain, bell(p=0.5), gain, gain, bell()], generator=0)
    drawn = row.draw(64)
    y = row.run(x, drawn)
    assert len(calls) == 3  # two chains around the bell that some examples hear
    for part, own in zip(row.parts, drawn["parts"], strict=True):
        x = part.run(x, own)
    assert (y - x).abs().max() <= 1e-6 * x.abs().max()


def test_examples_that_are_left_alone_keep_every_bit():
    x = noise(200, 2, 64)
    x[:, 0, 3], x[:, 1, 5], x[:, 0, 7] = math.nan, -0.0, math.inf
    augmentation = Compose([bell(p=0.5), Random(fx.effect.Gain, gain=0.5, p=0.5), AddNoise(10, p=0.5)], generator=1)
    drawn = augmentation.draw(200)
    changed = sum(part["applied"].int() for part in drawn["parts"]) > 0
    y = augmentation.run(x, drawn)
    assert 10 < int((~changed).sum()) < 50
    assert torch.equal(y[~changed].view(torch.int32), x[~changed].view(torch.int32))


def test_as_many_examples_are_changed_as_the_probability_says():
    applied = bell(p=0.3, generator=0).draw(10_000)["applied"]
    assert abs(float(applied.double().mean()) - 0.3) < 0.015
    assert not bool(bell(p=0).draw(100)["applied"].any())


def test_distributions_fill_their_range():
    generator = torch.Generator().manual_seed(0)
    ratios = log_uniform(100, 10_000).draw(10_000, generator)
    assert abs(float((ratios < 1000).double().mean()) - 0.5) < 0.02
    assert float(ratios.min()) < 101
    assert float(ratios.max()) <= 10_000
    drawn = choice("abc").draw(3000, generator)
    assert all(900 < drawn.count(letter) < 1100 for letter in "abc")


def test_a_distribution_of_one_s_own():
    class Rounded(Distribution):
        def draw(self, examples, generator):
            return torch.randint(1, 4, (examples,), generator=generator).double() * 1000

    cutoffs = Random(fx.filter.LoButterworth, cutoff=Rounded(), fs=FS).draw(100)["cutoff"]
    assert set(cutoffs.tolist()) == {1000.0, 2000.0, 3000.0}


def test_a_function_may_make_the_module():
    def echo(mix, time):
        return fx.effect.Mix(fx.effect.Delay(time, fs=FS), mix)

    augmentation = Random(echo, mix=uniform(0, 1), time=choice(["10 samples", "20 samples"]))
    x = noise(4, 1, 500)
    drawn = augmentation.draw(4)
    expected = one_by_one(augmentation, x, drawn)
    assert torch.allclose(augmentation.run(x, drawn), expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("shape", [(FS,), (2, FS), (3, 2, FS), (2, 3, 1, FS)])
def test_everything_before_channels_is_examples(shape):
    augmentation = Compose([bell(generator=0), AddNoise(20.0, generator=0)])
    x = noise(*shape)
    y = augmentation(x)
    assert y.shape == x.shape
    assert not torch.equal(y, x)


def test_channels_of_an_example_are_changed_alike():
    x = noise(3, 1, 500).expand(3, 17, 500)
    y = bell()(x)
    assert torch.equal(y, y[:, :1].expand_as(y))
    assert not torch.equal(y[0], y[1])


def test_outside_of_training_it_is_the_identity():
    augmentation, x = Compose([bell(), AddNoise(0.0)]), noise(3, 2, 100)
    assert augmentation.eval()(x) is x
    assert augmentation.train()(x) is not x


def test_filters_follow_a_wave():
    torch.manual_seed(0)
    augmentation = Random(fx.filter.LoButterworth, cutoff=log_uniform(500, 2000))
    wave = fx.Wave(noise(2, 1000), FS) | (fx.effect.Gain(2.0) | augmentation)
    torch.manual_seed(0)
    cutoff = augmentation.draw(1)["cutoff"].item()
    assert torch.allclose(wave.ys, fx.filter.LoButterworth(cutoff, fs=FS)(2 * noise(2, 1000)), atol=1e-6)
    with pytest.raises(StreamError, match="draws random values for whole examples"):
        fx.realtime.Stream(augmentation, FS, 2).process(noise(2, 64))


def test_gradients_reach_the_signal():
    x = noise(3, 1, 12, dtype=torch.float64).requires_grad_()
    augmentation = Compose([bell(p=0.5), Random(fx.effect.Overdrive, oversample=1), AddNoise(10.0, p=0.7)], generator=3)
    drawn = augmentation.draw(3)
    assert torch.autograd.gradcheck(lambda x: augmentation.run(x, drawn), (x,))


# --- several ----------------------------------------------------------------------------------------------------------


def three():
    return [Random(fx.effect.Gain, gain=factor) for factor in (2.0, 3.0, 5.0)]


@pytest.mark.parametrize(
    ("make", "factors"),
    [
        (lambda: Compose(three()), {30}),
        (lambda: OneOf(three()), {2, 3, 5}),
        (lambda: OneOf(three(), p=0.5), {1, 2, 3, 5}),
        (lambda: SomeOf(three(), 2), {6, 10, 15}),
        (lambda: SomeOf(three(), (0, 1)), {1, 2, 3, 5}),
        (lambda: OneOf([Compose(three()), SomeOf(three(), 2)]), {30, 6, 10, 15}),
    ],
)
def test_several_are_picked_for_each_example(make, factors):
    y = make()(torch.ones(500, 1, 4))
    found, counts = y[:, 0, 0].unique(return_counts=True)
    assert set(found.tolist()) == factors
    assert int(counts.min()) > 40
    assert torch.equal(y, y[..., :1].expand_as(y))


# --- noise ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("color", ["white", "pink"])
def test_noise_has_the_ratio_drawn(color):
    x = noise(8, 2, 4000) * torch.logspace(-3, 1, 8)[:, None, None]
    augmentation = AddNoise(uniform(-5, 40), color, p=0.5, generator=0)
    drawn = augmentation.draw(8)
    y = augmentation.run(x, drawn)
    on = drawn["applied"]
    added = (y - x)[on]
    found = 10 * torch.log10(x[on].square().mean((1, 2)) / added.square().mean((1, 2)))
    assert torch.allclose(found.double(), drawn["snr_db"][on], atol=0.01)
    assert torch.equal(y[~on], x[~on])
    flat = torch.corrcoef(added.flatten(1))
    assert (flat - torch.eye(len(flat))).abs().max() < 0.2  # no example has another's noise
    assert not AddNoise(0.0)(torch.zeros(2, 1, 50)).any()


# --- generators, copies, workers --------------------------------------------------------------------------------------


def several(generator):
    return Compose([bell(p=0.5), OneOf([bell(), AddNoise(uniform(0, 20))])], generator=generator)


def test_a_seed_repeats_what_is_drawn():
    x = noise(8, 1, 200)
    first, again, other = (several(seed) for seed in (1, 1, 2))
    y = first(x)
    assert torch.equal(again(x), y)
    assert not torch.equal(other(x), y)
    assert not torch.equal(first(x), y)
    torch.manual_seed(5)
    y = several(None)(x)
    torch.manual_seed(5)
    assert torch.equal(several(None)(x), y)
    assert torch.equal(several(torch.Generator().manual_seed(1))(x), several(1)(x))


def test_copies_go_on_alike():
    x, augmentation = noise(8, 1, 200), several(1)
    augmentation(x)
    resumed = several(7)
    resumed.load_state_dict(augmentation.state_dict())
    twins = [copy.deepcopy(augmentation), pickle.loads(pickle.dumps(augmentation)), resumed]
    y = augmentation(x)
    for twin in twins:
        assert torch.equal(twin(x), y)
        assert repr(twin) == repr(augmentation)
    assert several(None).state_dict() is not None
    several(None).load_state_dict(several(None).state_dict())


class Ones(Dataset):
    """A dataset on which each transform shows what it draws."""

    def __init__(self, transform):
        self.transform = transform

    def __len__(self):
        return 8

    def __getitem__(self, i):
        return self.transform(torch.ones(1, 4)), os.getpid()


def epoch(loader):
    """Return what was drawn in an epoch, by worker."""
    found = {}
    for y, process in loader:
        found.setdefault(int(process), []).append(float(y[0, 0, 0]))
    return list(found.values())


def loader(method, generator):
    augmentation = Random(fx.effect.Gain, gain=uniform(0, 1), generator=generator)
    return DataLoader(
        Ones(augmentation),
        batch_size=1,
        num_workers=2,
        multiprocessing_context=method,
        generator=torch.Generator().manual_seed(0),
    )


@pytest.mark.parametrize("generator", [None, 3])
def test_each_worker_of_each_epoch_draws_differently_and_repeatably(generator):
    first = loader("fork", generator)
    epochs = [epoch(first), epoch(first)]
    values = [value for workers in epochs for worker in workers for value in worker]
    assert [len(worker) for workers in epochs for worker in workers] == [4, 4, 4, 4]
    assert len(set(values)) == 16
    assert epoch(loader("fork", generator)) == epochs[0]


@pytest.mark.many
def test_spawned_workers_draw_what_forked_ones_draw():
    assert epoch(loader("spawn", 3)) == epoch(loader("fork", 3))


# --- misuse -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: uniform(3, 2), "low must not exceed high, got 3 and 2"),
        (lambda: uniform(0, math.inf), "high must be finite, got inf"),
        (lambda: log_uniform(0, 2), r"low must lie in \(0, high\], got 0"),
        (lambda: choice([]), "options must hold at least one value"),
        (lambda: bell(p=1.5), r"p must lie in \[0, 1\], got 1.5"),
        (lambda: bell(generator="a"), "generator must be a torch.Generator on the CPU, a seed or None, got 'a'"),
        (lambda: bell(generator=-1), "generator must be"),
        (lambda: Random(fx.effect.Invert()), "make must be a class or a function that returns a module, got Invert"),
        (lambda: Random(lambda: 3), "make must return a module, got 3"),
        (lambda: Random(fx.filter.Peaking, cutoff=uniform(10, 9000), fs=FS), r"cutoff must lie in .* got 9000"),
        (lambda: Random(fx.effect.Gain, gain=1.0, gian=uniform(0, 1)), "got an unexpected keyword argument 'gian'"),
        (
            lambda: Random(fx.filter.ParametricEQ, cutoff=[uniform(1, 2), uniform(5, 9000)], fs=FS),
            "cutoff must lie in .* got 9000",
        ),
        (lambda: AddNoise("loud"), "snr_db must be a number in dB, got 'loud'"),
        (lambda: AddNoise(3.0, "blue"), "color must be one of white, pink, brown, got 'blue'"),
        (lambda: Compose([]), "augmentations must hold at least one, got none"),
        (lambda: Compose([fx.effect.Invert]), "augmentations must be modules, got <class"),
        (lambda: SomeOf(three(), 4), r"count must .* got 4"),
        (lambda: SomeOf(three(), (2, 1)), "count must"),
        (lambda: SomeOf(three(), (1, 2, 3)), r"count must be a whole number or a pair \(least, most\)"),
        (lambda: bell().run(noise(3, 1, 50), bell().draw(2)), "drawn must hold values for 3 examples"),
        (
            lambda: Random(fx.effect.Pad, fs=FS)(noise(2, 1, FS)),
            "an augmentation keeps the shape of its signals, but Pad",
        ),
        (lambda: bell()(noise(2, 1, 5).int()), "x must be float32 or float64"),
    ],
)
def test_misuse_is_said(build, message):
    with pytest.raises((ArgumentError, ArgumentTypeError, TypeError), match=message):
        build()


def test_an_augmentation_is_a_module_among_others():
    model = nn.Sequential(bell(), nn.Conv1d(1, 2, 3))
    assert model(noise(2, 1, 100)).shape == (2, 2, 98)


def test_fixed_modules_stand_among_augmentations(generator):
    x = torch.randn(6, 2, 400, generator=generator)
    low = fx.filter.LoButterworth(1000, fs=16_000)
    both = Compose([low, Random(fx.effect.Gain, gain_db=uniform(-6, 6)), torch.nn.Tanh()], generator=0)
    drawn = both.draw(6)
    gains = 10 ** (drawn["parts"][1]["gain_db"] / 20)
    wanted = torch.tanh(low(x.double()) * gains[:, None, None])
    assert torch.allclose(both.run(x, drawn).double(), wanted, atol=1e-5)
    x = torch.randn(40, 2, 4, generator=generator)
    one = OneOf([fx.effect.Invert(), fx.effect.Gain(0.5)], generator=0)
    picked = one.draw(40)
    factors = torch.where(picked["parts"][0]["applied"], -1.0, 0.5)
    assert set(factors.tolist()) == {-1.0, 0.5}
    assert torch.equal(one.run(x, picked), x * factors[:, None, None])
    assert torch.equal(both.eval()(x), x)
