"""torchfx.functional's SciPy functions against SciPy's own: lfilter, filtfilt and sosfiltfilt."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.chains import Chain

__all__ = ["deviation", "scipys", "torchfxs"]

Samples = npt.NDArray[np.float32]
Prepare = Callable[[dict[str, Any], Samples], Callable[[], Any]]


def _coefficients(name: str, job: dict[str, Any]) -> tuple[npt.NDArray[np.float64], ...]:
    """Return a function's coefficients: all sections, or the first filter's polynomials."""
    if name == "sosfiltfilt":
        return (np.array(job["sos"]),)
    return np.array(job["filters"][0]["b"]), np.array(job["filters"][0]["a"])


def torchfxs(name: str) -> Prepare:
    """Return what prepares a call of this library's function."""

    def prepare(job: dict[str, Any], x: Samples) -> Callable[[], Any]:
        import torch

        from torchfx import functional

        function, given, samples = getattr(functional, name), _coefficients(name, job), torch.from_numpy(x)
        return lambda: function(*given, samples)

    return prepare


def scipys(name: str) -> Prepare:
    """Return what prepares a call of SciPy's."""

    def prepare(job: dict[str, Any], x: Samples) -> Callable[[], Any]:
        from scipy import signal

        function, given = getattr(signal, name), _coefficients(name, job)
        return lambda: function(*given, x)

    return prepare


def deviation(name: str) -> Callable[[Chain, Samples, npt.NDArray[Any]], float]:
    """Return what compares a result with SciPy's in float64: relative to its peak."""

    def off(chain: Chain, x: Samples, y: npt.NDArray[Any]) -> float:
        exact = scipys(name)(chain.job(), x.astype(np.float64))()
        return float(np.abs(y - exact).max() / np.abs(exact).max())

    return off
