"""Collectives of NCCL and its relatives, and copies and fills, whose names are those of events."""

from __future__ import annotations

import re
from typing import Final

from torchwhy.trace.meaning.communication import COMMUNICATION_KERNEL, collective_name, library_of
from torchwhy.trace.meaning.kernels.name import KernelName, shortened

__all__ = ["communication", "transfer"]

_REDUCING: Final = ("all_reduce", "reduce", "reduce_scatter")
_DTYPES: Final = {
    "f32": "float32",
    "float": "float32",
    "f16": "float16",
    "half": "float16",
    "bf16": "bfloat16",
    "__nv_bfloat16": "bfloat16",
    "f64": "float64",
    "double": "float64",
    "i8": "int8",
    "int8_t": "int8",
    "u8": "uint8",
    "uint8_t": "uint8",
    "i32": "int32",
    "int32_t": "int32",
    "i64": "int64",
    "int64_t": "int64",
}
_COPY = re.compile(r"(?:CUDA |HIP )?[Mm]emcpy\b\s*(\w+)?(?:\s*\((.*)\))?|Copy(Host|Device)To(Host|Device)")
_FILL = re.compile(r"[Mm]emset\b|__amd_rocclr_fillBuffer")
_TRAFFIC: Final = {
    "HtoD": "copy from host to device",
    "DtoH": "copy from device to host",
    "DtoD": "copy within the device's memory",
    "PtoP": "copy between devices",
    "HtoH": "copy within the host's memory",
}


def communication(name: str) -> KernelName | None:
    """Read the name of a collective: what, over which ring or tree, by which protocol, on what type."""
    if not COMMUNICATION_KERNEL.names(name):
        return None
    kind = collective_name(name)
    library = library_of(name)
    way = re.search(r"RING|TREE|COLLNET\w*|NVLS\w*|PAT", name)
    protocol = re.search(r"(?<=[_])(LL128|LL|SIMPLE|Simple)(?![A-Za-z0-9])", name)
    operation = re.search(r"_(Sum|Prod|Max|Min|Avg|PreMulSum|SumPostDiv)", name)
    dtype = next((_DTYPES[part] for part in re.split(r"[_(]", name) if part in _DTYPES), "")
    dtype = "int8" if "int8_t" in name and not dtype else dtype
    what = kind.replace("_", " ") or "communication"
    # NCCL names kernels that move bytes "Sum": only collectives that reduce have an operation.
    reduces = kind in _REDUCING
    parts = [operation[1].lower() if operation and reduces else "", dtype if reduces else ""]
    details = [way[0].lower() if way else "", protocol[0].upper() if protocol else ""]
    text = f"{what} between ranks ({library or 'peer to peer'})"
    short = shortened(library or "peer", what, *parts, *details)
    return KernelName(short, library, "communication", dtype=dtype if reduces else "", description=text)


def transfer(name: str) -> KernelName | None:
    """Read the name of a copy or of a fill."""
    if _FILL.match(name):
        return KernelName(shortened(name), "driver", "fill", description="fill with a constant, by the driver")
    if found := _COPY.match(name):
        way = found[1] or ""
        operation = "copy" if way == "DtoD" else "transfer"
        return KernelName(shortened(name), "driver", operation, description=_TRAFFIC.get(way, "copy by the driver"))
    return None
