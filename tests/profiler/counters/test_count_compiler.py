"""Graph breaks and recompilations, and that compiled code runs compiled while it is counted."""

import re

import pytest
import torch

from torchfx import profiler
from torchfx.profiler.counters.compiler import CompilerMark


@pytest.fixture(autouse=True)
def fresh_compiler():
    import torch._dynamo

    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    yield
    torch._dynamo.reset()


def broken(x):
    y = x.sin()
    torch._dynamo.graph_break()
    return y.cos() * 2


def whole(x):
    return x.sin().cos() * 2


def compiled(function, **options):
    return torch.compile(function, backend="eager", **options)


def test_a_graph_break_is_counted_with_its_reason_and_function():
    with profiler.count() as c:
        compiled(broken)(torch.ones(3))
    (found,) = c.graph_breaks
    assert "graph_break" in found.reason
    assert found.where.endswith("in broken")
    assert c.compilations == 2


def test_a_whole_graph_has_no_break():
    with profiler.count() as c:
        compiled(whole)(torch.ones(3))
    assert (c.graph_breaks, c.recompiles, c.compilations) == ((), (), 1)


def test_a_trace_finds_the_break_in_code_compiled_before():
    function = compiled(broken)
    function(torch.ones(3))
    with profiler.count() as c:
        function(torch.ones(3))
    assert c["graph_breaks"] == 0
    assert any(re.search(r"\b[1-9]\d* earlier in this process", note) for note in c.notes)  # other tests break too
    with profiler.count(trace=True) as c:
        function(torch.ones(3))
    assert c["graph_breaks"] == 1
    assert "broken" in c.graph_breaks[0].where


def test_a_trace_finds_no_break_where_there_is_none():
    function = compiled(whole)
    function(torch.ones(3))
    with profiler.count(trace=True) as c:
        function(torch.ones(3))
    assert c["graph_breaks"] == 0


def test_a_break_met_during_a_traced_count_is_counted_once():
    with profiler.count(trace=True) as c:
        compiled(broken)(torch.ones(3))
    assert c["graph_breaks"] == 1


def test_a_recompilation_is_counted_with_the_guard_that_failed():
    function = compiled(whole, dynamic=False)
    function(torch.ones(3))
    with profiler.count() as c:
        function(torch.ones(4))
    (found,) = c.recompiles
    assert found.function == "whole"
    assert "size mismatch" in found.reason
    assert "test_count_compiler.py" in found.where


def test_a_warm_function_neither_compiles_nor_recompiles():
    function = compiled(whole)
    function(torch.ones(3))
    with profiler.count() as c:
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
        with profiler.count() as c:
            function(torch.ones(3))
        assert c.compilations == 0
    function(torch.ones(3))
    assert len(runs) == 4  # the compiled graph ran each time
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1


def test_compiled_training_counts_forward_and_backward():
    layer = torch.nn.Linear(3, 3)
    function = torch.compile(lambda x: layer(x).relu().sum(), backend="aot_eager")
    function(torch.ones(2, 3)).backward()
    with profiler.count() as c:
        function(torch.ones(2, 3)).backward()
    assert c["aten::addmm"] == 1
    assert c["aten::threshold_backward"] == 1
    assert c.compilations == 0


def test_without_records_of_compilations_nothing_is_found(monkeypatch):
    from torchfx.profiler.counters import compiler

    monkeypatch.setattr(compiler, "_dynamo", lambda: None)  # the program never loaded torch._dynamo
    found = CompilerMark().since()
    assert (found.graph_breaks, found.recompiles, found.frames) == ((), (), ())


def test_older_records_without_reasons_are_told_by_their_number(monkeypatch):
    from types import SimpleNamespace

    from torchfx.profiler.counters import compiler

    records = [SimpleNamespace(compile_id="0/0"), SimpleNamespace(compile_id="0/1")]
    mark = CompilerMark(breaks=compiler.Counter(), last=None)
    monkeypatch.setattr(compiler, "_compilations", lambda: records)
    found = mark.since()
    assert [item.reason for item in found.recompiles] == ["(this version of PyTorch records no reason)"]


def test_hitting_the_recompile_limit_is_a_recompilation():
    function = compiled(whole, dynamic=False)
    with torch._dynamo.config.patch(recompile_limit=2):
        for length in (2, 3):
            function(torch.ones(length))
        with profiler.count() as c:
            function(torch.ones(4))
    (found,) = c.recompiles
    assert "size mismatch" in found.reason
    assert "gave up" in found.function
