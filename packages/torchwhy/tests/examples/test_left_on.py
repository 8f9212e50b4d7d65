"""The example of `torchwhy try`: anomaly detection that was left on is seen, and taking it out keeps the results."""

from pathlib import Path

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
