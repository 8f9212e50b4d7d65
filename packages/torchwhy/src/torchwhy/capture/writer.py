"""Fills a run's folder: timelines, environment, the run itself and its report."""

from __future__ import annotations

import gzip
import os
import re
import shutil
import socket
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from torchwhy.capture.environment import describe
from torchwhy.capture.power_samples import PowerSampler
from torchwhy.capture.recorder import Window
from torchwhy.capture.result import Capture
from torchwhy.capture.run_watch import RunTimes
from torchwhy.schema import SCHEMA
from torchwhy.wording import working_folder

if TYPE_CHECKING:
    from torchwhy.capture.contents import Contents

__all__ = ["write_json", "write_run", "write_traces"]

_HEAD: Final = 1 << 20  # bytes in which the list of events begins: before it are devices and versions
_BASE: Final = re.compile(rb'"baseTimeNanoseconds":\s*(\d+)')
_EVENTS: Final = re.compile(rb'"traceEvents":\s*\[')

GZIP_LEVEL = 4  # traces shrink 11 times at 4 and 12 times at 9, which takes five times as long


def write_traces(
    folder: Path,
    windows: Sequence[Window],
    tensorboard: bool,
    unrecorded: Sequence[tuple[int, float]],
    memory: Sequence[tuple[int, int, int]],
    run_times: RunTimes | None,
    power: PowerSampler | None = None,
    contents: Contents | None = None,
) -> None:
    """Compress each window's timeline: `trace.json.gz`, `trace-2.json.gz`, ...

    Values of ours come first in it: `torchwhy_unrecorded_steps`, pairs of a step's number and its microseconds,
    `torchwhy_step_memory`, see `StepMemory`, `torchwhy_run_times`, see `RunTimes`,
    `torchwhy_contents`, see `Contents`,
    `torchwhy_processor_time`, see `ProcessorTime`, and `torchwhy_stack_samples`, see `StackSamples`. Clock, power and
    temperature of the GPUs become events of phase "C".

    For TensorBoard the same bytes appear under the names its handler gives, `HOST_PID.NANOSECONDS.pt.trace.json.gz`.
    """
    for number, window in enumerate(windows, 1):
        target = folder / ("trace.json.gz" if number == 1 else f"trace-{number}.json.gz")
        with window.trace.open("rb") as plain, gzip.open(target, "wb", compresslevel=GZIP_LEVEL) as packed:
            plain.seek(plain.read(64).index(b"{") + 1)  # PyTorch begins with an empty line
            noted = {
                "torchwhy_unrecorded_steps": unrecorded,
                "torchwhy_step_memory": memory,
                "torchwhy_run_times": run_times,
                "torchwhy_contents": contents,
                "torchwhy_processor_time": window.spent,
                "torchwhy_stack_samples": window.samples,
            }
            packed.write(msgspec.json.encode(noted)[:-1] + b",")
            if power is not None:
                packed.write(_with_counters(plain.read(_HEAD), window, power))
            shutil.copyfileobj(plain, packed, 1 << 20)
        window.trace.unlink()
        if tensorboard:
            logs = folder / "tensorboard"
            logs.mkdir(exist_ok=True)
            name = f"{socket.gethostname()}_{os.getpid()}.{time.time_ns()}.pt.trace.json.gz"
            shutil.copyfile(target, logs / name)
    for dropped in folder.glob("window-*.json"):  # of everything, before steps were found
        dropped.unlink()


def _with_counters(head: bytes, window: Window, power: PowerSampler) -> bytes:
    """The beginning of a trace with the counters of its time as its first events; as it is where that cannot be."""
    base, events = _BASE.search(head), _EVENTS.search(head)
    if base is None or events is None:
        return head
    start = window.results.trace_start_ns()
    end = start + int(window.spent.wall_us * 1000)
    counters = b"".join(msgspec.json.encode(one) + b"," for one in power.events(start, end, int(base[1])))
    after = head[events.end() :]
    if after.lstrip()[:1] == b"]":
        counters = counters[:-1]
    return head[: events.end()] + counters + after


def write_run(folder: Path, capture: Capture) -> None:
    """Write the capture as data and as text, the environment, the compiler's stages' times and its code.

    Inductor's code lies in a temporary folder, which may be gone when the run is read.
    """
    elsewhere = {"operators", "explanation"}
    fields = {
        name: value for name, value in msgspec.to_builtins(capture, enc_hook=str).items() if name not in elsewhere
    }
    write_json(folder / "run.json", {**fields, "directory": str(working_folder() or "")})
    write_json(folder / "environment.json", describe())
    compiler: Any = sys.modules.get("torch._dynamo.utils")
    if compiler is not None and compiler.compilation_time_metrics:
        (folder / "compile_times.txt").write_text(f"{compiler.compile_times()}\n", encoding="utf-8")
    for file in _generated_code():
        (folder / "code").mkdir(exist_ok=True)
        shutil.copyfile(file, folder / "code" / file.name)
    (folder / "report.txt").write_text(f"{capture}\n", encoding="utf-8")


def _generated_code() -> list[Path]:
    """Files of the modules that Inductor has generated and this process has loaded."""
    cache: Any = getattr(sys.modules.get("torch._inductor.codecache"), "PyCodeCache", None)
    loaded = (*getattr(cache, "modules", ()), *getattr(cache, "modules_no_attr", {}).values())
    files = (Path(file) for module in loaded if (file := getattr(module, "__file__", None)))
    return sorted({file for file in files if file.is_file()})


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write JSON with the schema's number, indented."""
    data = msgspec.json.encode({"schema": SCHEMA, **content}, enc_hook=str)
    path.write_bytes(msgspec.json.format(data, indent=1 if len(data) < 1 << 20 else 0) + b"\n")
