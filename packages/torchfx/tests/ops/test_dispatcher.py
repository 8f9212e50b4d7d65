"""The way through PyTorch's dispatcher: results that are given, autocast, the profiler's table, errors."""

import pytest
import torch
from torch.profiler import ProfilerActivity, profile

from torchfx import _ops
from torchfx._ops import operator
from torchfx.errors import ArgumentError

SOS = torch.tensor([[0.2, 0.3, 0.1, 1.0, -0.5, 0.3], [1.0, -1.0, 0.0, 1.0, 0.2, 0.0]]).double()
TAPS = torch.tensor([0.5, 0.25, 0.125]).double()


@pytest.mark.parametrize("with_state", [False, True])
def test_opcheck_of_recording_and_what_it_is_for(with_state):
    x = torch.randn(3, 300, generator=torch.Generator().manual_seed(0))
    state = torch.full((2, 3, 2), 0.1, dtype=torch.float64) if with_state else None
    operators = torch.ops.torchfx_ext
    torch.library.opcheck(operators.sos_forward_recording.default, (x, SOS, state))
    y, after, checkpoints = operators.sos_forward_recording(x, SOS, state)
    for kept in (None, checkpoints):
        arguments = (y, after, x, SOS, state, kept, 1024, True, True, True)
        torch.library.opcheck(operators.sos_backward.default, arguments)


def test_profiler_shows_the_operator():
    with profile(activities=[ProfilerActivity.CPU]) as captured:
        _ops.parallel_iir_forward(torch.zeros(1, 10), SOS)
    assert "torchfx_ext::sos_forward" in {event.key for event in captured.key_averages()}


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (torch.empty(2, 9), r"out\[0\] must be torch.float32 of shape \(2, 10\) on cpu, got .* of shape \(2, 9\)"),
        (torch.empty(2, 10, dtype=torch.float64), r"got torch.float64 of shape \(2, 10\)"),
    ],
)
def test_results_of_another_shape_are_refused(y, message):
    with pytest.raises(ArgumentError, match=message):
        _ops.fir_forward(torch.zeros(2, 10), TAPS, out=(y, torch.empty(2, 2).double()))


def test_a_result_that_is_given_records_no_gradient():
    x, out = torch.zeros(2, 10, requires_grad=True), (torch.empty(2, 10), torch.empty(2, 2).double())
    with pytest.raises(ArgumentError, match="records no gradient"):
        _ops.fir_forward(x, TAPS, out=out)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_under_autocast_runs_in_float32(dtype, generator):
    x = torch.randn(2, 3000, generator=generator)
    with torch.autocast("cpu", dtype=dtype):
        y, after = _ops.parallel_iir_forward(x.to(dtype), SOS)
    expected, expected_after = _ops.parallel_iir_forward(x.to(dtype).float(), SOS)
    assert y.dtype == torch.float32
    assert torch.equal(y, expected)
    assert torch.equal(after, expected_after)


def test_out_of_memory_says_how_much_was_needed(monkeypatch):
    def full(*_):
        raise torch.OutOfMemoryError("CUDA out of memory.")

    monkeypatch.setattr(operator, "empty", full)
    x = torch.ones(4, 1 << 18)
    with pytest.raises(
        torch.OutOfMemoryError, match=r"sos_forward needs 4.0 MiB on cpu for its results.*shorter blocks.*CUDA out of"
    ):
        torch.ops.torchfx_ext.sos_forward(x, SOS)
    assert bool((x == 1).all())
