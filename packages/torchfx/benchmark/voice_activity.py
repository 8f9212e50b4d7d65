"""How often `torchfx.voice_activity` is right on synthesised speech in noise, and how fast it is on one core.

    python benchmark/voice_activity.py          # needs espeak-ng

Sentences in several languages lie between pauses of 0.3 to 2.5 s. A frame is speech where the clean signal is above
-58 dB full scale (34 dB below the mean of speech), over gaps shorter than 150 ms. The ratio of speech to noise is that
of the powers while there is speech. Hits are frames of speech with a probability of at least 0.5, false alarms such
frames of pauses.
"""

import subprocess
import tempfile
import time

import numpy as np
import torch

from torchfx import Wave, audio_io, functional, voice_activity
from torchfx.filter import Resample
from torchfx.intervals import runs

FS, HOP = 16_000, 160
SENTENCES = (
    "The quick brown fox jumps over the lazy dog.",
    "Please call Stella and ask her to bring these things from the store.",
    "Six spoons of fresh snow peas, five thick slabs of blue cheese, and maybe a snack for her brother Bob.",
    "He said yes.",
    "When the sunlight strikes raindrops in the air, they act as a prism and form a rainbow.",
    "Numbers: one, two, three, four, five, six, seven.",
)
VOICES = ("en-us", "en-gb", "en-us+f3", "en-us+m3", "de", "es+f2")


def spoken(text, voice, speed):
    with tempfile.NamedTemporaryFile(suffix=".wav") as file:
        subprocess.run(["espeak-ng", "-v", voice, "-s", str(speed), "-w", file.name, text], check=True)
        x, fs = audio_io.load(file.name)
    return (Wave(x, fs) | Resample(FS)).ys[0]


def material(rng):
    parts = []
    for voice in VOICES:
        for text in SENTENCES:
            x = spoken(text, voice, int(rng.integers(130, 200)))
            level = 0.05 * 10 ** (rng.uniform(-6, 6) / 20)
            parts += [torch.zeros(int(rng.uniform(0.3, 2.5) * FS)), x * (level / x.square().mean().sqrt())]
    return torch.cat([*parts, torch.zeros(FS)])


def noise(kind, count, generator):
    if kind == "hum":
        steps = torch.arange(count) / FS
        hum = sum(torch.sin(2 * torch.pi * 50 * k * steps) / k for k in range(1, 9))
        return hum + 0.05 * functional.noise((count,), generator=generator)
    return functional.noise((count,), kind, generator)


def main():
    torch.set_num_threads(1)
    x = material(np.random.default_rng(0))
    x = x[: len(x) // HOP * HOP]
    loud = (10 * torch.log10(x.unflatten(0, (-1, HOP)).square().mean(-1) + 1e-12) > -58).numpy()
    speech = np.zeros(len(loud), bool)
    for start, end in runs(loud, 15):
        speech[start:end] = True
    power = x[torch.from_numpy(np.repeat(speech, HOP))].square().mean()
    print(
        f"{len(x) / FS:.0f} s, {speech.mean():.0%} of it speech\n\n"
        "| noise | dB | hits | false alarms |\n|---|---|---|---|"
    )
    generator = torch.Generator().manual_seed(0)
    for kind in ("white", "pink", "brown", "hum"):
        for snr_db in (20, 10, 5, 0):
            added = noise(kind, len(x), generator)
            noisy = x + added * (power / added.square().mean()).sqrt() * 10 ** (-snr_db / 20)
            found = (voice_activity.probabilities(noisy, FS) >= 0.5).numpy()
            print(f"| {kind} | {snr_db} | {found[speech].mean():.1%} | {found[~speech].mean():.1%} |")
    times = []
    for _ in range(7):
        start = time.process_time()
        voice_activity.probabilities(noisy, FS)
        times.append(time.process_time() - start)
    print(f"\n{len(x) / FS / min(times):.0f} times real time on one core, {FS} Hz")


if __name__ == "__main__":
    main()
