"""Names, arguments, buffers and results of torchaudio 2.11, where it is installed.

`pip install --no-deps torchaudio==2.11.0`; its compiled part may not load beside another PyTorch, and what is compared
here is Python.
"""

import importlib.util
import inspect
import math
import sys
import types
import warnings

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import torchfx.compat.torchaudio as ours

G = torch.Generator().manual_seed(0)


def noise(*shape, dtype=torch.float32):
    return torch.randn(*shape, generator=G, dtype=torch.float64).to(dtype) * 0.1


X = noise(2, 4000)


@pytest.fixture(scope="session")
def torchaudio():
    """torchaudio's Python, without the compiled part of it, which only alignment and transducers need."""
    if importlib.util.find_spec("torchaudio") is None:
        pytest.skip("needs torchaudio 2.11")
    extension = types.ModuleType("torchaudio._extension")
    extension._IS_TORCHAUDIO_EXT_AVAILABLE = extension._IS_RIR_AVAILABLE = False
    extension._IS_ALIGN_AVAILABLE = extension._IS_RNNT_AVAILABLE = False
    extension.fail_if_no_align = extension.fail_if_no_rir = lambda function: function
    extension.lazy_import_sox_ext = lambda: None
    sys.modules.setdefault("torchaudio._extension", extension)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import torchaudio
        import torchaudio.compliance.kaldi
        import torchaudio.functional
        import torchaudio.transforms
    return torchaudio


MODULES = {
    "functional": lambda package: package.functional,
    "transforms": lambda package: package.transforms,
    "kaldi": lambda package: package.compliance.kaldi,
}


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_is_here_or_says_where_to_look(torchaudio, module):
    theirs, mine = MODULES[module](torchaudio), MODULES[module](ours)
    for name in theirs.__all__:
        if name in mine.__all__:
            assert callable(getattr(mine, name))
        else:
            with pytest.raises(AttributeError, match="instead"):
                getattr(mine, name)


@pytest.mark.parametrize("module", MODULES)
def test_arguments_have_its_names_order_and_defaults(torchaudio, module):
    theirs, mine = MODULES[module](torchaudio), MODULES[module](ours)
    for name in sorted(set(theirs.__all__) & set(mine.__all__)):
        pairs = [(getattr(theirs, name), getattr(mine, name))]
        if inspect.isclass(pairs[0][0]):
            pairs.append((pairs[0][0].forward, pairs[0][1].forward))
        for one, other in pairs:
            expected, found = inspect.signature(one).parameters, inspect.signature(other).parameters
            assert list(found)[: len(expected)] == list(expected), name
            for each in expected:
                want, have = expected[each].default, found[each].default
                if isinstance(want, torch.Tensor):
                    assert torch.equal(want, have)
                elif callable(want) and not isinstance(want, type):
                    assert want is have or want is inspect.Parameter.empty, (name, each)
                else:
                    assert have == want, (name, each)
            assert all(found[each].default is not inspect.Parameter.empty for each in list(found)[len(expected) :])


SPECTRA = [
    {"n_fft": n_fft, "win_length": win, "hop_length": hop, "pad": pad, "power": power, "normalized": normalized,
     "center": center, "pad_mode": pad_mode, "onesided": onesided}
    for n_fft, win, hop, pad, power, normalized, center, pad_mode, onesided in [
        (400, None, None, 0, 2.0, False, True, "reflect", True),
        (400, None, 160, 0, 1.0, False, True, "reflect", True),
        (512, 400, 160, 0, 2.0, True, True, "reflect", True),
        (512, 400, 160, 7, 2.0, "window", True, "reflect", True),
        (512, 400, 100, 0, 2.0, "frame_length", True, "constant", True),
        (512, 401, 100, 3, 1.0, "frame_length", True, "replicate", True),
        (201, None, 50, 0, 2.0, False, True, "reflect", True),
        (300, 299, 50, 0, 2.0, False, False, "reflect", True),
        (300, None, 310, 0, 2.0, False, True, "circular", True),
        (256, None, 64, 0, 3.0, False, True, "reflect", True),
        (256, None, 64, 0, 0.5, True, True, "reflect", True),
        (256, None, 64, 5, None, False, True, "reflect", True),
        (256, 255, 64, 0, None, "window", False, "reflect", True),
        (250, None, 64, 0, None, "frame_length", True, "constant", False),
        (256, None, 64, 0, 2.0, True, True, "reflect", False),
    ]
]  # fmt: skip
MELS = [
    {"sample_rate": 16_000},
    {"sample_rate": 16_000, "n_fft": 512, "hop_length": 160, "n_mels": 80, "norm": "slaney", "mel_scale": "slaney"},
    {"sample_rate": 22_050, "n_fft": 1024, "hop_length": 256, "n_mels": 80, "f_min": 40.0, "f_max": 7600.0},
    {"sample_rate": 16_000, "n_fft": 400, "n_mels": 20, "power": 1.0, "center": False, "pad": 9},
    {"sample_rate": 44_100, "n_fft": 1200, "n_mels": 30, "power": 1.7, "normalized": True, "pad_mode": "constant"},
    {"sample_rate": 8001, "n_fft": 402, "n_mels": 17, "win_length": 301, "window_fn": torch.blackman_window},
    {"sample_rate": 16_000, "n_mels": 40, "window_fn": torch.hamming_window, "wkwargs": {"periodic": False}},
]
COMPLEX = torch.polar(noise(2, 201, 30).abs(), noise(2, 201, 30) * 30)
MASK = noise(2, 1, 65, 20).abs()[:, 0]
ARRAY = torch.complex(noise(2, 3, 65, 20), noise(2, 3, 65, 20))
TRANSFORMS = [
    *[("Spectrogram", chosen, (X,)) for chosen in SPECTRA],
    *[("MelSpectrogram", chosen, (X,)) for chosen in MELS],
    ("Spectrogram", {}, (noise(1, 3, 2, 1000, dtype=torch.float64),)),
    ("Spectrogram", {"n_fft": 64}, (noise(17, 5000)[:, ::3],)),
    ("InverseSpectrogram", {}, (COMPLEX,)),
    ("InverseSpectrogram", {"normalized": True, "hop_length": 100}, (COMPLEX, 2900)),
    ("InverseSpectrogram", {"normalized": "frame_length", "win_length": 380, "pad": 10}, (COMPLEX,)),
    ("GriffinLim", {"rand_init": False, "n_iter": 8}, (noise(201, 20).abs(),)),
    ("GriffinLim", {"rand_init": False, "n_iter": 4, "power": 1.0, "momentum": 0.0}, (noise(2, 2, 201, 20).abs(),)),
    ("AmplitudeToDB", {}, (X.abs(),)),
    ("AmplitudeToDB", {"stype": "magnitude", "top_db": 40.0}, (noise(2, 3, 20, 30).abs(),)),
    ("AmplitudeToDB", {"top_db": 30.0}, (noise(20, 30).abs(),)),
    ("MelScale", {"n_mels": 40}, (noise(2, 201, 10).abs(),)),
    ("InverseMelScale", {"n_stft": 201, "n_mels": 40, "driver": "gelsd"}, (noise(2, 40, 10).abs(),)),
    ("MFCC", {"melkwargs": {"n_mels": 64, "n_fft": 512}}, (X,)),
    ("MFCC", {"n_mfcc": 13, "log_mels": True, "norm": None, "melkwargs": {"n_mels": 23}}, (X,)),
    ("LFCC", {}, (X,)),
    ("LFCC", {"n_lfcc": 20, "log_lf": True, "norm": None, "speckwargs": {"n_fft": 256}}, (X,)),
    ("MuLawEncoding", {}, (X.clamp(-1, 1),)),
    ("MuLawEncoding", {"quantization_channels": 17}, (X.clamp(-1, 1),)),
    ("MuLawDecoding", {}, (torch.arange(256),)),
    ("Resample", {"orig_freq": 44_100, "new_freq": 16_000}, (X,)),
    ("Resample", {"orig_freq": 16_000, "new_freq": 48_000, "resampling_method": "sinc_interp_kaiser"}, (X,)),
    ("ComputeDeltas", {}, (noise(2, 20, 30),)),
    ("ComputeDeltas", {"win_length": 9, "mode": "constant"}, (noise(20, 30),)),
    ("TimeStretch", {"fixed_rate": 1.3}, (COMPLEX,)),
    ("TimeStretch", {"hop_length": 100}, (COMPLEX, 0.7)),
    *[("Fade", {"fade_in_len": 300, "fade_out_len": 500, "fade_shape": shape}, (X,))
      for shape in ("linear", "exponential", "logarithmic", "quarter_sine", "half_sine")],
    ("Loudness", {"sample_rate": 8000}, (noise(3, 2, 8000),)),
    ("Vol", {"gain": 3.0}, (X,)),
    ("Vol", {"gain": 2.0, "gain_type": "power"}, (X,)),
    ("Vol", {"gain": -3.0, "gain_type": "db"}, (X,)),
    ("SlidingWindowCmn", {"cmn_window": 10, "min_cmn_window": 5}, (noise(2, 30, 20),)),
    ("SlidingWindowCmn", {"cmn_window": 10, "center": True, "norm_vars": True}, (noise(30, 20),)),
    ("SpectralCentroid", {"sample_rate": 16_000}, (X,)),
    ("PitchShift", {"sample_rate": 16_000, "n_steps": 4}, (X,)),
    ("PitchShift", {"sample_rate": 16_000, "n_steps": -3, "n_fft": 256, "win_length": 200}, (X,)),
    ("Convolve", {}, (noise(2, 300), noise(2, 20))),
    ("FFTConvolve", {"mode": "same"}, (noise(2, 300), noise(2, 20))),
    ("Speed", {"orig_freq": 16_000, "factor": 1.1}, (X, torch.tensor([4000, 3000]))),
    ("SpeedPerturbation", {"orig_freq": 16_000, "factors": [0.9]}, (X,)),
    ("AddNoise", {}, (X, noise(2, 4000), torch.tensor([10.0, -5.0]), torch.tensor([4000, 3000]))),
    ("Preemphasis", {}, (X,)),
    ("Deemphasis", {"coeff": 0.5}, (X,)),
    ("PSD", {}, (ARRAY,)),
    ("PSD", {"normalize": False}, (ARRAY, MASK)),
    ("PSD", {"multi_mask": True}, (ARRAY, noise(2, 3, 65, 20).abs())),
    *[("MVDR", {"ref_channel": 1, "solution": solution}, (ARRAY, MASK, MASK.flip(-1)))
      for solution in ("ref_channel", "stv_power")],
    ("MVDR", {"multi_mask": True, "diag_loading": False}, (ARRAY, noise(2, 3, 65, 20).abs().clamp(max=1))),
]  # fmt: skip


def copies(given):
    """Return arguments of their own: some of torchaudio's functions write into theirs."""
    return [each.clone() if isinstance(each, torch.Tensor) else each for each in given]


def agree(found, expected, limit=1e-5):
    if isinstance(expected, (tuple, list)):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            agree(one, other, limit)
        return
    if expected is None:
        assert found is None
        return
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    if not expected.is_floating_point() and not expected.is_complex():
        assert (found - expected).abs().max() <= (1 if expected.numel() > 100 else 0)
        return
    expected = expected.detach()
    scale = expected.abs().max()
    assert (found - expected).abs().max() <= limit * max(float(scale), 1e-20), float(
        (found - expected).abs().max() / scale
    )


@pytest.mark.parametrize(
    ("name", "chosen", "arguments"), TRANSFORMS, ids=lambda each: each if isinstance(each, str) else ""
)
def test_transforms_give_what_torchaudio_gives(torchaudio, name, chosen, arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs, mine = getattr(torchaudio.transforms, name)(**chosen), getattr(ours.transforms, name)(**chosen)
        expected, found = theirs(*copies(arguments)), mine(*copies(arguments))
    limit = {"GriffinLim": 2e-3, "InverseMelScale": 1e-4, "PitchShift": 5e-4, "TimeStretch": 1e-4}.get(name, 1e-5)
    agree(found, expected, limit)
    mine.load_state_dict(theirs.state_dict(), strict=name != "MVDR")
    agree(mine(*copies(arguments)), expected, limit)


def test_mvdr_goes_on_from_call_to_call():
    """As if all frames had come at once; torchaudio 2.11 divides what is new by its weight once more."""
    spectra, mask = torch.complex(noise(3, 65, 60), noise(3, 65, 60)), noise(65, 60).abs()
    whole, parts = ours.transforms.MVDR(), ours.transforms.MVDR(online=True)
    for start in range(0, 60, 20):
        stretch = slice(start, start + 20)
        found = parts(spectra[..., stretch], mask[..., stretch])
    agree(found, whole(spectra, mask)[..., 40:], 1e-6)


BINS = ARRAY[0].transpose(0, 1)
SPEECH_PSD, NOISE_PSD = BINS @ BINS.mH, torch.eye(3, dtype=torch.complex64).repeat(65, 1, 1)
SECOND = torch.tensor([0.0, 1.0, 0.0])
CENTRES = ("lowpass", "highpass", "allpass", "bandpass", "bandreject", "band")
SINE, SQUARE = (
    torch.sin(2 * math.pi * 220 / 16_000 * torch.arange(16_000))[None],
    torch.sin(2 * math.pi * 130 / 8000 * torch.arange(7993)).sign()[None],
)
FUNCTIONS = [
    ("melscale_fbanks", (201, 0.0, 8000.0, 40, 16_000, "slaney", "slaney")),
    ("melscale_fbanks", (257, 20.0, 7000.0, 23, 16_000)),
    ("linear_fbanks", (201, 100.0, 8000.0, 40, 16_000)),
    ("create_dct", (13, 40, "ortho")),
    ("create_dct", (13, 40, None)),
    ("amplitude_to_DB", (noise(2, 20, 30).abs(), 10.0, 1e-10, 0.3, 60.0)),
    ("DB_to_amplitude", (noise(20, 30) * 100, 2.0, 0.5)),
    ("detect_pitch_frequency", (SINE, 16_000)),
    ("detect_pitch_frequency", (SQUARE, 8000, 0.02, 11, 60)),
    ("frechet_distance", (noise(5), torch.cov(noise(5, 50)), noise(5), torch.cov(noise(5, 50)))),
    ("psd", (ARRAY, MASK)),
    ("rtf_power", (SPEECH_PSD, NOISE_PSD, 0, 4)),
    ("rtf_power", (SPEECH_PSD, NOISE_PSD, SECOND, 1)),
    ("mvdr_weights_rtf", (ARRAY[0, :, :, 0].T, NOISE_PSD, SECOND)),
    ("mvdr_weights_souden", (SPEECH_PSD, NOISE_PSD, 2, False)),
    ("apply_beamforming", (ARRAY[0, :, :, 0].T, ARRAY[0])),
    ("lfilter", (X, torch.tensor([1.0, -0.5]), torch.tensor([0.5, 0.1]))),
    *[(f"{kind}_biquad", (X, 16_000, 1000.0)) for kind in CENTRES],
    *[(f"{kind}_biquad", (X.double(), 16_000, 6.0)) for kind in ("bass", "treble")],
    ("equalizer_biquad", (X, 16_000, 1000.0, 6.0)),
    ("deemph_biquad", (X, 48_000)),
    ("riaa_biquad", (X, 44_100)),
    ("filtfilt", (X, torch.tensor([1.0, -0.5]), torch.tensor([0.5, 0.1]))),
    ("contrast", (X,)), ("dcshift", (X, 0.1, 0.05)), ("overdrive", (X,)), ("gain", (X, 3.0)),
    ("phaser", (X, 16_000)), ("flanger", (X[None], 16_000)),
    ("fftconvolve", (noise(2, 300), noise(2, 20), "valid")),
    ("loudness", (noise(2, 16_000), 16_000)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "arguments"), FUNCTIONS, ids=lambda each: each if isinstance(each, str) else "")
def test_functions_give_what_torchaudio_gives(torchaudio, name, arguments):
    expected = getattr(torchaudio.functional, name)(*copies(arguments))
    found = getattr(ours.functional, name)(*copies(arguments))
    agree(found, expected, 2e-5 if name in {"flanger", "phaser"} else 1e-5)


SPEECH = noise(2, 8000) * 20_000
KALDI = [
    ("fbank", {}), ("mfcc", {}), ("spectrogram", {}),
    ("fbank", {"num_mel_bins": 80, "snip_edges": False}),
    ("fbank", {"use_energy": True, "htk_compat": True, "subtract_mean": True, "window_type": "hamming"}),
    ("fbank", {"use_energy": True, "raw_energy": False, "energy_floor": 0.0, "window_type": "hanning"}),
    ("fbank", {"use_log_fbank": False, "use_power": False, "remove_dc_offset": False, "window_type": "rectangular"}),
    ("fbank", {"vtln_warp": 1.2, "high_freq": -200.0, "low_freq": 60.0, "window_type": "blackman"}),
    ("fbank", {"vtln_warp": 0.9, "channel": 1, "preemphasis_coefficient": 0.0}),
    ("fbank", {"round_to_power_of_two": False, "frame_length": 30.0, "frame_shift": 7.5}),
    ("fbank", {"sample_frequency": 8000.0, "frame_length": 32.0, "min_duration": 0.5}),
    ("mfcc", {"use_energy": True, "num_ceps": 20, "cepstral_lifter": 0.0}),
    ("mfcc", {"htk_compat": True, "subtract_mean": True, "num_mel_bins": 40}),
    ("mfcc", {"htk_compat": True, "use_energy": True, "snip_edges": False}),
    ("spectrogram", {"snip_edges": False, "subtract_mean": True, "raw_energy": False, "window_type": "hanning"}),
    ("spectrogram", {"frame_length": 20.0, "sample_frequency": 22_050.0}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "chosen"), KALDI, ids=lambda each: each if isinstance(each, str) else "")
def test_kaldis_features_are_torchaudios(torchaudio, name, chosen):
    expected = getattr(torchaudio.compliance.kaldi, name)(SPEECH.double(), **chosen)
    # A bin that is almost 0 has a logarithm that float32 hardly knows: torchaudio's own is up to 5e-5 off there.
    agree(
        getattr(ours.compliance.kaldi, name)(SPEECH, **chosen).double(),
        expected,
        1e-4 if name == "spectrogram" else 1e-5,
    )


def test_mel_banks_are_torchaudios(torchaudio):
    for each in (
        (23, 512, 16_000.0, 20.0, 0.0, 100.0, -500.0, 1.0),
        (40, 400, 8000.0, 50.0, -100.0, 120.0, 3500.0, 1.1),
    ):
        agree(ours.compliance.kaldi.get_mel_banks(*each)[0], torchaudio.compliance.kaldi.get_mel_banks(*each)[0], 1e-4)


def test_a_signal_below_the_least_duration_has_no_frames():
    assert ours.compliance.kaldi.fbank(SPEECH, min_duration=2.0).shape == (0, 23)


WINDOWS = (torch.hann_window, torch.hamming_window, torch.blackman_window, torch.bartlett_window, torch.ones)


@given(data=st.data())
def test_any_setting_gives_torchaudios_mel_bands(torchaudio, data):
    draw = data.draw
    n_fft = draw(st.integers(32, 1300))
    win_length = draw(st.integers(n_fft // 2, n_fft))
    rate = draw(st.sampled_from((8000, 16_000, 22_050, 44_100, 48_000)))
    chosen = {
        "sample_rate": rate,
        "n_fft": n_fft,
        "win_length": win_length,
        "hop_length": draw(st.integers(max(1, win_length // 8), win_length + 20)),
        "n_mels": draw(st.integers(1, 40)),
        "f_min": draw(st.floats(0, 300)),
        "f_max": draw(st.none() | st.floats(rate / 4, rate / 2)),
        "pad": draw(st.integers(0, 20)),
        "power": draw(st.sampled_from((1.0, 2.0, 0.7))),
        "normalized": draw(st.booleans()),
        "center": draw(st.booleans()),
        "pad_mode": draw(st.sampled_from(("reflect", "constant", "replicate", "circular"))),
        "norm": draw(st.sampled_from((None, "slaney"))),
        "mel_scale": draw(st.sampled_from(("htk", "slaney"))),
        "window_fn": draw(st.sampled_from(WINDOWS)),
    }
    x = noise(*draw(st.sampled_from(((), (1,), (3, 2)))), draw(st.integers(1300, 5000)), dtype=torch.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = torchaudio.transforms.MelSpectrogram(**chosen).double()
        mine = ours.transforms.MelSpectrogram(**chosen)
        # Its filters are computed in float32, so both get the same ones here.
        theirs.mel_scale.fb, theirs.spectrogram.window = mine.mel_scale.fb.double(), mine.spectrogram.window.double()
        agree(mine(x.float()).double(), theirs(x))


@given(data=st.data())
def test_any_setting_gives_torchaudios_filter_banks(torchaudio, data):
    draw = data.draw
    rate = draw(st.sampled_from((8000.0, 16_000.0, 22_050.0)))
    chosen = {
        "sample_frequency": rate,
        "frame_length": draw(st.floats(15, 40)),
        "frame_shift": draw(st.floats(5, 20)),
        "num_mel_bins": draw(st.integers(4, 40)),
        "low_freq": draw(st.floats(0, 200)),
        "high_freq": draw(st.floats(-500, 0)),
        "preemphasis_coefficient": draw(st.floats(0, 1)),
        "window_type": draw(st.sampled_from(("povey", "hanning", "hamming", "blackman", "rectangular"))),
        **{
            name: draw(st.booleans())
            for name in ("htk_compat", "raw_energy", "remove_dc_offset", "snip_edges", "subtract_mean", "use_energy",
                         "use_log_fbank", "use_power")
        },
    }  # fmt: skip
    x = noise(1, draw(st.integers(2000, 9000)), dtype=torch.float64) * 20_000
    found = ours.compliance.kaldi.fbank(x.float(), **chosen)
    agree(found.double(), torchaudio.compliance.kaldi.fbank(x, **chosen), 2e-5)
