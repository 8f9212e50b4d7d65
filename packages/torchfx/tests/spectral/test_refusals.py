"""Every class of `torchfx.spectral` refuses what does not fit or warns of it, and hides no NaN."""

import pytest
import torch

import torchfx as fx
from torchfx import spectral
from torchfx.errors import ArgumentError, ArgumentTypeError, SampleRateError
from torchfx.spectral.log_mel import PRESETS

from .test_spectra import noise

NEEDED = {
    "FrequencyMasking": {"freq_mask_param": 3},
    "GriffinLim": {"n_iter": 2},
    "InverseMelScale": {"n_stft": 201, "n_mels": 20},
    "LogMel": {"preset": "kaldi"},
    "MelScale": {"n_stft": 201, "n_mels": 20},
    "MelSpectrogram": {"n_mels": 20},
    "SpecAugment": {"n_time_masks": 1, "time_mask_param": 3, "n_freq_masks": 1, "freq_mask_param": 3},
    "SlidingWindowCmn": {"cmn_window": 9, "min_cmn_window": 4},
    "TimeMasking": {"time_mask_param": 3},
    "CQT": {"hop_length": 32, "n_bins": 40},
    "VQT": {"hop_length": 32, "n_bins": 40},
    "InverseCQT": {"hop_length": 32, "n_bins": 40},
    "InverseVQT": {"hop_length": 32, "n_bins": 40},
}
"""Arguments without a default, and settings that fit a rate of 16 kHz."""
FS = 16_000
HAMMING = {name: {"window": "hamming"} for name in spectral.__all__ if "n_fft" in getattr(spectral, name).declarations}
"""Windows without a 0, which hides what it is multiplied with."""
CLASSES = {name: getattr(spectral, name) for name in spectral.__all__}
OF_SAMPLES = [name for name, cls in CLASSES.items() if cls.takes == "samples"]
OF_FEATURES = [name for name, cls in CLASSES.items() if cls.takes == "features"]
pytestmark = pytest.mark.filterwarnings("ignore:mel band")


def made(name, **more):
    """Return a processor of a class, at 16 kHz."""
    return CLASSES[name](**{**NEEDED.get(name, {}), "fs": FS, **more})


def taken(name):
    """Return what a processor of a class takes: half a second of samples, or features of about as much."""
    if name in OF_SAMPLES:
        return noise(2, FS // 2)
    bins = {"InverseMelScale": 20, "InverseCQT": 0, "InverseVQT": 0}.get(name, 201)
    bins = bins or made(name).rows(FS, residual=True)
    frames = noise(2, bins, 40).abs()
    return frames + 0j if CLASSES[name].takes_complex else frames


MADE = [(name, HAMMING.get(name, {})) for name in CLASSES]
MADE += [("LogMel", {"preset": preset, "normalize": whole}) for preset in PRESETS for whole in (False, True)]


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
@pytest.mark.parametrize(("name", "arguments"), MADE)
def test_what_a_value_that_is_not_finite_reaches_is_not_finite_and_nothing_else_changes(name, arguments, bad):
    module, x, results = made(name, **arguments), taken(name), []
    for value in (x[0, ..., x.shape[-1] // 2 + 3], 1000.0, bad):
        changed = x.clone()
        changed[0, ..., x.shape[-1] // 2 + 3] = value
        torch.manual_seed(0)
        results.append(module(changed))
    if module.gives == "features":
        results = [y.movedim(-2, 0) for y in results]
    y, other, lost = results
    reached = (other != y).any(0) if module.gives == "features" else other != y
    hidden = lost.isfinite().all(0) if module.gives == "features" else lost.isfinite()
    assert reached.any()
    assert not (reached & hidden).any()
    if not module.refusal():
        at = reached.any(0).nonzero()
        for part in (slice(None, int(at[0])), slice(int(at[-1]) + 1, None)):
            assert torch.equal(lost[..., part], y[..., part])


def refusal(module, x):
    """Return what a processor says of a signal that it does not take, or "" where it gives frames."""
    try:
        y = module(x)
    except ArgumentError as error:
        return str(error)
    assert y.shape[-1] >= 1
    assert y.isfinite().all()
    return ""


@pytest.mark.parametrize("name", OF_SAMPLES)
def test_a_short_signal_is_refused_or_has_frames(name):
    said = {time: refusal(made(name), noise(2, time)) for time in (1, 2, 3, 10, 50, 199, 200, 201, 399, 400, 401)}
    assert all(f"got {time}" in text for time, text in said.items() if text)
    assert bool(said[1]) == (name not in {"CQT", "VQT"})
    assert not said[401]


@pytest.mark.parametrize("name", CLASSES)
def test_no_samples_no_bins_and_other_types_are_refused(name):
    module, x = made(name), taken(name)
    for bad in (x[..., :0], x.real.to(torch.int32), [1.0, 2.0] if name in OF_FEATURES else "noise"):
        with pytest.raises((ArgumentError, ArgumentTypeError), match="must"):
            module(bad)
    other = x.real if x.is_complex() else x + 0j
    with pytest.raises((ArgumentError, ArgumentTypeError), match="must be"):
        module(other)


@pytest.mark.parametrize("name", [name for name in CLASSES if "fs" in CLASSES[name].declarations])
def test_a_rate_that_contradicts_the_processor_s_own_is_refused(name):
    with fx.sample_rate(8000), pytest.raises(SampleRateError, match=r"16000.*8000|8000.*16000"):
        made(name)(taken(name))


@pytest.mark.parametrize("preset", ["whisper", "nemo"])
def test_a_rate_that_contradicts_a_preset_is_refused(preset):
    with pytest.raises(SampleRateError, match="44100"):
        spectral.LogMel(preset, fs=44_100)
    with fx.sample_rate(44_100), pytest.raises(SampleRateError, match="44100"):
        spectral.LogMel(preset)(noise(2, 44_100))


@pytest.mark.parametrize("name", ["GriffinLim", "InverseSpectrogram"])
def test_a_hop_above_the_window_has_no_inverse(name):
    for arguments in ({"n_fft": 64, "hop_length": 65}, {"n_fft": 64, "win_length": 40, "hop_length": 41}):
        with pytest.raises(ArgumentError, match=r"hop_length must be <= win_length = .*, got"):
            CLASSES[name](**arguments)


@pytest.mark.parametrize("name", [name for name, cls in CLASSES.items() if "n_mels" in cls.declarations])
def test_mel_bands_without_a_bin_are_named(name):
    bands = 120 + list(CLASSES).index(name)  # a warning is given once for each table of filters
    more = {"n_mels": bands} | ({"n_fft": 64} if "n_fft" in CLASSES[name].declarations else {"n_stft": 33})
    x = noise(2, bands, 30).abs() if name == "InverseMelScale" else noise(2, 33, 30).abs()
    if name == "LogMel":
        more, x = {"n_mels": 400}, noise(2, FS)
    elif name in OF_SAMPLES:
        x = noise(2, FS)
    with pytest.warns(UserWarning, match=r"mel bands? .*\d"):
        made(name, **more)(x)
