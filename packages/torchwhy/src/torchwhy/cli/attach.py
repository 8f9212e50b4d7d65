"""`torchwhy profile --attach` and `--pid`."""

from __future__ import annotations

import os
import shlex
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from torchwhy.attach.http import Address
from torchwhy.attach.load import Load
from torchwhy.attach.recording import Plan, ServerRun, record
from torchwhy.attach.servers import find_server
from torchwhy.cli.analysis_process import Reader
from torchwhy.cli.console import complain, say, tell
from torchwhy.errors import ArgumentError, TorchWhyError
from torchwhy.present.formats import check_format

__all__ = ["Asked", "run", "run_process"]

_INTERRUPTED: Final = 130


@dataclass(frozen=True)
class Asked:
    """The options as given."""

    active: int | None
    seconds: float
    requests: int | None
    prompt_tokens: int
    output_tokens: int
    warmup: int
    shapes: bool
    stacks: bool
    traces_dir: str

    def plan(self) -> Plan:
        """Return what is recorded.

        Raises:
            ArgumentError: a number out of its range.
        """
        wanted = self.requests is not None
        load = Load(self.requests or 0, self.prompt_tokens, self.output_tokens) if wanted else None
        folder = str(Path(self.traces_dir).expanduser().absolute()) if self.traces_dir else ""
        return Plan(self.active, self.seconds, load, self.warmup, self.shapes, self.stacks, folder)


def run(url: str, words: list[str], out: Path | None, asked: Asked, form: str) -> int:
    """Have a server record itself and report on stderr.

    Returns:
        0; 2 for misuse; 3 where nothing was recorded or the trace cannot be read; 130 where the user ended it early.
    """
    if words:
        return complain(f"--attach records the server at {url}, not a script: leave out {shlex.join(words)}", 2)
    reader = Reader()
    try:
        check_format(form)
        plan = asked.plan()
        address = Address(url, os.environ.get("TORCHWHY_API_KEY", ""))
    except ArgumentError as error:
        return complain(error, 2)
    try:
        with _terminated_as_interrupted():
            server = find_server(address)
            if not server.is_bounded and plan.steps:
                say(f"{server.name} counts no steps: recording ends with the requests or after --seconds")
            name = "".join(letter if letter.isalnum() or letter in "._-" else "-" for letter in server.model)
            done = record(server, plan, out or Path("traces") / (name.strip("-.")[-50:] or server.kind.lower()), say)
    except KeyboardInterrupt:
        say("interrupted")
        return _INTERRUPTED
    except TorchWhyError as error:
        return complain(error, 3)
    except OSError as error:
        return complain(f"cannot write the run's folder: {error.strerror or error}", 3)
    return _report(done, reader, form)


def run_process(pid: int, words: list[str], out: Path | None, seconds: float, form: str, **recorded: bool) -> int:
    """Have a process record itself and report on stderr.

    Args:
        pid: its number.
        words, out, seconds, form: as given.
        recorded: fields of `Request`.

    Returns:
        0; 2 for misuse; 3 where nothing was recorded or the trace cannot be read.
    """
    from torchwhy.attach.process import record_process
    from torchwhy.capture.attached import Request

    if words:
        return complain(f"--pid records process {pid}, not a script: leave out {shlex.join(words)}", 2)
    if not seconds > 0:
        return complain(f"--seconds must be > 0, got {seconds!r}", 2)
    reader = Reader()
    try:
        check_format(form)
        path = (out or Path("traces") / f"process-{pid}").absolute()
        with _terminated_as_interrupted():
            answer = record_process(pid, Request(str(path), seconds, **recorded), say)
    except ArgumentError as error:
        return complain(error, 2)
    except TorchWhyError as error:
        return complain(error, 3)
    except KeyboardInterrupt:
        say("interrupted: the process ends its recording by itself")
        return _INTERRUPTED
    if not answer.folder:
        tell(answer.text)
        return 3
    explanation, was_read = reader.read(Path(answer.folder), form)
    tell(explanation if form != "text" else f"\n{answer.text}\n\n{explanation}")
    return 0 if was_read else 3


@contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """SIGTERM and a closed terminal end a recording as Ctrl-C does: the server must be asked to stop."""
    names = [name for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {name: signal.signal(getattr(signal, name), signal.default_int_handler) for name in names}
    try:
        yield
    finally:
        for name, handler in before.items():
            signal.signal(getattr(signal, name), handler)


def _report(done: ServerRun, reader: Reader, form: str) -> int:
    status = _INTERRUPTED if done.interrupted else 0
    if done.folder is None:
        tell(done.summary)
        return status or 3
    first = done.traces[0].parent
    explanation, was_read = reader.read(first, form)
    status = status or (0 if was_read else 3)
    if form != "text":
        tell(explanation)
        return status
    tell(f"\n{done.summary}\n\n{explanation}")
    if len(done.traces) > 1:
        tell(f"torchwhy explain {shlex.quote(str(done.folder))} compares the {len(done.traces)} ranks.")
    return status
