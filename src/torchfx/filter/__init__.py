"""Filters, all `nn.Module`s."""

from torchfx.core.resample import Resample
from torchfx.filter.biquad import (
    AllPass,
    BiquadBPF,
    BiquadBPFPeak,
    BiquadHPF,
    BiquadLPF,
    HiShelving,
    LoShelving,
    Notch,
    ParametricEQ,
    Peaking,
)
from torchfx.filter.biquad import BiquadAllPass as BiquadAllPass
from torchfx.filter.biquad import BiquadNotch as BiquadNotch
from torchfx.filter.butterworth import HiButterworth, LoButterworth
from torchfx.filter.chebyshev1 import HiChebyshev1, LoChebyshev1
from torchfx.filter.coefficients import IIR, SOS
from torchfx.filter.comb import Comb
from torchfx.filter.convolution import Convolution
from torchfx.filter.filter import Filter
from torchfx.filter.fir import FIR, DesignableFIR
from torchfx.filter.fir_bands import FrequencySampledFIR, Kaiser, LeastSquaresFIR, MinimumPhaseFIR, Remez
from torchfx.filter.first_order import DCBlocker, Deemphasis, OnePole, Preemphasis
from torchfx.filter.fractional_delay import FractionalDelay
from torchfx.filter.hilbert import Hilbert
from torchfx.filter.ladder import Ladder
from torchfx.filter.recursive import RecursiveFilter
from torchfx.filter.savitzky_golay import SavitzkyGolay
from torchfx.filter.state_variable import StateVariable
from torchfx.filter.weighting import RIAA, Weighting

__all__ = [
    "FIR",
    "IIR",
    "RIAA",
    "SOS",
    "AllPass",
    "BiquadBPF",
    "BiquadBPFPeak",
    "BiquadHPF",
    "BiquadLPF",
    "Comb",
    "Convolution",
    "DCBlocker",
    "Deemphasis",
    "DesignableFIR",
    "Filter",
    "FractionalDelay",
    "FrequencySampledFIR",
    "HiButterworth",
    "HiChebyshev1",
    "HiShelving",
    "Hilbert",
    "Kaiser",
    "Ladder",
    "LeastSquaresFIR",
    "LoButterworth",
    "LoChebyshev1",
    "LoShelving",
    "MinimumPhaseFIR",
    "Notch",
    "OnePole",
    "ParametricEQ",
    "Peaking",
    "Preemphasis",
    "RecursiveFilter",
    "Remez",
    "Resample",
    "SavitzkyGolay",
    "StateVariable",
    "Weighting",
]
