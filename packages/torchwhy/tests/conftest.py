"""Fixtures every test may use."""

import atexit
import gc
import os
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import is_hypothesis_test, settings

# Generated tests draw few cases here, and many where TORCHWHY_CASES=many asks for them, as .ci/run does.
settings.register_profile("few", max_examples=4, deadline=None, derandomize=True)
settings.register_profile("many", max_examples=40, deadline=None, derandomize=True)
settings.load_profile(os.environ.get("TORCHWHY_CASES", "few"))


def pytest_ignore_collect(collection_path):
    """Look for tests and examples in tests alone: what these import would be imported once more, under another name."""
    return (collection_path.suffix == ".py" and not collection_path.name.startswith(("test_", "conftest"))) or None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Skip further cases where they are not asked for; where they are, generated tests have some, too."""
    many = os.environ.get("TORCHWHY_CASES") == "many"
    for item in items:
        if many and is_hypothesis_test(getattr(item, "function", None)):
            item.add_marker("many")
        elif not many and "many" in item.keywords:
            item.add_marker(pytest.mark.skip(reason="TORCHWHY_CASES=many runs it, as .ci/run does"))


@pytest.fixture(scope="module", autouse=True)
def _what_stays_is_collected_no_more():
    """What compiled programs leave behind would make every later collection of garbage take seconds."""
    yield
    gc.collect()
    gc.freeze()


atexit.register(gc.unfreeze)


@pytest.fixture(scope="module", autouse=True)
def _no_thread_keeps_running():
    """A thread that a test leaves behind may wait. If it runs, it slows all later tests."""
    before = set(threading.enumerate())
    yield
    left = [thread for thread in threading.enumerate() if thread not in before]
    if left and Path("/proc/self/task").is_dir():
        began = [_ticks(thread) for thread in left]
        time.sleep(0.1)
        busy = [thread.name for thread, ticks in zip(left, began, strict=True) if _ticks(thread) > ticks + 1]
        assert not busy, f"these threads still run: {busy}"


def _ticks(thread):
    """Return the processor time of a thread on Linux, in ticks of 10 ms; 0 if it has ended."""
    try:
        fields = Path(f"/proc/self/task/{thread.native_id}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return int(fields[11]) + int(fields[12])


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def generator():
    return torch.Generator().manual_seed(0)


@pytest.fixture
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def browser():
    from tests.page.browser import chromium

    started, program = chromium()
    with started as playwright:
        one = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield one
        one.close()
