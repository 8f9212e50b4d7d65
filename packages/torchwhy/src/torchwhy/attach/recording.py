"""One recording of a running server: warm-up, start, load or wait, stop, and its files in a run's folder."""

from __future__ import annotations

import contextlib
import gzip
import re
import secrets
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYetError
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from torchwhy.attach.http import RefusedError
from torchwhy.attach.load import Load, LoadTimes, drive
from torchwhy.attach.servers import Recording, Server
from torchwhy.capture.folder import RunFolder, claim
from torchwhy.errors import ArgumentError, TorchWhyError
from torchwhy.ranks.folder import named_rank, trace_files
from torchwhy.schema import SCHEMA
from torchwhy.wording import counted, duration, safe

__all__ = ["STEPS", "Plan", "ServerRun", "ServerRunFile", "record"]

STEPS: Final = 40
"""Rounds that are recorded by default: some prefills and decodes, in a file of some 50 MB."""

_SETTLING_S: Final = {"vLLM": 120.0, "SGLang": 5.0}
"""A server that has not answered by then is given its load: old versions of SGLang answer when they have recorded."""

_LOOKING_S: Final = 0.2
_FRONTEND: Final = "async_llm"
"""Part of the name of a trace of vLLM's process that takes the requests: the model does not run there."""


@dataclass(frozen=True)
class Plan:
    """The recording to make.

    Attributes:
        steps: rounds of the scheduler at most; None: `STEPS`, or as many as the load needs.
        seconds: without a load, how long to wait for them.
        load: requests to send; None watches those of others.
        warmup: how often the load is sent before, unrecorded.
        shapes, stacks: of the operators.
        folder: where the server writes, on its machine; "" leaves it to the server.

    Raises:
        ArgumentError: a number out of its range.
    """

    steps: int | None = None
    seconds: float = 10.0
    load: Load | None = None
    warmup: int = 1
    shapes: bool = True
    stacks: bool = False
    folder: str = ""

    def __post_init__(self) -> None:
        """Check the numbers."""
        if self.steps is not None and self.steps < 1:
            raise ArgumentError(f"--active must be > 0, got {self.steps}")
        if not self.seconds > 0:
            raise ArgumentError(f"--seconds must be > 0, got {self.seconds!r}")
        if self.warmup < 0:
            raise ArgumentError(f"--warmup must be >= 0, got {self.warmup}")


@dataclass(frozen=True)
class ServerRun:
    """The result of a recording.

    Attributes:
        folder: the run's; None where no trace was found.
        traces: in it, one for each rank.
        summary: what was recorded, in a few lines.
        notes: what did not go as asked, and where files lie.
        load: how the server answered.
        interrupted: whether the user ended it early.
    """

    folder: Path | None
    traces: tuple[Path, ...]
    summary: str
    notes: tuple[str, ...]
    load: LoadTimes | None
    interrupted: bool


class ServerRunFile(msgspec.Struct, frozen=True):
    """`run.json` of a server's run.

    Attributes:
        server, version, model, url: which one.
        steps: rounds of its scheduler that were requested at most.
        files: the server's own traces, of which the run's are copies.
        notes: what did not go as asked.
        requests, prompt_tokens, output_tokens: that were sent; None where the load was others'.
        seconds, first_token_s, between_tokens_s: how they were answered; see `LoadTimes`.
    """

    schema: int
    server: str
    version: str
    model: str
    url: str
    steps: int
    files: tuple[str, ...]
    notes: tuple[str, ...]
    requests: int | None = None
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    seconds: float | None = None
    first_token_s: float | None = None
    between_tokens_s: float | None = None


def record(server: Server, plan: Plan, out: Path, say: Callable[[str], None] = lambda _: None) -> ServerRun:
    """Record a server and put its traces into a run's folder.

    The server is asked to stop in any case, also when the user interrupts, unless it refused to start.

    Args:
        server: from `find_server`.
        plan: what to record.
        out: the run's folder; `out-2` and so on if it is taken.
        say: is called with what happens now.

    Raises:
        TorchWhyError: the server refused, went away, or was not asked to stop: the message says so.
        OSError: the folder cannot be written.
    """
    load = plan.load
    steps = plan.steps or (load.steps if load else STEPS)
    recording = Recording(f"torchwhy-{secrets.token_hex(4)}", steps, plan.shapes, plan.stacks, plan.folder)
    folder = claim(out)
    try:
        notes: list[str] = []
        if load and plan.warmup:
            say(f"warming up {server.name} with {counted(load.requests, 'request')}")
            for number in range(plan.warmup):
                _check(drive(server.address, server.model, load, number))
        places = server.folders(plan.folder)
        before = frozenset(path for place in places for path in _traces(place))
        news = _News(server, recording, places, before)
        times, interrupted = _recorded(server, recording, plan, news, notes, say)
        found = news.files()
        if not found:
            folder.discard()
            notes.append(_missing(server, recording, places))
            return ServerRun(None, (), _summary(server, recording, times, notes), tuple(notes), times, interrupted)
        return _published(folder, server, recording, plan, found, notes, times, interrupted)
    except BaseException:
        folder.discard()
        raise


@dataclass(frozen=True)
class _News:
    """The files of a recording: those that were not there before."""

    server: Server
    recording: Recording
    places: Sequence[Path]
    before: frozenset[Path]

    def files(self) -> list[Path]:
        new = (path for place in self.places for path in _traces(place) if path not in self.before)
        return [path for path in new if self.server.wrote(path, self.recording)]


def _recorded(
    server: Server, recording: Recording, plan: Plan, news: _News, notes: list[str], say: Callable[[str], None]
) -> tuple[LoadTimes | None, bool]:
    """Start, give it the load or wait, stop; return how the load went and whether that was interrupted."""
    times, interrupted = None, False
    with _started(server, recording, notes, say):
        try:
            if plan.load:
                sent = counted(plan.load.requests, "request")
                say(f"recording {server.name}: {sent} of {plan.load.prompt_tokens} tokens")
                times = drive(server.address, server.model, plan.load, plan.warmup)
            else:
                say(f"recording {server.name} for {plan.seconds:g} s, or {counted(recording.steps, 'step')}")
                _wait(plan.seconds, lambda: bool(news.files()))
        except KeyboardInterrupt:
            interrupted = True
            notes.append("interrupted: the recording ends early")
    if times is not None and times.failed:
        notes.append(f"{counted(times.failed, 'request')} failed: {times.why}")
    return times, interrupted


@contextmanager
def _started(server: Server, recording: Recording, notes: list[str], say: Callable[[str], None]) -> Iterator[None]:
    """The server records inside, and is asked to stop at the end, unless it refused."""
    started: Future[None] = _in_background(lambda: server.start(recording))
    try:
        with contextlib.suppress(NotYetError):
            started.result(_SETTLING_S[server.kind])
        yield
    finally:
        refused = started.exception() if started.done() else None
        if isinstance(refused, RefusedError):
            notes.append(str(refused))
        else:
            _stop(server, notes, say)


def _in_background(function: Callable[[], None]) -> Future[None]:
    """Call it in a thread that the end of the process does not wait for."""
    result: Future[None] = Future()

    def call() -> None:
        try:
            function()
            result.set_result(None)
        except BaseException as error:  # noqa: BLE001 - whoever asks for the result gets it
            result.set_exception(error)

    threading.Thread(target=call, daemon=True).start()
    return result


def _stop(server: Server, notes: list[str], say: Callable[[str], None]) -> None:
    say(f"waiting until {server.name} has written what it recorded")
    try:
        server.stop()
    except KeyboardInterrupt:
        with contextlib.suppress(TorchWhyError):  # it may not have been sent yet
            server.stop(timeout_s=1.0)
        raise
    except TorchWhyError as error:
        notes.append(
            f"{server.name} may still be recording, since it did not confirm the end ({error}): "
            f"curl -X POST {server.address.url}/stop_profile"
        )


def _wait(seconds: float, is_over: Callable[[], bool]) -> None:
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0 and not is_over():
        time.sleep(min(_LOOKING_S, left))


def _check(times: LoadTimes) -> None:
    """Raise where no request of the warm-up was answered: the load would not be either."""
    if not times.requests:
        raise TorchWhyError(f"the server answers no request of this size: {times.why}")


def _traces(folder: Path) -> list[Path]:
    try:
        return trace_files(folder) if folder.is_dir() else []
    except OSError:
        return []


def _missing(server: Server, recording: Recording, places: Sequence[Path]) -> str:
    """Where the files may be."""
    where = ", ".join(map(str, places))
    if not places:
        return (
            f"{server.name} wrote into the folder it was started with (torch_profiler_dir): give it as --traces-dir "
            "if it is on this machine, or run torchwhy explain on its files there"
        )
    on = "" if server.address.is_local else " of its machine"
    return (
        f"no new trace was found in {where}: {server.name} ran no step meanwhile, or wrote elsewhere{on}; its files "
        f"have {recording.name} in their names where it knows names, and --traces-dir says where to look"
    )


def _published(
    folder: RunFolder, server: Server, recording: Recording, plan: Plan, found: list[Path], notes: list[str],
    times: LoadTimes | None, interrupted: bool,
) -> ServerRun:  # fmt: skip
    """Copy the traces into the run's folder, one for each rank, and give it its name."""
    workers = sorted([path for path in found if _FRONTEND not in path.name] or found, key=_place)
    notes += [f"the trace of the server's front end is {path}" for path in found if path not in workers]
    names = ["trace.json.gz"] if len(workers) == 1 else [f"rank{k}/trace.json.gz" for k in range(len(workers))]
    for name, path in zip(names, workers, strict=True):
        target = folder.partial / name
        target.parent.mkdir(exist_ok=True)
        if path.name.endswith(".gz"):
            shutil.copyfile(path, target)
        else:
            with path.open("rb") as plain, gzip.open(target, "wb", compresslevel=4) as packed:
                shutil.copyfileobj(plain, packed, 1 << 20)
    load = plan.load
    described = ServerRunFile(
        SCHEMA, server.kind, server.version, server.model, server.address.url, recording.steps,
        tuple(map(str, workers)), tuple(notes),
    )  # fmt: skip
    if load and times:
        described = msgspec.structs.replace(
            described, requests=load.requests, prompt_tokens=load.prompt_tokens, output_tokens=load.output_tokens,
            seconds=times.seconds, first_token_s=times.first_token_s, between_tokens_s=times.between_tokens_s,
        )  # fmt: skip
    text = _summary(server, recording, times, notes)
    for name in names:
        place = (folder.partial / name).parent
        (place / "report.txt").write_text(f"{text}\n", encoding="utf-8")
        (place / "run.json").write_bytes(msgspec.json.format(msgspec.json.encode(described)) + b"\n")
    final = folder.publish()
    return ServerRun(final, tuple(final / name for name in names), text, tuple(notes), times, interrupted)


def _place(path: Path) -> tuple[int, str]:
    """The rank in the name of a trace: vLLM's end in rank3, SGLang's have TP-3."""
    tensor_parallel = re.search(r"-TP-(\d+)", path.name)
    return (int(tensor_parallel[1]) if tensor_parallel else named_rank(path) or 0), path.name


def _summary(server: Server, recording: Recording, times: LoadTimes | None, notes: Sequence[str]) -> str:
    """What was recorded, in a few lines."""
    limit = f"up to {counted(recording.steps, 'step')} recorded"
    lines = [
        f"{server.name}, {safe(server.model)} at {server.address.url}",
        limit if server.is_bounded else "recorded until asked to stop: this version counts no steps",
    ]
    if times is not None and times.first_token_s is not None:
        parts = [f"{counted(times.requests, 'request')} answered in {duration(times.seconds * 1e6)}"]
        parts.append(f"first token after {duration(times.first_token_s * 1e6)}")
        if times.between_tokens_s is not None:
            parts.append(f"{duration(times.between_tokens_s * 1e6)} between tokens")
        lines.append(", ".join(parts) + " (medians, measured here, while recording)")
    return "\n".join([*lines, *(f"note: {note}" for note in notes)])
