"""What results are compared with: SciPy in long double, and how far two signals are apart."""

import numpy as np
import torch
from scipy import signal

FLOAT32_BOUND = 2e-7  # of the exact result's peak
FLOAT64_BOUND = 1e-11
LENGTHS = (1, 2, 3, 17, 64, 1023, 1025, 5000)


def exact_sos(sos, x, zi=None):
    """Run sections over an array in long double; SciPy's own float64 loses up to ten digits on low filters."""
    wide = np.asarray(sos, np.longdouble)
    x = np.asarray(x, np.longdouble)
    if zi is None:
        return signal.sosfilt(wide, x)
    y, after = signal.sosfilt(wide, x, zi=np.asarray(zi, np.longdouble))
    return y, after


def exact_fir(taps, x, zi=None):
    """Convolve in long double; `zi` as SciPy's lfilter has it."""
    taps, x = np.asarray(taps, np.longdouble), np.asarray(x, np.longdouble)
    one = np.ones(1, np.longdouble)
    if zi is None:
        return signal.lfilter(taps, one, x)
    return signal.lfilter(taps, one, x, zi=np.asarray(zi, np.longdouble))


def deviation(y, exact):
    """Return the largest difference relative to the exact result's peak.

    Results so small that float32 holds them only as subnormal numbers are judged by its spacing there.
    """
    y = y.detach().numpy() if isinstance(y, torch.Tensor) else np.asarray(y)
    peak = np.abs(exact).max()
    difference = np.abs(y.astype(np.longdouble) - exact).max()
    spacing = np.finfo(y.dtype).smallest_subnormal
    return float(max(difference - spacing, 0) / peak) if peak > 0 else float(difference)


def bound(dtype):
    return FLOAT32_BOUND if dtype == torch.float32 else FLOAT64_BOUND
