"""Names of torchaudio that this library lacks, and their replacements."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib.abc import MetaPathFinder
from types import ModuleType

__all__ = ["FUNCTIONAL", "PACKAGE", "TRANSFORMS", "refuse_imports", "refused"]

BACKENDS = "nothing is needed: soundfile and PyAV read and write files"
ALIGNMENT = "torchaudio 2.11 itself, or the package ctc-forced-aligner"
TRANSDUCER = "torchaudio up to 2.8, or the packages k2 and warp-rnnt"

FUNCTIONAL: Mapping[str, str] = {
    "TokenSpan": ALIGNMENT,
    "apply_codec": "torchfx.augment.Codec",
    "edit_distance": "the packages jiwer and rapidfuzz",
    "forced_align": ALIGNMENT,
    "merge_tokens": ALIGNMENT,
    "rnnt_loss": TRANSDUCER,
}
TRANSFORMS: Mapping[str, str] = {"RNNTLoss": TRANSDUCER}
PACKAGE: Mapping[str, str] = {
    "backend": BACKENDS,
    "datasets": "the package datasets (Hugging Face)",
    "get_audio_backend": BACKENDS,
    "io": "torchfx.audio_io.Reader and Writer, torchfx.realtime for devices, or the package torchcodec",
    "kaldi_io": "the package kaldiio",
    "list_audio_backends": BACKENDS,
    "load_with_torchcodec": "load, or the package torchcodec",
    "models": "the packages transformers and speechbrain",
    "pipelines": "the packages transformers and speechbrain",
    "prototype": "torchfx.design and torchfx.filter, or torchaudio up to 2.8",
    "prosody": "the packages transformers and speechbrain",
    "save_with_torchcodec": "save, or the package torchcodec",
    "set_audio_backend": BACKENDS,
    "sox_effects": "torchfx.effect and torchfx.filter, or the package sox",
    "utils": "the package huggingface_hub, for files to download",
}


def refused(module: str, name: str, reasons: Mapping[str, str]) -> AttributeError:
    """Return the error for a name that a module has not: where to look for it, if it is torchaudio's."""
    if name in reasons:
        return AttributeError(_text(name, reasons))
    return AttributeError(f"module {module!r} has no attribute {name!r}")


def _text(name: str, reasons: Mapping[str, str]) -> str:
    return f"torchaudio's {name} is not in torchfx; instead: {reasons[name]}"


class _Elsewhere(MetaPathFinder):
    """Gives the reason where a module that is elsewhere is imported, which asks no `__getattr__`."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        package, _, name = fullname.rpartition(".")
        if package == __package__ and name in PACKAGE:
            raise ModuleNotFoundError(_text(name, PACKAGE))


def refuse_imports() -> None:
    """Let imports of modules that torchaudio has and this library has not raise an error with the reason."""
    if not any(isinstance(finder, _Elsewhere) for finder in sys.meta_path):
        sys.meta_path.append(_Elsewhere())
