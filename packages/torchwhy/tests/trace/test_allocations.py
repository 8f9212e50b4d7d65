"""Memory over time: totals as recorded, or rebuilt from allocations and releases."""

import numpy as np

from tests.traces import Story
from torchwhy.trace.derived.memory import CPU, memory_of
from torchwhy.trace.peaks import peaks_of


def test_totals_peaks_and_ends_of_steps():
    story = Story()
    story.step(0, 0, 100)
    story.step(1, 100, 100)
    for at, size, held in ((10, 500, 1500), (50, -200, 1300), (150, 1000, 2300), (180, -800, 1500)):
        story.memory(at, size, held, reserved=4096)
    trace = story.trace()
    (memory,) = memory_of(trace)
    assert (memory.name, memory.absolute) == ("GPU 0", True)
    assert (memory.peak_allocated, memory.peak_reserved, memory.reserved_at_peak) == (2300, 4096, 4096)
    assert memory.at_ends(trace.steps_found).tolist() == [1300, 1500]
    assert memory.at([0]).tolist() == [1000], "before the first event: what it found"
    assert memory.change[memory.between(100_000, 200_000)].tolist() == [1000, -800]


def test_host_and_devices_are_kept_apart():
    story = Story()
    story.memory(1, 10, 10, device=-1)
    story.memory(2, 20, 20, device=0)
    story.memory(3, 30, 30, device=1)
    found = memory_of(story.trace())
    assert [memory.name for memory in found] == ["CPU", "GPU 0", "GPU 1"]
    assert found[0].kind == CPU
    assert [memory.peak_allocated for memory in found] == [10, 20, 30]


def test_files_without_totals_are_added_up():
    """What was allocated before the trace and is released in it lies below the beginning."""
    story = Story()
    for at, size in ((1, 100), (2, -300), (3, 50)):
        story.memory(at, size, 0)
        story.events[-1]["args"] = {"Device Type": 1, "Device Id": 0, "Addr": 1, "Bytes": size}
    (memory,) = memory_of(story.trace())
    assert not memory.absolute
    assert memory.allocated.tolist() == [300, 0, 50]
    assert memory.reserved.tolist() == [0, 0, 0]


def test_a_trace_without_memory_events():
    assert memory_of(Story().trace()) == ()


def test_figures_of_devices():
    assert peaks_of("Tesla V100-SXM2-32GB").flops("bfloat16") == 0, "V100 has no bfloat16"
    assert peaks_of("NVIDIA H100 80GB HBM3").bandwidth == 3350
    assert peaks_of("NVIDIA H100 PCIe").bandwidth == 2000
    assert peaks_of("AMD Radeon Graphics") is None
    assert np.isclose(peaks_of("NVIDIA L40S").flops("float32"), 91.6e12)


def test_relatives_of_a_device_have_their_own_figures():
    rates = {
        name: peaks_of(name).flops("float16") / 1e12 for name in ("NVIDIA GB200", "NVIDIA B200", "NVIDIA H200 NVL")
    }
    assert rates == {"NVIDIA GB200": 2500, "NVIDIA B200": 2250, "NVIDIA H200 NVL": 835}
    assert peaks_of("Tesla P100-PCIE-16GB").flops("float32") == 9.3e12
    assert peaks_of("Tesla V100-PCIE-16GB").flops("float32") == 14e12
    assert peaks_of("Tesla V100-SXM2-32GB").flops("float32") == 15.7e12
