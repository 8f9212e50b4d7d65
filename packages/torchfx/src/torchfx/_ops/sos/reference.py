"""The cascade in plain PyTorch: what the native kernels are tested against, and what other devices run.

Two forms of the same thing. `loop` is the recurrence as one would write it on paper. `scan` is for long signals:
it turns time into blocks, filters each from rest with one matrix product, and carries the state from block to block
by doubling, so that nothing loops over samples.

Both keep the state in shifted form. With DF2T states s (SciPy's zi) and a shift k in {-1, 0, 1},

    w1 = s1,  w2 = s2 + k s1
    y   = b0 x + w1
    w1' = k w1 + w2 + q1 x - p1 y        p1 = 2k + a1,  q1 = 2k b0 + b1
    w2' = k w2      + q0 x - p0 y        p0 = k^2 + k a1 + a2,  q0 = k^2 b0 + k b1 + b2

which is the same filter with z - k instead of z. For poles near z = k the small numbers p0, p1 carry the full
precision that a1 = -1.9999, a2 = 0.9999 hide: a 20 Hz filter at 192 kHz keeps 13 digits instead of 10. (k = 1 is the
delta operator of Middleton and Goodwin, 1986.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from torchfx._ops import splitting
from torchfx._ops.checks import check_stable
from torchfx._ops.sos import gradient

if TYPE_CHECKING:
    import numpy.typing as npt

    Wide = npt.NDArray[np.longdouble]

BLOCK = 64


def sos_forward(x: Tensor, sos: Tensor, state: Tensor | None, threshold: int | None, y: Tensor, after: Tensor) -> None:
    """Run the cascade on any device that has float64."""
    check_stable(sos)
    if y.numel() == 0:
        after.zero_() if state is None else after.copy_(state)
        return
    *leading, time = y.shape
    signal = x.expand(y.shape).reshape(-1, time).double()
    rows = sos if sos.dim() == 2 else sos.expand(*leading, *sos.shape[-2:])
    rows = rows.reshape(-1, *sos.shape[-2:])  # one for all channels, or one for each
    start = torch.zeros_like(after) if state is None else state
    form = scan if time >= max(splitting.THRESHOLD if threshold is None else threshold, BLOCK) else loop
    out, end = form(signal, rows, start.reshape(sos.shape[-2], -1, 2))
    y.copy_(out.reshape(y.shape))
    after.copy_(end.reshape(after.shape))


def sos_forward_recording(
    x: Tensor, sos: Tensor, state: Tensor | None, threshold: int | None, y: Tensor, after: Tensor, checkpoints: Tensor
) -> None:
    """Run the cascade; its backward pass in plain PyTorch has no use for checkpoints: they are NaN."""
    sos_forward(x, sos, state, threshold, y, after)
    checkpoints.fill_(float("nan"))


def sos_backward(
    grad_y: Tensor,
    grad_after: Tensor | None,
    x: Tensor,
    sos: Tensor,
    state: Tensor | None,
    checkpoints: Tensor | None,
    threshold: int | None,
    need_x: bool,
    need_sos: bool,
    need_state: bool,
    *results: Tensor,
) -> None:
    """Run the definition of the gradients."""
    forward = torch.ops.torchfx_ext.sos_forward.default
    found = gradient.backward(forward, (x, sos, state, threshold), (grad_y, grad_after))
    for result, value, need in zip(results, found, (need_x, need_sos, need_state), strict=True):
        if need:
            result.copy_(value)


@dataclass(frozen=True)
class Section:
    """One section in shifted form, for one row of coefficients or for each channel's own: arrays (rows, 1).

    Wide floats, since the block matrices are built from powers of them.
    """

    shift: Wide
    b0: Wide
    p: tuple[Wide, Wide]
    q: tuple[Wide, Wide]

    @classmethod
    def from_rows(cls, rows: npt.NDArray[np.float64]) -> Section:
        """Normalise rows b0 b1 b2 a0 a1 a2 by a0 and choose the shift nearest to the poles of each."""
        b0, b1, b2, _, a1, a2 = (rows.astype(np.longdouble) / rows[:, 3:4].astype(np.longdouble)).T[..., None]
        k = np.where(1 + a1 + a2 < 0.5, 1, np.where(1 - a1 + a2 < 0.5, -1, 0)).astype(np.longdouble)
        p = (2 * k + a1, k * k + k * a1 + a2)
        q = (2 * k * b0 + b1, k * k * b0 + k * b1 + b2)
        return cls(k, b0, p, q)

    def transition(self) -> Wide:
        """Return A of w' = A w + B x, y = C w + b0 x, with C = [1, 0]: (rows, 2, 2)."""
        k, (p1, p0) = self.shift, self.p
        return np.stack([np.stack([k - p1, np.ones_like(k)], -1), np.stack([-p0, k], -1)], -2)[:, 0]

    def input(self) -> Wide:
        """Return B of w' = A w + B x: (rows, 2)."""
        return np.concatenate([q - p * self.b0 for p, q in zip(self.p, self.q, strict=True)], axis=-1)


def sections_of(sos: Tensor) -> list[Section]:
    """Return the sections of (rows, sections, 6)."""
    values = sos.detach().cpu().numpy()
    return [Section.from_rows(values[:, k]) for k in range(values.shape[1])]


def loop(x: Tensor, sos: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """Filter (channels, time) float64 sample by sample.

    Args:
        x: the signal.
        sos: (rows, sections, 6), one row or one for each channel.
        state: before, (sections, channels, 2).
    """
    after = torch.empty_like(state)
    for i, section in enumerate(sections_of(sos)):
        k, b0, p1, p0, q1, q0 = (_on(x, values)[:, 0] for values in (section.shift, section.b0, *section.p, *section.q))
        w1, w2 = state[i, :, 0], state[i, :, 1] + k * state[i, :, 0]
        outputs = []
        for v in x.unbind(-1):
            y = b0 * v + w1
            w1, w2 = k * w1 + w2 + q1 * v - p1 * y, k * w2 + q0 * v - p0 * y
            outputs.append(y)
        x = torch.stack(outputs, dim=-1)
        after[i, :, 0], after[i, :, 1] = w1, w2 - k * w1
    return x, after


def scan(x: Tensor, sos: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """Filter (channels, time) float64 in blocks, arguments as those of `loop`; time must be >= BLOCK.

    A NaN also reaches the samples before it that lie in its block.
    """
    after = torch.empty_like(state)
    whole = x.shape[-1] // BLOCK * BLOCK
    for i, section in enumerate(sections_of(sos)):
        body, w = _scan_section(x[:, :whole], section, state[i])
        x = torch.cat([body, x[:, whole:]], dim=-1)
        after[i] = w
        if whole < x.shape[-1]:
            tail, w = loop(x[:, whole:], sos[:, i : i + 1], after[i : i + 1])
            x[:, whole:], after[i] = tail, w[0]
    return x, after


def _scan_section(x: Tensor, section: Section, state: Tensor) -> tuple[Tensor, Tensor]:
    """One section over (channels, blocks * BLOCK): zero-state response, then what each block's start state adds.

    Matrices are (rows, ..., ...): products broadcast one row to all channels.
    """
    k = _on(x, section.shift)[:, 0]
    powers, inputs = _powers(section.transition(), BLOCK), section.input()[..., None]
    to_state = np.concatenate([power @ inputs for power in powers[BLOCK - 1 :: -1]], axis=-1).swapaxes(-1, -2)
    later = [(power @ inputs)[:, 0] for power in powers[: BLOCK - 1]]
    response = np.concatenate([section.b0, *later], axis=-1)
    lags = np.subtract.outer(np.arange(BLOCK), np.arange(BLOCK))
    toeplitz = np.where(lags <= 0, response[:, np.abs(lags)], 0)
    observe = np.stack([power[:, 0] for power in powers[:BLOCK]], axis=-1)

    blocks = x.unflatten(-1, (-1, BLOCK))
    ends = blocks @ _on(x, to_state)
    start = torch.stack([state[:, 0], state[:, 1] + k * state[:, 0]], dim=-1)
    entry = torch.cat([start[:, None], ends], dim=1)
    entry = _carry(entry, powers[BLOCK])
    y = blocks @ _on(x, toeplitz) + entry[:, :-1] @ _on(x, observe)
    last = entry[:, -1]
    return y.flatten(-2), torch.stack([last[:, 0], last[:, 1] - k * last[:, 0]], dim=-1)


def _carry(entry: Tensor, step: Wide) -> Tensor:
    """Turn e[0], e[1], ... into s[0] = e[0], s[i] = step @ s[i-1] + e[i], by doubling the distance carried."""
    distance = 1
    while distance < entry.shape[1]:
        carried = entry[:, :-distance] @ _on(entry, step.swapaxes(-1, -2))
        entry = torch.cat([entry[:, :distance], entry[:, distance:] + carried], dim=1)
        step, distance = step @ step, 2 * distance
    return entry


def _powers(matrix: Wide, count: int) -> list[Wide]:
    """Return matrix^0 ... matrix^count."""
    powers = [np.broadcast_to(np.eye(2, dtype=np.longdouble), matrix.shape)]
    for _ in range(count):
        powers.append(powers[-1] @ matrix)
    return powers


def _on(x: Tensor, values: Wide) -> Tensor:
    return torch.as_tensor(values.astype(np.float64), device=x.device)
