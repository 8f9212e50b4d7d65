"""Effects, all `nn.Module`s."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from torchfx.effect.channels import Balance, ChannelMatrix, Mono, Pan, StereoWidth
from torchfx.effect.compand import Compand
from torchfx.effect.delay import Delay, PingPongDelay
from torchfx.effect.dither import Dither
from torchfx.effect.dynamics import Compressor, Expander, NoiseGate
from torchfx.effect.fade import Fade
from torchfx.effect.fdn_reverb import FDNReverb
from torchfx.effect.gain import Gain
from torchfx.effect.harmonic_percussive import HarmonicPart, PercussivePart
from torchfx.effect.invert import Invert
from torchfx.effect.limiter import Limiter
from torchfx.effect.mix import Mix
from torchfx.effect.modulated_delay import Chorus, Flanger, Vibrato
from torchfx.effect.modulation import RingModulation, Tremolo
from torchfx.effect.multiband import DeEsser, MultibandCompressor
from torchfx.effect.noise import AddBackgroundNoise, AddNoise
from torchfx.effect.noise_reduction import NoiseReduction
from torchfx.effect.normalize import Normalize
from torchfx.effect.phaser import Phaser
from torchfx.effect.pitch import PitchShift, TimeStretch, Varispeed
from torchfx.effect.reverb import Reverb
from torchfx.effect.reverse import Reverse
from torchfx.effect.silence import Pad, TrimSilence
from torchfx.effect.transient import TransientShaper
from torchfx.effect.waveshaping import BitCrush, Distortion, HardClip, Overdrive, SoftClip, WaveShaper
from torchfx.other_names import missing as _missing

__all__ = [
    "AddBackgroundNoise",
    "AddNoise",
    "Balance",
    "BitCrush",
    "ChannelMatrix",
    "Chorus",
    "Compand",
    "Compressor",
    "DeEsser",
    "Delay",
    "Distortion",
    "Dither",
    "Expander",
    "FDNReverb",
    "Fade",
    "Flanger",
    "Gain",
    "HardClip",
    "HarmonicPart",
    "Invert",
    "Limiter",
    "Mix",
    "Mono",
    "MultibandCompressor",
    "NoiseGate",
    "NoiseReduction",
    "Normalize",
    "Overdrive",
    "Pad",
    "Pan",
    "PercussivePart",
    "Phaser",
    "PingPongDelay",
    "PitchShift",
    "Reverb",
    "Reverse",
    "RingModulation",
    "SoftClip",
    "StereoWidth",
    "TimeStretch",
    "TransientShaper",
    "Tremolo",
    "TrimSilence",
    "Varispeed",
    "Vibrato",
    "WaveShaper",
]

if not _TYPE_CHECKING:  # a type checker reports names that do not exist
    __getattr__ = _missing(__name__)
