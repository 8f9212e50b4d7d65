"""What is due happens in the main thread."""

import threading
import time
from itertools import pairwise

import pytest
import torch

from torchwhy.capture import main_thread


def fail(error):
    raise AssertionError("nothing goes wrong here") from error


def wait_for(happened, seconds=10):
    end = time.monotonic() + seconds
    while not happened() and time.monotonic() < end:
        pass  # between these bytecodes it happens
    return happened()


def test_what_is_due_happens_in_the_main_thread_each_time():
    due, told = [False], []

    def act():
        due[0] = False
        told.append(threading.current_thread() is threading.main_thread())

    cancel = main_thread.whenever(lambda: due[0], act, fail, every_s=0.001)
    assert not wait_for(lambda: told, 0.05)
    due[0] = True
    assert wait_for(lambda: len(told) == 1)
    assert not wait_for(lambda: len(told) > 1, 0.05)
    due[0] = True
    assert wait_for(lambda: len(told) == 2)
    cancel()
    due[0] = True
    assert not wait_for(lambda: len(told) > 2, 0.05)
    assert told == [True, True]


def test_a_main_thread_that_does_not_come_to_it_is_asked_once():
    looks, told = [0], []

    def due():
        looks[0] += 1
        return not told

    cancel = main_thread.whenever(due, lambda: told.append(looks[0]), fail, every_s=0.001)
    numbers = list(range(1_000_000))
    while looks[0] < 3 and not told:
        numbers.sort(key=float)  # one bytecode
    assert wait_for(lambda: told)
    assert not wait_for(lambda: len(told) > 1, 0.05)
    cancel()


def test_looks_that_take_long_come_rarely():
    looks = []

    def due():
        began = time.thread_time()
        while time.thread_time() - began < 0.02:
            pass
        looks.append(time.monotonic())
        return False

    cancel = main_thread.whenever(due, lambda: None, fail, every_s=0.001)
    while len(looks) < 3:
        time.sleep(0.01)
    cancel()
    assert min(after - before for before, after in pairwise(looks)) >= 0.4


def test_a_look_that_takes_long_puts_off_no_end_of_time():
    """0.6 s of a look ask for 12 s of rest."""
    began, acted = time.monotonic(), threading.Event()
    left_s = lambda: began + 0.5 - time.monotonic()  # noqa: E731

    def due():
        if left_s() <= 0:
            return True
        before = time.thread_time()
        while time.thread_time() - before < 0.6:
            pass
        return False

    cancel = main_thread.whenever(due, acted.set, fail, anywhere=True, every_s=0.001, left_s=left_s)
    assert acted.wait(11)
    cancel()


@pytest.mark.skipif(main_thread.heap_bytes() is None, reason="needs glibc 2.33")
def test_the_heap_is_what_small_blocks_take():
    before = main_thread.heap_bytes()
    kept = [bytes(1000) for _ in range(20_000)]
    assert main_thread.heap_bytes() - before > 15e6
    large = torch.zeros(50_000_000, dtype=torch.uint8)  # in a mapping of its own
    assert main_thread.heap_bytes() - before < 45e6
    del kept, large


@pytest.mark.skipif(main_thread.bytes_of_all_arenas() is None, reason="needs glibc")
def test_the_arenas_of_other_threads_count():
    before, kept = main_thread.bytes_of_all_arenas(), []
    thread = threading.Thread(target=lambda: kept.extend(torch.ones(1) for _ in range(20_000)))
    thread.start()
    thread.join()
    assert main_thread.bytes_of_all_arenas() - before > 2e6


def test_what_any_thread_may_do_does_not_wait_for_the_main_thread():
    told = threading.Event()
    cancel = main_thread.whenever(lambda: True, told.set, fail, anywhere=True, every_s=0.001)
    assert told.wait(10)
    cancel()
