"""A finding is plain data, whatever a rule computed with."""

import msgspec
import numpy as np
import pytest

from tests.traces import Story, a_finding
from torchwhy.errors import ArgumentError
from torchwhy.finding import Finding, severity_of
from torchwhy.report.trace_report import describe
from torchwhy.rules.diagnose import Diagnosis
from torchwhy.trace.model.intervals import Intervals, Window


@pytest.fixture
def trace():
    story = Story(gpu=None)
    story.op("aten::mm", 0, 10)
    return story.trace()


@pytest.mark.parametrize("number", [np.float64(2.5), np.float32(2.5), np.int64(2)])
def test_numpy_numbers_are_written_as_json(trace, number):
    finding = a_finding(trace.window, time_us=number)
    report = msgspec.json.decode(msgspec.json.encode(describe(trace, Diagnosis((finding,), {}, {}))))
    assert report["findings"][0]["time_us"] == float(number)


@pytest.mark.parametrize("field", ["severity", "confidence"])
def test_an_unknown_rank_is_refused(trace, field):
    with pytest.raises(ArgumentError, match=f"{field} must be one of .*, got 'huge'"):
        a_finding(trace.window, **{field: "huge"})


def test_time_and_severity_follow_from_the_stretches(trace):
    half = Intervals.union([0], [500_000])
    window = Window("a millisecond", 0, 1_000_000)
    finding = Finding(title="half", confidence="high", window=window, evidence=(), cause="", fix="", stretches=half)
    assert (finding.time_us, finding.severity) == (500.0, "high")
    assert (a_finding(window, severity="").severity, severity_of(0.05)) == ("low", "medium")
