"""How the ranks were set up: DataParallel, a slow backend, a search for unused parameters."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.idle import at_stake, idle_time
from torchwhy.trace.meaning.communication import (
    DATA_PARALLEL,
    FIND_TENSORS,
    HOST_COLLECTIVE,
    SEARCH_UNUSED,
)
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import percent

__all__ = ["backend", "data_parallel", "find_unused"]


@rule(
    "F5",
    "dataparallel",
    source="torch.nn.DataParallel's own annotation, with work on more than one device",
    needs={"gpu"},
    frees="all",
)
def data_parallel(trace: Trace) -> Iterator[Finding]:
    """The model runs under nn.DataParallel.

    Sees: `DataParallel.forward` on the host and work on two or more devices of one process.

    Costs: every forward pass copies the model to all devices, gathers the outputs on the first, and all of it is
    launched by threads of one Python process that take turns. The time at stake is that of the forward passes beyond
    an equal share of their computation on each device.

    Fix: DistributedDataParallel, one process per device; torchrun starts them.

    Known problems: models that can't be replicated per process, such as shared ones in notebooks, have no better
    choice.
    """
    rows = trace.events.of(DATA_PARALLEL)
    rows = rows[trace.in_steps(rows)]
    if not len(rows) or len(trace.gpus) < 2:
        return
    forward = trace.when(rows)
    computes = sum((device.compute & forward).total for device in trace.gpus)
    yield Finding(
        title=f"nn.DataParallel spreads the model over {len(trace.gpus)} devices from one process",
        confidence="high",
        stretches=forward,
        time_us=(forward.total - computes / len(trace.gpus)) / 1000,
        window=trace.window,
        evidence=evidence(trace, rows),
        cause="For each forward pass it copies the parameters to every device, and one process launches all work.",
        fix="Use DistributedDataParallel with one process per device (torchrun --nproc-per-node).",
        linked=True,
    )


@rule(
    "F6",
    "backend",
    source="distributedInfo.backend; NCCL needs compute capability 3.5, RCCL an AMD GPU",
    needs={"gpu", "idle"},
    frees="host",
)
def backend(trace: Trace, *, share: float = 0.01) -> Iterator[Finding]:
    """Ranks with GPUs exchange data through the host.

    Sees: a process group of Gloo or MPI on a machine whose GPUs NCCL (or RCCL) serves, and the time in its collectives
    during which the device has nothing to do.

    Costs: data is copied to host memory, reduced there or sent from there, and copied back.

    Fix: init_process_group("nccl"), or "cpu:gloo,cuda:nccl" to keep Gloo for tensors on the CPU.

    Known problems: a second group on NCCL, besides the recorded one, isn't always written into the file.
    """
    used = (trace.info.backend or "").lower()
    rows = trace.events.of(HOST_COLLECTIVE)
    served = trace.info.vendor == "amd" or any(device.capability >= (3, 5) for device in trace.info.devices)
    if used not in {"gloo", "mpi"} or not served or not len(rows):
        return
    library = "RCCL" if trace.info.vendor == "amd" else "NCCL"
    lost = trace.when(rows) & trace.derived(idle_time)
    if not lost or trace.window.share(lost) < share:
        return
    yield Finding(
        title=f"Ranks with GPUs communicate through {used}: for {percent(trace.window.share(lost))} of the window the "
        "device is idle meanwhile",
        confidence="high",
        stretches=lost,
        window=trace.window,
        evidence=evidence(trace, rows, times=trace.events.covered(rows, lost)),
        cause=f"{used} exchanges data in the host's memory; {library} exchanges data between the devices themselves.",
        fix='init_process_group("nccl"), or "cpu:gloo,cuda:nccl" where tensors on the CPU are exchanged, too.',
        linked=True,
    )


@rule(
    "F9",
    "find-unused",
    source="DDP's reducer::search_unused_parameters, called when find_unused_parameters=True",
    frees="host",
)
def find_unused(trace: Trace, *, share: float = 0.01) -> Iterator[Finding]:
    """DDP searches for unused parameters in every forward pass.

    Sees: `reducer::search_unused_parameters`, in 1% of the window or more; with a GPU, while that has no work.

    Costs: a walk over the whole autograd graph per forward pass, and a further all-reduce to agree on the result.

    Fix: find_unused_parameters=False if every parameter gets a gradient in every step; static_graph=True if it is
    always the same ones that don't.

    Known problems: models with branches do need the search, unless static_graph=True fits them.
    """
    rows = trace.events.of(SEARCH_UNUSED)
    if trace.has_stacks:
        frames = trace.events.of(FIND_TENSORS)
        rows = np.concatenate((rows, frames)).astype(np.int32) if len(rows) else rows
    if not len(rows):
        return
    spent = trace.when(rows)
    lost = at_stake(trace, spent)
    if trace.window.share(lost) < share:
        return
    yield Finding(
        title="DDP searches for unused parameters in every forward pass",
        confidence="high",
        stretches=spent,
        window=trace.window,
        evidence=evidence(trace, rows, times=trace.events.covered(rows, lost)),
        cause="find_unused_parameters=True: DDP walks the autograd graph for parameters that get no gradient.",
        fix="Set find_unused_parameters=False if all parameters get a gradient. If the same parameters get no "
        "gradient in each step, static_graph=True finds them in the first one.",
        linked=True,
    )
