"""What a report says about the machine."""

import os

import pytest

from bench import hardware
from torchwhy.timing.machine import CpuTimes


@pytest.mark.parametrize(("own", "share"), [(0.0, 0.5), (6.0, 0.2), (99.0, 0.0)])
def test_others_share_is_what_this_process_did_not_use(monkeypatch, own, share):
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    readings = iter([CpuTimes(200, 50, 3.0), CpuTimes(220, 60, 3.0 + own)])
    monkeypatch.setattr(hardware, "read_cpu_times", lambda: next(readings))
    assert hardware.watch_others()() == share


def test_a_system_without_counters_has_no_share(monkeypatch):
    monkeypatch.setattr(hardware, "read_cpu_times", lambda: None)
    assert hardware.watch_others()() is None


def test_the_machine_is_named():
    facts = hardware.hardware(3)
    assert facts["processor"]
    assert facts["threads"] == 3
    assert set(facts["versions"]) == {"python", "torchfx", "torch", "numpy", "scipy"}
