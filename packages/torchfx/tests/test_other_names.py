"""Errors about unknown names suggest the name that is meant here."""

import copy
import importlib
import inspect
import pickle
import threading
from types import ModuleType

import pytest
import torch

import torchfx as fx
from torchfx import catalogue, other_names, spec
from torchfx.audio_io import messages
from torchfx.errors import ArgumentError, ArgumentTypeError, AudioFileError


def found_below_torchfx(path):
    importlib.import_module("torchfx.compat.torchaudio")
    importlib.import_module("torchfx.audio_io")
    value = fx
    for name in path.split("."):
        value = getattr(value, name)
    return value


@pytest.mark.parametrize("name", sorted(other_names.NAMES))
def test_what_is_suggested_exists(name):
    for path in other_names.NAMES[name]:
        assert found_below_torchfx(path) is not None
    assert other_names.plain(name) == name


def test_no_suggestion_hides_a_name_that_exists():
    for name in set(other_names.NAMES) & (set(catalogue.available()) | set(catalogue.features())):
        assert any(path.rpartition(".")[2].lower() == name for path in other_names.NAMES[name])


def test_every_suggested_argument_belongs_to_a_class():
    augmentations = (inspect.signature(getattr(fx.augment, name)).parameters for name in fx.augment.__all__)
    known = {name for parameters in augmentations for name in parameters}
    for entry in (*catalogue.available().values(), *catalogue.features().values()):
        known |= {each.name for each in entry.declarations}
    for cls in (fx.Wave, fx.Stream, fx.realtime.RealtimeConfig):
        known |= set(inspect.signature(cls).parameters)
    assert {each for group in other_names.PARAMETERS.values() for each in group} <= known
    assert all(other_names.plain(name) == name for name in (*other_names.PARAMETERS, *other_names.ATTRIBUTES))


@pytest.mark.parametrize(
    ("module", "name", "meant"),
    [
        (fx.filter, "HighPass", "torchfx.filter.HiButterworth"),
        (fx.filter, "HighpassFilter", "torchfx.filter.HiButterworth"),
        (fx.filter, "low_pass", "torchfx.filter.LoButterworth"),
        (fx.filter, "Butterwort", "'Butterworth'"),
        (fx.effect, "Resample", "torchfx.filter.Resample"),
        (fx.effect, "LoudnessNormalization", "torchfx.effect.Normalize"),
        (fx.functional, "highpass_biquad", "torchfx.filter.BiquadHPF"),
        (fx.functional, "amplitude_to_DB", "torchfx.spectral.AmplitudeToDB"),
        (fx.spectral, "LogMelSpectrogram", "torchfx.spectral.LogMel"),
        (fx.augment, "AddGaussianSNR", "torchfx.augment.AddNoise"),
        (fx.augment, "PitchShift", "torchfx.augment.Random(torchfx.effect.PitchShift, ...)"),
        (fx, "Gain", "torchfx.effect.Gain"),
        (fx, "Pedalboard", "torchfx.FilterChain"),
        (fx, "effects", "torchfx.effect"),
        (fx, "save", "torchfx.Wave.save"),
    ],
)
def test_an_unknown_name_says_where_it_is_found(module, name, meant):
    with pytest.raises(AttributeError) as error:
        getattr(module, name)
    assert meant in str(error.value)
    assert f"has no attribute {name!r}" in str(error.value)
    assert not hasattr(module, "__nothing__")


@pytest.mark.parametrize(
    ("text", "meant"),
    [("highpass:80", "'hibutterworth' or 'biquadhpf'"), ("loudnorm:-16", "'normalize'"), ("echo", "'delay'"),
     ("hum:50", "'notch' or 'comb'"), ("hibuterworth:80", "'hibutterworth'"), ("qqqqq", "see torchfx effects")],
)  # fmt: skip
def test_the_command_line_suggests_effects(text, meant):
    with pytest.raises(ArgumentError, match="there is no filter or effect") as error:
        spec.build(text)
    assert meant in str(error.value)


WRONG = {
    "cutoff": lambda: fx.filter.Notch(frequency=50),
    "q": lambda: fx.filter.Notch(50, Q=30),
    "order": lambda: fx.filter.HiButterworth(80, N=4),
    "fs": lambda: fx.spectral.MelSpectrogram(sample_rate=16_000),
    "threshold_db": lambda: fx.effect.Limiter(ceiling=-1),
    "attack_ms": lambda: fx.effect.Compressor(-20, attack=5),
    "semitones": lambda: fx.effect.PitchShift(n_steps=3),
    "time": lambda: fx.effect.Delay(delay_seconds=0.5),
    "lufs": lambda: fx.effect.Normalize(target_lufs=-16),
    "gain_db": lambda: fx.effect.Gain(db=-3),
    "snr_db": lambda: fx.augment.AddNoise(snr=5),
    "generator": lambda: fx.augment.Compose([], seed=0),
    "hop_length": lambda: fx.spectral.MelSpectrogram(hop=160),
    "fs of a wave": lambda: fx.Wave(torch.zeros(1, 10), sample_rate=48_000),
    "fs of a stream": lambda: fx.Stream(fx.effect.Invert(), sample_rate=48_000, channels=1),
    "block_size": lambda: fx.realtime.RealtimeConfig(blocksize=64),
    "sample_rate": lambda: fx.realtime.RealtimeConfig(fs=48_000),
}


@pytest.mark.parametrize("meant", WRONG)
def test_an_unknown_argument_says_which_one_is_meant(meant):
    with pytest.raises(ArgumentTypeError, match=f"did you mean '{meant.split()[0]}'"):
        WRONG[meant]()


def test_without_a_likely_one_all_arguments_are_named():
    with pytest.raises(ArgumentTypeError, match=r"'zzzz'; there are cutoff, q, fs$"):
        fx.filter.Notch(50, zzzz=1)


def test_attributes_of_other_libraries_say_what_to_write():
    wave = fx.Wave(torch.randn(2, 4000), 8000)
    for name in ("sr", "to_mono", "numpy", "normalize", "num_frames", "lufs"):
        with pytest.raises(AttributeError, match=f"'Wave' object has no attribute '{name}'; write ") as error:
            getattr(wave, name)
        answer = str(error.value).partition("; write ")[2]
        assert eval(answer, {"wave": wave, "torchfx": fx, "len": len}) is not None
    assert len(pickle.loads(pickle.dumps(copy.deepcopy(wave)))) == 4000


def test_a_chain_is_learned_part_by_part():
    chain = fx.filter.Peaking(500, fs=8000) | fx.filter.Peaking(900, fs=8000)
    for learn in (lambda: fx.learn(chain), lambda: fx.learn(chain, cutoff=(100, 1000))):
        with pytest.raises(ArgumentError, match=r"for part in chain: torchfx.learn\(part"):
            learn()


def test_torchaudios_interface_is_found_from_the_package():
    assert fx.compat.torchaudio.transforms.Resample(44_100, 16_000) is not None


def test_a_file_error_while_another_thread_imports_a_library_stays_one(monkeypatch):
    """Until an import ends, `sys.modules` holds a module without the names that it will have."""
    monkeypatch.setitem(messages.sys.modules, "mutagen", ModuleType("mutagen"))
    caught = []

    def read():
        try:
            with messages.file_errors("read", "talk.wav"):
                raise OSError("gone")
        except (AudioFileError, AttributeError) as error:
            caught.append(error)

    thread = threading.Thread(target=read)
    thread.start()
    thread.join()
    assert [type(error) for error in caught] == [AudioFileError]
