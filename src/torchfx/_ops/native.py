"""The native operators through their C interface; without the library, `library` is None and references run."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

from torchfx.native_library import load

__all__ = ["Call", "call", "instruction_set", "library", "numbers", "why_missing"]

library, why_missing = load("torchfx_dsp", abi_version=23)  # csrc/torchfx_dsp.h

CALLS: Final = {
    "sos_forward": 17,
    "sos_forward_recording": 18,
    "sos_backward": 23,
    "fir_forward": 16,
    "fir_partitioned_size": 5,
    "fir_settle": 9,
    "fir_backward_x": 15,
    "fir_backward_taps": 16,
    "allpole_forward": 18,
    "allpole_backward": 22,
    "state_space_forward": 17,
    "state_space_backward": 22,
    "saturated_forward": 22,
    "saturation_tables": 3,
    "delay_network_forward": 26,
    "resample_forward": 15,
    "phase_vocoder_forward": 15,
    "ballistics_forward": 15,
    "dynamics_forward": 21,
    "limiter_forward": 27,
    "sliding_max": 10,
    "error_feedback_forward": 20,
    "noise_forward": 19,
    "noise_magnitude": 6,
    "magnitude": 8,
    "modulated_gain_forward": 15,
    "modulated_delay_forward": 17,
    "phaser_forward": 18,
    "program_run": 11,
    "advise_huge_pages": 2,
}
"""How many arguments each function of the C interface takes."""


class Call(NamedTuple):
    """A function of the C interface, `run(pack(...))`, with its arguments as integers: addresses, 0 for NULL.

    The number of arguments goes with them: csrc refuses another one than its function's, as `struct` does here. Two
    functions, since a third one around them would cost as much as both.
    """

    pack: Callable[..., bytes]
    run: Callable[[bytes], int]


def _call(found: ctypes.CDLL, name: str, count: int) -> Call:
    function = getattr(found, f"torchfx_{name}_packed")
    function.argtypes, function.restype = [ctypes.c_char_p], ctypes.c_int32
    return Call(partial(struct.Struct(f"{1 + count}q").pack, count), function)


call: Final = {} if library is None else {name: _call(library, name, count) for name, count in CALLS.items()}
"""The functions by name; each returns a status."""


def numbers(names: str) -> dict[str, int]:
    """Return the numbers of "step_names" or "curve_names" by name; none without a native library."""
    if library is None:
        return {}
    function = getattr(library, f"torchfx_{names}")
    function.restype = ctypes.c_char_p
    return {name: number for number, name in enumerate(function().decode().split())}


def instruction_set() -> str:
    """Return the instruction set the native kernels run with, or "none" without a native library."""
    if library is None:
        return "none"
    library.torchfx_isa.restype = ctypes.c_char_p
    name: bytes = library.torchfx_isa()
    return name.decode()
