"""What torchaudio has and this library has not, and where to look for it."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["FUNCTIONAL", "PACKAGE", "TRANSFORMS", "refused"]

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
    "backend": "nothing: files are read and written by soundfile and PyAV",
    "datasets": "the package datasets (Hugging Face)",
    "get_audio_backend": "nothing: files are read and written by soundfile and PyAV",
    "io": "torchfx.audio_io.Reader and Writer, torchfx.realtime for devices, or the package torchcodec",
    "kaldi_io": "the package kaldiio",
    "list_audio_backends": "nothing: files are read and written by soundfile and PyAV",
    "load_with_torchcodec": "load, or the package torchcodec",
    "models": "the packages transformers and speechbrain",
    "pipelines": "the packages transformers and speechbrain",
    "prosody": "the packages transformers and speechbrain",
    "save_with_torchcodec": "save, or the package torchcodec",
    "set_audio_backend": "nothing: files are read and written by soundfile and PyAV",
    "sox_effects": "torchfx.effect and torchfx.filter, or the package sox",
    "utils": "the package huggingface_hub, for files to download",
}


def refused(module: str, name: str, reasons: Mapping[str, str]) -> AttributeError:
    """Return the error for a name that a module has not: where to look for it, if it is torchaudio's."""
    if name in reasons:
        return AttributeError(f"torchaudio's {name} is no signal processing of torchfx; look at {reasons[name]}")
    return AttributeError(f"module {module!r} has no attribute {name!r}")
