"""How fast `torchfx.augment` is beside audiomentations, on the same batch, one thread each.

    pip install audiomentations cloudpickle fast-mp3-augment
    python benchmark/augment_vs_audiomentations.py

64 examples of 4 s at 16 kHz. audiomentations takes NumPy arrays one after the other; its time is that of the loop. The
figures are the least of several turns, taken in turn.
"""

import tempfile
import time
import warnings
from pathlib import Path

import audiomentations as peer
import torch

from torchfx import audio_io, augment
from torchfx.augment import uniform

FS, EXAMPLES, SECONDS, TURNS = 16_000, 64, 4, 7


def pairs(folder):
    noises, responses = folder / "noises", folder / "responses"
    for each in (noises, responses):
        each.mkdir()
    generator = torch.Generator().manual_seed(0)
    for i in range(4):
        audio_io.save(noises / f"{i}.wav", 0.1 * torch.randn(1, 20 * FS, generator=generator), FS)
        room = torch.randn(1, FS // 2, generator=generator) * torch.exp(-torch.arange(FS // 2) / 1500) / 40
        room[0, 0] = 0.25
        audio_io.save(responses / f"{i}.wav", room, FS)
    speeds = uniform(0.8, 1.25)
    return {
        "Shift": (augment.Shift(uniform(-0.5, 0.5), fs=FS), peer.Shift(p=1.0)),
        "Shift, wrapped": (augment.Shift(uniform(-0.5, 0.5), wrap=True, fs=FS), peer.Shift(p=1.0, rollover=True)),
        "TimeMask": (augment.TimeMask(uniform(0, 0.5)), peer.TimeMask(p=1.0)),
        "Crop": (augment.Crop(2.0, fs=FS), peer.AdjustDuration(duration_seconds=2.0, p=1.0)),
        "TimeStretch": (augment.TimeStretch(speeds), peer.TimeStretch(p=1.0)),
        "TimeStretch, wsola": (augment.TimeStretch(speeds, "wsola", 1024), peer.TimeStretch(p=1.0)),
        "Varispeed": (augment.Varispeed(speeds), peer.Resample(12_800, 20_000, p=1.0)),
        "BackgroundNoise": (
            augment.BackgroundNoise(noises, uniform(3, 30), fs=FS),
            peer.AddBackgroundNoise(noises, p=1.0),
        ),
        "Convolve": (augment.Convolve(responses, fs=FS), peer.ApplyImpulseResponse(responses, p=1.0)),
        "Codec, mp3": (augment.Codec("mp3", fs=FS), peer.Mp3Compression(p=1.0, backend="fast-mp3-augment")),
    }


def seconds(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def main():
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    x = 0.1 * torch.randn(EXAMPLES, 1, FS * SECONDS)
    arrays = [example.numpy() for example in x[:, 0]]
    with tempfile.TemporaryDirectory() as folder:
        print("| | torchfx, ms | audiomentations, ms | times faster |\n|---|---|---|---|")
        for name, (ours, theirs) in pairs(Path(folder)).items():
            for _ in range(3):  # files and designs are kept
                ours(x)
            theirs(arrays[0], FS)
            turns = [
                (seconds(lambda: ours(x)), seconds(lambda: [theirs(each, FS) for each in arrays]))  # noqa: B023
                for _ in range(TURNS)
            ]
            own, other = (1000 * min(each) for each in zip(*turns, strict=True))
            print(f"| {name} | {own:.2f} | {other:.2f} | {other / own:.1f} |", flush=True)


if __name__ == "__main__":
    main()
