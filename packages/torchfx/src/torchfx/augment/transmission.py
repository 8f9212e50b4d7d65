"""Transmission augmentations: lossy codecs and packet loss."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import torch
from torch import Tensor
from torch.nn.functional import pad

from torchfx.audio_io.coding import CODECS, codec_rate, coded
from torchfx.augment.augmentation import Augmentation, Distribution, Drawn, extremes_of, values_of
from torchfx.augment.time import rate_of
from torchfx.checks import finite_number, number_text, whole_number
from torchfx.core.resample import Resample
from torchfx.errors import ArgumentError
from torchfx.parameters import choice as choice_of
from torchfx.parameters import named, number
from torchfx.parameters import sample_rate as sample_rate_of

__all__ = ["Codec", "PacketLoss"]

FS = named("fs", sample_rate_of(default=None))
CODEC = named("codec", choice_of(tuple(CODECS)))
RATE = named("rate", number(low=0.0, high=1.0, learnable=False))
CONCEALMENT = named("concealment", choice_of(("zero", "repeat")))


class Codec(Augmentation):
    """Encode and decode each example with a lossy codec, in memory; the result is aligned and has the same length.

    MP3, Opus and Vorbis work at the signal's rate or the next rate that the codec supports. GSM 6.10, mu-law and A-law
    work at 8 kHz, so nothing above 4 kHz remains; GSM codes each channel separately. The codec's delay is removed.
    Samples beyond full scale are clipped. There is no gradient. Examples are coded in parallel, on as many threads as
    PyTorch uses.

    Args:
        codec: "mp3", "opus", "vorbis", "gsm", "mulaw" or "alaw", or a distribution of these.
        bitrate: of MP3, Opus and Vorbis, bits/s: a number or a distribution; None: libsndfile's default.
        fs: sample rate of the signals, Hz; None follows the wave's or `torchfx.sample_rate`.
        p, generator: as in `Augmentation`.

    Raises:
        ArgumentError: the codec is unknown; when it runs, a bit rate is not supported or samples are not finite.

    Sources: ITU-T G.711 (mu-law and A-law); ETSI GSM 06.10; RFC 6716 (Opus); ISO/IEC 11172-3 and 13818-3 (MP3).

    Examples:
        >>> from torchfx.augment import choice
        >>> telephone = Codec(choice(["gsm", "mulaw", "alaw"]), fs=8000, generator=0)
        >>> telephone(0.1 * torch.randn(8, 1, 8000)).shape
        torch.Size([8, 1, 8000])
        >>> Codec("mulaw", fs=8000)(torch.tensor([[0.5, -0.01]]))
        tensor([[ 0.5116, -0.0099]])
    """

    def __init__(
        self,
        codec: str | Distribution,
        bitrate: int | Distribution | None = None,
        *,
        fs: float | None = None,
        p: float = 1.0,
        generator: torch.Generator | int | None = None,
    ) -> None:
        """Check the codec."""
        super().__init__(p, generator)
        for extreme in extremes_of(codec):
            CODEC.check(extreme, None)
        for extreme in extremes_of(bitrate):
            if extreme is not None:
                whole_number("bitrate", round(finite_number("bitrate", extreme)), 1)
        self.codec, self.bitrate = codec, bitrate
        self.fs: float | None = FS.check(fs, None)

    def _draw(self, among: Tensor, around: torch.Generator | None) -> Drawn:
        generator, examples = self._generator(around), len(among)
        applied = self._applied(among, generator)
        codec = self.codec
        codecs = list(codec.draw(examples, generator)) if isinstance(codec, Distribution) else [codec] * examples
        drawn: Drawn = {"applied": applied, "codec": codecs}
        if self.bitrate is not None:
            bitrate = self.bitrate
            values = bitrate.draw(examples, generator) if isinstance(bitrate, Distribution) else [bitrate] * examples
            drawn["bitrate"] = [round(float(value)) for value in values]
        return drawn

    def _run(self, x: Tensor, drawn: Drawn) -> Tensor:
        rows = drawn["applied"].nonzero().flatten().tolist()
        if not rows:
            return x
        fs, samples = rate_of(self), x.detach().float().cpu()
        if not bool(torch.isfinite(samples[rows]).all()):
            raise ArgumentError("x must be finite to be coded, got NaN or infinite samples")
        bitrates = drawn.get("bitrate", [None] * len(x))

        def changed(i: int) -> Tensor:
            return _through(samples[i], fs, drawn["codec"][i], bitrates[i])

        threads = min(torch.get_num_threads(), len(rows))
        if threads == 1:
            found = list(map(changed, rows))
        else:
            with ThreadPoolExecutor(threads) as pool:
                found = list(pool.map(changed, rows))
        y = x.detach().clone()
        y[rows] = torch.stack(found).to(x)
        return y

    def extra_repr(self) -> str:
        """Return the codec, the bit rate and the probability."""
        return f"{self.codec!r}, {self.bitrate!r}, {super().extra_repr()}"


class PacketLoss(Augmentation):
    """Packet loss: drop packets independently, with a random probability for each example.

    Args:
        rate: probability that a packet is lost, in [0, 1]: a number or a distribution.
        packet_ms: length of a packet, milliseconds.
        concealment: replacement of lost packets: "zero" (silence) or "repeat" (the last packet received; silence before
            the first).
        fs: sample rate, Hz; None follows the wave's or `torchfx.sample_rate`.
        p, generator: as in `Augmentation`.

    Raises:
        ArgumentError: an argument out of range.

    Examples:
        >>> lossy = PacketLoss(0.25, packet_ms=20.0, fs=8000, generator=0)
        >>> round(float((lossy(torch.ones(8, 1, 80_000)) == 0).float().mean()), 1)
        0.3
    """

    def __init__(
        self,
        rate: float | Distribution,
        packet_ms: float = 20.0,
        concealment: str = "zero",
        *,
        fs: float | None = None,
        p: float = 1.0,
        generator: torch.Generator | int | None = None,
    ) -> None:
        """Check the arguments."""
        super().__init__(p, generator)
        for extreme in extremes_of(rate):
            RATE.check(extreme, None)
        self.rate, self.packet_ms = rate, finite_number("packet_ms", packet_ms, "ms")
        if self.packet_ms <= 0:
            raise ArgumentError(f"packet_ms must lie in (0, inf) ms, got {number_text(self.packet_ms)} ms")
        self.concealment: str = CONCEALMENT.check(concealment, None)
        self.fs: float | None = FS.check(fs, None)

    def _draw(self, among: Tensor, around: torch.Generator | None) -> Drawn:
        generator = self._generator(around)
        applied, rates = self._applied(among, generator), values_of(self.rate, len(among), generator)
        return {"applied": applied, "rate": rates, "seed": int(torch.randint(2**32, (), generator=generator))}

    def _run(self, x: Tensor, drawn: Drawn) -> Tensor:
        if not bool(drawn["applied"].any()) or not x.numel():
            return x
        size = max(1, round(self.packet_ms / 1000 * rate_of(self)))
        time, count = x.shape[-1], -(-x.shape[-1] // size)
        numbers = torch.rand(len(x), count, generator=torch.Generator().manual_seed(drawn["seed"]), dtype=torch.float64)
        lost = (numbers < drawn["rate"][:, None]) & drawn["applied"][:, None]
        packets = pad(x, (0, count * size - time)).unflatten(-1, (count, size))
        if self.concealment == "repeat":
            latest = torch.where(lost, -1, torch.arange(count)).cummax(-1).values
            lost = latest < 0
            places = latest.clamp(min=0).to(x.device)[:, None, :, None].expand_as(packets)
            packets = packets.gather(-2, places)
        heard = packets.masked_fill(lost.to(x.device)[:, None, :, None], 0.0)
        found: Tensor = heard.flatten(-2)[..., :time]
        return found

    def extra_repr(self) -> str:
        """Return the rate, the concealment and the probability."""
        return f"{self.rate!r}, {self.concealment!r}, {super().extra_repr()}"


def _through(x: Tensor, fs: float, codec: str, bitrate: int | None) -> Tensor:
    """Return a signal (channels, time) as a codec leaves it."""
    rate = codec_rate(codec, fs)
    if codec not in ("mp3", "opus", "vorbis"):
        bitrate = None
    there = x if rate == fs or codec == "vorbis" else Resample(rate).whole(x, fs)
    y = torch.from_numpy(coded(there.numpy(), rate, codec, bitrate))
    return y if there is x else Resample(fs).whole(y, rate)[..., : x.shape[-1]]
