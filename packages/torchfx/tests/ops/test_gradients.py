"""Gradients of the operators: native against the definition, the definition against finite differences."""

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

import torchfx as fx
from torchfx import _ops
from torchfx._ops.fir import gradient as fir_gradient
from torchfx._ops.sos import gradient as sos_gradient

SOS = torch.tensor([[0.2, 0.3, 0.1, 1.0, -0.5, 0.3], [1.0, -1.0, 0.2, 2.0, 0.4, 0.1], [0.5, 0.5, 0.0, 1.0, 0.2, 0.0]])


def tensors(*shapes, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, dtype=torch.float64, generator=generator).requires_grad_() for shape in shapes]


@pytest.mark.parametrize("check", [gradcheck, gradgradcheck])
@pytest.mark.parametrize("taps", [1, 12])
def test_responses_of_one_tap_and_of_more_than_samples_against_finite_differences(check, taps):
    x, b, state = tensors((2, 7), (taps,), (2, taps - 1))
    assert check(_ops.fir_forward, (x, b, state))
    assert check(lambda x, b: _ops.fir_forward(x, b), (x, b))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("channels", [1, 2, 9])
@pytest.mark.parametrize("time", [1, 2, 65, 1025, 30_000])
def test_native_cascade_gradient_equals_the_definition(time, channels, dtype):
    x, grad_y, state, grad_state = (
        t.detach() for t in tensors((channels, time), (channels, time), (3, channels, 2), (3, channels, 2))
    )
    x, grad_y, sos = x.to(dtype), grad_y.to(dtype), SOS.double()
    definition = sos_gradient.backward(_ops.operators["sos_forward"], (x, sos, state, 1024), (grad_y, grad_state))
    *forward, checkpoints = torch.ops.torchfx_ext.sos_forward_recording(x, sos, state)
    for found, expected in zip(forward, torch.ops.torchfx_ext.sos_forward(x, sos, state), strict=True):
        assert torch.allclose(found, expected)
    for kept in (None, checkpoints):
        native = torch.ops.torchfx_ext.sos_backward(grad_y, grad_state, x, sos, state, kept, 1024, True, True, True)
        for found, expected in zip(native, definition, strict=True):
            scale = expected.abs().max()
            assert float((found - expected).abs().max() / scale) < (2e-7 if found.dtype == torch.float32 else 1e-10)


# A section without b0 has no gain to divide by; gains as far apart as these leave no range to divide in.
@pytest.mark.parametrize("gains", [(0.0, 1.0), (1e-9, 1e9), (-3.0, 1.0), (1e-60, 1e-60)])
def test_native_cascade_gradient_at_any_gain(gains):
    x, grad_y = (t.detach().float() for t in tensors((2, 3000), (2, 3000)))
    sos = SOS[:2].double()
    sos[0, 0] = gains[0]
    sos[1, :3] *= gains[1]
    grad_state = torch.zeros(2, 2, 2, dtype=torch.float64)
    native = torch.ops.torchfx_ext.sos_backward(grad_y, grad_state, x, sos, None, None, 1024, True, True, True)
    definition = sos_gradient.backward(_ops.operators["sos_forward"], (x, sos, None, 1024), (grad_y, grad_state))
    for found, expected in zip(native, definition, strict=True):
        assert float((found - expected).abs().max()) <= 2e-7 * float(expected.abs().max())


def test_checkpoints_of_another_signal_are_refused():
    x, y, sos = torch.zeros(2, 1100), torch.zeros(2, 1200), SOS.double()
    _, after, checkpoints = torch.ops.torchfx_ext.sos_forward_recording(y, sos)
    backward = torch.ops.torchfx_ext.sos_backward
    with pytest.raises(fx.TorchFXError, match=r"shape \(2, 3, 3, 2\)"):
        backward(x, after, x, sos, None, torch.zeros(2, 2, 3, 2).double(), 1024, True, True, True)
    backward(x, after, x, sos, None, checkpoints, 1024, True, True, True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("taps", [1, 5, 101, 700])
@pytest.mark.parametrize("time", [1, 65, 1025, 30_000])
def test_native_response_gradient_equals_the_definition(time, taps, dtype):
    x, grad_y, grad_state, b = (t.detach() for t in tensors((3, time), (3, time), (3, taps - 1), (taps,)))
    x, grad_y = x.to(dtype), grad_y.to(dtype)
    native = torch.ops.torchfx_ext.fir_backward(grad_y, grad_state, x, b, True, True, True)
    definition = fir_gradient.backward(_ops.operators["fir_forward"], (x, b, None), (grad_y, grad_state))
    for found, expected in zip(native, definition, strict=True):
        scale = expected.abs().max() if expected.numel() else 1.0
        assert found.shape == expected.shape
        assert float((found - expected).abs().sum() / scale) / max(expected.numel(), 1) < (
            2e-7 if found.dtype == torch.float32 else 1e-11
        )
    for need_x, need_taps in ((True, False), (False, True)):
        partial = torch.ops.torchfx_ext.fir_backward(grad_y, grad_state, x, b, need_x, need_taps, True)
        for found, expected, needed in zip(partial, native, (need_x, need_taps, True), strict=True):
            assert torch.equal(found, expected) if needed else found.numel() == 0


def test_gradients_flow_through_lowered_chains():
    taps = torch.tensor([0.5, 0.25, 0.125], dtype=torch.float64, requires_grad=True)
    (x,) = tensors((2, 200))
    chain = fx.filter.HiButterworth(80, fs=48000) | fx.filter.FIR(taps) | fx.effect.Gain(2.0)
    parameter = chain[1].b
    chain(x).square().sum().backward()
    expected_x, expected_taps = x.grad.clone(), parameter.grad.clone()
    x.grad = parameter.grad = None
    y = x
    for module in chain:
        y = module(y)
    y.square().sum().backward()
    assert torch.allclose(x.grad, expected_x)
    assert torch.allclose(parameter.grad, expected_taps)


def test_nothing_is_recorded_when_no_gradient_is_wanted():
    (x,) = tensors((2, 50))
    assert _ops.parallel_iir_forward(x.detach(), SOS.double())[0].grad_fn is None
    with torch.no_grad():
        assert not _ops.parallel_iir_forward(x, SOS.double())[0].requires_grad
    with torch.inference_mode():
        assert _ops.fir_forward(torch.ones(5), torch.ones(2).double())[0].is_inference()


OPERATIONS = {
    "sos": lambda x: _ops.parallel_iir_forward(x, SOS.double())[0],
    "biquad": lambda x: _ops.biquad_forward(x, SOS[0, :3].double(), SOS[0, 3:].double())[0],
    "fir": lambda x: _ops.fir_forward(x, torch.tensor([1.0, 0.5, 0.25]).double())[0],
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_per_sample_gradients(name):
    (x,) = tensors((4, 50))
    run = OPERATIONS[name]
    per_sample = torch.func.vmap(torch.func.grad(lambda v: run(v).square().sum()))(x.detach())
    run(x).square().sum().backward()
    assert torch.allclose(per_sample, x.grad)


@pytest.mark.parametrize("name", OPERATIONS)
def test_hessian_of_a_quadratic(name):
    """y is linear in x, so the second derivative of sum(y^2) / 2 is the operator's matrix with its transpose."""
    run = OPERATIONS[name]
    x = torch.zeros(6, dtype=torch.float64)
    matrix = torch.func.jacrev(run)(x)
    assert torch.allclose(torch.func.jacrev(torch.func.grad(lambda v: run(v).square().sum() / 2))(x), matrix.T @ matrix)


def test_compiled_whole_with_gradients():
    (x,) = tensors((2, 300))
    taps = torch.tensor([0.5, 0.25], dtype=torch.float64, requires_grad=True)

    def run(x, sos, taps):
        y, _ = _ops.parallel_iir_forward(x, sos)
        z, _ = _ops.fir_forward(y * 2, taps)
        return z.tanh().sum()

    sos = SOS.double().requires_grad_()
    eager = torch.autograd.grad(run(x, sos, taps), (x, sos, taps))
    torch._dynamo.reset()
    compiled = torch.compile(run, fullgraph=True, backend="aot_eager")
    for found, expected in zip(torch.autograd.grad(compiled(x, sos, taps), (x, sos, taps)), eager, strict=True):
        assert torch.allclose(found, expected)


def test_compiled_chain_is_whole():
    chain = (
        fx.filter.HiButterworth(80, order=4, fs=48000) | fx.filter.LoButterworth(9000, fs=48000) | fx.effect.Gain(0.5)
    )
    (x,) = tensors((2, 300))
    torch._dynamo.reset()
    compiled = torch.compile(chain, fullgraph=True, backend="aot_eager")
    assert torch.allclose(compiled(x), chain(x))
    (compiled(x).square().sum()).backward()
    found, x.grad = x.grad, None
    chain(x).square().sum().backward()
    assert torch.allclose(found, x.grad)


def test_compiled_filters_mind_the_sample_rate(generator):
    wave = fx.Wave(torch.randn(2, 300, generator=generator), 48000)
    slower = fx.Wave(wave.ys, 16000)
    follows = fx.filter.HiButterworth(80) | fx.filter.LoButterworth(6000)
    torch._dynamo.reset()
    compiled = torch.compile(follows, backend="aot_eager")
    for signal in (wave, slower, wave):
        assert torch.allclose((signal | compiled).ys, (signal | follows).ys)
    fixed = torch.compile(fx.filter.HiButterworth(80, fs=48000), backend="aot_eager")
    with pytest.raises(fx.SampleRateError, match="built for fs=48000 Hz but the signal has fs=16000 Hz"):
        slower | fixed


def test_exported_filters_run_as_before():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.tone = fx.filter.LoButterworth(9000, order=3, fs=48000)
            self.chain = fx.filter.HiButterworth(80, fs=48000) | fx.effect.Gain(0.5)

        def forward(self, x):
            return torch.tanh(self.chain(self.tone(x)))

    x = torch.randn(2, 300, generator=torch.Generator().manual_seed(0))
    exported = torch.export.export(Model(), (x,))
    assert torch.allclose(exported.module()(x), Model()(x))
    assert sum("sos_forward" in str(node.target) for node in exported.graph.nodes) == 2


@pytest.mark.parametrize(
    ("operator", "coefficients", "node"),
    [
        (_ops.parallel_iir_forward, SOS.double(), "SosForwardBackward"),
        (_ops.fir_forward, torch.ones(3).double(), "FirForwardBackward"),
    ],
)
def test_the_graph_names_the_operator(operator, coefficients, node):
    y, _ = operator(torch.randn(2, 50).requires_grad_(), coefficients)
    assert y.grad_fn.name() == node
