"""The suite targets: the speed this library promises, each promise a ratio measured in one run.

Every claim compares two works in this process, turn by turn, on the same float32 samples, after this library's result
was compared with SciPy in float64.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from bench import (
    augmentation,
    calls,
    chains,
    effects,
    front_end,
    octave_bank,
    operators,
    scipys_functions,
    signals,
    time_varying,
)
from bench.batches import by_batch_process, by_loop, deviation_of_longest
from bench.chains import Chain, Design
from bench.contenders import scipy_signal, torchfx_library
from bench.equalizers import Equalizers, equalized, sosfilt_per_item, trained
from bench.exact import BOUND, deviation
from bench.features import Features, by_stft, features, powers_off
from bench.inside import compare
from bench.report import TargetRow
from bench.resampling import Resampling, resampled, soxr_hq, windowed_sinc
from bench.timing import ratio, spread
from torchfx.errors import ArgumentError

__all__ = ["CLAIMS", "NOTES", "Claim", "measure", "possible", "run"]

NOTES = (
    "speed-ups: `wave | chain`, output allocated in the call, against SciPy on the same float32 array, its output "
    "allocated too: the other's time over this library's",
    "costs at 60 s: the operator writing into an output that is there already, against torch.mul(x, 2, out=y): this "
    "library's time over the other's",
    "costs at 64 samples: the call with its output allocated, against torch.mul(x, 2); the chain of 61 modules is one "
    "filter and 60 gains, its cost and that of one filter and 2 gains are taken after their operator's time is "
    "subtracted",
    "own coefficients: the operator with one set for each row, over the operator with one set for all rows",
    "gradients: forward plus backward, for signal and coefficients at once, over the forward pass alone where nothing "
    "requires a gradient; outputs and gradients allocated in the call; calls in turn, since a forward pass "
    "repeated on its own would find its signal in the cache, and one in training doesn't",
    "resonance that changes at every sample: forward plus backward, for signal and coefficients, all float32, compared "
    "with torchlpc where that is installed; the result is compared with the recurrence in float64",
    "effects: their output in float32 against that in float64; pedalboard, on one thread as always, and pyloudnorm "
    "take part where they are installed; pedalboard's channels do not share a gain",
    "many short signals: one native call, each signal by one thread, cut into stretches that fill a vector's lanes; a "
    "signal in each lane takes the same time",
    "random filters: this library and torch-audiomentations take the batch, audiomentations one example after the "
    "other; the high-passes are a Butterworth filter and a windowed sinc, both equalizers have a low shelf, five bells "
    "and a high shelf, the noise is white; the deviation is that of the ratio of signal to noise",
    "log-mel: both allocate their output; the deviation is that of bands' powers, relative to the largest",
    "pitch: librosa's defaults; the deviation is that of a chord's partials, in cents",
    "sosfiltfilt, filtfilt and lfilter are torchfx.functional's against SciPy's of the same name, on the same float32 "
    "samples and one thread, coefficients given as arrays",
    "lfilter is called once per filter, sosfilt once with all sections, oaconvolve once with all taps convolved "
    "beforehand",
)

THREADS = 2
THREADS_OF = {1: "1 thread", THREADS: f"{THREADS} threads"}
DEEP = Chain(chains.IIR.filters * 3)
ONE_FIR = Chain(chains.FIR.filters[:1])
ROOM = Chain((Design("firwin", 1000, 2 * chains.FS),))
ONE_IIR = Chain(chains.IIR.filters[:1])
FOURTH_ORDER = Chain((Design("butter", 1000, 4),))
EQUALIZERS = Equalizers()
OCTAVE_BANDS = octave_bank.OctaveBands()
BLOCK_S = 64 / chains.FS
LEAST_S = 1e-9  # what remains at least of a time from which another one is subtracted

GRADIENTS = ((1, 60, 4), (2, 60, 4), (8, 60, 4), (12, 60, 4), (1, 5, 5), (16, 1, 4), (64, 0.4, 4))
"""Channels, seconds and what forward plus backward may cost: the backward pass filters each tile once more before the
adjoint runs, 3.5 passes in all were measured, and short signals also pay for Python, 50 us a step."""

Prepare = Callable[[dict[str, Any], npt.NDArray[np.float32]], Callable[[], Any]]


def off_chain(chain: Chain, x: npt.NDArray[np.float32], y: npt.NDArray[Any]) -> float:
    """Return how far a result is from the chain's own, in float64."""
    return deviation(chain, x, lambda channel, start, stop: y[channel, start:stop])


@dataclass(frozen=True)
class Claim:
    """One promised ratio.

    Attributes:
        text: what is promised, without the number.
        chain, channels, seconds: the work.
        other: makes what this library is compared with.
        target: the number.
        relation: ">=": at least `target` times faster; "<=": at most `target` times the time.
        ours: makes this library's work.
        threads: PyTorch's threads.
        beyond: makes work whose time is subtracted from both; None subtracts nothing.
        off: how far this library's result is from the truth, (chain, x, result) -> deviation.
        bound: how far it may be.
        needs: what must be installed; the claim is left out where it is not.
    """

    text: str
    chain: Chain
    channels: int
    seconds: float
    other: Prepare
    target: float
    relation: str = ">="
    ours: Prepare = torchfx_library.piped
    threads: int = THREADS
    beyond: Prepare | None = None
    off: Callable[[Chain, npt.NDArray[np.float32], npt.NDArray[Any]], float] = off_chain
    bound: float = BOUND
    needs: tuple[str, ...] = ()


def doubled(job: dict[str, Any], x: npt.NDArray[np.float32]) -> Callable[[], Any]:
    """Return `torch.mul(x, 2, out=y)`: every sample read once and written once."""
    samples = torch.from_numpy(x)
    y = torch.zeros_like(samples)
    return lambda: torch.mul(samples, 2, out=y)


CLAIMS = (
    Claim("IIR, mono 60 s, over sosfilt", chains.IIR, 1, 60, scipy_signal.sosfilt, 5),
    Claim("IIR, mono 5 s, over sosfilt", chains.IIR, 1, 5, scipy_signal.sosfilt, 3.5),
    Claim("IIR, mono 60 s, 1 thread, over sosfilt", chains.IIR, 1, 60, scipy_signal.sosfilt, 4, threads=1),
    Claim("IIR, 2 channels 60 s, over sosfilt", chains.IIR, 2, 60, scipy_signal.sosfilt, 6),
    # Signals of 85 and 127 MB: how fast the machine's memory is decides over a part. 9.5 and 9.9 times sosfilt's speed,
    # and 2.8 and 2.6 times torch.mul's time, were measured on two cores with AVX-512.
    Claim("IIR, 8 channels 60 s, over sosfilt", chains.IIR, 8, 60, scipy_signal.sosfilt, 6),  # 6.5 to 10 by processor
    Claim("IIR, 12 channels 60 s, over sosfilt", chains.IIR, 12, 60, scipy_signal.sosfilt, 8),
    Claim("IIR, 8 channels 60 s, cost in torch.mul", chains.IIR, 8, 60, doubled, 3.5, "<=", operators.forward_into),
    Claim("IIR, 12 channels 60 s, cost in torch.mul", chains.IIR, 12, 60, doubled, 3.5, "<=", operators.forward_into),
    *(
        Claim(
            f"{name}, {channels} x {seconds:g} s, 1 thread, over SciPy's",
            chain,
            channels,
            seconds,
            scipys_functions.scipys(name),
            3,
            ours=scipys_functions.torchfxs(name),
            threads=1,
            off=scipys_functions.deviation(name),
        )
        for name, chain in (("sosfiltfilt", chains.IIR), ("filtfilt", FOURTH_ORDER))
        for channels, seconds in ((1, 1), (64, 1), (1, 60))
    ),
    *(
        Claim(
            f"lfilter of order 4, {channels} x {samples}, 1 thread, cost in SciPy's",
            FOURTH_ORDER,
            channels,
            samples / chains.FS,
            scipys_functions.scipys("lfilter"),
            target,
            "<=",
            scipys_functions.torchfxs("lfilter"),
            threads=1,
            off=scipys_functions.deviation("lfilter"),
        )
        for channels, samples, target in ((2, 64, 1.5), (2, 1024, 1.2), (1, chains.FS, 0.5))
    ),
    Claim("IIR of 12 sections, 2 channels 60 s, over sosfilt", DEEP, 2, 60, scipy_signal.sosfilt, 6),
    Claim("five FIRs, 2 channels 60 s, over lfilter", chains.FIR, 2, 60, scipy_signal.lfilter, 40),
    Claim("five FIRs, 2 channels 60 s, over oaconvolve", chains.FIR, 2, 60, scipy_signal.oaconvolve, 3),
    Claim("one FIR, mono 60 s, over oaconvolve", ONE_FIR, 1, 60, scipy_signal.oaconvolve, 3),
    Claim("one FIR, mono 5 s, over oaconvolve", ONE_FIR, 1, 5, scipy_signal.oaconvolve, 2.1),
    *(
        Claim(
            f"gradients of {name}, {channels} x {seconds:g} s, cost in forward passes",
            chain,
            channels,
            seconds,
            operators.forward,
            target,
            "<=",
            operators.forward_and_backward,
        )
        for name, chain in (("IIR", chains.IIR), ("five FIRs", chains.FIR))
        for channels, seconds, target in GRADIENTS
    ),
    Claim(
        "changing resonance with gradients, 16 x 1 s, over torchlpc",
        chains.IIR,
        16,
        1,
        time_varying.torchlpc_training,
        20,
        ours=time_varying.torchfx_training,
        off=time_varying.deviation,
        needs=("torchlpc",),
    ),
    Claim(
        "Stream.process, 2 x 64, cost in torch.mul",
        chains.IIR,
        2,
        BLOCK_S,
        calls.multiply,
        1.7,
        "<=",
        calls.stream_call,
    ),
    Claim("filter(x), 2 x 64, cost in torch.mul", ONE_IIR, 2, BLOCK_S, calls.multiply, 4.5, "<=", calls.filter_call),
    Claim(
        "a new cutoff for each block of 2 x 64, over butter and sosfilt",
        ONE_IIR,
        2,
        BLOCK_S,
        calls.scipy_moving_cutoff,
        2,
        ours=calls.moving_cutoff,
        threads=1,
    ),
    Claim(
        f"{ROOM} in blocks of 512, 2 channels 10 s, cost in one call",
        ROOM,
        2,
        10,
        torchfx_library.joined,
        5,
        "<=",
        calls.streamed(512),
        threads=1,
    ),
    Claim(
        "wave | chain, 2 x 64, cost in torch.mul",
        chains.IIR,
        2,
        BLOCK_S,
        calls.multiply,
        5,
        "<=",
        torchfx_library.joined,
    ),
    Claim(
        "wave | chain of 61 modules, 2 x 64, cost in chains of 3",
        ONE_IIR,
        2,
        BLOCK_S,
        calls.piped_with_gains(2),
        1.3,
        "<=",
        calls.piped_with_gains(60),
        beyond=operators.forward,
    ),
    *(
        Claim(
            f"{name}, {rows} rows of {samples}, own coefficients, cost in shared ones",
            chain,
            rows,
            samples / chains.FS,
            operators.forward,
            target,
            "<=",
            operators.forward_per_row,
        )
        # Each row's taps are transformed too: in short rows that is up to half as much as the signal.
        for name, chain, short in (("IIR", chains.IIR, 1.3), ("one FIR", ONE_FIR, 1.6), ("five FIRs", chains.FIR, 1.6))
        for rows, samples, target in ((16, 1024, short), (64, 1024, short), (16, 44_100, 1.3))
    ),
    Claim(
        f"{OCTAVE_BANDS}, mono 60 s, over a loop of sosfilt",
        OCTAVE_BANDS,
        1,
        60,
        octave_bank.sosfilt_per_band,
        7,  # 9.2 were measured: it writes 328 MB, 31 times what it reads
        ours=octave_bank.banked,
        off=octave_bank.deviation,
    ),
    Claim(
        "IIR, 256 stereo signals of 0.5 to 1 s by batch_process, cost in a loop of wave | chain",
        chains.IIR,
        512,
        1,
        by_loop,
        1,
        "<=",
        by_batch_process,
        off=deviation_of_longest,
    ),
    # 8.4 were measured: five sections at 0.9 ns a sample on two cores, which SciPy filters at 7.8 ns.
    Claim(f"{EQUALIZERS}, 1 s, over a loop of sosfilt", EQUALIZERS, 512, 1, sosfilt_per_item, 7, ours=equalized),
    Claim(
        f"{EQUALIZERS}, 1 s, with gradients of all parameters, cost in forward passes",
        EQUALIZERS,
        512,
        1,
        equalized,
        4,
        "<=",
        trained,
    ),
    *(
        Claim(
            f"{text}, 2 channels 60 s, 1 thread, over pedalboard",
            effects.Effect(text=text, peer=peer),
            2,
            60,
            effects.by_pedalboard,
            target,
            ours=effects.processed,
            threads=1,
            off=effects.off,
            needs=("pedalboard",),
        )
        for text, peer, target in (
            ("compressor:-20,link=true", ("Compressor", -20, 4, 5, 100), 3),
            ("compressor:-20,link=false", ("Compressor", -20, 4, 5, 100), 2.5),
            ("limiter:-6", ("Limiter", -6, 100), 2),
            ("limiter:-6,link=false", ("Limiter", -6, 100), 2),
            ("reverb", ("Reverb",), 2),
            ("chorus", ("Chorus", 1, 0.2, 7, 0, 0.5), 2),
            ("ladder:200", ("LadderFilter",), 1.2),
            ("phaser", ("Phaser", 1, 0.5, 1300, 0, 0.5), 3),
        )
    ),
    *(
        Claim(
            f"{text}, 2 x 1024, 1 thread, over pedalboard",
            effects.Effect(text=text, peer=peer),
            2,
            1024 / 48_000,
            effects.by_pedalboard,
            target,
            ours=effects.processed,
            threads=1,
            off=effects.off,
            needs=("pedalboard",),
        )
        for text, peer, target in (
            ("compressor:-20", ("Compressor", -20, 4, 5, 100), 1.4),
            ("limiter:-6", ("Limiter", -6, 100), 2),
            ("reverb", ("Reverb",), 1.8),
            ("chorus", ("Chorus", 1, 0.2, 7, 0, 0.5), 1.3),
            ("distortion", ("Distortion",), 3),
        )
    ),
    *(
        Claim(
            f"{name}, {text}, 2 x {samples}, 1 thread, over pedalboard",
            effects.Effect(text=text, peer=peer),
            2,
            samples / 48_000,
            other,
            target,
            ours=ours,
            threads=1,
            off=off,
            needs=("pedalboard",),
        )
        for name, ours, other, off, cases in (
            # The checks in Python, a new tensor and the way to the library take 2.4 us, as long as all of pedalboard's
            # call with a peak filter: 0.87 was measured there, for the compressor 1.0, the reverb 0.95, the chain 1.3.
            (
                "Stream.process",
                effects.streamed,
                effects.by_pedalboard_stream,
                effects.off_in_blocks,
                (
                    ("compressor:-20", 64, ("Compressor", -20, 4, 5, 100), 0.9),
                    ("compressor:-20", 256, ("Compressor", -20, 4, 5, 100), 1.5),
                    ("reverb", 64, ("Reverb",), 0.85),
                    ("reverb", 256, ("Reverb",), 1.2),
                    ("peaking:1kHz,1,3", 64, ("PeakFilter", 1000, 3, 1), 0.75),
                    ("peaking:1kHz,1,3", 256, ("PeakFilter", 1000, 3, 1), 1),
                    (
                        "hibutterworth:80 | peaking:1kHz,1,3 | compressor:-20 | limiter:-6",
                        64,
                        (
                            ("HighpassFilter", 80),
                            ("PeakFilter", 1000, 3, 1),
                            ("Compressor", -20, 4, 5, 100),
                            ("Limiter", -6),
                        ),
                        1.15,
                    ),
                ),
            ),
            # A call sets out from states of rest, which it copies: of a limiter, with 5 ms of look-ahead, five times as
            # much as the signal, of a chorus the past that it may reach.
            (
                "effect(x)",
                effects.called,
                effects.by_pedalboard,
                effects.off,
                (
                    ("compressor:-20", 64, ("Compressor", -20, 4, 5, 100), 0.6),
                    ("limiter:-6", 64, ("Limiter", -6, 100), 0.5),
                    ("reverb", 64, ("Reverb",), 1.2),
                    ("chorus", 64, ("Chorus", 1, 0.2, 7, 0, 0.5), 0.6),
                    ("distortion", 64, ("Distortion",), 0.85),
                    ("peaking:1kHz,1,3", 64, ("PeakFilter", 1000, 3, 1), 0.5),
                ),
            ),
        )
        for text, samples, peer, target in cases
    ),
    Claim(
        "gain(x), 2 x 64, 1 thread, cost in torch.mul",
        effects.Effect(text="gain:0.5"),
        2,
        64 / 48_000,
        calls.multiply,
        1.5,
        "<=",
        effects.called,
        threads=1,
        off=effects.off,
    ),
    Claim(
        "delay:250ms, 2 channels 60 s, cost in torch.mul",
        effects.Effect(text="delay:250ms"),
        2,
        60,
        calls.multiply,
        4,
        "<=",
        effects.processed,
        off=effects.off,
    ),
    Claim(
        "integrated loudness, 2 channels 60 s, 1 thread, over pyloudnorm",
        effects.Effect(),
        2,
        60,
        effects.by_pyloudnorm,
        10,
        ours=effects.loudness_of,
        threads=1,
        off=effects.loudness_off,
        needs=("pyloudnorm",),
    ),
    *(
        Claim(
            f"random {filtered}, gain, noise at an SNR, 64 x 2 s at 16 kHz, over {name}",
            augmentation.Augmentation(filter=filtered),
            64,
            2,
            other,
            target,
            ours=augmentation.augmented,
            off=augmentation.ratio_off,
            needs=(needed,),
        )
        for filtered, name, needed, other, target in (
            (
                "high-pass",
                "torch-audiomentations' HighPassFilter, Gain, AddColoredNoise",
                "torch_audiomentations",
                augmentation.by_torch_audiomentations,
                5,
            ),
            (
                "equalizer",
                "audiomentations' SevenBandParametricEQ, Gain, AddGaussianSNR",
                "audiomentations",
                augmentation.by_audiomentations,
                10,
            ),
        )
    ),
    *(
        Claim(
            f"PitchShift(3), {name} 10 s, over librosa's pitch_shift",
            effects.Effect(text="pitchshift:3"),
            channels,
            10,
            effects.by_librosa,
            target,
            ours=effects.processed,
            off=effects.cents_off,
            bound=1.0,  # cent
            needs=("librosa",),
        )
        for channels, name, target in ((1, "mono", 4), (2, "2 channels", 5))
    ),
    *(
        Claim(f"Resample, {work}, 2 channels 30 s, over {name}", work, 2, 30, other, target, ours=resampled)
        # With 160 phases conv1d is one large product of matrices, and about as fast: 0.9 was measured.
        for work, sinc in ((Resampling(fs=44_100, rate=48_000), 0.75), (Resampling(fs=48_000, rate=16_000), 5))
        for name, other, target in (("soxr HQ", soxr_hq, 1.2), ("a windowed sinc by conv1d", windowed_sinc, sinc))
    ),
    *(
        Claim(
            f"Whisper's log-mel, {name} at 16 kHz, over torch.stft, matmul and log10",
            Features(),
            channels,
            seconds,
            by_stft,
            target,
            ours=features,
            off=powers_off,
            bound=1e-5,
        )
        # 14.5 and 10.8 were measured.
        for name, channels, seconds, target in (("30 min", 1, 1800, 12), ("64 x 10 s", 64, 10, 9))
    ),
    *(
        Claim(
            f"Whisper's log-mel, {name} at 16 kHz, over {library}",
            Features(),
            channels,
            seconds,
            other,
            target,
            ours=features,
            off=powers_off,
            bound=1e-5,
            needs=(library,),
        )
        for library, other, targets_of in (
            ("librosa", front_end.by_librosa, (4.5, 6)),
            ("torchaudio", front_end.by_torchaudio, (12, 9)),  # it calls torch.stft
        )
        for (name, channels, seconds), target in zip(
            (("30 min", 1, 1800), ("64 x 10 s", 64, 10)), targets_of, strict=True
        )
    ),
    Claim(
        "Whisper's log-mel in blocks of 100 ms, mono 60 s at 16 kHz, over torch.stft, matmul and log10",
        Features(),
        1,
        60,
        front_end.by_blocks_of_stft,
        2.5,  # 3.4 was measured
        ours=front_end.streamed,
        off=powers_off,
        bound=1e-5,
    ),
    *(
        Claim(
            f"gradients of Whisper's log-mel, {channels} x {seconds} s at 16 kHz, {THREADS_OF[threads]}, cost in "
            "forward passes",
            Features(),
            channels,
            seconds,
            features,
            4,
            "<=",
            front_end.trained,
            threads=threads,
            off=powers_off,
            bound=1e-5,
        )
        # 2.9 to 3.5 were measured: the spectra are computed again, and their gradients transformed back.
        for threads in THREADS_OF
        for channels, seconds in ((1, 1), (8, 1), (1, 60), (64, 10))
    ),
    Claim(
        "kaldi.fbank, mono 60 s at 16 kHz, over kaldi-native-fbank",
        Features(),
        1,
        60,
        front_end.by_kaldi_native_fbank,
        5,
        ours=front_end.fbank,
        threads=1,
        off=front_end.fbank_off,
        bound=2e-3,
        needs=("kaldi_native_fbank",),
    ),
    Claim(
        "CQT of seven octaves, mono 60 s at 22.05 kHz, over librosa's",
        Features(fs=22_050),
        1,
        60,
        front_end.by_librosas_cqt,
        3,
        ours=front_end.constant_q,
        off=front_end.constant_q_off,
        bound=1e-5,
        needs=("librosa",),
    ),
    Claim(
        "multi-resolution STFT loss and its gradient, 16 x 2 x 131072, over auraloss",
        Features(fs=44_100),
        32,
        131_072 / 44_100,
        front_end.by_auraloss,
        2,
        ours=front_end.loss,
        off=front_end.loss_off,
        bound=1e-5,
        needs=("auraloss",),
    ),
)


def possible(only: str | None = None) -> tuple[Claim, ...]:
    """Return the claims that can be measured with what is installed.

    Args:
        only: a regular expression that their texts hold; None: all.
    """
    try:
        wanted = re.compile(only or "")
    except re.error as error:
        raise ArgumentError(f"--only must be a regular expression, got {only!r}: {error}") from None
    return tuple(claim for claim in CLAIMS if all(map(find_spec, claim.needs)) and wanted.search(claim.text))


def run(rounds: int, claims: tuple[Claim, ...]) -> Iterator[TargetRow]:
    """Measure claim by claim."""
    for claim in claims:
        yield measure(claim, rounds)


def measure(claim: Claim, rounds: int) -> TargetRow:
    """Check the result, then time both works in turn."""
    x = signals.noise(claim.channels, round(claim.seconds * claim.chain.fs))
    job = claim.chain.job()
    ours = claim.ours(job, x)
    y = np.asarray(ours())
    off = claim.off(claim.chain, x, y)
    works = {"ours": ours, "other": claim.other(job, x)}
    if claim.beyond is not None:
        works["beyond"] = claim.beyond(job, x)
    times = compare(works, rounds, claim.threads)
    if claim.beyond is not None:
        times = {name: _difference(times[name], times["beyond"]) for name in ("ours", "other")}
    if claim.relation == ">=":
        found = ratio(times["other"], times["ours"])
        kept = found.median >= claim.target
    else:
        found = ratio(times["ours"], times["other"])
        kept = found.median <= claim.target
    return TargetRow(
        claim=claim.text,
        relation=claim.relation,
        target=claim.target,
        ratio=found.median,
        low=found.low,
        high=found.high,
        rounds=found.count,
        deviation=off,
        time_s=spread(times["ours"]).median,
        other_s=spread(times["other"]).median,
        passed=kept and off <= claim.bound,
    )


def _difference(times: Sequence[float], subtracted: Sequence[float]) -> list[float]:
    """Return times without the subtracted ones, round by round; noise makes no time negative."""
    return [max(a - b, LEAST_S) for a, b in zip(times, subtracted, strict=True)]
