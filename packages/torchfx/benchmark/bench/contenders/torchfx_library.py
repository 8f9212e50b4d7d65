"""torchfx, this one or the one of another environment: the ways documents show of running one chain."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from importlib import import_module
from operator import or_
from typing import Any

NEEDS = ("torch", "torchfx")
DEVICES = ("cpu", "cuda")

CLASSES = {
    ("butter", "highpass"): "HiButterworth",
    ("butter", "lowpass"): "LoButterworth",
    ("cheby1", "highpass"): "HiChebyshev1",
    ("cheby1", "lowpass"): "LoChebyshev1",
}


def build(job: dict[str, Any], fs: float | None) -> list[Any]:
    """Return the job's filters as modules, with or without their own sample rate."""
    from torchfx import filter

    modules: list[Any] = []
    for each in job["filters"]:
        if each["design"] == "firwin":
            modules.append(filter.DesignableFIR(cutoff=each["cutoff"], num_taps=each["size"], fs=fs))
            continue
        ripple = {"ripple": each["ripple"]} if each["design"] == "cheby1" else {}
        kind = getattr(filter, CLASSES[each["design"], each["btype"]])
        modules.append(kind(cutoff=each["cutoff"], order=each["size"], fs=fs, **ripple))
    return modules


def ready(job: dict[str, Any]) -> Any:
    """Return the filters as an `nn.Sequential` with coefficients designed and in place."""
    from torch import nn

    chain: Any = nn.Sequential(*build(job, job["fs"])).to(job["device"])
    for module in chain:
        module.compute_coefficients()
        if job["device"] != "cpu" and hasattr(module, "move_coeff"):
            module.move_coeff(job["device"])
    return chain


def wave(job: dict[str, Any], x: Any) -> Any:
    """Return the signal as a wave where the job wants it."""
    import torch

    return import_module("torchfx").Wave(torch.from_numpy(x), job["fs"]).to(job["device"])


def piped(job: dict[str, Any], x: Any) -> Callable[[], Any]:
    """Return `wave | nn.Sequential(...)`: the chain is lowered, neighbours become one operator call."""
    signal, chain = wave(job, x), ready(job)
    return lambda: signal | chain


def called(job: dict[str, Any], x: Any) -> Callable[[], Any]:
    """Return `nn.Sequential(...)(wave.ys)`: one operator call per filter."""
    signal, chain = wave(job, x).ys, ready(job)
    return lambda: chain(signal)


def as_class(job: dict[str, Any], x: Any) -> Callable[[], Any]:
    """Return a call of a module whose `forward` calls one filter after the other."""
    from torch import nn

    class Filters(nn.Module):
        """The job's filters, written out by hand."""

        def __init__(self) -> None:
            """Keep the filters."""
            super().__init__()
            self.filters = ready(job)

        def forward(self, signal: Any) -> Any:
            """Filter (channels, time)."""
            for each in self.filters:
                signal = each(signal)
            return signal

    signal, module = wave(job, x).ys, Filters()
    return lambda: module(signal)


def one_by_one(job: dict[str, Any], x: Any) -> Callable[[], Any]:
    """Return `wave | Filter(...) | Filter(...)`: filters made again in every call, one operator call each."""
    signal = wave(job, x)
    return lambda: reduce(or_, build(job, None), signal)


def joined(job: dict[str, Any], x: Any) -> Callable[[], Any]:
    """Return `wave | (a | b | c)`, the chain made beforehand and following the wave's rate."""
    signal, chain = wave(job, x), reduce(or_, build(job, None))
    return lambda: signal | chain


def operator_stream(job: dict[str, Any]) -> Callable[[Any], Any]:
    """Return the operator itself with the state carried from block to block."""
    import torch

    from torchfx import _ops

    sos = torch.tensor(job["sos"], dtype=torch.float64, device=job["device"])
    state: Any = None

    def step(block: Any) -> Any:
        nonlocal state
        y, state = _ops.parallel_iir_forward(torch.from_numpy(block).to(job["device"]), sos, state)
        return y

    return step


def stream(job: dict[str, Any]) -> Callable[[Any], Any]:
    """Return `Stream.process`, the state carried from block to block."""
    import torch

    chain = reduce(or_, build(job, None))
    process = import_module("torchfx.realtime").Stream(chain, job["fs"], job["channels"]).process
    return lambda block: process(torch.from_numpy(block).to(job["device"]))


def module_call(job: dict[str, Any]) -> Callable[[Any], Any]:
    """Return `chain(block)`: each block from rest."""
    import torch

    chain = reduce(or_, build(job, job["fs"]))
    return lambda block: chain(torch.from_numpy(block).to(job["device"]))


def wave_call(job: dict[str, Any]) -> Callable[[Any], Any]:
    """Return `Wave(block, fs) | chain`: each block from rest."""
    chain = reduce(or_, build(job, None))
    return lambda block: (wave(job, block) | chain).ys


CONTENDERS = {
    "torchfx": piped,
    "torchfx unfused": called,
    "torchfx class": as_class,
    "torchfx pipe": one_by_one,
    "torchfx chain": joined,
}
STREAMS = {
    "torchfx": operator_stream,
    "torchfx Stream": stream,
    "torchfx chain(x)": module_call,
    "torchfx wave | chain": wave_call,
}
