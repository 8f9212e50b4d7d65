"""`torchwhy try` on real programs: what was planted is mended from outside; a healthy program has nothing to mend."""

import json
from pathlib import Path

import pytest

from tests.command_line import run_apart

TESTS = Path(__file__).parents[1]

pytestmark = pytest.mark.many  # each takes minutes


@pytest.mark.parametrize(
    ("program", "helps"),
    [
        ("programs/faulty/workers_each_epoch.py", {"no loader workers"}),
        ("programs/healthy/perceptron.py", set()),
    ],
)
def test_what_is_planted_is_mended(program, helps, tmp_path):
    words = ("try", "--budget", "110", "--format", "json", TESTS / program)
    ended = run_apart(*words, folder=tmp_path, environment={"OMP_NUM_THREADS": "1"})
    assert ended.returncode == (0 if helps else 1), ended.stderr
    answer = json.loads(ended.stdout)
    assert helps <= set(answer["best"])
    if not helps:
        assert answer["kind"] == "nothing helps"
