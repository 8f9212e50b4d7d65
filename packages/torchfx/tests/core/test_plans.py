"""Remembered plans: nothing that an author or a user does leaves a stale one behind."""

import copy
import functools
import gc
import math
import operator
import sys
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrize

import torchfx as fx
from torchfx import LTI, Processor
from torchfx.effect import Compressor, Gain, Limiter, Normalize, Tremolo
from torchfx.errors import ArgumentError, ArgumentTypeError, SampleRateError
from torchfx.filter import FIR, LoButterworth
from torchfx.parameters import Value, number
from torchfx.plan import plan_of

FS = 48_000


@pytest.fixture
def wave(generator):
    return fx.Wave(torch.randn(2, 400, generator=generator).double(), FS)


class Scale(Processor):
    """Multiplies."""

    factor: Value = number(default=1.0)

    def lti(self, rate):
        return LTI(gain=self.factor)


class Undeclared(Processor):
    """Multiplies, with an attribute that is declared nowhere."""

    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def lti(self, rate):
        return LTI(gain=float(self.factor[0]) if isinstance(self.factor, list) else float(self.factor))


class ByTensor(Processor):
    """Multiplies by a tensor that is a plain attribute."""

    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def lti(self, rate):
        return LTI(gain=self.factor)


def remembered(module, rate=FS):
    return plan_of(module, rate) is plan_of(module, rate)


@pytest.mark.parametrize("container", [lambda *m: fx.FilterChain(*m), lambda *m: nn.Sequential(*m)])
@pytest.mark.parametrize("cls", [Scale, Undeclared])
def test_an_assigned_attribute_is_heard(wave, container, cls):
    module = cls(2.0)
    chain = container(module, Gain(1.0))
    assert torch.equal((wave | chain).ys, wave.ys * 2)
    assert remembered(chain)
    module.factor = 100.0
    assert torch.equal((wave | chain).ys, wave.ys * 100)


def test_a_list_that_changes_is_heard(wave):
    module = Undeclared([2.0])
    chain = module | Gain(1.0)
    assert torch.equal((wave | chain).ys, wave.ys * 2)
    module.factor[0] = 3.0
    assert torch.equal((wave | chain).ys, wave.ys * 3)
    assert not remembered(chain)


def test_a_tensor_changed_in_place_is_heard(wave):
    module = ByTensor(torch.tensor(2.0))
    chain = module | Gain(1.0)
    assert torch.allclose((wave | chain).ys, wave.ys * 2)
    assert remembered(chain)
    module.factor.mul_(2)
    assert torch.allclose((wave | chain).ys, wave.ys * 4)


def test_a_learned_parameter_changed_through_data_is_heard(wave):
    gain = nn.Parameter(torch.tensor(2.0))
    chain = Gain(gain) | Gain(1.0)
    assert torch.allclose((wave | chain).ys, wave.ys * 2)
    gain.data.fill_(5.0)
    assert torch.allclose((wave | chain).ys, wave.ys * 5)


@pytest.mark.parametrize("container", [lambda *m: fx.FilterChain(*m), lambda *m: nn.Sequential(*m)])
def test_changed_children_are_heard(wave, container):
    chain = container(Gain(2.0), Gain(1.0))
    for change, factor in (
        (lambda: chain.append(Gain(3.0)), 6),
        (lambda: chain.insert(0, Gain(2.0)), 12),
        (lambda: chain.__setitem__(0, Gain(1.0)), 6),
        (lambda: chain.__delitem__(1), 3),
        (lambda: chain._modules.update({"0": Gain(5.0)}), 15),
        (lambda: setattr(chain, "2", Gain(1.0)), 5),
        (lambda: chain.extend([Gain(2.0)]), 10),
        (lambda: chain.pop(0), 2),
    ):
        _ = wave | chain
        change()
        assert torch.allclose((wave | chain).ys, wave.ys * factor)


def test_changes_deep_inside_are_heard(wave):
    inner = nn.Sequential(Gain(2.0))
    chain = fx.FilterChain(Gain(1.0), (inner | Gain(1.0)) + Gain(0.0))
    assert torch.equal((wave | chain).ys, wave.ys * 2)
    inner.append(Gain(2.0))
    assert torch.equal((wave | chain).ys, wave.ys * 4)
    inner[0].gain = 3.0
    assert torch.equal((wave | chain).ys, wave.ys * 6)


def test_hooks_added_later_are_heard(wave):
    heard = []
    chain = Gain(2.0) | nn.Sequential(Gain(3.0)) | Gain(1.0)
    _ = wave | chain
    assert remembered(chain)
    chain[0].register_forward_hook(lambda module, args, y: heard.append("gain"))
    chain[1].register_forward_hook(lambda module, args, y: heard.append("sequential"))
    chain.register_forward_pre_hook(lambda module, args: heard.append("chain"))
    assert torch.equal((wave | chain).ys, wave.ys * 6)
    assert heard == ["chain", "gain", "sequential"]


def test_a_shallow_copy_has_its_own_plan(wave):
    module = LoButterworth(1000)
    twin = copy.copy(module)
    twin.cutoff = 50
    assert torch.equal((wave | module).ys, (wave | LoButterworth(1000)).ys)
    assert torch.equal((wave | twin).ys, (wave | LoButterworth(50)).ys)
    assert torch.equal((wave | module).ys, (wave | LoButterworth(1000)).ys)


def test_parametrized_parameters_are_followed(wave):
    """A cutoff learned as its logarithm, by PyTorch's own means."""

    class Exp(nn.Module):
        def forward(self, log):
            return log.exp()

        def right_inverse(self, value):
            return value.log()

    module = LoButterworth(nn.Parameter(torch.tensor(1000.0)), fs=FS)
    parametrize.register_parametrization(module, "cutoff", Exp())
    y = (wave | (module | Gain(1.0))).ys
    assert torch.allclose(y, (wave | LoButterworth(1000.0)).ys, atol=1e-5)
    y.square().sum().backward()
    assert float(module.parametrizations.cutoff.original.grad) != 0


@pytest.fixture
def lowerings(monkeypatch):
    """The modules that plans were made for."""
    from torchfx.plan import cache

    seen, lower = [], cache.lower
    monkeypatch.setattr(cache, "lower", lambda module, *given: seen.append(module) or lower(module, *given))
    return seen


ROOTS = {
    "filter": lambda part: part,
    "chain": lambda part: Gain(1.0) | part | Gain(2.0),
    "sequential": lambda part: nn.Sequential(Gain(1.0), nn.Sequential(part)),
    "sum": lambda part: Gain(1.0) + (part | Gain(2.0)),
    "mix": lambda part: fx.effect.Mix(part),
    "behind a hook": lambda part: fx.FilterChain(Gain(1.0), hooked(fx.FilterChain(part))),
    "beside memory": lambda part: part | fx.effect.Gain(1.0, clamp=True) | nn.Tanh(),
}


def hooked(module):
    module.register_forward_hook(lambda module, args, y: y)
    return module


@pytest.mark.parametrize("name", ROOTS)
def test_a_plan_lapses_with_its_own_parts_alone(lowerings, wave, name):
    part, other = LoButterworth(1000, fs=FS), LoButterworth(1000, fs=FS)
    root, stranger = ROOTS[name](part), other | Gain(1.0)
    _ = plan_of(root, FS), wave | stranger
    lowerings.clear()
    other.cutoff = 500
    other.register_forward_hook(lambda module, args, y: y)
    stranger.append(Gain(1.0))
    stranger._modules["0"] = Gain(1.0)
    stranger.double().eval()
    copy.copy(part), copy.deepcopy(root)
    Gain(1.0) | LoButterworth(300)
    assert plan_of(root, FS) is plan_of(root, FS)
    assert lowerings == []
    part.cutoff = 500
    assert plan_of(root, FS) is plan_of(root, FS)
    assert lowerings.count(root) == 1


OWN_CHANGES = {
    "a parameter": lambda root: setattr(root[0], "cutoff", 500),
    "another attribute": lambda root: setattr(root[0], "anything", 1),
    "a hook": lambda root: hooked(root[0]),
    "a child": lambda root: root.append(Gain(1.0)),
    "_modules written into": lambda root: root._modules.update({"1": Gain(3.0)}),
    "_modules or-ed": lambda root: root._modules.__ior__({"1": Gain(3.0)}),
    "_modules set by default": lambda root: root._modules.setdefault("2", Gain(3.0)),
    "_modules replaced": lambda root: setattr(root, "_modules", {"0": root[0]}),
    "a part's part": lambda root: setattr(root[1].branches()[0][0], "gain", 0.5),
    "a part's state": lambda root: root[0].__setstate__(vars(LoButterworth(300, fs=FS))),
    "all attributes": lambda root: setattr(root[0], "__dict__", vars(LoButterworth(300, fs=FS))),
    "parametrization": lambda root: fx.learn(root[0], "cutoff"),
    "type": lambda root: root.half(),
}


@pytest.mark.parametrize("name", OWN_CHANGES)
def test_it_lapses_whatever_happened_to_them(lowerings, wave, name):
    root = fx.FilterChain(LoButterworth(1000, fs=FS), fx.FilterChain(hooked(Gain(1.0))) + Gain(1.0))
    before = plan_of(root, FS)
    OWN_CHANGES[name](root)
    assert plan_of(root, FS) is not before


def test_a_processor_that_asks_others_is_planned_anew_after_each_change(wave):
    """The plan of a stream keeps its latency."""

    class Rack(Processor):
        """Asks a processor that is no child of it."""

        def __init__(self, unit):
            super().__init__()
            self.units = {"first": unit}

        def latency_samples(self, rate):
            return round(self.units["first"].factor)

        def step(self, x, state, rate):
            return x, ()

    unit = Scale(3.0)
    chain = Rack(unit) | Gain(1.0)
    assert plan_of(chain, FS).latency == 3
    unit.factor = 5.0
    assert plan_of(chain, FS).latency == 5


def test_streams_do_not_hear_of_each_other(lowerings, wave):
    chains = [LoButterworth(1000) | fx.effect.Compressor() | Gain(0.5) for _ in range(2)]
    streams = [fx.realtime.Stream(chain, FS, 2) for chain in chains]
    for stream in streams:
        stream.process(wave.ys)
    lowerings.clear()
    for i in range(10):
        chains[0][0].cutoff = 500 + i
        for stream in streams:
            stream.process(wave.ys)
    assert set(lowerings) == {chains[0]}
    assert len(lowerings) <= 10


def test_augmentation_lapses_no_plan(lowerings, wave):
    chain = LoButterworth(1000) | Gain(0.5)
    augmentation = fx.augment.Random(LoButterworth, cutoff=fx.augment.uniform(500, 5000), fs=FS)
    _ = wave | chain
    lowerings.clear()
    for _ in range(5):
        augmentation(torch.zeros(3, 2, 100))
        _ = wave | chain
    assert chain not in lowerings


def test_plans_are_forgotten_with_their_modules(wave):
    modules = [LoButterworth(80), Gain(2, clamp=True), Gain(1) | nn.Tanh(), nn.Sequential(FIR([1.0]))]
    for module in modules:
        _ = wave | module
    references = [weakref.ref(module) for module in modules]
    del module, modules
    gc.collect()
    assert [reference() for reference in references] == [None] * 4


# --- the programs of processors with memory, which plans keep ---------------------------------------------------


def by_step(effect, x):
    """Return what a processor without latency makes of a signal, by its `step`."""
    return effect.step(x, effect.init_state(tuple(x.shape[:-1]), FS, x.dtype, x.device), FS)[0]


@pytest.mark.parametrize("named", [False, True])
def test_a_kept_program_hears_of_an_assigned_parameter(wave, named):
    compressor = Compressor(-40.0, fs=FS)
    module = fx.FilterChain(compressor, Gain(1.0)) if named else compressor
    before = module(wave.ys)
    compressor.threshold_db = -10.0
    assert not torch.equal(module(wave.ys), before)
    torch.testing.assert_close(module(wave.ys), by_step(compressor, wave.ys))


def test_a_kept_program_hears_of_a_tensor_changed_in_place(wave):
    compressor = Compressor(torch.tensor([-40.0, -40.0]), link=False, fs=FS)
    compressor(wave.ys)
    compressor.threshold_db[1] = -10.0
    torch.testing.assert_close(compressor(wave.ys), by_step(compressor, wave.ys))


def test_a_kept_program_hears_of_a_changed_side_chain(wave):
    compressor = Compressor(-40.0, sidechain=LoButterworth(100), fs=FS)
    compressor(wave.ys)
    compressor.sidechain.cutoff = 10_000
    torch.testing.assert_close(compressor(wave.ys), by_step(compressor, wave.ys))


def test_a_kept_program_serves_its_shape_and_type_alone(wave):
    compressor = Compressor(-40.0, fs=FS)
    for x in (wave.ys, wave.ys[:1], wave.ys.float(), wave.ys[:, ::2], wave.ys[:, :7], wave.ys.expand(3, 2, -1)):
        torch.testing.assert_close(compressor(x), by_step(compressor, x))


def test_calls_in_many_threads_do_not_share_states(wave):
    limiter = Limiter(-12.0, fs=FS)
    signals = [wave.ys * (i + 1) for i in range(8)]
    expected = [Limiter(-12.0, fs=FS)(x) for x in signals]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(limiter, signals * 20))
    assert all(torch.equal(y, expected[i % 8]) for i, y in enumerate(found))


def test_a_processor_with_memory_is_forgotten(wave):
    compressor = Compressor(-40.0, fs=FS)
    compressor(wave.ys)
    gone = weakref.ref(compressor)
    del compressor
    gc.collect()
    assert gone() is None


def test_the_rate_of_a_chain_is_that_of_its_filters(wave):
    chain = LoButterworth(1000) | Gain(2.0) | LoButterworth(3000)
    assert chain.fs is None
    chain.fs = FS
    assert (chain.fs, chain[0].fs, chain[2].fs) == (FS, FS, FS)
    assert torch.equal(chain(wave.ys), (wave | chain).ys)
    with pytest.raises(ArgumentError, match=r"^LoButterworth: cutoff must lie in .* \(0, 2000\) Hz, got 3000"):
        chain.fs = 4000
    assert (chain[0].fs, chain[2].fs) == (FS, FS)
    with pytest.raises(ArgumentError, match="FilterChain has no part that depends on a sample rate"):
        (Gain(1.0) | Gain(2.0)).fs = FS
    with pytest.raises(SampleRateError):
        chain.fs = -1


def test_attributes_that_are_no_parameters_are_not_taken_for_them():
    module = LoButterworth(1000)
    with pytest.raises(ArgumentError, match="LoButterworth has no parameter 'cutof'; did you mean 'cutoff'"):
        module.cutof = 500
    with pytest.raises(ArgumentError, match="Gain does not depend on a sample rate, got fs=48000"):
        Gain(1.0).fs = FS
    module.tag = "anything else may be attached"


def test_errors_in_chains_name_the_module(wave):
    with pytest.raises(ArgumentError, match=r"^LoButterworth \(2nd of 3\): cutoff must lie in .* got 30000$"):
        wave | (Gain(1.0) | LoButterworth(30_000) | nn.Tanh())
    with pytest.raises(SampleRateError, match=r"^LoButterworth \(1st of 2\): LoButterworth was built for fs=44100 Hz"):
        wave | (LoButterworth(300, fs=44_100) | nn.Tanh())
    with pytest.raises(ArgumentError, match=r"^cutoff must lie in"):
        wave | LoButterworth(30_000)
    with pytest.raises(ArgumentError, match=r"^Normalize \(2nd of 3\): x must be finite"):
        (Gain(1.0) | Normalize() | Gain(1.0))(wave.ys * math.inf)
    with pytest.raises(ArgumentError, match=r"^Tremolo \(2nd of 2\): leading dimensions must broadcast .* of depth"):
        wave | (Gain(1.0) | Tremolo(depth=torch.full((5,), 0.5), fs=FS))


def test_what_a_class_lacks_is_said_when_it_is_built():
    with pytest.raises(ArgumentTypeError, match=r"Filter is abstract: a subclass must define lti\(rate\), step"):
        fx.filter.Filter()
    with pytest.raises(ArgumentTypeError, match="RecursiveFilter is abstract: a subclass must define design"):
        fx.filter.RecursiveFilter(fs=1000)
    with pytest.raises(ArgumentTypeError, match="Both defines both forward and lti: define only one"):
        type("Both", (Processor,), {"forward": lambda self, x: x, "lti": lambda self, rate: LTI()})


def test_a_device_pytorch_has_not_here_is_named(wave):
    if torch.cuda.is_available():
        pytest.skip("this machine has one")
    for move in (
        lambda: wave.to("cuda"),
        lambda: LoButterworth(1000).to("cuda"),
        lambda: LoButterworth(1000).move_coeff("cuda"),
        lambda: fx.Wave(wave.ys, FS, device="cuda"),
    ):
        with pytest.raises(ArgumentError, match="device must be one that PyTorch has here"):
            move()


@pytest.mark.parametrize("join", [operator.or_, operator.add])
def test_joining_many_modules_one_by_one_takes_time_in_proportion(join):
    def calls(count):
        seen = 0

        def count_call(frame, event, argument):
            nonlocal seen
            seen += event == "call"

        modules = [Gain(1.0) for _ in range(count)]
        sys.setprofile(count_call)
        try:
            functools.reduce(join, modules)
        finally:
            sys.setprofile(None)
        return seen

    assert calls(400) < 4.2 * calls(100)
