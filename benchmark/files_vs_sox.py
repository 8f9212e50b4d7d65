#!/usr/bin/env python3
"""Compare `torchfx process` over many short files with a shell's loop over sox: decode, high-pass, gain, encode.

python benchmark/files_vs_sox.py --files 1000

Equality first, then rounds in turns. The command's time includes its start, most of which is importing PyTorch; the
work's time is what the command says of itself. Single conversions are compared as well.
"""

import argparse
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import soundfile

FS, SECONDS = 16_000, 2
SOX = 'for f in in/*.wav; do sox -D -q "$f" "sox/${f##*/}" highpass 80 gain -3; done'
ONCE = 'for f in in/0000*.wav; do sox -D -q "$f" "sox/${f##*/}"; done'
TORCHFX = [sys.executable, "-m", "torchfx"]


def timed(command, folder):
    start = time.perf_counter()
    ran = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    return time.perf_counter() - start, ran.stderr


def make(folder, count):
    for name in ("in", "sox", "ours"):
        (folder / name).mkdir()
    noise = np.random.default_rng(0)
    for i in range(count):
        samples = noise.uniform(-0.5, 0.5, FS * SECONDS)
        soundfile.write(folder / "in" / f"{i:05}.wav", samples, FS, subtype="PCM_16")


def check_equal(folder):
    for path in sorted((folder / "sox").iterdir()):
        ours, theirs = (soundfile.read(folder / name / path.name)[0] for name in ("ours", "sox"))
        assert np.abs(ours - theirs).max() <= 2 / 2**15, path.name


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make(folder, options.files)
        effects = ("-e", "biquadhpf:80", "-e", "gain:-3dB")
        command = [*TORCHFX, "process", "in", "ours/", *effects, "--force"]
        rounds = []
        for i in range(options.rounds + 1):
            sox, _ = timed(["bash", "-c", SOX], folder)
            whole, said = timed(command, folder)
            if i == 0:
                check_equal(folder)  # and the first round warms up
                continue
            rounds.append((sox, whole, float(re.search(r"in ([\d.]+) s", said)[1])))
            ratios = "{:.2f} with its start, {:.2f} without".format(*(sox / each for each in rounds[-1][1:]))
            print(f"sox {sox:.2f} s, torchfx {whole:.2f} s; {ratios}", flush=True)
        medians = [statistics.median(each[0] / each[k] for each in rounds) for k in (1, 2)]
        print("throughput, sox = 1: {:.2f} with the command's start, {:.2f} without".format(*medians))
        single = [
            (
                timed(["bash", "-c", ONCE], folder)[0] / min(10, options.files),
                timed([*TORCHFX, "convert", "in/00000.wav", "single.wav", "--force"], folder)[0],
            )
            for _ in range(5)
        ]
        print(
            "one conversion: sox {:.0f} ms, torchfx {:.0f} ms".format(
                *(1000 * min(each) for each in zip(*single, strict=True))
            )
        )


if __name__ == "__main__":
    main()
