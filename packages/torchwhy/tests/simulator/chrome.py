"""Writes a run as `torch.profiler` does: Chrome's trace format, with Kineto's categories and arguments."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.simulator.machine import Event, Machine, Work
from tests.simulator.run import Run

PROCESS, MAIN, AUTOGRAD = 4242, 4242, 4299
BASE = 1_790_857_026_000_000_000
START = 4_000_000_000_000
"""When a run begins, nanoseconds after the base."""

Record = dict[str, Any]


def trace_of(run: Run, rank: int = 0) -> Record:
    """Return the trace of one rank: what falls between the beginning and the end of recording."""
    machine = run.machines[rank]
    begin, end = machine.marks["start"], machine.marks["stop"]
    shift = START + 1_000_000 * rank
    process = PROCESS + rank
    threads = {"main": process, "autograd": process + AUTOGRAD - PROCESS}
    events = [_host(event, begin, end, shift, process, threads, index) for index, event in enumerate(machine.events)
              if _kept(event, begin, end)]  # fmt: skip
    launched = {event.correlation: event for event in machine.events if event.correlation and _kept(event, begin, end)}
    for work in machine.works:
        if begin <= work.begin < end:
            events += _device(work, rank, shift, process, launched, threads)
    events += _forward_backward(machine, begin, end, shift, process, threads)
    events += _annotations(machine, rank, begin, end, shift)
    events += _names(process, rank, threads, machine, shift)
    events += [
        {"ph": "X", "cat": "Trace", "ts": _us(shift + begin - 50_000), "dur": _us(end - begin + 90_000), "pid": "Spans",
         "tid": "PyTorch Profiler", "name": "PyTorch Profiler (0)", "args": {"Op count": 0}},
        {"ph": "i", "s": "g", "name": "Iteration Start: PyTorch Profiler", "pid": "Traces",
         "tid": "Trace PyTorch Profiler", "ts": _us(shift + begin - 50_000)},
        {"ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": _us(shift + end + 60_000)},
    ]  # fmt: skip
    return _head(run, rank) | {"traceEvents": events}


def write(run: Run, path: Path, rank: int = 0, trace: Record | None = None) -> Path:
    """Write the trace of one rank, or the given one."""
    path.write_text(json.dumps(trace_of(run, rank) if trace is None else trace))
    return path


def write_job(run: Run, folder: Path) -> Path:
    """Write the traces of all ranks into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for rank in range(run.program.ranks):
        write(run, folder / f"rank{rank}.pt.trace.json", rank)
    return folder


def _us(time: int) -> float:
    return time / 1000


def _kept(event: Event, begin: int, end: int) -> bool:
    if event.cat == "python_function":
        return event.end > begin and event.begin < end
    return begin <= event.begin < end


def _host(event: Event, begin: int, end: int, shift: int, process: int, threads: dict[str, int], index: int) -> Record:
    start, stop = max(event.begin, begin), min(event.end, end)
    args = dict(event.args)
    if event.cat == "python_function":
        args |= {"Python id": index + 1, "Python parent id": None, "Ev Idx": index}
        if event.name.startswith("nn.Module: "):
            args["Python module id"] = int(event.name.rsplit("_", 1)[1])
    elif event.cat == "cuda_runtime":
        args = {"External id": event.external, "cbid": 211, "correlation": event.correlation}
    else:
        args |= {"External id": event.external, "Record function id": 0, "Ev Idx": index}
    return {
        "ph": "X", "cat": event.cat, "name": event.name, "pid": process, "tid": threads[event.thread],
        "ts": _us(shift + start), "dur": _us(stop - start), "args": args,
    }  # fmt: skip


def _device(
    work: Work, rank: int, shift: int, process: int, launched: dict[int, Event], threads: dict[str, int]
) -> list[Record]:
    args = work.args | {
        "device": rank,
        "stream": work.stream,
        "correlation": work.correlation,
        "External id": work.external,
    }
    if work.replayed:
        args["graph node id"] = 1
    out: list[Record] = [
        {"ph": "X", "cat": work.cat, "name": work.name, "pid": rank, "tid": work.stream, "ts": _us(shift + work.begin),
         "dur": _us(work.end - work.begin), "args": args}
    ]  # fmt: skip
    event = launched.get(work.correlation)
    flow = {"id": work.correlation, "cat": "ac2g", "name": "ac2g"}
    out.append({"ph": "f", "pid": rank, "tid": work.stream, "ts": _us(shift + work.begin), "bp": "e"} | flow)
    if event is not None:
        out.append({"ph": "s", "pid": process, "tid": threads[event.thread], "ts": _us(shift + event.begin)} | flow)
    return out


def _forward_backward(
    machine: Machine, begin: int, end: int, shift: int, process: int, threads: dict[str, int]
) -> list[Record]:
    firsts: dict[int, Event] = {}
    out: list[Record] = []
    for event in machine.events:
        number = event.args.get("Sequence number")
        if not isinstance(number, int) or not _kept(event, begin, end):
            continue
        if event.thread == "main":
            firsts[number] = event
        elif number in firsts and event.name.startswith("autograd::engine"):
            first = firsts.pop(number)
            flow = {"id": number, "cat": "fwdbwd", "name": "fwdbwd", "pid": process}
            out += [
                {"ph": "s", "tid": threads["main"], "ts": _us(shift + first.begin)} | flow,
                {"ph": "f", "tid": threads["autograd"], "ts": _us(shift + event.begin), "bp": "e"} | flow,
            ]
    return out


def _annotations(machine: Machine, rank: int, begin: int, end: int, shift: int) -> list[Record]:
    """The labels as the device sees them: from the first to the last piece of work launched within."""
    names = {
        event.external: event.name
        for event in machine.events
        if event.cat == "user_annotation" and begin <= event.begin
    }
    spans: dict[tuple[int, int], tuple[int, int]] = {}
    for work in machine.works:
        if not begin <= work.begin < end:
            continue
        for label in work.annotations:
            if label in names:
                a, b = spans.get((label, work.stream), (work.begin, work.end))
                spans[label, work.stream] = min(a, work.begin), max(b, work.end)
    return [
        {"ph": "X", "cat": "gpu_user_annotation", "name": names[label], "pid": rank, "tid": stream,
         "ts": _us(shift + a - 1), "dur": _us(b - a + 2), "args": {"External id": label}}
        for (label, stream), (a, b) in spans.items()
    ]  # fmt: skip


def _names(process: int, rank: int, threads: dict[str, int], machine: Machine, shift: int) -> list[Record]:
    ts = _us(shift)
    streams = sorted({work.stream for work in machine.works})
    out: list[Record] = []
    for pid, label in ((process, "CPU"), (rank, f"GPU {rank}")):
        out += [
            {"name": "process_name", "ph": "M", "ts": ts, "pid": pid, "tid": 0, "args": {"name": "python"}},
            {"name": "process_labels", "ph": "M", "ts": ts, "pid": pid, "tid": 0, "args": {"labels": label}},
        ]
    for name, tid in threads.items():
        shown = "python" if name == "main" else "pt_autograd_0"
        out.append(
            {
                "name": "thread_name",
                "ph": "M",
                "ts": ts,
                "pid": process,
                "tid": tid,
                "args": {"name": f"thread {tid} ({shown})"},
            }
        )
    for stream in streams:
        out.append(
            {
                "name": "thread_name",
                "ph": "M",
                "ts": ts,
                "pid": rank,
                "tid": stream,
                "args": {"name": f"stream {stream} "},
            }
        )
    return out


def _head(run: Run, rank: int) -> Record:
    device = run.program.device
    properties = {
        "name": device.name, "totalGlobalMem": device.memory, "computeMajor": device.major,
        "computeMinor": device.minor, "maxThreadsPerBlock": 1024, "maxThreadsPerMultiprocessor": 2048,
        "regsPerBlock": 65536, "warpSize": 32,
        "sharedMemPerBlock": 49152, "numSms": device.sms, "regsPerMultiprocessor": 65536,
        "sharedMemPerBlockOptin": 101376, "sharedMemPerMultiprocessor": 102400,
    }  # fmt: skip
    ranks = run.program.ranks
    head: Record = {
        "schemaVersion": 1,
        "deviceProperties": [{"id": number} | properties for number in range(max(ranks, rank + 1))],
        "cuda_runtime_version": 12040,
        "cupti_version": 22,
        "cuda_driver_version": 12090,
        "trace_id": f"{run.program.seed:032X}",
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": BASE,
        "traceName": f"rank{rank}.pt.trace.json",
    }
    if run.program.recording.stacks:
        head["with_stack"] = 1
    if run.program.recording.shapes:
        head["record_shapes"] = 1
    if ranks > 1:
        head["distributedInfo"] = {
            "backend": "nccl", "rank": rank, "world_size": ranks, "pg_count": 1, "nccl_version": "2.21.5",
            "pg_config": [{"pg_name": "0", "pg_desc": "default_pg", "backend_config": "cuda:nccl", "pg_size": ranks,
                           "ranks": list(range(ranks))}],
        }  # fmt: skip
    return head
