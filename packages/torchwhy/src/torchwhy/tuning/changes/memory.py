"""The allocators of the host and of the GPU."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from ctypes.util import find_library

from torchwhy.tuning.change import Change, by_environment, changes
from torchwhy.tuning.records import Facts

__all__ = ["cuda_allocator", "glibc", "other_allocators"]

LARGE = 32 << 20
"""The largest threshold that glibc takes (DEFAULT_MMAP_THRESHOLD_MAX), bytes."""


@changes("allocator-thrash", "cpu-copies", "cpu-hotspot")
def glibc(facts: Facts) -> Iterator[Change]:
    """Memory that was given back stays with the process: taking it from the system again costs page faults."""
    if "libc" in facts.libraries and not {"libjemalloc", "libtcmalloc"} & set(facts.libraries):
        variables = {"MALLOC_MMAP_THRESHOLD_": str(LARGE), "MALLOC_TRIM_THRESHOLD_": str(16 * LARGE)}
        yield by_environment("malloc keeps memory", variables)


@changes("allocator-thrash", "cpu-copies", "cpu-hotspot")
def other_allocators(facts: Facts) -> Iterator[Change]:
    """Another allocator for the host's memory, where one is installed."""
    if sys.platform != "linux":
        return
    for name in ("jemalloc", "tcmalloc"):
        library = find_library(name) or find_library(f"{name}_minimal")
        if library and f"lib{name}" not in facts.libraries:
            yield by_environment(name, {"LD_PRELOAD": library})


@changes("allocator-thrash", "fragmentation", "peak-memory")
def cuda_allocator(facts: Facts) -> Iterator[Change]:
    """The GPU's memory is taken in segments that grow."""
    if facts.cuda and sys.platform == "linux":
        yield by_environment("expandable segments", {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"})
