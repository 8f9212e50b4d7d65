"""What a report says about the machine."""

import pytest

from bench import hardware


@pytest.mark.parametrize(("own", "share"), [(0.0, 0.5), (6.0, 0.2), (99.0, 0.0)])
def test_others_share_is_what_this_process_did_not_use(monkeypatch, own, share):
    now = {"time": 100.0, "busy": 1000.0, "own": 3.0}
    monkeypatch.setattr(hardware.time, "monotonic", lambda: now["time"])
    monkeypatch.setattr(hardware.os, "cpu_count", lambda: 2)
    monkeypatch.setattr(hardware, "busy_s", lambda: now["busy"])
    monkeypatch.setattr(hardware, "own_s", lambda: now["own"])
    others = hardware.watch_others()
    now.update(time=110.0, busy=1010.0, own=3.0 + own)
    assert others() == share


def test_a_system_that_does_not_tell(monkeypatch):
    monkeypatch.setattr(hardware, "busy_s", lambda: None)
    assert hardware.watch_others()() is None


def test_the_machine_is_named():
    facts = hardware.hardware(3)
    assert facts["processor"]
    assert facts["threads"] == 3
    assert set(facts["versions"]) == {"python", "torchfx", "torch", "numpy", "scipy"}
