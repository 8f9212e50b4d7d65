"""What is due later happens in the main thread: after a time, or when memory has grown."""

import threading
import time

import pytest
import torch

from torchwhy.capture import main_thread


def wait_for(happened, seconds=10):
    end = time.monotonic() + seconds
    while not happened() and time.monotonic() < end:
        pass  # between these bytecodes it happens
    return happened()


def test_growth_is_told_in_the_main_thread_each_time():
    used, told = [100], []
    cancel = main_thread.whenever_memory_grows(
        10,
        lambda: told.append((used[0], threading.current_thread() is threading.main_thread())),
        lambda: used[0],
        0.001,
    )
    used[0] = 109
    assert not wait_for(lambda: told, 0.05)
    used[0] = 110
    assert wait_for(lambda: len(told) == 1)
    used[0] = 50  # what is given back and taken again has grown
    assert not wait_for(lambda: len(told) > 1, 0.05)
    used[0] = 89
    assert not wait_for(lambda: len(told) > 1, 0.05)
    used[0] = 90
    assert wait_for(lambda: len(told) == 2)
    cancel()
    used[0] = 1000
    assert not wait_for(lambda: len(told) > 2, 0.05)
    assert told == [(110, True), (90, True)]


@pytest.mark.skipif(main_thread._heap_bytes() is None, reason="needs glibc 2.33")
def test_the_heap_is_what_small_blocks_take():
    before = main_thread._heap_bytes()
    kept = [bytes(1000) for _ in range(20_000)]
    assert main_thread._heap_bytes() - before > 15e6
    large = torch.zeros(50_000_000, dtype=torch.uint8)  # in a mapping of its own
    assert main_thread._heap_bytes() - before < 45e6
    del kept, large


@pytest.mark.skipif(main_thread.bytes_of_all_arenas() is None, reason="needs glibc")
def test_the_arenas_of_other_threads_count():
    before, kept = main_thread.bytes_of_all_arenas(), []
    thread = threading.Thread(target=lambda: kept.extend(torch.ones(1) for _ in range(20_000)))
    thread.start()
    thread.join()
    assert main_thread.bytes_of_all_arenas() - before > 2e6


def test_what_any_thread_may_do_does_not_wait_for_the_main_thread():
    used, told = [0], threading.Event()
    main_thread.after(0, told.set, anywhere=True)
    assert told.wait(10)
    told.clear()
    cancel = main_thread.whenever_memory_grows(1, told.set, lambda: used[0], 0.001, anywhere=True)
    used[0] = 1
    assert told.wait(10)
    cancel()


def test_where_the_system_does_not_tell_nothing_is_watched():
    threads = threading.active_count()
    main_thread.whenever_memory_grows(1, lambda: None, lambda: None)()
    assert threading.active_count() == threads
