"""torchaudio: `lfilter` per recursive filter, `fftconvolve` with the convolved taps."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

NEEDS = ("torch", "torchaudio")
DEVICES = ("cpu", "cuda")


def lfilter(job: dict[str, Any], x: Any) -> Callable[[], Any]:
    """Return one `lfilter` call after the other, in the signal's float32."""
    import torch

    functional = import_module("torchaudio.functional")
    signal = torch.from_numpy(x).to(job["device"])
    coefficients = [
        [torch.tensor(each[name], dtype=signal.dtype, device=signal.device) for name in ("a", "b")]
        for each in job["filters"]
    ]

    def run() -> Any:
        y = signal
        for a, b in coefficients:
            y = functional.lfilter(y, a, b, clamp=False)
        return y

    return run


def fftconvolve(job: dict[str, Any], x: Any) -> Callable[[], Any]:
    """Return one `fftconvolve` call."""
    import torch

    functional = import_module("torchaudio.functional")
    signal = torch.from_numpy(x).to(job["device"])
    taps = torch.tensor([job["taps"]], dtype=signal.dtype, device=signal.device).expand(len(signal), -1)
    return lambda: functional.fftconvolve(signal, taps)[:, : signal.shape[-1]]


CONTENDERS = {"torchaudio lfilter": lfilter, "torchaudio fftconvolve": fftconvolve}
STREAMS: dict[str, Any] = {}
