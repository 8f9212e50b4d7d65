"""`torchwhy profile --pid`: a running process records itself on request. This test's process is the one recorded."""

import json
import os
import stat
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

import torchwhy
from tests.command_line import run_here
from torchwhy.attach import process
from torchwhy.capture import attached
from torchwhy.capture.attached import Request
from torchwhy.errors import TorchWhyError


@pytest.fixture(autouse=True)
def private(tmp_path, monkeypatch):
    """Temporary files of this test alone."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


@pytest.fixture
def listening(monkeypatch):
    """This process listens, and no longer after the test."""
    monkeypatch.setattr(attached, "_LOOK_S", 0.01)
    monkeypatch.setattr(attached, "_listening", [])
    torchwhy.listen()
    folder = attached.listening_folder(os.getpid())
    yield folder
    (folder / attached.READY).unlink()
    attached._listening[0].join()


def multiply(until):
    a = torch.ones(8, 8)
    while not until.wait(0.001):
        a.mm(a)


@contextmanager
def working():
    """A thread of the program multiplies matrices meanwhile."""
    over = threading.Event()
    thread = threading.Thread(target=multiply, args=(over,))
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def request(tmp_path, seconds=0.1, **changed):
    return Request(str(tmp_path / "run"), seconds, **changed)


def test_a_listening_process_records_the_threads_that_work(tmp_path, listening):
    with working():
        answer = process.record_process(os.getpid(), request(tmp_path))
    assert answer.state == "done"
    assert answer.folder == str(tmp_path / "run")
    assert "aten::mm" in torchwhy.load(tmp_path / "run" / "trace.json.gz").ops()["name"]
    said = (tmp_path / "run" / "report.txt").read_text()
    assert "still running" in said
    assert "a part of the run as one window" in said
    assert sorted(path.name for path in listening.iterdir()) == ["answer.json", "ready.json"]


def test_a_second_recording_follows_the_first(tmp_path, listening):
    for number in (1, 2):
        with working():
            answer = process.record_process(os.getpid(), request(tmp_path, 0.05))
        assert Path(answer.folder).name == ("run" if number == 1 else "run-2")


def test_the_main_thread_alone_is_recorded_with_shapes(tmp_path, monkeypatch):
    monkeypatch.setattr(attached, "may_work", lambda thread: False)
    folder = tmp_path / "private"
    folder.mkdir()
    (folder / attached.REQUEST).write_text(json.dumps({"path": str(tmp_path / "run"), "seconds": 0.1}))
    attached.serve(str(folder))
    a, state = torch.ones(8, 8), ""
    while state not in {"done", "failed"}:
        a.mm(a)
        if (folder / attached.ANSWER).exists():
            state = json.loads((folder / attached.ANSWER).read_text())["state"]
    trace = torchwhy.load(tmp_path / "run" / "trace.json.gz")
    rows = trace.ops(by_shape=True).rows()
    assert [row["input_dims"] for row in rows if row["name"] == "aten::mm"] == ["[[8,8],[8,8]]"]


def test_an_interrupt_ends_it_early_and_keeps_it(tmp_path, listening):
    def interrupted_once(text):
        if "recording" in text:
            raise KeyboardInterrupt

    with working():
        answer = process.record_process(os.getpid(), request(tmp_path, 600), interrupted_once)
    assert Path(answer.folder, "trace.json.gz").is_file()


def test_python_3_14_enters_a_process_that_does_not_listen(tmp_path, monkeypatch):
    scripts = []

    def remote_exec(pid, script):
        assert pid == os.getpid()
        scripts.append(Path(script))
        exec(compile(Path(script).read_text(), script, "exec"), {})

    monkeypatch.setattr(sys, "remote_exec", remote_exec, raising=False)
    path = list(sys.path)
    with working():
        answer = process.record_process(os.getpid(), request(tmp_path))
    assert Path(answer.folder, "trace.json.gz").is_file()
    assert sys.path == path
    assert not scripts[0].parent.exists()


def test_a_process_without_this_package_says_so(tmp_path, monkeypatch):
    def remote_exec(pid, script):
        text = Path(script).read_text().replace("torchwhy.capture.attached", "torchwhy.is_not_there")
        exec(compile(text, script, "exec"), {})

    monkeypatch.setattr(sys, "remote_exec", remote_exec, raising=False)
    with pytest.raises(TorchWhyError, match="torchwhy cannot be imported there: ModuleNotFoundError"):
        process.record_process(os.getpid(), request(tmp_path))
    assert not list(tmp_path.glob("torchwhy-pid-*"))


@pytest.fixture
def late_scripts(monkeypatch):
    """Scripts that were given to a process which does not run them in time."""
    scripts = []
    monkeypatch.setattr(sys, "remote_exec", lambda pid, script: scripts.append(Path(script)), raising=False)
    monkeypatch.setattr(process, "_ANSWER_S", 0.05)
    return scripts


def test_a_script_that_comes_too_late_only_removes_its_folder(tmp_path, late_scripts):
    with pytest.raises(TorchWhyError, match="its main thread runs no Python"):
        process.record_process(os.getpid(), request(tmp_path))
    folder = late_scripts[0].parent
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    exec(compile(late_scripts[0].read_text(), str(late_scripts[0]), "exec"), {})
    assert not folder.exists()
    assert not (tmp_path / "run").exists()


def test_a_script_that_began_when_the_request_was_withdrawn_removes_its_folder(tmp_path, late_scripts):
    with pytest.raises(TorchWhyError, match="its main thread runs no Python"):
        process.record_process(os.getpid(), request(tmp_path))
    folder = late_scripts[0].parent
    attached._serve_once(folder)
    assert not folder.exists()


def test_nothing_remains_of_a_process_that_ends_before_it_answers(tmp_path, late_scripts, monkeypatch):
    lives = iter([True])
    monkeypatch.setattr(process, "_lives", lambda pid: next(lives, False))
    with pytest.raises(TorchWhyError, match="has ended"):
        process.record_process(os.getpid(), request(tmp_path))
    assert not late_scripts[0].parent.exists()


def test_a_recording_ends_when_the_process_that_asked_has_removed_the_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(attached, "may_work", lambda thread: True)
    folder = tmp_path / "private"
    folder.mkdir()
    asked = Request(str(tmp_path / "run"), 600)
    recording = attached._Attached(asked, folder)
    monkeypatch.setattr(attached, "_tell", lambda folder, answer: folder.rmdir())
    with working():
        answer = recording.run()
    assert Path(answer.folder, "trace.json.gz").is_file()


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ProcessLookupError(), "there is no process"),
        (PermissionError(1, "Operation not permitted"), "CAP_SYS_PTRACE"),
        (RuntimeError("Failed to find the PyRuntime section"), "it must run Python 3"),
        (OSError("no such thing"), "it must run Python 3"),
    ],
)
def test_why_a_process_cannot_be_entered(error, said, tmp_path, monkeypatch):
    def remote_exec(pid, script):
        raise error

    monkeypatch.setattr(sys, "remote_exec", remote_exec, raising=False)
    with pytest.raises(TorchWhyError, match=said):
        process.record_process(os.getpid(), request(tmp_path))
    assert not list(tmp_path.iterdir())


def test_a_process_without_pytorch_records_nothing(tmp_path, listening, monkeypatch):
    monkeypatch.setattr(attached, "sys", SimpleNamespace(modules={}))
    with pytest.raises(TorchWhyError, match="has not imported PyTorch"):
        process.record_process(os.getpid(), request(tmp_path))
    assert not (tmp_path / "run").exists()


def test_a_process_that_got_the_number_of_one_that_listened_is_not_taken_for_it(tmp_path, listening, monkeypatch):
    monkeypatch.delattr(sys, "remote_exec", raising=False)
    (listening / attached.READY).write_text(json.dumps({"started": "7"}))
    with pytest.raises(TorchWhyError, match=r"torchwhy\.listen\(\)"):
        process.record_process(os.getpid(), request(tmp_path))
    assert not (listening / attached.REQUEST).exists()


def test_a_folder_that_others_may_enter_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(attached, "_listening", [])
    folder = attached.listening_folder(os.getpid()).parent
    folder.mkdir()
    folder.chmod(0o755)
    with pytest.raises(TorchWhyError, match="no other user may enter"):
        torchwhy.listen()


@pytest.mark.parametrize(
    ("options", "status", "said"),
    [
        (["--pid", "0"], 3, "there is no process 0"),
        (["--pid", "1", "train.py"], 2, "not a script"),
        (["--pid", "1", "--seconds", "0"], 2, "--seconds must be > 0"),
        (["--pid", "1", "--attach", "http://localhost"], 2, "give one"),
    ],
)
def test_misuse(options, status, said, tmp_path):
    done = run_here("profile", *options, folder=tmp_path)
    assert done.returncode == status
    assert said in " ".join(done.stderr.split())
