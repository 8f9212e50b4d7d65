"""What programs written for torchaudio may pass: definitions and refusals over the whole range of arguments."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import torchfx.compat.torchaudio as torchaudio
from torchfx.compat.torchaudio.compliance import kaldi
from torchfx.errors import ArgumentError

F, T = torchaudio.functional, torchaudio.transforms


def triangle(at, left, centre, right):
    """Return a weight by its definition: rising to the centre, and falling behind it."""
    if left < at <= centre:
        return (at - left) / (centre - left)
    return (right - at) / (right - centre) if centre < at < right else 0.0


@given(
    count=st.integers(4, 12),
    size=st.sampled_from((16, 64, 512)),
    low=st.floats(0, 3000),
    high=st.floats(3500, 8000),
    warped=st.tuples(st.floats(0.01, 0.99), st.floats(0.01, 0.99)).map(sorted),
    warp=st.floats(0.5, 2),
)
def test_bands_of_a_warped_scale_are_triangles_even_where_corners_descend(count, size, low, high, warped, warp):
    vtln_low, vtln_high = (low + part * (high - low) for part in warped)
    if vtln_high - vtln_low < 1 or vtln_low <= low or vtln_high >= high:
        return
    found, _ = kaldi.get_mel_banks(count, size, 16_000.0, low, high, vtln_low, vtln_high, warp)
    corners = torch.linspace(kaldi.mel_scale_scalar(low), kaldi.mel_scale_scalar(high), count + 2, dtype=torch.float64)
    if warp != 1:
        corners = kaldi.vtln_warp_mel_freq(vtln_low, vtln_high, low, high, warp, corners)
    bins = kaldi.mel_scale(torch.arange(size // 2, dtype=torch.float64) * (16_000 / size)).tolist()
    corners = corners.tolist()
    exact = torch.tensor([[triangle(at, *corners[m : m + 3]) for at in bins] for m in range(count)])
    assert (found - exact).abs().max() < 1e-5
    assert (found.min() >= 0, found.max() <= 1) == (True, True)


def shapes(*sizes):
    return st.lists(st.sampled_from(sizes), min_size=2, max_size=2).map(tuple)


@given(waveform=shapes(1, 2, 3), noise=shapes(1, 2, 3), snr=shapes(1, 2, 3), lengths=shapes(1, 2, 3) | st.none())
def test_noise_whose_dimensions_do_not_broadcast_is_refused_by_name(waveform, noise, snr, lengths):
    given = [shape for shape in (waveform, noise, snr, lengths) if shape is not None]
    arguments = (torch.ones(*waveform, 9), torch.ones(*noise, 9), torch.zeros(snr))
    counted = None if lengths is None else torch.full(lengths, 9)
    try:
        expected = torch.broadcast_shapes(*given)
    except RuntimeError:
        with pytest.raises(
            ArgumentError, match=r"leading dimensions must broadcast with each other, got .* of waveform"
        ):
            F.add_noise(*arguments, counted)
    else:
        assert F.add_noise(*arguments, counted).shape == (*expected, 9)


@pytest.mark.parametrize("make", [lambda: F.melscale_fbanks(201, 0.0, 8000.0, 128, 16_000), T.MelScale])
def test_each_call_warns_of_bands_without_a_bin(make):
    for _ in range(2):
        with pytest.warns(UserWarning, match="of 128 ha(s|ve) no bin among 201") as caught:
            make()
        assert len(caught) == 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"resampling_method": "foo"}, "resampling_method must be one of sinc_interp_hann, .*, got 'foo'"),
        ({"rolloff": 1.5}, r"rolloff must lie in \(0, 1\], got 1.5"),
        ({"lowpass_filter_width": 0}, "lowpass_filter_width must be .*1"),
        ({"new_freq": 0}, "new_freq must be .*1"),
    ],
)
def test_a_resampler_refuses_settings_where_it_is_made(settings, message):
    with pytest.raises(ArgumentError, match=message):
        T.Resample(**{"orig_freq": 8000, "new_freq": 16_000} | settings)


@pytest.mark.parametrize("power", [0.0, 1.0, 2.0, 3.0, None])
def test_a_spectrogram_has_the_window_and_steps_of_a_plain_transform_unless_told(power):
    x = torch.zeros(1, 4000, requires_grad=True)
    spectra = F.spectrogram(x, 0, None, 512, None, None, power, False)
    assert torch.equal(spectra, F.spectrogram(x, 0, torch.ones(512), 512, 128, 512, power, False))
    if power is not None:
        spectra.sum().backward()
        assert torch.equal(x.grad.isfinite(), torch.ones_like(x, dtype=torch.bool))


@pytest.mark.parametrize("diag_eps", [1e-7, 0.1, 1.0])
def test_a_transfer_function_is_a_column_of_the_speech_after_one_iteration(diag_eps):
    """With the loaded noise N, N (N^-1 S) e is S e, however much is loaded."""
    draw = torch.Generator().manual_seed(0)
    psd_s, psd_n = (torch.randn(5, 4, 4, dtype=torch.complex128, generator=draw) for _ in range(2))
    found = F.rtf_power(psd_s, psd_n, 2, n_iter=1, diag_eps=diag_eps)
    assert (found - psd_s[..., 2]).abs().max() < 1e-11
