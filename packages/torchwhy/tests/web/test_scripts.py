"""The page's scripts under Node, where it is installed."""

import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.page.generated import generated
from torchwhy.page.arguments import ArgumentColumn
from torchwhy.page.block import block_of
from torchwhy.page.timeline import timeline_of

HERE = Path(__file__).parent
node = shutil.which("node")
pytestmark = pytest.mark.skipif(node is None, reason="node is not installed")


def run(*arguments):
    ran = subprocess.run([node, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def test_each_module_does_what_its_tests_say():
    run("--test", *sorted(HERE.glob("*.test.mjs")))


@pytest.mark.parametrize("unit", [1, 1000])
def test_what_is_read_is_what_was_written(tmp_path, unit):
    timeline = replace(timeline_of(generated(5000)), arguments=())
    work = timeline.work[:1]
    told = [ArgumentColumn("none", work[:0], work[:0], ("x",)), ArgumentColumn("grid", work, work * 0, ("[1, 2, 3]",))]
    backward = np.array([3, 8, 9], np.int32)  # of operators that are no pair in truth: the numbers are what is written
    timeline = replace(timeline, arguments=tuple(told), backward=backward, forward=np.array([7, 1, 2], np.int32))
    file = tmp_path / "block"
    file.write_bytes(block_of(timeline, unit=unit))
    found = json.loads(run(HERE / "sums.mjs", file))
    assert found == {
        "count": len(timeline),
        "starts": int((timeline.start // unit * unit).sum()),
        "ends": int((timeline.end // unit * unit).sum()),
        "names": int(timeline.name.sum()),
        "kinds": int(timeline.kind.sum()),
        "launches": int(timeline.launch.sum()),
        "works": int(timeline.work.sum()),
        "passes": [list(pair) for pair in zip(timeline.backward.tolist(), timeline.forward.tolist(), strict=True)],
        "texts": [timeline.names[0], timeline.names[-1]],
        "overlaps": 0,
        "path": int(timeline.path.start.sum() + timeline.path.event.sum()),
        "counters": [
            [
                curve.label,
                curve.unit,
                pytest.approx(values.sum() / curve.divisor),
                pytest.approx(means.sum() / curve.divisor),
            ]
            for curve in timeline.counters
            for values, means in [(curve.values, curve.values if curve.means is None else curve.means)]
        ],
        "told": [[], [["grid", "[1, 2, 3]"]]],
        "bands": [[band.label, band.rows] for band in timeline.bands],
        "steps": [[step.name, step.start] for step in timeline.steps],
    }
