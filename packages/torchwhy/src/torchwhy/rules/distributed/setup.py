"""How the ranks were set up: DataParallel, a slow backend, a search for unused parameters."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchwhy.finding import Finding, severity_of
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
    frees="exposed",
)
def data_parallel(trace: Trace) -> Iterator[Finding]:
    """The model runs under nn.DataParallel.

    Sees: `DataParallel.forward` on the host and work on two or more devices of one process.

    Costs: every forward pass copies the model to all devices, gathers the outputs on the first, and all of it is
    launched by threads of one Python process that take turns. The time given is that of the forward passes in which
    not all devices compute.

    Fix: DistributedDataParallel, one process per device; torchrun starts them.

    Known problems: models that can't be replicated per process, such as shared ones in notebooks, have no better
    choice.
    """
    rows = trace.events.of(DATA_PARALLEL)
    rows = rows[trace.in_steps(rows)]
    if not len(rows) or len(trace.gpus) < 2:
        return
    window = trace.window
    together = trace.gpus[0].compute
    for device in trace.gpus[1:]:
        together = together & device.compute
    lost = (trace.events.times_of(rows) - together).clip(window.start, window.end)
    yield Finding(
        title=f"nn.DataParallel spreads the model over {len(trace.gpus)} devices from one process",
        severity=severity_of(max(window.share(lost), 0.05)),
        confidence="high",
        stretches=lost,
        window=window,
        evidence=evidence(trace, rows, times=trace.events.covered(rows, lost)),
        cause="It copies the parameters to every device for each forward pass and drives them all from one process.",
        fix="Use DistributedDataParallel with one process per device (torchrun --nproc-per-node).",
        linked=True,
    )


@rule(
    "F6",
    "backend",
    source="distributedInfo.backend; NCCL needs compute capability 3.5, RCCL an AMD GPU",
    needs={"gpu"},
    frees="exposed",
)
def backend(trace: Trace, *, share: float = 0.01) -> Iterator[Finding]:
    """Ranks with GPUs exchange data through the host.

    Sees: a process group of Gloo or MPI on a machine whose GPUs NCCL (or RCCL) serves, and the time in its collectives
    during which the device has nothing to do.

    Costs: data is copied to host memory, reduced there or sent from there, and copied back.

    Fix: init_process_group("nccl"), or "cpu:gloo,cuda:nccl" to keep Gloo for tensors on the CPU.

    Known problems: a second group on NCCL beside the recorded one isn't always written into the file.
    """
    used = (trace.info.backend or "").lower()
    rows = trace.events.of(HOST_COLLECTIVE)
    served = trace.info.vendor == "amd" or any(device.capability >= (3, 5) for device in trace.info.devices)
    if used not in {"gloo", "mpi"} or not served or not len(rows):
        return
    lost = trace.events.times_of(rows) & trace.derived(idle_time)
    if not lost or trace.window.share(lost) < share:
        return
    yield Finding(
        title=f"Ranks with GPUs communicate through {used}; the device waits "
        f"{percent(trace.window.share(lost))} of the time for it",
        confidence="high",
        stretches=lost,
        window=trace.window,
        evidence=evidence(trace, rows, times=trace.events.covered(rows, lost)),
        cause=f"{used} works on the processor; NCCL and RCCL exchange data between the devices themselves.",
        fix='init_process_group("nccl") for tensors on the device ("cpu:gloo,cuda:nccl" where both are exchanged).',
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

    Sees: `reducer::search_unused_parameters`, and its time, with a GPU while that has no work.

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
    lost = at_stake(trace, trace.events.times_of(rows))
    part = trace.window.share(lost)
    yield Finding(
        title="DDP looks for unused parameters in every forward pass",
        severity=severity_of(part) if part >= share else "info",
        confidence="high",
        stretches=lost,
        window=trace.window,
        evidence=evidence(trace, rows, times=trace.events.covered(rows, lost)),
        cause="find_unused_parameters=True: the autograd graph is walked for parameters that get no gradient.",
        fix="Leave it off if all of them get one; if always the same ones don't, static_graph=True finds them once.",
        linked=True,
    )
