"""Responses of linear time-invariant plans: pure functions, float64, differentiable, one row for each leading index.

A polynomial p0 + p1 v + p2 v^2 in v = e^(-jw) loses digits where its roots lie next to v: a section's denominator at
20 Hz is about 1e-5, the sum of numbers about 1. Sections are therefore evaluated around s = 1 (below fs/4) or s = -1:
p(v) = (p0 + s p1 + p2) + (p1 + 2 s p2) d + p2 d^2 with d = v - s. Both d and, for roots near s, the first sum have
small relative errors.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np
import torch
from torch import Tensor

from torchfx.errors import ArgumentError, ArgumentTypeError, SampleRateError
from torchfx.plan import LTI, LateStep, Plan, Step
from torchfx.plan.steps import CausalStep, LTIStep, ModuleStep, ParallelStep, shown

__all__ = ["group_delay", "impulse_response", "poles", "response", "step_response", "zeros"]

NUDGE = 1e-5  # rad: at a zero of the response, the group delay is the mean of those on both sides
CANCELLED = 1e-12  # a sum of branches smaller than this part of them is a zero


def response(plan: Plan, freqs: Any) -> Tensor:
    """Return the complex response.

    Args:
        plan: of linear time-invariant steps.
        freqs: Hz, in [0, fs/2]: a number, or numbers (n,).

    Returns:
        complex128, (..., n), with the leading dimensions of the coefficients, and without n for a number.

    Raises:
        ArgumentTypeError: a step is not linear and time-invariant; the message names it.
        ArgumentError: a frequency out of range, or no known sample rate.
    """
    checked = _frequencies(plan, freqs)
    found = _response(plan, Circle(_angles(plan, checked.reshape(-1))))
    return found.reshape((*found.shape[:-1], *checked.shape))


def group_delay(plan: Plan, freqs: Any) -> Tensor:
    """Return the group delay in samples, float64; arguments, shape and errors as in `response`.

    It is computed from the coefficients, not from phase differences. At zeros of the response it is the limit.
    """
    checked = _frequencies(plan, freqs)
    w = _angles(plan, checked.reshape(-1))
    found = _delay(plan, Circle(w)).real
    undefined = ~found.isfinite()
    if bool(undefined.any()):
        around = (_delay(plan, Circle(w + NUDGE)).real + _delay(plan, Circle(w - NUDGE)).real) / 2
        found = torch.where(undefined, around, found)
    return found.reshape((*found.shape[:-1], *checked.shape))


def impulse_response(plan: Plan, num_samples: int) -> Tensor:
    """Return the impulse response, float64, (..., num_samples)."""
    impulse = torch.zeros(num_samples, dtype=torch.float64, device=_device(plan))
    impulse[:1] = 1.0
    return plan.run(impulse)


def step_response(plan: Plan, num_samples: int) -> Tensor:
    """Return the step response, float64, (..., num_samples)."""
    return plan.run(torch.ones(num_samples, dtype=torch.float64, device=_device(plan)))


def poles(plan: Plan) -> Tensor:
    """Return the poles in the z plane, complex128, (..., n): two for each section, one of them 0 at first order.

    The poles of a sum are the poles of its branches. Poles at 0 of FIR taps and delays are omitted, as in SciPy.
    """
    found = [torch.zeros(0, dtype=torch.complex128, device=_device(plan))]
    for step in map(_linear, plan.steps):
        found = [_with_bands(each, step) for each in found]
        if isinstance(step, ParallelStep):
            found += [poles(branch) for branch in step.plans]
        elif step.system.sos is not None:
            found.append(_roots(step.system.sos[..., 3:]))
    return _joined(found)


def zeros(plan: Plan) -> Tensor:
    """Return the zeros in the z plane, complex128, (..., n): two for each section, n - 1 of n taps.

    A zero at infinity, of a section with b0 = 0 or of taps that begin with 0, is inf. For FIR taps the computation time
    grows with the cube of their number.

    Raises:
        ArgumentTypeError: the plan has a sum, whose zeros do not follow from the zeros of its branches.
    """
    found = [torch.zeros(0, dtype=torch.complex128, device=_device(plan))]
    for step in map(_linear, plan.steps):
        if isinstance(step, ParallelStep):
            raise ArgumentTypeError("zeros are computed only for filters in series, got a sum of branches")
        found = [_with_bands(each, step) for each in found]
        if step.system.sos is not None:
            found.append(_roots(step.system.sos[..., :3]))
        if step.system.taps is not None:
            found.append(_roots_of_taps(step.system.taps))
    return _joined(found)


# --- frequencies ------------------------------------------------------------------------------------------------------


def _frequencies(plan: Plan, freqs: Any) -> Tensor:
    if plan.fs is None:
        raise SampleRateError("a response over frequencies needs a sample rate: pass fs=...")
    found = freqs if isinstance(freqs, Tensor) else torch.as_tensor(np.asarray(freqs))
    if found.is_complex() or found.dtype == torch.bool or found.dim() > 1:
        raise ArgumentTypeError(
            f"freqs must be a frequency in Hz or several, (n,), got {found.dtype} {tuple(found.shape)}"
        )
    found = found.double()
    outside = ~((found >= 0) & (found <= plan.fs / 2))
    if bool(outside.any()):
        raise ArgumentError(
            f"freqs must lie in [0, fs/2] = [0, {plan.fs / 2:g}] Hz, got {float(found.detach()[outside][0]):g}"
        )
    return found


def _angles(plan: Plan, freqs: Tensor) -> Tensor:
    assert plan.fs is not None
    return (2 * math.pi / plan.fs) * freqs.to(_device(plan))


class Circle:
    """Points v = e^(-jw) on the unit circle, as v = s + d with s = 1 or -1, whichever is nearer."""

    def __init__(self, w: Tensor) -> None:
        half = w / 2
        right = half.cos().abs() >= math.sqrt(0.5)
        self.w = w
        self.s = torch.where(right, 1.0, -1.0).to(w)
        self.turn = torch.where(right, -2 * half.sin() ** 2, 2 * half.cos() ** 2)  # cos(w) - s
        self.d = torch.complex(self.turn, -w.sin())

    def powers(self, exponents: Tensor) -> Tensor:
        """Return v to the power of each exponent, (exponents, n)."""
        return torch.exp(torch.complex(torch.zeros_like(self.w), -self.w) * exponents[:, None])


# --- steps ------------------------------------------------------------------------------------------------------------


def _linear(step: Step) -> Any:
    """Return a step of linear time-invariant modules, or raise."""
    inner = step.inner if isinstance(step, LateStep) else step
    if isinstance(inner, (LTIStep, ParallelStep)):
        return inner
    module = inner.module if isinstance(inner, (CausalStep, ModuleStep)) else None
    name = step.name or (shown(module) if module is not None else type(step).__name__)
    raise ArgumentTypeError(f"{name} is not linear and time-invariant here: it has no frequency response")


def _systems(plan: Plan) -> list[LTI]:
    found: list[LTI] = []
    for step in map(_linear, plan.steps):
        inner = [_systems(branch) for branch in step.plans] if isinstance(step, ParallelStep) else [[step.system]]
        found += [system for each in inner for system in each]
    return found


def _device(plan: Plan) -> torch.device:
    """Return the coefficients' places; raise if a step has no coefficients."""
    tensors = [tensor for system in _systems(plan) for tensor in system.tensors()]
    return tensors[0].device if tensors else plan.device or torch.device("cpu")


def _response(plan: Plan, circle: Circle) -> Tensor:
    total = torch.ones_like(circle.d)
    for step in map(_linear, plan.steps):
        if isinstance(step, ParallelStep):
            found = sum((_response(branch, circle) for branch in step.plans), torch.zeros_like(circle.d))
        else:
            found = _system_response(step.system, circle)
        total = _with_bands(total, step) * found
    return total


def _with_bands(values: Tensor, step: Any) -> Tensor:
    """Return what is known of earlier steps, with the dimensions of bands that a step adds."""
    for _ in range(step.added_dimensions):
        values = values.unsqueeze(-2)
    return values


def _system_response(system: LTI, circle: Circle) -> Tensor:
    found = torch.exp(torch.complex(torch.zeros_like(circle.w), -circle.w * system.delay))
    gain = system.gain
    found = found * (gain.double()[..., None] if isinstance(gain, Tensor) else gain)
    if system.taps is not None:
        found = found * _at(system.taps, circle)
    if system.sos is not None:
        b, a = (_quadratics(part, circle) for part in (system.sos[..., :3], system.sos[..., 3:]))
        found = found * (b / a).prod(-2)
    return found


def _delay(plan: Plan, circle: Circle) -> Tensor:
    """Return the complex delay j H'(w) / H(w), whose real part is the group delay; NaN at zeros of the response."""
    total = torch.zeros_like(circle.d)
    for step in map(_linear, plan.steps):
        if isinstance(step, ParallelStep):
            responses = [_response(branch, circle) for branch in step.plans]
            moments = [h * _delay(branch, circle) for h, branch in zip(responses, step.plans, strict=True)]
            h, moment = reduce(torch.add, responses), reduce(torch.add, moments)
            zero = h.abs() <= CANCELLED * reduce(torch.add, [each.abs() for each in responses])
            found = torch.where(zero, torch.nan, moment / torch.where(zero, 1.0, h))
        else:
            found = _system_delay(step.system, circle)
        total = _with_bands(total, step) + found
    return total


def _system_delay(system: LTI, circle: Circle) -> Tensor:
    found = torch.full_like(circle.d, system.delay)
    if system.taps is not None:
        found = found + _delay_of_taps(system.taps, circle)
    if system.sos is not None:
        b, a = (_delay_of_quadratics(part, circle) for part in (system.sos[..., :3], system.sos[..., 3:]))
        found = found + (b - a).sum(-2)
    return found


# --- sections ---------------------------------------------------------------------------------------------------------


def _quadratics(p: Tensor, circle: Circle) -> Tensor:
    """Return polynomials of sections, (..., sections, 3), at points, (..., sections, n)."""
    p0, p1, p2 = p.unsqueeze(-1).unbind(-2)
    s, d = circle.s, circle.d
    return ((p0 + s * p1) + p2) + (p1 + 2 * s * p2) * d + p2 * d * d


def _delay_of_quadratics(p: Tensor, circle: Circle) -> Tensor:
    """Return the complex delay v p'(v) / p(v) of such polynomials.

    Its real part is 1 + (p2 - p0) (p0 + p2 + p1 cos w) / |p|^2: exactly 1 for two zeros on the unit circle.
    """
    p0, p1, p2 = p.unsqueeze(-1).unbind(-2)
    value = _quadratics(p, circle)
    power = value.abs() ** 2
    beside = (p2 - p0) * (((p0 + circle.s * p1) + p2) + p1 * circle.turn)
    moment = (circle.s + circle.d) * (p1 + 2 * p2 * (circle.s + circle.d))
    return torch.complex(1 + beside / power, (moment * value.conj()).imag / power)


def _roots(p: Tensor) -> Tensor:
    """Return the roots in z of p0 + p1/z + p2/z^2, (..., sections, 3) -> (..., 2 * sections).

    With z = s (1 + u) and m = s p1/p0 <= 0 they are those of u^2 + (2 + m) u + (1 + m + p2/p0).
    """
    _, p1, p2 = (p / p[..., :1]).unbind(-1)
    s = torch.where(p1 > 0, -1.0, 1.0)
    m = s * p1
    e = 2 + m
    root = torch.complex(e * e - 4 * ((1 + m) + p2), torch.zeros_like(e)).sqrt()
    found = torch.stack([s * (1 + (root - e) / 2), s * (1 - (root + e) / 2)], dim=-1)
    if bool((p[..., 0] == 0).any()):  # one or two zeros at infinity
        finite = torch.where(p[..., 1] == 0, torch.inf, -p[..., 2] / p[..., 1])
        at_infinity = torch.stack([finite, torch.full_like(finite, torch.inf)], dim=-1).to(found.dtype)
        found = torch.where((p[..., 0] == 0)[..., None], at_infinity, found)
    return found.flatten(-2)


# --- taps -------------------------------------------------------------------------------------------------------------


def _at(taps: Tensor, circle: Circle) -> Tensor:
    """Return polynomials of taps, (..., taps), at points, (..., n): in rows of about the square root of the length."""
    width = math.isqrt(taps.shape[-1] - 1) + 1
    rows = -(-taps.shape[-1] // width)
    table = torch.nn.functional.pad(taps, (0, rows * width - taps.shape[-1])).unflatten(-1, (rows, width))
    steps = torch.arange(width, device=taps.device, dtype=torch.float64)
    inner = circle.powers(steps)
    outer = circle.powers(torch.arange(rows, device=taps.device, dtype=torch.float64) * width)
    return (torch.complex(table @ inner.real, table @ inner.imag) * outer).sum(-2)


def _delay_of_taps(taps: Tensor, circle: Circle) -> Tensor:
    """Return the complex delay of taps, (..., n).

    Around their middle, symmetric taps have a real response and antisymmetric ones an imaginary one; kept apart, they
    have the delay of their middle exactly.
    """
    middle = (taps.shape[-1] - 1) / 2
    index = torch.arange(taps.shape[-1], device=taps.device, dtype=torch.float64) - middle
    even, odd = (taps + taps.flip(-1)) / 2, (taps - taps.flip(-1)) / 2
    turned = torch.exp(torch.complex(torch.zeros_like(circle.w), circle.w * middle))
    p_even, p_odd, r_even, r_odd = (_at(torch.stack([even, odd, index * even, index * odd]), circle) * turned).unbind(0)
    real, imaginary = p_even.real, p_odd.imag
    power = real**2 + imaginary**2
    beside = (real * r_odd.real + imaginary * r_even.imag) / power
    across = (real * r_even.imag - imaginary * r_odd.real) / power
    return torch.complex(middle + beside, across)


def _roots_of_taps(taps: Tensor) -> Tensor:
    rows = taps.detach().reshape(-1, taps.shape[-1]).cpu().numpy()
    found = np.full((len(rows), taps.shape[-1] - 1), np.inf, np.complex128)
    for place, row in zip(found, rows, strict=True):
        roots = np.roots(row)  # without those at infinity
        place[: len(roots)] = roots
    return torch.from_numpy(found).reshape(*taps.shape[:-1], -1).to(taps.device)


def _joined(parts: Sequence[Tensor]) -> Tensor:
    leading = torch.broadcast_shapes(*(part.shape[:-1] for part in parts))
    return torch.cat([part.expand(*leading, part.shape[-1]) for part in parts], dim=-1)
