"""torchaudio's transforms: the functions as modules, with its buffers and submodules, so that its states are loaded.

Their forms that run in streams and chains, take a `Wave` and learn, are in `torchfx.spectral`, `torchfx.effect` and
`torchfx.filter`.
"""

from typing import Any

from torchfx.compat.torchaudio.elsewhere import TRANSFORMS, refused
from torchfx.compat.torchaudio.transforms import bands, beamforming, signals, spectra
from torchfx.compat.torchaudio.transforms.bands import *  # noqa: F403
from torchfx.compat.torchaudio.transforms.beamforming import *  # noqa: F403
from torchfx.compat.torchaudio.transforms.signals import *  # noqa: F403
from torchfx.compat.torchaudio.transforms.spectra import *  # noqa: F403

__all__ = sorted({*bands.__all__, *beamforming.__all__, *signals.__all__, *spectra.__all__} - {"Resampling", "Window"})


def __getattr__(name: str) -> Any:
    raise refused(__name__, name, TRANSFORMS)
