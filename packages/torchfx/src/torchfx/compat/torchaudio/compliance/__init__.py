"""Features exactly as other toolkits compute them."""

from torchfx.compat.torchaudio.compliance import kaldi

__all__ = ["kaldi"]
