"""The names of the numbers a count yields, and what each of them means."""

from __future__ import annotations

__all__ = ["COPY_KINDS", "METRICS"]

COPY_KINDS = ("HtoD", "DtoH", "DtoD", "HtoH")  # Kineto's names; H is the host, D any accelerator

METRICS = {
    "operators": "operator calls below autograd, backward included",
    "native_calls": "calls of operators outside PyTorch's own namespaces",
    "dispatches": "operators that Python called itself, not those they or autograd called",
    "kernel_launches": "kernel and graph launches on the device",
    "syncs": "waits of the host for a device",
    "copies": "tensor copies, all kinds",
    "copied_bytes": "bytes those copies wrote",
    **{f"copies_{kind.lower()}": f"copies {kind}" for kind in COPY_KINDS},
    **{f"bytes_{kind.lower()}": f"bytes copied {kind}" for kind in COPY_KINDS},
    "allocations": "tensor storages that operators made",
    "allocated_bytes": "bytes of those storages",
    "compilations": "frames that torch.compile compiled, recompilations included",
    "graph_breaks": "places where torch.compile cut a graph",
    "recompiles": "frames compiled again because a guard failed",
}
