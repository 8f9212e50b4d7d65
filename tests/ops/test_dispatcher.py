"""The operators as PyTorch sees them: opcheck, meta tensors, the profiler's table."""

import pytest
import torch
from torch.profiler import ProfilerActivity, profile

from torchfx import _ops
from torchfx._ops import operator

SOS = torch.tensor([[0.2, 0.3, 0.1, 1.0, -0.5, 0.3], [1.0, -1.0, 0.0, 1.0, 0.2, 0.0]]).double()
OPERATORS = {
    "sos_forward": ((SOS,), (2, 3, 2)),
    "biquad_forward": ((SOS[0, :3].clone(), SOS[0, 3:].clone()), (3, 2)),
    "fir_forward": ((torch.tensor([0.5, 0.25, 0.125]).double(),), (3, 2)),
    "lti_forward": ((torch.tensor([0.5, 0.25, 0.125]).double(), SOS), (3, 2), (2, 3, 2)),
}


def test_every_operator_is_here():
    found = {
        name.partition("::")[2].partition(".")[0]
        for name in torch._C._dispatch_get_all_op_names()
        if name.startswith("torchfx_ext::")
    }
    assert set(OPERATORS) <= found


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("with_state", [False, True])
def test_opcheck_is_clean(name, dtype, with_state):
    coefficients, *shapes = OPERATORS[name]
    operator = getattr(torch.ops.torchfx_ext, name).default
    x = torch.randn(3, 50, dtype=dtype, generator=torch.Generator().manual_seed(0))
    states = [torch.full(shape, 0.1, dtype=torch.float64) if with_state else None for shape in shapes]
    torch.library.opcheck(operator, (x, *coefficients, *states))


@pytest.mark.parametrize("name", OPERATORS)
def test_meta_tensors_give_shapes(name):
    coefficients, *shapes = OPERATORS[name]
    operator = getattr(torch.ops.torchfx_ext, name).default
    y, *states = operator(torch.empty(3, 50, device="meta"), *(c.to("meta") for c in coefficients))
    assert y.shape == (3, 50)
    assert y.dtype == torch.float32
    assert [(state.shape, state.dtype) for state in states] == [(shape, torch.float64) for shape in shapes]


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


def negated(values):
    """The same numbers as a view whose memory holds their negatives."""
    view = torch.complex(torch.zeros_like(values), -values).conj().imag
    assert view.is_neg()
    return view


@pytest.mark.parametrize("name", OPERATORS)
def test_views_that_change_the_sign_are_read_as_they_say(name):
    coefficients, *shapes = OPERATORS[name]
    operator = getattr(torch.ops.torchfx_ext, name).default
    x = torch.randn(3, 50, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    given = [x, *coefficients, *(torch.full(shape, 0.1, dtype=torch.float64) for shape in shapes)]
    expected = operator(*given)
    for i, argument in enumerate(given):
        got = operator(*given[:i], negated(argument), *given[i + 1 :])
        assert all(torch.equal(a, b) for a, b in zip(got, expected, strict=True))


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
