"""Clock, power and temperature while a GPU is recorded; a stand-in speaks NVML's calls."""

import ctypes
import json
import threading
from types import SimpleNamespace

import pytest
import torch

import torchwhy
from torchwhy.capture.power_samples import PowerSampler, nvml
from torchwhy.capture.session import Session
from torchwhy.capture.writer import _with_counters


class Nvml:
    """One GPU, whose clock the driver lowers from the third look on; it has no temperature."""

    def __init__(self):
        self.looks = 0
        self.seen = threading.Event()

    def nvmlDeviceGetHandleByUUID(self, name, handle):
        handle._obj.value = 7
        return 0 if name == b"GPU-1-2" else 6

    def nvmlDeviceGetClockInfo(self, handle, kind, found):
        assert handle.value == 7
        self.looks += kind == 1
        if self.looks > 3:
            self.seen.set()
        found._obj.value = {1: 1980 if self.looks < 3 else 1500, 2: 3201}[kind]
        return 0

    def nvmlDeviceGetPowerUsage(self, handle, found):
        found._obj.value = 698_500
        return 0

    def nvmlDeviceGetEnforcedPowerLimit(self, handle, found):
        found._obj.value = 700_000
        return 0

    def nvmlDeviceGetTemperature(self, handle, sensor, found):
        return 3  # NVML_ERROR_NOT_SUPPORTED

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle, found):
        assert isinstance(found._obj, ctypes.c_ulonglong)
        found._obj.value = 0x4 if self.looks >= 3 else 0x1
        return 0


def sampled():
    library = Nvml()
    sampler = PowerSampler(library, {0: "GPU-1-2", 1: "GPU-of-another-driver"})
    library.seen.wait(10)
    sampler.end()
    return sampler


def test_what_the_driver_tells_becomes_counters():
    sampler = sampled()
    assert sampler.devices == (0,)
    events = list(sampler.events(0, 2**62, 0))
    values = {}
    for event in events:
        values.setdefault(event["name"], []).append(event["args"][""])
    assert values["clock (MHz)"][:3] == [1980, 1980, 1500]
    assert set(values["power (W)"]) == {698.5}
    assert set(values["power limit (W)"]) == {700}
    assert values["clock limited by power"][:3] == [0, 0, 1]
    assert set(values["clock limited by heat"]) == {0}
    assert "temperature (C)" not in values
    times = [event["ts"] for event in events if event["name"] == "clock (MHz)"]
    assert list(sampler.events(0, int(times[1] * 1000) - 1000, 0))[-1]["ts"] == times[0]


def test_a_run_has_them_in_its_trace(tmp_path, monkeypatch):
    library, start = Nvml(), Session._start

    def with_power(self, *given):
        self._power = self._power or PowerSampler(library, {0: "GPU-1-2"})
        start(self, *given)

    monkeypatch.setattr(Session, "_start", with_power)
    with torchwhy.profile(tmp_path / "run", wait=1, warmup=0, active=1) as p:
        p.step()
        first = library.looks  # those before the step began are not in it
        while library.looks < first + 6:
            torch.ones(4).cos()
            threading.Event().wait(0.001)
        p.step()
    trace = torchwhy.load(tmp_path / "run" / "trace.json.gz")
    rows = {row["counter"]: row for row in trace.counters().rows()}
    assert rows["power (W)"]["mean"] == pytest.approx(698.5)
    assert rows["clock (MHz)"]["lowest"] == 1500
    assert trace.repairs == type(trace.repairs)()
    assert "aten::cos" in trace.ops()["name"]


@pytest.mark.parametrize("rest", [b'{"ph": "X"}]}', b"]}", b"\n ]}"])
def test_a_trace_stays_json(rest):
    window = SimpleNamespace(
        results=SimpleNamespace(trace_start_ns=lambda: 0), spent=SimpleNamespace(wall_us=2**62 / 1000)
    )
    head = b'{"baseTimeNanoseconds": 5, "traceEvents": ['
    events = json.loads(_with_counters(head + rest, window, sampled()))["traceEvents"]
    assert sum(event["ph"] == "C" for event in events) > 5
    assert _with_counters(b'{"other": 1}', window, sampled()) == b'{"other": 1}'


def test_without_a_driver_there_is_no_library():
    library = nvml()
    assert library is None or hasattr(library, "nvmlDeviceGetPowerUsage")
