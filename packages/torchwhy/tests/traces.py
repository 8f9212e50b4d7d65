"""Writes small traces as libkineto would, for tests: what a program did, in microseconds."""

from __future__ import annotations

import json
from pathlib import Path

from torchwhy.finding import Finding

HOST, THREAD = 100, 100


class Story:
    """A trace in the making; times in microseconds, `at` from the beginning.

    story = Story()
    with story.step(5, at=0, us=100):
        story.op("aten::mm", at=10, us=20)
        story.kernel("sgemm", at=40, us=50, launch_at=15)
    trace = story.trace()
    """

    def __init__(self, *, gpu: str | None = "NVIDIA A100-SXM4-80GB", sms: int = 108, rank: int | None = None, **top):
        devices = []
        if gpu:
            major, minor = (9, 0) if "H100" in gpu else (7, 0) if "V100" in gpu else (8, 0)
            devices = [
                {"id": 0, "name": gpu, "totalGlobalMem": 80 * 2**30, "computeMajor": major, "computeMinor": minor}
                | {"numSms": sms, "maxThreadsPerMultiprocessor": 2048, "warpSize": 32}
            ]
        self.top = {"schemaVersion": 1, "deviceProperties": devices, "displayTimeUnit": "ms", **top}
        if rank is not None:
            self.top.setdefault("distributedInfo", {"backend": "nccl", "rank": rank, "world_size": 2})
        self.events = []
        self.correlation = 1000
        self.external = 0

    def add(self, cat, name, at, us, tid=THREAD, pid=HOST, **args):
        """Any complete event; underscores in argument names become spaces."""
        args = {key.replace("_", " ") if key not in KEEP else key: value for key, value in args.items()}
        event = {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": at, "dur": us, "args": args}
        self.events.append(event)
        return event

    def op(self, name, at, us, tid=THREAD, **args):
        """An operator on the host."""
        self.external += 1
        return self.add("cpu_op", name, at, us, tid, **{"External id": self.external, **args})

    def note(self, name, at, us, tid=THREAD, **args):
        """An annotation on the host."""
        self.external += 1
        return self.add("user_annotation", name, at, us, tid, **{"External id": self.external, **args})

    def step(self, number, at, us):
        """A recorded step."""
        return self.note(f"ProfilerStep#{number}", at, us)

    def steps(self, count, us, every=None, waits=False):
        """Record steps, one after another or `every` so many microseconds, and yield when each begins.

        With `waits` each step ends with a wait for the device: from the host's last call to the device's last work.
        """
        for number in range(count):
            at = number * (every or us)
            self.step(number, at, us)
            first = len(self.events)
            yield at
            if waits:
                self._wait(self.events[first:])

    def _wait(self, events):
        mine = [event for event in events if event["pid"] == HOST and event["tid"] == THREAD]
        work = [event for event in events if event["pid"] == 0]
        start = max((event["ts"] + event["dur"] for event in mine), default=0)
        end = max((event["ts"] + event["dur"] for event in work), default=0)
        if end > start:
            self.call("cudaStreamSynchronize", start, end - start)

    def frame(self, name, at, us, tid=THREAD, **args):
        """A Python frame."""
        return self.add("python_function", name, at, us, tid, **args)

    def call(self, name, at, us=2, tid=THREAD, cat="cuda_runtime", **args):
        """A runtime call that puts nothing on the device, or whose work wasn't recorded."""
        self.correlation += 1
        return self.add(cat, name, at, us, tid, **{"correlation": self.correlation, **args})

    def kernel(
        self, name, at, us, launch_at=None, launch="cudaLaunchKernel", launch_us=3, stream=7, tid=THREAD, **args
    ):
        """A kernel, with its launch unless `launch_at` is None (launched before the trace began)."""
        return self._work("kernel", name, at, us, launch_at, launch, launch_us, stream, tid, args)

    def copy(self, kind, at, us, size, launch_at=None, launch="cudaMemcpyAsync", launch_us=4, stream=7, tid=THREAD):
        """A copy such as "HtoD (Pageable -> Device)" of `size` bytes."""
        args = {"bytes": size, "memory bandwidth (GB/s)": size / us / 1e3}
        return self._work("gpu_memcpy", f"Memcpy {kind}", at, us, launch_at, launch, launch_us, stream, tid, args)

    def fill(self, at, us, size=1024, launch_at=None, launch="cudaMemsetAsync", stream=7, tid=THREAD):
        """A memset."""
        return self._work("gpu_memset", "Memset (Device)", at, us, launch_at, launch, 3, stream, tid, {"bytes": size})

    def memory(self, at, size, allocated, reserved=0, device=0, tid=THREAD, addr=1):
        """An allocation of `size` bytes (a release where negative), on the CPU where `device` is -1."""
        args = {"Device Type": 0 if device < 0 else 1, "Device Id": device, "Addr": addr, "Bytes": size}
        args |= {"Total Allocated": allocated, "Total Reserved": reserved}
        event = {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": HOST, "tid": tid, "ts": at}
        self.events.append(event | {"args": args})

    def overhead(self, name, at, us):
        """Work of the profiler."""
        return self.add("overhead", name, at, us, tid=0, pid=-1)

    def write(self, path: Path) -> Path:
        """Write the file."""
        path.write_text(self.text())
        return path

    def text(self) -> str:
        return json.dumps({**self.top, "traceEvents": self.events})

    def trace(self, name="story.json"):
        """Read it back, as if from a file."""
        import io

        from torchwhy.loading.trace import LoadedTrace
        from torchwhy.trace.file.columns import ARGUMENTS
        from torchwhy.trace.file.scanning import scan

        return LoadedTrace(name, scan(io.BytesIO(self.text().encode()), ARGUMENTS))

    def _work(self, cat, name, at, us, launch_at, launch, launch_us, stream, tid, args):
        self.correlation += 1
        args = {"device": 0, "context": 1, "stream": stream, "correlation": self.correlation, **args}
        if launch_at is not None:
            self.add("cuda_runtime", launch, launch_at, launch_us, tid, correlation=self.correlation)
        event = {"ph": "X", "cat": cat, "name": name, "pid": 0, "tid": stream, "ts": at, "dur": us, "args": args}
        self.events.append(event)
        return event


KEEP = {"kernel_backend", "kernel_hash", "kernel_file", "cuda_sync_kind", "wait_on_stream", "wait_on_cuda_event_id"}


def a_finding(window, **changes):
    """A finding of no rule, for tests of what becomes of findings."""
    values = {"title": "Found", "severity": "low", "confidence": "high", "time_us": 1.0, "window": window}
    return Finding(**{**values, "evidence": (), "cause": "", "fix": "", **changes})


def samples(story, places, every=20):
    """Add samples of the stacks: one of `places` (frames, innermost first) after the other, `every` microseconds.

    A frame may have its source behind " |".
    """
    frames = sorted({frame for stack in places for frame in stack})
    story.top["baseTimeNanoseconds"] = 10**18
    story.top["torchwhy_stack_samples"] = {
        "frames": [frame.partition(" |")[0] for frame in frames],
        "lines": [frame.partition("|")[2] for frame in frames],
        "stacks": [[frames.index(frame) for frame in stack] for stack in places],
        "times_ns": [10**18 + 1000 * (k * every) for k in range(len(places))],
        "which": list(range(len(places))),
    }
    return story
