"""Dropped results are noticed; real work, and whatever cannot be told, is not complained about."""

import functools
from concurrent.futures import Future

import pytest
import torch

from torchwhy import measure
from torchwhy.timing.laziness import count_events, nothing_ran, promised

X = torch.ones(4)


class Deferred:
    def __init__(self, x):
        self.x = x


def warned(fn, call_s=1e-6):
    found = nothing_ran(fn, promised(fn()), call_s)
    return found.message if found else ""


@pytest.mark.parametrize(
    ("fn", "call_s", "message"),
    [
        (lambda: Deferred(X), 1e-6, "returned a Deferred that holds tensors"),
        (lambda: (x for x in [X]), 1e-6, "an unconsumed generator"),
        (lambda: map(torch.sin, [X]), 1e-6, "a map that was not consumed"),
        (lambda: functools.partial(torch.sin, X), 1e-6, "a function that was not called"),
        (lambda: torch.sin, 1e-6, "a function that was not called"),
        (Future, 1e-6, "a future that was not waited for"),
        (lambda: X, 2e-8, "a call took 20.0 ns"),
        (lambda: None, 2e-8, "about what an empty function takes"),
        (lambda: torch.ones(2, device="meta") * 2, 1e-4, "on the device 'meta'"),
    ],
)
def test_it_fires(fn, call_s, message):
    assert message in warned(fn, call_s)


@pytest.mark.parametrize(
    ("fn", "call_s"),
    [
        (lambda: X + 1, 1e-6),
        (lambda: Deferred(X + 1), 1e-6),  # it holds a tensor, and computed it
        (lambda: Deferred(X), 1e-2),  # something took 10 ms
        (lambda: sum(range(100)), 1e-6),  # honest Python
        (lambda: [X, X], 1e-6),
        (lambda: None, 1e-6),
    ],
)
def test_it_stays_silent(fn, call_s):
    assert warned(fn, call_s) == ""


def test_it_stays_silent_while_another_profiler_runs():
    with torch.profiler.profile():
        assert count_events(lambda: None) is None
        assert warned(lambda: Deferred(X)) == ""


def test_measure_carries_the_warning_first():
    m = measure(lambda: Deferred(X), max_time_s=0.2)
    assert m.warnings[0].code == "nothing-ran"
    assert "use the result inside fn" in m.warnings[0].advice
    assert "warning nothing-ran: no operator ran" in str(m)


def test_compiled_functions_stay_compiled_and_count_as_work():
    compiled = torch.compile(lambda x: x * 2, backend="aot_eager")
    compiled(X)
    assert count_events(lambda: compiled(X)) > 0
    with torch.profiler.profile() as profile:
        compiled(X)
    assert any(event.name.startswith("Torch-Compiled Region") for event in profile.events())
