"""What becomes of each file: effects, sample rate, loudness, and how the result is encoded."""

from __future__ import annotations

import sys
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchfx.errors import ArgumentError, ArgumentTypeError, AudioFileError

if TYPE_CHECKING:
    from torch import nn

__all__ = ["PRESETS", "Recipe", "preset"]

PRESETS = Path(__file__).with_name("presets")
FORMATS = {name: f".{name}" for name in ("wav", "flac", "ogg", "opus", "mp3", "m4a", "aac", "aiff", "raw")}
RAW = {"u8": "PCM_U8", "s16": "PCM_16", "s24": "PCM_24", "s32": "PCM_32", "f32": "FLOAT", "f64": "DOUBLE"}


@dataclass(frozen=True)
class Recipe:
    """What becomes of each file. Without effects, rate and loudness samples are copied, and PyTorch is not loaded.

    Args:
        effects: filters and effects in order, modules or texts such as "hibutterworth:80,order=4".
        rate: sample rate of the output, Hz or a text such as "16kHz"; resampled behind the effects.
        loudness: integrated loudness of the output, LUFS.
        true_peak: what no peak exceeds afterwards, dB below full scale (a limiter with look-ahead). Limiting makes
            speech with high peaks 1 to 2 LU quieter, so with `loudness` both are done twice, which leaves about half.
        format: "wav", "flac", "ogg", "opus", "mp3", "aiff" or "raw"; by default the output's suffix decides.
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
        if self.format is not None and self.format.lower() not in FORMATS:
            raise ArgumentError(f"format must be one of {', '.join(FORMATS)}, got {self.format!r}")
        self.bits_per_second()
        self.layout()
        self.chain()

    def bits_per_second(self) -> int | None:
        """Return the bit rate as a number."""
        if self.bitrate is None or isinstance(self.bitrate, int):
            return self.bitrate
        number = self.bitrate.lower().removesuffix("k")
        if not number.isdecimal():
            raise ArgumentError(f'bitrate must be bits per second, or a text such as "128k", got {self.bitrate!r}')
        return int(number) * (1000 if number != self.bitrate else 1)

    def layout(self) -> tuple[int, int, str] | None:
        """Return sample rate, channels and encoding of raw samples."""
        if self.raw is None:
            return None
        fs, channels, encoding, *more = [*self.raw.split(","), "", ""]
        if not fs.isdecimal() or not channels.isdecimal() or encoding not in RAW or any(more):
            raise ArgumentError(f"raw must be RATE,CHANNELS,{'|'.join(RAW)}, as in 16000,1,s16, got {self.raw!r}")
        return int(fs), int(channels), RAW[encoding]

    @property
    def suffix(self) -> str | None:
        """Suffix of the outputs, or None where each keeps its source's."""
        return None if self.format is None else FORMATS[self.format.lower()]

    def chain(self) -> nn.Module | None:
        """Return the effects as one module, or None where samples are copied."""
        return _chain((*self.effects, *self._finish()))

    def _finish(self) -> list[str]:
        texts = [] if self.rate is None else [f"resample:{self.rate}"]
        levels = [] if self.loudness is None else [f"normalize:method=lufs,lufs={self.loudness}"]
        levels += [] if self.true_peak is None else [f"limiter:{self.true_peak},true_peak=true"]
        return texts + levels * (2 if len(levels) == 2 else 1)

    def __str__(self) -> str:
        """Return the recipe in one line; two recipes with different results differ in it."""
        steps = [each if isinstance(each, str) else _described(each) for each in self.effects]
        kbits = f"{self.bits_per_second()} bits/s" if self.bitrate else ""
        encoded = [str(self.format or ""), f"{self.bits} bits" if self.bits else "", kbits, self.raw or ""]
        return " | ".join([*steps, *self._finish()] or ["copy"]) + "".join(f", {each}" for each in encoded if each)


@lru_cache(16)
def _chain(effects: tuple[str | nn.Module, ...]) -> nn.Module | None:
    if not effects:
        return None
    from torch import nn

    from torchfx import spec
    from torchfx.core.processor import FilterChain

    for each in effects:
        if not isinstance(each, (str, nn.Module)):
            raise ArgumentTypeError(f"effects must be texts or modules, got {each!r} ({type(each).__name__})")
    return FilterChain(*(spec.build(each) if isinstance(each, str) else each for each in effects))


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
