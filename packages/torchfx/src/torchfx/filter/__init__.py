"""Filters, all `nn.Module`s."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from torchfx.core.resample import Resample
from torchfx.filter.band_banks import (
    BandpassBank,
    ERBFilterBank,
    GammatoneBank,
    LogFilterBank,
    MelFilterBank,
    OctaveBank,
)
from torchfx.filter.bank import Bank
from torchfx.filter.bessel import Bessel, HiBessel, LoBessel
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
from torchfx.filter.butterworth import Butterworth, HiButterworth, LoButterworth
from torchfx.filter.chebyshev1 import Chebyshev1, HiChebyshev1, LoChebyshev1
from torchfx.filter.chebyshev2 import Chebyshev2, HiChebyshev2, LoChebyshev2
from torchfx.filter.coefficients import IIR, SOS
from torchfx.filter.comb import Comb
from torchfx.filter.convolution import Convolution
from torchfx.filter.elliptic import Elliptic, HiElliptic, LoElliptic
from torchfx.filter.filter import Filter
from torchfx.filter.fir import FIR, DesignableFIR
from torchfx.filter.fir_bands import FrequencySampledFIR, Kaiser, LeastSquaresFIR, MinimumPhaseFIR, Remez
from torchfx.filter.first_order import DCBlocker, Deemphasis, OnePole, Preemphasis
from torchfx.filter.fractional_delay import FractionalDelay
from torchfx.filter.hilbert import Hilbert
from torchfx.filter.ladder import Ladder
from torchfx.filter.linkwitz_riley import Crossover, HiLinkwitzRiley, LinkwitzRiley, LoLinkwitzRiley
from torchfx.filter.recursive import RecursiveFilter
from torchfx.filter.savitzky_golay import SavitzkyGolay
from torchfx.filter.state_variable import StateVariable
from torchfx.filter.weighting import RIAA, Weighting
from torchfx.other_names import missing as _missing

__all__ = [
    "FIR",
    "IIR",
    "RIAA",
    "SOS",
    "AllPass",
    "BandpassBank",
    "Bank",
    "Bessel",
    "BiquadBPF",
    "BiquadBPFPeak",
    "BiquadHPF",
    "BiquadLPF",
    "Butterworth",
    "Chebyshev1",
    "Chebyshev2",
    "Comb",
    "Convolution",
    "Crossover",
    "DCBlocker",
    "Deemphasis",
    "DesignableFIR",
    "ERBFilterBank",
    "Elliptic",
    "Filter",
    "FractionalDelay",
    "FrequencySampledFIR",
    "GammatoneBank",
    "HiBessel",
    "HiButterworth",
    "HiChebyshev1",
    "HiChebyshev2",
    "HiElliptic",
    "HiLinkwitzRiley",
    "HiShelving",
    "Hilbert",
    "Kaiser",
    "Ladder",
    "LeastSquaresFIR",
    "LinkwitzRiley",
    "LoBessel",
    "LoButterworth",
    "LoChebyshev1",
    "LoChebyshev2",
    "LoElliptic",
    "LoLinkwitzRiley",
    "LoShelving",
    "LogFilterBank",
    "MelFilterBank",
    "MinimumPhaseFIR",
    "Notch",
    "OctaveBank",
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

if not _TYPE_CHECKING:  # a type checker reports names that do not exist
    __getattr__ = _missing(__name__)
