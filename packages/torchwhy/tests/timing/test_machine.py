"""What others do to the processors."""

import os

import pytest

from torchwhy.timing.machine import CpuTimes, Load, load_between, read_cpu_times


def test_shares_are_per_processor():
    before, after = CpuTimes(100.0, 50.0, 10.0), CpuTimes(140.0, 60.0, 25.0)  # 10 s on 4 processors
    assert load_between(before, after, cpus=4) == Load(own=1.5, others=1.5, cpus=4)


@pytest.mark.parametrize(
    ("own", "others", "cpus", "busy"),
    [(1.0, 0.9, 2, True), (2.0, 0.1, 2, False), (1.0, 0.2, 2, False), (1.0, 50.0, 64, False), (8.0, 55.0, 64, True)],
)
def test_busy_means_that_others_take_what_we_could_use(own, others, cpus, busy):
    assert Load(own, others, cpus).busy is busy


def test_what_cannot_be_known_is_none():
    now = CpuTimes(100.0, 50.0, 10.0)
    assert load_between(None, now, cpus=2) is None
    assert load_between(now, CpuTimes(100.1, 50.0, 10.0), cpus=2) is None


@pytest.mark.skipif(not os.path.exists("/proc/stat"), reason="Linux only")  # noqa: PTH110
def test_counters_only_grow():
    before, after = read_cpu_times(), read_cpu_times()
    assert before.idle_s <= before.total_s
    assert after.total_s >= before.total_s
