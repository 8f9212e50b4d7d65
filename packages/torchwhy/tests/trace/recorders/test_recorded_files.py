"""Files of other recorders: what versions of them write, what they lack, and damaged files."""

import gzip
import json
import sqlite3
import zlib
from contextlib import closing, suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.command_line import run_here
from tests.trace.recorders.test_equality import gpu_facts, several_streams
from tests.trace.recorders.writers import (
    Packets,
    Rows,
    loaded,
    message,
    number,
    varint,
    write_nsight,
    write_perfetto,
    write_rocm_json,
    write_rocpd,
)
from torchwhy.analysis.breakdown import breakdown
from torchwhy.errors import TraceError
from torchwhy.loading.trace import load
from torchwhy.trace.derived.recorded import recorded
from torchwhy.trace.file.recorders import database as database_module
from torchwhy.trace.file.recorders.wire import Malformed, fields
from torchwhy.trace.meaning.kinds import Kind

KERNEL = "CUPTI_ACTIVITY_KIND_KERNEL"
ANY = {"deadline": None, "suppress_health_check": [HealthCheck.function_scoped_fixture]}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """One program as each recorder writes it: bytes."""
    folder, trace = tmp_path_factory.mktemp("files"), loaded(several_streams().text())
    writers = {"nsight": write_nsight, "rocpd": write_rocpd, "rocm json": write_rocm_json, "perfetto": write_perfetto}
    return {name: write(trace, folder / name).read_bytes() for name, write in writers.items()}


@pytest.fixture
def export(tmp_path):
    """An export of Nsight Systems whose tables may be changed before it is read."""

    def changed(*statements, trace=None):
        path = tmp_path / "report.sqlite"
        path.unlink(missing_ok=True)
        write_nsight(trace or loaded(several_streams().text()), path)
        with closing(sqlite3.connect(path)) as database:
            for statement in statements:
                database.execute(statement)
            database.commit()
        return path

    return changed


def labels(trace):
    return [trace.name(row) for row in trace.events.rows(Kind.ANNOTATION).tolist()]


# What is in a file, and what isn't


def test_what_a_recorder_cannot_know_is_said(export):
    path = export("DELETE FROM NVTX_EVENTS WHERE textId IN (SELECT id FROM StringIds WHERE value LIKE 'aten::%')")
    trace = load(path)
    found = trace.derived(recorded)
    said = "this file of Nsight Systems holds kernels, copies, runtime calls and labels, but no operators of PyTorch"
    assert found.missing == {"operators": said}
    assert not found.processor_only
    report = run_here("explain", path, "-v", folder=path.parent).stdout
    assert "recorded by Nsight Systems" in report
    assert "nsys profile --pytorch=autograd-nvtx" in " ".join(report.split())
    assert json.loads(run_here("explain", path, "--format", "json", folder=".").stdout)["trace"]["recorder"]


def test_rules_find_no_more_than_in_the_profilers_trace(export):
    ours = {finding.code for finding in several_streams().trace().diagnose()}
    trace = load(
        export("DELETE FROM NVTX_EVENTS WHERE textId IN (SELECT id FROM StringIds WHERE value LIKE 'aten::%')")
    )
    about_the_recording = {"A2", *(finding.code for finding in trace.diagnose("A"))}
    assert {finding.code for finding in trace.diagnose()} <= ours | about_the_recording


def test_operators_that_pytorch_announces_are_operators(export):
    trace = load(
        export(
            "INSERT INTO StringIds VALUES (900, 'aten::mm, op_id = 7, sizes = [[4, 10], [10, 2]], "
            "input_op_ids = [(5,0)]')",
            "INSERT INTO StringIds VALUES (901, 'MulBackward0, seq = 12, op_id = 9')",
            "INSERT INTO StringIds VALUES (902, 'epoch 3, seq = short')",
            "INSERT INTO StringIds VALUES (903, '## forward ##, op_id = 11')",
            *(
                f"INSERT INTO NVTX_EVENTS (start, end, eventType, textId, globalTid) VALUES (1, 2, 59, {i}, 5)"
                for i in (900, 901, 902, 903)
            ),
        )
    )
    events = trace.events
    rows = {trace.name(row): row for row in events.rows(Kind.OPERATOR).tolist()}
    assert events.text("Input Dims", rows["aten::mm"]) == "[[4,10],[10,2]]"
    assert events.integers("External id", [rows["aten::mm"]]).tolist() == [7]
    assert events.integers("Sequence number", [rows["MulBackward0"]]).tolist() == [12]
    assert trace.repairs.damaged_events == 0
    assert {"epoch 3, seq = short", "## forward ##"} <= set(labels(trace))


def test_old_exports_have_texts_in_their_ranges_and_no_numbers_of_memory(export):
    path = export(
        "DROP TABLE ENUM_CUDA_MEM_KIND",
        "DROP TABLE TARGET_INFO_GPU",
        "UPDATE NVTX_EVENTS SET text = 'all the same', textId = NULL",
        f"ALTER TABLE {KERNEL} DROP COLUMN graphNodeId",
        f"ALTER TABLE {KERNEL} DROP COLUMN globalPid",
    )
    trace = load(path)
    assert set(labels(trace)) == {"all the same"}
    assert {trace.name(row) for row in trace.events.rows(Kind.MEMCPY).tolist()} == {"Memcpy HtoD", "Memcpy DtoH"}
    assert trace.gpu.busy.total == several_streams().trace().gpu.busy.total
    assert (trace.links.launch >= 0).all()


def test_whole_graphs_and_marks_and_open_ranges(export):
    trace = load(
        export(
            "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INT, end INT, deviceId INT, streamId INT, "
            "graphId INT, correlationId INT)",
            "INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (5000000, 5060000, 0, 7, 3, 77)",
            "INSERT INTO NVTX_EVENTS (start, end, eventType, text, globalTid) VALUES (1, NULL, 34, 'a mark', 5)",
            "INSERT INTO NVTX_EVENTS (start, end, eventType, text, globalTid) VALUES (1, NULL, 59, 'open', 5)",
        )
    )
    names = [trace.name(row) for row in trace.gpu.kernels.tolist()]
    assert names[-1] == "CUDA graph 3, recorded as a whole"
    assert trace.gpu.busy.total == several_streams().trace().gpu.busy.total + 60_000
    assert "open" in labels(trace)
    assert "a mark" not in labels(trace)


def test_processes_in_one_file_have_their_own_correlations_and_devices(export):
    """Both launch with the same ids on their device 0, which are two devices of the machine."""
    trace = loaded(several_streams().text())
    path = export(trace=trace)
    with closing(sqlite3.connect(path)) as database:
        for table, column in (
            (KERNEL, "globalPid"),
            ("CUPTI_ACTIVITY_KIND_RUNTIME", "globalTid"),
            ("CUPTI_ACTIVITY_KIND_MEMCPY", "globalPid"),
        ):
            names = [row[1] for row in database.execute(f"PRAGMA table_info({table})") if row[1] != column]
            columns = ", ".join(names)
            database.execute(
                f"INSERT INTO {table} ({columns}, {column}) SELECT {columns}, {column} + (1 << 24) FROM {table}"
            )
        database.execute("CREATE TABLE TARGET_INFO_CUDA_DEVICE (gpuId INT, cudaId INT, pid INT)")
        database.executemany("INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (?, 0, ?)", [(4, 100), (6, 101)])
        database.commit()
    read = load(path)
    assert [work.device for work in read.gpus] == [4, 6]
    assert {work.busy.total for work in read.gpus} == {several_streams().trace().gpu.busy.total}
    launch = read.links.launch
    assert (launch >= 0).all()
    pids = [read.lane(row).pid for row in launch.tolist()]
    assert sorted(pids) == sorted(["100"] * (len(pids) // 2) + ["101"] * (len(pids) // 2))
    assert len(set(launch.tolist())) == len(launch)


def test_rocm_names_and_threads_become_blocks(tmp_path):
    trace = load(write_rocpd(loaded(several_streams().text()), tmp_path / "results.db"))
    assert trace.info.vendor == "amd"
    assert trace.arguments(trace.gpu.kernels)[0]["grid"] == [4, 2, 1]
    assert "my label" in labels(trace)
    assert "aten::linear" in trace.ops()["name"]


# Perfetto


def rocprofilers_packets():
    """A launch, its kernel and a copy as rocprofv3 writes them; the kernel overlaps the one before on its track."""
    packets = Packets(incremental=False)
    packets.add(message(60, number(1, 1) + message(4, number(1, 50) + number(2, 51) + message(5, "main"))))
    packets.add(message(60, number(1, 2) + message(2, "COMPUTE AGENT [1] QUEUE [0] (GPU)")))
    one = {"begin_ns": 1000, "end_ns": 2000, "agent": "GPU-1", "queue": 0, "stream_ID": 4}
    for category, name, track, begin, end, more in (
        ("hip_api", "hipLaunchKernel", 1, 100, 300, {"corr_id": 8}),
        ("marker_api", "step 1", 1, 50, 400, {}),
        ("kernel_dispatch", "vector_add", 2, 1000, 2000, {**one, "corr_id": 8}),
        ("kernel_dispatch", "vector_mul", 2, 1500, 2600, {**one, "begin_ns": 1500, "end_ns": 2600, "corr_id": 9}),
        (
            "memory_copy",
            "MEMORY_COPY_HOST_TO_DEVICE",
            2,
            3000,
            3500,
            {"dst_agent": "1", "copy_bytes": 64, "corr_id": 3},
        ),
    ):
        packets.event(begin, 1, track, category, name, more)
        packets.event(end, 2, track)
    return b"".join(packets.out)


def test_rocprofilers_protobuf(tmp_path):
    path = tmp_path / "results.pftrace"
    path.write_bytes(rocprofilers_packets())
    trace = load(path)
    assert trace.gpu.busy.total == 1600 + 500
    assert trace.gpu.streams == (2, 4) or 4 in trace.gpu.streams
    assert [device.device for device in trace.gpus] == [1]
    assert labels(trace) == ["step 1"]
    assert [trace.name(row) for row in trace.links.launch.tolist() if row >= 0] == ["hipLaunchKernel"]
    assert trace.copies().rows()[0]["bytes"] == 64
    assert trace.lane(trace.links.launch[0]).label == "main"


def test_work_that_drivers_note_has_the_call_that_submitted_it(tmp_path):
    packets = Packets(incremental=False)
    packets.add(message(60, number(1, 1) + message(4, number(1, 50) + number(2, 50))))
    call = number(9, 1) + number(11, 1) + message(23, "cuLaunchKernel") + number(3001, 4)
    packets.add(number(8, 100) + message(11, call + message(3000, number(1, 70) + number(1, 71))))
    packets.event(200, 2, 1)
    kernels = message(1000, number(1, 5) + message(2, "_Z3addv") + message(3, "add()"))
    queues = message(24, number(1, 6) + message(2, "Channel #7"))
    for identifier, at in ((70, 300), (71, 500)):
        launch = message(1, number(1, 4)) + message(2, number(1, 128))
        stage = (
            number(1, identifier) + number(2, 90) + number(11, 2) + number(13, 6) + number(19, 5) + message(21, launch)
        )
        packets.add(number(8, at) + message(53, stage) + message(12, kernels + queues))
    path = tmp_path / "driver.perfetto-trace"
    path.write_bytes(b"".join(packets.out))
    trace = load(path)
    assert [trace.name(row) for row in trace.links.work.tolist()] == ["add()", "add()"]
    assert [trace.name(row) for row in trace.links.launch.tolist()] == ["cuLaunchKernel", "cuLaunchKernel"]
    assert trace.gpus[0].device == 2
    assert trace.gpus[0].busy.total == 180


def test_packed_packets_are_unpacked_and_lost_names_are_not_guessed(tmp_path):
    events = rocprofilers_packets()
    lost = number(8, 5) + number(10, 99) + number(13, 2) + message(11, number(9, 1) + number(11, 1) + number(10, 4))
    path = tmp_path / "packed.pftrace"
    path.write_bytes(message(1, message(50, zlib.compress(events))) + message(1, lost))
    assert load(path).gpu.busy.total == 2100
    packets = Packets()
    packets.event(6000, 1, 1, "kernel", "known")
    packets.event(6500, 2, 1)
    packets.add(number(42, 1))
    packets.event(7000, 1, 1, "kernel", "known")  # by its number, which no longer says anything
    path.write_bytes(b"".join(packets.out))
    assert load(path).gpu.busy.total == 500
    path.write_bytes(message(1, message(133, b"(\xb5/\xfd....")))
    with pytest.raises(TraceError, match="packed with zstd"):
        load(path)


def test_tracks_in_a_circle_and_deep_arguments(tmp_path):
    packets = Packets(incremental=False)
    packets.add(message(60, number(1, 1) + number(5, 2)))
    packets.add(message(60, number(1, 2) + number(5, 1)))
    deep = message(10, "deepest") + number(4, 1)
    for _ in range(3000):
        deep = message(10, "inner") + message(11, deep)
    packets.add(number(8, 5) + message(11, number(9, 1) + number(11, 1) + message(22, "kernel") + message(4, deep)))
    packets.event(9, 2, 1)
    path = tmp_path / "circle.pftrace"
    path.write_bytes(b"".join(packets.out))
    assert load(path).gpu.busy.total == 4


@given(st.integers(0, 2**64 - 1), st.integers(1, 2**29 - 1))
def test_fields_come_back(value, key):
    assert list(fields(number(key, value) + message(key, varint(value)))) == [(key, value), (key, varint(value))]


@given(st.binary(max_size=60))
def test_any_bytes_are_fields_or_malformed(data):
    with suppress(Malformed):
        list(fields(data))


# Damage


def reads(path):
    """Read and explain a file; whatever it is, it is read or refused in one line."""
    try:
        trace = load(path)
    except TraceError as error:
        said = str(error)
    else:
        gpu_facts(trace)
        breakdown(trace)
        assert trace.derived(recorded) is not None
        return trace
    assert "\n" not in said
    assert str(path) in said
    return None


@pytest.mark.parametrize("recorder", ["nsight", "rocpd", "rocm json", "perfetto"])
def test_bytes_may_be_anything(files, recorder, tmp_path):
    whole = files[recorder]

    @settings(max_examples=25, **ANY)
    @given(
        st.lists(st.tuples(st.integers(0, len(whole) - 1), st.integers(0, 255)), max_size=6), st.integers(0, len(whole))
    )
    def holds(changes, end):
        data = bytearray(whole)
        for place, byte in changes:
            data[place] = byte
        (tmp_path / "damaged").write_bytes(data[: end or None])
        reads(tmp_path / "damaged")

    holds()


@pytest.mark.parametrize("part", [0.3, 0.6, 0.95])
def test_a_protobuf_that_ends_early_gives_what_is_there(files, part, tmp_path):
    whole = files["perfetto"]
    (tmp_path / "cut").write_bytes(whole[: int(part * len(whole))])
    trace = load(tmp_path / "cut")
    assert trace.repairs.truncated
    assert 0 < len(trace) <= len(load_bytes(whole, tmp_path))


def load_bytes(data, folder):
    (folder / "whole").write_bytes(data)
    return load(folder / "whole")


values = st.one_of(
    st.none(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(),
    st.text(max_size=5),
    st.binary(max_size=5),
    st.sampled_from([2**63 - 1, -(2**63), 0, -1]),
)


def test_values_may_have_any_type(files, tmp_path):
    path = tmp_path / "odd.sqlite"
    path.write_bytes(files["nsight"])
    with closing(sqlite3.connect(path)) as database:
        tables = [row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        every = [(table, row[1]) for table in tables for row in database.execute(f"PRAGMA table_info({table})")]
    every = [(table, column) for table, column in every if column != "id"]  # a key of SQLite's: always an integer

    @settings(max_examples=40, **ANY)
    @given(st.lists(st.tuples(st.sampled_from(every), values), min_size=1, max_size=8))
    def holds(changes):
        path.write_bytes(files["nsight"])
        with closing(sqlite3.connect(path)) as database:
            for (table, column), value in changes:
                database.execute(f'UPDATE OR IGNORE {table} SET "{column}" = ? WHERE rowid % 3 = 1', (value,))
            database.commit()
        reads(path)

    holds()


def test_columns_may_be_missing(files, tmp_path):
    path = tmp_path / "lacks.sqlite"
    path.write_bytes(files["nsight"])
    with closing(sqlite3.connect(path)) as database:
        columns = [row[1] for row in database.execute(f"PRAGMA table_info({KERNEL})")]
    for column in columns:
        path.write_bytes(files["nsight"])
        with closing(sqlite3.connect(path)) as database:
            database.execute(f'ALTER TABLE {KERNEL} DROP COLUMN "{column}"')
            database.commit()
        if column in ("start", "end"):
            with pytest.raises(TraceError, match=f"its table {KERNEL} has no column {column}"):
                load(path)
        else:
            assert load(path).gpu.kernels.size == 6


json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3)),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["handle", "x", "internal"]), inner),
    max_leaves=4,
)


def places_of(value, path=()):
    """Every place in a JSON value."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from places_of(inner, (*path, key))


def test_json_of_rocprofiler_may_hold_anything_anywhere(files, tmp_path):
    places = [place for place in places_of(json.loads(files["rocm json"])) if place]
    path = tmp_path / "odd.json"

    @settings(max_examples=60, **ANY)
    @given(st.lists(st.tuples(st.sampled_from(places), json_values), min_size=1, max_size=5))
    def holds(changes):
        data = json.loads(files["rocm json"])
        for (*way, last), value in changes:
            inner = data
            try:
                for key in way:
                    inner = inner[key]
                inner[last] = value
            except (KeyError, IndexError, TypeError):  # an earlier change took it away
                continue
        path.write_text(json.dumps(data))
        reads(path)

    holds()


@pytest.mark.parametrize("records", [{}, {"hip_api": []}])
def test_json_of_rocprofiler_without_events_says_so(tmp_path, records):
    path = tmp_path / "empty.json"
    path.write_text(json.dumps({"rocprofiler-sdk-tool": [{"buffer_records": records}]}))
    ran = run_here("explain", path, folder=tmp_path)
    assert ran.returncode == 0
    assert "the file holds no events with a duration" in " ".join(ran.stdout.split())


def database(*statements):
    def write(path):
        with closing(sqlite3.connect(path)) as connection:
            for statement in statements:
                connection.execute(statement)
            connection.commit()

    return write


@pytest.mark.parametrize(
    ("write", "said"),
    [
        (database("CREATE TABLE a (b)"), "an SQLite database, but not of Nsight Systems or rocprofv3"),
        (database("CREATE TABLE StringIds (id, value)"), "record with nsys profile --trace=cuda,nvtx"),
        (database("CREATE TABLE rocpd_metadata (id)"), "without the view kernels and the view regions"),
        (database("CREATE TABLE rocpd_api (id)", "CREATE TABLE rocpd_op (id)"), "rpd2tracing.py makes JSON of it"),
        (lambda path: path.write_bytes(b"SQLite format 3\0" + bytes(200)), "database"),
        (lambda path: path.write_bytes(b"SQLite format 3\0"), "database"),
        (lambda path: path.write_bytes(b"\n\x05\x08\x01"), "begins like a protobuf trace and then isn't one"),
        (lambda path: path.write_bytes(b'"Kind","Agent_Id","Queue_Id"\n'), "a table of rocprofv3"),
        (lambda path: path.write_bytes(b"\n" + b"\xff" * 40), "not a trace"),
    ],
)
def test_other_files_are_refused_with_what_to_do(tmp_path, write, said):
    write(tmp_path / "file")
    with pytest.raises(TraceError) as raised:
        load(tmp_path / "file")
    assert said in str(raised.value)
    assert str(tmp_path / "file") in str(raised.value)


def test_a_report_is_to_be_exported(tmp_path):
    (tmp_path / "run.nsys-rep").write_bytes(b"\x01\x02\x03 any bytes at all")
    with pytest.raises(TraceError, match="nsys export --type sqlite makes a file that is read"):
        load(tmp_path / "run.nsys-rep")


def test_views_that_never_end_or_fail_are_no_crash(tmp_path, monkeypatch):
    path = tmp_path / "view.db"
    database(
        "CREATE TABLE rocpd_metadata (id)",
        "CREATE VIEW kernels AS SELECT * FROM missing",
        "CREATE VIEW regions AS SELECT 1",
    )(path)
    with pytest.raises(TraceError, match="cannot be read"):
        load(path)
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i start, i end, 'a' name FROM n"
    path = tmp_path / "endless.db"
    database(
        "CREATE TABLE rocpd_metadata (id)", f"CREATE VIEW kernels AS {endless}", f"CREATE VIEW regions AS {endless}"
    )(path)
    monkeypatch.setattr(database_module, "MOST", 1000)
    with pytest.raises(TraceError, match="regions has more than 1,000 rows"):
        load(path)


def test_a_database_that_breaks_off_gives_what_came_before(files, tmp_path):
    """The pages of the kernels' table are gone: what came before is there, and the report says that the file is cut."""
    path = tmp_path / "many.sqlite"
    path.write_bytes(files["nsight"])
    with closing(sqlite3.connect(path)) as connection:
        rows = Rows(connection)
        for i in range(3000):
            where = {"deviceId": 0, "contextId": 1, "streamId": 7, "demangledName": 1, "shortName": 1}
            rows.add(KERNEL, start=10**7 + 10 * i, end=10**7 + 10 * i + 5, registersPerThread=1, **where)
        connection.commit()
        root = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (KERNEL,)).fetchone()[0]
        size = connection.execute("PRAGMA page_size").fetchone()[0]
    data = bytearray(path.read_bytes())
    for page in range(len(data) // size - 4, len(data) // size):
        data[page * size : (page + 1) * size] = b"\xff" * size
    path.write_bytes(data)
    trace = reads(path)
    assert root > 0
    assert trace is not None
    assert trace.repairs.truncated
    assert len(trace.gpu.kernels) > 1000


def test_perfettos_viewer_is_not_handed_a_database(export, tmp_path):
    ran = run_here("view", export(), "--no-open", folder=tmp_path)
    assert ran.returncode == 2
    assert "--to perfetto makes a file" in ran.stderr


def test_a_pipe_of_packed_bytes(files, tmp_path):
    (tmp_path / "report.sqlite.gz").write_bytes(gzip.compress(files["nsight"]))
    ran = run_here(
        "export", tmp_path / "report.sqlite.gz", "--to", "perfetto", "-o", tmp_path / "out.json", folder=tmp_path
    )
    assert ran.returncode == 0
    assert load(tmp_path / "out.json").gpu.busy.total == several_streams().trace().gpu.busy.total
