"""Names that other libraries use, and the names here: an error about an unknown name suggests the right one.

The keys are names of torchaudio, librosa, SciPy, pedalboard, audiomentations, SoX and FFmpeg, in lower case and without
underscores.
"""

from __future__ import annotations

import difflib
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from importlib.util import find_spec
from typing import Any, TypeVar

from torchfx.errors import ArgumentTypeError

__all__ = [
    "ATTRIBUTES",
    "NAMES",
    "PARAMETERS",
    "checks_names",
    "close_to",
    "hint",
    "lookup",
    "meant",
    "missing",
    "plain",
]

F = TypeVar("F", bound=Callable[..., Any])

NAMES: Mapping[str, tuple[str, ...]] = {
    "addbackgroundnoise": ("augment.BackgroundNoise", "effect.AddBackgroundNoise"),
    "addcolorednoise": ("augment.AddNoise", "effect.AddNoise"),
    "addcolornoise": ("augment.AddNoise", "effect.AddNoise"),
    "addgaussiannoise": ("augment.AddNoise", "effect.AddNoise"),
    "addgaussiansnr": ("augment.AddNoise", "effect.AddNoise"),
    "applyimpulseresponse": ("augment.Convolve", "filter.Convolution"),
    "bandpass": ("filter.Butterworth", "filter.BiquadBPF"),
    "bandpassbiquad": ("filter.BiquadBPF",),
    "bandreject": ("filter.Notch", "filter.Butterworth"),
    "bandrejectbiquad": ("filter.Notch",),
    "bandstop": ("filter.Notch", "filter.Butterworth"),
    "bass": ("filter.LoShelving",),
    "bassbiquad": ("filter.LoShelving",),
    "bell": ("filter.Peaking",),
    "butter": ("filter.Butterworth",),
    "bpf": ("filter.Butterworth", "filter.BiquadBPF"),
    "chain": ("FilterChain",),
    "cheby1": ("filter.Chebyshev1",),
    "cheby2": ("filter.Chebyshev2",),
    "clip": ("effect.HardClip", "effect.SoftClip"),
    "clipping": ("effect.HardClip", "effect.SoftClip"),
    "compose": ("FilterChain", "augment.Compose"),
    "convolve": ("filter.Convolution", "augment.Convolve"),
    "dehum": ("filter.Notch", "filter.Comb"),
    "denoise": ("effect.NoiseReduction",),
    "echo": ("effect.Delay",),
    "effects": ("effect",),
    "ellip": ("filter.Elliptic",),
    "eq": ("filter.ParametricEQ", "filter.Peaking"),
    "equalizer": ("filter.ParametricEQ", "filter.Peaking"),
    "equalizerbiquad": ("filter.Peaking",),
    "filters": ("filter",),
    "firwin": ("filter.DesignableFIR",),
    "gate": ("effect.NoiseGate",),
    "highpass": ("filter.HiButterworth", "filter.BiquadHPF"),
    "highpassbiquad": ("filter.BiquadHPF",),
    "highshelf": ("filter.HiShelving",),
    "hpf": ("filter.HiButterworth", "filter.BiquadHPF"),
    "hum": ("filter.Notch", "filter.Comb"),
    "info": ("audio_io.info",),
    "logmelspectrogram": ("spectral.LogMel", "spectral.MelSpectrogram"),
    "loudnorm": ("effect.Normalize",),
    "loudness": ("effect.Normalize", "loudness.integrated"),
    "loudnessnormalization": ("effect.Normalize",),
    "loudnessnormalize": ("effect.Normalize",),
    "lowpass": ("filter.LoButterworth", "filter.BiquadLPF"),
    "lowpassbiquad": ("filter.BiquadLPF",),
    "lowshelf": ("filter.LoShelving",),
    "lpf": ("filter.LoButterworth", "filter.BiquadLPF"),
    "lufs": ("loudness.integrated", "effect.Normalize"),
    "mp3compression": ("augment.Codec",),
    "mp3compressor": ("augment.Codec",),
    "noisereduce": ("effect.NoiseReduction",),
    "peak": ("filter.Peaking",),
    "pedalboard": ("FilterChain",),
    "polarityinversion": ("effect.Invert",),
    "pyloudnorm": ("loudness.integrated",),
    "read": ("load",),
    "roomsimulator": ("augment.Convolve", "effect.FDNReverb"),
    "saturation": ("effect.Distortion", "effect.SoftClip"),
    "save": ("Wave.save",),
    "savgol": ("filter.SavitzkyGolay",),
    "sequential": ("FilterChain",),
    "sevenbandparametriceq": ("filter.ParametricEQ",),
    "tempo": ("effect.TimeStretch",),
    "transforms": ("compat.torchaudio.transforms", "spectral", "effect"),
    "treble": ("filter.HiShelving",),
    "treblebiquad": ("filter.HiShelving",),
    "vol": ("effect.Gain",),
    "volume": ("effect.Gain",),
    "write": ("Wave.save",),
}
"""Classes, functions and modules, by their place below torchfx."""

_FREQUENCY = ("cutoff", "frequencies", "centre_frequency", "cutoffs")
PARAMETERS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(
        (
            "freq",
            "frequency",
            "frequencyhz",
            "freqs",
            "hz",
            "f0",
            "fc",
            "wn",
            "cutofffreq",
            "cutofffrequency",
            "cutofffrequencyhz",
            "cutoffhz",
            "centerfreq",
            "centralfreq",
            "centerfrequency",
            "centrefrequency",
        ),
        _FREQUENCY,
    ),
    **dict.fromkeys(("samplerate", "sr", "samplefrequency", "samplingrate", "fs"), ("fs", "sample_rate")),
    **dict.fromkeys(("newfreq", "targetrate", "targetsr", "targetsamplerate", "samplerateout"), ("rate",)),
    **dict.fromkeys(("ceiling", "ceilingdb", "threshold", "limit", "thresh"), ("threshold_db",)),
    **dict.fromkeys(("nsteps", "steps", "shift", "pitch"), ("semitones",)),
    **dict.fromkeys(("speed", "factor", "stretch", "tempo"), ("rate",)),
    **dict.fromkeys(("delay", "delayseconds", "delaytime", "delayms", "seconds"), ("time",)),
    **dict.fromkeys(("db", "gain", "volume", "level"), ("gain_db", "gain")),
    **dict.fromkeys(("wet", "wetlevel", "drywet", "wetdry", "amount"), ("mix", "wet_level")),
    **dict.fromkeys(("target", "targetlufs", "targetloudness", "loudness"), ("lufs",)),
    **dict.fromkeys(("snr", "minsnrdb", "maxsnrdb", "minsnrindb", "maxsnrindb"), ("snr_db",)),
    **dict.fromkeys(("seed", "randomstate", "rng"), ("generator",)),
    **dict.fromkeys(("hop", "hopsize", "frameshift"), ("hop_length",)),
    **dict.fromkeys(("windowlength", "framelength", "window"), ("win_length",)),
    **dict.fromkeys(("nummelbins", "nmel", "numbands", "nbands"), ("n_mels", "num_bands")),
    **dict.fromkeys(("fftsize", "windowsize"), ("n_fft",)),
    **dict.fromkeys(("n", "poles"), ("order",)),
    **dict.fromkeys(("type", "filtertype", "kind"), ("btype", "method")),
    **dict.fromkeys(("buffersize", "bufsize", "chunk", "chunksize"), ("block_size",)),
    **dict.fromkeys(("nchannels", "numchannels", "ch"), ("channels",)),
    **dict.fromkeys(("samples", "data", "audio", "waveform", "x", "y", "tensor"), ("ys",)),
    **dict.fromkeys(("roomsize",), ("room_size", "size")),
}
"""Arguments; the first that a class has is meant."""

ATTRIBUTES: Mapping[str, str] = {
    "audio": "wave.ys",
    "data": "wave.ys",
    "export": "wave.save(path)",
    "framerate": "wave.fs",
    "integrated": "torchfx.loudness.integrated(wave)",
    "loudness": "torchfx.loudness.integrated(wave)",
    "lufs": "torchfx.loudness.integrated(wave)",
    "mono": "wave | torchfx.effect.Mono()",
    "normalize": "wave | torchfx.effect.Normalize()",
    "numchannels": "wave.channels()",
    "numframes": "len(wave)",
    "numpy": "wave.ys.numpy()",
    "play": "the command torchfx play, or torchfx.realtime",
    "sr": "wave.fs",
    "tensor": "wave.ys",
    "tomono": "wave | torchfx.effect.Mono()",
    "tonumpy": "wave.ys.numpy()",
    "waveform": "wave.ys",
    "write": "wave.save(path)",
}
"""Attributes of a `Wave`."""


def plain(name: str) -> str:
    """Return a name in lower case, without underscores."""
    return name.lower().replace("_", "").replace("-", "")


def lookup(name: str) -> tuple[str, ...]:
    """Return where below torchfx something lies that another library, or another module here, calls by this name.

    Examples:
        >>> lookup("HighpassFilter"), lookup("Gain"), lookup("nothing")
        (('filter.HiButterworth', 'filter.BiquadHPF'), ('effect.Gain',), ())
    """
    from torchfx.catalogue import available, features

    wanted = plain(name)
    for each in (wanted, wanted.removesuffix("filter"), wanted.removesuffix("effect")):
        if each in NAMES:
            return NAMES[each]
        found = available().get(each) or features().get(each)
        if found is not None:
            return (f"{found.module.removeprefix('torchfx.')}.{found.name}",)
    return ()


def missing(module: str) -> Callable[[str], Any]:
    """Return a module's `__getattr__`, whose error says where the name is found, or which one was meant.

    Examples:
        >>> missing("torchfx.filter")("HighPass")
        Traceback (most recent call last):
        AttributeError: module 'torchfx.filter' has no attribute 'HighPass'; see torchfx.filter.HiButterworth, torchfx.filter.BiquadHPF
    """  # noqa: E501

    def raise_(name: str) -> Any:
        text = f"module {module!r} has no attribute {name!r}"
        if not (name.startswith("_") or find_spec(f"{module}.{name}")):  # `from module import part` asks for it first
            found = lookup(name)
            if module == "torchfx.augment" and found and not found[0].startswith("augment."):
                text += f"; write torchfx.augment.Random(torchfx.{found[0]}, ...)"
            elif found:
                text += f"; see {', '.join(f'torchfx.{each}' for each in found)}"
            else:
                close = close_to(name, getattr(sys.modules[module], "__all__", ()))
                text += f"; did you mean {close!r}?" if close else ""
        raise AttributeError(text, name=name, obj=None)

    return raise_


def meant(name: str, known: Iterable[str]) -> str | None:
    """Return which of the known arguments an unknown one stands for, or None.

    Examples:
        >>> meant("Q", ["cutoff", "q"]), meant("freq", ["cutoff", "q"]), meant("ceiling", ["threshold_db"])
        ('q', 'cutoff', 'threshold_db')
    """
    names = list(known)
    wanted = plain(name)
    same = next((each for each in names if plain(each) == wanted), None)
    other = next((each for each in PARAMETERS.get(wanted, ()) if each in names), None)
    return same or other or close_to(name, names)


def hint(name: str, known: Iterable[str]) -> str:
    """Return what to add to an error about an unknown argument: the one that is meant, or all.

    Examples:
        >>> hint("sr", ["cutoff", "fs"]), hint("zzz", ["cutoff", "fs"])
        ("; did you mean 'fs'?", '; there are cutoff, fs')
    """
    names = list(known)
    found = meant(name, names)
    return f"; did you mean {found!r}?" if found else f"; there are {', '.join(names)}" if names else ""


def close_to(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that a wrong one most likely means: one that it begins, or that differs in few letters.

    Examples:
        >>> close_to("threshold", ["ratio", "threshold_db"]), close_to("ratoi", ["ratio", "threshold_db"])
        ('threshold_db', 'ratio')
    """
    names = list(known)
    begun = [each for each in names if name and each.startswith(name)]
    close = difflib.get_close_matches(name, names, n=1)
    return begun[0] if len(begun) == 1 else close[0] if close else None


def checks_names(function: F) -> F:
    """Let a constructor's error about an unknown argument suggest the one that is meant.

    Raises:
        ArgumentTypeError: when the function is called with an unknown argument.
    """
    parameters = inspect.signature(function).parameters
    if any(each.kind is each.VAR_KEYWORD for each in parameters.values()):
        return function  # it looks at them by itself
    known = [name for name in parameters if name != "self"]
    what = function.__qualname__.split(".")[0]

    @wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        for name in kwargs:
            if name not in known:
                raise ArgumentTypeError(f"{what}: got an unexpected keyword argument {name!r}{hint(name, known)}")
        return function(*args, **kwargs)

    return checked  # type: ignore[return-value]
