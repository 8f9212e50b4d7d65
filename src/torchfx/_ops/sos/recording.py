"""`torchfx_ext::sos_forward_recording`: the cascade, keeping states that make its backward pass cheaper.

The gradients of the sections need every section's signals again. They are filtered once more from states the forward
pass has kept, every `STEPS` samples: 3 % of a float32 signal with four sections, against a whole pass to find them.
"""

from __future__ import annotations

import torch
from torch import Tensor

from torchfx._ops import native
from torchfx._ops.checks import check_stable
from torchfx._ops.library import library
from torchfx._ops.sos.operator import check, sos_forward_fake, sos_forward_reference
from torchfx._ops.strided import as_channels, empty_doubles, empty_output, packed, raise_for
from torchfx.errors import TorchFXError

STEPS = 512  # TORCHFX_CHECKPOINT_STEPS

library.define(
    "sos_forward_recording(Tensor x, Tensor sos, Tensor? state=None, int threshold=1024) -> (Tensor, Tensor, Tensor)",
    tags=(torch.Tag.pt2_compliant_tag,),
)


def pays(x: Tensor, sos: Tensor) -> bool:
    """Return whether the backward pass of a call is going to use what is recorded."""
    return sos.requires_grad and torch.is_grad_enabled() and x.is_cpu and native.library is not None


def check_checkpoints(checkpoints: Tensor, x: Tensor, sos: Tensor) -> None:
    """Raise unless `checkpoints` came from a call with tensors of these shapes."""
    shape = _shape(x, sos)
    if tuple(checkpoints.shape) != shape or checkpoints.dtype != torch.float64:
        raise TorchFXError(
            f"checkpoints must be those of sos_forward_recording for this signal, float64 and of shape {shape}, got "
            f"{checkpoints.dtype} and {tuple(checkpoints.shape)}"
        )


def sos_forward_recording_native(
    x: Tensor, sos: Tensor, state: Tensor | None = None, threshold: int = 1024
) -> tuple[Tensor, Tensor, Tensor]:
    """Run csrc's kernel on CPU tensors."""
    if native.library is None:
        return sos_forward_recording_reference(x, sos, state, threshold)
    shape = check(x, sos, state)
    time = x.shape[-1]
    signal, channel_stride, time_stride = as_channels(x, time)
    sos = packed(sos)
    y, after, checkpoints = empty_output(x), sos.new_empty(*shape), empty_doubles(_shape(x, sos))
    status = native.call["sos_forward_recording"](
        x.dtype is torch.float64,
        signal.data_ptr(), channel_stride, time_stride, 1, y.data_ptr(), time, x.numel() // time, time,
        sos.data_ptr(), shape[0], 1, 1,
        0 if state is None else (state := packed(state)).data_ptr(), after.data_ptr(), checkpoints.data_ptr(),
        threshold, torch.get_num_threads(),
    )  # fmt: skip
    if status:
        check_stable(sos)
        raise_for(status, "torchfx_sos_forward_recording")
    return y, after, checkpoints


def sos_forward_recording_reference(
    x: Tensor, sos: Tensor, state: Tensor | None = None, threshold: int = 1024
) -> tuple[Tensor, Tensor, Tensor]:
    """Run the plain PyTorch form, whose backward pass has no use for checkpoints: they are zeros."""
    y, after = sos_forward_reference(x, sos, state, threshold)
    return y, after, x.new_zeros(_shape(x, sos), dtype=torch.float64)


def sos_forward_recording_fake(
    x: Tensor, sos: Tensor, state: Tensor | None = None, threshold: int = 1024
) -> tuple[Tensor, Tensor, Tensor]:
    """Shapes and dtypes of the results."""
    return *sos_forward_fake(x, sos, state, threshold), x.new_empty(_shape(x, sos), dtype=torch.float64)


def _shape(x: Tensor, sos: Tensor) -> tuple[int, ...]:
    *leading, time = x.shape
    return (*leading, (time + STEPS - 1) // STEPS, sos.shape[0], 2)


library.impl("sos_forward_recording", sos_forward_recording_native, "CPU")
library.impl("sos_forward_recording", sos_forward_recording_reference, "CompositeExplicitAutograd")
library.impl("sos_forward_recording", sos_forward_recording_fake, "Meta")
