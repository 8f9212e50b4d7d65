"""`tools/check_trace_numbers.py`: what a report says equals plain arithmetic on the file."""

import json
import sys
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.traces import Story

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
from check_trace_numbers import differences, main, plain_numbers

TENTHS = st.integers(0, 20_000).map(lambda n: n / 10)
NAMES = st.sampled_from(["gemm", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "add"])
KERNELS = st.tuples(NAMES, TENTHS, TENTHS, st.sampled_from([7, 20]), st.booleans())
COPIES = st.tuples(TENTHS, TENTHS)


@settings(max_examples=60, deadline=None)
@given(st.lists(KERNELS, max_size=12), st.lists(COPIES, max_size=5), st.integers(0, 3))
def test_any_trace_is_reported_as_it_is(tmp_path_factory, kernels, copies, steps):
    story = Story()
    for i in range(steps):
        story.step(i, at=700 * i, us=650.5)
    for name, at, us, stream, launched in kernels:
        story.kernel(name, at=at, us=us, stream=stream, launch_at=max(at - 5, 0) if launched else None)
    for at, us in copies:
        story.copy("HtoD (Pinned -> Device)", at=at, us=us + 0.1, size=4096, launch_at=at)
    story.call("cudaLaunchKernel", at=1)
    assert differences(story.write(tmp_path_factory.mktemp("numbers") / "trace.json")) == []


def test_plain_arithmetic_on_a_trace_worked_out_by_hand(tmp_path):
    story = Story()
    story.kernel("gemm", at=10, us=10, launch_at=0)
    story.kernel("ncclKernel_Broadcast", at=15, us=15, stream=20)
    story.copy("DtoH (Device -> Pinned)", at=40, us=5, size=100, launch_at=30)
    numbers = plain_numbers(story.write(tmp_path / "trace.json"))
    assert (numbers["span_us"], numbers["busy_us"], numbers["idle_us"]) == (35, 25, 10)
    assert (numbers["compute_us"], numbers["communication_us"]) == (10, 15)
    assert (numbers["exposed_communication_us"], numbers["exposed_memcpy_us"]) == (10, 5)
    assert (numbers["kernels"], numbers["kernels_without_launch"]) == (2, 1)


def test_a_wrong_number_is_named(tmp_path, capsys, monkeypatch):
    story = Story()
    story.kernel("gemm", at=10, us=10, launch_at=0)
    story.write(tmp_path / "trace.json")
    (tmp_path / "facts.json").write_text(json.dumps({"nothing": "to read"}))
    assert main([str(tmp_path)]) == 0
    assert capsys.readouterr().out == "ok    trace.json\n"
    monkeypatch.setattr("check_trace_numbers.plain_numbers", lambda path: {"busy_us": 10.01, "kernels": 1})
    assert main([str(tmp_path)]) == 1
    assert capsys.readouterr().out == "FAIL  trace.json  busy_us: 10 reported, 10.01 computed\n"
