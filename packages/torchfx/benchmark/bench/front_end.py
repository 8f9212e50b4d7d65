"""Features, their gradients, constant-Q transforms and losses of spectra, against the libraries that have them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from bench.chains import Chain
from torchfx.compat.torchaudio.compliance import kaldi
from torchfx.design.mel import mel_filters
from torchfx.losses import MultiResolutionSTFTLoss
from torchfx.realtime import Stream
from torchfx.spectral import CQT, LogMel

__all__ = [
    "by_auraloss",
    "by_blocks_of_stft",
    "by_kaldi_native_fbank",
    "by_librosa",
    "by_librosas_cqt",
    "by_torchaudio",
    "constant_q",
    "constant_q_off",
    "fbank",
    "fbank_off",
    "loss",
    "loss_off",
    "streamed",
    "trained",
]

Samples = npt.NDArray[np.float32]
BLOCK_S = 0.1
WITHIN = 0.9
"""The share of the target in the estimate; the rest is the target a tenth of a second later."""


def by_librosa(job: dict[str, Any], x: Samples) -> Callable[[], Any]:
    """Return Whisper's log-mel by librosa."""
    import librosa

    def run() -> Samples:
        powers = librosa.feature.melspectrogram(y=x, sr=job["fs"], n_fft=400, hop_length=160, n_mels=80)[..., :-1]
        found: Samples = (np.log10(np.maximum(powers, 1e-10)) + 4) / 4
        return found

    return run


def by_torchaudio(job: dict[str, Any], x: Samples) -> Callable[[], Any]:
    """Return Whisper's log-mel by torchaudio."""
    from torchaudio.transforms import MelSpectrogram

    samples = torch.from_numpy(x)
    mel = MelSpectrogram(job["fs"], 400, None, 160, n_mels=80, norm="slaney", mel_scale="slaney")
    return lambda: (mel(samples)[..., :-1].clamp(min=1e-10).log10() + 4) / 4


def trained(job: dict[str, Any], x: Samples) -> Callable[[], Any]:
    """Return a call that also takes the gradient of the samples, and gives the features."""
    log_mel, samples = LogMel("whisper", normalize=False, fs=job["fs"]), torch.from_numpy(x)
    learned, slope = samples.clone().requires_grad_(), torch.ones_like(log_mel(samples))

    def run() -> torch.Tensor:
        y: torch.Tensor = log_mel(learned)
        torch.autograd.grad(y, learned, slope)
        return y.detach()

    return run


def streamed(job: dict[str, Any], x: Samples) -> Callable[[], Any]:
    """Return the same block by block."""
    log_mel, blocks = LogMel("whisper", normalize=False), torch.from_numpy(x).split(round(BLOCK_S * job["fs"]), dim=-1)
    stream = Stream(log_mel, job["fs"], x.shape[0])
    return lambda: torch.cat([*(stream.process(block) for block in blocks), stream.flush()], dim=-1)


def by_blocks_of_stft(job: dict[str, Any], x: Samples) -> Callable[[], Any]:
    """Return the same by torch.stft, a product of matrices and a logarithm of each block and the samples before it."""
    filters = torch.from_numpy(mel_filters(201, job["fs"], 80, norm="slaney", mel_scale="slaney")).float()
    window, hop, block = torch.hann_window(400), 160, round(BLOCK_S * job["fs"])
    samples = torch.nn.functional.pad(torch.from_numpy(x), (200, 200), mode="reflect")

    def run() -> torch.Tensor:
        found = []
        for start in range(0, samples.shape[-1] - 400, block):
            part = samples[..., start : start + block + 400 - hop]
            spectra = torch.stft(part, 400, hop, window=window, center=False, return_complex=True)
            found.append(((filters @ spectra.abs().square()).clamp(min=1e-10).log10() + 4) / 4)
        return torch.cat(found, dim=-1)

    return run


def fbank(job: dict[str, Any], x: Samples) -> Callable[[], Any]:
    """Return Kaldi's filter banks by torchfx.compat.torchaudio."""
    samples = torch.from_numpy(x)
    return lambda: kaldi.fbank(samples, num_mel_bins=80, sample_frequency=job["fs"])


def by_kaldi_native_fbank(job: dict[str, Any], x: Samples) -> Callable[[], Any]:
    """Return the same by kaldi-native-fbank."""
    import kaldi_native_fbank as knf

    options = knf.FbankOptions()
    options.frame_opts.samp_freq, options.frame_opts.dither, options.mel_opts.num_bins = job["fs"], 0.0, 80

    def run() -> Samples:
        online = knf.OnlineFbank(options)
        online.accept_waveform(job["fs"], x[0])
        online.input_finished()
        return np.stack([online.get_frame(i) for i in range(online.num_frames_ready)])

    return run


def fbank_off(chain: Chain, x: Samples, y: npt.NDArray[Any]) -> float:
    """Return how far logarithms of bands are from those of samples in float64."""
    exact = kaldi.fbank(torch.from_numpy(x).double(), num_mel_bins=80, sample_frequency=chain.job()["fs"])
    return float((torch.from_numpy(y) - exact).abs().max())


def constant_q(job: dict[str, Any], x: Samples) -> Callable[[], Any]:
    """Return seven octaves of a constant-Q transform."""
    transform, samples = CQT(fs=job["fs"]), torch.from_numpy(x[0])
    return lambda: transform(samples)


def by_librosas_cqt(job: dict[str, Any], x: Samples) -> Callable[[], Any]:
    """Return as many bins and frames by librosa."""
    import librosa

    return lambda: librosa.cqt(x[0], sr=job["fs"])


def constant_q_off(chain: Chain, x: Samples, y: npt.NDArray[Any]) -> float:
    """Return how far bins are from those in float64, relative to the largest."""
    exact = CQT(fs=chain.job()["fs"])(torch.from_numpy(x[0]).double())
    return float((torch.from_numpy(y) - exact).abs().max() / exact.abs().max())


def loss(job: dict[str, Any], x: Samples) -> Callable[[], Any]:
    """Return the multi-resolution loss of pairs of signals, with the gradient of the estimate."""
    return _stepped(MultiResolutionSTFTLoss(), x)


def by_auraloss(job: dict[str, Any], x: Samples) -> Callable[[], Any]:
    """Return the same by auraloss."""
    from auraloss.freq import MultiResolutionSTFTLoss as Auralosss

    return _stepped(Auralosss(), x)


def loss_off(chain: Chain, x: Samples, y: npt.NDArray[Any]) -> float:
    """Return how far the loss is from its formula in float64, relative to it."""
    estimate, target = (each.flatten(0, 1).double() for each in _pairs(x))
    by_resolution = []
    for n_fft, hop, length in ((1024, 120, 600), (2048, 240, 1200), (512, 50, 240)):
        sums, count = np.zeros(3), 0
        for a, b in zip(
            _magnitudes(estimate, n_fft, hop, length), _magnitudes(target, n_fft, hop, length), strict=True
        ):
            sums += [
                float(each) for each in ((b - a).square().sum(), b.square().sum(), (a.log() - b.log()).abs().sum())
            ]
            count += a.numel()
        by_resolution.append((sums[0] / sums[1]) ** 0.5 + sums[2] / count)
    exact = float(np.mean(by_resolution))
    return abs(float(y) - exact) / exact


def _magnitudes(signals: torch.Tensor, n_fft: int, hop: int, length: int) -> Iterator[torch.Tensor]:
    window = torch.hann_window(length, dtype=torch.float64)
    for signal in signals:
        spectrum = torch.stft(signal, n_fft, hop, length, window, return_complex=True)
        yield (spectrum.real.square() + spectrum.imag.square()).clamp(min=1e-8).sqrt()


def _pairs(x: Samples) -> tuple[torch.Tensor, torch.Tensor]:
    target = torch.from_numpy(x).unflatten(0, (-1, 2))
    return WITHIN * target + (1 - WITHIN) * target.roll(4410, dims=-1), target


def _stepped(module: torch.nn.Module, x: Samples) -> Callable[[], Any]:
    estimate, target = _pairs(x)
    estimate.requires_grad_()

    def run() -> torch.Tensor:
        value: torch.Tensor = module(estimate, target)
        torch.autograd.grad(value, estimate)
        return value.detach()

    return run
