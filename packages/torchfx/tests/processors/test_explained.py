"""`explain` says what runs each step: what a profiler sees in whole signals and streams, with and without gradients."""

import pytest
import torch
from torch.profiler import ProfilerActivity, profile

import torchfx as fx
from many_cases import spread_out
from processors.cases import CASES, FS, noise
from torchfx._ops import native, operators, rows
from torchfx.plan import plan_of
from torchfx.plan.steps import LateStep, ParallelStep
from torchfx.realtime.runner import Runner

pytestmark = pytest.mark.skipif(native.library is None, reason="steps run natively")

NATIVE = "native program of "


def seen(run, x):
    """Return what a profiler sees of this package, those called by others left out."""
    with profile(activities=[ProfilerActivity.CPU]) as recorded:
        y = run(x)
    events = [event for event in recorded.events() if event.name.startswith("torchfx_ext::") and not inside(event)]
    return y, {event.name.removeprefix("torchfx_ext::") for event in events}


def inside(event):
    parent = event.cpu_parent
    return parent is not None and (parent.name.startswith("torchfx_ext::") or inside(parent))


def agrees(line, found):
    """Say whether a line names the native program that was seen, or the operator, or a method that calls operators."""
    said, otherwise = line.partition(NATIVE)[2].partition(" on the CPU")[0], line.partition(":")[0]
    if said or not found <= operators.keys():
        return found == {said.replace(", ", "+")}
    if otherwise in operators:
        return found == {otherwise}
    return "." in otherwise or not found or otherwise == "the branches' operators"


@pytest.mark.parametrize("name", spread_out(CASES))
def test_what_runs_is_what_a_profiler_sees(name):
    x = noise(2, 256)  # with gradients, some steps loop over samples
    steps = list(plan_of(CASES[name](0), FS).steps)
    for step in steps:
        shape, inner = tuple(x.shape[:-1]), step.inner if isinstance(step, LateStep) else step
        with torch.no_grad():
            y, found = seen(step.run, x)
        if isinstance(inner, ParallelStep):
            steps += [each for plan in inner.plans for each in plan.steps]
        else:
            (line,) = inner.whole_by(shape)
            assert agrees(line, found)
            _, with_gradients = seen(step.run, x.clone().requires_grad_())
            otherwise = line.rpartition(" otherwise ")[2]
            assert with_gradients <= operators.keys()
            assert agrees(otherwise, with_gradients)
        if not (step.refusal or step.measures):
            runner = Runner([step], shape, x.dtype, x.device)
            assert agrees(inner.blocks_by(shape), seen(runner.process, x)[1])
        x = y


def test_operators_are_served_as_the_registry_says(capsys):
    fx.FilterChain(fx.filter.FIR([0.5, 0.5]), fx.effect.Limiter(fs=FS), fx.filter.LoButterworth(100, fs=FS)).explain()
    text = capsys.readouterr().out
    for i, name in ((1, "fir_forward"), (3, "sos_forward")):
        row = next(row for row in rows if row.operator == name)
        served = "; ".join(f"{device} {row.text(device)}" for device in row.backends)
        assert f"  {i}. whole signals: {name}: {served}\n" in text
    assert (
        "  2. whole signals: native program of limiter on the CPU without gradients, otherwise Limiter.step\n" in text
    )
    assert "  2. streams: native program of limiter on the CPU, otherwise Limiter.step\n" in text


def test_a_branch_that_runs_in_python_takes_the_others_along(capsys):
    (fx.Memoryless(torch.nn.Softplus()) + fx.effect.Limiter(fs=FS)).explain()
    text = capsys.readouterr().out
    assert "1. whole signals: branch 1, 1. WithContext.step\n" in text
    assert "1. whole signals: branch 2, 1. native program of limiter on the CPU without gradients" in text
    assert "1. streams: the branches' operators\n" in text


def test_a_step_that_refuses_two_channels_says_so(capsys):
    (fx.effect.ChannelMatrix(torch.eye(3)) | fx.effect.Gain(0.5)).explain()
    assert "1. x must have 3 channels" in capsys.readouterr().out
