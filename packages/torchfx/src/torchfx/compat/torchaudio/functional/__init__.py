"""torchaudio's functions: what it filters with (`torchfx.functional.torchaudio`), and its spectra and beamformers."""

from typing import Any

from torchfx.compat.torchaudio.elsewhere import FUNCTIONAL, refused
from torchfx.compat.torchaudio.functional import bands, beamforming, signals, spectra
from torchfx.compat.torchaudio.functional.bands import *  # noqa: F403
from torchfx.compat.torchaudio.functional.beamforming import *  # noqa: F403
from torchfx.compat.torchaudio.functional.signals import *  # noqa: F403
from torchfx.compat.torchaudio.functional.spectra import *  # noqa: F403
from torchfx.functional import torchaudio as filtering
from torchfx.functional.torchaudio import *  # noqa: F403

__all__ = sorted(
    {*filtering.__all__, *bands.__all__, *beamforming.__all__, *signals.__all__, *spectra.__all__} - {"bands_of"}
)


def __getattr__(name: str) -> Any:
    raise refused(__name__, name, FUNCTIONAL)
