"""Audio DSP for PyTorch: exact, fast, differentiable filters and effects as `nn.Module`s.

    wave | HiButterworth(80, order=4) | Gain("-3dB")

`torchfx.profiler` is the other half: it times, captures and reads traces of any PyTorch program.

Reading a trace needs no PyTorch, so names are loaded when they are first used; where PyTorch is loaded already, all of
them are, and the operators in `torch.ops.torchfx_ext` are registered.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torchfx import effect, filter
    from torchfx.chain import FilterChain, Parallel
    from torchfx.errors import ArgumentError, ArgumentTypeError, AudioFileError, SampleRateError, TorchFXError
    from torchfx.plan import Plan
    from torchfx.rate import sample_rate
    from torchfx.suggest import Suggestion, suggest_device
    from torchfx.wave import Wave

__all__ = [
    "ArgumentError",
    "ArgumentTypeError",
    "AudioFileError",
    "FilterChain",
    "Parallel",
    "Plan",
    "SampleRateError",
    "Suggestion",
    "TorchFXError",
    "Wave",
    "effect",
    "filter",
    "sample_rate",
    "suggest_device",
]

_MODULES = ("wave", "plan", "chain", "rate", "suggest", "errors")  # where the names above live


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("torchfx")
    if name not in __all__:
        raise AttributeError(f"module 'torchfx' has no attribute {name!r}")
    _load_all()
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})


def _load_all() -> None:
    """Bind every public name; the modules load each other, so one of them is as slow as all."""
    found = {name: value for module in _MODULES for name, value in vars(import_module(f"torchfx.{module}")).items()}
    packages = {name: import_module(f"torchfx.{name}") for name in ("effect", "filter")}
    globals().update({name: {**found, **packages}[name] for name in __all__})


if "torch" in sys.modules:
    _load_all()
