"""Modules from text, as the command line takes them."""

import inspect
import re
import sys
from pathlib import Path

import pytest
import torch

import torchfx as fx
from torchfx import Processor, spec
from torchfx.catalogue import available, named
from torchfx.errors import ArgumentError


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("hibutterworth:cutoff=80,order=4", "HiButterworth(cutoff=80, order=4)"),
        ("HiButterworth:80", "HiButterworth(cutoff=80, order=2)"),
        (
            " lochebyshev1 : 12kHz , 5 , ripple=0.1 , fs=48000",
            "LoChebyshev1(cutoff=12000, order=5, ripple=0.1, fs=48000)",
        ),
        ("lobutterworth:3.4 kHz,fs=none", "LoButterworth(cutoff=3400, order=2)"),
        ("gain:-3dB", "Gain(-3 dB)"),
        ("gain:0.5,clamp=yes", "Gain(0.5, clamp=True)"),
        ("gain:-3,db", "Gain(-3 dB)"),
        ("normalize", "Normalize(peak=1)"),
        ("normalize:peak=.9", "Normalize(peak=0.9)"),
        ("fir:[0.5, 0.25,-1e-3]", "FIR(3 taps)"),
        (
            "designablefir:[300,3400],101,window=hann,pass_zero=false",
            "DesignableFIR(cutoff=[300, 3400], num_taps=101, window='hann', pass_zero=False)",
        ),
    ],
)
def test_text_becomes_a_module(text, shown):
    assert str(spec.build(text)) == shown


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hibuterworth:80", "there is no filter or effect 'hibuterworth'; did you mean 'hibutterworth'\\?$"),
        ("xyzzy", "there is no filter or effect 'xyzzy'; see torchfx effects$"),
        ("compressor:threshold=-20", r"has no parameter 'threshold'; it is .*; did you mean 'threshold_db'\?$"),
        ("channelmatrix:[[1,0],[0,1]", "brackets must come in pairs"),
        ("channelmatrix:[1,0]],[[0,1]", "brackets must come in pairs"),
        ("channelmatrix:[[1,0],[[0,1]]]", "matrix must be a list such as"),
        ("filter", "there is no filter or effect 'filter'"),
        (
            "hibutterworth:cutof=80",
            "HiButterworth has no parameter 'cutof'; it is hibutterworth:cutoff,order=2,fs=None",
        ),
        ("hibutterworth", "missing a required argument: 'cutoff'"),
        ("hibutterworth:80,4,48000,1", "takes at most 3 parameters"),
        ("hibutterworth:80,cutoff=90", "cutoff is given twice"),
        ("hibutterworth:eighty", "cutoff must be a number in Hz or kHz, got 'eighty'"),
        ("hibutterworth:80dB", "cutoff must be a number in Hz or kHz, got '80dB'"),
        ("hibutterworth:80,order=2.5", "order must be a whole number, got '2.5'"),
        ("gain:1,clamp=maybe", "clamp must be true or false, got 'maybe'"),
        ("gain:1,volts", "gain_type must be one of amplitude, db, power, got 'volts'"),
        ("designablefir:[300,x],101", "cutoff must be a number in Hz or kHz, got 'x'"),
        ("designablefir:[300,101", r"brackets must come in pairs, got '\[300,101'"),
        (
            "hibutterworth:80,99999999999999999999",
            r"order must be a whole number in \[1, 1000\], got 99999999999999999999",
        ),
        ("hibutterworth:-80", r"cutoff must lie in \(0, fs/2\) Hz, got -80"),
    ],
)
def test_bad_text_raises(text, message):
    with pytest.raises(ArgumentError, match=message):
        spec.build(text)


@pytest.mark.parametrize(
    ("nested", "flat"),
    [
        ("channelmatrix:[[1, 0], [0.5,-1e-1]]", "channelmatrix:[1,0;0.5,-0.1]"),
        ("channelmatrix:[[0.5,0.5]]", "channelmatrix:[0.5,0.5]"),
        ("sos:[[1,0,0,1,-.5,0],[1,1,0,1,0,0]]", "sos:[1,0,0,1,-.5,0,1,1,0,1,0,0]"),
    ],
)
def test_lists_stand_in_lists(nested, flat):
    x = torch.randn(2, 50, generator=torch.Generator().manual_seed(0))
    assert torch.equal(spec.build(nested)(x), spec.build(flat)(x))


@pytest.mark.parametrize("name", available())
def test_the_example_of_every_processor_runs(name):
    text = spec.example_text(available()[name])
    with fx.sample_rate(48_000):
        y = spec.build(text)(torch.randn(2, 4800, generator=torch.Generator().manual_seed(0)) / 10)
    assert torch.isfinite(y).all()


@pytest.mark.parametrize("name", available())
def test_the_example_of_every_processor_changes_the_signal(name):
    x = torch.nn.functional.pad(torch.randn(2, 4800, generator=torch.Generator().manual_seed(0)) / 2, (0, 4800))
    with fx.sample_rate(44_100):
        y = spec.build(spec.example_text(available()[name]))(x)
    assert y.shape != x.shape or not torch.allclose(y, x, atol=1e-6)


def test_every_effect_that_ships_processes_files_of_any_length():
    assert [name for name, entry in available().items() if entry.needs_memory] == []


def test_everything_public_is_available():
    public = {getattr(module, name) for module in (fx.filter, fx.effect) for name in module.__all__}
    abstract = {cls for cls in public if cls.missing}
    containers = {cls for cls in public if issubclass(cls, fx.Parallel)}  # they take modules, not text
    assert {entry.load() for entry in available().values()} == public - abstract - containers
    assert all(issubclass(cls, Processor) for cls in public)


def test_what_is_read_from_source_is_what_the_classes_say():
    for entry in available().values():
        cls = entry.load()
        assert entry.signature() == inspect.signature(cls)
        assert entry.summary == inspect.getdoc(cls).splitlines()[0]
        assert entry.family == inspect.getdoc(sys.modules[cls.__module__]).splitlines()[0]
        assert entry.needs_memory == (cls.kind == "whole" and cls.in_pieces is None)
        assert [type(each) for each in entry.declarations] == [type(each) for each in cls.declarations.values()]


def test_an_entry_may_be_asked_for_by_itself():
    for name, entry in available().items():
        one = named(name)
        assert (one.name, one.module, one.summary) == (entry.name, entry.module, entry.summary)
        assert one.signature() == entry.signature()
    assert named("filterchain") is named("nothing") is None


@pytest.mark.parametrize("other", ["pedalboard", "torchfx-0.8"])
def test_the_names_that_documents_promise_exist(other):
    document = (Path(__file__).parents[1] / "docs" / f"from-{other}.md").read_text()
    named = re.findall(r"`(effect|filter|realtime)\.(\w+)`", document)
    assert len(named) > 20
    assert not [name for module, name in named if name not in getattr(fx, module).__all__]
