"""Graph breaks and recompilations, and that compiled code runs compiled while it is counted."""

import inspect
import re

import pytest
import torch

import torchwhy
from torchwhy.counters.compiler import CompilerMark


@pytest.fixture(autouse=True)
def fresh_compiler():
    import torch._dynamo

    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    torch._dynamo.utils._compilation_metrics.clear()
    yield
    torch._dynamo.reset()


def broken(x):
    y = x.sin()
    torch._dynamo.graph_break()
    return y.cos() * 2


def whole(x):
    return x.sin().cos() * 2


def line_of(function, text):
    lines, first = inspect.getsourcelines(function)
    return first + next(i for i, line in enumerate(lines) if text in line)


def compiled(function, **options):
    return torch.compile(function, backend="eager", **options)


def test_a_graph_break_is_counted_with_its_reason_and_function():
    with torchwhy.count() as c:
        compiled(broken)(torch.ones(3))
    (found,) = c.graph_breaks
    assert "graph_break" in found.reason
    assert found.where.endswith(f":{line_of(broken, 'graph_break')} in broken")
    assert c.compilations == 2


def jumps(x):
    y = x.sin()
    if y.sum() > 0:
        return y.cos()
    return y.tan()


def reads_a_value(x):
    return x * x.sum().item()


def prints(x):
    y = x.sin()
    print("between")
    return y.cos()


def breaks_under_a_context(x):
    with torch.no_grad():
        y = x.sin()
        torch._dynamo.graph_break()
    return y.cos()


@torch._dynamo.disable
def left_alone(x):
    return x + 1


def calls_what_is_left_alone(x):
    return left_alone(x.sin()).cos()


def breaks_in_a_call(x):
    return jumps(x.sin()).sin()


def breaks_at_once(x):
    print("first")
    return x.sin()


def breaks_in_a_loop(x):
    for _ in range(3):
        x = x.sin()
        torch._dynamo.graph_break()
    return x


def breaks_in_a_try(x):
    try:
        y = x.sin()
        torch._dynamo.graph_break()
    except ValueError:
        return x
    return y.cos()


RESUMING = {
    jumps: 1,
    reads_a_value: 1,
    prints: 1,
    breaks_under_a_context: 1,
    calls_what_is_left_alone: 1,
    breaks_in_a_call: 2,  # the caller's graph and the callee's
    breaks_at_once: 1,
}
UNCOMPILED = (breaks_in_a_loop, breaks_in_a_try)


@pytest.mark.parametrize("function", [*RESUMING, *UNCOMPILED])
def test_every_kind_of_break_is_counted(function):
    with torchwhy.count() as c:
        compiled(function)(torch.ones(3))
    assert c["graph_breaks"] == RESUMING.get(function, 1)
    assert all(found.reason and "test_count_compiler.py:" in found.where for found in c.graph_breaks)


@pytest.mark.parametrize("function", [f for f in RESUMING if f is not breaks_at_once])
def test_explain_knows_the_same_breaks(function):
    explained = torch._dynamo.explain(function)(torch.ones(3))
    with torchwhy.count() as c:
        compiled(function)(torch.ones(3))
    # In a callee, `explain` counts the graph between two calls once more.
    assert c["graph_breaks"] == explained.graph_break_count - (function is breaks_in_a_call)


@pytest.mark.parametrize("function", RESUMING)
def test_a_trace_finds_each_break_in_code_compiled_before(function):
    run = compiled(function)
    run(torch.ones(3))
    with torchwhy.count(trace=True) as c:
        run(torch.ones(3))
    assert c["graph_breaks"] == RESUMING[function]
    assert all("resume" not in found.where for found in c.graph_breaks)


@pytest.mark.parametrize("function", UNCOMPILED)
def test_a_function_left_uncompiled_before_is_noted(function):
    run = compiled(function)
    run(torch.ones(3))
    with torchwhy.count(trace=True) as c:
        run(torch.ones(3))
    assert any("gave up" in note and function.__name__ in note for note in c.notes)


def test_a_reset_inside_a_count_does_not_count_earlier_breaks():
    compiled(jumps)(torch.ones(3))
    with torchwhy.count() as c:
        torch._dynamo.reset()
        compiled(whole)(torch.ones(3))
    assert c["graph_breaks"] == 0


def test_a_break_names_the_line():
    with torchwhy.count() as c:
        compiled(jumps)(torch.ones(3))
    (found,) = c.graph_breaks
    assert (found.reason, found.where.rpartition("/")[2]) == (
        "data-dependent branching",
        f"test_count_compiler.py:{line_of(jumps, 'if y')} in jumps",
    )


def test_a_whole_graph_has_no_break():
    with torchwhy.count() as c:
        compiled(whole)(torch.ones(3))
    assert (c.graph_breaks, c.recompiles, c.compilations) == ((), (), 1)


def test_a_trace_finds_the_break_in_code_compiled_before():
    function = compiled(broken)
    function(torch.ones(3))
    with torchwhy.count() as c:
        function(torch.ones(3))
    assert c["graph_breaks"] == 0
    assert any(re.search(r"\b[1-9]\d* earlier in this process", note) for note in c.notes)  # other tests break too
    with torchwhy.count(trace=True) as c:
        function(torch.ones(3))
    assert c["graph_breaks"] == 1
    assert "broken" in c.graph_breaks[0].where


def test_a_trace_finds_no_break_where_there_is_none():
    function = compiled(whole)
    function(torch.ones(3))
    with torchwhy.count(trace=True) as c:
        function(torch.ones(3))
    assert c["graph_breaks"] == 0


def test_a_break_met_during_a_traced_count_is_counted_once():
    with torchwhy.count(trace=True) as c:
        compiled(broken)(torch.ones(3))
    assert c["graph_breaks"] == 1


def test_a_recompilation_is_counted_with_the_guard_that_failed():
    function = compiled(whole, dynamic=False)
    function(torch.ones(3))
    with torchwhy.count() as c:
        function(torch.ones(4))
    (found,) = c.recompiles
    assert found.function == "whole"
    assert "size mismatch" in found.reason
    assert "test_count_compiler.py" in found.where


def test_a_warm_function_neither_compiles_nor_recompiles():
    function = compiled(whole)
    function(torch.ones(3))
    with torchwhy.count() as c:
        function(torch.ones(3))
    assert (c.compilations, c["recompiles"]) == (0, 0)


def test_counting_does_not_make_compiled_code_compile_again():
    runs = []

    def backend(graph, inputs):
        def run(*args):
            runs.append(1)
            return graph.forward(*args)

        return run

    function = torch.compile(whole, backend=backend)
    function(torch.ones(3))
    for _ in range(2):
        with torchwhy.count() as c:
            function(torch.ones(3))
        assert c.compilations == 0
    function(torch.ones(3))
    assert len(runs) == 4  # the compiled graph ran each time
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1


def test_compiled_training_counts_forward_and_backward():
    layer = torch.nn.Linear(3, 3)
    function = torch.compile(lambda x: layer(x).relu().sum(), backend="aot_eager")
    function(torch.ones(2, 3)).backward()
    with torchwhy.count() as c:
        function(torch.ones(2, 3)).backward()
    assert c["aten::addmm"] == 1
    assert c["aten::threshold_backward"] == 1
    assert c.compilations == 0


def test_without_records_of_compilations_nothing_is_found(monkeypatch):
    from torchwhy.counters import compiler

    monkeypatch.setattr(compiler, "_dynamo", lambda: None)  # the program never loaded torch._dynamo
    found = CompilerMark().since()
    assert (found.graph_breaks, found.recompiles, found.frames) == ((), (), ())


def test_older_records_without_reasons_are_told_by_their_number(monkeypatch):
    from types import SimpleNamespace

    from torchwhy.counters import compiler

    records = [SimpleNamespace(compile_id="0/0"), SimpleNamespace(compile_id="0/1")]
    mark = CompilerMark(earlier=0, last_break=None, last_frame=None)
    monkeypatch.setattr(compiler, "_compilations", lambda: records)
    found = mark.since()
    assert [item.reason for item in found.recompiles] == ["(this version of PyTorch records no reason)"]


def test_hitting_the_recompile_limit_is_a_recompilation():
    function = compiled(whole, dynamic=False)
    with torch._dynamo.config.patch(recompile_limit=2):
        for length in (2, 3):
            function(torch.ones(length))
        with torchwhy.count() as c:
            function(torch.ones(4))
    (found,) = c.recompiles
    assert "size mismatch" in found.reason
    assert "gave up" in found.function
