"""The worked example of `torchwhy try`: anomaly detection that was left on is seen, and taking it out helps."""

import json
from pathlib import Path

import pytest

from tests.command_line import run_apart
from tests.tuning.warm_runs import warm_runs
from torchwhy.capture.launch.program import Program
from torchwhy.tuning.catalogue import changes_for
from torchwhy.tuning.results import agreement_of

PROGRAM = Path(__file__).parents[2] / "examples" / "left_on" / "train.py"


def test_the_change_fits_and_leaves_the_results(tmp_path):
    runs = warm_runs(Program(str(PROGRAM), ()), tmp_path)
    unchanged = runs.run(None, limit_s=60, source="optimizer", fewest=6, most_s=0)
    change = changes_for(unchanged.facts, {"anomaly-mode": 0.5})[0]
    assert change.name == "no anomaly detection"
    changed = runs.run(change, limit_s=60, source="optimizer", fewest=6, most_s=0)
    assert (unchanged.facts.anomaly, changed.facts.anomaly) == (True, False)
    assert agreement_of([unchanged.results], [changed.results]).largest == 0


@pytest.mark.many
def test_the_command_says_so(tmp_path):
    ended = run_apart(
        "try", "--budget", "110", "--format", "json", PROGRAM, folder=tmp_path, environment={"OMP_NUM_THREADS": "1"}
    )
    assert ended.returncode == 0, ended.stderr
    answer = json.loads(ended.stdout)
    assert "no anomaly detection" in answer["best"]
    assert answer["changes"][0]["answers"] == ["anomaly-mode"]
