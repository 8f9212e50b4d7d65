"""A compiler's log is read within bounds, whatever it holds, and refused with a sentence where it is none."""

import json
import logging
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st
from torch._dynamo import graph_break_hints

from tests.command_line import run_here
from tests.compile_log.logs import BREAK, WHOLE, artifact, metrics, record, started
from tests.rules import case_compiler as case
from tests.rules.case_compiler import broken, sizes_change
from torchwhy import load
from torchwhy.capture.compile_log import CompileLog
from torchwhy.errors import TraceError
from torchwhy.rules.diagnose import diagnose
from torchwhy.trace.compile_log import records
from torchwhy.trace.compile_log.log import load_compile_log
from torchwhy.trace.compile_log.reasons import LONGEST, graph_break

FILE = record({"str": ["/home/me/train.py", 1]})
LOGGED = "~/train.py(4): step"


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "some.log"
    path.write_text(WHOLE)
    return path


def test_everything_that_is_kept_is_read(log):
    found = load_compile_log(log)
    assert (found.process, found.pytorch, found.problem) == (4711, "2.13.0", "")
    [broke] = found.breaks
    assert (broke.id, broke.line, broke.code) == ("0/0", LOGGED, "s = y.item()")
    assert (broke.reason, broke.detail, broke.skipped) == (
        "Unsupported Tensor.item() call",
        "It needs the value.",
        False,
    )
    assert [(one.id, one.line, one.resumed, one.compile_us) for one in found.frames.values()] == [
        ("0/0", "~/train.py(3): step", False, 1500),
        ("1/0", LOGGED, True, 700),
        ("0/1", "", False, 0),
    ]
    assert found.frames["0/1"].backward_us == 300
    assert found.frames["1/0"].without_cuda_graph == "skipping cudagraphs due to cpu device"
    assert found.failures["0/1"][0].variant == "0/0"


@given(st.integers(0, len(WHOLE)))
def test_a_log_that_is_cut_off_anywhere_is_read_up_to_there(tmp_path_factory, end):
    path = tmp_path_factory.mktemp("cut") / "cut.log"
    path.write_text(WHOLE[:end])
    if not (found := read_or_refused(path)):
        assert end < 80
        return
    whole = load_compile_log(_written(path.with_name("whole.log"), WHOLE))
    assert len(found.frames) <= len(whole.frames)
    assert len(found.breaks) <= 1


def _written(path, text):
    path.write_text(text)
    return path


def read_or_refused(path):
    """The log; None where it is refused with the usual sentence. Anything else that is raised fails the test."""
    try:
        return load_compile_log(path)
    except TraceError as error:
        if "is no compiler's log" not in str(error):
            raise
        return None


@given(st.lists(st.binary(max_size=60) | st.sampled_from([line.encode() for line in WHOLE.splitlines()]), max_size=30))
def test_damage_never_ends_in_anything_but_an_answer_or_a_clear_error(tmp_path_factory, lines):
    path = tmp_path_factory.mktemp("damaged") / "damaged.log"
    path.write_bytes(b"\n".join(lines))
    found = read_or_refused(path)
    assert found is None or all(len(one.reason) <= LONGEST for one in found.breaks)


@pytest.mark.parametrize(
    "content", [b"", b"\n\n", b'{"traceEvents": []}', b"\x1f\x8b\x08\x00", b"gcc -O2 -c x.c\n" * 99]
)
def test_what_is_no_log_is_refused(tmp_path, content):
    path = tmp_path / "other.log"
    path.write_bytes(content)
    with pytest.raises(TraceError, match=r"other\.log is no compiler's log: no line begins like"):
        load_compile_log(path)
    with pytest.raises(TraceError, match="has no compiler's log in it"):
        load_compile_log(tmp_path)
    with pytest.raises(TraceError, match="cannot be read: No such file"):
        load_compile_log(tmp_path / "missing.log")


def test_hostile_texts_are_bounded_and_cannot_steer_a_terminal(log):
    evil = "\x1b[2J" + "x" * 200_000
    with log.open("a") as file:
        file.write(artifact("dynamo_graph_break_reason", BREAK.replace("Unsupported", evil), 7, 0))
        file.write(artifact("recompile_reasons", json.dumps([f"0/0: {evil}"] * 100), 7, 1))
        file.write(record({"str": ["y" * 2_000_000, 5]}) + started(2**70, 0, 3) + metrics(-1, "a", duration_us="b"))
        file.write(metrics(8, 0, duration_us=-5, graph_op_count=True, fail_reason=["no text"]))
        file.write(record({"artifact": "nested"}) + "V1128 06:50:01.000000 1 x:1] " + '{"str": ' + "[" * 100_000 + "\n")
    found = load_compile_log(log)
    for one in (*found.breaks, *(each for failures in found.failures.values() for each in failures)):
        texts = [value for value in vars(one).values() if isinstance(value, str)]
        assert max(map(len, texts)) <= LONGEST
        assert "\x1b" not in "".join(texts)
    assert len(found.failures["7/1"]) <= 64
    assert found.frames["8/0"].compile_us == 0
    assert "could not be read" in found.problem


def test_a_log_is_read_up_to_a_bound(log, monkeypatch):
    monkeypatch.setattr(records, "MOST_BYTES", len(WHOLE) // 2)
    assert "it is longer" in load_compile_log(log).problem
    monkeypatch.setattr(records, "MOST_BYTES", 1 << 30)
    monkeypatch.setattr(records, "MOST_RECORDS", 2)
    assert "it is longer" in load_compile_log(log).problem


def test_of_several_logs_that_of_the_traces_process_or_rank_is_chosen(tmp_path):
    for process, rank in ((11, 0), (12, 1)):
        name = f"dedicated_log_torch_trace_rank_{rank}_abc.log"
        (tmp_path / name).write_text(artifact("dynamo_graph_break_reason", BREAK, process=process))
    assert load_compile_log(tmp_path, ["12", "python"]).process == 12
    assert load_compile_log(tmp_path, [], 0).process == 11
    with pytest.raises(TraceError, match=r"has the logs of 2 processes, .* name one, such as dedicated_log"):
        load_compile_log(tmp_path)


def test_numbers_that_begin_again_replace_what_they_stood_for(log):
    with log.open("a") as file:
        file.write(started(0, 0, 70, "other"))
    found = load_compile_log(log)
    assert found.frames["0/0"].line == "~/train.py(70): other"
    assert not found.breaks


def finding(story, log, slug):
    trace = story.trace()
    trace.compile_log = load_compile_log(log)
    [found] = [one for one in diagnose(trace).findings if one.slug == slug]
    return found


def test_findings_take_reason_and_line_from_the_log(log):
    broke = finding(broken(), log, "graph-breaks")
    first = broke.evidence[0]
    assert (first.name, first.count) == (LOGGED, 5)
    assert first.note == "Unsupported Tensor.item() call at `s = y.item()`"
    assert 0 < first.time_us <= broke.time_us
    assert (
        "PyTorch's reason at ~/train.py(4): step: Unsupported Tensor.item() call (It needs the value)." in broke.cause
    )
    again = finding(sizes_change(), log, "recompiles")
    assert again.cause.startswith(
        "A guard of the compiled code failed: tensor 'x' size mismatch at index 0. expected 4"
    )
    assert again.evidence[0].time_us == pytest.approx(500, rel=0.05)


def test_a_changed_number_is_named_with_the_whole_path_of_its_line(log):
    reason = artifact("recompile_reasons", "0/0: n == 4  # for i in range(n):  # rain.py:5 in step", 0, 1)
    log.write_text(FILE + started(0, 0, 3) + metrics(0, 0) + started(0, 1, 3) + metrics(0, 1) + reason)
    again = finding(sizes_change(), log, "recompiles")
    assert "A guard of the compiled code failed: n == 4 (~/train.py(5): step)." in again.cause
    assert again.fix == "Keep Python values that change out of the compiled code: pass numbers as tensors."


GENERAL = ("USER_ERROR", "DYNAMO_BUG", "DIFFICULT", "FUNDAMENTAL", "SUPPORTABLE", "CAUSED_BY_EARLIER_GRAPH_BREAK")


@pytest.mark.parametrize("general", GENERAL)
def test_the_advice_is_the_hint_about_the_reason_and_no_general_one(log, general):
    hints = "".join(f"  Hint: {hint}\n" for hint in getattr(graph_break_hints, general))
    assert graph_break(BREAK.replace("\n\nUser", f"\n{hints}\n\nUser"), 0, 0).hint == ""
    hint = f"Keep the value in a tensor. {'A long sentence. ' * 9}{LONGEST * 'x'}"
    said = BREAK.replace("\n\nUser", f"\n{hints}  Hint: {hint}\n\nUser")
    log.write_text(FILE + started(0, 0, 3) + artifact("dynamo_graph_break_reason", said, 0, 0) + metrics(0, 0))
    [found] = load_compile_log(log).breaks
    assert found.hint == f"Keep the value in a tensor{'. A long sentence' * 9}"
    assert finding(broken(), log, "graph-breaks").fix.startswith(
        "PyTorch's hint for ~/train.py(4): step: Keep the value in a tensor. A long sentence."
    )


def test_breaks_of_code_that_the_window_does_not_run_are_left_out(log):
    trace = sizes_change().trace()
    log.write_text(started(5, 0, 3) + artifact("dynamo_graph_break_reason", BREAK, 5, 0))
    trace.compile_log = load_compile_log(log)
    assert "graph-breaks" not in {one.slug for one in diagnose(trace).findings}


def test_the_command_reads_a_log_and_refuses_what_is_none(log, tmp_path):
    story = broken().write(tmp_path / "story.json")
    said = run_here("explain", story, "--compile-log", log, folder=tmp_path)
    assert said.returncode == 0
    assert "Unsupported Tensor.item() call at `s = y.item()`" in " ".join(said.stdout.split())
    assert "The compiler's log is of process 4711, which the trace doesn't name" in " ".join(said.stdout.split())
    data = json.loads(run_here("explain", story, "--compile-log", log, "--format", "json", folder=tmp_path).stdout)
    assert data["compiler"]["graph_breaks"][0]["line"] == LOGGED
    assert [one["id"] for one in data["compiler"]["compilations"]] == ["0/0", "1/0", "0/1"]
    refused = run_here("explain", story, "--compile-log", story, folder=tmp_path)
    assert (refused.returncode, refused.stdout) == (3, "")
    assert "is no compiler's log" in refused.stderr


def test_a_log_in_the_runs_folder_is_found_and_damage_is_said(tmp_path):
    story = broken().write(tmp_path / "trace.json")
    (tmp_path / "compile.log").write_text(WHOLE)
    assert load(story).compile_log is None, "no run's folder: others call their files so, too"
    (tmp_path / "run.json").write_text("{}")
    assert load(story).compile_log.frames
    (tmp_path / "compile.log").write_text("nothing of the kind")
    said = run_here("explain", story, folder=tmp_path)
    assert said.returncode == 0
    assert "is no compiler's log" in " ".join(said.stdout.split())


def emit(handler, metadata, payload=None):
    fields = {"metadata": metadata, "payload": payload, "pathname": "x.py", "name": "torch.__trace"}
    one = logging.makeLogRecord({**fields, "levelname": "DEBUG", "process": os.getpid(), "lineno": 1})
    handler.emit(one)


def test_what_is_written_is_bounded_and_reasons_come_last_to_be_left_out(tmp_path):
    log = CompileLog(tmp_path / "compile.log", most=20_000)
    log.attach()
    for i in range(100):
        emit(log._handler, {"dynamo_output_graph": {}, "frame_id": i}, "graph\n" * 200)
        emit(
            log._handler,
            {"artifact": {"name": "recompile_reasons"}, "frame_id": i, "frame_compile_id": 1},
            "0/0: x == 1",
        )
    [problem] = log.close()
    assert "holds reasons and times only" in problem
    assert 20_000 < log.path.stat().st_size < 42_000
    found = load_compile_log(log.path)
    assert len(found.failures) > 60


def test_a_folder_that_cannot_be_written_stops_the_log_and_nothing_else(tmp_path):
    log = CompileLog(tmp_path / "missing" / "compile.log")
    log.attach()
    emit(log._handler, {"str": ["a", 0]})
    assert "the compiler's log is not whole: FileNotFoundError" in log.close()[0]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_writes_nothing(tmp_path):
    log = CompileLog(tmp_path / "compile.log")
    log.attach()
    emit(log._handler, {"str": ["a", 0]})
    child = os.fork()
    if not child:
        emit(log._handler, {"str": ["of the child", 1]})
        os._exit(0)
    os.waitpid(child, 0)
    assert log.close() == []
    assert "of the child" not in log.path.read_text()


def test_what_a_log_says_of_cuda_graphs_and_kernels_stands_in_their_findings(tmp_path):
    stacks = {
        f"triton_poi_fused_add_{k}:{k}": ['  File "/home/me/train.py", line 7, in net\n    y = x + 1']
        for k in range(50)
    }
    kernels = artifact("inductor_provenance_tracking_kernel_stack_traces", json.dumps(stacks))
    skipped = metrics(0, 0, duration_us=9, cudagraph_skip_reason="skipping cudagraphs due to mutated inputs")
    log = _written(tmp_path / "cuda.log", FILE + started(0, 0, 3) + kernels + skipped)
    story = case.compiled_and_waited_for()
    cause = finding(story, log, "no-cudagraph").cause
    assert (
        "PyTorch left CUDA graphs out: skipping cudagraphs due to mutated inputs (0/0, ~/train.py(3): step)." in cause
    )
    assert "of ~/train.py(7): net" in finding(story, log, "inductor-name-legend").evidence[0].note


def test_variants_and_first_compilations_are_explained_by_the_log(tmp_path):
    again = [artifact("recompile_reasons", f"0/{i - 1}: n == {i}", 0, i) for i in range(1, 5)]
    log = _written(
        tmp_path / "variants.log", FILE + started(0, 0, 3) + metrics(0, 0, graph_op_count=5) + "".join(again)
    )
    assert (
        "A guard of the compiled code failed: n == 1 (~/train.py(3): step)."
        in finding(case.a_variant_for_every_size(), log, "hash-churn").cause
    )
    first = finding(case.first_call_is_recorded(), log, "compile-in-window").evidence[0]
    assert (first.name, first.note, first.time_us) == ("~/train.py(3): step", "0/0, 5 operators", 900)
