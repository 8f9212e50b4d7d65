"""Crossovers, and banks in chains, sums and streams: (..., time) becomes (..., bands, time) in one operator call."""

import pytest
import soundfile
import torch

import torchfx as fx
from torchfx import spec
from torchfx.errors import ArgumentError, StreamError
from torchfx.realtime import Stream, process_file

FS = 48_000


def noise(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def each_band(bank, x):
    """Return what the bank's filters make of a signal, one call each."""
    return torch.stack([fx.filter.SOS(sos)(x) for sos in bank.sos], dim=-2)


@pytest.mark.parametrize("shape", [(1,), (1025,), (2, 300), (3, 17, 65)])
def test_a_bank_is_its_filters(shape):
    bank, x = fx.filter.Crossover((200, 2000), fs=FS), noise(*shape)
    y = bank(x)
    assert y.shape == (*shape[:-1], bank.bands, shape[-1])
    assert torch.allclose(y, each_band(bank, x), atol=1e-13)
    strided = noise(*shape[:-1], 2 * shape[-1])[..., ::2]
    assert torch.allclose(bank(strided), bank(strided.contiguous()), atol=1e-13)


@pytest.mark.parametrize("order", [2, 4, 6])
def test_the_sum_of_the_bands_is_flat(order):
    impulse = torch.eye(1, 1 << 14, dtype=torch.float64)[0]
    total = fx.filter.Crossover((200, 2000, 8000), order, fs=FS)(impulse).sum(-2)
    assert float((torch.fft.rfft(total).abs() - 1).abs().max()) < 1e-10


def test_a_chain_around_a_bank_is_one_call(capsys):
    each_channel = fx.filter.SOS(torch.stack([fx.filter.LoButterworth(c, fs=FS).sos for c in (5000, 9000)]))
    each_gain = fx.effect.Gain(torch.tensor([0.5, 1.0, 2.0]), clamp=False)
    bank, taps, x = fx.filter.Crossover((200, 2000), fs=FS), fx.filter.FIR([0.5, 0.25]), noise(2, 400)
    chain = each_channel | bank | taps | each_gain
    chain.explain()
    assert "4 modules -> 1 operator call" in capsys.readouterr().out
    expected = each_gain(taps(each_band(bank, each_channel(x))))
    assert torch.allclose(chain(x), expected, atol=1e-12)
    twice = fx.filter.Crossover(1000, fs=FS) | bank
    assert torch.allclose(twice(x), each_band(bank, each_band(fx.filter.Crossover(1000, fs=FS), x)), atol=1e-12)


def test_sums_of_bands_are_sums_of_their_bands():
    first, second, x = fx.filter.Crossover(300, fs=FS), fx.filter.Crossover(3000, fs=FS), noise(2, 300)
    assert torch.allclose((first + second)(x), first(x) + second(x), atol=1e-13)
    with pytest.raises(ArgumentError, match=r"branches of a sum must all give bands, \(..., bands, time\), or none"):
        (first + fx.effect.Gain(0.5))(x)


def test_a_stream_of_bands_follows_its_cutoffs():
    bank, x = fx.filter.Crossover((200, 2000), fs=FS), noise(2, 3000)
    stream = Stream(bank | fx.effect.Gain(0.5, clamp=False), FS, 2)
    whole = 0.5 * bank(x)
    y = torch.cat([stream.process(block) for block in x.split(700, dim=-1)], dim=-1)
    assert torch.allclose(y, whole, atol=1e-12)
    bank.cutoffs = (220, 2200)
    after = torch.cat([stream.process(block) for block in noise(2, 40_000).split(1000, dim=-1)], dim=-1)
    assert torch.allclose(after[..., 30_000:], 0.5 * bank(noise(2, 40_000))[..., 30_000:], atol=1e-3)
    bank.cutoffs = (100, 1000, 5000)
    with pytest.raises(StreamError, match=r"output cannot change its shape, from \(2, 3\) to \(2, 4\)"):
        stream.process(x)


def test_what_holds_no_bands_says_so(tmp_path):
    bank = fx.filter.Crossover(1000)
    with pytest.raises(ArgumentError, match=r"got \(1, 2, 100\); call a bank of filters on wave.ys, under"):
        _ = fx.Wave(torch.ones(1, 100), FS) | bank
    soundfile.write(tmp_path / "in.wav", torch.zeros(100, 1).numpy(), FS)
    with pytest.raises(ArgumentError, match=r"bank of filters makes several signals of one, .* and a file holds one: "):
        process_file(bank, tmp_path / "in.wav", tmp_path / "out.wav")
    assert not (tmp_path / "out.wav").exists()


def test_parameters_are_shown_and_checked():
    bank = spec.build("crossover:[200,2kHz],8")
    assert (str(bank), bank.bands) == ("Crossover(cutoffs=[200, 2000], order=8)", 3)
    assert fx.filter.Crossover(1000).bands == 2
    with pytest.raises(ArgumentError, match="order must be even for a Linkwitz-Riley filter, got 5"):
        bank.order = 5
    with pytest.raises(ArgumentError, match=r"cutoffs must lie in \(0, fs/2\) = \(0, 24000\) Hz, got 24000"):
        fx.filter.Crossover((200, 24_000), fs=FS)
