"""A finding is plain data, whatever a rule computed with."""

import msgspec
import numpy as np
import pytest

from profiler.traces import Story
from torchfx.errors import ArgumentError
from torchfx.profiler.finding import Finding
from torchfx.profiler.report.trace_report import describe
from torchfx.profiler.rules.diagnose import Diagnosis


def found(trace, **changes):
    values = {"title": "slow", "severity": "low", "confidence": "high", "time_us": 5.0, "window": trace.window}
    return Finding(**{**values, "evidence": (), "cause": "", "fix": "", **changes})


@pytest.fixture
def trace():
    story = Story(gpu=None)
    story.op("aten::mm", 0, 10)
    return story.trace()


@pytest.mark.parametrize("number", [np.float64(2.5), np.float32(2.5), np.int64(2)])
def test_numpy_numbers_are_written_as_json(trace, number):
    finding = found(trace, time_us=number)
    report = msgspec.json.decode(msgspec.json.encode(describe(trace, Diagnosis((finding,), {}, {}))))
    assert report["findings"][0]["time_us"] == float(number)


@pytest.mark.parametrize("field", ["severity", "confidence"])
def test_an_unknown_rank_is_refused(trace, field):
    with pytest.raises(ArgumentError, match=f"{field} must be one of .*, got 'huge'"):
        found(trace, **{field: "huge"})
