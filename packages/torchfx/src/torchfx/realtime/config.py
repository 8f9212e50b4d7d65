"""Settings of a live chain."""

from __future__ import annotations

import math
from dataclasses import dataclass

from torchfx.checks import finite_number, whole_number
from torchfx.errors import ArgumentError
from torchfx.other_names import checks_names

__all__ = ["RealtimeConfig"]


@dataclass(frozen=True)
class RealtimeConfig:
    """Settings of a live chain.

    Attributes:
        sample_rate: Hz.
        block_size: samples per block (the device's period), 1 ... 65536.
        channels: number of input and output channels.
        input_device, output_device: PortAudio's device number or a part of its name; None: the system's default.
        worker_blocks: latency of a chain that is not fully native, in blocks: the time that the Python thread has for a
            block.
        crossfade_ms: length of the crossfade when parameters change, and to the dry signal and back.
        ceiling_db: dB relative to full scale, -60 ... 120. If an output sample exceeds it, or is not finite, the output
            is muted: it fades out in 5 ms, the chain restarts from rest with its output muted, and the output fades in
            again, in 5 ms, after 20 ms without such a sample. If such a sample occurs again within 10 s, the next wait
            is four times as long, up to 10 s, so a chain that bursts every few seconds stays muted. None: no muting.
    """

    sample_rate: float = 48_000
    block_size: int = 256
    channels: int = 2
    input_device: int | str | None = None
    output_device: int | str | None = None
    worker_blocks: int = 8
    crossfade_ms: float = 20.0
    ceiling_db: float | None = 12.0

    def __post_init__(self) -> None:
        """Check the values."""
        if finite_number("sample_rate", self.sample_rate, "Hz") <= 0:
            raise ArgumentError(f"sample_rate must lie in (0, inf) Hz, got {self.sample_rate:g}")
        whole_number("block_size", self.block_size, 1, 1 << 16)
        whole_number("channels", self.channels, 1, 1024)
        whole_number("worker_blocks", self.worker_blocks, 1, 10_000)
        if not 0 < finite_number("crossfade_ms", self.crossfade_ms, "ms") <= 10_000:
            raise ArgumentError(f"crossfade_ms must lie in (0, 10000] ms, got {self.crossfade_ms:g}")
        if self.ceiling_db is not None and not -60 <= finite_number("ceiling_db", self.ceiling_db, "dB") <= 120:
            raise ArgumentError(f"ceiling_db must lie in [-60, 120] dB or be None, got {self.ceiling_db:g}")

    @property
    def ceiling(self) -> float:
        """The largest allowed magnitude of the output; inf allows all samples, including NaN and infinity."""
        return math.inf if self.ceiling_db is None else 10 ** (self.ceiling_db / 20)

    @property
    def block_s(self) -> float:
        """Duration of a block, seconds."""
        return self.block_size / self.sample_rate


RealtimeConfig.__init__ = checks_names(RealtimeConfig.__init__)  # type: ignore[method-assign]
