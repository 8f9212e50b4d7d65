"""`torchwhy explain FOLDER`, as `torchwhy profile` and PyTorch's own handlers leave folders behind."""

import pytest

from tests.analysis.programs import computing, training
from tests.command_line import run_here
from tests.ranks.jobs import rank_story


def explain(folder):
    ran = run_here("explain", folder.name, folder=folder.parent, environment={"COLUMNS": "200"})
    return ran.returncode, ran.stdout, " ".join(ran.stderr.split())


@pytest.fixture
def log(tmp_path):
    (tmp_path / "log").mkdir()
    return tmp_path / "log"


def test_windows_of_one_process_are_not_ranks(log):
    for at, story in ((1700000000000000003, computing()), (1700000000000000001, training(load=480))):
        story.write(log / f"host_77.{at}.pt.trace.json")
    status, out, err = explain(log)
    assert status == 0
    assert "INPUT-BOUND" in out
    assert "Ranks" not in out
    assert err == (
        "explaining the first window, host_77.1700000000000000001.pt.trace.json; "
        "also there: host_77.1700000000000000003.pt.trace.json"
    )


def test_windows_of_ranks_are_told(log):
    for rank in range(2):
        for window in range(2):
            story = rank_story(rank, 2, compute=[300, 300], first=3 + 10 * window)
            story.write(log / f"host_{77 + rank}.{window + 1}.pt.trace.json")
    status, out, err = explain(log)
    assert status == 0
    assert "more than once" not in out
    assert err == "of several windows of a rank the first is read, such as host_77.1.pt.trace.json"


def test_processes_that_may_be_no_ranks_are_told(log):
    for process in (77, 78):
        computing().write(log / f"host_{process}.1.pt.trace.json")
    status, _, err = explain(log)
    assert status == 0
    assert err.startswith("the traces in log have no rank numbers: if they are not of one program, explain one")


def test_several_runs_are_compared_and_other_questions_are_an_error(log):
    for run in ("train", "train-2"):
        (log / run).mkdir()
        (log / run / "run.json").write_text("{}")
        computing().write(log / run / "trace.json.gz")
    status, out, err = explain(log)
    assert (status, err) == (0, "")
    assert "TOO FEW RUNS TO SAY WHICH STANDS OUT" in out
    assert "2 of 2 runs are compute-bound; open one with `torchwhy explain log/train`." in out
    ran = run_here("timeline", log.name, folder=log.parent)
    said = "error: timeline is about one run, and log holds several runs; ask log/train\n"
    assert (ran.returncode, ran.stdout, ran.stderr) == (2, "", said)
