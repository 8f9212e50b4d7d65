"""How each file is processed: effects, sample rate, loudness, and how the result is encoded."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchfx.checks import number_text
from torchfx.checks import sample_rate as checked_rate
from torchfx.distributed.feature_files import FEATURE_FORMATS, check_installed
from torchfx.errors import ArgumentError, ArgumentTypeError, AudioFileError

if TYPE_CHECKING:
    from torch import nn

__all__ = ["PRESETS", "Recipe", "preset"]

PRESETS = Path(__file__).with_name("presets")
FORMATS = {name: f".{name}" for name in ("wav", "flac", "ogg", "opus", "mp3", "m4a", "aac", "aiff", "raw")}
RAW = {"u8": "PCM_U8", "s16": "PCM_16", "s24": "PCM_24", "s32": "PCM_32", "f32": "FLOAT", "f64": "DOUBLE"}


@dataclass(frozen=True)
class Recipe:
    """How each file is processed. Without effects, rate and loudness samples are copied, and PyTorch is not loaded.

    Effects that end in features (`torchfx.spectral`), such as "logmel:whisper", give files of features, each
    (channels, bins, frames), instead of audio.

    Args:
        effects: filters and effects in order, modules or texts such as "hibutterworth:80,order=4".
        rate: sample rate of the output, Hz or a text such as "16kHz"; resampled after the effects. Of features: the
            rate of the samples that they are computed from; by default the rate that they need, or the file's.
        loudness: integrated loudness of the output, LUFS.
        true_peak: level that no peak exceeds before encoding, dB relative to full scale (a limiter with look-ahead).
            Lossy encoding raises peaks, by up to 0.5 dB at -16 LUFS, and by up to 3 dB after much limiting. With
            `loudness`, the gain before the limiter is chosen so that its output has that loudness, to 0.1 LU; a
            warning in the outcome gives the loudness if it cannot be reached.
        format: "wav", "flac", "ogg", "opus", "mp3", "aiff" or "raw", for features "npy", "npz", "safetensors" or
            "parquet"; by default the output's suffix decides, and in a folder features go into .npy files. An output
            whose suffix names another format is refused.
        bits: bits per sample; by default as many as the source's.
        bitrate: of MP3, Vorbis and Opus: bits per second at least, or a text such as "128k"; by default no lower than a
            lossy source's, else what the encoder chooses.
        raw: of stdin and of files named .raw: sample rate, channels and u8, s16, s24, s32, f32 or f64, such as
            "16000,1,s16", little-endian.

    Raises:
        ArgumentError: an unknown effect or format, or a value out of range.
    """

    effects: tuple[str | nn.Module, ...] = ()
    rate: float | str | None = None
    loudness: float | None = None
    true_peak: float | None = None
    format: str | None = None
    bits: int | None = None
    bitrate: int | str | None = None
    raw: str | None = None

    def __post_init__(self) -> None:
        """Check the arguments; effects are built, so that a wrong one is refused before any file is read."""
        formats = {**FORMATS, **FEATURE_FORMATS}
        if self.format is not None and self.format.lower() not in formats:
            raise ArgumentError(f"format must be one of {', '.join(formats)}, got {self.format!r}")
        self.bits_per_second()
        self.layout()
        self.chain()
        self._check_kind()

    def _check_kind(self) -> None:
        """Raise if the arguments contradict the effects' results."""
        form = None if self.format is None else self.format.lower()
        if form is not None and (form in FEATURE_FORMATS) != self.gives_features:
            gives, holds = ("features", "samples") if self.gives_features else ("samples", "features")
            raise ArgumentError(f"format must hold {gives}, which the effects give, and {form} holds {holds}")
        if not self.gives_features:
            return
        check_installed(form or "npy")
        for name in ("loudness", "true_peak", "bits", "bitrate"):
            if getattr(self, name) is not None:
                raise ArgumentError(f"{name} is of samples, and the effects give features, got {getattr(self, name)!r}")
        needed = _needed_rate(self.effects)
        if needed is not None and self.rate is not None and checked_rate(self.rate) != needed:
            raise ArgumentError(f"rate must be {number_text(needed)} Hz, which the features need, got {self.rate}")

    def bits_per_second(self) -> int | None:
        """Return the bit rate as a number."""
        if self.bitrate is None or isinstance(self.bitrate, int):
            return self.bitrate
        found = re.fullmatch(r"(\d+)\s*(k?)(?:b/s|bps|bit/s|bits/s)?", self.bitrate.strip().lower())
        if not found:
            raise ArgumentError(f'bitrate must be bits per second, or a text such as "128k", got {self.bitrate!r}')
        return int(found[1]) * (1000 if found[2] else 1)

    def layout(self) -> tuple[int, int, str] | None:
        """Return sample rate, channels and encoding of raw samples."""
        if self.raw is None:
            return None
        fs, channels, encoding, *more = [*self.raw.split(","), "", ""]
        try:
            rate = checked_rate(fs)
        except ArgumentError:
            rate = 0.5
        if rate != int(rate) or not channels.isdecimal() or encoding not in RAW or any(more):
            raise ArgumentError(f"raw must be RATE,CHANNELS,{'|'.join(RAW)}, as in 16000,1,s16, got {self.raw!r}")
        return int(rate), int(channels), RAW[encoding]

    @property
    def suffix(self) -> str | None:
        """Suffix of the outputs, or None where each keeps its source's."""
        if self.format is None:
            return FEATURE_FORMATS["npy"] if self.gives_features else None
        return {**FORMATS, **FEATURE_FORMATS}[self.format.lower()]

    def chain(self) -> nn.Module | None:
        """Return the effects as one module, or None where samples are copied."""
        return _chain(self._steps())

    @property
    def gives_features(self) -> bool:
        """Whether the effects end in features."""
        return bool(self.effects) and _gives_features(self.effects)

    @property
    def feature_rate(self) -> float | None:
        """The sample rate (Hz) that features are made at; None: each file's."""
        return _needed_rate(self.effects) if self.rate is None else checked_rate(self.rate)

    def _steps(self) -> tuple[str | nn.Module, ...]:
        """Return the effects and the steps of the other arguments, in order."""
        if not self.gives_features:
            return (*self.effects, *self._finish())
        if self.feature_rate is None:
            return self.effects
        first = next(i for i, each in enumerate(_modules(self.effects)) if _makes_features(each))
        return *self.effects[:first], f"resample:{number_text(self.feature_rate)}", *self.effects[first:]

    def _finish(self) -> list[str | nn.Module]:
        steps: list[str | nn.Module] = [] if self.rate is None else [f"resample:{self.rate}"]
        if self.loudness is not None and self.true_peak is not None:
            from torchfx.distributed.levels import LimitedLoudness

            return [*steps, LimitedLoudness(self.loudness, self.true_peak)]
        steps += [] if self.loudness is None else [f"normalize:method=lufs,lufs={self.loudness}"]
        return steps + ([] if self.true_peak is None else [f"limiter:{self.true_peak},true_peak=true"])

    def __str__(self) -> str:
        """Return the recipe in one line; two recipes with different results differ in it."""
        steps = [each if isinstance(each, str) else _described(each) for each in self._steps()]
        kbits = f"{self.bits_per_second()} bits/s" if self.bitrate else ""
        encoded = [str(self.format or ""), f"{self.bits} bits" if self.bits else "", kbits, self.raw or ""]
        return " | ".join(steps or ["copy"]) + "".join(f", {each}" for each in encoded if each)


@lru_cache(16)
def _chain(effects: tuple[str | nn.Module, ...]) -> nn.Module | None:
    if not effects:
        return None
    from torchfx.core.processor import FilterChain

    return FilterChain(*_modules(effects))


@lru_cache(16)
def _modules(effects: tuple[str | nn.Module, ...]) -> tuple[nn.Module, ...]:
    from torch import nn

    from torchfx import spec

    for each in effects:
        if not isinstance(each, (str, nn.Module)):
            raise ArgumentTypeError(f"effects must be texts or modules, got {each!r} ({type(each).__name__})")
    return tuple(spec.build(each) if isinstance(each, str) else each for each in effects)


@lru_cache(16)
def _gives_features(effects: tuple[str | nn.Module, ...]) -> bool:
    from torchfx.plan import gives_of

    chain = _chain(effects)
    return chain is not None and gives_of(chain) == "features"


def _makes_features(module: nn.Module) -> bool:
    from torchfx.core.feature import Feature

    return any(isinstance(each, Feature) for each in module.modules())


def _needed_rate(effects: tuple[str | nn.Module, ...]) -> float | None:
    """Return the sample rate (Hz) that a feature is made for, or None."""
    from torchfx.core.feature import Feature

    parts = [part for each in _modules(effects) for part in each.modules() if isinstance(part, Feature)]
    return next((part.required_rate for part in parts if part.required_rate is not None), None)


def _described(module: nn.Module) -> str:
    """Return a module's repr, and a digest of its weights where it has any: a repr does not show them all."""
    state = module.state_dict()
    text = " ".join(repr(module).split())
    if not state:
        return text
    import hashlib

    digest = hashlib.sha256()
    for name, value in state.items():
        data = value.detach().cpu().numpy().tobytes() if hasattr(value, "detach") else repr(value).encode()
        digest.update(name.encode() + data)
    return f"{text} {digest.hexdigest()[:16]}"


def preset(name: str) -> dict[str, Any]:
    """Read a preset: a TOML file with arguments of `Recipe`, or the name of one that ships.

    Examples:
        >>> recipe = Recipe(**preset("speech-16k"))
        >>> print(recipe.rate, recipe.format, recipe.bits)
        16kHz wav 16

    Raises:
        ArgumentError: there is no such preset; a key that is no argument of `Recipe`.
        AudioFileError: the file cannot be read, or is no TOML.
    """
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    shipped = sorted(each.stem for each in PRESETS.glob("*.toml"))
    path = PRESETS / f"{name}.toml" if name in shipped else Path(name)
    if not path.is_file():
        raise ArgumentError(f"a preset must be a TOML file or one of {', '.join(shipped)}, got {name!r}")
    try:
        found: dict[str, Any] = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise AudioFileError(f"cannot read {name}: {error}") from error
    known = [field.name for field in fields(Recipe)]
    unknown = [key for key in found if key not in known]
    if unknown:
        raise ArgumentError(f"a preset's keys must be among {', '.join(known)}, got {unknown[0]!r} in {name}")
    if not isinstance(found.get("effects", []), list):
        raise ArgumentError(f"effects in {name} must be a list of texts, got {found['effects']!r}")
    return found | ({"effects": tuple(found["effects"])} if "effects" in found else {})
