"""Features at a chain's end: what joins, what is refused, text, and the catalogue."""

import inspect
from random import Random

import pytest
import torch
from torch import nn

import torchfx as fx
from torchfx import catalogue, spec
from torchfx.core.feature import Feature
from torchfx.errors import ArgumentError, StreamError
from torchfx.spectral import AmplitudeToDB, InverseSpectrogram, MelScale, MelSpectrogram, Spectrogram

from .test_spectra import noise

pytestmark = pytest.mark.filterwarnings("ignore:mel band")
FS = 16_000
ENTRIES = catalogue.features()


def drawn(entry, seed):
    """Build a processor with random parameters; some do not fit each other, and others are drawn then."""
    random = Random(f"{entry.name} {seed}")
    while True:
        values = {each.name: each.draw(random, FS) for each in entry.declarations}
        if entry.load().gives == "samples":
            values |= {"length": None, **({"center": True} if "center" in values else {})}  # else windows must fit
        try:
            return entry.load()(**{**values, "fs": FS})
        except ArgumentError:
            continue


def given(module, dtype=torch.float32):
    """Return what a processor takes."""
    if module.takes == "samples":
        return noise(2, 2000, dtype=dtype)
    bins = getattr(module, "n_stft", None) or getattr(module, "n_fft", 20) // 2 + 1
    bins = module.rows(FS, residual=True) if hasattr(module, "rows") else bins
    bins = module.n_mels if type(module).__name__ == "InverseMelScale" else bins
    x = noise(2, bins, 60, dtype=dtype).square()
    return torch.complex(x, x.flip(-1)) if module.takes_complex else x


def test_everything_public_is_listed_and_nothing_else():
    public = {getattr(fx.spectral, name) for name in fx.spectral.__all__}
    assert {entry.load() for entry in ENTRIES.values()} == public
    assert all(issubclass(cls, Feature) for cls in public)
    assert not ENTRIES.keys() & catalogue.available().keys()
    for entry in ENTRIES.values():
        assert entry.signature() == inspect.signature(entry.load())
        assert entry.summary == inspect.getdoc(entry.load()).splitlines()[0]


@pytest.mark.parametrize("name", ENTRIES)
@pytest.mark.parametrize("seed", range(3))
def test_any_parameters_give_what_the_class_promises(name, seed):
    module = drawn(ENTRIES[name], seed)
    x = given(module)
    torch.manual_seed(0)
    y = module(x)
    if module.gives == "features":
        assert y.shape[:-1] == module.output_shape(tuple(x.shape[:-1]))
    assert y.isfinite().all()
    torch.manual_seed(0)
    assert torch.equal(module(x), y)
    torch.manual_seed(0)
    wide = given(module, torch.float64)
    wide = module(wide.to(torch.complex128) if module.takes_complex else wide)
    assert wide.dtype in {torch.float64, torch.complex128}


@pytest.mark.parametrize("name", ENTRIES)
def test_repr_and_text_build_it_again(name):
    module = spec.build(spec.example_text(ENTRIES[name]))
    assert type(module).__name__ == ENTRIES[name].name
    again = eval(repr(module), {cls: getattr(fx.spectral, cls) for cls in fx.spectral.__all__})
    assert repr(again) == repr(module)


@pytest.mark.parametrize("name", ENTRIES)
def test_gradients_are_those_of_finite_differences(name):
    module = drawn(ENTRIES[name], 1)
    if name in {"griffinlim"}:
        pytest.skip("its iteration has a gradient, which differences of 1e-6 are too coarse for")
    x = given(module, torch.float64)
    x = x[..., :40].clone() if module.takes == "features" else x[..., : 2000 if name == "logmel" else 200].clone()
    x = (x + 0.1).requires_grad_()

    def run(x):
        torch.manual_seed(0)
        y = module(x)
        return torch.view_as_real(y) if y.is_complex() else y

    # One direction: a full Jacobian is large.
    weights = noise(*run(x).shape, seed=3, dtype=torch.float64)
    (grad,) = torch.autograd.grad((run(x) * weights).sum(), x)
    way = noise(*x.shape, seed=4, dtype=torch.float64).to(x.dtype)
    step = 1e-6
    with torch.no_grad():
        slope = ((run(x + step * way) - run(x - step * way)) * weights).sum() / (2 * step)
    along = (grad.conj() * way).real.sum() if x.is_complex() else (grad * way).sum()
    assert abs(float(along - slope)) < 1e-5 * float((grad.abs() * way.abs()).sum() + 1e-9)


def test_a_wave_becomes_a_tensor_and_a_wave_again():
    wave = fx.Wave(noise(2, 8000), FS)
    assert isinstance(wave | MelSpectrogram(n_mels=20), torch.Tensor)
    assert isinstance(wave | fx.effect.Gain(0.5) | Spectrogram() | AmplitudeToDB(), torch.Tensor)
    chain = fx.effect.Gain(0.5) | (Spectrogram(power=None) | InverseSpectrogram(length=8000)) | fx.effect.Gain(2.0)
    back = wave | chain
    assert isinstance(back, fx.Wave)
    assert float((back.ys - wave.ys).abs().max()) < 1e-5


def test_samples_are_not_asked_of_features():
    wave = fx.Wave(noise(2, 8000), FS)
    for wrong in (
        MelSpectrogram(n_mels=20) | fx.effect.Gain(0.5),
        Spectrogram() | Spectrogram(),
        fx.effect.Gain(0.5) | MelScale(),
        MelSpectrogram(n_mels=20) | nn.Identity() | (AmplitudeToDB() | fx.filter.LoButterworth(1000)),
    ):
        with pytest.raises(ArgumentError, match=r"takes (samples|features) .* in front of it gives"):
            wave | wrong
    with pytest.raises(ArgumentError, match="branches of a sum give samples"):
        wave | (Spectrogram() + Spectrogram())


def test_networks_stand_behind_features():
    wave = fx.Wave(noise(2, 8000), FS)
    net = nn.Conv1d(20, 4, 3)
    assert torch.equal((MelSpectrogram(n_mels=20, fs=FS) | net)(wave.ys), net(wave | MelSpectrogram(n_mels=20)))


def test_files_and_devices_want_samples(tmp_path):
    fx.Wave(noise(1, 8000) / 9, FS).save(tmp_path / "in.wav")
    with pytest.raises(ArgumentError, match="a file of audio holds samples"):
        fx.process_file(MelSpectrogram(n_mels=20), tmp_path / "in.wav", tmp_path / "out.wav")
    assert not (tmp_path / "out.wav").exists()
    with pytest.raises(StreamError, match="a live chain must return samples"):
        fx.realtime.RealtimeProcessor(MelSpectrogram(n_mels=20, fs=48_000))


@pytest.mark.parametrize("name", ["melspectrogram", "logmel"])
def test_compiled_calls_give_the_same(name):
    module = MelSpectrogram(n_mels=20, fs=FS) if name == "melspectrogram" else fx.spectral.LogMel("whisper", 20)
    x = noise(2, 8000)
    compiled = torch.compile(module, fullgraph=True, backend="aot_eager")
    assert torch.allclose(compiled(x), module(x), atol=1e-5)


def test_vmap_second_derivatives_and_forward_mode():
    module = MelSpectrogram(n_fft=32, n_mels=5, fs=FS)
    x = noise(3, 2, 200)
    assert torch.allclose(torch.vmap(module)(x), module(x), atol=1e-5)
    x = noise(100, dtype=torch.float64)
    assert torch.autograd.gradcheck(module, x.clone().requires_grad_(), check_forward_ad=True)
    assert torch.autograd.gradgradcheck(module, x[:60].clone().requires_grad_())
