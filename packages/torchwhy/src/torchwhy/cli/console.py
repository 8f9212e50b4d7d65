"""stdout and stderr for commands that must start at once: nothing for drawing is loaded unless there is a terminal."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from typing import Any, TextIO

from torchwhy.wording import safe

__all__ = [
    "answer",
    "complain",
    "ending_in_order",
    "line",
    "patience",
    "say",
    "shows_colour",
    "shows_unicode",
    "tell",
    "warnings_said",
    "width",
    "write_file",
]

_PATIENCE_S = 1.0


def answer(text: str) -> None:
    """Print to stdout, in UTF-8 where the terminal's encoding lacks a character; a closed pipe is ignored.

    Where stdout cannot be written to, the command says so and ends with status 3.
    """
    try:
        try:
            sys.stdout.write(text)
        except UnicodeEncodeError:
            sys.stdout.buffer.write(text.encode())
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python complains when it exits
        if not _reader_left(error):
            raise SystemExit(complain(f"cannot write to stdout: {error.strerror or error}", 3)) from error


def _reader_left(error: OSError) -> bool:
    return isinstance(error, BrokenPipeError) or (sys.platform == "win32" and error.errno == errno.EINVAL)


def line(text: str) -> None:
    """Print a line to stdout, with "?" for what its encoding lacks, such as bytes of a name that are no UTF-8."""
    encoding = sys.stdout.encoding or "ascii"
    answer(text.encode(encoding, "replace").decode(encoding) + "\n")


def say(text: str) -> None:
    """Print a line to stderr."""
    shown = safe(text)
    encoding = sys.stderr.encoding or "ascii"
    print(shown.encode(encoding, "replace").decode(encoding), file=sys.stderr)


def tell(text: str) -> None:
    """Print lines to stderr, colours and all; a closed stream is ignored."""
    if sys.stderr is None:
        return  # print() would take stdout in its place
    encoding = getattr(sys.stderr, "encoding", None) or "ascii"
    try:
        print(text.encode(encoding, "replace").decode(encoding), file=sys.stderr, flush=True)
    except (OSError, ValueError, AttributeError):
        return


def complain(error: Exception | str, status: int) -> int:
    """Print an error in one line and return the exit status."""
    say(f"error: {' '.join(str(error).split())}")
    return status


@contextmanager
def ending_in_order() -> Iterator[None]:
    """Let SIGTERM, by which a job of CI is cancelled, run what must run at the end, as Ctrl-C does."""
    before = signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def warnings_said() -> Iterator[None]:
    """Print warnings as lines of stderr, without the source line that Python adds."""

    def hear(message: Warning | str, *place: Any, **more: Any) -> None:
        say(f"warning: {message}")

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = hear
        yield


def shows_colour(stream: TextIO | None) -> bool:
    """Whether to colour: on a terminal, unless NO_COLOR is set."""
    if stream is None or not stream.isatty():
        return False
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def shows_unicode(stream: TextIO | None) -> bool:
    """Whether the stream's encoding has the characters of a bar."""
    try:
        "█▏·–…".encode(getattr(stream, "encoding", None) or "ascii")  # noqa: RUF001 - these are the characters
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def width() -> int:
    """Columns of the terminal; by default COLUMNS or 80."""
    return shutil.get_terminal_size((80, 24)).columns


@contextmanager
def patience(message: str) -> Iterator[None]:
    """Show on a terminal that work continues, if it takes longer than a second."""
    if not sys.stderr.isatty():
        yield
        return
    shown: list[Any] = []

    def show() -> None:
        from rich.console import Console
        from rich.markup import escape

        status = Console(stderr=True).status(escape(message))
        status.start()
        shown.append(status)

    timer = Timer(_PATIENCE_S, show)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        for status in shown:
            status.stop()


def write_file(path: Path, content: str | bytes) -> None:
    """Write a file, a text in UTF-8 or bytes, that appears whole or not at all.

    Raises:
        OSError: it cannot be written.
    """
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except OSError as error:
        error.filename = str(path)  # and not the temporary name
        raise
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
