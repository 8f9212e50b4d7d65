"""Losses: their formulas in float64, auraloss's values where it is installed, gradients, bad input."""

import importlib.util

import pytest
import torch

import torchfx as fx
from torchfx import losses
from torchfx.errors import ArgumentError, ArgumentTypeError

G = torch.Generator().manual_seed(0)
TARGET = torch.randn(3, 2, 9000, generator=G, dtype=torch.float64) * 0.3
ESTIMATE = 0.8 * TARGET + torch.randn(3, 2, 9000, generator=G, dtype=torch.float64) * 0.1
LOSSES = {
    "ESR": losses.ESRLoss,
    "pre-emphasised ESR": lambda: losses.ESRLoss(fx.filter.Preemphasis(0.95)),
    "A-weighted ESR": lambda: losses.ESRLoss(fx.filter.Weighting("A", fs=44_100)),
    "DC": losses.DCLoss,
    "log-cosh": losses.LogCoshLoss,
    "SNR": losses.SNRLoss,
    "SI-SDR": losses.SISDRLoss,
    "loudness": lambda: losses.LoudnessLoss(16_000),
    "STFT": losses.STFTLoss,
    "plain STFT": lambda: losses.STFTLoss(512, 100, 400, w_convergence=0, w_log=0, w_linear=1, distance="L2"),
    "mel": lambda: losses.MelSTFTLoss(16_000, n_mels=40),
    "several": losses.MultiResolutionSTFTLoss,
    "sum and difference": losses.SumAndDifferenceLoss,
}


@pytest.mark.parametrize("name", LOSSES)
def test_float32_is_float64_and_has_its_gradient(name):
    loss = LOSSES[name]()
    found, grads = [], []
    for dtype in (torch.float64, torch.float32):
        estimate = ESTIMATE.to(dtype, copy=True).requires_grad_()
        value = loss(estimate, TARGET.to(dtype))
        assert value.shape == ()
        assert value.dtype == dtype
        found.append(value.item())
        grads.append(torch.autograd.grad(value, estimate)[0].double())
    assert found[1] == pytest.approx(found[0], rel=2e-5)
    assert found[0] != 0
    assert (grads[1] - grads[0]).norm() <= 1e-2 * grads[
        0
    ].norm()  # of a magnitude near 0 the logarithm's slope is steep


@pytest.mark.parametrize("name", LOSSES)
def test_gradients_are_those_of_differences(name):
    loss = LOSSES[name]()
    estimate, direction = ESTIMATE.clone().requires_grad_(), torch.randn(ESTIMATE.shape, generator=G).double()
    (grad,) = torch.autograd.grad(loss(estimate, TARGET), estimate)
    step = 1e-8
    by_difference = (loss(ESTIMATE + step * direction, TARGET) - loss(ESTIMATE - step * direction, TARGET)) / (2 * step)
    assert (grad * direction).sum().item() == pytest.approx(by_difference.item(), rel=1e-3)


@pytest.mark.parametrize("name", sorted(set(LOSSES) - {"SNR", "SI-SDR"}))
def test_equal_signals_have_no_loss(name):
    assert LOSSES[name]()(TARGET, TARGET).abs() < 1e-12


def test_the_formula_of_spectra():
    loss = losses.STFTLoss(256, 64, 200, w_convergence=0.7, w_log=1.3, w_linear=0.2)
    window = torch.hann_window(200, dtype=torch.float64)

    def magnitudes(x):
        rows = torch.stft(x.reshape(-1, x.shape[-1]), 256, 64, 200, window, return_complex=True)
        return (rows.real.square() + rows.imag.square()).clamp(min=1e-8).sqrt()

    x, y = magnitudes(ESTIMATE), magnitudes(TARGET)
    expected = 0.7 * (y - x).norm() / y.norm() + 1.3 * (x.log() - y.log()).abs().mean() + 0.2 * (x - y).abs().mean()
    assert loss(ESTIMATE, TARGET).item() == pytest.approx(expected.item(), rel=1e-9)


@pytest.mark.skipif(importlib.util.find_spec("auraloss") is None, reason="needs auraloss")
def test_values_are_auralosss():
    import auraloss

    x, y = ESTIMATE.float(), TARGET.float()
    for theirs, mine in (
        (auraloss.freq.STFTLoss(), losses.STFTLoss()),
        (auraloss.freq.STFTLoss(512, 100, 400, w_lin_mag=0.5), losses.STFTLoss(512, 100, 400, w_linear=0.5)),
        (auraloss.freq.MultiResolutionSTFTLoss(), losses.MultiResolutionSTFTLoss()),
        (auraloss.freq.SumAndDifferenceSTFTLoss(fft_sizes=[1024, 2048, 512], hop_sizes=[120, 240, 50],
                                                win_lengths=[600, 1200, 240]), losses.SumAndDifferenceLoss()),
        (auraloss.time.ESRLoss(), losses.ESRLoss()),
        (auraloss.time.DCLoss(), losses.DCLoss()),
        (auraloss.time.LogCoshLoss(), losses.LogCoshLoss()),
        (auraloss.time.SNRLoss(), losses.SNRLoss()),
        (auraloss.time.SISDRLoss(), losses.SISDRLoss()),
    ):  # fmt: skip
        assert mine(x, y).item() == pytest.approx(theirs(x, y).item(), rel=2e-6), type(mine)


def test_bad_input_is_named():
    with pytest.raises(ArgumentError, match="must have the same shape"):
        losses.ESRLoss()(ESTIMATE, TARGET[..., 1:])
    with pytest.raises(ArgumentTypeError, match="must have the same type"):
        losses.ESRLoss()(ESTIMATE, TARGET.float())
    with pytest.raises(ArgumentError, match="w_log must be >= 0"):
        losses.STFTLoss(w_log=-1)
    with pytest.raises(ArgumentError, match="must be > 0, got 0 for each"):
        losses.STFTLoss(w_log=0, w_convergence=0)
    with pytest.raises(ArgumentError, match="eps must be > 0"):
        losses.SNRLoss(eps=0)
    with pytest.raises(ArgumentError, match="must have the shape"):
        losses.SumAndDifferenceLoss()(ESTIMATE[:, :1], TARGET[:, :1])
    with pytest.raises(ArgumentError, match="must have equal lengths"):
        losses.MultiResolutionSTFTLoss((512,), (128, 64))
    with pytest.raises(ArgumentError, match="silence has no loudness"):
        losses.LoudnessLoss(16_000)(0 * TARGET, TARGET)


@pytest.mark.filterwarnings("ignore:.*script_method.*:DeprecationWarning", "ignore:The .grad attribute:UserWarning")
def test_they_compile():
    loss = torch.compile(losses.MelSTFTLoss(16_000, n_mels=20), fullgraph=True)
    assert loss(ESTIMATE.float(), TARGET.float()) > 0


@pytest.mark.parametrize("distance", ["L1", "L2"])
def test_the_backward_pass_keeps_signals_and_no_spectrum(distance):
    kept = {}

    def keep(tensor):
        kept[tensor.data_ptr()] = tensor.numel()
        return tensor

    x, y = (torch.randn(2, 1, 20_000, generator=torch.Generator().manual_seed(i)) for i in (0, 1))
    loss = losses.STFTLoss(w_linear=1.0, distance=distance)
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        found = loss(x.requires_grad_(), y)
    kept = [size for size in kept.values() if size > loss.spectrum.n_fft]  # other than the window
    assert kept == [x.numel()] * len(kept)
    assert len(kept) <= 3
    found.backward()


FORMS = {
    "by default": losses.STFTLoss,
    "squares": lambda: losses.STFTLoss(512, 100, 400, w_linear=0.3, distance="L2"),
    "logarithms": lambda: losses.STFTLoss(400, 160, w_convergence=0, w_linear=0.2),
    "mel": lambda: losses.MelSTFTLoss(16_000, n_mels=40, w_linear=1.0),
    "several": lambda: losses.MultiResolutionSTFTLoss((256, 512), (64, 100), (256, 400)),
    "no native size": lambda: losses.STFTLoss(254, 60),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", FORMS)
def test_value_and_gradient_are_those_of_the_operators_one_by_one(name, dtype):
    loss = FORMS[name]()
    x, y = ESTIMATE.to(dtype, copy=True), TARGET.to(dtype)
    x[0] = y[0]  # equal signals,
    x[1, 0, 2000:] = 0  # and silence, where the gradient is 0
    ours, theirs = x.clone().requires_grad_(), x.clone().requires_grad_()
    value = loss(ours, y)
    parts = loss.losses if isinstance(loss, losses.MultiResolutionSTFTLoss) else [loss]
    expected = torch.stack([each.composed(theirs, y) for each in parts]).mean()
    (3 * value).backward()
    (3 * expected).backward()
    exact = 1e-10 if dtype == torch.float64 else 2e-6
    assert value.item() == pytest.approx(expected.item(), rel=exact)
    assert loss(x, y).item() == pytest.approx(expected.item(), rel=exact)
    assert (ours.grad - theirs.grad).norm() <= 10 * exact * theirs.grad.norm()


def test_gradients_of_gradients_and_of_the_target():
    loss = losses.STFTLoss(32, 8, w_linear=0.5, distance="L2")
    x, y = (torch.randn(1, 60, generator=G, dtype=torch.float64).requires_grad_() for _ in range(2))
    assert torch.autograd.gradgradcheck(lambda x: loss(x, y.detach()), x)
    assert torch.autograd.gradcheck(loss, (x, y))
    by_target = torch.autograd.grad(loss(x, y), x)[0]
    assert torch.allclose(torch.autograd.grad(loss(x, y.detach()), x)[0], by_target, atol=1e-12)
    assert torch.allclose(torch.func.grad(loss)(x.detach(), y.detach()), by_target, atol=1e-12)


def test_a_norm_of_many_float32_magnitudes_is_exact():
    x, y = (torch.randn(8, 65_536, generator=torch.Generator().manual_seed(i)) for i in (0, 1))
    loss = losses.STFTLoss(256, 16, w_log=0.0)
    a, b = (loss.spectrum(each).double() for each in (x, y))
    for found in (loss(x, y), loss(x.clone().requires_grad_(), y), loss.composed(x, y)):
        assert found.item() == pytest.approx(((b - a).norm() / b.norm()).item(), rel=1e-5)


@pytest.mark.parametrize("in_target", [False, True])
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("name", [*LOSSES, "SNR with means"])
def test_a_sample_that_is_not_finite_is_not_hidden(name, bad, in_target):
    loss = losses.SNRLoss(zero_mean=False) if name == "SNR with means" else LOSSES[name]()
    x, y = ESTIMATE.clone(), TARGET.clone()
    (y if in_target else x)[0, 0, 4000] = bad
    if name == "loudness":
        with pytest.raises(ArgumentError, match="must be finite"):
            loss(x, y)
        return
    assert not loss(x, y).isfinite()
    assert not loss(x.requires_grad_(), y).isfinite()
