"""`torchwhy.diff` as Python code calls it."""

import pytest

import torchwhy
from tests.difference.pairs import loop
from tests.ranks.jobs import write_job
from torchwhy.errors import ArgumentError, ArgumentTypeError, TraceError

STEADY = [1000, 1010, 990, 1005, 995]


@pytest.fixture
def pair(tmp_path):
    return loop(STEADY).write(tmp_path / "a.json"), loop([2 * us for us in STEADY]).write(tmp_path / "b.json")


def test_traces_and_paths_compare(pair):
    a, b = pair
    for first, second in ((a, b), (str(a), torchwhy.load(b)), (torchwhy.load(a), torchwhy.load(b))):
        assert torchwhy.diff(first, second).verdict.sentence.startswith("B is 2.00x slower")


def test_jobs_and_folders_of_ranks_compare(tmp_path):
    before = write_job(tmp_path / "before", 3, compute=[300, 300, 300], steps=8)
    after = write_job(tmp_path / "after", 3, compute=[300, 600, 300], steps=8)
    for a, b in ((before, after), (torchwhy.load_job(before), str(after))):
        found = torchwhy.diff(a, b)
        assert (found.rank, found.difference.verdict.kind) == (1, "slower")
        assert "Rank 1 computes longest on B" in str(found)


def test_a_trace_and_a_job_do_not_compare(pair, tmp_path):
    job = write_job(tmp_path / "job", 2)
    with pytest.raises(
        ArgumentError, match=r"two traces or two jobs, got one of each; a trace of the job is .*rank0.json"
    ):
        torchwhy.diff(pair[0], job)


def test_what_is_neither_is_named(pair):
    with pytest.raises(ArgumentTypeError, match="b must be a trace of load, a job of load_job, or a path, got int"):
        torchwhy.diff(pair[0], 7)
    with pytest.raises(TraceError, match=r"missing.json does not exist"):
        torchwhy.diff(pair[0], "missing.json")


def test_jobs_without_ranks_do_not_compare(tmp_path):
    jobs = []
    for name in ("before", "after"):
        (tmp_path / name).mkdir()
        for file in ("one.json", "two.json"):
            loop(STEADY).write(tmp_path / name / file)
        jobs.append(torchwhy.load_job(tmp_path / name))
    with pytest.raises(ArgumentError, match="must contain their ranks to be compared; name one trace of it"):
        torchwhy.diff(*jobs)


def test_a_difference_shows_itself(pair):
    found = torchwhy.diff(*pair)
    assert repr(found) == str(found)
    assert "B is 2.00x slower" in repr(found)
    page = found._repr_html_()
    assert "<" in page
    assert "B is 2.00x slower" in page
