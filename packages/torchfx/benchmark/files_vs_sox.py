#!/usr/bin/env python3
"""Compare `torchfx process` over many files with a shell's loop over sox: decode, high-pass, gain, encode.

python benchmark/files_vs_sox.py --files 1000
python benchmark/files_vs_sox.py --files 40 --seconds 30 --rate 44100 --channels 2

Equality first, then alternating rounds, each into a new folder: a file system may wait for the disk where a file
replaces another. The command's time includes its start, most of which is importing PyTorch; the work's time is the
command's own figure. Single conversions are compared as well.
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

SOX = 'mkdir {0}; for f in in/*.wav; do sox -D -q "$f" "{0}/${{f##*/}}" highpass 80 gain -3; done'
ONCE = 'for f in in/0000*.wav; do sox -D -q "$f" "sox0/${f##*/}"; done'
TORCHFX = [sys.executable, "-m", "torchfx"]


def timed(command, folder):
    start = time.perf_counter()
    ran = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    return time.perf_counter() - start, ran.stderr


def make(folder, options):
    (folder / "in").mkdir()
    noise = np.random.default_rng(0)
    for i in range(options.files):
        samples = noise.uniform(-0.5, 0.5, (options.rate * options.seconds, options.channels))
        soundfile.write(folder / "in" / f"{i:05}.wav", samples, options.rate, subtype="PCM_16")


def check_equal(folder):
    for path in sorted((folder / "sox0").iterdir()):
        ours, theirs = (soundfile.read(folder / name / path.name)[0] for name in ("ours0", "sox0"))
        assert np.abs(ours - theirs).max() <= 2 / 2**15, path.name


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--rate", type=int, default=16_000)
    parser.add_argument("--channels", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make(folder, options)
        effects = ("-e", "biquadhpf:80", "-e", "gain:-3dB")
        rounds = []
        for i in range(options.rounds + 1):
            sox, _ = timed(["bash", "-c", SOX.format(f"sox{i}")], folder)
            whole, said = timed([*TORCHFX, "process", "in", f"ours{i}/", *effects], folder)
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
