"""Reading a trace, on one small enough to work out by hand: two steps on a GPU, the first of them cold."""

import json
from pathlib import Path

import pytest

from torchwhy.experiment import Case, CaseResult
from torchwhy.experiment.document import study_document
from torchwhy.experiment.limits import Limits
from torchwhy.experiment.reading import Call, Kernel, Step, read
from torchwhy.present.formats import render


def event(cat, name, ts, dur, tid=1, **args):
    return {"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, "pid": 1, "tid": tid, "args": args}


def step(number, start, dead, host, first_correlation, matmul_us):
    a, b = first_correlation, first_correlation + 1
    inner = start + 1 + dead
    return [
        event("user_annotation", f"ProfilerStep#{number}", start, host + 2),
        event("user_annotation", "matmul_add", start + 1, host),
        event("gpu_user_annotation", "matmul_add", start + 60, 20, tid=7),
        event("cpu_op", "aten::matmul", inner, 20),
        event("cpu_op", "aten::mm", inner + 1, 18),
        event("cuda_runtime", "cudaOccupancyMaxActiveBlocksPerMultiprocessor", inner + 2, 1),
        event("cuda_runtime", "cudaLaunchKernel", inner + 4, 3, correlation=a),
        event("cpu_op", "aten::add", inner + 21, 8),
        event("cuda_runtime", "cudaLaunchKernel", inner + 22, 3, correlation=b),
        event("kernel", "gemm", inner + 54, matmul_us, tid=7, correlation=a),
        event("kernel", "add", inner + 74, 2, tid=7, correlation=b),
    ]


def drawn(reading, **case):
    result = CaseResult(
        Case("matmul-add", 64, device="cuda", **case),
        reading,
        Limits(4e-5, 4e-5, 0, overhead_s=3.4e-5, memory_s=2e-6, compute_s=4e-6),
        Path("a.json"),
        Path("a.txt"),
    )
    return render(study_document([result]), "text")


@pytest.fixture
def trace(tmp_path):
    path = tmp_path / "trace.json"
    steps = [step(2, 1000, 228, 300, 10, 6), step(3, 2000, 5, 40, 20, 4), step(4, 3000, 5, 40, 30, 4)]
    other = [
        {"ph": "M", "name": "process_name", "args": {}},
        event("cuda_runtime", "cudaDeviceSynchronize", 4000, 1780, correlation=99),
        event("kernel", "from before", 10, 500, tid=7, correlation=1),
    ]
    path.write_text(json.dumps({"traceEvents": [*other, *(e for events in steps for e in events)]}))
    return path


def test_steps_own_the_kernels_they_launched(trace):
    assert read(trace, "matmul_add").steps == (
        Step(2, host_us=300, dead_us=228, device_us=8, launches=2, delay_us=50),
        Step(3, host_us=40, dead_us=5, device_us=6, launches=2, delay_us=50),
        Step(4, host_us=40, dead_us=5, device_us=6, launches=2, delay_us=50),
    )


def test_calls_keep_their_order_and_nesting(trace):
    assert read(trace, "matmul_add").calls == (
        Call("aten::matmul", 0, 1),
        Call("aten::mm", 1, 1),
        Call("cudaOccupancyMaxActiveBlocksPerMultiprocessor", 2, 1),
        Call("cudaLaunchKernel", 2, 1),
        Call("aten::add", 0, 1),
        Call("cudaLaunchKernel", 1, 1),
    )


def test_kernels_are_summed_by_name_longest_first(trace):
    kernels = read(trace, "matmul_add").kernels
    assert [kernel.name for kernel in kernels] == ["from before", "gemm", "add"]
    assert kernels[1] == Kernel("gemm", n=3, min_us=4, median_us=4, mean_us=pytest.approx(14 / 3), max_us=6)


def test_the_report_says_what_a_reader_would_find(trace):
    drawn_text = drawn(read(trace, "matmul_add"))
    text = " ".join(drawn_text.split())
    for part in (
        "OVERHEAD-BOUND a warm call takes 40.0 us at its fastest: 85% overhead, 10% arithmetic",
        "step #2 takes 7.5 times the usual one: a warm run keeps that out of the trace",
        "228 us pass before its first operator",
    ):
        assert part in text
    assert "aten::matmul\n      aten::mm\n        cudaOccupancyMax" in drawn_text


def test_a_kernel_with_one_slow_run_is_judged_by_its_median(tmp_path):
    path = tmp_path / "trace.json"
    durations = [580, 580, 580, 2600, 580]
    events = [e for i, us in enumerate(durations) for e in step(i, 10_000 * i, 5, 40, 10 * i + 10, us)]
    path.write_text(json.dumps({"traceEvents": events}))
    text = " ".join(drawn(read(path, "matmul_add"), warm=True).split())
    assert "a kernel takes 984 us on average, but 580 us usually: trust the median" in text
