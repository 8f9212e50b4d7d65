"""MIDI controllers that set declared parameters."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from torchfx.checks import whole_number
from torchfx.errors import ArgumentError, TorchFXError
from torchfx.parameters import Declaration
from torchfx.realtime.live import RealtimeProcessor, parameter_key, parameters_of

__all__ = ["MidiMapping", "share_of", "value_at"]


class MidiMapping:
    """Map MIDI controllers to parameters.

    The controller values 0 ... 127 map to the parameter's declared useful range: linearly, or logarithmically for
    frequencies and times. `handle` takes messages of the package mido and ignores messages of controllers that are not
    mapped.

    Args:
        live: the processor whose parameters are set, or anything with its `set`, `note`, `chain` and `config`.
        controllers: for each controller number 0 ... 127, a parameter by name, or by position and name.
        channel: 0 ... 15; None: all.

    Raises:
        ArgumentError: a controller is out of range, or a parameter does not exist or is not a number.

    Examples:
        >>> import torch, torchfx as fx
        >>> chain = fx.filter.LoButterworth(1000)
        >>> live = fx.realtime.RealtimeProcessor(chain, fx.realtime.FileClock(torch.zeros(2, 64)))
        >>> mapping = MidiMapping(live, {7: "cutoff"})
        >>> mapping.set(7, 127)
        >>> chain.cutoff
        21600.0
    """

    def __init__(self, live: RealtimeProcessor, controllers: Mapping[int, str], channel: int | None = None) -> None:
        self.live = live
        self.channel = None if channel is None else whole_number("channel", channel, 0, 15)
        every = parameters_of(live.chain)
        self._parameters: dict[int, tuple[str, Declaration]] = {}
        for controller, name in controllers.items():
            whole_number("controller", controller, 0, 127)
            key = parameter_key(live.chain, name)
            declaration = every[key][1]
            if declaration.number is None:
                numbers = ", ".join(each for each, (_, other) in every.items() if other.number is not None)
                raise ArgumentError(
                    f"controller {controller} must set a number, one of {numbers or 'none'}, got {name!r}"
                )
            self._parameters[controller] = (key, declaration)

    def set(self, controller: int, value: int) -> None:
        """Set the parameter of a controller, if one is mapped, from a value 0 ... 127."""
        whole_number("value", value, 0, 127)
        if controller in self._parameters:
            name, declaration = self._parameters[controller]
            self.live.set(name, value_at(declaration, value / 127, self.live.config.sample_rate))

    def handle(self, message: Any) -> None:
        """Handle a message: an object with mido's `type`, `channel`, `control` and `value`."""
        if message.type == "control_change" and self.channel in {None, message.channel}:
            self.set(message.control, message.value)

    @contextmanager
    def listening(self, port: str | None = None) -> Iterator[None]:
        """Handle messages of a MIDI input (the first, or the input of this name) during the `with` block.

        `live.stats().problem` shows the error that a message raised, until the next message without an error.

        Raises:
            TorchFXError: mido or python-rtmidi is not installed, or the input does not exist.
        """
        with open_input(self._heard, port):
            yield

    def _heard(self, message: Any) -> None:
        """Take a message on the input's own thread, where an exception would go unseen."""
        try:
            self.handle(message)
            problem = ""
        except Exception as error:  # noqa: BLE001 - it is reported
            problem = f"MIDI message {message}: {error}"
        self.live.note("MIDI", problem)


@contextmanager
def open_input(handle: Callable[[Any], object], port: str | None) -> Iterator[None]:
    """Call `handle` with every message of a MIDI input."""
    try:
        import mido

        names = mido.get_input_names()
    except ImportError as error:
        raise TorchFXError(f"MIDI needs mido and python-rtmidi: pip install mido python-rtmidi ({error})") from None
    found = [name for name in names if port is None or port.lower() in name.lower()]
    if not found:
        wanted = "" if port is None else f" called {port!r}"
        raise TorchFXError(f"there is no MIDI input{wanted}; there are: {', '.join(names) or 'none'}")
    with mido.open_input(found[0], callback=handle):
        yield


def value_at(declaration: Declaration, share: float, rate: float) -> float:
    """Map a share in [0, 1] to a declared number's useful range, logarithmically for Hz and ms."""
    number = declaration.number
    assert number is not None
    low, high = number.drawn_range(rate)
    if number.logarithmic and low > 0:
        return low if share == 0 else high if share == 1 else math.exp(math.log(low) + share * math.log(high / low))
    return low + share * (high - low)


def share_of(declaration: Declaration, value: float, rate: float) -> float:
    """Return the share in [0, 1] of a value in a declared number's useful range; the inverse of `value_at`."""
    number = declaration.number
    assert number is not None
    low, high = number.drawn_range(rate)
    if number.logarithmic and low > 0:
        value, low, high = math.log(max(value, low)), math.log(low), math.log(high)
    return min(1.0, max(0.0, (value - low) / (high - low)))
