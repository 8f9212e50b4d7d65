"""Fourier transforms computed as a convolution with sines and cosines."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.forward_pass import backward_of, forward_pass, work_of
from torchwhy.trace.derived.shapes import Shape
from torchwhy.trace.derived.steady_state import steady_window
from torchwhy.trace.meaning.arithmetic import CONVOLUTION
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import percent

__all__ = ["fourier_basis"]


@rule(
    "D47", "fourier-basis", source="a kernel of N samples with the N/2 + 1 frequencies of a transform", frees="device"
)
def fourier_basis(trace: Trace, *, share: float = 0.05, samples: int = 128) -> Iterator[Finding]:
    """A short-time Fourier transform is computed as a convolution.

    Sees: `aten::conv1d` of one channel with a kernel of N samples, N even and 128 or more, and as many outputs as a
    transform of N samples has frequencies: N/2 + 1, or N + 2 for real and imaginary parts together. With the backward
    pass they take 5% of the window or more.

    Costs: N multiplications for each frequency of each frame, where a fast Fourier transform takes some log2(N).

    Fix: `torch.stft(x, n_fft=N, hop_length=stride, window=window, return_complex=True)`. Its power is
    `torch.view_as_real(X).square().sum(-1)`.

    Known problems: a basis that is trained, or whose frequencies aren't those of the transform (constant Q), looks the
    same and needs its convolution.
    """
    program, window = trace.derived(forward_pass), trace.derived(steady_window)
    places = np.flatnonzero(trace.events.are(CONVOLUTION, program.rows)).tolist()
    found = [i for i in places if len(program.shapes[i]) > 1 and _frequencies(program.shapes[i][1], samples)]
    rows = program.rows[found]
    when = work_of(trace, np.concatenate((rows, backward_of(trace, rows))))
    part = window.share(when)
    if not found or part < share:
        return
    size = program.shapes[found[0]][1][2]
    yield Finding(
        title=f"A Fourier transform of {size:,} samples is computed as a convolution: {percent(part)} of the time",
        confidence="medium",
        stretches=when,
        window=window,
        evidence=evidence(trace, rows),
        cause="The kernels are as long as a frame, and as many as its transform has frequencies, as sines and cosines "
        "are.",
        fix=f"torch.stft(x, n_fft={size}, hop_length=stride, window=window, return_complex=True) computes it with an "
        "FFT.",
        linked=False,
    )


def _frequencies(kernel: Shape, samples: int) -> bool:
    """Whether a kernel has the shape of a Fourier basis."""
    if len(kernel) != 3:
        return False
    outputs, inputs, size = kernel
    return inputs == 1 and size >= samples and size % 2 == 0 and outputs in (size // 2 + 1, size + 2)
