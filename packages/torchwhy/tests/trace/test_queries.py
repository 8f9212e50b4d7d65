"""Each question to a trace has the answer one finds by hand, and any trace answers all of them."""

import io
import re
import sys
import types

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.trace.model import trace
from tests.traces import Story
from torchwhy.errors import ArgumentError, TorchWhyError
from torchwhy.loading.trace import load
from torchwhy.trace.derived.host_timeline import HostTimeline
from torchwhy.trace.derived.idle import idle_time
from torchwhy.trace.tables.sql import RELATIONS

QUESTIONS = [name for name in RELATIONS if name != "events"]


def only(table):
    """The one row of a table."""
    assert len(table) == 1
    return table.rows()[0]


def by_name(table, *columns):
    return {row["name"]: tuple(row[column] for column in columns) for row in table}


@pytest.fixture
def training():
    """Two steps on a GPU: load, copy, forward, and a wait for the result."""
    story = Story()
    for i in range(2):
        at = 1000 * i
        story.step(i + 3, at, 900)
        story.note("enumerate(DataLoader)#_X.__next__", at + 10, 200)
        story.op("aten::copy_", at + 220, 60)
        story.copy("HtoD (Pageable -> Device)", at + 240, 30, 300_000, launch_at=at + 230, launch_us=50)
        story.op("aten::linear", at + 300, 100, **{"Input Dims": "[[32, 8], [8, 8]]"})
        story.op("aten::addmm", at + 310, 80, **{"Input Dims": "[[8], [32, 8], [8, 8]]"})
        story.kernel(
            "ampere_sgemm_128x64_nn", at + 350, 200, launch_at=at + 320, launch_us=10, grid=[4, 1, 1], block=[64, 1, 1]
        )
        story.kernel(
            "void at::native::relu_kernel<float>(int)",
            at + 551,
            50,
            launch_at=at + 400,
            grid=[2, 1, 1],
            block=[32, 1, 1],
        )
        story.op("aten::item", at + 450, 200)
        story.call("cudaStreamSynchronize", at + 460, 180)
    return story.trace()


def test_ops(training):
    found = by_name(
        training.ops(), "calls", "host_total_us", "host_self_us", "device_total_us", "device_self_us", "mean_us"
    )
    assert found["aten::linear"] == (2, 200, 40, 400, 0, 100)
    assert found["aten::addmm"] == (2, 160, 140, 400, 400, 80)
    assert found["aten::copy_"] == (2, 120, 20, 60, 60, 60)
    assert training.ops()["name"][0] == "aten::addmm"


def test_ops_by_shape():
    story = Story()
    for size in (8, 8, 9):
        story.op("aten::mm", 100 * size + 20 * story.external, 10, **{"Input Dims": f"[[{size}]]"})
    assert [(row["input_dims"], row["calls"]) for row in story.trace().ops(by_shape=True)] == [
        ("[[8]]", 2),
        ("[[9]]", 1),
    ]


def test_an_operator_within_its_namesake_counts_once():
    story = Story()
    story.op("aten::to", 0, 100)
    story.op("aten::to", 10, 50)
    row = only(story.trace().ops())
    assert (row["calls"], row["host_total_us"], row["host_self_us"], row["mean_us"]) == (1, 100, 100, 100)


def test_a_namesake_among_other_calls_counts_by_itself():
    story = Story()
    story.op("aten::to", 0, 100)
    story.op("aten::to", 10, 50)
    story.op("aten::copy_", 70, 10)
    calls = {row["name"]: row["calls"] for row in story.trace().ops()}
    assert calls == {"aten::to": 2, "aten::copy_": 1}


def test_kernels(training):
    gemm, relu = training.kernels().rows()
    assert (gemm["calls"], gemm["total_us"], gemm["median_us"], gemm["min_us"], gemm["max_us"]) == (
        2,
        400,
        200,
        200,
        200,
    )
    assert gemm["full_name"] == "ampere_sgemm_128x64_nn"
    assert "matrix multiplication" in gemm["description"]
    assert gemm["share"] == pytest.approx(400 / 560)
    assert (relu["grid"], relu["block"]) == ("2, 1, 1", "32, 1, 1")


def test_kernels_tell_registers_shared_memory_and_adapted_launches():
    story = Story()
    for at, registers in ((0, 32), (100, 40), (200, 40)):
        story.call("cudaOccupancyMaxActiveBlocksPerMultiprocessor", at + 1, 1)
        more = {"registers per thread": registers, "shared memory": 16384}
        story.kernel("ampere_sgemm_128x64_nn", at + 20, 50, launch_at=at + 5, **more)
        story.kernel("fill", at + 80, 5, launch_at=at + 10)
    gemm, fill = story.trace().kernels().rows()
    assert (gemm["registers"], gemm["shared_memory"], gemm["adapted"]) == (40, 16384, 3)
    assert (fill["registers"], fill["shared_memory"], fill["adapted"]) == (-1, -1, 0)


def test_kernels_are_described_by_what_their_operator_computes():
    story = Story()
    story.op("aten::mm", 0, 10)
    story.kernel("fast_silu_gate_v2", 20, 50, launch_at=5)
    assert only(story.trace().kernels())["description"] == "matrix multiplication"


def test_steps(training):
    first, second = training.steps().rows()
    assert first == {
        "name": "ProfilerStep#3",
        "phase": "",
        "inferred": False,
        "start_us": 0,
        "host_us": 900,
        "total_us": 900,
        "device_busy_us": 280,
        "device_idle_us": 620,
        "launches": 2,
        "kernels": 2,
        "syncs": 1,
    }
    assert (second["name"], second["start_us"]) == ("ProfilerStep#4", 1000)


def test_idle(training):
    rows = training.idle().rows()
    longest = rows[0]
    assert (longest["start_us"], longest["length_us"]) == (601, 639)
    assert (longest["cause"], longest["before"]) == ("host was late", "Memcpy HtoD (Pageable -> Device)")
    first = next(row for row in rows if row["start_us"] == 0)
    assert (first["length_us"], first["after"]) == (240, "")
    assert (first["host"], first["host_us"]) == ("enumerate(DataLoader)#_X.__next__", 200)
    assert sum(row["length_us"] for row in rows) == training.window.us - training.gpu.busy.total / 1000
    assert training.derived(idle_time).total == training.window.end - training.window.start - training.gpu.busy.total


def test_a_gap_in_front_of_queued_work_is_not_the_hosts():
    story = Story()
    story.step(1, 0, 100)
    story.kernel("a", 10, 10, launch_at=1)
    story.kernel("b", 60, 10, launch_at=5)
    causes = {row["before"]: row["cause"] for row in story.trace().idle()}
    assert causes["b"].startswith("queued")


def test_launches():
    story = Story()
    for i in range(3):
        story.kernel("k", 50 + 100 * i, 100, launch_at=10 * i, launch_us=4)
    story.call("cudaLaunchKernel", 100, 6)
    row = only(story.trace().launches())
    assert (row["name"], row["calls"], row["work"], row["total_us"], row["median_us"]) == (
        "cudaLaunchKernel",
        4,
        3,
        18,
        4,
    )
    assert (row["delay_us"], row["queue_median"], row["queue_max"]) == (140, 1, 2)


def test_launches_whose_work_was_not_recorded():
    story = Story()
    story.call("cudaLaunchKernel", 0, 4)
    row = only(story.trace().launches())
    assert row["work"] == 0
    assert np.isnan([row["delay_us"], row["queue_median"], row["queue_max"]]).all()


def test_copies():
    story = Story()
    story.copy("HtoD (Pageable -> Device)", 0, 100, 1_000_000)
    story.copy("HtoD (Pinned -> Device)", 200, 50, 1_000_000)
    story.copy("DtoH (Device -> Pinned)", 300, 20, 1000)
    story.kernel("k", 210, 10)
    found = by_name(story.trace().copies(), "direction", "host_memory", "calls", "bytes", "gb_per_s", "exposed_us")
    assert found == {
        "Memcpy HtoD (Pageable -> Device)": ("host to device", "pageable", 1, 1_000_000, 10.0, 100),
        "Memcpy HtoD (Pinned -> Device)": ("host to device", "pinned", 1, 1_000_000, 20.0, 40),
        "Memcpy DtoH (Device -> Pinned)": ("device to host", "pinned", 1, 1000, 0.05, 20),
    }


def test_copies_of_exporters_that_put_the_kind_into_arguments():
    story = Story()
    args = {"copy kind": "HtoD", "src kind": "Pageable", "dst kind": "Device", "bytes": 5}
    story.add("gpu_memcpy", "Memcpy", 0, 5, tid=7, pid=0, **args)
    row = only(story.trace().copies())
    assert (row["direction"], row["host_memory"], row["bytes"]) == ("host to device", "pageable", 5)


def test_memory():
    story = Story()
    story.op("aten::empty", 0, 5)
    story.memory(1, 100, 100, 2000)
    story.memory(2, 50, 150, 2000)
    story.memory(3, -100, 50, 2000)
    story.memory(4, 8, 8, device=-1)
    found = story.trace().memory()
    assert found["device"] == ["cuda:0", "cuda:0", "cuda:0", "cpu"]
    assert found["allocated_bytes"].tolist() == [100, 150, 50, 8]
    assert found["start_us"].tolist() == [1, 2, 3, 4]
    cpu, gpu = story.trace().memory(summary=True).rows()
    assert (cpu["device"], cpu["peak_bytes"]) == ("cpu", 8)
    assert gpu == {
        "device": "cuda:0",
        "allocations": 2,
        "releases": 1,
        "allocated_bytes": 150,
        "peak_bytes": 150,
        "peak_at_us": 2,
        "peak_reserved_bytes": 2000,
    }


def test_memory_without_recorded_totals_is_counted():
    story = Story()
    for at, size in ((1, 100), (2, -30)):
        story.memory(at, size, 0)
        del story.events[-1]["args"]["Total Allocated"]
    found = story.trace().memory()
    assert found["allocated_bytes"].tolist() == [100, 70]
    assert found["counted"].all()


def test_compile():
    story = Story()
    for at in (0, 100):
        story.op("TorchDynamo Cache Lookup", at, 5)
        story.op("Torch-Compiled Region: 0/0", at + 10, 50)
        story.op("## Call CompiledFxGraph fabc ##", at + 20, 30)
        story.kernel("triton_poi_fused_add_0", at + 40, 10, launch_at=at + 30)
    found = [
        (row["kind"], row["name"], row["calls"], row["host_us"], row["device_us"]) for row in story.trace().compile()
    ]
    assert found == [
        ("lookup", "TorchDynamo Cache Lookup", 2, 10, 0),
        ("region", "Torch-Compiled Region: 0/0", 2, 100, 20),
        ("graph", "## Call CompiledFxGraph fabc ##", 2, 60, 20),
    ]


def test_overlap():
    story = Story()
    story.kernel("gemm", 0, 100, stream=7)
    story.kernel("ncclDevKernel_AllReduce", 60, 100, stream=20)
    story.copy("HtoD (Pinned -> Device)", 150, 100, 1000, stream=21)
    row = only(story.trace().overlap())
    assert row == {
        "device": 0,
        "window_us": 250,
        "busy_us": 250,
        "idle_us": 0,
        "compute_us": 100,
        "communication_us": 100,
        "copies_us": 100,
        "compute_and_communication_us": 40,
        "compute_and_copies_us": 0,
        "communication_and_copies_us": 10,
        "exposed_communication_us": 60,
        "exposed_copies_us": 90,
    }


def test_modules():
    story = Story()
    story.frame("nn.Module: Net_0", 0, 100)
    story.op("aten::mm", 10, 50)
    story.kernel("k", 30, 20, launch_at=20)
    row = only(story.trace().modules())
    assert (row["path"], row["calls"], row["host_total_us"], row["device_total_us"]) == ("Net_0", 1, 100, 20)


def test_the_backward_pass_counts_for_the_module_and_line_of_its_forward_pass():
    story = Story()
    story.frame("torch/profiler/profiler.py(9): start", 0, 1, **{"Python id": 1})
    story.frame("train.py(12): step", 2, 400, **{"Python id": 2})
    story.frame("nn.Module: Net_0", 3, 100, **{"Python id": 3, "Python parent id": 2})
    story.op("aten::mm", 10, 50, **{"Sequence number": 5})
    story.kernel("k", 30, 20, launch_at=20)
    node = {"Sequence number": 5, "Fwd thread id": 1}
    story.op("autograd::engine::evaluate_function: MmBackward0", 200, 80, tid=200, **node)
    story.kernel("k", 300, 40, launch_at=210, tid=200)
    row = only(story.trace().modules())
    assert row["line"] == "train.py(12): step"
    assert (row["backward_host_us"], row["backward_device_us"]) == (80, 40)


# The critical path


def path(story, **options):
    return [
        (row["kind"], row["name"], row["total_us"]) for row in story.trace().critical_path(in_order=True, **options)
    ]


def test_a_host_that_is_late_is_the_path():
    story = Story()
    story.step(1, 0, 100)
    story.op("aten::mm", 20, 30)
    story.kernel("k", 60, 40, launch_at=40, launch_us=5)
    assert path(story) == [
        ("python", "", 20),
        ("host", "aten::mm", 20),
        ("host", "cudaLaunchKernel", 5),
        ("launch", "k", 15),
        ("device", "k", 40),
    ]


def test_a_device_with_work_in_its_queue_is_the_path():
    story = Story()
    story.step(1, 0, 20)
    story.kernel("a", 10, 40, launch_at=1, launch_us=4)
    story.kernel("b", 52, 40, launch_at=6, launch_us=4)
    assert path(story) == [
        ("python", "", 1),
        ("host", "cudaLaunchKernel", 4),
        ("launch", "a", 5),
        ("device", "a", 40),
        ("device gap", "b", 2),
        ("device", "b", 40),
    ]


def test_a_host_that_waited_leads_to_what_it_waited_for():
    story = Story()
    story.step(1, 0, 100)
    story.kernel("a", 10, 50, launch_at=1, launch_us=4)
    story.call("cudaStreamSynchronize", 8, 55)
    story.op("aten::add", 70, 20)
    assert path(story) == [
        ("python", "", 1),
        ("host", "cudaLaunchKernel", 4),
        ("launch", "a", 5),
        ("device", "a", 50),
        ("host", "cudaStreamSynchronize", 3),
        ("python", "", 7),
        ("host", "aten::add", 20),
        ("python", "", 10),
    ]


def test_a_copy_that_blocks_leads_to_the_copy():
    story = Story()
    story.step(1, 0, 100)
    story.copy("DtoH (Device -> Pageable)", 20, 30, 1000, launch_at=10, launch_us=45)
    assert [kind for kind, _, _ in path(story)] == ["python", "host", "device", "host", "python"]


def test_the_backward_thread_is_on_the_path_while_the_main_thread_waits():
    story = Story()
    story.step(1, 0, 100)
    story.op("aten::loss", 0, 20)
    story.op("autograd::engine::evaluate_function: MulBackward0", 30, 40, tid=200)
    story.op("aten::step", 80, 20)
    assert path(story) == [
        ("host", "aten::loss", 20),
        ("python", "", 10),
        ("host", "autograd::engine::evaluate_function: MulBackward0", 40),
        ("python", "", 10),
        ("host", "aten::step", 20),
    ]


def test_work_that_runs_when_the_window_ends_is_on_the_path():
    story = Story()
    story.op("aten::mm", 0, 20)
    story.kernel("k", 30, 100, launch_at=10, launch_us=5)
    cut = load(io.BytesIO(story.text().encode()), window=(0, 80))
    found = cut.critical_path(in_order=True)
    assert found.rows()[-1] == {
        "start_us": 30,
        "kind": "device",
        "name": "k",
        "where": "GPU 0 stream 7",
        "total_us": 50,
    }
    assert found["total_us"].sum() == 80


def test_the_path_by_name_adds_up_to_the_window(training):
    table = training.critical_path()
    assert table["total_us"].sum() == pytest.approx(training.window.us)
    assert table["share"].sum() == pytest.approx(1)
    where = training.critical_path(in_order=True)["where"]
    assert set(where) == {"GPU 0 stream 7", "thread 100"}


# Events


def test_events_as_a_table(training):
    found = training.to_table()
    kernel = next(row for row in found if row["kind"] == "kernel")
    launch = next(row for row in found if row["row"] == kernel["launch"])
    assert (launch["kind"], launch["correlation"], launch["step"]) == ("runtime", kernel["correlation"], 0)
    parent = next(row for row in found if row["row"] == launch["parent"])
    assert (parent["name"], parent["start_us"], parent["duration_us"]) == ("aten::addmm", 310, 80)
    assert len(training.to_pandas()) == len(found)


# SQL


def test_sql(training):
    pytest.importorskip("duckdb")
    found = training.sql("select name, calls from kernels where total_us > 100")
    assert found.rows() == [{"name": training.kernels()["name"][0], "calls": 2}]
    assert training.sql("select count(*) as n from events where kind = 'memcpy'").rows() == [{"n": 2}]
    joined = "select e.name, k.name from events e join kernels k on e.name = k.full_name order by e.start_us limit 1"
    assert list(training.sql(joined).columns) == ["name", "name_2"]


def test_sql_shows_its_tables(training):
    assert set(training.sql("show tables")["name"]) == set(RELATIONS)


def test_sql_knows_every_question(training):
    pytest.importorskip("duckdb")
    for name, table in RELATIONS.items():
        assert only(training.sql(f"select count(*) as n from {name}"))["n"] == len(table(training))


def test_sql_names_what_is_wrong(training):
    pytest.importorskip("duckdb")
    with pytest.raises(ArgumentError, match=r"the query failed: .*nonsense"):
        training.sql("select nonsense from kernels")


def test_sql_reads_no_files(training, tmp_path):
    pytest.importorskip("duckdb")
    (tmp_path / "secret.csv").write_text("a\n1\n")
    with pytest.raises(ArgumentError, match="the query failed"):
        training.sql(f"select * from read_csv('{tmp_path / 'secret.csv'}')")


def test_sql_without_duckdb_says_what_to_install(training, monkeypatch):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(TorchWhyError, match=re.escape("pip install duckdb")):
        training.sql("select 1")


class StandIn(types.ModuleType):
    """A duckdb that notes what it is asked."""

    Error = RuntimeError

    def __init__(self):
        super().__init__("duckdb")
        self.registered, self.description = [], [("answer",)]

    def connect(self, *_, **__):
        return self

    def register(self, _, columns):
        self.registered.append(sorted(columns))

    def execute(self, _):
        return self

    def fetchall(self):
        return [(42,)]

    def unregister(self, _):
        pass

    def close(self):
        pass


def test_sql_computes_only_what_the_query_names(training, monkeypatch):
    stand_in = StandIn()
    monkeypatch.setitem(sys.modules, "duckdb", stand_in)
    assert training.sql("SELECT * FROM Overlap").rows() == [{"answer": 42}]
    assert stand_in.registered == [sorted(training.overlap().columns)]


# Any trace


def test_a_timeline_names_the_innermost_call():
    story = Story()
    story.op("outer", 0, 100)
    story.op("inner", 10, 20)
    story.op("late", 90, 30)  # crosses the end of "outer" by more than a clock's error
    found = story.trace()
    line = HostTimeline.of(found.events, found.calls, found.main_lane)
    moments = np.array([-1, 0, 15, 30, 95, 119, 120]) * 1000
    assert [found.name(row) if row >= 0 else "" for row in line.at(moments)] == [
        "",
        "outer",
        "inner",
        "outer",
        "late",
        "late",
        "",
    ]


categories = ["cpu_op", "user_annotation", "cuda_runtime", "python_function", "kernel", "gpu_memcpy", "gpu_memset"]
categories += ["overhead", "cpu_instant_event", "gpu_user_annotation", "cuda_sync", "nonsense", None]
names = ["aten::mm", "ProfilerStep#1", "ProfilerStep#2", "cudaLaunchKernel", "cudaDeviceSynchronize", "cudaGraphLaunch"]
names += ["cudaMemcpyAsync", "[memory]", "nn.Module: Net_0", "Torch-Compiled Region: 0/0", "ncclKernel", "MulBackward0"]
names += ["Memcpy DtoH (Device -> Pageable)", "Optimizer.step#SGD.step", "x (dynamo_timed)", "", None]
small = st.integers(-1, 4)
args = st.fixed_dictionaries(
    {},
    optional={
        "correlation": small,
        "External id": small,
        "Sequence number": small,
        "Fwd thread id": small,
        "device": small,
        "stream": small,
        "graph id": small,
        "bytes": st.integers(-5, 2**60),
        "Bytes": st.integers(-(2**60), 2**60),
        "Device Type": small,
        "Device Id": small,
        "grid": st.sampled_from(["[1,2,3]", "", "x"]),
        "Call stack": st.sampled_from(["a;b", ""]),
    },
)
event = st.fixed_dictionaries(
    {"cat": st.sampled_from(categories), "name": st.sampled_from(names), "ph": st.sampled_from("XXXXXiMsfC")},
    optional={
        "ts": st.integers(0, 20_000) | st.sampled_from([0, 10**18, -(10**18)]),
        "dur": st.integers(0, 9000) | st.sampled_from([-1, 0, 10**18]),
        "pid": st.sampled_from(["0", "1", "-1", "GPU 0 Counters", "", None]),
        "tid": st.sampled_from(["1", "2", "stream 7", "", None]),
        "id": small,
        "args": args,
    },
)


@settings(max_examples=5 * settings().max_examples)
@given(st.lists(event, max_size=25))
def test_any_trace_answers_every_question(events):
    found = trace(events)
    for question in QUESTIONS:
        table = getattr(found, question)()
        assert table.columns
        str(table)
    assert found.critical_path(in_order=True)["total_us"].sum() == pytest.approx(found.window.us, abs=1e-3)
    assert 0 <= found.derived(idle_time).total <= found.window.end - found.window.start
    assert len(found.to_table()) <= len(events)


def test_stacks_add_up_to_the_time_of_their_calls(training):
    host, device = training.stacks(), training.stacks("self_cuda_time_total")
    assert host["time_us"].sum() == training.frames.self_time.sum() / 1000
    assert device["time_us"].sum() == training.events.dur[training.links.work].sum() / 1000


def test_a_stack_goes_from_the_outermost_call_to_the_kernel():
    story = Story()
    story.frame("train.py(3): main; odd", 0, 100)
    story.op("aten::linear", 10, 50)
    story.op("aten::mm", 15, 30)
    story.kernel("gemm", 60, 20, launch_at=20)
    story.kernel("lost", 90, 5)
    rows = {row["stack"]: (row["calls"], row["time_us"]) for row in story.trace().stacks("device")}
    assert rows == {"train.py(3): main, odd;aten::linear;aten::mm;cudaLaunchKernel;gemm": (1, 20.0), "lost": (1, 5.0)}
    with pytest.raises(ArgumentError, match="metric must be one of host, device"):
        story.trace().stacks("cuda")
