"""Declared parameters of filters and effects.

    class Tremolo(Processor):
        rate_hz: Value = frequency(default=5.0)
        depth: Value = number(default=0.5, low=0.0, high=1.0)

A declaration determines the constructor's signature, checks at construction and assignment, the repr, the
documentation, parsing on the command line, and the range of random values. A declaration is a class attribute, as in
`dataclasses`, so type checkers know the constructor.

This module imports no PyTorch: the command line lists effects without it.
"""

from __future__ import annotations

import inspect
import itertools
import math
import os
import re
import warnings
from collections.abc import Iterable, Sequence
from numbers import Real
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from torchfx.checks import NUMBER, callers_level, finite_number, number_text, quantity, whole_number
from torchfx.checks import sample_rate as checked_rate
from torchfx.errors import ArgumentError, ArgumentTypeError

if TYPE_CHECKING:
    import torch
    from torch import Tensor
    from typing_extensions import dataclass_transform

    Value: TypeAlias = float | Tensor
else:
    Value = Any

    def dataclass_transform(**how):  # for type checkers only; importing it takes longer than this module
        return lambda cls: cls


__all__ = [
    "BUTTERWORTH_Q",
    "Declaration",
    "Declared",
    "Level",
    "PassZero",
    "Value",
    "choice",
    "count",
    "curve",
    "decibels",
    "denominator",
    "duration",
    "duration_samples",
    "flag",
    "frequencies",
    "frequency",
    "gain_decibels",
    "impulse_response",
    "level",
    "matrix",
    "milliseconds",
    "named",
    "number",
    "output_rate",
    "pass_zero",
    "per_band",
    "position",
    "processor",
    "quality",
    "ratio",
    "recording",
    "sample_rate",
    "sections",
    "shelf_slope",
    "taps",
    "transfer_points",
    "window",
]

REQUIRED: Any = inspect.Parameter.empty
BUTTERWORTH_Q = math.sqrt(0.5)

BAND_SYNONYMS = {
    "lowpass": ("low", "lp", "l"),
    "highpass": ("high", "hp", "h"),
    "bandpass": ("band", "pass", "bp"),
    "bandstop": ("stop", "bands", "bs"),
}
"""Further names of bands that `scipy.signal` accepts."""

WORDS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


class Declaration:
    """One declared parameter.

    Attributes:
        name: the parameter's name; the class that declares it sets it.
        default: the default value, or `REQUIRED`.
        doc: description, for the class's documentation.
        per_second: whether the value is a frequency or a time, so that the processor needs a sample rate.
        has_unit: whether the value has a unit; it can then also be a string, which `parse` reads.
        typical: a value as the command line takes it, for examples, if a signal is unchanged by the default.
    """

    name = ""
    typical = ""
    per_second = False
    has_unit = False

    @property
    def number(self) -> Number | None:
        """The declaration of a single number, if the value consists of numbers."""
        return None

    def __init__(self, default: Any = REQUIRED, doc: str = "") -> None:
        self.default = default
        self.doc = doc

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def check(self, value: Any, rate: float | None) -> Any:
        """Return the checked value as the processor stores it, or raise an error with parameter, range and value.

        Args:
            value: the given value.
            rate: the processor's sample rate, Hz; None if unknown.
        """
        return value

    def read(self, value: Any) -> Any:
        """Parse a string if the parameter has a unit; return other values unchanged."""
        return self.parse(value) if isinstance(value, str) and self.has_unit else value

    def parse(self, text: str) -> Any:
        """Parse a string; the result must then be checked."""
        raise ArgumentError(f"{self.name} cannot be given as text, got {text!r}")

    def show(self, value: Any) -> str:
        """Format a value."""
        return repr(value)

    def shown(self, value: Any) -> bool:
        """Return whether the repr includes this value."""
        return value is not self.default and not (isinstance(value, str) and value == self.default)

    def draw(self, random: Random, rate: float) -> Any:
        """Return a random value in range for a sample rate (Hz)."""
        return self.default

    def example(self) -> str:
        """Return an example for the command line, for required parameters."""
        return ""

    def range_text(self) -> str:
        """Return type, range and unit in words."""
        return ""

    def documentation(self) -> str:
        """Return the parameter's entry in the class documentation."""
        return "; ".join(part for part in (self.doc, self.range_text()) if part)


# --- numbers ----------------------------------------------------------------------------------------------------------


class Number(Declaration):
    """A real number: a float, a tensor with one value per example, or an `nn.Parameter` that is learned.

    Attributes:
        low, high: the range, including its ends unless `open_low` or `open_high`.
        unit: for messages.
        draws: the range of random values.
        logarithmic: whether they are log-uniformly distributed.
        learnable: whether tensors are accepted; otherwise one number applies to all examples, for instance if it
            determines a length.
        optional: whether the value may be None.
        infinite: whether infinity is allowed in a range without an upper end; as a string it is "inf".
    """

    infinite = False

    @property
    def number(self) -> Number:
        """This declaration."""
        return self

    def __init__(
        self,
        default: Any = REQUIRED,
        doc: str = "",
        low: float = -math.inf,
        high: float = math.inf,
        unit: str = "",
        open_low: bool = False,
        open_high: bool = False,
        draws: tuple[float, float] | None = None,
        logarithmic: bool = False,
        learnable: bool = True,
        optional: bool = False,
        typical: str = "",
    ) -> None:
        super().__init__(default, doc)
        self.typical = typical
        self.optional = optional or default is None
        self.low, self.high, self.unit = low, high, unit
        self.open_low, self.open_high = open_low or low == -math.inf, open_high or high == math.inf
        self.draws, self.logarithmic, self.learnable = draws, logarithmic, learnable
        self.has_unit = bool(unit)

    def bounds(self, rate: float | None) -> tuple[float, float]:
        """Return the range at a sample rate."""
        return self.low, self.high

    def bounds_text(self, rate: float | None) -> str:
        """Return the range as text."""
        left, right = "(" if self.open_low else "[", ")" if self.open_high else "]"
        text = f"{left}{number_text(self.low)}, {number_text(self.high)}{right}"
        return f"{text} {self.unit}".rstrip()

    def check(self, value: Any, rate: float | None) -> Any:
        """Return a float, or the tensor given; None where that is allowed."""
        value = self.read(value)
        if value is None and self.optional:
            return None
        if is_tensor(value):
            return self._checked_tensor(value, rate)
        if self.infinite and isinstance(value, Real) and value == math.inf:
            return math.inf
        found = value if isinstance(value, Level) else finite_number(self.name, value, self.unit)
        if not self.inside(found, rate):
            raise ArgumentError(f"{self.name} must lie in {self.bounds_text(rate)}, got {number_text(found)}")
        return found

    def inside(self, value: float, rate: float | None) -> bool:
        """Return whether a number lies in the range."""
        low, high = self.bounds(rate)
        return (value > low if self.open_low else value >= low) and (value < high if self.open_high else value <= high)

    def _checked_tensor(self, value: Tensor, rate: float | None) -> Any:
        from torchfx.tensors import is_readable

        if not self.learnable and value.requires_grad:
            raise ArgumentError(
                f"{self.name} cannot be learned here, got a tensor that requires a gradient; pass a number"
            )
        if not self.learnable and (value.dim() or not is_readable(value)):
            raise ArgumentTypeError(
                f"{self.name} must be one number for all examples, got a tensor {tuple(value.shape)}"
            )
        if not value.is_floating_point():
            if value.dim() == 0 and is_readable(value) and not value.is_complex():
                return self.check(value.item(), rate)
            raise ArgumentTypeError(f"{self.name} must hold floating point numbers, got {value.dtype}")
        if not is_readable(value):
            return value
        if value.dim() == 0 and not value.requires_grad:
            return self.check(float(value), rate)
        values = value.detach().reshape(-1)
        extremes = [each.item() for each in values.aminmax()] if len(values) else []  # NaN where there is one
        if not all(self._allows(each, rate) for each in extremes):
            bad = next(each for each in values.tolist() if not self._allows(each, rate))
            raise ArgumentError(f"{self.name} must lie in {self.bounds_text(rate)}, got {number_text(bad)}")
        return value

    def _allows(self, value: float, rate: float | None) -> bool:
        """Return whether a number, which may be NaN or infinite, lies in the range."""
        return (math.isfinite(value) or (self.infinite and value > 0)) and self.inside(value, rate)

    def parse(self, text: str) -> Any:
        """Return the number a text means."""
        if self.optional and text.strip().lower() == "none":
            return None
        if self.infinite and text.strip().lower() in {"inf", "infinity"}:
            return math.inf
        return quantity(self.name, text, self.unit)[0]

    def show(self, value: Any) -> str:
        """Return the number without a trailing .0; tensors by shape."""
        if is_tensor(value):
            return tensor_text(value)
        return "None" if value is None else number_text(value)

    def shown(self, value: Any) -> bool:
        """Return True: a number is always shown, unless it was left out."""
        return value is not self.default or value is not None

    def draw(self, random: Random, rate: float) -> float | None:
        """Return a random number from the range meant for it; None where that is the default."""
        if self.default is None:
            return None
        low, high = self.drawn_range(rate)
        if self.logarithmic:
            return math.exp(random.uniform(math.log(low), math.log(high)))
        return random.uniform(low, high)

    def drawn_range(self, rate: float) -> tuple[float, float]:
        """Return the range random values come from."""
        if self.draws is not None:
            return self.draws
        low, high = self.bounds(rate)
        return max(low, -1.0) if low == -math.inf else low, min(high, low + 2.0) if high == math.inf else high

    def range_text(self) -> str:
        """Return range and unit."""
        if self.low == -math.inf and self.high == math.inf:
            return self.unit
        return f"in {self.bounds_text(None)}"


class Frequency(Number):
    """A frequency between 0 and half the sample rate."""

    per_second = True

    def bounds(self, rate: float | None) -> tuple[float, float]:
        """Return (0, fs/2), or (0, inf) while the rate is unknown."""
        return 0.0, math.inf if rate is None else rate / 2

    def bounds_text(self, rate: float | None) -> str:
        """Return the range as text."""
        left, right = "(" if self.open_low else "[", ")" if self.open_high else "]"
        known = "" if rate is None else f" = {left}0, {number_text(rate / 2)}{right}"
        return f"{left}0, fs/2{right}{known} Hz"

    def drawn_range(self, rate: float) -> tuple[float, float]:
        """Return the audible part of the range."""
        return 20.0, 0.45 * rate

    def example(self) -> str:
        """Return a value as the command line takes it."""
        return "1kHz"

    def range_text(self) -> str:
        """Return the range."""
        return f"in {self.bounds_text(None)}"


class Ratio(Number):
    """By how many dB one level changes where another changes by 1 dB; from 1 to infinity."""

    infinite = True

    def __init__(self, default: Any = REQUIRED, doc: str = "", draws: tuple[float, float] | None = None) -> None:
        super().__init__(default, doc, low=1.0, draws=draws)
        self.open_high = False


class Milliseconds(Number):
    """A time."""

    per_second = True


class Level(float):
    """An amplitude that was given in decibels and shows itself so.

    Examples:
        >>> Level.from_decibels(-20.0)
        -20 dB
        >>> round(Level.from_decibels(-20.0) * 2, 12)
        0.2
    """

    db: float

    def __new__(cls, amplitude: float, db: float) -> Level:
        """Return the amplitude, with its level."""
        made = super().__new__(cls, amplitude)
        made.db = db
        return made

    @classmethod
    def from_decibels(cls, db: float) -> Level:
        """Return the amplitude 10^(db/20)."""
        return cls(math.pow(10, db / 20), db)

    def __getnewargs__(self) -> tuple[float, float]:  # type: ignore[override]
        return float(self), self.db

    def __repr__(self) -> str:
        return f"{number_text(self.db)} dB"

    __str__ = __repr__


MOST_DECIBELS = 6160.0
"""Twenty times the largest power of ten that a float holds."""


class Amplitude(Number):
    """A linear level; a text may give it in decibels, as "-3dB"."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.has_unit = True

    def parse(self, text: str) -> Any:
        """Return the number, or the amplitude of a level in decibels."""
        try:
            value, carried = quantity(self.name, text, "dB")
        except ArgumentError:
            raise ArgumentError(f"{self.name} must be a number or a text such as '-3dB', got {text!r}") from None
        if not carried:
            return float(value)
        if not value < MOST_DECIBELS:
            raise ArgumentError(
                f"{self.name} must stay below {number_text(MOST_DECIBELS)} dB, got {number_text(value)} dB"
            )
        return Level.from_decibels(value)

    def show(self, value: Any) -> str:
        """Return decibels where the level was given so."""
        return str(value) if isinstance(value, Level) else super().show(value)


# --- other kinds ------------------------------------------------------------------------------------------------------


class Count(Declaration):
    """A whole number."""

    def __init__(
        self,
        default: Any = REQUIRED,
        doc: str = "",
        low: int = 1,
        high: int | None = None,
        draws: tuple[int, int] = (1, 8),
    ) -> None:
        super().__init__(default, doc)
        self.low, self.high, self.draws = low, high, draws

    def check(self, value: Any, rate: float | None) -> int | None:
        """Return an int; None where that is the default."""
        if value is None and self.default is None:
            return None
        return whole_number(self.name, value, self.low, self.high)

    def parse(self, text: str) -> int | None:
        """Return the whole number a text means."""
        if self.default is None and text.strip().lower() == "none":
            return None
        if not re.fullmatch(r"[+-]?\d+", text.strip()):
            raise ArgumentError(f"{self.name} must be a whole number, got {text!r}")
        if len(text) > 15:
            raise ArgumentError(f"{self.name} must be {self.range_text()}, got {text.strip()}")
        return int(text)

    def shown(self, value: Any) -> bool:
        """Return True: a number is always shown, unless it was left out."""
        return value is not None

    def draw(self, random: Random, rate: float) -> int:
        """Return a random whole number from the range meant for it."""
        return random.randint(*self.draws)

    def example(self) -> str:
        """Return a value as the command line takes it."""
        return str(self.low if self.high is None and self.low > 101 else min(101, self.high or 101))

    def range_text(self) -> str:
        """Return the range."""
        return f"a whole number >= {self.low}" if self.high is None else f"a whole number in [{self.low}, {self.high}]"


class Flag(Declaration):
    """True or False."""

    def check(self, value: Any, rate: float | None) -> bool:
        """Return a bool."""
        if isinstance(value, bool) or type(value).__name__ in {"bool_", "bool"}:
            return bool(value)
        raise ArgumentTypeError(f"{self.name} must be True or False, got {value!r}")

    def parse(self, text: str) -> bool:
        """Parse yes, no and other truth values."""
        found = WORDS.get(text.strip().lower())
        if found is None:
            raise ArgumentError(f"{self.name} must be true or false, got {text!r}")
        return found

    def draw(self, random: Random, rate: float) -> bool:
        """Return one of the two."""
        return random.random() < 0.5

    def range_text(self) -> str:
        """Return the two values."""
        return "True or False"


class Duration(Declaration):
    """A time: seconds, or a text such as "250ms", "1:30" (minutes), "480 samples" or, with a tempo, "1/8."."""

    per_second = True
    has_unit = True
    CLOCK = re.compile(r"(?:(\d+):)?(\d+):(\d\d(?:\.\d*)?)")
    NOTE = re.compile(r"(\d+)/([1-9]\d*)\s*([.dt]?)")
    LENGTHENED: ClassVar[dict[str, float]] = {"": 1.0, ".": 1.5, "d": 1.5, "t": 2 / 3}

    def __init__(
        self,
        default: Any = REQUIRED,
        doc: str = "",
        notes: bool = False,
        drawn: float = 0.001,
        plausible: float = math.inf,
    ) -> None:
        super().__init__(default, doc)
        self.notes, self.drawn, self.plausible = notes, drawn, plausible

    def check(self, value: Any, rate: float | None) -> float | str:
        """Return seconds, or the text of a time in samples or notes; warn of a bare number that milliseconds explain.

        A number beyond `plausible` seconds is more likely one of milliseconds; a text with a unit is believed.
        """
        if isinstance(value, str):
            found = self.parse(value)
            bare = NUMBER.fullmatch(value.strip())
            if not bare or bare[2]:
                return found
            value = found
        found = finite_number(self.name, value, "s")
        if found < 0:
            raise ArgumentError(f"{self.name} must lie in [0, inf) s, got {number_text(found)}")
        if found > self.plausible:
            text = number_text(found)
            warnings.warn(
                f"{self.name} is in seconds, got {text}: for milliseconds write '{text}ms', for seconds '{text}s'",
                UserWarning,
                stacklevel=callers_level(),
            )
        return found

    def parse(self, text: str) -> float | str:
        """Return seconds, or the text of a time in samples or notes."""
        given = text.strip().lower()
        if re.fullmatch(r"\d+\s*samples", given) or (self.notes and self.NOTE.fullmatch(given)):
            return given
        if clock := self.CLOCK.fullmatch(given):
            return 3600 * int(clock[1] or 0) + 60 * int(clock[2]) + float(clock[3])
        try:
            value = float(quantity(self.name, given, "s")[0])
        except ArgumentError:
            value = -1.0
        if value < 0:
            raise ArgumentError(f"{self.name} must be {self.range_text()}, got {text!r}")
        return value

    def show(self, value: Any) -> str:
        """Return seconds, or the text."""
        return value if isinstance(value, str) else f"{number_text(value)} s"

    def shown(self, value: Any) -> bool:
        """Return True: a time is always shown."""
        return True

    def draw(self, random: Random, rate: float) -> float:
        """Return a short time."""
        return random.uniform(0.0, self.drawn)

    def range_text(self) -> str:
        """Return how a time may be given."""
        notes = ", or a part of a whole note: '1/4', '1/8.' dotted, '1/8t' triplet" if self.notes else ""
        return f"seconds >= 0, or a text such as '250ms', '1:30' or '480 samples'{notes}"


def duration_samples(value: float | str, rate: float, bpm: float = 120.0) -> int:
    """Return a duration in samples, to the nearest.

    Args:
        value: as a `duration` keeps it.
        rate: sample rate, Hz.
        bpm: quarter notes per minute.

    Examples:
        >>> duration_samples(0.25, 48_000), duration_samples("480 samples", 48_000)
        (12000, 480)
        >>> [duration_samples(note, 48_000, bpm=120) for note in ("1/4", "1/4.", "1/4t")]
        [24000, 36000, 16000]
    """
    if isinstance(value, str):
        note = Duration.NOTE.fullmatch(value)
        if note is None:
            return int(value.split("s")[0])
        value = int(note[1]) / int(note[2]) * Duration.LENGTHENED[note[3]] * 240 / bpm
    return round(value * rate)


def position(name: str, time: float | str, count: int, rate: float) -> int:
    """Return a time in a recording as a sample's index, to the nearest; a text with a "-" counts from the end.

    Args:
        name: the argument's, for errors.
        time: seconds, or a text as a `duration` takes it.
        count: samples of the recording.
        rate: sample rate, Hz.

    Examples:
        >>> position("start", 0.5, 48_000, 48_000), position("end", "-250ms", 48_000, 48_000)
        (24000, 36000)
    """
    from_end = isinstance(time, str) and time.startswith("-")
    given = time[1:] if isinstance(time, str) and from_end else time
    found = duration_samples(named(name, duration()).check(given, None), rate)
    return max(0, count - found) if from_end else found


class Choice(Declaration):
    """One of several names; letter case does not matter, and bands have SciPy's other names too ("low", "hp").

    Attributes:
        names: all of them.
        draws: those that random values are taken from.
        functions: whether a function may stand for a name.
    """

    def __init__(
        self,
        names: Sequence[str],
        default: Any = REQUIRED,
        doc: str = "",
        draws: Sequence[str] | None = None,
        functions: bool = False,
    ) -> None:
        super().__init__(default, doc)
        self.names = tuple(names)
        self.draws = self.names if draws is None else tuple(draws)
        self.functions = functions

    def check(self, value: Any, rate: float | None) -> Any:
        """Return the name as it is declared, or the function; None where that is the default."""
        if value is None and self.default is None:
            return None
        if isinstance(value, str):
            if value in self.names:
                return value
            for name in self.names:
                if value.lower() == name.lower() or value.lower() in BAND_SYNONYMS.get(name, ()):
                    return name
        if self.functions and callable(value):
            return value
        raise ArgumentError(f"{self.name} must be {self.range_text()}, got {value!r}")

    def parse(self, text: str) -> str | None:
        """Return the text."""
        return None if self.default is None and text.strip().lower() == "none" else text.strip()

    def show(self, value: Any) -> str:
        """Return the name in quotes, or the function's."""
        return repr(value) if value is None or isinstance(value, str) else getattr(value, "__name__", "?")

    def draw(self, random: Random, rate: float) -> str:
        """Return one of the names."""
        return random.choice(self.draws)

    def example(self) -> str:
        """Return a value as the command line takes it."""
        return self.names[0]

    def range_text(self) -> str:
        """Return the names."""
        return "one of " + ", ".join(self.names) + (", or a function" if self.functions else "")


class SampleRate(Declaration):
    """A processor's own sample rate; None follows the signal's."""

    has_unit = True

    def check(self, value: Any, rate: float | None) -> float | None:
        """Return the rate in Hz."""
        value = self.read(value)
        return None if value is None else checked_rate(value)

    def parse(self, text: str) -> float | None:
        """Return the rate a text means."""
        if text.strip().lower() == "none":
            return None
        return quantity(self.name, text, "Hz")[0]

    def show(self, value: Any) -> str:
        """Return the rate without a trailing .0."""
        return "None" if value is None else number_text(value)


class OutputRate(SampleRate):
    """The sample rate that a processor gives its output."""

    def check(self, value: Any, rate: float | None) -> float:
        """Return the rate in Hz."""
        found = finite_number(self.name, self.read(value), "Hz")
        if found <= 0:
            raise ArgumentError(f"{self.name} must lie in (0, inf) Hz, got {number_text(found)}")
        return int(found) if found.is_integer() else found

    def shown(self, value: Any) -> bool:
        """Return True: a rate requested is always shown."""
        return True

    def draw(self, random: Random, rate: float) -> int:
        """Return one of the rates in use."""
        return random.choice((16_000, 22_050, 44_100, 48_000, 96_000))

    def example(self) -> str:
        """Return a value as the command line takes it."""
        return "48kHz"

    def range_text(self) -> str:
        """Return the unit."""
        return "in Hz"


class Frequencies(Frequency):
    """One frequency, or several in ascending order; with `ends`, 0 and fs/2 too, and one may come twice."""

    def __init__(
        self, default: Any = REQUIRED, doc: str = "", drawn: int = 1, learnable: bool = False, ends: bool = False
    ) -> None:
        super().__init__(default, doc, unit="Hz", logarithmic=True, learnable=learnable)
        self.open_low = self.open_high = not ends
        self.drawn, self.ends = drawn, ends

    def draw(self, random: Random, rate: float) -> Any:
        """Return a random frequency, or several that lie well apart."""
        if self.drawn == 1:
            return super().draw(random, rate)
        slot = 0.45 * rate / self.drawn
        return [slot * (i + random.uniform(0.3, 0.7)) for i in range(self.drawn)]

    def check(self, value: Any, rate: float | None) -> Any:
        """Return a float, or a tuple of floats."""
        value = self.read(value)
        if isinstance(value, Real):
            return super().check(value, rate)
        kept = is_tensor(value) and (self.learnable or value.requires_grad)
        given = value.tolist() if hasattr(value, "tolist") and getattr(value, "ndim", 0) > 0 and not kept else value
        if isinstance(given, str) or not isinstance(given, Sequence):
            return super().check(given, rate)
        edges = tuple(super(Frequencies, self).check(edge, rate) for edge in given)
        steps = [high - low for low, high in itertools.pairwise(edges)]
        if not edges or any(step < 0 or (step == 0 and not self.ends) for step in steps):
            shown = ", ".join(map(number_text, edges))
            raise ArgumentError(f"{self.name} must be one or more ascending frequencies in Hz, got [{shown}]")
        return edges

    def parse(self, text: str) -> Any:
        """Return one frequency, or those of a list in brackets."""
        if not text.strip().startswith("["):
            return super().parse(text)
        return [super(Frequencies, self).parse(part) for part in text.strip()[1:-1].split(",")]

    def show(self, value: Any) -> str:
        """Return a number, or numbers in brackets."""
        if isinstance(value, tuple):
            return f"[{', '.join(map(number_text, value))}]"
        return super().show(value)

    def example(self) -> str:
        """Return a value as the command line takes it."""
        return "1kHz" if self.drawn == 1 else f"[{','.join(str(2000 * (i + 1)) for i in range(self.drawn))}]"

    def range_text(self) -> str:
        """Return the range."""
        return f"{super().range_text()}; several in ascending order"


class Taps(Declaration):
    """Coefficients (..., n): a sequence, an array or a tensor of real numbers."""

    def check(self, value: Any, rate: float | None) -> Tensor:
        """Return the tensor given, if it is one that is learned, or float64 values."""
        from torchfx.tensors import coefficients

        return coefficients(self.name, value)

    def parse(self, text: str) -> list[float]:
        """Return the numbers of a list in brackets."""
        if not re.fullmatch(r"\s*\[[^\[\]]*\]\s*", text):
            raise ArgumentError(f"{self.name} must be a list such as [0.5,0.5], got {text!r}")
        return [float(quantity(self.name, part, "")[0]) for part in text.strip()[1:-1].split(",")]

    def show(self, value: Any) -> str:
        """Return the number of taps."""
        *leading, count = value.shape
        text = f"{count} taps"
        return f"{tuple(leading)} x {text}" if leading else text

    def draw(self, random: Random, rate: float) -> list[float]:
        """Return a short random response."""
        return [random.uniform(-1, 1) for _ in range(random.randint(1, 40))]

    def example(self) -> str:
        """Return a value as the command line takes it."""
        return "[0.5,0.5]"

    def range_text(self) -> str:
        """Return the shape."""
        return "finite real numbers, (..., n >= 1)"


class Denominator(Taps):
    """The coefficients (..., n) of a polynomial a0 + a1/z + ... whose roots lie inside the unit circle."""

    def example(self) -> str:
        """Return a value as the command line takes it."""
        return "[1,-0.5]"

    def draw(self, random: Random, rate: float) -> list[float]:
        """Return a product of one or two stable polynomials of second order."""
        a = stable_polynomial(random)
        for _ in range(random.randint(0, 1)):
            factor = stable_polynomial(random)
            a = [sum(a[j] * factor[i - j] for j in range(3) if 0 <= i - j < 3) for i in range(5)]
        return a


class Sections(Taps):
    """Second-order sections (..., n, 6): rows b0 b1 b2 a0 a1 a2."""

    def check(self, value: Any, rate: float | None) -> Tensor:
        """Return the tensor given, if it is one that is learned, or float64 values."""
        from torchfx.tensors import sections

        return sections(self.name, value)

    def parse(self, text: str) -> Any:
        """Return the rows of a list of lists, or of one of 6, 12, ... numbers."""
        rows = [super(Sections, self).parse(row) for row in rows_of(text)]
        return [numbers[i : i + 6] for numbers in rows for i in range(0, len(numbers), 6)]

    def show(self, value: Any) -> str:
        """Return the number of sections."""
        *leading, count, _ = value.shape
        text = f"{count} section" + ("" if count == 1 else "s")
        return f"{tuple(leading)} x {text}" if leading else text

    def draw(self, random: Random, rate: float) -> Any:
        """Return a few stable sections."""
        return [
            [random.uniform(-1, 1) for _ in range(3)] + stable_polynomial(random) for _ in range(random.randint(1, 4))
        ]

    def example(self) -> str:
        """Return a value as the command line takes it."""
        return "[[1,0,0,1,-0.5,0]]"

    def range_text(self) -> str:
        """Return the shape."""
        return "finite real numbers, (..., n >= 1, 6)"


class Curve(Taps):
    """The outputs of a curve at evenly spaced inputs, or a function."""

    def check(self, value: Any, rate: float | None) -> Any:
        """Return the function given, or a tensor as `Taps` do."""
        return value if callable(value) else super().check(value, rate)

    def show(self, value: Any) -> str:
        """Return the function's name, or the number of values."""
        return getattr(value, "__name__", "?") if callable(value) else f"<{value.shape[-1]}>"

    def draw(self, random: Random, rate: float) -> list[float]:
        """Return a short random table."""
        return [random.uniform(-1, 1) for _ in range(random.randint(2, 9))]

    def example(self) -> str:
        """Return a value as the command line takes it."""
        return "[-0.8,-0.6,0,0.6,0.8]"

    def range_text(self) -> str:
        """Return what is accepted."""
        return "two or more finite real numbers, or a function"


class Matrix(Taps):
    """A matrix (..., outputs, inputs); as a text, "[[1, 0], [0, 1]]" or "[1, 0; 0, 1]"."""

    def check(self, value: Any, rate: float | None) -> Tensor:
        """Return the tensor given, if it is one that is learned, or float64 values."""
        found = super().check(value, rate)
        if found.dim() < 2 or found.shape[-2] == 0:
            raise ArgumentError(f"{self.name} must have the shape (..., outputs, inputs), got {tuple(found.shape)}")
        return found

    def parse(self, text: str) -> Any:
        """Return the rows."""
        return [super(Matrix, self).parse(row) for row in rows_of(text)]

    def show(self, value: Any) -> str:
        """Return the shape."""
        return f"<{'x'.join(map(str, value.shape))}>"

    def draw(self, random: Random, rate: float) -> Any:
        """Return a random matrix for two channels."""
        return [[random.uniform(-1, 1) for _ in range(2)] for _ in range(2)]

    def example(self) -> str:
        """Return a value as the command line takes it."""
        return "[[0.5,0.5],[0.5,0.5]]"

    def range_text(self) -> str:
        """Return the shape."""
        return "finite real numbers, (..., outputs, inputs)"


class TransferPoints(Matrix):
    """Points (..., n, 2) of a transfer curve: levels in dB, and what comes out at each."""

    HIGHEST = 1000.0
    DISTANCE = 1e-3  # dB; a line between closer points has a slope whose rounding is audible

    def check(self, value: Any, rate: float | None) -> Tensor:
        """Return the tensor given, if it is one that is learned, or float64 values."""
        from torchfx.tensors import is_readable

        found = super().check(value, rate)
        if found.shape[-1] != 2:
            raise ArgumentError(f"{self.name} must have the shape (..., points >= 1, 2), got {tuple(found.shape)}")
        if not is_readable(found):
            return found
        beyond = found.detach().abs().max().item()
        if beyond > self.HIGHEST:
            raise ArgumentError(f"{self.name} must lie in [{-self.HIGHEST:g}, {self.HIGHEST:g}] dB, got {beyond:g}")
        steps = found.detach()[..., 0].diff(dim=-1)
        if bool((steps < self.DISTANCE).any()):
            raise ArgumentError(
                f"{self.name} must have levels that rise by at least {self.DISTANCE:g} dB from point to point, "
                f"got a step of {steps.min().item():g} dB"
            )
        return found

    def show(self, value: Any) -> str:
        """Return the number of points."""
        *leading, count, _ = value.shape
        text = f"{count} point" + ("" if count == 1 else "s")
        return f"{tuple(leading)} x {text}" if leading else text

    def draw(self, random: Random, rate: float) -> Any:
        """Return up to four points at which levels change by up to 20 dB."""
        levels = [-10.0 - 18.0 * i - random.uniform(0, 9) for i in reversed(range(random.randint(1, 4)))]
        return [[level, level + random.uniform(-20, 20)] for level in levels]

    def example(self) -> str:
        """Return a value as the command line takes it."""
        return "[[-70,-70],[-60,-20]]"

    def range_text(self) -> str:
        """Return the shape."""
        return "dB, (..., points, 2), levels ascending"


def rows_of(text: str) -> list[str]:
    """Return the rows of a list of lists, each a list: of "[[1, 0], [0, 1]]", or of "[1, 0; 0, 1]".

    Examples:
        >>> rows_of("[[1, 0], [0, 1]]"), rows_of("[1, 0; 0, 1]")
        (['[1, 0]', '[0, 1]'], ['[1, 0]', '[ 0, 1]'])
    """
    inner = text.strip().removeprefix("[").removesuffix("]")
    if "[" in inner:
        return [row.strip() for row in re.split(r"(?<=\])\s*,\s*(?=\[)", inner.strip())]
    return [f"[{row}]" for row in inner.split(";")]


def stable_polynomial(random: Random) -> list[float]:
    """Return 1, a1, a2 of a random section whose poles keep a distance from the unit circle."""
    a2 = random.uniform(-0.9, 0.9)
    return [1.0, random.uniform(-0.95, 0.95) * (1 + a2), a2]


class PerBand(Declaration):
    """One value for all bands, or one for each: a sequence, or a tensor (..., bands)."""

    @property
    def number(self) -> Number | None:
        """The declaration of each value."""
        return self.each.number

    DRAWN = 3  # bands; the same number from every declaration, so that those of a class fit each other

    def __init__(self, each: Declaration, default: Any = REQUIRED) -> None:
        super().__init__(default, each.doc)
        self.each = each
        self.per_second, self.has_unit, self.typical = each.per_second, each.has_unit, each.typical

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = self.each.name = name

    def check(self, value: Any, rate: float | None) -> Any:
        """Return one checked value, a tuple of them, or the tensor given."""
        value = self.read(value)
        if isinstance(value, Real):
            return self.each.check(value, rate)
        learned = is_tensor(value) and (value.requires_grad or (self.number is not None and self.number.learnable))
        if getattr(value, "ndim", 0) > 0 and not learned:
            value = value.tolist()
        if not isinstance(value, (list, tuple)):
            return self.each.check(value, rate)
        if not value:
            raise ArgumentError(f"{self.name} must hold a value for each band, got none")
        if any(is_tensor(each) for each in value):
            raise ArgumentTypeError(f"{self.name} must be numbers or one tensor (..., bands), got a list of tensors")
        return tuple(self.each.check(each, rate) for each in value)

    def parse(self, text: str) -> Any:
        """Return one value, or those of a list in brackets."""
        if not text.strip().startswith("["):
            return self.each.parse(text)
        return [self.each.parse(part) for part in text.strip()[1:-1].split(",")]

    def show(self, value: Any) -> str:
        """Return one value, or values in brackets."""
        if isinstance(value, tuple):
            return f"[{', '.join(map(self.each.show, value))}]"
        return self.each.show(value)

    def shown(self, value: Any) -> bool:
        """Return whether one value is shown; several always are."""
        return isinstance(value, tuple) or self.each.shown(value)

    def draw(self, random: Random, rate: float) -> Any:
        """Return a random value for each of a few bands."""
        return [self.each.draw(random, rate) for _ in range(self.DRAWN)]

    def example(self) -> str:
        """Return a value as the command line takes it."""
        return "1kHz" if self.per_second else "[1,0,1]"

    def range_text(self) -> str:
        """Return the range of each."""
        return f"{self.each.range_text()}; one value, one for each band, or a tensor (..., bands)"


class ImpulseResponse(Taps):
    """An impulse response: coefficients, or the path of an audio file, which is kept as text."""

    def check(self, value: Any, rate: float | None) -> Any:
        """Return the path, or a tensor as `Taps` do."""
        return os.fspath(value) if isinstance(value, (str, os.PathLike)) else super().check(value, rate)

    def parse(self, text: str) -> Any:
        """Return a path, or the numbers of a list in brackets."""
        return super().parse(text) if text.strip().startswith("[") else text.strip()

    def show(self, value: Any) -> str:
        """Return the path, or the number of taps."""
        return repr(value) if isinstance(value, str) else super().show(value)

    def range_text(self) -> str:
        """Return the shapes."""
        return "a path, or finite real numbers (n,), (channels, n) or (2, 2, n)"


class Recording(ImpulseResponse):
    """Samples (n,) or (channels, n), or the path of an audio file, which is kept as text; None where that may be."""

    def check(self, value: Any, rate: float | None) -> Any:
        """Return the path, the samples as float64, or None."""
        return None if value is None and self.default is None else super().check(value, rate)

    def show(self, value: Any) -> str:
        """Return the path, or the shape."""
        if value is None or isinstance(value, str):
            return repr(value)
        return f"<{'x'.join(map(str, value.shape))}>"

    def shown(self, value: Any) -> bool:
        """Return whether there is one."""
        return value is not None

    def draw(self, random: Random, rate: float) -> Any:
        """Return a few samples, or None where that is the default."""
        return None if self.default is None else super().draw(random, rate)

    def range_text(self) -> str:
        """Return the shapes."""
        return "a path, or finite real numbers (n,) or (channels, n)"


class SideProcessor(Declaration):
    """Another processor that this one asks, such as a side chain; None: none."""

    def check(self, value: Any, rate: float | None) -> Any:
        """Return the processor."""
        if value is not None and getattr(value, "kind", None) not in {"lti", "causal", "chain", "parallel"}:
            got = f"{value!r} ({type(value).__name__})"
            raise ArgumentTypeError(f"{self.name} must be a filter or an effect that streams, or None, got {got}")
        return value

    def shown(self, value: Any) -> bool:
        """Return False: modules show the modules in them by themselves."""
        return False

    def range_text(self) -> str:
        """Return what is accepted."""
        return "a filter or an effect that streams, or None"


class PassZero(Declaration):
    """Whether 0 Hz passes: True or False, or SciPy's names for the four types of band."""

    NAMES = ("lowpass", "bandstop", "highpass", "bandpass")

    def check(self, value: Any, rate: float | None) -> bool | str:
        """Return the truth value or the name."""
        found: bool | str = self._as(Choice(self.NAMES) if isinstance(value, str) else Flag()).check(value, rate)
        return found

    def parse(self, text: str) -> Any:
        """Return a name or a truth value."""
        return text.strip() if text.strip().lower() in self.NAMES else self._as(Flag()).parse(text)

    def range_text(self) -> str:
        """Return the values."""
        return f"True or False, or one of {', '.join(self.NAMES)}"

    def _as(self, other: Declaration) -> Any:
        other.name = self.name
        return other


class WindowName(Declaration):
    """A window: a name that `scipy.signal.get_window` knows, or (name, parameter)."""

    def check(self, value: Any, rate: float | None) -> str | tuple[str, float]:
        """Return a name, or a pair of name and number."""
        if isinstance(value, str):
            return value
        if not (isinstance(value, (tuple, list)) and len(value) == 2 and isinstance(value[0], str)):
            raise ArgumentTypeError(f"{self.name} must be a name or a pair (name, parameter), got {value!r}")
        return str(value[0]), finite_number(f"{self.name}'s parameter", value[1])

    def shown(self, value: Any) -> bool:
        """Return whether it is another window than the default."""
        return bool(value != self.default)

    def parse(self, text: str) -> str:
        """Return the name."""
        return text.strip()

    def draw(self, random: Random, rate: float) -> str | tuple[str, float]:
        """Return a window at random."""
        names: list[str | tuple[str, float]] = ["hamming", "hann", "blackman", ("kaiser", 8.0)]
        return random.choice(names)

    def range_text(self) -> str:
        """Return what a window is."""
        return "a name or (name, parameter) that `scipy.signal.get_window` knows"


# --- what classes write -----------------------------------------------------------------------------------------------


def number(
    *,
    default: Any = REQUIRED,
    doc: str = "",
    low: float = -math.inf,
    high: float = math.inf,
    unit: str = "",
    open_low: bool = False,
    open_high: bool = False,
    draws: tuple[float, float] | None = None,
    learnable: bool = True,
    optional: bool = False,
    typical: str = "",
) -> Any:
    """Declare a real number in [low, high]; `open_low` and `open_high` exclude the ends.

    Args:
        default: the default value; without it the parameter is required.
        doc: description of the parameter.
        low, high, open_low, open_high: the range.
        unit: for messages.
        draws: the range of random values; by default the whole range, if it is finite.
        learnable: whether tensors that require a gradient are accepted.
        optional: whether None is also accepted; implied by a default of None.
        typical: a value as the command line takes it, for examples, if a signal is unchanged by the default.
    """
    return Number(default, doc, low, high, unit, open_low, open_high, draws, False, learnable, optional, typical)


def frequency(*, default: Any = REQUIRED, doc: str = "", learnable: bool = True) -> Any:
    """Declare a frequency in Hz, in (0, fs/2)."""
    return Frequency(default, doc, unit="Hz", open_low=True, open_high=True, logarithmic=True, learnable=learnable)


def frequencies(
    *, default: Any = REQUIRED, doc: str = "", drawn: int = 1, learnable: bool = False, ends: bool = False
) -> Any:
    """Declare one frequency in Hz or several in ascending order, in (0, fs/2); learned frequencies are one tensor.

    `drawn` is the number of random frequencies. With `ends`, the range includes 0 and fs/2.
    """
    return Frequencies(default, doc, drawn, learnable, ends)


def per_band(each: Any, *, default: Any = REQUIRED) -> Any:
    """Declare a parameter with one value for all bands or one value per band."""
    return PerBand(each, default)


def quality(*, default: Any = REQUIRED, doc: str = "quality factor") -> Any:
    """Declare a quality factor Q; `BUTTERWORTH_Q`, 0.7071, is the usual default."""
    return Number(default, doc, 1e-3, 1e6, draws=(0.3, 8.0), logarithmic=True)


def ratio(*, default: Any = REQUIRED, doc: str = "", draws: tuple[float, float] = (1.0, 20.0)) -> Any:
    """Declare the ratio of a compressor or expander, in [1, inf]; infinity gives a limiter or gate."""
    return Ratio(default, doc, draws)


def shelf_slope(*, default: None = None) -> Any:
    """Declare a shelf's slope S, or None to use the quality factor."""
    return Number(default, "slope S instead of q; 1 is the steepest that stays monotonic", 0.0, 1.0, open_low=True)


def gain_decibels(*, default: Any = REQUIRED, doc: str = "gain", typical: str = "") -> Any:
    """Declare the gain of an equaliser's band in decibels, in [-200, 200]."""
    return Number(default, doc, -200.0, 200.0, "dB", draws=(-18.0, 18.0), typical=typical)


def milliseconds(
    *,
    default: Any = REQUIRED,
    doc: str = "",
    low: float = 0.0,
    high: float = math.inf,
    draws: tuple[float, float] = (1, 200),
    learnable: bool = True,
) -> Any:
    """Declare a time in milliseconds, in [low, high]."""
    return Milliseconds(default, doc, low, high, "ms", draws=draws, logarithmic=True, learnable=learnable)


def decibels(
    *,
    default: Any = REQUIRED,
    doc: str = "",
    low: float = -math.inf,
    high: float = MOST_DECIBELS,
    draws: tuple[float, float] = (-40.0, 12.0),
) -> Any:
    """Declare a level or gain in decibels; strings such as "-3dB" are accepted."""
    return Number(default, doc, low, high, "dB", draws=draws)


def level(
    *,
    default: Any = REQUIRED,
    doc: str = "",
    low: float = -math.inf,
    open_low: bool = False,
    draws: tuple[float, float] = (0.05, 2.0),
    typical: str = "",
) -> Any:
    """Declare an amplitude (a linear level); strings such as "-3dB" are converted from decibels."""
    return Amplitude(default, doc, low, open_low=open_low, draws=draws, typical=typical)


def count(
    *, default: Any = REQUIRED, doc: str = "", low: int = 1, high: int | None = None, draws: tuple[int, int] = (1, 8)
) -> Any:
    """Declare a whole number in [low, high]."""
    return Count(default, doc, low, high, draws)


def duration(
    *,
    default: Any = REQUIRED,
    doc: str = "",
    notes: bool = False,
    drawn: float = 0.001,
    plausible: float = math.inf,
) -> Any:
    """Declare a time: seconds, or a string with a unit; `duration_samples` converts it to samples.

    `notes` allows fractions of a whole note, `drawn` is the longest random time in seconds, and a number above
    `plausible` seconds causes a warning.
    """
    return Duration(default, doc, notes, drawn, plausible)


def flag(*, default: Any = REQUIRED, doc: str = "") -> Any:
    """Declare True or False."""
    return Flag(default, doc)


def choice(
    names: Sequence[str],
    *,
    default: Any = REQUIRED,
    doc: str = "",
    draws: Sequence[str] | None = None,
    functions: bool = False,
) -> Any:
    """Declare one of several names, or a function."""
    return Choice(names, default, doc, draws, functions)


def sample_rate(*, default: None = None) -> Any:
    """Declare the sample rate of a processor that depends on it; type checkers need an explicit `default=None`."""
    return SampleRate(default, "sample rate in Hz, or None to follow the signal's")


def output_rate(*, default: Any = REQUIRED, doc: str = "") -> Any:
    """Declare the output sample rate (Hz) of a processor."""
    return OutputRate(default, doc)


def impulse_response(*, doc: str = "") -> Any:
    """Declare an impulse response: coefficients, or the path of an audio file."""
    return ImpulseResponse(REQUIRED, doc)


def recording(*, default: Any = REQUIRED, doc: str = "") -> Any:
    """Declare a recording: samples, or the path of an audio file."""
    return Recording(default, doc)


def taps(*, doc: str = "") -> Any:
    """Declare the taps of an FIR filter."""
    return Taps(REQUIRED, doc)


def curve(*, doc: str = "") -> Any:
    """Declare a curve: a table of outputs for evenly spaced inputs, or a function."""
    return Curve(REQUIRED, doc)


def matrix(*, doc: str = "") -> Any:
    """Declare a matrix (..., outputs, inputs)."""
    return Matrix(REQUIRED, doc)


def transfer_points(*, doc: str = "") -> Any:
    """Declare the points of a transfer curve: input and output levels in dB."""
    return TransferPoints(REQUIRED, doc)


def denominator(*, doc: str = "") -> Any:
    """Declare the denominator of a transfer function."""
    return Denominator(REQUIRED, doc)


def sections(*, doc: str = "") -> Any:
    """Declare second-order sections."""
    return Sections(REQUIRED, doc)


def processor(*, default: None = None, doc: str = "") -> Any:
    """Declare another processor, such as a side chain, or None."""
    return SideProcessor(default, doc)


def pass_zero(*, default: Any = REQUIRED, doc: str = "") -> Any:
    """Declare whether 0 Hz passes, or a band type."""
    return PassZero(default, doc)


def window(*, default: Any = REQUIRED, doc: str = "") -> Any:
    """Declare a window of `scipy.signal.get_window`."""
    return WindowName(default, doc)


# Type checkers want the functions spelled out here.
@dataclass_transform(
    eq_default=False,
    field_specifiers=(
        choice, count, curve, decibels, denominator, duration, flag, frequencies, frequency, gain_decibels,
        impulse_response, level, matrix, milliseconds, number, output_rate, pass_zero, per_band, processor,
        quality, ratio, recording, sample_rate, sections, shelf_slope, taps, transfer_points, window,
    ),
)  # fmt: skip
class Declared:
    """Base of what has declared parameters: type checkers derive constructors of subclasses from the declarations.

    The attributes are defined here, since those of a subclass would be taken for parameters.
    """

    declarations: ClassVar[dict[str, Declaration]] = {}
    """The declared parameters by name, in the order of the constructor."""

    fs: float | None = None
    _device: torch.device | None = None
    _half: torch.dtype | None = None
    _stamp: object = None


def named(name: str, declaration: Any) -> Declaration:
    """Return a declaration for a function's argument."""
    declaration.__set_name__(object, name)
    found: Declaration = declaration
    return found


# --- what follows from a class's declarations -------------------------------------------------------------------------


IGNORED_RATE = SampleRate(None)
IGNORED_RATE.name = "fs"
"""The declaration of `fs` for a processor that does not depend on a sample rate: checked, and not kept."""


def accepted(declarations: Iterable[Declaration]) -> dict[str, Declaration]:
    """Return what a constructor accepts, by name: the declared parameters, and `fs` in any case."""
    found = {each.name: each for each in declarations}
    return found if "fs" in found else {**found, "fs": IGNORED_RATE}


def signature(declarations: Sequence[Declaration]) -> inspect.Signature:
    """Return the constructor's signature: the declared parameters in their order, and `fs` by name in any case."""
    return inspect.Signature(
        [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY if each is IGNORED_RATE else inspect.Parameter.POSITIONAL_OR_KEYWORD,
                default=each.default,
            )
            for name, each in accepted(declarations).items()
        ]
    )


def documented(text: str, declarations: Sequence[Declaration]) -> str:
    """Return a class's documentation with its parameters: after the description, before examples."""
    lines = [f"    {each.name}: {each.documentation()}." for each in declarations if each.documentation()]
    if not lines or "\n    Args:\n" in text:
        return text
    before, heading, after = text.partition("\n    Examples:\n")
    section = "\n".join(["    Args:", *(f"    {line}" for line in lines)])
    return f"{before.rstrip()}\n\n{section}\n{heading or '    '}{after}"


def is_tensor(value: object) -> bool:
    """Return whether a value is a PyTorch tensor, without importing PyTorch."""
    return not isinstance(value, Real) and hasattr(value, "requires_grad") and hasattr(value, "detach")


def tensor_text(value: Tensor) -> str:
    """Return a tensor of one value as that value, to six digits, others by their shape."""
    from torchfx.tensors import is_readable

    if value.numel() == 1 and is_readable(value):
        return number_text(float(f"{float(value.detach()):.6g}"))
    return "?" if value.dim() == 0 else f"<{'x'.join(map(str, value.shape))}>"


def is_real(value: object) -> bool:
    """Return whether a value is a real number and no bool."""
    return isinstance(value, Real) and not isinstance(value, bool)
