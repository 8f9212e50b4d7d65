#!/usr/bin/env python3
"""Cost of the GPU kernels by their machine code: no device is needed, only Triton with its assembler.

    python tools/gpu_cost.py --sections 4
    python tools/gpu_cost.py --taps 511

A kernel is compiled for a chip and disassembled. Its loops are found by their backward branches: the one over tiles,
which stores samples, and in it the one over sections; that of a finite response over blocks of taps holds products of
matrices. What they hold gives instructions per sample, by the unit that runs them; registers and shared memory give how
many warps fit on a multiprocessor. With the rates of the vendor's data sheets that bounds the time: the slowest unit's,
as if all others ran beside it, no wait for memory were left open and nothing were computed twice. A measurement on a
device can only be longer.
"""

from __future__ import annotations

import argparse
import math
import re
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec
import triton
from rich.console import Console
from rich.table import Table
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from torchfx._ops.fir import kernels as fir_kernels
from torchfx._ops.fir import triton as fir
from torchfx._ops.sos import kernels
from torchfx._ops.sos import triton as sos
from torchfx._ops.triton_launch import FAST_FLOAT64, OPTIONS

BIN = Path(triton.__file__).parent / "backends" / "nvidia" / "bin"

UNITS = {
    "float64": ("DFMA", "DMUL", "DADD", "DSETP"),
    "float32": ("FFMA", "FMUL", "FADD"),
    "conversion": ("F2F", "I2F", "F2I", "MUFU"),
    "exchange": ("SHFL", "LDS", "STS", "LDSM", "STSM"),
    "memory": ("LDG", "STG", "LDL", "STL"),
    "tensor": ("HGMMA", "HMMA"),
    "control": ("BRA", "BSSY", "BSYNC", "NOP", "BAR", "WARPSYNC", "CALL", "RET", "EXIT"),
}
"""Instructions by the unit that runs them; all others are integers, selections and moves."""


@dataclass(frozen=True)
class Chip:
    """Rates of a GPU.

    Attributes:
        arch: compute capability.
        processors: multiprocessors.
        clock: boost clock in Hz.
        bandwidth: of device memory, in bytes a second.
        lanes: what a multiprocessor runs in one clock, in lanes, by unit; multiply-adds of float16 for "tensor".
    """

    arch: int
    processors: int
    clock: float
    bandwidth: float
    lanes: dict[str, float]


def _lanes(float64: float, float32: float, conversion: float, tensor: float) -> dict[str, float]:
    """Lanes a clock: NVIDIA's CUDA programming guide, "Throughput of native arithmetic instructions"."""
    return {
        "float64": float64, "float32": float32, "conversion": conversion, "exchange": 32, "memory": 32,
        "integer": 64, "control": 64, "issue": 128, "tensor": tensor,
    }  # fmt: skip


CHIPS = {
    # NVIDIA's data sheets: A100 SXM 40 GB, H100 SXM, H200 SXM; the Ada whitepaper for the RTX 4090.
    "A100": Chip(80, 108, 1.41e9, 1.555e12, _lanes(32, 64, 16, 1024)),
    "H100": Chip(90, 132, 1.83e9, 3.35e12, _lanes(64, 128, 16, 2048)),
    "H200": Chip(90, 132, 1.83e9, 4.8e12, _lanes(64, 128, 16, 2048)),
    "RTX 4090": Chip(89, 128, 2.52e9, 1.008e12, _lanes(2, 128, 2, 256)),
}

PRODUCTS = 3
"""Products of float16 halves for each product of float32 numbers."""

REGISTERS, WARPS = 65536, 64  # of a multiprocessor; compute capability 8.9 holds 48 warps, which no kernel here reaches


@dataclass(frozen=True)
class Compiled:
    """A kernel for one target.

    Attributes:
        ptx, sass: its code.
        registers: of a thread.
        spilled: bytes of a thread that lie in local memory.
        shared: bytes of shared memory.
    """

    ptx: str
    sass: str
    registers: int
    spilled: int
    shared: int

    @property
    def warps(self) -> int:
        """How many warps fit on a multiprocessor: registers come in groups of 8."""
        return min(WARPS, REGISTERS // (32 * (-(-self.registers // 8) * 8)))


@dataclass(frozen=True)
class Cost:
    """The cost of a sample on a chip.

    Attributes:
        chip: its name.
        size: sections of the cascade, or taps of the response.
        registers, spilled, shared, warps: as in `Compiled`.
        bytes: read and written.
        instructions: by unit.
        picoseconds: by unit, and for the memory's bandwidth.
        copy_ratio: the slowest unit's time, in times of a copy of the signal.
    """

    chip: str
    size: int
    registers: int
    spilled: int
    shared: int
    warps: int
    bytes: int
    instructions: dict[str, float]
    picoseconds: dict[str, float]
    copy_ratio: float


def compiled(kernel: Any, target: GPUTarget, dtype: str, lines: int = 1, **constants: int) -> Any:
    """Compile a kernel for a target without a device: samples of a dtype ("fp32"), neighbours in memory.

    `lines` are those of a network of delay lines.
    """
    options = OPTIONS | {name: constants.pop(name) for name in ("num_warps", "num_stages") if name in constants}
    names = kernel.arg_names
    constants |= {name: 1 for name in ("time_stride", "g_time_stride") if name in names}
    float64 = {
        "sos", "table", "taps", "a", "m", "maps", "feedback", "drive", "system", "lines", "lines_after", "before",
        "after", "coefficients", "settings", "gain", "by_chunk", "checkpoints", "products", "window", "filters",
    }  # fmt: skip
    samples = ("x", "y", "key", "signals", "g", "sums", "windowed", "spectra")
    integers = {"row_stride", "g_row_stride", "time", "length", "g_length", "ahead"}
    aligned = {*samples, "weights", *integers, *float64}
    types: dict[str, Any] = dict.fromkeys(samples, f"*{dtype}") | dict.fromkeys(float64, "*fp64")
    types |= {"weights": {"fp32": "*fp16"}.get(dtype, "*fp64"), "scale": "*fp32", "log_tolerance": "fp32"}
    types |= {"delays": ("i32",) * lines, "extent": "*i32"}
    source = ASTSource(
        fn=kernel,
        signature={name: "constexpr" if name in constants else types.get(name, "i32") for name in names},
        constexprs={(names.index(name),): value for name, value in constants.items()},
        attrs={(i,): [["tt.divisibility", 16]] for i, name in enumerate(names) if name in aligned - {*constants}},
    )
    return triton.compile(source, target=target, options=options)


def disassembled(binary: Any) -> Compiled:
    """Return code and resources of a kernel compiled for an NVIDIA chip."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(binary.asm["cubin"])
        file.flush()
        used = _output("cuobjdump", "-res-usage", file.name)
        sass = _output("nvdisasm", "-c", file.name)
    found = {name: int(value) for name, value in re.findall(r"(REG|STACK|LOCAL):(\d+)", used)}
    stack = max(found["STACK"], found["LOCAL"])
    return Compiled(binary.asm["ptx"], sass, found["REG"], stack, binary.metadata.shared)


def _output(tool: str, *arguments: str) -> str:
    return subprocess.run([BIN / tool, *arguments], capture_output=True, text=True, check=True).stdout


def parsed(sass: str) -> tuple[list[str], list[tuple[int, int]]]:
    """Return the instructions and the branches among them: from which one to which one."""
    lines: list[str] = []
    labels: dict[str, int] = {}
    for line in sass.splitlines():
        if label := re.match(r"(\.L_x_\d+):", line):
            labels[label[1]] = len(lines)
        elif instruction := re.match(r"\s+/\*[0-9a-f]{4,}\*/\s+(.*?)\s*;", line):
            lines.append(instruction[1])
    branch = re.compile(r"\bBRA\b.*`\((\S+)\)")
    return lines, [(i, labels[target[1]]) for i, line in enumerate(lines) if (target := branch.search(line))]


def operation(instruction: str) -> str:
    """Return an instruction's name, without predicate and modifiers."""
    return re.sub(r"^@\S+\s+", "", instruction).split(".")[0].split()[0]


def loops(sass: str) -> list[Counter[str]]:
    """Return the instructions of the loop over tiles and of the loops over sections in it.

    The latter are those with the most arithmetic: one, or two in an adjoint that runs the cascade once more.
    The former is the smallest one around them that stores samples. Where a branch offers two ways, the shorter is
    counted: the longer one is the state after a last, partial tile, or a division's slow way.
    """
    lines, branches = parsed(sass)
    # A branch back over the kernel's end comes from a slow way that lies after it.
    found = [(to, i + 1) for i, to in branches if to <= i and "EXIT" not in lines[to:i]]
    ends = dict(branches)
    rare = []
    for i, to in branches:
        if i < to and lines[i].startswith("@") and not any(i < s[0] and s[1] <= to for s in found):
            there, otherwise = range(i + 1, to), range(to, to)
            if lines[to - 1].startswith("BRA"):
                otherwise = range(to, ends[to - 1])
            rare.append(max(there, otherwise, key=len))

    def of(span: tuple[int, int]) -> Counter[str]:
        kept = (i for i in range(*span) if not any(i in skipped for skipped in rare))
        return Counter(operation(lines[i]) for i in kept)

    innermost = {s: of(s) for s in found if not any(s != t and s[0] <= t[0] and t[1] <= s[1] for t in found)}
    fused = {s: counts["DFMA"] + counts["FFMA"] for s, counts in innermost.items()}
    sections = [s for s, count in fused.items() if count > max(fused.values()) / 3]
    first, last = min(s[0] for s in sections), max(s[1] for s in sections)
    around = [s for s in found if s[0] < first and last < s[1]]
    tile = min((s for s in around if any("STG" in lines[i] for i in range(*s))), key=lambda s: s[1] - s[0])
    return [of(tile), sum((innermost[s] for s in sections), Counter())]


def by_unit(instructions: Counter[str]) -> Counter[str]:
    """Sum instructions up by the unit that runs them."""
    unit = {name: unit for unit, names in UNITS.items() for name in names}
    found: Counter[str] = Counter()
    for name, count in instructions.items():
        found[unit.get(name, "integer")] += count
    found["issue"] = sum(instructions.values())
    return found


def cost(name: str, code: Compiled, sections: int, sample_bytes: int, lane_samples: int, signals: int) -> Cost:
    """Return what a sample costs in a kernel whose lanes hold `lane_samples` of them, and that moves some signals."""
    tile, section = (by_unit(found) for found in loops(code.sass))
    instructions = {
        unit: (tile[unit] + (sections - 1) * section[unit]) / lane_samples for unit in sorted({*tile, *section})
    }
    return _bounded(name, code, sections, sample_bytes, instructions, signals)


def _bounded(
    name: str, code: Compiled, size: int, sample_bytes: int, instructions: dict[str, float], signals: int
) -> Cost:
    """Return the cost by what each unit has to do."""
    chip, moved = CHIPS[name], signals * sample_bytes
    rate = chip.processors * chip.clock / 1e12
    times = {unit: count / (chip.lanes[unit] * rate) for unit, count in instructions.items()}
    times["bandwidth"] = moved / chip.bandwidth * 1e12
    return Cost(
        name, size, code.registers, code.spilled, code.shared, code.warps, moved, instructions, times,
        max(times.values()) / (2 * sample_bytes / chip.bandwidth * 1e12),
    )  # fmt: skip


def response(name: str, taps: int) -> Cost:
    """Return what a sample of a long float32 signal costs in the finite response's loop over blocks of taps.

    What the kernel does once for a tile is left out. Shared memory moves 128 bytes a clock, and loads with it.
    """
    chip, shape = CHIPS[name], fir.SHAPES[4]
    code = disassembled(
        compiled(fir_kernels.response, GPUTarget("cuda", chip.arch, 32), "fp32", **shape, HAS_STATE=False)
    )
    lines, branches = parsed(code.sass)
    bodies = [lines[to : i + 1] for i, to in branches if to <= i]
    body = min((each for each in bodies if any(operation(line) in UNITS["tensor"] for line in each)), key=len)
    counts = by_unit(Counter(map(operation, body)))
    counts["exchange"] = sum(_words(line) for line in body)
    blocks = -(-(taps + shape["COLUMNS"] - 1) // shape["DEPTH"])
    lanes = 32 * shape["num_warps"] * blocks / (shape["ROWS"] * shape["COLUMNS"])
    instructions = {unit: count * lanes for unit, count in sorted(counts.items())}
    instructions["tensor"] = PRODUCTS * shape["DEPTH"] * blocks
    return _bounded(name, code, taps, 4, instructions, signals=2)


def _words(instruction: str) -> int:
    """Return how many words of 4 bytes, for each lane, go to or from shared memory or its cache.

    Four warps of tensor cores read a matrix (16, N) of float16 numbers for each HGMMA.64xNx16.
    """
    if product := re.search(r"\bHGMMA\.64x(\d+)x16\b", instruction):
        return int(product[1]) // 16
    if operation(instruction) not in {*UNITS["exchange"], "LDG", "STG"}:
        return 0
    width = re.search(r"\.(64|128|M88\.4)\b", instruction)
    return {"64": 2, "128": 4, "M88.4": 4}[width[1]] if width else 1


def cascade_code(name: str, sections: int, dtype: str = "fp32", gradients: bool = False) -> Compiled:
    """Return the kernel of a long signal through a cascade, or of all gradients of one, for one of `CHIPS`."""
    target = GPUTarget("cuda", CHIPS[name].arch, 32)
    kernel, constant = (kernels.adjoint, "OF_SECTIONS") if gradients else (kernels.chunked, "HAS_CHECKPOINTS")
    options = constants(sections, dtype == "fp64", pairs=_in_pairs(name, dtype))
    return disassembled(compiled(kernel, target, dtype, **options | {"HAS_STATE": False, constant: gradients}))


def cascade(name: str, sections: int, dtype: str = "fp32", gradients: bool = False) -> Cost:
    """Return what a sample of a long signal costs in the cascade's kernel, or in its gradients', on one of `CHIPS`."""
    code = cascade_code(name, sections, dtype, gradients)
    size = 8 if dtype == "fp64" else 4
    held = sos.LOG_T[8 if _in_pairs(name, dtype) else size]
    return cost(name, code, sections, size, 1 << held, signals=3 if gradients else 2)


def _in_pairs(name: str, dtype: str) -> bool:
    """Return whether a chip computes in pairs of float32 (`_ops/two_float.py`)."""
    return dtype == "fp32" and divmod(CHIPS[name].arch, 10) not in FAST_FLOAT64


def constants(sections: int, double: bool, lanes: int = 32, pairs: bool = False) -> dict[str, int]:
    """Return the constants that the launch of a long signal gives both kernels."""
    return {
        "N": max(8, 1 << (sections - 1).bit_length()), "LANES": lanes, "LOG_LANES": int(math.log2(lanes)),
        "LOG_T": sos.LOG_T[8 if double or pairs else 4], "SHIFTED": double or pairs, "PAIRS": pairs, "HAS_STATE": True,
    }  # fmt: skip


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sections", type=int, default=4, help="of the cascade (default 4)")
    parser.add_argument("--taps", type=int, help="a finite response with up to this number of taps instead")
    parser.add_argument("--gradients", action="store_true", help="the kernel of all gradients; forward comes on top")
    parser.add_argument("--double", action="store_true", help="float64 samples")
    parser.add_argument("--chip", action="append", choices=[*CHIPS], help="only this chip; may be repeated")
    parser.add_argument("--json", action="store_true", help="print the numbers as JSON")
    chosen = parser.parse_args()
    dtype = "fp64" if chosen.double else "fp32"
    chips = chosen.chip or CHIPS
    rows = [
        cascade(name, chosen.sections, dtype, chosen.gradients) if chosen.taps is None else response(name, chosen.taps)
        for name in chips
    ]
    if chosen.json:
        sys.stdout.write(msgspec.json.encode([asdict(row) for row in rows]).decode() + "\n")
        return 0
    what = (
        f"{chosen.sections} sections, {dtype}" + ", gradients" * chosen.gradients
        if chosen.taps is None
        else f"{chosen.taps} taps, fp32"
    )
    table = Table(title=f"{what}: bounds per sample, from machine code and data sheets")
    units = ["float32", "float64"] if chosen.taps is None else ["tensor"]
    units += ["conversion", "exchange", "integer", "issue"]
    for column in ("chip", "registers", "warps", *units, "slowest, ps", "copy, ps", "ratio"):
        table.add_column(column, justify="left" if column == "chip" else "right")
    for row in rows:
        slowest = max(row.picoseconds, key=row.picoseconds.__getitem__)
        table.add_row(
            row.chip, str(row.registers), str(row.warps), *(f"{row.instructions.get(unit, 0):.1f}" for unit in units),
            f"{row.picoseconds[slowest]:.2f} {slowest}", f"{row.picoseconds[slowest] / row.copy_ratio:.2f}",
            f"{row.copy_ratio:.2f}",
        )  # fmt: skip
    Console(width=120).print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
