"""`torchwhy profile --compile-log` leaves the compiler's log in the folder, and the findings take reasons from it."""

from importlib.metadata import version

import pytest

from torchwhy import load


def test_the_folder_has_the_log_and_the_report_the_reason(profile_program):
    ran = profile_program("--compile-log", "--step-on", "__main__:step", program="graph_break.py")
    assert (ran.status, ran.out) == (0, "1 graph break\n")
    trace = load(ran.folder / "trace.json.gz")
    assert (trace.compile_log.ours, trace.compile_log.pytorch) == (True, version("torch"))
    [broke] = trace.compile_log.breaks
    assert (broke.line.rpartition("/")[2], broke.code) == ("graph_break.py(11): step", "torch._dynamo.graph_break()")
    [finding] = [one for one in ran.json("findings.json")["findings"] if one["slug"] == "graph-breaks"]
    assert finding["evidence"][0]["name"].endswith("graph_break.py(11): step")
    assert finding["evidence"][0]["note"].startswith("Call to `torch._dynamo.graph_break()`")
    assert finding["cause_is"] == "linked"


@pytest.mark.many
def test_without_the_option_there_is_none(profile_program):
    ran = profile_program("--step-on", "__main__:step", program="graph_break.py")
    assert not (ran.folder / "compile.log").exists()
    assert load(ran.folder / "trace.json.gz").compile_log is None
