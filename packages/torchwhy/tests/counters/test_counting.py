"""How a count behaves: nesting, exceptions, threads, functions."""

import threading

import pytest
import torch

import torchwhy
from torchwhy.errors import ArgumentTypeError, TorchWhyError


def test_nested_counts_see_what_happens_inside_each():
    x = torch.ones(3)
    with torchwhy.count() as outer:
        x + 1
        with torchwhy.count() as inner:
            x * 2
    assert inner.operators == {"aten::mul": 1}
    assert outer.operators == {"aten::add": 1, "aten::mul": 1}


def test_nested_counts_agree_in_inference_mode():
    layer = torch.nn.Linear(3, 3)
    with torch.inference_mode(), torchwhy.count() as outer, torchwhy.count() as inner:
        layer(torch.ones(2, 3))
    assert outer.operators == inner.operators
    assert outer["aten::addmm"] == 1


def test_an_exception_passes_and_what_ran_before_is_counted():
    x, longer = torch.ones(3), torch.ones(4)
    with pytest.raises(RuntimeError, match="size"), torchwhy.count() as c:
        x + 1 + longer
    assert c["aten::add"] == 2  # the one that failed was called too
    with torchwhy.count() as after:
        x + 1
    assert after.operators == {"aten::add": 1}


def test_numbers_can_be_read_inside_the_block():
    with torchwhy.count() as c:
        torch.ones(3)
        assert c["operators"] == 1
        torch.ones(3)
    assert c["operators"] == 2


def test_numbers_stay_after_the_block():
    with torchwhy.count() as c:
        torch.ones(3)
    torch.ones(3)
    assert c["operators"] == 1
    assert c.counts is c.counts


def test_other_threads_are_not_counted():
    def work():
        torch.ones(3) + 1

    with torchwhy.count() as c:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert c.operators == {}


def test_two_threads_count_each_their_own():
    results = {}

    def work(times):
        with torchwhy.count() as c:
            for _ in range(times):
                torch.ones(3)
        results[times] = c["operators"]

    threads = [threading.Thread(target=work, args=(times,)) for times in (3, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {3: 3, 5: 5}


def test_a_count_serves_once():
    with torchwhy.count() as c:
        pass
    with pytest.raises(TorchWhyError, match="needs its own"), c:
        pass


def test_a_count_that_has_not_begun_says_so():
    with pytest.raises(TorchWhyError, match="nothing is counted yet"):
        _ = torchwhy.count().operators
    with pytest.raises(AttributeError), torchwhy.count() as c:
        _ = c.nothing


def test_counted_functions_keep_name_result_and_latest_counts():
    @torchwhy.counted
    def add(x, times=1):
        """Add."""
        for _ in range(times):
            x = x + 1
        return x

    assert add.counts is None
    assert add(torch.ones(1), times=2).item() == 3
    assert (add.__name__, add.__doc__, add.counts["aten::add"]) == ("add", "Add.", 2)
    add(torch.ones(1))
    assert add.counts["aten::add"] == 1


def test_counted_methods_bind():
    class Model:
        @torchwhy.counted(trace=True)
        def step(self, x):
            return x + 1

    Model().step(torch.ones(1))
    assert Model.step.counts.dispatches == 1


def test_counted_functions_may_call_themselves():
    @torchwhy.counted
    def down(n):
        return torch.ones(1) if n == 0 else down(n - 1) + 1

    assert down(3).item() == 4
    assert down.counts["aten::add"] == 3


def test_functions_that_return_before_they_work_are_refused():
    async def later(): ...

    def pieces():
        yield 1

    for function in (later, pieces):
        with pytest.raises(ArgumentTypeError, match="count inside it"):
            torchwhy.counted(function)
