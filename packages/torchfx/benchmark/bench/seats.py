"""Who takes part: contenders by name, in the processes that offer them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.chains import Chain
from bench.exact import BOUND, deviation
from bench.process import ContenderError, ContenderProcess, Peer
from bench.report import Refusal

__all__ = ["FLOORS", "PEER_BOUND", "Seat", "check", "take_seats"]

PEER_BOUND = 1e-3
"""The allowed deviation of other libraries, relative to the peak: those that filter in float32 reach 1e-5 and more."""

FLOORS = frozenset({"copy", "torch.mul"})
"""Contenders of this Python that filter nothing: they show what memory and a call cost at least."""

EXACT = "torchfx"
"""The library of this Python that is held to `BOUND`."""


@dataclass(frozen=True)
class Seat:
    """One contender on one device, in a separate process."""

    contender: str
    device: str
    process: ContenderProcess

    @property
    def label(self) -> str:
        """The contender's name in tables."""
        return self.process.peer.label(self.contender) + ("" if self.device == "cpu" else f" ({self.device})")

    @property
    def bound(self) -> float:
        """How far its result may be from the truth, relative to the truth's peak."""
        return BOUND if not self.process.peer.name and self.contender.startswith(EXACT) else PEER_BOUND


@contextmanager
def take_seats(
    kind: str, wanted: Sequence[str], peers: Sequence[Peer]
) -> Iterator[tuple[list[Seat], list[Refusal], Path]]:
    """Start a process for every wanted contender that this Python or a peer has.

    Args:
        kind: "whole" or "streams".
        wanted: contender names.
        peers: other Pythons.

    Yields:
        The seats, this Python's first; the peers that have nothing to offer; an empty folder for signals.
    """
    seats: list[Seat] = []
    refused: list[Refusal] = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="torchfx-bench-")))
        for peer in (Peer(), *peers):
            try:
                with ContenderProcess(peer) as process:
                    offered: dict[str, list[str]] = process.ask("probe")[kind]
            except ContenderError as error:
                refused.append(Refusal(peer.name, "cpu", "start", str(error)))
                continue
            found = [(name, device) for name in wanted for device in offered.get(name, ())]
            if peer.name:
                found = [(name, device) for name, device in found if name not in FLOORS]
            if not found:
                refused.append(Refusal(peer.name, "cpu", "start", f"none of {', '.join(wanted)} is installed there"))
            for name, device in found:
                seats.append(Seat(name, device, stack.enter_context(ContenderProcess(peer))))
        yield seats, refused, folder


def check(seat: Seat, chain: Chain, x: npt.NDArray[np.float32], answer: dict[str, Any], folder: Path) -> float:
    """Return how far the result a seat holds is from the truth.

    Raises:
        ContenderError: too far, or of another shape than the signal.
    """
    if (answer["channels"], answer["samples"]) != x.shape:
        raise ContenderError(f"its output is {answer['channels']} x {answer['samples']}, the input {x.shape}")

    def result(channel: int, start: int, stop: int) -> npt.NDArray[Any]:
        path = folder / "block.npy"
        seat.process.ask("block", channel=channel, start=start, stop=stop, path=str(path))
        block: npt.NDArray[Any] = np.load(path)
        return block

    off = deviation(chain, x, result)
    if off > seat.bound:
        raise ContenderError(f"its output is off by {off:.1e} of the peak, {seat.bound:.0e} is allowed")
    return off
