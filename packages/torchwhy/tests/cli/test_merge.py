"""`torchwhy merge` as a person runs it."""

import json

import pytest

from tests.command_line import run_here
from tests.ranks.jobs import write_job


def test_the_document_says_what_was_done_to_clocks(tmp_path):
    write_job(tmp_path / "job", 2)
    ran = run_here("merge", "job", "-o", "merged.json.gz", folder=tmp_path)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "by 8 collectives shared with rank 0" in " ".join(ran.stdout.split())
    assert "1 clock moved so that shared collectives end together" in " ".join(ran.stdout.split())
    assert (tmp_path / "merged.json.gz").is_file()


def test_clocks_that_cannot_be_compared_are_said(tmp_path):
    write_job(tmp_path / "job", 3, collectives=0)
    text = " ".join(run_here("merge", "job", "-o", "merged.json", folder=tmp_path).stdout.split())
    assert "Clocks are as they are in the files. It is unknown how those of ranks 1-2 relate" in text


def test_other_formats(tmp_path):
    write_job(tmp_path / "job", 2)
    found = json.loads(run_here("merge", "job", "-o", "m.json", "--format", "json", folder=tmp_path).stdout)
    assert found["schema"] == 1
    assert [rank["rank"] for rank in found["ranks"]] == [0, 1]


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["job"], 2, "Missing option"),
        (["missing", "-o", "m.json"], 3, "missing does not exist"),
        (["job", "-o", "job/rank0.json"], 2, "output must not be a trace of the job"),
        (["job", "-o", "nowhere/m.json"], 3, "cannot write nowhere"),
        (["job", "-o", "m.json", "--format", "xml"], 2, "--format must be one of"),
    ],
)
def test_trouble_is_said(tmp_path, arguments, status, message):
    write_job(tmp_path / "job", 2)
    ran = run_here("merge", *arguments, folder=tmp_path)
    assert ran.returncode == status
    assert message in ran.stderr
    assert "Traceback" not in ran.stderr
