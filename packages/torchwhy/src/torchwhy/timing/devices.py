"""Which accelerators a measurement has to wait for.

Kernels run after the call that launched them has returned, so a clock read without waiting times the launch. Waiting
for a device that was never used would start it up, so only those in use are asked.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch

__all__ = ["accelerators_in_use", "synchronize"]


def accelerators_in_use() -> tuple[torch.device, ...]:
    """Return the accelerators this process has touched: the current one, and any with memory allocated on it.

    Work that replays a CUDA graph, or comes from an extension that PyTorch does not know of, counts too: what matters
    is that the device has been started, not which operators were seen.

    >>> all(device.type != "cpu" for device in accelerators_in_use())
    True
    """
    accelerator = torch.accelerator.current_accelerator()
    if accelerator is None or not torch.accelerator.is_available():
        return ()
    module = torch.get_device_module(accelerator.type)
    if not getattr(module, "is_initialized", lambda: True)():
        return ()
    index_now = getattr(torch.accelerator, "current_device_index", None) or torch.accelerator.current_device_idx
    current = index_now()  # the second name is that of PyTorch 2.6 and 2.7
    reserved = getattr(module, "memory_reserved", lambda index: 0)
    indices = range(torch.accelerator.device_count())
    return tuple(torch.device(accelerator.type, i) for i in indices if i == current or reserved(i) > 0)


def synchronize(devices: Iterable[torch.device]) -> None:
    """Wait until everything that was launched on the devices has finished.

    >>> synchronize([])
    """
    for device in devices:
        torch.accelerator.synchronize(device)
