"""What holds for every operator: rows, blocks, signals without samples, derivatives, and what PyTorch asks for."""

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

from many_cases import spread_out
from operators import declared, forms
from oracle import bound, deviation
from torchfx import _ops
from torchfx._ops import native
from torchfx.errors import ArgumentError

FLOATS = [torch.float32, torch.float64]
# Signal's and coefficients' leading dimensions: one for each channel, example or band, and those in the middle.
SPREADS = [
    ((4,), (4,)), ((), (4,)), ((1,), (17,)), ((3, 1), (5,)), ((3, 2), (2,)), ((3, 2), (3, 1)), ((2, 3, 2), (1, 3, 1)),
    ((2, 1, 2), (3, 1)), ((2,), (3, 1)), ((1, 2), (3, 1)), ((2, 1, 2), (2, 3, 1)), ((2, 1), (1, 3)), ((2, 3), ()),
]  # fmt: skip


class Given:
    """Random arguments: signals with the dimensions `leading`, coefficients with `own`, states with both."""

    def __init__(self, leading=(2,), own=(), time=40, dtype=torch.float64, seed=0):
        self.leading, self.own, self.time, self.dtype = leading, own, time, dtype
        self.shape, self.rng = np.broadcast_shapes(leading, own), np.random.default_rng(seed)

    def signal(self, *core, time=None):
        shape = (*self.leading, *core, self.time if time is None else time)
        return torch.from_numpy(self.rng.standard_normal(shape)).to(self.dtype)

    def numbers(self, low, high, *core):
        return torch.from_numpy(self.rng.uniform(low, high, (*self.own, *core)))

    def state(self, *core, lead=()):
        return torch.from_numpy(self.rng.uniform(0.05, 0.9, (*lead, *self.shape, *core)))

    def sections(self, *core, gain=1.0):
        """Stable sections, all unlike."""
        b, radius = gain * self.numbers(-1, 1, *core, 3), self.numbers(0.3, 0.9, *core, 1)
        a1 = -2 * radius * self.numbers(0, 3, *core, 1).cos()
        return torch.cat([b, torch.ones_like(a1), a1, radius * radius], dim=-1)

    def recursion(self, times):
        """All-pole filters that are stable however they change: absolute values sum up to less than 1."""
        return self.numbers(-0.32, 0.32, times, 3)

    def systems(self, times, states=2):
        """Systems whose states shrink at every step, however they change."""
        m = self.numbers(-1, 1, times, states + 1, states + 1)
        m[..., :-1, :-1] *= 0.9 / torch.linalg.matrix_norm(m[..., :-1, :-1], 2, keepdim=True)
        m[..., -1, -1] = m[..., -1, -1].abs()
        return m

    def network(self, lines, inputs, outputs):
        """A network that decays."""
        m = self.numbers(-1, 1, lines + outputs, lines + inputs)
        m[..., :lines, :lines] *= 0.5 / lines
        return m

    def denominator(self):
        """A recursion's coefficients as a polynomial that begins with 1."""
        by_past = self.numbers(-0.32, 0.32, 3)
        return torch.cat([torch.ones_like(by_past[..., :1]), by_past], dim=-1)

    def places(self):
        return torch.from_numpy(self.rng.integers(2**40, size=self.own))


# fmt: off
CASES = {
    "sos_forward": lambda g: (g.signal(), g.sections(3), g.state(2, lead=(3,)), 256),
    "biquad_forward": lambda g: (g.signal(), *g.sections().split(3, -1), g.state(2), 256),
    "sos_zero_phase": lambda g: (g.signal(), g.sections(3), min(5, g.time - 1), "odd"),
    "lfilter_forward": lambda g: (g.signal(), g.numbers(-1, 1, 4), g.denominator(), g.state(3)),
    "lfilter_zero_phase": lambda g: (
        g.signal(), g.numbers(-1, 1, 4), g.denominator(), min(g.time, 17) - 1, "even"),
    "fir_forward": lambda g: (g.signal(), g.numbers(-1, 1, 5), g.state(4)),
    "lti_forward": lambda g: (
        g.signal(), g.numbers(-1, 1, 5), g.sections(3), g.state(4), g.state(2, lead=(3,)), 256),
    "allpole_forward": lambda g: (g.signal(), g.recursion(1), g.state(3)),
    "allpole_forward of each sample": lambda g: (g.signal(), g.recursion(g.time), g.state(3)),
    "state_space_forward": lambda g: (g.signal(), g.systems(1), g.state(2)),
    "state_space_forward of each sample": lambda g: (g.signal(), g.systems(g.time), g.state(2)),
    "saturated_forward": lambda g: (
        3 * g.signal(), g.systems(1, 4), g.numbers(0.05, 0.3), g.numbers(0.5, 3), g.state(4)),
    "saturated_forward of each sample": lambda g: (
        3 * g.signal(), g.systems(g.time), g.numbers(0.05, 0.3), g.numbers(0.5, 3), g.state(2)),
    "delay_network_forward": lambda g: (
        g.signal(2), [3, 5], g.network(2, 2, 3), g.sections(2, 1, gain=0.05), g.state(8), g.state(2, 2, lead=(1,)),
        False),
    "delay_network_forward with the filter first": lambda g: (
        g.signal(1), [40, 7], g.network(2, 1, 1), g.sections(2, 2, gain=0.05), g.state(47), g.state(2, 2, lead=(2,)),
        True),
    "ballistics_forward": lambda g: (g.signal(), g.numbers(0.01, 0.9, 2), g.state()),
    "dynamics_forward": lambda g: (
        g.signal(), None, g.numbers([-20, -0.9, -3, 0, -60, -6, 0.01, 0.01], [0, 0, 0, 12, -30, 6, 0.9, 0.9], 8),
        g.state(), None),
    "limiter_forward": lambda g: (
        g.signal(), g.signal(time=9), None, g.numbers([0.1, 0.001], [1.0, 0.1], 2), g.state(), g.state(9), None),
    "sliding_max": lambda g: (g.signal(), min(3, g.time)),
    "sliding_median": lambda g: (g.signal(), max(1, min(5, g.time - 1 + g.time % 2))),
    "error_feedback_forward": lambda g: (100 * g.signal(), g.signal(), g.numbers(0, 0.25, 4), g.state(4) - 0.5),
    "noise_forward": lambda g: (g.signal(), g.numbers(0.1, 1), g.places(), 5, "normal", False),
    "noise_magnitude": lambda g: (g.places(), g.time, 5),
    "magnitude": lambda g: (g.signal(),),
    "modulated_gain_forward": lambda g: (g.signal(), g.numbers([0, -1, -1], [0.5, 1, 1], 3), g.state()),
    "modulated_delay_forward": lambda g: (  # some delays begin below 2 samples, some end beyond what is kept
        g.signal(), g.numbers([0, 1, -20, 0], [0.5, 40, 20, 1], 4), g.state(), g.signal(time=40)),
    "modulated_delay_forward with feedback": lambda g: (
        g.signal(), g.numbers([0, 1, -20, 0, -0.95], [0.5, 40, 20, 1, 0.95], 5), g.state(), g.signal(time=40)),
    "phaser_forward with feedback": lambda g: (
        g.signal(), g.numbers([0, 0.001, 0, 0, -0.95], [0.01, 0.3, 3, 1, 0.95], 5), g.state(), g.state(lead=(5,))),
    "phaser_forward": lambda g: (
        g.signal(), g.numbers([0, 0.001, 0, 0], [0.01, 0.3, 3, 1], 4), g.state(), g.state(lead=(5,))),
    "resample_forward": lambda g: (g.signal(), torch.from_numpy(g.rng.uniform(-1, 1, (3, 4))), 2, 1, 3 * g.time // 2),
    "phase_vocoder_forward": lambda g: (
        g.signal(), torch.hann_window(256).double(), g.signal(129, time=2).double(), 0.8, 64, 0, 0, 3),
}
# fmt: on
"""Makers of an operator's arguments."""

IN_BLOCKS = [name for name in CASES if len(declared(name.split()[0])[1].results) > 1 and "vocoder" not in name]
"""Those that go on from a state."""

AXES = {"x": -1, "dither": -1, "a": -2, "system": -3}
"""Where the dimension lies that may hold something for each sample."""

OF_THEIR_OWN = {
    "error_feedback_forward", "noise_magnitude", "resample_forward", "phase_vocoder_forward", "limiter_forward",
    "modulated_delay_forward", "dynamics_forward",
}  # fmt: skip
"""Those with steps or kinks, whose derivatives tests of their own check."""

BIT_FOR_BIT = {"state_space_forward", "ballistics_forward", "dynamics_forward", "error_feedback_forward"}
"""Those that do the same operations on a sample whatever block it is in."""


def sums(case):
    """Say whether a gradient of the operator is an operator, which sums over what its arguments were broadcast to."""
    return case.replace("forward", "backward").split()[0] in _ops.operators


def operator_of(case):
    return declared(case.split()[0])[1]


def named(case, arguments):
    """Return arguments by name."""
    schema = torch._C.parse_schema(operator_of(case).schema)
    return dict(zip((argument.name for argument in schema.arguments), arguments, strict=True))


def entry(case):
    return _ops.operators[case.split()[0]]


def overload(case):
    return getattr(torch.ops.torchfx_ext, case.split()[0]).default


def at_rest(case, arguments):
    """Return arguments without those that may be left out, by name."""
    optional = {each.name for each in overload(case)._schema.arguments if isinstance(each.type, torch.OptionalType)}
    return {name: None if name in optional else value for name, value in named(case, arguments).items()}


def listed(found):
    return [found] if isinstance(found, torch.Tensor) else list(found)


def row(tensor, operand, shape, index):
    """Return what belongs to one channel."""
    lead, core = tensor.shape[: operand.lead], tensor.shape[tensor.dim() - operand.core :]
    return tensor.expand((*lead, *shape, *core))[(slice(None),) * operand.lead + index]


def views(x):
    """Return a signal in layouts that callers have."""
    return x, torch.stack([x, -x], dim=-1).flatten(-2)[..., ::2], x.movedim(-1, 0).contiguous().movedim(0, -1)


def close(found, expected):
    """Say whether results are equal but for their rounding; states are float64 behind float32 signals, too."""
    return found.numel() == 0 or deviation(found, expected.double().numpy()) <= bound(found.dtype)


def test_every_operator_has_a_case():
    by_gradients = {name for name in _ops.operators if name.endswith(("_backward", "_recording"))}
    by_features = {"mel_forward"}  # its window and filters have no leading dimensions: tests/spectral
    assert {name.split()[0] for name in CASES} == set(_ops.operators) - by_gradients - by_features


@pytest.mark.parametrize(
    ("leading", "own", "dtype"), spread_out([(*spread, dtype) for spread in SPREADS for dtype in FLOATS])
)
@pytest.mark.parametrize(
    ("case", "form"),
    [pytest.param(case, *form.values, marks=form.marks, id=f"{case}, {form.id}")
     for case in CASES for form in forms(case.split()[0])],
)  # fmt: skip
def test_rows_equal_single_calls(case, form, leading, own, dtype):
    operator = operator_of(case)
    quick = form.__name__.endswith("cpu") or operator.name in {"sos_forward", "fir_forward"}  # others step by samples
    for time in (1, 70, 1500) if quick else (1, 40):
        first, *rest = CASES[case](Given(leading, own, time, dtype))
        alone = {}
        for view in views(first) if operator.operands.get("x") else (first,):
            arguments, results = named(case, (view, *rest)), form(view, *rest)
            like = operator.results[0]
            shape = results[0].shape[like.lead : results[0].dim() - like.core]
            rows = list(np.ndindex(*shape))
            for index in rows if time < 100 else {*rows[:1], *rows[-1:]}:  # a long row takes the other forms a while
                if index not in alone or index == rows[0]:  # a row has the same values in every layout
                    alone[index] = form(*(
                        row(value, operator.operands[name], shape, index) if isinstance(value, torch.Tensor) else value
                        for name, value in arguments.items()
                    ))  # fmt: skip
                for result, operand, expected in zip(results, operator.results, alone[index], strict=True):
                    assert close(result[(slice(None),) * operand.lead + index], expected)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("case", IN_BLOCKS)
def test_blocks_equal_the_whole(case, dtype):
    given = named(case, CASES[case](Given((5,), time=3000, dtype=dtype)))
    whole, *after = entry(case)(*given.values())
    states = list(operator_of(case).operands)[-len(after) :]
    timed = {name for name, axis in AXES.items() if name in given and given[name].shape[axis:][:1] == (3000,)}
    before = given.get("past") if "past" not in states else None
    heard = None if before is None else torch.cat([before, given["x"]], dim=-1)
    parts, start = [], 0
    for size in (1, 3, 0, 1020, 1025, 951):
        block = {name: given[name].narrow(AXES[name], start, size) for name in timed}
        if heard is not None:
            block["past"] = heard[..., start : start + before.shape[-1]]
        y, *left = entry(case)(*{**given, **block}.values())
        given.update(zip(states, left, strict=True))
        parts.append(y)
        start += size
    same = torch.equal if case.split()[0] in BIT_FOR_BIT else close
    assert same(torch.cat(parts, dim=-1), whole)
    assert all(same(given[name], expected) for name, expected in zip(states, after, strict=True))


@pytest.mark.parametrize("rest", [False, True])
@pytest.mark.parametrize("leading", [(), (2,), (0,), (0, 2)])
@pytest.mark.parametrize("case", IN_BLOCKS)
def test_no_samples_leave_the_state_as_it_is(case, leading, rest):
    arguments = [
        value.requires_grad_() if torch.is_tensor(value) and value.is_floating_point() else value
        for value in CASES[case](Given(leading, time=0, dtype=torch.float32))
    ]
    given, operator = named(case, arguments), operator_of(case)
    states = list(operator.operands)[1 - len(operator.results) :]
    before = [given[name] for name in states]
    if rest:
        given |= {name: value for name, value in at_rest(case, arguments).items() if name in states}
        before = [
            old if torch.is_tensor(given[name]) else torch.zeros_like(old)
            for name, old in zip(states, before, strict=True)
        ]
    y, *after = entry(case)(*given.values())
    assert y.numel() == 0
    assert all(torch.equal(found, state) for found, state in zip(after, before, strict=True))
    sum(each.sum() for each in (y, *after)).backward()
    for name in set(operator.operands) - {*states, "x", "past"}:  # coefficients
        assert given[name] is None or given[name].grad is None or not given[name].grad.any()


@pytest.mark.parametrize("case", CASES)
def test_no_channels_give_none(case):
    for found in listed(entry(case)(*CASES[case](Given((0, 2), (0, 1))))):
        assert found.numel() == 0


@pytest.mark.parametrize("case", CASES)
def test_vmap_is_a_loop(case):
    """Over each tensor alone, and over all at once; tables of taps and windows have no leading dimensions."""
    each = [CASES[case](Given(seed=seed)) for seed in range(3)]
    alike = {"taps", "window"} if case in {"resample_forward", "phase_vocoder_forward"} else ()
    tensors = [i for i, (n, v) in enumerate(named(case, each[0]).items()) if torch.is_tensor(v) and n not in alike]
    for mapped in (*([i] for i in tensors), tensors):
        dims = tuple(min(1, each[0][i].dim()) if i in mapped else None for i in range(len(each[0])))
        stacked = [
            value if dim is None else torch.stack([one[i] for one in each], dim)
            for i, (value, dim) in enumerate(zip(each[0], dims, strict=True))
        ]
        together = listed(torch.func.vmap(entry(case), dims)(*stacked))
        for k, one in enumerate(each):
            chosen = [one[i] if i in mapped else value for i, value in enumerate(each[0])]
            for result, expected in zip(together, listed(entry(case)(*chosen)), strict=True):
                assert close(result[k], expected)


@pytest.mark.parametrize(
    ("case", "leading", "own", "check"),
    [
        (case, *dimensions, check)
        for case in CASES
        if case.split()[0] not in OF_THEIR_OWN
        for check in (gradcheck, gradgradcheck)
        for dimensions in [
            ((), ()),
            ((2,), ()),
            ((2, 1), (3,)),
            *(SPREADS if check is gradcheck and sums(case) else []),
        ]
    ],
)
def test_gradients_against_finite_differences(case, leading, own, check):
    arguments = CASES[case](Given(leading, own, 6))
    options = {} if check is gradgradcheck else {"check_forward_ad": True, "check_batched_grad": True}
    for given in (arguments, list(at_rest(case, arguments).values())) if leading == (2,) else (arguments,):
        learned = [i for i, value in enumerate(given) if torch.is_tensor(value) and value.is_floating_point()]

        def run(*tensors, given=given, learned=learned):
            at = dict(zip(learned, tensors, strict=True))
            return entry(case)(*(at.get(i, value) for i, value in enumerate(given)))

        assert check(run, [given[i].requires_grad_() for i in learned], fast_mode=True, **options)


# --- what PyTorch asks for ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES)
def test_opcheck_is_clean(case):
    arguments = CASES[case](Given(dtype=torch.float32))
    utils = ["test_schema", "test_autograd_registration", "test_faketensor"]
    if operator_of(case).name not in {"delay_network_forward", "saturated_forward"}:  # tests/processors compiles these
        utils.append("test_aot_dispatch_dynamic")
    for given in (arguments, at_rest(case, arguments).values()):
        torch.library.opcheck(overload(case), tuple(given), test_utils=utils)


@pytest.mark.skipif(native.library is None, reason="compares the kernel with the dispatcher's way to it")
@pytest.mark.parametrize("case", CASES)
def test_the_short_way_is_the_dispatchers(case):
    arguments = CASES[case](Given(time=5000, dtype=torch.float32))
    both = (listed(call(*arguments)) for call in (entry(case), overload(case)))
    assert all(torch.equal(a, b) for a, b in zip(*both, strict=True))


@pytest.mark.parametrize("case", CASES)
def test_meta_tensors_give_shapes(case):
    arguments = CASES[case](Given(dtype=torch.float32))
    meta = (value.to("meta") if isinstance(value, torch.Tensor) else value for value in arguments)
    for found, like in zip(listed(overload(case)(*meta)), listed(entry(case)(*arguments)), strict=True):
        assert (found.shape, found.dtype) == (like.shape, like.dtype)


def negated(values):
    """The same numbers as a view whose memory holds their negatives."""
    view = torch.complex(torch.zeros_like(values), -values).conj().imag
    assert view.is_neg()
    return view


@pytest.mark.parametrize("case", CASES)
def test_views_that_change_the_sign_are_read_as_they_say(case):
    given = CASES[case](Given())
    expected = listed(entry(case)(*given))
    for i, argument in enumerate(given):
        if isinstance(argument, torch.Tensor) and argument.is_floating_point():
            got = listed(entry(case)(*given[:i], negated(argument), *given[i + 1 :]))
            assert all(torch.equal(a, b) for a, b in zip(got, expected, strict=True))


@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.parametrize("case", CASES)
def test_results_are_written_where_they_are_wanted(case, step):
    arguments = CASES[case](Given(dtype=torch.float32))
    expected = listed(entry(case)(*arguments))
    out = [each.new_full((*each.shape, step), 7)[..., 0] for each in expected]
    for found, given, result in zip(listed(entry(case)(*arguments, out=out)), out, expected, strict=True):
        assert found is given
        assert torch.equal(found, result)


BROADCASTING = [
    (case, name)
    for case in CASES
    for name, operand in list(operator_of(case).operands.items())[1:]
    if not operand.exact and case not in {"resample_forward", "phase_vocoder_forward"}
    if named(case, CASES[case](Given()))[name] is not None
]
"""Arguments beside the signal whose leading dimensions broadcast with it."""


@pytest.mark.parametrize(("case", "name"), BROADCASTING)
def test_leading_dimensions_that_do_not_fit_are_refused(case, name):
    arguments, core = named(case, CASES[case](Given((2, 3)))), operator_of(case).operands[name].core
    value = arguments[name]
    arguments[name] = value.new_zeros(4, *value.shape[value.dim() - core :])
    with pytest.raises(ArgumentError, match=r"broadcast with .*\(4,\)"):
        entry(case)(*arguments.values())
