"""Effects, all `nn.Module`s."""

from torchfx.effect.gain import Gain
from torchfx.effect.normalize import Normalize

__all__ = ["Gain", "Normalize"]
