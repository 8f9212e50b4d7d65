"""Small files may hold many events, names or steps: explaining four times as many takes about four times as long."""

import json
import time

import pytest

from torchwhy.loading.read import read_trace
from torchwhy.report.trace_report import describe
from torchwhy.rules.diagnose import diagnose
from torchwhy.trace.model.trace import Trace


def event(at, dur, name="op", cat="cpu_op", tid=1, **args):
    return {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": tid, "ts": at, "dur": dur, "args": args}


def equal_events(count):
    return [event(1, 1)] * count


def kernels(count):
    return [event(1, 1, cat="kernel", tid=7)] * count


def names(count):
    return [event(10 * i, 5, f"op_{i}") for i in range(count)]


def steps(count):
    found = []
    for i in range(count):
        found += [event(100 * i, 90, f"ProfilerStep#{i}", "user_annotation"), event(100 * i + 10, 5, "aten::mm")]
        found += [event(100 * i + 12, 2, "cudaLaunchKernel", "cuda_runtime", correlation=i + 1)]
        found += [event(100 * i + 20, 60, "gemm", "kernel", 7, correlation=i + 1)]
    return found


@pytest.mark.many
@pytest.mark.parametrize(
    ("made", "count"), [(equal_events, 60_000), (kernels, 60_000), (names, 30_000), (steps, 8_000)]
)
def test_four_times_as_many_take_about_four_times_as_long(made, count, tmp_path):
    def seconds(number):
        path = tmp_path / f"{number}.json"
        path.write_text(json.dumps({"traceEvents": made(number)}))
        least = float("inf")
        for _ in range(2):
            began = time.process_time()
            trace = read_trace(path, Trace)
            describe(trace, diagnose(trace), "")
            least = min(least, time.process_time() - began)
        return least

    once = seconds(count)
    assert seconds(4 * count) < 8 * once + 1  # with the square it would be 16 times
