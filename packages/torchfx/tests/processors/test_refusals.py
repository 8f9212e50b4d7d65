"""Whoever cannot run in a stream gives the reason."""

from contextlib import suppress

import pytest
import torch
from torch import nn

import torchfx as fx
from torchfx import augment
from torchfx.augment.augmentation import Augmentation
from torchfx.catalogue import available, features
from torchfx.errors import ArgumentError, StreamError
from torchfx.parameters import Choice
from torchfx.plan import NEEDS_WHOLE

from .cases import FS, drawn

ENTRIES = {**available(), **features()}


def refusal(module):
    """Return why a stream does not take a module, without the name in front; "" if it does."""
    try:
        fx.Stream(module, FS, 2)
    except StreamError as error:
        return str(error).partition(" (1st of 1) ")[2]
    return ""


@pytest.mark.filterwarnings("ignore:mel band")
@pytest.mark.parametrize("name", ENTRIES)
@pytest.mark.parametrize("seed", range(3))
def test_a_reason_is_given(name, seed):
    module = drawn(ENTRIES[name], seed)
    why = refusal(module)
    assert bool(why) == (module.kind in {"whole", "measured"} or bool(module.refusal()))
    assert not why or len(why.split()) > len(NEEDS_WHOLE.split()), why


def with_each_choice(entry):
    """Yield the processor with each name of each of its choices; some do not fit its other parameters."""
    yield drawn(entry, 0)
    for declaration in entry.declarations:
        for chosen in declaration.names if isinstance(declaration, Choice) else ():
            with suppress(ArgumentError):
                module = drawn(entry, 0)
                setattr(module, declaration.name, chosen)
                yield module


@pytest.mark.filterwarnings("ignore:mel band")
@pytest.mark.parametrize("name", [name for name, entry in ENTRIES.items() if entry.load().takes == "samples"])
def test_a_stream_that_opens_takes_blocks(name):
    for module in with_each_choice(ENTRIES[name]):
        if not refusal(module):
            stream = fx.Stream(module, FS, 2)
            for _ in range(2):
                stream.process(torch.zeros(2, 10))


@pytest.mark.parametrize("name", [name for name in augment.__all__ if isinstance(getattr(augment, name), type)])
def test_augmentations_say_that_they_take_examples(name):
    cls = getattr(augment, name)
    if not issubclass(cls, Augmentation):
        pytest.skip("no augmentation")
    assert cls.refusal(None).startswith("draws random values for whole examples")
    assert refusal(augment.AddNoise(20.0)) == augment.AddNoise(20.0).refusal()


def test_a_class_of_one_s_own_is_refused_in_general_words():
    class Turned(fx.Processor):
        """Signals backwards."""

        def forward(self, x):
            return x.flip(-1)

    class Gated(fx.filter.LoButterworth):
        """A filter whose forward is another one."""

        def forward(self, x):
            return super().forward(x) * (x.abs().amax() > 1)

    for module in (Turned(), Gated(1000)):
        assert refusal(module) == NEEDS_WHOLE
        with pytest.raises(StreamError, match=NEEDS_WHOLE):
            module.init_state((2,), FS)
    assert "wrap it in torchfx.Memoryless" in refusal(nn.Conv1d(2, 2, 3))
