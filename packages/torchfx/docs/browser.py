"""Lets readers run filters and effects in their browser, on their own recordings; the page is in-the-browser.md.

The engine is the native library, compiled for WebAssembly. It runs programs (csrc/torchfx_program.h), which Python
makes for a grid of settings when the site is built, so that the page needs no formulas. All data lie in
scripts: a page that is opened from a folder may load nothing else.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import warnings
from itertools import product
from pathlib import Path
from typing import Any

import torch
from sounds import for_each_processor, plain, required, source, value_at
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

import torchfx as fx
from reference_pages import before_reading, write
from torchfx._ops.program import PROGRAM_HEADER, STEP_HEADER, Program
from torchfx.catalogue import Entry, available
from torchfx.parameters import Number
from torchfx.plan.lowering import lower
from torchfx.realtime.engine import in_full

HERE = Path(__file__).parent
PACKAGE, ROOT = HERE.parent, HERE.parents[2]
FOLDER = HERE / "_generated" / "browser"
"""Copied into the site by `html_extra_path`."""

BUILT = ROOT / "docs" / "_build" / "browser"
"""The folder in which CMake builds: a later build compiles only what has changed."""

CHANNELS = 2
POSITIONS = (33, 9)
"""Positions of a single slider, and of each of two sliders."""

MOST_BYTES = 250_000
"""A processor whose programs are larger stays out."""


def sliders(entry: Entry) -> list[tuple[Number, tuple[float, ...]]]:
    """Return a gain in dB and the first parameters of a processor that are numbers, with their sliders' values."""
    found = [each.number for each in entry.declarations if each.number is not None and each.default is not None]
    chosen = sorted(found, key=lambda number: number.name != "gain_db")[: len(POSITIONS)]
    places = [i / (POSITIONS[len(chosen) - 1] - 1) for i in range(POSITIONS[len(chosen) - 1])]
    return [(number, tuple(dict.fromkeys(value_at(number, i) for i in places))) for number in chosen]


def module_at(entry: Entry, values: dict[str, float]) -> fx.Processor:
    """Return a processor with these values, and its other parameters as in its example."""
    module: fx.Processor = entry.load()(**{**required(entry), **values})
    return module


def program_of(module: fx.Processor) -> tuple[Program, int] | None:
    """Return the native program of a whole signal and its latency in samples; None if a step is not native."""
    plan = lower(module, source().fs)
    shape = (CHANNELS,)
    if plan.gives != "samples" or plan.refusal or not plan.keeps_rate or tuple(plan.leading(shape)) != shape:
        return None
    plan = in_full(plan)
    state = [value.contiguous() for value in plan.init_state(shape, torch.float32, torch.device("cpu"))]
    program = Program(shape, torch.float32)
    target = program.attempt(plan.emit, 0, state)
    if target is None:
        return None
    program.finish(program.gain(target, 1.0) if target == 0 else target, plan.latency)
    return program, plan.latency


def relocatable(program: Program, late: int, pieces: dict[bytes, int]) -> dict[str, Any]:
    """Return a program whose addresses can be filled in elsewhere.

    Args:
        program: finished for whole signals.
        late: by how many samples its output is late.
        pieces: numbers the pieces of memory that it reads, each once; new ones are added.

    Returns:
        words: the program's integers in base64, 0 for each address.
        constants: [place in the words, number of the piece], for each address of memory that is only read.
        states: [place in the words, offset], for each address of a state.
        size: bytes of the states.
        rest: [offset, number of the piece], for each 64 bytes of them that are not zero.
        late: as given.
    """

    def number(piece: bytes) -> int:
        return pieces.setdefault(piece, len(pieces))

    words = program.words[:]
    begin, size = program._states.data_ptr(), program._states.nbytes
    constants, states = [], []
    place = PROGRAM_HEADER
    for record, values in zip(program._records, program._kept, strict=True):
        place += STEP_HEADER
        for field in record.kind.fields:
            if field.type not in {"integer", "real", "buffer"} and words[place]:
                if field.is_state:
                    states.append([place, words[place] - begin])
                else:
                    constants.append([place, number(values[field.name].contiguous().numpy().tobytes())])
                words[place] = 0
            place += 1
    data = bytes(program._states.numpy())
    parts = ((offset, data[offset : offset + 64]) for offset in range(0, size, 64))
    rest = [[offset, number(part)] for offset, part in parts if any(part)]
    return {
        "words": _text(words.tobytes()),
        "constants": constants,
        "states": states,
        "size": size,
        "rest": rest,
        "late": late,
    }


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def described(name: str) -> dict[str, Any] | None:
    """Return a processor for the page, with a program for each setting; None without a program or a slider."""
    entry = available()[name]
    chosen, pieces = sliders(entry), dict[bytes, int]()
    if not chosen:
        return None
    names = [number.name for number, _ in chosen]
    programs: list[dict[str, Any] | None] = []
    for values in product(*(values for _, values in chosen)):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = program_of(module_at(entry, dict(zip(names, values, strict=True))))
        except fx.TorchFXError:  # values that don't fit each other, or the sample rate
            programs.append(None)
            continue
        if found is None:
            return None
        programs.append(relocatable(*found, pieces))
    if not any(programs) or sum(map(len, pieces)) > MOST_BYTES:
        return None
    return {
        "name": entry.name,
        "module": entry.module.rpartition(".")[2],
        "summary": entry.summary,
        "page": f"reference/{entry.module}/{entry.name}.html",
        "given": {name: plain(value) for name, value in required(entry).items()},
        "sliders": [
            {"name": number.name, "values": values, "labels": [number.show(value) for value in values]}
            for number, values in chosen
        ],
        "pieces": [_text(piece) for piece in pieces],
        "programs": programs,
    }


def engine() -> bytes:
    """Compile the native library for WebAssembly with Zig's compiler, and return it."""
    try:
        import ziglang
    except ImportError as error:
        raise ExtensionError("in-the-browser.md needs ziglang: pip install -r docs/requirements.txt") from error
    zig = {
        "ZIG": str(Path(ziglang.__file__).parent / "zig"), "ZIG_SYSTEM": "WASI", "ZIG_PROCESSOR": "wasm32",
        "ZIG_TARGET": "wasm32-wasi",
    }  # fmt: skip
    tools = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    made = {"env": {**os.environ, **zig, "PATH": tools}, "check": True, "capture_output": True, "text": True}
    cmake = shutil.which("cmake", path=tools) or "cmake"
    BUILT.mkdir(parents=True, exist_ok=True)
    toolchain = f"-DCMAKE_TOOLCHAIN_FILE={ROOT / 'tools' / 'zig.cmake'}"
    try:
        subprocess.run([cmake, "-G", "Ninja", "-S", str(PACKAGE), "-B", str(BUILT), toolchain], **made)
        subprocess.run([cmake, "--build", str(BUILT)], **made)
    except subprocess.CalledProcessError as error:
        raise ExtensionError(f"the engine cannot be compiled for WebAssembly:\n{error.stdout}{error.stderr}") from error
    return next(path for path in BUILT.glob("torchfx_dsp*") if path.is_file()).read_bytes()


def _write_scripts(app: Sphinx) -> None:
    wave = source()
    samples = (wave.ys.expand(CHANNELS, -1) * 32767).round().to(torch.int16).contiguous().numpy()
    found = [each for each in for_each_processor(described).values() if each]
    data = {"rate": int(wave.fs), "recording": _text(samples.tobytes()), "processors": found}
    FOLDER.mkdir(parents=True, exist_ok=True)
    write(FOLDER / "engine.js", f"globalThis.torchfxEngine = {json.dumps(_text(engine()))};\n")
    write(FOLDER / "processors.js", f"globalThis.torchfxData = {json.dumps(data, separators=(',', ':'))};\n")
    for path in (HERE / "browser").iterdir():
        write(FOLDER / path.name, path.read_text(encoding="utf-8"))


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    before_reading(app, _write_scripts)
    return {"parallel_read_safe": True}
