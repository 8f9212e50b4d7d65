"""A network learns to spot spoken words, and then receives them block by block, as from a microphone.

    python keyword_spotter.py
    python keyword_spotter.py --voices 4 --steps 60

Words come from `espeak-ng` where that is installed, in many voices; else from a small formant synthesiser. They are
shifted, coloured and covered with noise by `torchfx.augment` while the network learns. It reads what `LogMel` gives,
and is tested with voices it has never heard. At last a signal with all words goes through a stream: its outputs are
those of the whole signal.
"""

from __future__ import annotations

import argparse
import io
import shutil
import subprocess
import time

import numpy as np
import torch
from torch import Tensor, nn

import torchfx as fx
from torchfx import augment
from torchfx.spectral import LogMel

FS = 16_000
WORDS = ("yes", "no", "stop", "left", "seven", "zoo")
BANDS = 32
BATCH = 32
DILATIONS = (1, 2, 4, 8)
REACH = 1 + 4 * sum(DILATIONS)  # frames that an output of the network depends on

# Formants in Hz of vowels and voiced consonants, and the middle in Hz of hissed ones: rounded from G. E. Peterson,
# H. L. Barney, Control Methods Used in a Study of the Vowels, JASA 24 (1952), and by ear. Other letters are silent.
FORMANTS = {
    "a": (730, 1090, 2440), "e": (530, 1840, 2480), "i": (270, 2290, 3010), "o": (570, 840, 2410),
    "u": (300, 870, 2240), "n": (250, 1400, 2500), "l": (360, 1100, 2600), "y": (280, 2200, 3000),
    "v": (250, 1100, 2300), "z": (250, 1500, 2500),
}  # fmt: skip
HISSES = {"s": 6000, "f": 3500, "t": 4500, "z": 6000}
SOUNDS = {"yes": "yes", "no": "nou", "stop": "sta_", "left": "left", "seven": "seven", "zoo": "zu"}


def spoken(word: str, voice: int) -> Tensor:
    """Return a word by `espeak-ng`, (time,); every number is another voice, pitch and speed."""
    import soundfile

    names = [f"en-{where}+{who}" for where in ("us", "gb") for who in ("m1", "f1", "m3", "f2", "m5", "f3", "m7", "f4")]
    words = ["espeak-ng", "-v", names[voice % 16], "-p", str(25 + 7 * voice % 50), "-s", str(120 + 11 * voice % 60)]
    ran = subprocess.run([*words, "--stdout", word], check=True, capture_output=True)
    samples, fs = soundfile.read(io.BytesIO(ran.stdout), dtype="float32")
    return fx.Wave(torch.from_numpy(samples)[None], fs).resample(FS).ys[0]


def synthesised(word: str, voice: int) -> Tensor:
    """Return a word by formant synthesis, (time,): pulses and noise through resonators, sound by sound."""
    random = np.random.default_rng(voice)
    pitch, size, pace = random.uniform(90, 240), random.uniform(0.85, 1.2), random.uniform(0.8, 1.3)
    parts = []
    for sound in SOUNDS[word]:
        count = int(FS * random.uniform(0.08, 0.14) * pace)
        phase = np.cumsum(np.full(count, pitch * random.uniform(0.95, 1.05) / FS))
        voiced = torch.from_numpy(np.diff(np.floor(phase), prepend=0.0)).float() if sound in FORMANTS else None
        part = torch.zeros(count)
        if voiced is not None:
            chain = fx.FilterChain(*(fx.filter.BiquadBPFPeak(f * size, f * size / 90, fs=FS) for f in FORMANTS[sound]))
            part = sum(each(voiced) for each in chain)
        if sound in HISSES:
            hiss = torch.from_numpy(random.standard_normal(count)).float()
            part = part + 0.1 * fx.filter.BiquadBPFPeak(min(7000, HISSES[sound] * size), 2, fs=FS)(hiss)
        fade = torch.linspace(0, 1, count // 5)
        parts.append(part * torch.cat([fade, torch.ones(count - 2 * len(fade)), fade.flip(0)]))
    return torch.cat(parts)


def recordings(voices: range) -> tuple[Tensor, Tensor]:
    """Return words in the middle of a second, (examples, 1, time), peak 0.5, and their places in `WORDS`.

    One example in every voice is no word: a second of faint noise, with the number after the last word's.
    """
    speak = spoken if shutil.which("espeak-ng") else synthesised
    made, labels = [], []
    for voice in voices:
        for label, word in enumerate(WORDS):
            x = speak(word, voice)[:FS]
            left = (FS - len(x)) // 2
            made.append(nn.functional.pad(0.5 * x / x.abs().max(), (left, FS - len(x) - left)))
            labels.append(label)
        made.append(1e-3 * torch.randn(FS))
        labels.append(len(WORDS))
    return torch.stack(made)[:, None], torch.tensor(labels)


class Spotter(nn.Module):
    """Convolutions over frames without padding: (batch, bands, frames) to (batch, classes, frames - REACH + 1)."""

    def __init__(self, width: int = 32) -> None:
        """Make the layers."""
        super().__init__()
        layers: list[nn.Module] = []
        for i, dilation in enumerate(DILATIONS):
            convolution = nn.Conv1d(width if i else BANDS, width, 5, dilation=dilation)
            layers += [convolution, nn.BatchNorm1d(width), nn.ReLU()]
        self.layers = nn.Sequential(nn.BatchNorm1d(BANDS), *layers, nn.Conv1d(width, len(WORDS) + 1, 1))

    def forward(self, frames: Tensor) -> Tensor:
        """Return scores for each frame that all of `REACH` frames are there for."""
        found: Tensor = self.layers(frames)
        return found


def of_examples(scores: Tensor) -> Tensor:
    """Return scores of whole examples, (batch, classes): a smooth maximum over time."""
    return scores.logsumexp(-1)


def learn(spotter: Spotter, front: nn.Module, x: Tensor, labels: Tensor, steps: int) -> None:
    """Train on augmented examples."""
    change = augment.Compose(
        [
            augment.Shift(augment.uniform(-0.15, 0.15), fs=FS),
            augment.Random(
                fx.filter.Peaking, cutoff=augment.log_uniform(200, 6000), q=0.7, gain_db=augment.uniform(-8, 8)
            ),
            augment.Random(fx.effect.Gain, gain=augment.log_uniform(0.1, 1.5)),
            augment.AddNoise(augment.uniform(5, 40), "pink", p=0.7),
        ]
    )
    optimizer = torch.optim.AdamW(spotter.parameters(), 3e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=steps)
    spotter.train()
    for step in range(steps):
        some = torch.randint(len(x), (BATCH,))
        with torch.no_grad(), fx.sample_rate(FS):
            frames = front(change(x[some]))[:, 0]
        loss = nn.functional.cross_entropy(of_examples(spotter(frames)), labels[some])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 25 == 0:
            print(f"step {step:3}: loss {float(loss.detach()):.3f}", flush=True)
    spotter.eval()


class Listener:
    """A spotter that receives a signal block by block."""

    def __init__(self, spotter: Spotter, front: nn.Module) -> None:
        """Begin before the first sample."""
        self.spotter, self.stream = spotter, fx.Stream(front, FS, channels=1)
        self.heard = torch.zeros(1, BANDS, 0)

    @torch.no_grad()
    def process(self, block: Tensor) -> Tensor:
        """Return the scores (classes, frames) that a block (1, time) completes."""
        self.heard = torch.cat([self.heard, self.stream.process(block)], dim=-1)
        if self.heard.shape[-1] < REACH:
            return torch.zeros(len(WORDS) + 1, 0)
        scores: Tensor = self.spotter(self.heard)[0]
        self.heard = self.heard[..., self.heard.shape[-1] - REACH + 1 :]
        return scores


def main() -> None:
    """Learn, test on other voices, listen."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--voices", type=int, default=16, help="to learn from")
    parser.add_argument("--steps", type=int, default=150, help="of 32 examples")
    parser.add_argument("--block", type=int, default=441, help="samples of a block")
    options = parser.parse_args()
    torch.manual_seed(0)
    began = time.perf_counter()
    front, spotter = LogMel("kaldi", BANDS), Spotter()
    x, labels = recordings(range(options.voices))
    others, expected = recordings(range(100, 104))
    print(f"{len(x)} words to learn from, {len(others)} in other voices, {time.perf_counter() - began:.1f} s")
    learn(spotter, front, x, labels, options.steps)
    with torch.no_grad(), fx.sample_rate(FS):
        noisy = augment.AddNoise(20.0, "pink", generator=0)(others)
        found = of_examples(spotter(front(noisy)[:, 0])).argmax(-1)
        signal = noisy.reshape(1, -1)
        whole = spotter(front(signal))[0]
    right = float((found == expected).float().mean())

    listener = Listener(spotter, front)
    parts = torch.cat([listener.process(block) for block in signal.split(options.block, dim=-1)], dim=-1)
    assert parts.shape == whole.shape
    difference = float((parts - whole).abs().max() / whole.abs().max())
    assert difference < 1e-4, difference
    print(
        f"{time.perf_counter() - began:.1f} s: {100 * right:.1f} % of the words right in other voices; block by block "
        f"the scores differ by {difference:.0e}"
    )


if __name__ == "__main__":
    main()
