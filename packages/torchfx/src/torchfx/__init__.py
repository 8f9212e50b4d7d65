"""Audio DSP for PyTorch: filters and effects as `nn.Module`s, fast, exact and differentiable.

    wave | HiButterworth(80, order=4) | Gain("-3dB")

Commands that read and cut files need no PyTorch, so names are loaded when they are first used; where PyTorch is loaded
already, the core is, and the operators in `torch.ops.torchfx_ext` are registered.
"""

from __future__ import annotations

import sys as _sys
from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING

if _TYPE_CHECKING:
    from torchfx import (
        augment,
        distributed,
        effect,
        filter,
        functional,
        losses,
        loudness,
        parameters,
        realtime,
        spectral,
        voice_activity,
    )
    from torchfx.batch import batch_process
    from torchfx.core.context import Memoryless, WithContext
    from torchfx.core.learning import learn
    from torchfx.core.processor import FilterChain, Parallel, Processor
    from torchfx.core.wave import Wave, load
    from torchfx.errors import (
        ArgumentError,
        ArgumentTypeError,
        AudioFileError,
        SampleRateError,
        StreamError,
        TorchFXError,
    )
    from torchfx.plan import LTI, Plan
    from torchfx.rate import sample_rate
    from torchfx.realtime import Stream, process_file
    from torchfx.suggest import Suggestion, suggest_device

__all__ = [
    "LTI",
    "ArgumentError",
    "ArgumentTypeError",
    "AudioFileError",
    "FilterChain",
    "Memoryless",
    "Parallel",
    "Plan",
    "Processor",
    "SampleRateError",
    "Stream",
    "StreamError",
    "Suggestion",
    "TorchFXError",
    "Wave",
    "WithContext",
    "augment",
    "batch_process",
    "distributed",
    "effect",
    "filter",
    "functional",
    "learn",
    "load",
    "losses",
    "loudness",
    "parameters",
    "process_file",
    "realtime",
    "sample_rate",
    "spectral",
    "suggest_device",
    "voice_activity",
]

_MODULES = ("batch", "core.wave", "core.processor", "core.context", "plan", "rate", "errors")
_LATER = (
    "augment", "distributed", "effect", "filter", "functional", "losses", "loudness", "parameters", "realtime",
    "spectral", "voice_activity",
)  # fmt: skip
"""Loaded on first use; none registers an operator."""
_NAMES_LATER = {
    "Stream": "realtime",
    "Suggestion": "suggest",
    "learn": "core.learning",
    "process_file": "realtime",
    "suggest_device": "suggest",
}
"""The same for single names, with their modules."""


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        return version("torchfx")
    if name in _LATER:
        return _import_module(f"torchfx.{name}")
    if name in _NAMES_LATER:
        return getattr(_import_module(f"torchfx.{_NAMES_LATER[name]}"), name)
    if name == "compat":
        return _import_module("torchfx.compat.torchaudio") and _sys.modules["torchfx.compat"]
    if name not in __all__:
        from torchfx.other_names import missing

        missing("torchfx")(name)
    _load_all()
    return globals()[name]


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


def _load_all() -> None:
    """Bind the public names but those for later; the modules load each other, so one of them is as slow as all."""
    found = {}
    for module in _MODULES:
        found.update(vars(_import_module(f"torchfx.{module}")))
    globals().update({name: found[name] for name in __all__ if name not in (*_LATER, *_NAMES_LATER)})


if "torch" in _sys.modules:
    _load_all()
