"""A thread's time is divided into running and waiting, whatever else the machine does."""

import threading
import time

import pytest

from torchwhy.capture.processor_time import SCHEDSTAT, ProcessorMark


def spin(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def test_running_is_counted_and_sleeping_is_neither_running_nor_waiting():
    mark = ProcessorMark()
    spin(0.05)
    time.sleep(0.2)
    spent = mark.since()
    assert spent.cpu_us == pytest.approx(50_000, rel=0.2)
    assert spent.wall_us >= 250_000
    if spent.waited_us is not None:
        assert 0 <= spent.waited_us <= spent.wall_us - spent.cpu_us - 195_000
    assert spent.cores >= 1


@pytest.mark.skipif(not SCHEDSTAT.exists(), reason="the system does not tell")
def test_running_and_waiting_make_up_the_time_of_a_thread_that_never_rests():
    missing = []
    for _ in range(5):  # a virtual machine stands still at times, which no counter of its own tells
        mark = ProcessorMark()
        spin(0.1)
        spent = mark.since()
        missing.append(spent.wall_us - spent.cpu_us - spent.waited_us)
    assert abs(min(missing, key=abs)) < 5000


def test_another_thread_reads_the_time_of_the_thread_that_made_the_mark():
    mark, found = ProcessorMark(), []
    spin(0.05)
    thread = threading.Thread(target=lambda: found.append(mark.since()))
    thread.start()
    thread.join()
    assert found[0].cpu_us >= 50_000
    assert found[0].waited_us is None
