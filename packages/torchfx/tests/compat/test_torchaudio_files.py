"""Reading and writing as torchaudio does: integers as they are held, either axis first, what a header says."""

import io
import re

import pytest
import torch

import torchfx.compat.torchaudio as torchaudio
from torchfx.compat.torchaudio import elsewhere
from torchfx.errors import ArgumentError, ArgumentTypeError, AudioFileError

X = torch.rand(2, 500, generator=torch.Generator().manual_seed(0)) * 1.9 - 0.95


def test_samples_come_back_either_axis_first(tmp_path):
    path = tmp_path / "a.wav"
    torchaudio.save(path, X, 16_000)
    ys, rate = torchaudio.load(path)
    assert rate == 16_000
    assert ys.dtype == torch.float32
    assert torch.equal(ys, X)
    assert torch.equal(torchaudio.load(str(path), 10, 20, channels_first=False)[0], X[:, 10:30].T)
    torchaudio.save(path, X.T, 16_000, channels_first=False)
    assert torch.equal(torchaudio.load(path)[0], X)
    torchaudio.save(path, X[0], 16_000)
    assert torch.equal(torchaudio.load(path)[0], X[:1])


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.int32])
def test_integers_come_back_as_they_were(tmp_path, dtype):
    bounds = torch.iinfo(dtype)
    x = torch.randint(bounds.min, bounds.max, (2, 300), generator=torch.Generator().manual_seed(1)).to(dtype)
    x[0, :2] = torch.tensor([bounds.min, bounds.max])
    path = tmp_path / "a.wav"
    torchaudio.save(path, x, 8000)
    assert torch.equal(torchaudio.load(path, normalize=False)[0], x)
    assert torch.equal(torchaudio.load(path, 7, 50, normalize=False)[0], x[:, 7:57])
    scale = 1 << (bounds.bits - 1)
    assert torch.equal(torchaudio.load(path)[0], ((x.double() - scale * (bounds.min == 0)) / scale).float())


@pytest.mark.parametrize(
    ("options", "bits", "encoding"),
    [
        ({"format": "wav"}, 32, "PCM_F"),
        ({"format": "wav", "encoding": "PCM_S", "bits_per_sample": 24}, 24, "PCM_S"),
        ({"format": "wav", "bits_per_sample": 8}, 8, "PCM_U"),
        ({"format": "wav", "encoding": "ULAW"}, 8, "ULAW"),
        ({"format": "flac", "bits_per_sample": 16}, 16, "FLAC"),
        ({"format": "ogg"}, 0, "VORBIS"),
        ({"format": "mp3", "compression": 128}, 0, "MP3"),
    ],
)
def test_headers_are_told_in_its_words(options, bits, encoding):
    file = io.BytesIO()
    torchaudio.save(file, X, 16_000, **options)
    file.seek(0)
    found = torchaudio.info(file)
    assert (found.sample_rate, found.num_channels, found.bits_per_sample) == (16_000, 2, bits)
    assert found.encoding == encoding
    assert encoding == "MP3" or found.num_frames == 500
    file.seek(0)
    ys, _ = torchaudio.load(file, normalize=False)
    assert ys.dtype == {16: torch.int16, 24: torch.int32}.get(
        bits, torch.uint8 if encoding == "PCM_U" else torch.float32
    )


def test_compression_of_others_is_told():
    with pytest.warns(UserWarning, match="changes nothing of flac"):
        torchaudio.save(io.BytesIO(), X, 16_000, format="flac", compression=5)


def test_bad_input_is_named(tmp_path):
    with pytest.raises(ArgumentError, match="src must have the shape"):
        torchaudio.save(tmp_path / "a.wav", X[None], 16_000)
    with pytest.raises(ArgumentTypeError, match="src must be a tensor"):
        torchaudio.save(tmp_path / "a.wav", [0.0], 16_000)
    with pytest.raises(ArgumentTypeError, match="complex"):
        torchaudio.save(tmp_path / "a.wav", X.cfloat(), 16_000)
    assert not list(tmp_path.iterdir())
    with pytest.raises(AudioFileError, match="no such file"):
        torchaudio.load(tmp_path / "b.wav")
    torchaudio.save(tmp_path / "a.wav", X, 16_000)
    with pytest.raises(ArgumentError, match="frame_offset"):
        torchaudio.load(tmp_path / "a.wav", 500, normalize=False)


@pytest.mark.parametrize(
    ("module", "names"),
    [
        (torchaudio, elsewhere.PACKAGE),
        (torchaudio.functional, elsewhere.FUNCTIONAL),
        (torchaudio.transforms, elsewhere.TRANSFORMS),
    ],
    ids=["package", "functional", "transforms"],
)
def test_what_is_elsewhere_says_where(module, names):
    for name, where in names.items():
        reason = re.escape(f"torchaudio's {name} is not in torchfx; instead: {where}")
        assert not hasattr(module, name)
        with pytest.raises(AttributeError, match=reason):
            getattr(module, name)
        if module is torchaudio:
            for line in (f"from {module.__name__} import {name}", f"from {module.__name__}.{name} import something"):
                with pytest.raises(ModuleNotFoundError, match=reason):
                    exec(line)
    with pytest.raises(ModuleNotFoundError, match="No module named"):
        exec("import torchfx.compat.torchaudio.nonsense")
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        torchaudio.nonsense  # noqa: B018
