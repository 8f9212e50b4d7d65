"""What becomes of each file: effects, sample rate, loudness, and how the result is encoded."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchfx.errors import ArgumentError, ArgumentTypeError, AudioFileError

if TYPE_CHECKING:
    from torch import nn

__all__ = ["PRESETS", "Recipe", "preset"]

PRESETS = Path(__file__).with_name("presets")
FORMATS = {"wav": ".wav", "flac": ".flac", "ogg": ".ogg", "mp3": ".mp3", "aiff": ".aiff"}


@dataclass(frozen=True)
class Recipe:
    """What becomes of each file. Without effects, rate and loudness samples are copied, and PyTorch is not loaded.

    Args:
        effects: filters and effects in order, modules or texts such as "hibutterworth:80,order=4".
        rate: sample rate of the output, Hz or a text such as "16kHz"; resampled behind the effects.
        loudness: integrated loudness of the output, LUFS.
        true_peak: what no peak exceeds afterwards, dB below full scale (a limiter with look-ahead).
        format: "wav", "flac", "ogg", "mp3" or "aiff"; by default the output's suffix decides.
        bits: bits per sample; by default as many as the source's.

    Raises:
        ArgumentError: an unknown effect or format, or a value out of range.
    """

    effects: tuple[str | nn.Module, ...] = ()
    rate: float | str | None = None
    loudness: float | None = None
    true_peak: float | None = None
    format: str | None = None
    bits: int | None = None

    def __post_init__(self) -> None:
        """Check the arguments; effects are built, so that a wrong one is refused before any file is read."""
        if self.format is not None and self.format.lower() not in FORMATS:
            raise ArgumentError(f"format must be one of {', '.join(FORMATS)}, got {self.format!r}")
        self.chain()

    @property
    def suffix(self) -> str | None:
        """Suffix of the outputs, or None where each keeps its source's."""
        return None if self.format is None else FORMATS[self.format.lower()]

    def chain(self) -> nn.Module | None:
        """Return the effects as one module, or None where samples are copied."""
        return _chain((*self.effects, *self._finish()))

    def _finish(self) -> list[str]:
        texts = [] if self.rate is None else [f"resample:{self.rate}"]
        texts += [] if self.loudness is None else [f"normalize:method=lufs,lufs={self.loudness}"]
        return texts + ([] if self.true_peak is None else [f"limiter:{self.true_peak},true_peak=true"])

    def __str__(self) -> str:
        """Return the recipe in one line; two recipes with different results differ in it."""
        steps = [each if isinstance(each, str) else _described(each) for each in self.effects]
        encoded = [str(self.format or ""), f"{self.bits} bits" if self.bits else ""]
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
    import msgspec

    shipped = sorted(each.stem for each in PRESETS.glob("*.toml"))
    path = PRESETS / f"{name}.toml" if name in shipped else Path(name)
    if not path.is_file():
        raise ArgumentError(f"a preset must be a TOML file or one of {', '.join(shipped)}, got {name!r}")
    try:
        found = msgspec.toml.decode(path.read_bytes())
    except (OSError, msgspec.DecodeError) as error:
        raise AudioFileError(f"cannot read {name}: {error}") from error
    known = [field.name for field in fields(Recipe)]
    unknown = [key for key in found if key not in known]
    if unknown:
        raise ArgumentError(f"a preset's keys must be among {', '.join(known)}, got {unknown[0]!r} in {name}")
    if not isinstance(found.get("effects", []), list):
        raise ArgumentError(f"effects in {name} must be a list of texts, got {found['effects']!r}")
    return found | ({"effects": tuple(found["effects"])} if "effects" in found else {})
