#!/usr/bin/env python3
"""Kill `torchfx process` at random moments: no output may be half written, and no input lost.

By turns a folder of WAV, FLAC and MP3 files is processed with --skip-existing, and a file in its own place. After each
SIGKILL every output must be what an undisturbed run writes, to the byte, or absent; inputs must be as they were; and a
second run must complete the folder and leave no temporary file. Processes are forked from one that has PyTorch loaded,
so that kills hit the work, not the start.

python benchmark/kill_process.py --kills 200
"""

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from torchfx import audio_io, filter  # noqa: F401  (the work's modules are loaded before the fork)
from torchfx.cli import main as torchfx
from torchfx.realtime import files  # noqa: F401

FS, FRAMES = 48_000, 100_000
NAMES = [f"{i}.{suffix}" for i, suffix in enumerate(["wav", "flac", "mp3"] * 2)]
CHAIN = ["-e", "hibutterworth:80,order=4", "-e", "gain:-3dB"]


def begun(*words: str | Path) -> int:
    """Start the command in a separate process; return its number."""
    process = os.fork()
    if process == 0:
        for stream in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
        sys.argv = ["torchfx", "process", *map(str, words), *CHAIN]
        status = 1
        try:
            torchfx()
        except SystemExit as ended:
            status = int(ended.code or 0)
        finally:
            os._exit(status)
    return process


def ended(process: int) -> int:
    """Wait for a process; return its exit status, negative if a signal ended it."""
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def seconds_of(*words: str | Path) -> float:
    start = time.perf_counter()
    assert ended(begun(*words)) == 0
    return time.perf_counter() - start


def contents(folder: Path) -> dict[str, bytes]:
    """Return what is in a folder, without the manifest; of temporary files the names, as forks may yet rename them."""
    found = [path for path in folder.iterdir() if path.suffix != ".jsonl"]
    return {path.name: b"" if path.name.startswith(".torchfx-") else path.read_bytes() for path in found}


def killed(process: int, after_s: float) -> bool:
    """Kill a process after a time; return whether it was still at work."""
    time.sleep(after_s)
    os.kill(process, signal.SIGKILL)
    return ended(process) == -signal.SIGKILL


def check(found: dict[str, bytes], whole: dict[str, bytes]) -> None:
    """Assert that what is there is whole."""
    for name, content in found.items():
        assert name.startswith(".torchfx-") or content == whole[name], f"{name} has {len(content)} bytes"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    hits = partly = temporary = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        inputs, whole, out, place = (folder / each for each in ("in", "whole", "out", "place"))
        inputs.mkdir()
        for i, each in enumerate(NAMES):
            noise = np.random.default_rng(i).uniform(-0.5, 0.5, (2, FRAMES)).astype(np.float32)
            bits = None if each.endswith("mp3") else 16  # a WAV of floats holds the time of its making
            audio_io.save(inputs / each, noise, FS, bits_per_sample=bits, tags={"title": each})
        archive = [inputs, f"{out}/", "--skip-existing"]
        length_s = seconds_of(inputs, f"{whole}/")
        expected, given = contents(whole), contents(inputs)
        assert set(expected) == set(given) == set(NAMES)
        for i in range(options.kills):
            if i % 2:
                each = chance.choice(NAMES)
                shutil.rmtree(place, ignore_errors=True)
                place.mkdir()
                shutil.copy(inputs / each, place / each)
                hits += killed(begun(place / each, place / each, "--force"), chance.uniform(0, length_s / len(NAMES)))
                left = contents(place)
                assert left.pop(each) in {given[each], expected[each]}, f"{each} is neither the input nor the output"
                check(left, {})
            else:
                shutil.rmtree(out, ignore_errors=True)
                hits += killed(begun(*archive), chance.uniform(0, length_s))
                found = contents(out) if out.exists() else {}
                check(found, expected)
                temporary += any(each.startswith(".") for each in found)
                partly += 0 < len(set(found) & set(NAMES)) < len(NAMES)
                assert ended(begun(*archive)) == 0
                assert contents(out) == expected, "the second run did not complete the folder"
            assert contents(inputs) == given, "an input has changed"
    print(f"{options.kills} kills, {hits} of them during the work: no half-written output, no input lost")
    print(f"{partly} folders were done in part, {temporary} held a temporary file; a second run completed each")
    return 0 if hits else 1


if __name__ == "__main__":
    sys.exit(main())
