"""An equaliser learns to undo a colouration from its output alone.

    python learn_an_eq.py --plot eq.png
    python learn_an_eq.py --batch 64

Noise goes through a room, here a hidden equaliser, and then through ours. Gradients flow from the spectrum of what
comes out, through the filters, to cutoffs, qualities and gains. With a batch each example has its own room and learns
its own equaliser, all of them in the same operator calls.
"""

from __future__ import annotations

import argparse
import math
import time

import torch
from torch import Tensor

import torchfx as fx

FS = 48_000
FFT = 8192
CENTRES = (100.0, 250.0, 1000.0, 4000.0, 8000.0)


def equaliser(cutoffs: list[Tensor], qs: list[Tensor], gains_db: list[Tensor]) -> fx.FilterChain:
    """Return a low shelf, three peaks and a high shelf; values of shape (examples,)."""
    kinds = (fx.filter.LoShelving, *3 * [fx.filter.Peaking], fx.filter.HiShelving)
    parts = (kind(*values, fs=FS) for kind, *values in zip(kinds, cutoffs, qs, gains_db, strict=True))
    return fx.FilterChain(*parts)


def room(examples: int, generator: torch.Generator) -> fx.FilterChain:
    """Return a colouration of up to 9 dB; the rest of the program does not use its values."""

    def drawn(low: float, high: float) -> list[Tensor]:
        return [low + (high - low) * torch.rand(examples, generator=generator) for _ in CENTRES]

    cutoffs = [centre * 2**octaves for centre, octaves in zip(CENTRES, drawn(-0.4, 0.4), strict=True)]
    return equaliser(cutoffs, drawn(0.7, 1.4), drawn(-9.0, 9.0))


def untrained(examples: int) -> fx.FilterChain:
    """Return an equaliser that does nothing yet."""
    filters = equaliser(
        [torch.full((examples,), centre) for centre in CENTRES],
        [torch.full((examples,), 1.0) for _ in CENTRES],
        [torch.zeros(examples) for _ in CENTRES],
    )
    for each in filters:
        fx.learn(each, cutoff=(20, 20_000), q=(0.2, 5), gain_db=(-18, 18))
    return filters


def levels_db(x: Tensor, bins: Tensor) -> Tensor:
    """Return the levels of a signal (..., time) at some bins of its spectrum, averaged over frames: (..., bins)."""
    frames = torch.stft(x, FFT, window=torch.hann_window(FFT), center=False, return_complex=True)
    return 10 * torch.log10(frames[..., bins, :].abs().square().mean(-1))


def error_db(chain: fx.FilterChain, examples: int) -> tuple[Tensor, Tensor]:
    """Return frequencies and the magnitude there, in dB, of room and equaliser in a row: (examples, frequencies)."""
    impulse = torch.zeros(examples, 1 << 16, dtype=torch.float64)
    impulse[:, 0] = 1
    with torch.no_grad():
        response = torch.fft.rfft(chain(impulse)).abs()
    frequencies = torch.fft.rfftfreq(impulse.shape[-1], 1 / FS)
    audible = (frequencies >= 20) & (frequencies <= 20_000)
    return frequencies[audible], 20 * torch.log10(response[:, audible])


def learn(examples: int, steps: int, seed: int) -> tuple[fx.FilterChain, fx.FilterChain]:
    """Return the room and the equaliser that undoes it."""
    generator = torch.Generator().manual_seed(seed)
    hidden, learned = room(examples, generator), untrained(examples)
    dry = torch.randn(examples, 2 * FFT, generator=generator)
    wet = hidden(dry)
    bins = torch.logspace(math.log10(20), math.log10(20_000), 200).mul(FFT / FS).round().long().clamp(min=2).unique()
    wanted = levels_db(dry, bins)
    optimizer = torch.optim.LBFGS(
        learned.parameters(), max_iter=steps, history_size=30, line_search_fn="strong_wolfe",
        tolerance_grad=1e-6, tolerance_change=1e-9,
    )  # fmt: skip
    tried = 0

    def loss() -> Tensor:
        nonlocal tried
        optimizer.zero_grad()
        squares = (levels_db(learned(wet), bins) - wanted).square().mean(-1)
        squares.sum().backward()  # each example has its own filters: none waits for the others
        if tried % 20 == 0:
            print(f"attempt {tried:3}: off by {squares.detach().mean().sqrt():.4f} dB (root mean square)")
        tried += 1
        return squares.detach().sum()

    optimizer.step(loss)
    return hidden, learned


def plot(path: str, hidden: fx.FilterChain, learned: fx.FilterChain, examples: int) -> None:
    """Draw the first example's room, equaliser and what is left of the colouration."""
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
    for label, chain in (("room", hidden), ("equaliser, learned", learned), ("both", hidden | learned)):
        frequencies, magnitude = error_db(chain, examples)
        axes.semilogx(frequencies, magnitude[0], label=label)
    axes.set(xlabel="frequency (Hz)", ylabel="magnitude (dB)", title="An equaliser that learned to undo a room")
    axes.grid(which="both", alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=120)


def main() -> None:
    """Learn, and say how far from flat the result is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=1, help="rooms, each with its own equaliser")
    parser.add_argument("--steps", type=int, default=150, help="at most, of L-BFGS")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--plot", metavar="PNG", help="draw the first room and its equaliser")
    options = parser.parse_args()
    began = time.perf_counter()
    hidden, learned = learn(options.batch, options.steps, options.seed)
    _, before = error_db(hidden, options.batch)
    _, after = error_db(hidden | learned, options.batch)
    worst = after.abs().amax(-1)
    print(
        f"{options.batch} room{'s' * (options.batch > 1)} of up to {before.abs().max():.1f} dB, "
        f"{time.perf_counter() - began:.1f} s: flat within {worst.median():.3f} dB (median), {worst.max():.3f} dB "
        "(worst), 20 Hz to 20 kHz"
    )
    if options.plot:
        plot(options.plot, hidden, learned, options.batch)


if __name__ == "__main__":
    main()
