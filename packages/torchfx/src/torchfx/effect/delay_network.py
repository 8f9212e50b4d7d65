"""Effects made of delay lines that feed each other."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor

from torchfx import _ops
from torchfx.core.processor import Processor
from torchfx.effect import frequency_sampling
from torchfx.plan import Handover, State
from torchfx.plan.handover import Move, kept_lines
from torchfx.tensors import settings_on

__all__ = ["DelayNetwork", "Network", "block_matrix"]


class Network(NamedTuple):
    """Delay lines and their connections, as `_ops.delay_network_forward` takes them.

    Attributes:
        delays: of the lines, in samples, >= 1.
        system: float64, (..., lines + outputs, lines + inputs).
        sos: float64, (..., lines, sections, 6): the filter of each line; None: no filters.
    """

    delays: Sequence[int]
    system: Tensor
    sos: Tensor | None = None


class DelayNetwork(Processor):
    """A network of delay lines between the channels (..., inputs, time) and (..., outputs, time).

    A subclass implements `network`, and `outputs` if their number differs from the number of inputs. Parameters with
    one value per example have the shape (..., 1). A signal (time,) is one channel.
    """

    channels_apart: ClassVar[bool] = False
    """Whether each channel has a separate network, with one input and one output. Parameters then also broadcast with
    channels.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        """Declare that `whole` does not take every signal."""
        super().__init_subclass__(**options)
        cls.has_whole = False

    @abstractmethod
    def network(self, channels: int, rate: Any) -> Network:
        """Return the network for a number of channels; its leading dimensions come from the parameters."""

    def outputs(self, channels: int) -> int:
        """Return the number of outputs for a number of channels."""
        return channels

    def init_state(
        self, shape: tuple[int, ...], rate: Any, dtype: torch.dtype = torch.float32, device: Any = "cpu"
    ) -> State:
        """Return the state at rest: silent lines and zero filter states."""
        network, leading = self.network(self._channels(shape), rate), self._leading(shape)
        lines = torch.zeros(*leading, sum(network.delays), dtype=torch.float64, device=device)
        if network.sos is None:
            return (lines,)
        sections = network.sos.shape[-2]
        return lines, torch.zeros(sections, *leading, len(network.delays), 2, dtype=torch.float64, device=device)

    def output_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the output's leading dimensions for a signal with these."""
        leading, count = self._leading(shape), 1 if self.channels_apart else self.outputs(self._channels(shape))
        return leading if self.channels_apart or (not shape and count == 1) else (*leading, count)

    def step(self, x: Tensor, state: State, rate: Any) -> tuple[Tensor, State]:
        """Process the next block."""
        shape = tuple(x.shape[:-1])
        delays, system, sos = self.network(self._channels(shape), rate)
        sections = None if sos is None else settings_on(sos, x.device)
        lines, filters = (*state, None)[:2]
        y, *after = _ops.delay_network_forward(
            self._inputs(x), delays, settings_on(system, x.device), sections, lines, filters
        )
        return y.reshape(*self.output_shape(shape), x.shape[-1]), tuple(after[: len(state)])

    def whole(self, x: Tensor, rate: Any) -> Tensor | None:
        """Return the result for a long signal on a GPU, where the recursion would occupy a single multiprocessor; else
        None.
        """
        if not frequency_sampling.takes(x):
            return None
        shape = tuple(x.shape[:-1])
        y = frequency_sampling.from_rest(self._inputs(x), *self.network(self._channels(shape), rate))
        return y.reshape(*self.output_shape(shape), x.shape[-1])

    def native(self, program: Any, source: int, state: State, rate: Any) -> int | None:
        """Append the network, if it keeps the number of channels and nothing in it is learned."""
        shape = program.shape
        network = self.network(self._channels(shape), rate)
        if self.output_shape(shape) != shape or any(each is not None and each.requires_grad for each in network[1:]):
            return None
        found: int = program.delay_network(source, *network, *state)
        return found

    def take_over(self, before: Any, shape: tuple[int, ...], old: State, new: State, rate: Any) -> Handover:
        """Return the whole state if the lines' inputs stay the same; else only the lines' content, faded in and out.

        It starts from rest if the new settings could not have produced a tail as loud as the present one.
        """
        was, own = (each.network(self._channels(shape), rate) for each in (before, self))
        if len(was.delays) != len(own.delays) or old[0].shape[:-1] != new[0].shape[:-1] or _is_loud(was, own):
            return Handover((None,) * len(new), rises=True)
        if _write_alike(was, own):
            return Handover(tuple(Move(i) for i in range(len(new))))
        return Handover((kept_lines(0, was.delays, own.delays, rate), *(None,) * (len(new) - 1)), rises=True)

    def _inputs(self, x: Tensor) -> Tensor:
        """Return a signal with a dimension of inputs."""
        return x.unsqueeze(-2) if self.channels_apart or x.dim() == 1 else x

    def _channels(self, shape: tuple[int, ...]) -> int:
        return 1 if self.channels_apart or not shape else shape[-1]

    def _leading(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the dimensions before those of inputs and outputs, broadcast with the parameters'."""
        return self.broadcast_shape(shape) if self.channels_apart else self.broadcast_shape((*shape[:-1], 1))[:-1]


def _is_loud(was: Network, own: Network) -> bool:
    """Return whether lines become louder in the output while their loops let them decay faster."""
    count = len(own.delays)
    heard, heard_before = (each.system[..., count:, :count].abs() for each in (own, was))
    loop, loop_before = (_loop_gains(each) for each in (own, was))
    return bool((heard > 1.01 * heard_before).any() and (loop < 0.99 * loop_before).any())


def _write_alike(was: Network, own: Network) -> bool:
    """Return whether two networks put the same into their lines, whatever they make of what comes out."""
    count = len(own.delays)
    pairs = [(was.system[..., :count, :], own.system[..., :count, :])]
    if was.sos is not None and own.sos is not None:
        pairs.append((was.sos, own.sos))
    same = list(was.delays) == list(own.delays) and (was.sos is None) == (own.sos is None)
    return same and all(a.shape == b.shape and torch.equal(a, b) for a, b in pairs)


def _loop_gains(network: Network) -> Tensor:
    """Return the largest gain into each line, at 0 Hz, fs/4 and fs/2 of its filter, (3, ..., lines)."""
    joined = network.system[..., : len(network.delays), : len(network.delays)].abs().amax(-1)
    if network.sos is None:
        return joined.expand(3, *joined.shape)
    z = torch.tensor([1, -1j, -1], dtype=torch.complex128, device=joined.device).view(
        3, *(1,) * (network.sos.dim() - 1)
    )
    powers = torch.stack([z**k for k in range(3)], dim=-1)
    b, a = ((network.sos[..., i : i + 3] * powers).sum(-1) for i in (0, 3))
    return joined * (b / a).abs().prod(-1)


def block_matrix(rows: Sequence[Sequence[Tensor]]) -> Tensor:
    """Return a matrix of matrices (..., rows, columns), whose leading dimensions broadcast."""
    leading = torch.broadcast_shapes(*(block.shape[:-2] for row in rows for block in row))
    wide = [torch.cat([block.expand(*leading, *block.shape[-2:]) for block in row], dim=-1) for row in rows]
    return torch.cat(wide, dim=-2)
