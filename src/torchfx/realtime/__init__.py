"""Block by block: streams, and files of any length in constant memory. The result is that of the whole signal."""

from torchfx.realtime.files import FileReport, StreamProcessor, process_file
from torchfx.realtime.stream import Stream

__all__ = ["FileReport", "Stream", "StreamProcessor", "process_file"]
