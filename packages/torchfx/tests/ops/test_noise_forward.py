"""Noise by its place: native and reference bit for bit; SplitMix64's words, Box and Muller's numbers, densities."""

import math

import numpy as np
import pytest
import torch
from scipy import stats
from torch.autograd import forward_ad, gradcheck

from operators import backend, forms
from torchfx import _ops
from torchfx._ops import native
from torchfx._ops.noise.schema import DENSITIES
from torchfx.errors import ArgumentError, ArgumentTypeError

FORMS = forms("noise_forward")
ONE, START = torch.tensor(1.0, dtype=torch.float64), torch.tensor(0)
FAR = 2**62 - 12345
MASK = 2**64 - 1


def numbers(density, time, place=START, key=FAR, run=lambda *given: [_ops.noise_forward(*given)]):
    silence = torch.zeros(*place.shape, time, dtype=torch.float64)
    return run(silence, ONE, place, key, density, False)[0]


def words(first, count):
    """SplitMix64's words in Python's own integers."""
    found = []
    for n in range(first, first + count):
        z = n * 0x9E3779B97F4A7C15 & MASK
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
        z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
        found.append(z ^ z >> 31)
    return found


@pytest.mark.parametrize("run", FORMS)
def test_words_are_those_of_splitmix64(run):
    """The first three that are published for the seed 0."""
    published = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
    assert words(1, 3) == published
    expected = [(word >> 11) * 2.0**-53 - 0.5 for word in published]
    assert numbers("rectangular", 3, torch.tensor(1), 0, run).tolist() == expected
    assert numbers("rectangular", 1000, START, 5, run).tolist() == [(w >> 11) * 2.0**-53 - 0.5 for w in words(5, 1000)]


@pytest.mark.parametrize("run", FORMS)
def test_triangular_numbers_are_made_of_rectangular_ones(run):
    one, other = (numbers("rectangular", 999, torch.tensor(7), key, run) for key in (3, 3 + 2**20))
    assert torch.equal(numbers("triangular", 999, torch.tensor(7), 3, run), one + (other + 0.5) - 0.5)
    before = numbers("rectangular", 999, torch.tensor(6), 3, run)
    assert torch.equal(numbers("differences", 999, torch.tensor(7), 3, run), one - before)


@pytest.mark.parametrize("run", FORMS)
def test_normal_numbers_are_box_and_muller_s(run):
    expected = []
    for block in range(40):
        w = np.array(words(16 * block + 5, 16), dtype=np.uint64)
        u = ((w >> np.uint64(33)).astype(np.float32) + np.float32(0.5)).astype(np.float64) / 2**31
        angle = (w & np.uint64(0xFFFFFFFF)).astype(np.uint32).view(np.int32) * (np.pi / 2**32)
        sign = np.where(w >> np.uint64(32) & np.uint64(1), -1, 1)
        radius = np.sqrt(-2 * np.log(u))
        expected += [*(radius * np.cos(angle) * sign), *(radius * np.sin(angle))]
    found = numbers("normal", 40 * 32, START, 5, run).numpy()
    assert np.abs(found - expected).max() < 2e-6


@pytest.mark.skipif(native.library is None, reason="needs the native library")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("density", DENSITIES)
def test_native_equals_the_reference_bit_for_bit(density, dtype, generator):
    own, reference = backend("noise_forward", "cpu"), backend("noise_forward", "composite")
    for leading, time in (((), 0), ((), 1), ((1,), 31), ((17,), 1025), ((2, 3), 16_385), ((2, 0), 5)):
        x = torch.randn(*leading, 2 * time, generator=generator).to(dtype)
        place = torch.randint(2**50, leading[-1:], generator=generator)
        gain = torch.rand((*leading[:1], *(1 for _ in leading[1:])), dtype=torch.float64, generator=generator) + 0.01
        for signal in (x[..., :time], x[..., ::2]):
            for rounded in (False, True):
                arguments = (signal, gain, place, FAR, density, rounded)
                assert torch.equal(own(*arguments)[0], reference(*arguments)[0])
    x = torch.tensor([math.inf, math.nan, -1e30, 2.0**52 + 1, -0.0], dtype=dtype)
    arguments = (x, ONE, START, 0, density, True)
    assert torch.equal(own(*arguments)[0].nan_to_num(7), reference(*arguments)[0].nan_to_num(7))


@pytest.mark.skipif(native.library is None, reason="needs the native library")
def test_instruction_sets_and_threads_give_the_same_bits(generator):
    x, place = torch.randn(3, 70_001, generator=generator), torch.tensor([5, 2**41, 77])
    best, threads = native.instruction_set(), torch.get_num_threads()
    found = []
    try:
        for isa in ("avx512", "avx2", "neon", "baseline"):
            if native.library.torchfx_set_isa(isa.encode()) == 0:
                for count in (1, 3):
                    torch.set_num_threads(count)
                    found.append([_ops.noise_forward(x, ONE, place, FAR, density) for density in DENSITIES])
                    found[-1] += [_ops.noise_magnitude(place, 70_001, FAR), _ops.magnitude(x)]
    finally:
        native.library.torchfx_set_isa(best.encode())
        torch.set_num_threads(threads)
    for each in found[1:]:
        assert all(torch.equal(a, b) for a, b in zip(found[0], each, strict=True))


@pytest.mark.parametrize("run", FORMS)
@pytest.mark.parametrize("density", DENSITIES)
def test_blocks_equal_the_whole(density, run, generator):
    x, place = torch.randn(3, 3000, generator=generator), torch.tensor([[0], [12345], [2**40 + 31]])[:, 0]
    for rounded in (False, True):
        [whole] = run(x, ONE / 8, place, FAR, density, rounded)
        for sizes in ([1] * 40 + [2960], [0, 17, 1025, 31, 1, 1926], [511, 513, 1976]):
            parts, at = [], place
            for block in x.split(sizes, -1):
                parts += run(block, ONE / 8, at, FAR, density, rounded)
                at = at + block.shape[-1]
            assert torch.equal(torch.cat(parts, -1), whole)


DISTRIBUTIONS = {
    "normal": (stats.norm(), 1, 0),
    "rectangular": (stats.uniform(-0.5, 1), 1 / 12, -1.2),
    "triangular": (stats.triang(0.5, -1, 2), 1 / 6, -0.6),
    "differences": (stats.triang(0.5, -1, 2), 1 / 6, -0.6),
}


@pytest.mark.parametrize("key", [0, 1, FAR])
@pytest.mark.parametrize("density", DENSITIES)
def test_numbers_have_their_density(density, key):
    """Within four and a half standard deviations of what as many independent numbers would give."""
    n = 2**20
    found = numbers(density, n, torch.tensor(1), key).numpy()
    found = found[::2] if density == "differences" else found  # neighbours share a number
    distribution, power, kurtosis = DISTRIBUTIONS[density]
    moments = [distribution.moment(k) for k in (2, 4, 8)]
    bound = 4.5 / math.sqrt(len(found))
    assert abs(found.mean()) < bound * math.sqrt(power)
    assert abs(found.var() - power) < bound * math.sqrt(moments[1] - power**2)
    assert abs((found**4).mean() - moments[1]) < bound * math.sqrt(moments[2] - moments[1] ** 2)
    assert moments[1] / power**2 - 3 == pytest.approx(kurtosis)
    assert stats.kstest(found, distribution.cdf).pvalue > 1e-4


def test_tails_are_normal():
    found = numbers("normal", 2**22).abs()
    for level in (3.0, 4.0, 4.5):
        expected = 2 * stats.norm.sf(level) * len(found)
        assert abs(int((found > level).sum()) - expected) < 4.5 * math.sqrt(expected)


@pytest.mark.parametrize("density", ["normal", "rectangular", "triangular"])
def test_neighbours_channels_and_keys_are_independent(density):
    """Correlations of the numbers and of their squares, at distances around a block of normal numbers and its half."""
    place = torch.tensor([0, 2**40, 2**41])
    n = 2**17
    found = torch.cat([numbers(density, n, place), numbers(density, n, START, 0)[None]])
    for each in (found, found.square()):
        each = each - each.mean(-1, keepdim=True)
        each = each / each.square().mean(-1, keepdim=True).sqrt()
        for lag in (0, 1, 2, 3, 15, 16, 17, 31, 32, 33, 64):
            products = each[:, None, lag:] * each[None, :, : n - lag]
            together = products.mean(-1)
            if lag == 0:
                together.fill_diagonal_(0)
            assert float(together.abs().max()) < 5.5 / math.sqrt(n), lag


@pytest.mark.parametrize("run", forms("noise_magnitude"))
@pytest.mark.parametrize("time", [0, 1, 31, 1025, 50_000])
def test_the_magnitude_of_noise_is_that_of_its_numbers(time, run):
    place = torch.tensor([[3, 2**40], [64, 1]])
    expected = np.sqrt((numbers("normal", time, place).numpy().astype(np.longdouble) ** 2).sum(-1))
    [found] = run(place, time, FAR)
    assert np.abs(found.numpy() - expected).max() <= 1e-13 * expected.max()


@pytest.mark.parametrize("run", forms("magnitude"))
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_magnitude_is_the_root_of_the_sum_of_squares(dtype, run, generator):
    for leading, time in (((), 1), ((17,), 1025), ((2, 3), 40_000), ((2,), 0), ((0, 2), 5)):
        x = torch.randn(*leading, 2 * time, dtype=dtype, generator=generator)
        for signal in (x[..., :time], x[..., ::2], x[..., :1].expand(*leading, time)):
            expected = np.sqrt((signal.numpy().astype(np.longdouble) ** 2).sum(-1))
            found = run(signal)[0].numpy()
            assert found.shape == leading
            assert (np.abs(found - expected) <= 1e-12 * expected).all()


def test_derivatives(generator):
    x = torch.randn(2, 3, 40, dtype=torch.float64, generator=generator).requires_grad_()
    gain = torch.rand(2, 1, dtype=torch.float64, generator=generator).requires_grad_()
    place = torch.tensor([0, 2**40, 5])

    def noisy(x, gain):
        return _ops.noise_forward(x, gain, place, FAR, "normal")

    assert gradcheck(noisy, (x, gain), check_forward_ad=True, check_batched_grad=True)
    assert gradcheck(lambda gain: noisy(x.detach()[0], gain), (gain,))  # the signal has fewer dimensions
    assert gradcheck(_ops.magnitude, (x,), check_forward_ad=True)
    assert torch.autograd.gradgradcheck(_ops.magnitude, (x,))
    silence = torch.zeros(2, 5, requires_grad=True)
    _ops.magnitude(silence).sum().backward()
    assert not silence.grad.any()
    _ops.noise_forward(x, gain, place, 0, "rectangular", True).sum().backward()
    assert not x.grad.any()
    assert not gain.grad.any()
    with forward_ad.dual_level():
        y = _ops.noise_forward(forward_ad.make_dual(x.detach(), x.detach()), gain, place, 0, "rectangular", True)
        assert not forward_ad.unpack_dual(y).tangent.any()


def test_misuse_is_named():
    x = torch.zeros(2, 5)
    for arguments, message in (
        ((x, ONE.float(), START, 0, "normal"), "gain must be float64"),
        ((x, ONE, START.int(), 0, "normal"), "place must be int64"),
        ((x.int(), ONE, START, 0, "normal"), "x must be float32 or float64"),
    ):
        with pytest.raises(ArgumentTypeError, match=message):
            _ops.noise_forward(*arguments)
    for arguments, message in (
        ((x, ONE.expand(3), START, 0, "normal"), r"must broadcast .* \(3,\) of gain"),
        ((x, ONE, START.expand(3), 0, "normal"), r"must broadcast .* \(3,\) of place"),
        ((x, ONE, START, 0, "pink"), "density must be one of normal, rectangular, triangular, differences, got 'pink'"),
    ):
        with pytest.raises(ArgumentError, match=message):
            _ops.noise_forward(*arguments)
    with pytest.raises(ArgumentError, match="time must be >= 0, got -1"):
        _ops.noise_magnitude(START, -1, 0)
