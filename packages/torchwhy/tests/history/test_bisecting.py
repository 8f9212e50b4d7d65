"""The search for the commit that made a program slower, in repositories made for it."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from tests.command_line import run_apart, run_here
from torchwhy.errors import ArgumentError
from torchwhy.history.bisecting import CommandFailedError, bisect, measure_of
from torchwhy.history.document import bisection_document
from torchwhy.history.git import GitError, Repository, commit_of
from torchwhy.present.document import Table

IDENTITY = {
    "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.org", "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.org", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1",
}  # fmt: skip


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """Return a function that makes a repository with one commit for each text of `program.py`."""
    for name, value in IDENTITY.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("GIT_DIR", raising=False)

    def make(texts):
        made = Repository(tmp_path)
        made.ask("init", "--quiet", "--initial-branch", "main")
        for i, text in enumerate(texts):
            (tmp_path / "program.py").write_text(text)
            made.ask("add", "program.py")
            made.ask("commit", "--quiet", "--allow-empty", "-m", f"step {i}")
        return made, made.ask("rev-list", "--reverse", "main").split()

    return make


def timed(repository, random, spread=0.004):
    """A program whose time is the number in its file, with noise."""

    def measure():
        text = (repository.folder / "program.py").read_text()
        if text == "broken":
            raise CommandFailedError("it does not run")
        return float(text) * float(np.exp(spread * random.standard_t(3)))

    return measure


def state(repository):
    return (
        repository.ask("symbolic-ref", "--short", "HEAD"),
        repository.ask("status", "--porcelain"),
        repository.knows("bisect", "log"),
    )


@pytest.mark.parametrize("planted", [2, 7])
def test_three_percent_are_traced_to_their_commit(repository, planted):
    made, commits = repository([f"{100 + i / 1000}" if i < planted else f"{103 + i / 1000}" for i in range(8)])
    found = bisect(made, timed(made, np.random.default_rng(planted)), good=commits[0], command="x")
    assert (found.kind, found.commits) == ("found", (commits[planted],))
    assert found.shift.low <= 1.03 <= found.shift.high * 1.005
    assert f'"step {planted}" takes' in found.sentence
    assert state(made) == ("main", "", False)


def test_without_a_difference_nothing_is_searched(repository):
    made, commits = repository([f"{100 + i / 1000}" for i in range(6)])
    found = bisect(made, timed(made, np.random.default_rng(0)), good=commits[0])
    assert (found.kind, found.commits, len(found.tried)) == ("no difference", (), 2)
    assert state(made) == ("main", "", False)


def test_a_commit_that_does_not_run_is_skipped(repository):
    made, commits = repository(["100", "100.1", "broken", "100.2", "110", "110.1", "110.2"])
    found = bisect(made, timed(made, np.random.default_rng(0)), good=commits[0])
    assert (found.kind, found.commits) == ("found", (commits[4],))
    assert {each.commit: each.verdict for each in found.tried}.get(commits[2], "skipped") == "skipped"


def test_what_hides_among_skipped_commits_is_said(repository):
    made, commits = repository(["100", "broken", "110"])
    said = []
    found = bisect(made, timed(made, np.random.default_rng(0)), good=commits[0], say=said.append)
    assert (found.kind, set(found.commits)) == ("only skipped", {commits[1], commits[2]})
    assert said[-1].endswith("is skipped (0 runs)")
    good, bad, skipped = next(block for block in bisection_document(found).blocks if isinstance(block, Table)).rows
    intervals = [row.cells[3] for row in (good, bad, skipped)]
    assert (intervals[0], intervals[2]) == ("-", "-"), "nothing was measured against the good commit"
    assert " .. " in intervals[1]
    assert skipped.cells[2] == "-"
    assert state(made) == ("main", "", False)


def test_an_error_leaves_the_branch_checked_out(repository):
    made, commits = repository(["100", "110", "broken"])
    with pytest.raises(CommandFailedError, match="it does not run"):
        bisect(made, timed(made, np.random.default_rng(0)), good=commits[0])
    assert state(made) == ("main", "", False)


@pytest.mark.skipif(os.name == "nt", reason="sh, and signals")
def test_a_search_that_is_terminated_leaves_the_branch_checked_out(repository):
    made, commits = repository(["100", "110"])
    ran = run_apart("bisect", "--good", commits[0], "sh", "-c", "kill -TERM $PPID; sleep 5", folder=made.folder)
    assert ran.returncode == 143, ran.stderr
    assert state(made) == ("main", "", False)


def test_a_detached_commit_is_checked_out_again(repository):
    made, commits = repository(["100", "100.1", "110"])
    made.ask("checkout", "--quiet", "--detach", commits[1])
    bisect(made, timed(made, np.random.default_rng(0)), good=commits[0], bad="main")
    assert made.ask("rev-parse", "HEAD") == commits[1]


def test_bad_arguments_are_refused_before_anything_runs(repository):
    made, commits = repository(["100", "110"])

    def never():
        raise AssertionError("it ran")

    for options, said in (
        ({"good": "nothing"}, "--good must be a commit, got 'nothing'"),
        ({"good": commits[0], "bad": "nothing"}, "--bad must be a commit, got 'nothing'"),
        ({"good": commits[1], "bad": commits[0]}, "--good must be an ancestor of --bad"),
        ({"good": commits[1]}, "--good must be an ancestor of --bad"),
        ({"good": commits[0], "runs": 2}, "--runs must be 3 at least, got 2"),
    ):
        with pytest.raises(ArgumentError, match=said):
            bisect(made, never, **options)
    (made.folder / "program.py").write_text("mine")
    with pytest.raises(ArgumentError, match="the working tree has uncommitted changes"):
        bisect(made, never, good=commits[0])
    assert (made.folder / "program.py").read_text() == "mine"
    made.ask("checkout", "--quiet", "program.py")
    made.ask("bisect", "start")
    with pytest.raises(ArgumentError, match="a bisection is under way"):
        bisect(made, never, good=commits[0])


def test_outside_a_repository_git_says_so(tmp_path):
    with pytest.raises(GitError, match="not a git repository"):
        bisect(Repository(tmp_path), lambda: 1.0, good="a")
    assert commit_of(tmp_path).id == ""
    assert commit_of(tmp_path, "v1").id == "v1"


def test_a_commit_is_told_with_its_time_and_whether_files_differ(repository):
    made, commits = repository(["1"])
    found = commit_of(made.folder)
    assert (found.id, found.when_s) == (commits[0], float(made.ask("show", "-s", "--format=%ct")))
    (made.folder / "program.py").write_text("2")
    assert commit_of(made.folder).id == f"{commits[0]}-dirty"
    assert commit_of(made.folder, "main").id == commits[0]


def test_a_number_that_the_command_prints_is_its_metric(tmp_path):
    program = "print('loss: 9'); print('ms = 1.5e1'); print('my.ms: 3'); print('ms: 25 of 100')"
    assert measure_of([sys.executable, "-c", program], "ms", tmp_path)() == 20.0
    with pytest.raises(CommandFailedError, match=r"printed no line such as speed: 12\.3"):
        measure_of([sys.executable, "-c", program], "speed", tmp_path)()


def test_a_run_that_the_command_leaves_is_read(tmp_path):
    write = (
        "import json, sys; open(sys.argv[1], 'w').write(json.dumps({'schema': 1, 'kind': 'measurement', "
        "'name': 'x', 'times_s': [0.003, 0.001, 0.002]}))"
    )
    assert measure_of([sys.executable, "-c", write, "{out}"], "step", tmp_path)() == pytest.approx(2000)
    with pytest.raises(CommandFailedError, match=r"left no run at \{out\}"):
        measure_of([sys.executable, "-c", "pass", "{out}"], "step", tmp_path)()


def test_a_command_that_fails_is_said_with_its_last_line(tmp_path):
    with pytest.raises(CommandFailedError, match="ended with exit status 1: ValueError: no data"):
        measure_of([sys.executable, "-c", "raise ValueError('no data')"], "step", tmp_path)()
    with pytest.raises(CommandFailedError, match="`no-such-program` cannot be run"):
        measure_of(["no-such-program"], "step", tmp_path)()


def test_a_commands_own_time_counts_without_a_metric(tmp_path):
    begun = measure_of([sys.executable, "-S", "-c", "pass"], "step", tmp_path)()
    assert 100 < begun < 60e6


def test_the_command_finds_the_commit(repository):
    """In real processes; what they print is made up, since no test may depend on how busy the machine is."""
    line = "import os; print('ms:', {} + int.from_bytes(os.urandom(2), 'big') / 65536)\n"
    made, commits = repository([line.format(ms) + f"#{i}\n" for i, ms in enumerate((100, 100, 120, 120))])
    words = (
        "--good",
        commits[0],
        "--runs",
        "4",
        "--metric",
        "ms",
        "--format",
        "json",
        sys.executable,
        "-S",
        "program.py",
    )
    ran = run_here("bisect", *words, folder=made.folder)
    assert ran.returncode == 0, ran.stderr
    answer = json.loads(ran.stdout)
    assert (answer["kind"], answer["commits"]) == ("found", [commits[2]])
    assert (
        subprocess.run(["git", "-C", made.folder, "status", "--short"], capture_output=True, check=True).stdout == b""
    )
    assert run_here("bisect", "--good", "x", "true", folder=made.folder).returncode == 2
    assert run_here("bisect", "--good", commits[0], "false", folder=made.folder).returncode == 3
