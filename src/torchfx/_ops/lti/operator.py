"""Schema, argument checks, shapes and kernels of `torchfx_ext::lti_forward`.

It is `fir_forward`, then `sos_forward`, with float64 between the two: what the cascade suppresses may be far larger
than what it lets through, and so would be its rounding to float32.
"""

from __future__ import annotations

import torch
from torch import Tensor

from torchfx._ops import native
from torchfx._ops.checks import check_finite, check_stable
from torchfx._ops.dispatch import is_plain, wants_gradient
from torchfx._ops.fir.autograd import fir_forward
from torchfx._ops.fir.operator import check as check_fir
from torchfx._ops.library import library
from torchfx._ops.program import run, step
from torchfx._ops.sos.autograd import sos_forward
from torchfx._ops.sos.operator import check as check_sos
from torchfx._ops.strided import empty_output, packed, raise_for

Result = tuple[Tensor, Tensor, Tensor]

library.define(
    "lti_forward(Tensor x, Tensor taps, Tensor sos, Tensor? taps_state=None, Tensor? state=None, int threshold=1024)"
    " -> (Tensor, Tensor, Tensor)",
    tags=(torch.Tag.pt2_compliant_tag,),
)


def lti_forward(
    x: Tensor,
    taps: Tensor,
    sos: Tensor,
    taps_state: Tensor | None = None,
    state: Tensor | None = None,
    threshold: int = 1024,
) -> Result:
    """Call the operator where the kernel can serve, else what it stands for, which transforms and records."""
    learned = wants_gradient(x, taps, taps_state) or wants_gradient(x, sos, state)
    if learned or torch._C._are_functorch_transforms_active():
        return one_after_the_other(x, taps, sos, taps_state, state, threshold)
    found: Result = torch.ops.torchfx_ext.lti_forward.default(x, taps, sos, taps_state, state, threshold)
    return found


def one_after_the_other(
    x: Tensor,
    taps: Tensor,
    sos: Tensor,
    taps_state: Tensor | None = None,
    state: Tensor | None = None,
    threshold: int = 1024,
) -> Result:
    """Run the two operators on any device that has float64."""
    check_fir(x, taps, taps_state)
    y, taps_after = fir_forward(x.double(), taps, taps_state)
    y, after = sos_forward(y, sos, state, threshold)
    return y.to(x.dtype), taps_after, after


def lti_forward_native(
    x: Tensor,
    taps: Tensor,
    sos: Tensor,
    taps_state: Tensor | None = None,
    state: Tensor | None = None,
    threshold: int = 1024,
) -> Result:
    """Run csrc's kernels on CPU tensors, as one program."""
    if native.library is None:
        return one_after_the_other(x, taps, sos, taps_state, state, threshold)
    taps_after = _started(taps_state, check_fir(x, taps, taps_state))
    after = _started(state, check_sos(x, sos, state))
    taps, sos, y = packed(taps), packed(sos), empty_output(x)
    response = (taps.data_ptr(), taps.numel(), 1, 1, taps_after.data_ptr())
    cascade = (sos.data_ptr(), sos.shape[0], 1, 1, after.data_ptr())
    if x.dtype is torch.float64:
        steps = [step("fir", 0, 2, True, *response), step("sos", 2, 1, True, *cascade)]
    else:
        steps = [step("widen", 0, 2, False), step("fir", 2, 3, True, *response),
                 step("sos", 3, 2, True, *cascade), step("narrow", 2, 1, True)]  # fmt: skip
    status = run(steps, x, y, threshold)
    if status:
        check_finite("taps", taps)
        check_stable(sos)
        raise_for(status, "torchfx_program_run")
    return y, taps_after, after


def _started(state: Tensor | None, shape: tuple[int, ...]) -> Tensor:
    """Return a state of its own to be updated in place: a copy of the given one, or rest."""
    if state is None:
        return torch.zeros(shape, dtype=torch.float64)
    return packed(state).clone()


def lti_forward_autograd(
    x: Tensor,
    taps: Tensor,
    sos: Tensor,
    taps_state: Tensor | None = None,
    state: Tensor | None = None,
    threshold: int = 1024,
) -> Result:
    """Record the two operators where a gradient is wanted, else get out of the way."""
    if wants_gradient(x, taps, taps_state) or wants_gradient(x, sos, state):
        return one_after_the_other(x, taps, sos, taps_state, state, threshold)
    if is_plain(x):
        return lti_forward_native(x, taps, sos, taps_state, state, threshold)
    with torch._C._AutoDispatchBelowAutograd():
        found: Result = torch.ops.torchfx_ext.lti_forward.default(x, taps, sos, taps_state, state, threshold)
        return found


def lti_forward_fake(
    x: Tensor,
    taps: Tensor,
    sos: Tensor,
    taps_state: Tensor | None = None,
    state: Tensor | None = None,
    threshold: int = 1024,
) -> Result:
    """Shapes and dtypes of the results."""
    y = torch.empty_like(x, memory_format=torch.contiguous_format)
    taps_after = x.new_empty(check_fir(x, taps, taps_state), dtype=torch.float64)
    return y, taps_after, x.new_empty(check_sos(x, sos, state), dtype=torch.float64)


library.impl("lti_forward", lti_forward_autograd, "Autograd")
library.impl("lti_forward", lti_forward_native, "CPU")
library.impl("lti_forward", one_after_the_other, "CompositeExplicitAutograd")
library.impl("lti_forward", lti_forward_fake, "Meta")
