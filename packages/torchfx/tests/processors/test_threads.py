"""Threads that call processors while others assign parameters: each sees values that held together, and no gap."""

import copy
import os
import sys
import threading
import time
from contextlib import contextmanager, suppress

import pytest
import torch
from tests.processors import cases
from tests.processors.cases import FS, drawn, noise
from torch import nn

import torchfx as fx
from torchfx.effect import Gain, Mix
from torchfx.errors import ArgumentError
from torchfx.filter import HiButterworth, LoButterworth

MANY = os.environ.get("TORCHFX_CASES") == "many"
CALLERS, ASSIGNERS = (8, 4) if MANY else (3, 2)
SECONDS = 60 / len(cases.tested()) if MANY else 0.04
SETTINGS = 4


@pytest.fixture(autouse=True)
def many_switches():
    """Let Python change from thread to thread as often as it can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@contextmanager
def repeated(*works):
    """Run works again and again, each in a thread; the first error of any is raised in the end."""
    errors, stop = [], threading.Event()

    def loop(work):
        try:
            while not stop.is_set():
                work()
        except BaseException as error:  # noqa: BLE001 - raised below, in the test's own thread
            errors.append(error)
            stop.set()

    threads = [threading.Thread(target=loop, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    try:
        yield stop.wait
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    if errors:
        raise errors[0]


def in_turn(values):
    """Return a function that returns one value after the other, for ever."""
    position = 0

    def following():
        nonlocal position
        position += 1
        return values[position % len(values)]

    return following


def works(module, x):
    """Say whether a module runs at its settings, without threads."""
    try:
        module(x)
    except ArgumentError:
        return False
    return True


def settings(entry, x):
    """Return values of each parameter that a processor can be set to: numbers, tensors, what is learned."""
    found = {}
    modules = [module for seed in range(SETTINGS) if works(module := drawn(entry, seed), x)]
    for name, declaration in modules[0].declarations.items():
        values = [getattr(module, name) for module in modules]
        if declaration.number is not None and declaration.number.learnable and isinstance(values[0], float):
            values += [torch.tensor([values[0]]), nn.Parameter(torch.tensor(values[0]))]
        fitting = []
        for value in values:
            module = drawn(entry, 0)
            try:
                setattr(module, name, value)
            except ArgumentError:
                continue
            if works(module, x):
                fitting.append(getattr(module, name))
        if len({id(value) for value in fitting}) > 1:
            found[name] = fitting
    return modules[0], found


def is_among(value, values):
    return any(
        torch.equal(value, each) if isinstance(each, torch.Tensor) else value == each
        for each in values
        if type(each) is type(value)
    )


@pytest.mark.parametrize("name", cases.tested())
def test_calls_see_old_values_or_new_ones(name):
    x = noise(2, 64) / 4
    module, values = settings(cases.tested()[name], x)
    following = in_turn(
        [(key, value) for i in range(SETTINGS + 2) for key in values for value in values[key][i : i + 1]]
    )

    def call():
        module(x)
        for key, known in values.items():
            assert is_among(getattr(module, key), known)

    def assign():
        with suppress(ArgumentError):  # where it does not fit what was assigned before
            setattr(module, *following())

    if values:
        with repeated(*[call] * CALLERS, *[assign] * ASSIGNERS) as wait:
            wait(SECONDS)


def exchanged_parts():
    chain = fx.FilterChain(LoButterworth(200, fs=FS), Gain(1.0))
    return (
        chain,
        lambda part: chain.__setitem__(0, part),
        (LoButterworth(200, fs=FS), HiButterworth(2000, fs=FS) | Gain(0.5)),
    )


def kinds_of_value():
    module = Gain(0.5)
    return module, lambda gain: setattr(module, "gain", gain), (0.5, nn.Parameter(torch.tensor(0.25)), "-20dB")


def undeclared_tensor():
    class Scale(fx.Processor):
        """Multiplies by what is declared nowhere."""

        def __init__(self):
            super().__init__()
            self.factor = torch.tensor(0.5)

        def lti(self, rate):
            return fx.LTI(gain=self.factor)

    module = Scale()
    return module, lambda factor: setattr(module, "factor", factor), (torch.tensor(0.5), torch.tensor(0.25))


def shared_rate():
    chain = LoButterworth(4000, fs=FS) | (Gain(1.0) + (HiButterworth(200, fs=FS) | Gain(0.5)))
    return chain, lambda fs: setattr(chain, "fs", fs), (FS, 2 * FS)


def two_gains():
    module = Mix(fx.effect.Delay("7 samples", fs=FS), mix=0.1)
    return module, lambda mix: setattr(module, "mix", mix), (0.1, 0.9)


def refused_values():
    module = LoButterworth(4000, fs=FS)

    def assign(cutoff):
        for name, value in (("cutoff", 30_000.0), ("fs", 2000.0), ("cutoff", (100.0, 200.0))):
            with pytest.raises(ArgumentError):
                setattr(module, name, value)
        module.cutoff = cutoff

    return module, assign, (4000, 1000)


def learned_or_not():
    module = LoButterworth(4000.0, fs=FS)

    def assign(cutoff):
        fx.learn(module, "cutoff")
        with module._replaced() as twin:
            nn.utils.parametrize.remove_parametrizations(twin, "cutoff")
        module.cutoff = cutoff

    return module, assign, (4000, 1000)


STORIES = [
    exchanged_parts, kinds_of_value, undeclared_tensor, shared_rate, two_gains, refused_values, learned_or_not,
]  # fmt: skip


@pytest.mark.parametrize("story", STORIES)
def test_results_are_those_of_assigned_settings(story):
    x = noise(2, 300, dtype=torch.float64)
    module, assign, values = story()
    expected = []
    for value in values:
        assign(value)
        expected.append(module(x).detach())
    following = in_turn(values)

    def call():
        y = module(x)
        assert min(float((y - each).detach().abs().max()) for each in expected) < 1e-5

    with repeated(*[call] * CALLERS, lambda: assign(following())) as wait:
        wait(4 * SECONDS)


@pytest.mark.parametrize("story", STORIES)
def test_a_module_can_be_listed_shown_and_copied_meanwhile(story):
    module, assign, values = story()
    following = in_turn(values)

    def list_all():
        module.state_dict()
        repr(module)
        assert next(iter(module.modules())) is module
        list(module.parameters())
        list(module.buffers())
        if story is not learned_or_not:  # PyTorch asks for class and state of these one after the other
            copy.deepcopy(module)
            copy.copy(module)

    with repeated(*[list_all] * CALLERS, lambda: assign(following())) as wait:
        wait(4 * SECONDS)


def test_a_chain_that_is_converted_gives_the_same():
    chain = LoButterworth(1000) | Gain(torch.tensor([0.5, 0.25]))
    x = noise(2, 300)
    y = (fx.Wave(x, FS) | chain).ys

    def call():
        assert torch.allclose((fx.Wave(x, FS) | chain).ys, y)

    with repeated(*[call] * CALLERS, chain.double, chain.float, chain.half, chain.train) as wait:
        wait(4 * SECONDS)


def test_children_come_and_go_while_others_call():
    chain = fx.FilterChain(Gain(1.0), Gain(1.0))
    x = noise(2, 300)

    def change():
        chain.append(Gain(1.0))
        chain.insert(1, Gain(1.0))
        chain.pop(1)
        del chain[-1]

    def call():
        assert torch.equal(chain(x), x)
        repr(chain)

    with repeated(*[call] * CALLERS, change) as wait:
        wait(4 * SECONDS)


def test_who_is_slow_to_check_a_value_holds_nobody_up():
    checking, go_on = threading.Event(), threading.Event()

    class Slow(Gain):
        def check_parameters(self):
            if self.gain == 0.25:
                checking.set()
                assert go_on.wait(60)

    module, other = Slow(0.5), Gain(1.0)
    thread = threading.Thread(target=lambda: setattr(module, "gain", 0.25))
    thread.start()
    assert checking.wait(60)
    other.gain = 0.5
    module.clamp = True
    assert (module.gain, module.clamp, float(module(torch.ones(1)))) == (0.5, True, 0.5)
    go_on.set()
    thread.join()
    assert (module.gain, module.clamp) == (0.25, True)


def test_a_fork_can_assign():
    """A child of a process does not inherit a lock that nobody gives back."""
    if not hasattr(os, "fork"):
        pytest.skip("there is no fork here")
    module = Gain(0.5)
    with repeated(*[lambda: setattr(module, "gain", time.monotonic() % 1)] * 2):
        for _ in range(5):
            child = os.fork()
            if child == 0:
                module.gain = 0.75
                os._exit(0 if module.gain == 0.75 else 1)
            assert os.waitpid(child, 0)[1] == 0
