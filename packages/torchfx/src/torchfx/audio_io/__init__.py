"""Audio files, whole or block by block.

The suffix selects the format, outputs appear only when complete, and every error message is one line.
"""

from torchfx.audio_io.bitrate import kept_bitrate
from torchfx.audio_io.formats import FORMATS, LOSSY, AudioInfo, Chapter, kept_encoding
from torchfx.audio_io.reader import Reader, info, load
from torchfx.audio_io.tags import TAGS, kept_tags
from torchfx.audio_io.writer import ClippingWarning, Writer, save

__all__ = [
    "FORMATS",
    "LOSSY",
    "TAGS",
    "AudioInfo",
    "Chapter",
    "ClippingWarning",
    "Reader",
    "Writer",
    "info",
    "kept_bitrate",
    "kept_encoding",
    "kept_tags",
    "load",
    "save",
]
