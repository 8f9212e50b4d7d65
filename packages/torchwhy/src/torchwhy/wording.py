"""Amounts and names as people read them, worded alike in all of the profiler; imports nothing of the project."""

from __future__ import annotations

import os
import re
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

__all__ = [
    "AMOUNT",
    "counted",
    "digits",
    "duration",
    "duration_ns",
    "enumeration",
    "often",
    "part_of",
    "percent",
    "ranges",
    "safe",
    "seconds",
    "sentence",
    "sentences",
    "shared_path",
    "shortened",
    "size_text",
    "working_folder",
    "wrapped",
]

_TIMES = ((60e6, "min"), (1e6, "s"), (1e3, "ms"), (1.0, "us"))
_SIZES = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))

_UNITS: Final = (*_TIMES, *_SIZES)

_HOME: Final = re.compile(r"(/home/[^/]+|/Users/[^/]+|/root|[A-Za-z]:[/\\]Users[/\\][^/\\]+)(?=[/\\])")

AMOUNT: Final = re.compile(r"[<>]?\d[\d.,]*( ?%| (min|s|ms|us|ns|TB|GB|MB|kB|B)\b)?")
"""A number as these functions write it, with its unit: what differs between two texts that say the same."""


def duration(us: float, more: int = 0) -> str:
    """Return microseconds with three significant digits, or `more`, and a fitting unit.

    >>> duration(12.34), duration(174812), duration(0.02), duration(0), duration(999.7)
    ('12.3 us', '175 ms', '20.0 ns', '0 us', '1.00 ms')
    """
    if not us:
        return "0 us"
    # From 999.5 on, three digits of the smaller unit would read 1000.
    scale, unit = next(((scale, unit) for scale, unit in _TIMES if abs(us) >= 0.9995 * scale), (1e-3, "ns"))
    return f"{_three_digits(us / scale, more)} {unit}"


def part_of(part: float, whole: float, text: Callable[[float, int], str] = duration) -> str:
    """Return a part and the whole, with as many digits as the part's share in per cent needs to follow from them.

    Args:
        part: microseconds, or what `text` takes.
        whole: likewise.
        text: `duration`, or `size_text`.

    >>> part_of(595_300, 846_900), part_of(224_460, 846_900), percent(224_460 / 846_900)
    ('595 ms of 847 ms', '224.5 ms of 846.9 ms', '27%')
    """
    share = percent(part / whole) if whole else ""
    texts = [(text(part, more), text(whole, more)) for more in range(4)]
    exact = (one for one in texts if whole and percent(_value(one[0]) / _value(one[1])) == share)
    return " of ".join(next(exact, texts[-1] if whole else texts[0]))


def duration_ns(ns: float) -> str:
    """Return nanoseconds, as the columns of a trace have them, like `duration`.

    >>> duration_ns(1_069_800_000), duration_ns(2_570)
    ('1.07 s', '2.57 us')
    """
    return duration(ns / 1e3)


def seconds(value_s: float) -> str:
    """Return seconds, as timers have them, like `duration`.

    >>> seconds(0.0123456), seconds(2.0), seconds(4.2e-8)
    ('12.3 ms', '2.00 s', '42.0 ns')
    """
    return duration(value_s * 1e6)


def size_text(size: float, more: int = 0) -> str:
    """Return bytes with three significant digits, or `more`, in powers of 1000, as bandwidths and messages are given.

    >>> size_text(115_600_000), size_text(2048), size_text(7), size_text(-1_500_000)
    ('116 MB', '2.05 kB', '7 B', '-1.50 MB')
    """
    scale, unit = next(((scale, unit) for scale, unit in _SIZES if abs(size) >= 0.9995 * scale), (1.0, "B"))
    return f"{size:.0f} B" if unit == "B" else f"{_three_digits(size / scale, more)} {unit}"


def working_folder() -> Path | None:
    """Return the folder in which this process works; None if it was removed."""
    try:
        return Path.cwd()
    except OSError:
        return None


def shared_path(path: str) -> str:
    """Return a path as reports that are shared have it: below the working folder relative, below anybody's home with ~.

    >>> shared_path("/home/me/net/train.py"), shared_path("C:\\\\Users\\\\me\\\\a.json"), shared_path("a.json")
    ('~/net/train.py', '~\\\\a.json', 'a.json')
    >>> shared_path(str(Path.cwd() / "runs" / "a.json")) == str(Path("runs") / "a.json")
    True
    """
    below = str(working_folder() or "") + os.sep
    if len(below) > 2 and path.startswith(below):
        return path[len(below) :]
    return _HOME.sub("~", path, count=1) if _HOME.match(path) else path


def percent(share: float) -> str:
    """Return a fraction in per cent, small ones with a digit more, and a part never as a rounded 0 or 100.

    >>> percent(0.3567), percent(0.0123), percent(0.00001), percent(0.9999), percent(0), percent(1), percent(1.3)
    ('36%', '1.2%', '<0.1%', '>99%', '0%', '100%', '130%')
    """
    if share <= 0:
        return "0%"
    if share < 0.001:
        return "<0.1%"
    if 0.995 <= share < 1:
        return ">99%"
    return f"{share:.1%}" if share < 0.0995 else f"{share:,.0%}"


def counted(number: int, one: str, many: str = "") -> str:
    """Return a number and its noun.

    >>> counted(1, "step"), counted(1200, "step"), counted(2, "copy", "copies")
    ('1 step', '1,200 steps', '2 copies')
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def digits(number: float, count: int = 3) -> str:
    """Return a number with `count` significant digits, or all digits of a large one, never as 1.23e+03.

    Beyond 15 digits a number has no more that are true, and is written as 1.23e+20.

    >>> digits(1234.5), digits(999.7), digits(12.345), digits(2.0), digits(15.49, 2), digits(0.01234), digits(1e300)
    ('1,234', '1,000', '12.3', '2', '15', '0.0123', '1e+300')
    """
    if abs(number) >= 1e15:
        return f"{number:.{count}g}"
    return f"{number:,.0f}" if abs(number) >= 10**count - 0.5 else f"{number:.{count}g}"


def often(count: int) -> str:
    """Return how many times.

    >>> often(1), often(1200)
    ('once', '1,200 times')
    """
    return "once" if count == 1 else f"{count:,} times"


def enumeration(words: Sequence[str]) -> str:
    """Join words.

    >>> enumeration(["a"]), enumeration(["a", "b", "c"]), enumeration([])
    ('a', 'a, b and c', '')
    """
    *first, last = words or [""]
    return f"{', '.join(first)} and {last}" if first else last


def sentence(clause: str) -> str:
    """Return a clause as a sentence.

    >>> sentence("no operator of PyTorch was recorded")
    'No operator of PyTorch was recorded.'
    """
    return f"{clause[:1].upper()}{clause[1:]}."


_END: Final = re.compile(r"(?<!\be\.g)(?<!\bi\.e)\. ")


def sentences(text: str) -> list[str]:
    """Return the sentences of a text, without their full stops.

    >>> sentences("Pad it, e.g. with zeros. Measure again.")
    ['Pad it, e.g. with zeros', 'Measure again']
    """
    return _END.split(text.removesuffix("."))


def ranges(numbers: Sequence[int]) -> str:
    """Return ascending numbers, those that follow each other as ranges, of many only the first.

    >>> ranges([0, 1, 2, 5, 7, 8])
    '0-2, 5, 7-8'
    """
    parts: list[list[int]] = []
    for number in numbers:
        if parts and parts[-1][-1] == number - 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    texts = [str(part[0]) if len(part) == 1 else f"{part[0]}-{part[-1]}" for part in parts]
    return ", ".join(texts[:6]) + (f" and {len(numbers) - sum(map(len, parts[:6]))} more" if len(texts) > 6 else "")


def shortened(text: str, length: int = 40) -> str:
    """Cut a name that is too long for its place.

    >>> shortened("void at::native::vectorized_elementwise_kernel<4, ...>", 24)
    'void at::native::vect...'
    """
    return text if len(text) <= length else text[: length - 3] + "..."


def safe(text: str) -> str:
    """Return foreign text as one line that cannot steer what shows it.

    Names in a trace may hold anything. Control characters (ESC, BEL, NUL, C1), characters that turn the direction of
    writing (U+202E), invisible ones and lone surrogates become U+FFFD; a line break or another blank becomes a space.

    >>> safe("aten::mm"), safe("two\\nlines"), safe("\\x1b[2Jcleared") == "\ufffd[2Jcleared"
    ('aten::mm', 'two lines', True)
    """
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else " " if one.isspace() else "\ufffd" for one in text)


def _three_digits(number: float, more: int = 0) -> str:
    digits = 2 if abs(number) < 9.995 else 1 if abs(number) < 99.95 else 0
    return f"{number:,.{digits + more}f}"


def _value(text: str) -> float:
    """What `duration` or `size_text` wrote, in microseconds or bytes."""
    number, unit = text.split()
    return float(number.replace(",", "")) * {"ns": 1e-3, "B": 1.0, **{name: scale for scale, name in _UNITS}}[unit]


_UNIT: Final = re.compile(r"(\d) (ns|us|ms|s|min)(?!\w)")


def wrapped(text: str, width: int, indent: int = 0) -> list[str]:
    """Break a text into lines at a width, each of them indented, but not between a number and its unit.

    >>> wrapped("It takes 12.3 us", 13, indent=1)
    [' It takes', ' 12.3 us']
    """
    kept, blank = _UNIT.sub("\\1\u00a0\\2", text), " " * indent
    lines: list[str] = []
    for paragraph in kept.split("\n"):
        lines += textwrap.wrap(paragraph, width, initial_indent=blank, subsequent_indent=blank, break_on_hyphens=False)
    return [line.replace("\u00a0", " ") for line in lines]
