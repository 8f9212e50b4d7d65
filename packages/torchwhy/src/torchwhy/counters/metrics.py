"""The metrics of a count and their descriptions."""

from __future__ import annotations

from torchwhy.errors import ArgumentError
from torchwhy.spelling import did_you_mean

__all__ = ["COMPILER_METRICS", "COPY_KINDS", "DEVICE_METRICS", "METRICS", "check_name"]

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
    "flops": "floating-point operations of matrix products, convolutions and attention",
    "compilations": "frames that torch.compile compiled, recompilations included",
    "graph_breaks": "places where torch.compile cut a graph",
    "recompiles": "frames compiled again because a guard failed",
}

# What needs an accelerator to be anything but 0.
DEVICE_METRICS = frozenset(
    {"kernel_launches", "syncs"} | {f"{what}_{kind.lower()}" for what in ("copies", "bytes") for kind in COPY_KINDS[:3]}
)
COMPILER_METRICS = frozenset({"compilations", "graph_breaks", "recompiles"})  # and what needs torch.compile


def check_name(name: str) -> None:
    """Return the name of a metric or an operator, or raise.

    >>> check_name("sync")
    Traceback (most recent call last):
    torchwhy.errors.ArgumentError: unknown metric 'sync', did you mean 'syncs'? Operators are written 'aten::mm'.
    """
    if name not in METRICS and "::" not in name:
        if name.rpartition("_")[2] in {"ms", "us", "s", "time", "seconds", "duration", "latency"}:
            raise ArgumentError(
                f"unknown metric {name!r}: budgets are of numbers that no noise moves, which times are not; times are "
                "compared by torchwhy diff A B --fail-on-slower PERCENT and torchwhy history"
            )
        raise ArgumentError(f"unknown metric {name!r}{did_you_mean(name, METRICS)} Operators are written 'aten::mm'.")
