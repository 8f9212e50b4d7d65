"""Normalize."""

import numpy as np
import pytest
import torch

import torchfx as fx
from torchfx.errors import ArgumentError


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_peak_is_reached_and_the_balance_kept(generator, dtype):
    x = torch.randn(2, 1000, dtype=dtype, generator=generator) * torch.tensor([[0.1], [3.0]], dtype=dtype)
    y = fx.effect.Normalize(peak=0.9)(x)
    assert float(y.abs().max()) == pytest.approx(0.9, rel=1e-6)
    assert torch.allclose(y[0] / y[1], x[0] / x[1])


def test_items_of_a_batch_are_normalised_apart(generator):
    x = torch.randn(4, 2, 100, generator=generator) * torch.tensor([1e-30, 1.0, 5.0, 1e30])[:, None, None]
    assert torch.allclose(fx.effect.Normalize(0.5)(x).abs().amax((1, 2)), torch.tensor(0.5))


def test_silence_stays_silence():
    assert not fx.effect.Normalize()(torch.zeros(2, 10)).any()


def test_bad_arguments_raise():
    for peak in (0, -1, float("inf")):
        with pytest.raises(ArgumentError, match="peak must"):
            fx.effect.Normalize(peak=peak)
    with pytest.raises(ArgumentError, match="empty shape"):
        fx.effect.Normalize()(torch.zeros(2, 0))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("scale", [1.0, 3e38, 1e30, 1e-30, 1e-38, 1e-44])
def test_peak_is_reached_from_any_magnitude(dtype, scale):
    """3e38 is near the largest float32, 1e-38 and below are denormal; factors between them do not fit into float32."""
    x = torch.tensor([[1.0, -0.5], [0.25, 0.0]], dtype=dtype) * torch.tensor(scale, dtype=dtype)
    expected = (x.double() / x.double().abs().max() * 0.5).to(dtype)
    assert torch.allclose(fx.effect.Normalize(0.5)(x), expected, rtol=4 * torch.finfo(dtype).eps, atol=0)


def test_denormal_doubles_are_lifted_too():
    x = torch.tensor([[4e-310, -1e-310]], dtype=torch.float64)
    assert torch.allclose(fx.effect.Normalize(1.0)(x), torch.tensor([[1.0, -0.25]], dtype=torch.float64), rtol=1e-10)


@pytest.mark.parametrize("peak", [1e-30, 1e30])
def test_any_peak_is_reached(generator, peak):
    y = fx.effect.Normalize(peak)(torch.randn(2, 100, generator=generator))
    assert float(y.abs().max()) == pytest.approx(peak, rel=1e-6)


@pytest.mark.parametrize(
    ("bad", "count"), [([float("nan")], 1), ([float("inf"), -float("inf")], 2), ([float("nan"), float("inf"), 1.0], 2)]
)
def test_what_is_not_finite_is_counted(bad, count):
    x = torch.zeros(2, 10)
    x[1, : len(bad)] = torch.tensor(bad)
    with pytest.raises(ArgumentError, match=f"x must be finite to be normalised, got {count} NaN or infinite samples"):
        fx.effect.Normalize()(x)


FS = 8000


def noise(*shape):
    return 0.3 * torch.randn(*shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


@pytest.mark.parametrize("lufs", [None, -14.0, torch.tensor([[-14.0], [-23.0]])])
def test_loudness_is_reached(lufs):
    x = noise(2, 2, FS)
    y = fx.effect.Normalize(method="lufs", lufs=lufs, fs=FS)(x)
    expected = torch.as_tensor(-23.0 if lufs is None else lufs).expand(2, 1)[:, 0].double()
    assert torch.allclose(fx.loudness.integrated(y, FS), expected, rtol=0, atol=1e-6)
    assert torch.allclose(y[:, 0] / y[:, 1], x[:, 0] / x[:, 1])


def test_files_reach_a_loudness_in_blocks(tmp_path):
    wave = fx.Wave(noise(2, 3 * FS).float(), FS)
    wave.save(tmp_path / "in.wav", encoding="FLOAT")
    chain = fx.filter.LoButterworth(2000) | fx.effect.Normalize(method="lufs", lufs=-20)
    fx.realtime.process_file(chain, tmp_path / "in.wav", tmp_path / "out.wav", block=777)
    found = fx.Wave.from_file(tmp_path / "out.wav")
    assert torch.allclose(found.ys, (wave | chain).ys, rtol=0, atol=1e-6)
    assert float(fx.loudness.integrated(found)) == pytest.approx(-20, abs=1e-3)


def test_loudness_of_silence_and_of_one_channel():
    normalize = fx.effect.Normalize(method="lufs", fs=FS)
    assert not normalize(torch.zeros(2, FS)).any()
    assert torch.allclose(normalize(noise(FS)), normalize(noise(1, FS))[0])


def test_a_gradient_through_loudness():
    x = noise(2, 4000).requires_grad_()
    normalize = fx.effect.Normalize(method="lufs", fs=FS)
    assert torch.autograd.gradcheck(normalize, x, fast_mode=True)


def test_bad_loudness_raises():
    with pytest.raises(ArgumentError, match="lufs needs method"):
        fx.effect.Normalize(lufs=-14)
    with pytest.raises(ArgumentError, match=r"lufs must lie in \[-70, 0\] LUFS, got 3"):
        fx.effect.Normalize(method="lufs", lufs=3)
    with pytest.raises(ArgumentError, match=r"at least 0\.4 s"):
        fx.effect.Normalize(method="lufs", fs=FS)(torch.ones(2, 100))
    with pytest.raises(ArgumentError, match="has no sample rate"):
        fx.effect.Normalize(method="lufs")(torch.ones(2, FS))


def rms(x):
    return x.square().mean((-2, -1)).sqrt()


def quantile(percent):
    def level(x):
        return torch.as_tensor(np.percentile(x.abs().numpy(), percent, axis=(-2, -1), method="lower"))

    return level


LEVELS = {
    "rms": ({"method": "rms"}, rms, 1e-12),
    "99 %": ({"method": "percentile"}, quantile(99), 2**-8),
    "50 %": ({"method": "percentile", "percentile": 50}, quantile(50), 2**-8),
    "100 %": ({"method": "percentile", "percentile": 100}, quantile(100), 2**-8),
    "a function": ({"method": lambda x: x.abs().mean((-2, -1))}, lambda x: x.abs().mean((-2, -1)), 1e-12),
}


@pytest.mark.parametrize("link", [True, False])
@pytest.mark.parametrize(("options", "level_of", "bound"), LEVELS.values(), ids=LEVELS)
def test_each_level_is_reached(options, level_of, bound, link):
    x = noise(3, 17, 1025) * torch.linspace(1e-3, 100, 3 * 17, dtype=torch.float64).reshape(3, 17, 1)
    y = fx.effect.Normalize(0.25, link=link, **options)(x)
    found = level_of(y if link else y[..., None, :])
    assert torch.allclose(found, torch.tensor(0.25, dtype=torch.float64), rtol=bound)
    alone = fx.effect.Normalize(0.25, link=link, **options)(x[1, 2])
    assert float(level_of(alone[None])) == pytest.approx(0.25, rel=bound)
    assert not fx.effect.Normalize(0.25, link=link, **options)(torch.zeros(2, 10)).any()


@pytest.mark.parametrize("method", ["peak", "lufs"])
def test_channels_are_normalised_apart_without_a_link(method):
    x = noise(2, FS) * torch.tensor([[0.01], [1.0]])
    y = fx.effect.Normalize(method=method, link=False, fs=FS)(x)
    assert torch.allclose(y, torch.cat([fx.effect.Normalize(method=method, fs=FS)(each[None]) for each in x]))


def test_equal_magnitudes_are_their_own_percentile():
    x = torch.tensor([[0.3, -0.3, 0.3]])
    assert torch.allclose(fx.effect.Normalize(0.5, method="percentile")(x), x / 0.6)


@pytest.mark.parametrize("method", ["rms", "percentile"])
def test_files_reach_a_level_in_blocks(tmp_path, method):
    wave = fx.Wave(noise(2, 3 * FS).float(), FS)
    wave.save(tmp_path / "in.wav", encoding="FLOAT")
    chain = fx.filter.LoButterworth(2000) | fx.effect.Normalize("-20dB", method=method)
    fx.realtime.process_file(chain, tmp_path / "in.wav", tmp_path / "out.wav", block=777)
    assert torch.allclose(fx.Wave.from_file(tmp_path / "out.wav").ys, (wave | chain).ys, rtol=0, atol=1e-6)


def test_a_function_hears_files_of_one_block_only(tmp_path):
    wave = fx.Wave(noise(2, 1000).float(), FS)
    wave.save(tmp_path / "in.wav", encoding="FLOAT")
    normalize = fx.effect.Normalize(0.5, method=rms)
    assert repr(normalize) == "Normalize(peak=0.5, method=rms)"
    fx.realtime.process_file(normalize, tmp_path / "in.wav", tmp_path / "out.wav")
    assert float(rms(fx.Wave.from_file(tmp_path / "out.wav").ys)) == pytest.approx(0.5, rel=1e-6)
    with pytest.raises(ArgumentError, match="method=rms must get the whole signal in one block"):
        fx.realtime.process_file(normalize, tmp_path / "in.wav", tmp_path / "again.wav", block=777)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.wav", "out.wav"]


@pytest.mark.parametrize("method", ["peak", "rms", "percentile"])
def test_gradients_through_the_level(method):
    x = noise(2, 50).requires_grad_()
    assert torch.autograd.gradcheck(fx.effect.Normalize(0.5, method=method), x)
    silence = torch.zeros(2, 50, requires_grad=True)
    fx.effect.Normalize(0.5, method=method)(silence).sum().backward()
    assert bool(torch.isfinite(silence.grad).all())


@pytest.mark.parametrize("method", ["rms", "percentile"])
def test_every_method_counts_what_is_not_finite(method):
    x = torch.zeros(2, 10)
    x[1, 3:5] = torch.tensor([float("nan"), float("inf")])
    with pytest.raises(ArgumentError, match="got 2 NaN or infinite samples"):
        fx.effect.Normalize(method=method)(x)


def test_bad_methods_raise():
    with pytest.raises(ArgumentError, match="method must be one of peak, rms, percentile, lufs, or a function, got 3"):
        fx.effect.Normalize(method=3)
    with pytest.raises(ArgumentError, match='percentile needs method="percentile"'):
        fx.effect.Normalize(percentile=50)
    with pytest.raises(ArgumentError, match=r"percentile must lie in \[0, 100\]"):
        fx.effect.Normalize(method="percentile", percentile=101)
    with pytest.raises(ArgumentError, match=r"must return a level for each signal, shape \(3,\), got \(\)"):
        fx.effect.Normalize(method=lambda x: x.abs().mean())(noise(3, 2, 10))
