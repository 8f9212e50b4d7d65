"""Block processing with the same result as for the whole signal: streams, live audio, files in constant memory."""

from torchfx.realtime.backends import Backend, DeviceError, FileClock, SoundDevice
from torchfx.realtime.config import RealtimeConfig
from torchfx.realtime.cuda_graph import CudaGraphRunner
from torchfx.realtime.files import FileReport, StreamProcessor, process_file
from torchfx.realtime.live import RealtimeProcessor, RealtimeStats, parameters_of
from torchfx.realtime.midi import MidiMapping
from torchfx.realtime.stream import Stream

__all__ = [
    "Backend",
    "CudaGraphRunner",
    "DeviceError",
    "FileClock",
    "FileReport",
    "MidiMapping",
    "RealtimeConfig",
    "RealtimeProcessor",
    "RealtimeStats",
    "SoundDevice",
    "Stream",
    "StreamProcessor",
    "parameters_of",
    "process_file",
]
