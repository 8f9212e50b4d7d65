"""Peak rates of GPUs: memory bandwidth, arithmetic by type, the bus to the host."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

__all__ = ["Peaks", "assumed_peaks", "peaks_for", "peaks_of"]


@dataclass(frozen=True)
class Peaks:
    """Peak rates of a GPU: from its data sheet, without sparsity, or measured.

    Attributes:
        bandwidth: of its memory, GB/s.
        pcie: generation of its bus to the host (16 lanes); 0 where it isn't known.
        teraflops: by type of the inputs, 10^12 operations per second; matrix units where the type has them.
        measured: whether the figures were measured on such a device.
        assumed: the device whose figures these are, where only its kernels' names show the chip; "" where it is known.
    """

    bandwidth: float
    pcie: int = 0
    teraflops: Mapping[str, float] = field(default_factory=dict)
    measured: bool = False
    assumed: str = ""

    @property
    def source(self) -> str:
        """Whose figures these are, before a noun: "the measured", "the data sheet's", or "an assumed H100's"."""
        if self.assumed:
            return f"an assumed {self.assumed}'s"
        return "the measured" if self.measured else "the data sheet's"

    def flops(self, dtype: str) -> float:
        """Operations per second; 0 where the type isn't known."""
        return self.teraflops.get(dtype, 0.0) * 1e12


def _rates(
    float64: float,
    float32: float,
    tf32: float,
    half: float,
    *,
    brain: bool = True,
    eight: float = 0,
    whole: float = 0,
    four: float = 0,
) -> dict[str, float]:
    """By type: `eight` for floats of 8 bits, `whole` for int8 where it differs, `four` for floats of 4 bits."""
    found = {"float64": float64, "float32": float32, "float16": half}
    if tf32:
        found["tf32"] = tf32
    if brain:
        found["bfloat16"] = half
    if eight:
        found["float8"] = eight
    if whole or eight:
        found["int8"] = whole or eight
    if four:
        found["float4"] = four
    return found


# By the device's name, the first that is found in it. Figures are the makers' data sheets' (named after each), without
# sparsity and at boost clock; MI200s appear in traces as two devices each, so theirs are halved.
_PEAKS: Final = (
    (r"GB200", Peaks(8000, 5, _rates(40, 80, 1250, 2500, eight=5000, four=10000))),  # NVIDIA GB200 NVL72, by 72
    (r"B200", Peaks(8000, 5, _rates(37, 75, 1125, 2250, eight=4500, four=9000))),  # NVIDIA HGX B200, by 8
    (r"GH200", Peaks(4000, 5, _rates(67, 67, 494, 989, eight=1979))),  # NVIDIA GH200, HBM3
    (r"H200 NVL", Peaks(4800, 5, _rates(60, 60, 417, 835, eight=1670))),  # NVIDIA H200 NVL
    (r"H200", Peaks(4800, 5, _rates(67, 67, 494, 989, eight=1979))),  # NVIDIA H200 SXM
    (r"H100 NVL", Peaks(3900, 5, _rates(60, 60, 417, 835, eight=1670))),  # NVIDIA H100 NVL
    (r"H100 PCIe", Peaks(2000, 5, _rates(51, 51, 378, 756, eight=1513))),  # NVIDIA H100 PCIe
    (r"H100", Peaks(3350, 5, _rates(67, 67, 494, 989, eight=1979))),  # NVIDIA H100 SXM
    (r"A100.*PCIE?-?80|A100 80GB PCIe", Peaks(1935, 4, _rates(19.5, 19.5, 156, 312, whole=624))),  # A100 80 GB PCIe
    (r"A100.*80", Peaks(2039, 4, _rates(19.5, 19.5, 156, 312, whole=624))),  # NVIDIA A100 80 GB SXM
    (r"A100", Peaks(1555, 4, _rates(19.5, 19.5, 156, 312, whole=624))),  # NVIDIA A100 40 GB
    (r"A30\b", Peaks(933, 4, _rates(10.3, 10.3, 82, 165, whole=330))),  # NVIDIA A30
    (r"A40\b", Peaks(696, 4, _rates(0.58, 37.4, 74.8, 149.7, whole=299.3))),  # NVIDIA A40
    (r"RTX A6000", Peaks(768, 4, _rates(0.6, 38.7, 77.4, 154.8, whole=309.7))),  # NVIDIA RTX A6000
    (r"A10G", Peaks(600, 4)),  # NVIDIA A10G; its arithmetic isn't in a data sheet
    (r"A10\b", Peaks(600, 4, _rates(0.49, 31.2, 62.5, 125, whole=250))),  # NVIDIA A10
    (r"L40S", Peaks(864, 4, _rates(1.4, 91.6, 183, 362, eight=733))),  # NVIDIA L40S
    (r"L40\b", Peaks(864, 4, _rates(1.4, 90.5, 90.5, 181, eight=362))),  # NVIDIA L40
    (r"L4\b", Peaks(300, 4, _rates(0.47, 30.3, 60, 121, eight=242))),  # NVIDIA L4
    (r"T4\b", Peaks(320, 3, _rates(0.25, 8.1, 0, 65, brain=False, whole=130))),  # NVIDIA T4
    (r"V100-PCI|V100 PCI", Peaks(900, 3, _rates(7, 14, 0, 112, brain=False))),  # NVIDIA V100 PCIe
    (r"V100(?!S)", Peaks(900, 3, _rates(7.8, 15.7, 0, 125, brain=False))),  # NVIDIA V100 SXM2
    (r"P100-PCIE-16GB", Peaks(732, 3, _rates(4.7, 9.3, 0, 18.7, brain=False))),  # NVIDIA Tesla P100 PCIe
    (r"P100-SXM2", Peaks(732, 3, _rates(5.3, 10.6, 0, 21.2, brain=False))),  # NVIDIA Tesla P100 SXM2
    (r"GP100", Peaks(717, 3, _rates(5.2, 10.3, 0, 20.7, brain=False))),  # NVIDIA Quadro GP100
    # Consumer cards: NVIDIA's Ampere GA102, Ada and Blackwell white papers; half precision accumulated in float32.
    # Their variants (Ti, SUPER, D, Laptop) have other figures.
    (r"RTX 5090(?! (Ti|SUPER|D|Laptop))", Peaks(1792, 5, _rates(1.64, 104.8, 104.8, 209.5, eight=419))),
    (r"RTX 4090(?! (Ti|SUPER|D|Laptop))", Peaks(1008, 4, _rates(1.29, 82.6, 82.6, 165.2, eight=330.3))),
    (r"RTX 4080(?! (Ti|SUPER|D|Laptop))", Peaks(717, 4, _rates(0.76, 48.7, 48.7, 97.5, eight=194.9))),
    (r"RTX 3090(?! (Ti|SUPER|D|Laptop))", Peaks(936, 4, _rates(0.56, 35.6, 35.6, 71))),
    (r"RTX 3080(?! (Ti|SUPER|D|Laptop))", Peaks(760, 4, _rates(0.47, 29.8, 29.8, 59.5))),
    (r"RTX 2080 Ti", Peaks(616, 3, _rates(0.42, 13.4, 0, 53.8, brain=False))),  # NVIDIA Turing white paper
    (r"MI355X", Peaks(8000, 5, _rates(78.6, 157.3, 0, 2516, eight=5033, four=10066))),  # AMD Instinct MI355X
    (r"MI350X", Peaks(8000, 5, _rates(72.1, 144.2, 0, 2307, eight=4614, four=9227))),  # AMD Instinct MI350X
    (r"MI325X", Peaks(6000, 5, _rates(163.4, 163.4, 653.7, 1307, eight=2615))),  # AMD Instinct MI325X
    (r"MI300X", Peaks(5300, 5, _rates(163.4, 163.4, 653.7, 1307, eight=2615))),  # AMD Instinct MI300X
    (r"MI300A", Peaks(5300, 5, _rates(122.6, 122.6, 490.3, 980.6, eight=1961))),  # AMD Instinct MI300A
    (r"MI250X", Peaks(1638, 4, _rates(47.9, 47.9, 0, 191.5, whole=191.5))),  # AMD Instinct MI250X, one of two dies
    (r"MI250|MI210", Peaks(1638, 4, _rates(45.3, 45.3, 0, 181, whole=181))),  # AMD Instinct MI250 (one die), MI210
)  # fmt: skip


def peaks_of(name: str) -> Peaks | None:
    """Return the figures of a GPU by its name in the trace; None if it isn't known, or is a part of one (MIG).

    >>> peaks_of("NVIDIA A100-SXM4-80GB").flops("bfloat16") / 1e12
    312.0
    """
    if "MIG" in name:
        return None
    return next((peaks for pattern, peaks in _PEAKS if re.search(pattern, name)), None)


# The chip in a kernel's name, and the usual device that has it. Kernels for sm80 run on later chips as well.
_CHIPS: Final = (
    (re.compile(r"gfx950"), "MI350X"),
    (re.compile(r"gfx942"), "MI300X"),
    (re.compile(r"gfx90a"), "MI250"),
    (re.compile(r"(?<![a-z])sm_?100a?(?![0-9])"), "B200"),
    (re.compile(r"(?<![a-z])sm_?90a?(?![0-9])"), "H100"),
)


def assumed_peaks(names: Iterable[str]) -> Peaks | None:
    """Return the figures of the device that usually has the chip that names of kernels show; None where none does.

    >>> assumed_peaks(["Cijk_Ailk_Bljk_SB_MT64x64x16_SN_gfx942"]).source
    "an assumed MI300X's"
    """
    everything = "\n".join(names)
    device = next((device for pattern, device in _CHIPS if pattern.search(everything)), "")
    found = peaks_of(device) if device else None
    return replace(found, assumed=device) if found else None


def peaks_for(name: str, measured: Mapping[str, Peaks]) -> Peaks | None:
    """Return the figures of a device that was named: measured ones where the table has it, else its data sheet's.

    Args:
        name: as the table or the trace calls it, such as "NVIDIA H100 PCIe", or a part of it: "H100 PCIe".
        measured: by device, as `[tool.torchwhy.device]` has them.
    """
    folded = name.casefold()
    exact = next((peaks for known, peaks in measured.items() if known.casefold() == folded), None)
    return exact or next((p for known, p in measured.items() if folded in known.casefold()), None) or peaks_of(name)
