"""Filters, all `nn.Module`s."""

from torchfx.filter.butterworth import HiButterworth, LoButterworth
from torchfx.filter.chebyshev1 import HiChebyshev1, LoChebyshev1
from torchfx.filter.coefficients import IIR, SOS
from torchfx.filter.filter import Filter
from torchfx.filter.fir import FIR, DesignableFIR
from torchfx.filter.recursive import RecursiveFilter

__all__ = [
    "FIR",
    "IIR",
    "SOS",
    "DesignableFIR",
    "Filter",
    "HiButterworth",
    "HiChebyshev1",
    "LoButterworth",
    "LoChebyshev1",
    "RecursiveFilter",
]
