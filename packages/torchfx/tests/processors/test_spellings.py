"""Spellings that every processor takes, found by discovery: units in texts, `fs=`, SciPy's names of bands."""

from random import Random

import pytest
from tests.processors.cases import FS

import torchfx as fx
from torchfx.catalogue import available
from torchfx.checks import UNIT_FACTORS
from torchfx.effect import Delay, Gain
from torchfx.errors import ArgumentError
from torchfx.parameters import BAND_SYNONYMS, Amplitude, Duration, SampleRate
from torchfx.spec import build

DECLARED = {
    f"{entry.name}.{each.name}": (entry, each)
    for entry in available().values()
    for each in entry.declarations
    if each.has_unit and not isinstance(each, (SampleRate, Duration, Amplitude))
}


def settings(entry):
    """Return values of all parameters with which a processor can be built."""
    random = Random(entry.name)
    while True:
        values = {each.name: each.draw(random, FS) for each in entry.declarations}
        values |= {"fs": FS} if "fs" in values else {}
        try:
            entry.load()(**values)
        except ArgumentError:
            continue
        return values


@pytest.mark.parametrize("name", DECLARED)
def test_numbers_with_a_unit_are_read_from_texts(name):
    entry, declared = DECLARED[name]
    values = settings(entry)
    unit = declared.number.unit
    given = values[declared.name]
    if given is None:  # it needs other values of other parameters
        low = declared.number.drawn_range(FS)[0]
        assert declared.check(f"{low!r}{unit}", FS) == pytest.approx(low, rel=1e-12)
        return
    for carried, factor in UNIT_FACTORS.get(unit, {unit: 1.0}).items():
        if isinstance(given, (list, tuple)):
            text = [f"{each / factor!r} {carried}" for each in given]
            shown = f"[{', '.join(text)}]"
        else:
            text = shown = f"{given / factor!r}{carried}"
        plain = getattr(entry.load()(**{**values, declared.name: given}), declared.name)
        from_text = entry.load()(**{**values, declared.name: text})
        assert getattr(from_text, declared.name) == pytest.approx(plain, rel=1e-12)
        assert declared.parse(shown) == pytest.approx(given, rel=1e-12)  # as the command line does
    with pytest.raises(ArgumentError, match=rf"{declared.name} must be a number in .*, got '5 parsec'"):
        entry.load()(**{**values, declared.name: "5 parsec"})


def test_many_parameters_have_a_unit():
    assert len(DECLARED) > 100
    assert {each.number.unit for _, each in DECLARED.values()} >= {"Hz", "ms", "s", "dB", "%", "LUFS"}


@pytest.mark.parametrize("name", available())
def test_every_processor_takes_a_sample_rate(name):
    entry = available()[name]
    values = {**settings(entry), "fs": FS}
    made = entry.load()(**values)
    depends = any(each.name == "fs" for each in entry.declarations)
    assert made.fs == (FS if depends else None)
    assert entry.load()(**{**values, "fs": "48kHz"}).fs == made.fs
    with pytest.raises(ArgumentError, match="fs must"):
        entry.load()(**{**values, "fs": -1})


def test_the_command_line_takes_a_sample_rate_too():
    assert str(build("pitchshift:2,fs=48kHz")) == str(build("pitchshift:2"))


BANDS = [
    (entry, each, name)
    for entry in available().values()
    for each in entry.declarations
    for name in getattr(each, "names", ())
    if name in BAND_SYNONYMS and hasattr(each, "names")
]


@pytest.mark.parametrize(("entry", "declared", "name"), BANDS, ids=lambda each: getattr(each, "name", each))
def test_bands_have_scipys_names(entry, declared, name):
    for synonym in BAND_SYNONYMS[name]:
        assert declared.check(synonym, None) == declared.check(synonym.upper(), None) == name


def test_a_band_by_another_name_is_the_same_filter():
    short, long = (fx.filter.Butterworth(1000, btype=name, fs=FS) for name in ("high", "highpass"))
    assert str(short) == str(long)
    assert (short.sos == long.sos).all()
    with pytest.raises(ArgumentError, match="btype must be one of lowpass, highpass, bandpass, bandstop, got 'wide'"):
        fx.filter.Butterworth(1000, btype="wide")


def test_a_gain_in_decibels():
    assert Gain(gain_db=-3).factor == Gain("-3dB").factor == Gain(-3, "dB").factor
    assert str(Gain(gain_db="-3dB")) == "Gain(-3 dB)"
    with pytest.raises(ArgumentError, match=r"gain_db replaces gain and gain_type, got gain=0\.5 too"):
        Gain(0.5, gain_db=-3)
    gain = Gain(gain_db=-3)
    with pytest.raises(ArgumentError, match="gain_db replaces gain"):
        gain.gain = 0.5
    gain.gain_db = None
    gain.gain = 0.5
    assert gain.factor == 0.5


@pytest.mark.parametrize("make", [lambda: Delay(500), lambda: build("delay:500"), lambda: fx.effect.Pad(0, 500)])
def test_a_time_that_was_meant_in_milliseconds_warns(make):
    with pytest.warns(UserWarning, match=r"(time|after) is in seconds, got 500: for milliseconds write '500ms'"):
        make()


@pytest.mark.parametrize("time", [10, "500ms", "500s", "1:30", "100000 samples"])
def test_other_times_do_not(time):
    Delay(time)  # warnings are errors here


def test_parameters_without_effect_are_not_shown():
    assert str(Delay(0.5)) == "Delay(time=0.5 s, feedback=0, mix=1)"
    assert "bpm=90" in str(Delay("1/8", bpm=90))
    assert str(fx.filter.LoShelving(100, gain_db=6, slope=1)) == "LoShelving(cutoff=100, gain_db=6, slope=1)"
