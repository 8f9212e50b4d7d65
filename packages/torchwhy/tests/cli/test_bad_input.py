"""Every command that reads or writes files, with bad input: an error in a sentence, and nothing left behind."""

import json
import random
import resource
import webbrowser
from contextlib import contextmanager

import pytest
import typer

from tests.analysis.programs import computing
from tests.command_line import run_here
from tests.ranks.jobs import write_job
from torchwhy.cli import view
from torchwhy.cli.app import RECORD, app

READERS = {
    name: command
    for name, command in typer.main.get_command(app).commands.items()
    if command.rich_help_panel != RECORD  # the others run programs
}
WITH_PATHS = [name for name in READERS if any(one.param_type_name == "argument" for one in READERS[name].params)]
WRITERS = [name for name in READERS if any(one.name == "output" for one in READERS[name].params)]

FILES = {
    "missing.json": None,
    "empty.json": b"",
    "folder": {},
    "binary.json": random.Random(0).randbytes(2000),
    "pickle.json": b"\x80\x04\x95" + bytes(range(200)),
    "list.json": b"[1, 2, 3]",
    "number.json": b"1e999",
    "other.json": json.dumps({"schema": 1, "kind": "measurement", "metrics": [], "traceEvents": 7}).encode(),
    "cut.json": b'{"traceEvents": [{"ph": "X", "ts": 1, "dur": 2, "na',
    "nested.json": b"[" * 100_000,
    "measured.json": b'{"schema": 1, "kind": "measurement", "metrics": ' + b"[" * 100_000,
    "not-utf-8.json": b'{"schema": 1, "kind": "measurement", "metrics": "\xff"}',
    "huge.json": b'{"schema": 1, "metrics": {"x": 1' + b"0" * 5000 + b'}, "times_s": [1e400], "traceEvents": [1e999]}',
    "n\udcffo \u2028 \U0001f600.json": b"{",
    "x" * 300 + ".json": None,
    "empty.json/below": None,
}


def words_of(name, given, output):
    """A command line with the same word for each argument, which writes, if it does, to `output`."""
    words, fixed = [], {"action": "add", "to": "csv", "good": "HEAD"}
    for one in READERS[name].params:
        if one.param_type_name == "argument":
            words.append(fixed.get(one.name, given))
        elif one.name == "output":
            words += [max(one.opts, key=len), output]
        elif one.required or one.name in fixed:
            words += [max(one.opts, key=len), fixed[one.name]]
    return [name, *words]


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder to work in, and one for temporary files, which must stay empty."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    monkeypatch.setattr(view, "WAIT_S", 0.0)
    monkeypatch.setattr(webbrowser, "open", lambda address: True)
    for name in ("temporary", "here"):
        (tmp_path / name).mkdir()
    return tmp_path / "here"


def everything(place):
    return sorted((path, path.lstat().st_size) for path in place.parent.rglob("*") if ".torchwhy" not in path.parts)


def assert_is_said(ran, words):
    """An error is one sentence on stderr, and the answer is empty."""
    assert ran.returncode in (2, 3), (words, ran)
    assert ran.stdout == "" or words[0] == "view", (words, ran)  # it prints its address first
    usage = ran.stderr.startswith("Usage:")
    errors = [line for line in ran.stderr.splitlines() if line.startswith("error: ")]
    assert usage or len(errors) == 1, (words, ran)
    assert "Traceback" not in ran.stderr, (words, ran)
    assert len(ran.stderr) < 2000, (words, ran)


@pytest.mark.parametrize("name", WITH_PATHS)
def test_bad_files_are_an_error_and_nothing_is_left(name, place):
    for given, content in FILES.items():
        if isinstance(content, dict):
            (place / given).mkdir()
        elif content is not None:
            (place / given).write_bytes(content)
    before = everything(place)
    for given, content in FILES.items():
        if name == "mcp" and isinstance(content, dict):
            continue  # an empty folder is served
        words = words_of(name, given, "out.html")
        ran = run_here(*words, folder=place)
        if ran.returncode == 0:  # what damaged files still hold is read
            (place / "out.html").unlink(missing_ok=True)
        else:
            assert_is_said(ran, words)
        assert everything(place) == before, words


@contextmanager
def at_most(size):
    """Let this process write no larger files, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("name", WRITERS)
def test_what_cannot_be_written_is_an_error_and_nothing_is_left(name, place):
    write_job(place / "job", 2)
    computing().write(place / "trace.json")
    (place / "there").mkdir()
    run_here("history", "add", "trace.json", folder=place)
    given = {"merge": "job"}.get(name, "trace.json")
    before = everything(place)

    def written(output):
        words = words_of(name, given, output)
        words = ["history", "page", "-o", output] if name == "history" else words
        return run_here(*words, folder=place), words

    for output in ("no/such/out.html", "there", "trace.json/out", "x" * 300):
        ran, words = written(output)
        if name == "skill" and ran.returncode == 0:  # it makes folders
            pytest.skip("folders are made")
        assert_is_said(ran, words)
        assert everything(place) == before, words
    with at_most(200):
        ran, words = written("full.html")
    assert_is_said(ran, words)
    assert everything(place) == before, words


@pytest.mark.parametrize("content", [b"\xff[torchwhy]", b"torchwhy = " + b"[" * 100_000, b"torchwhy"])
def test_bad_settings_are_an_error_of_each_command_that_reads_them(place, content):
    computing().write(place / "trace.json")
    (place / "counts.json").write_text(json.dumps({"schema": 1, "metrics": {}}))
    (place / "pyproject.toml").write_bytes(content)
    before = everything(place)
    for name in ("explain", "report", "diff", "timeline", "gate"):
        given = "counts.json" if name == "gate" else "trace.json"
        words = words_of(name, given, "out.html")
        ran = run_here(*words, folder=place)
        assert_is_said(ran, words)
        assert "pyproject.toml" in ran.stderr
        assert everything(place) == before, words
