"""Where text goes: the answer to stdout, progress and trouble to stderr. rich is loaded when something is drawn."""

from __future__ import annotations

import errno
import json
import math
import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from torchfx.errors import ArgumentError

if TYPE_CHECKING:
    from rich.console import Console

__all__ = [
    "answer",
    "check_format",
    "complain",
    "line",
    "lose_output",
    "output_lost",
    "rich_console",
    "safe",
    "say",
    "show_data",
    "show_table",
    "shows_unicode",
    "warnings_said",
    "width",
    "write_file",
]

FORMATS = ("text", "json")
WIDEST = 10_000
_lost: list[OSError] = []


def safe(text: str) -> str:
    """Return foreign text as one line that cannot steer a terminal.

    Control characters, characters that turn the direction of writing, invisible ones and lone surrogates become
    U+FFFD; a line break or another blank becomes a space.

    >>> safe("take 1.wav"), safe("two\\nlines"), safe("\\x1b[2Jcleared") == "\ufffd[2Jcleared"
    ('take 1.wav', 'two lines', True)
    """
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else " " if one.isspace() else "\ufffd" for one in text)


def check_format(form: str) -> None:
    """Raise ArgumentError unless a format is one of those there are."""
    if form not in FORMATS:
        raise ArgumentError(f"--format must be text or json, got {form!r}")


def show_data(data: Any) -> None:
    """Print a dataclass as JSON; numbers that JSON cannot hold, such as the loudness of silence, are null."""
    answer(json.dumps(_plain(asdict(data)), indent=2) + "\n")


def show_table(
    titles: Sequence[str], rows: Sequence[Sequence[str]], *, caption: str = "", numbers: Sequence[str] = ()
) -> None:
    """Print a table as wide as the terminal; where stdout is not a terminal, it is as wide as its texts.

    Nothing is shortened. Where there is no room, titles of several words take a line for each, then texts go on in
    further lines; numbers stay whole.

    Args:
        titles: of the columns; with empty ones only, the table has no head.
        rows: cells.
        caption: what it is about.
        numbers: titles of columns that are aligned to the right.
    """
    from rich.table import Table
    from rich.text import Text

    console = rich_console()
    table = Table(box=None, show_header=any(titles), pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    widths = [max(len(safe(row[i])) for row in (titles, *rows)) for i in range(len(titles))]
    narrow = sum(widths) + 2 * len(titles) > console.width
    for title in titles:
        words = title.replace(" ", "\n") if narrow else title
        number = title in numbers
        table.add_column(words, justify="right" if number else "left", overflow="fold", no_wrap=number)
    for row in rows:
        table.add_row(*(Text(safe(cell)) for cell in row))
    with console.capture() as drawn:
        if caption:
            console.print(safe(caption), markup=False)
        console.print(table, soft_wrap=False)
    answer("".join(f"{text.rstrip()}\n" for text in drawn.get().splitlines()))


def rich_console(*, stderr: bool = False) -> Console:
    """Return rich's console for stdout or stderr; it shows "?" for what the encoding lacks."""
    from rich.console import Console

    class AnyText(Console):
        def print(self, *objects: Any, **options: Any) -> None:
            super().print(*(self._shown(item) if isinstance(item, str) else item for item in objects), **options)

        def _shown(self, text: str) -> str:
            return text.encode(self.encoding, "replace").decode(self.encoding)

    # Without emoji, a file named :cat:.wav is called that.
    piped = not (sys.stderr if stderr else sys.stdout).isatty()
    return AnyText(stderr=stderr, highlight=False, soft_wrap=True, emoji=False, width=WIDEST if piped else None)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def answer(text: str) -> None:
    """Print to stdout, in UTF-8 where the terminal's encoding lacks a character; a closed pipe is ignored.

    Where stdout cannot be written to, that is said once, the work continues, and the command ends with status 3.
    """
    try:
        try:
            sys.stdout.write(text)
        except UnicodeEncodeError:
            sys.stdout.buffer.write(text.encode())
        sys.stdout.flush()
    except OSError as error:
        lose_output(error)


def lose_output(error: OSError) -> None:
    """Drop what is printed to stdout from now on; say why, unless a reader has closed the pipe."""
    if not _reader_left(error):
        complain(f"cannot write to stdout: {error.strerror or error}", 3)
        _lost.append(error)
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python complains when it exits


def _reader_left(error: OSError) -> bool:
    return isinstance(error, BrokenPipeError) or (sys.platform == "win32" and error.errno == errno.EINVAL)


def output_lost() -> bool:
    """Whether stdout could not be written to since this was asked last."""
    lost = bool(_lost)
    _lost.clear()
    return lost


def line(text: str) -> None:
    """Print a line to stdout, with "?" for what its encoding lacks, such as bytes of a name that are no UTF-8."""
    encoding = sys.stdout.encoding or "ascii"
    answer(text.encode(encoding, "replace").decode(encoding) + "\n")


def say(text: str) -> None:
    """Print a line to stderr."""
    shown = safe(text)
    encoding = sys.stderr.encoding or "ascii"
    print(shown.encode(encoding, "replace").decode(encoding), file=sys.stderr)


def complain(error: Exception | str, status: int) -> int:
    """Print an error in one line and return the exit status."""
    say(f"error: {' '.join(str(error).split())}")
    return status


@contextmanager
def warnings_said() -> Iterator[None]:
    """Print warnings as lines of stderr, without the source line that Python adds."""

    def hear(message: Warning | str, *place: Any, **more: Any) -> None:
        say(f"warning: {message}")

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = hear
        yield


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


def write_file(path: Path, content: str | bytes) -> None:
    """Write a file, a text in UTF-8 or bytes, that appears whole or not at all.

    Raises:
        OSError: it cannot be written.
    """
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
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
