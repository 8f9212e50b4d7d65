"""From windows to a folder: read the events, say what was wrong, write, rename."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchfx.profiler.capture import advice, writer
from torchfx.profiler.capture.content import Content
from torchfx.profiler.capture.operators import OperatorRow
from torchfx.profiler.capture.recorder import Window
from torchfx.profiler.capture.result import TROUBLE, WHOLE_RUN, Capture
from torchfx.profiler.capture.step_counts import write_counts

if TYPE_CHECKING:
    from torchfx.profiler.capture.session import Session

__all__ = ["abandon", "finish"]

NOTHING = Content(0, 0, 0)


def finish(session: Session, ended: str) -> Capture:
    """Write what a session recorded; without a single event, remove the folder.

    Args:
        session: stopped.
        ended: how the program ended.
    """
    try:
        windows, salvaged = _windows(session)
        content = _content(session, windows)
        if windows and content != NOTHING:
            return _write(session, ended, windows, content, salvaged)
    except TROUBLE as error:
        partial = session.folder.partial
        lies = f"what there is lies in {partial}" if partial.is_dir() else "the program has removed the folder"
        session.notes.append(f"not everything could be written, {lies}: {error}")
        return _capture(session, ended, [], NOTHING, salvaged=False)
    return abandon(session, ended)


def abandon(session: Session, ended: str) -> Capture:
    """Remove the folder and return a capture of nothing."""
    session.folder.discard()
    return _capture(session, ended, [], NOTHING, salvaged=False)


def _windows(session: Session) -> tuple[list[Window], bool]:
    """What was recorded, and whether it is only the beginning of the run."""
    if session.recorder is not None and session.recorder.windows:
        return session.recorder.windows, False
    if session.beginning is not None and not session.gave_up:
        return session.beginning.salvage(), True
    return [], False


def _content(session: Session, windows: list[Window]) -> Content | None:
    """How much was recorded; None where PyTorch cannot read back what it recorded."""
    try:
        return Content.of(event for window in windows for event in window.events)
    except UnicodeDecodeError as error:
        # Seen in 2.13: names of Python frames that were compiled away while the profiler ran are garbage.
        session.notes.append(
            f"PyTorch cannot read back its own events ({error}), so there are no tables, only the trace"
        )
        return None


def _write(session: Session, ended: str, windows: list[Window], content: Content | None, salvaged: bool) -> Capture:
    folder = session.folder.partial
    options = session.options.light() if salvaged else session.options
    rows = () if content is None else writer.write_details(folder, windows, options, session.cuda)
    session.notes.extend(write_counts(folder, windows, options.memory, session.cuda))
    writer.write_traces(folder, windows, options.tensorboard)
    capture = _capture(session, ended, windows, content, salvaged, rows)
    writer.write_run(folder, capture)
    session.folder.publish()
    return capture


def _capture(
    session: Session,
    ended: str,
    windows: list[Window],
    content: Content | None,
    salvaged: bool,
    rows: tuple[OperatorRow, ...] = (),
) -> Capture:
    return Capture(
        folder=session.folder.final if windows else None,
        command=session.command,
        ended=ended,
        steps_from=session.steps_from,
        steps_seen=session.before + session.clock.step if session.clock else 0,
        steps_recorded=content.steps if content else 0,
        schedule=session.schedule if session.clock else None,
        windows=len(windows),
        cut=session.cut,
        options=session.options,
        cuda=session.cuda,
        overhead=session.clock.overhead() if session.clock else None,
        operators=rows,
        problems=(*session.notes, *_problems(session, windows, salvaged)),
        hints=tuple(_hints(session, content)),
    )


def _problems(session: Session, windows: list[Window], salvaged: bool) -> Iterator[str]:
    if session.clock is not None and not session.gave_up:
        count = 0 if salvaged else len(windows)
        steps = advice.Steps(session.before, session.clock.step, count, salvaged)
        yield from advice.about_steps(session.schedule, steps, session.spelling)
    elif session.steps_from == WHOLE_RUN and not windows and not session.notes:
        yield (
            "nothing was recorded: no PyTorch operator ran in the main thread; child processes are not seen, profile "
            "those of torchrun with: torchrun ... -m torchfx profile SCRIPT"
        )
    if session.options.cuda and not session.cuda:
        yield "the GPU was asked for and PyTorch has none here; only the CPU was recorded"


def _hints(session: Session, content: Content | None) -> Iterator[str]:
    if session.clock is not None:
        yield from advice.about_cost(session.clock.overhead(), session.options)
    if session.cuda and content is not None and content != NOTHING and not content.kernels:
        yield (
            "the GPU was recorded and ran nothing: either the program did not use it, or CUPTI was refused (another "
            "profiler, missing permission; KINETO_LOG_LEVEL=1 says which)"
        )
