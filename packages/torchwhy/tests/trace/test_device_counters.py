"""Hardware counters as Kineto writes them, and what follows from them."""

import numpy as np
import pytest

from tests.command_line import run_here
from tests.rules.case_compute_kernels import HALF, clocked, hardware_counter
from tests.traces import Story
from torchwhy import load
from torchwhy.analysis.device_counters import activity, energy
from torchwhy.page.counters import counters_of
from torchwhy.trace.derived.device_counters import device_counters
from torchwhy.trace.meaning.counters import Quantity, counter_meaning

SM, DRAM = (f"{unit}__throughput.avg.pct_of_peak_sustained_elapsed" for unit in ("sm", "dram"))


def counted(**means):
    """Two steps of 1 ms, half of each with work; counters are 10 in the other half."""
    story = Story()
    for at in story.steps(2, 1000, waits=True):
        story.op("aten::mm", at + 1, 20)
        story.kernel(HALF, at, 500, launch_at=at)
    for i in range(20):
        for name, value in means.items():
            story.events.append(hardware_counter({"sm": SM, "dram": DRAM}[name], 100 * i, value if i % 10 < 5 else 10))
    return story


def test_a_table_weighs_values_by_the_time_they_hold():
    rng = np.random.default_rng(1)
    story = Story()
    at = np.sort(rng.choice(5000, 60, replace=False))
    values = rng.uniform(0, 100, 60)
    for start in story.steps(5, 1000, waits=True):
        story.op("aten::mm", start + 1, 20)
        story.kernel(HALF, start + 100, 600, launch_at=start + 10)
    for when, value in zip(at.tolist(), values.tolist(), strict=True):
        story.events.append(hardware_counter(SM, when, value))
    rng.shuffle(story.events)
    trace = story.trace()
    row = trace.counters().rows()[0]
    ticks = np.arange(5000)
    held = np.where(ticks >= at[0], values[np.searchsorted(at, ticks, side="right") - 1], np.nan)
    held[ticks >= at[-1] + np.median(np.diff(at))] = np.nan
    busy = (ticks % 1000 >= 100) & (ticks % 1000 < 700)
    assert row["mean"] == pytest.approx(np.nanmean(held))
    assert row["busy_mean"] == pytest.approx(np.nanmean(held[busy]))
    assert (row["lowest"], row["highest"], row["samples"]) == (values.min(), values.max(), 60)


def test_each_device_has_its_counters():
    story = counted(sm=50)
    story.events += [hardware_counter(SM, 100 * i, 70, device=3) for i in range(20)]
    trace = story.trace()
    assert [(series.device, float(series.values.max())) for series in trace.derived(device_counters)] == [
        (0, 50), (3, 70)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("means", "said"),
    [
        ({"sm": 41, "dram": 83}, "bound by memory"),
        ({"sm": 90, "dram": 83}, "bound by compute"),
        ({"sm": 40, "dram": 30}, "neither is near its peak"),
        ({"dram": 30}, "its memory reaches 30% of its peak."),
    ],
)
def test_counted_activity_says_what_bounds(means, said, tmp_path):
    story = counted(**means)
    found = activity(story.trace())[0]
    assert found.memory == pytest.approx(means["dram"])
    done = run_here("explain", story.write(tmp_path / "trace.json"), folder=tmp_path)
    assert said in " ".join(done.stdout.split())


@pytest.mark.parametrize("kept", range(1, 11))
def test_activity_is_not_said_of_work_that_was_not_counted(kept):
    """The sampler stops after `kept` of ten steps; its last value holds for a quarter of a step more."""
    story = Story()
    for at in story.steps(10, 1000, waits=True):
        story.op("aten::mm", at + 1, 20)
        story.kernel(HALF, at, 500, launch_at=at)
    for name in (SM, DRAM):
        story.events += [hardware_counter(name, at, 70) for at in range(0, 1000 * kept, 25)]
        story.events += [hardware_counter(name, 9_999, 70)]
    found = activity(story.trace())
    assert [one.compute for one in found] == ([pytest.approx(70)] if kept >= 9 else [])


@pytest.mark.parametrize("value", [-50.0, 250.0, 1e300])
def test_an_activity_that_no_gpu_has_is_not_known(value):
    assert activity(counted(sm=value).trace()) == ()
    assert activity(counted(sm=50.0).trace()) != ()


def test_energy_is_power_by_time(tmp_path):
    story = clocked([1980] * 10, power=[400] * 4 + [600] * 6)
    found = energy(story.trace(), price_per_kwh=0.36)[0]
    assert found.power_w == pytest.approx(520)
    assert found.joules == pytest.approx(520 * 5e-3)
    assert found.joules_per_step == pytest.approx(520e-3)
    assert found.price_per_step == pytest.approx(520e-3 / 3.6e6 * 0.36)
    path = story.write(tmp_path / "trace.json")
    done = run_here("explain", path, "--price-per-kwh", "360", folder=tmp_path)
    assert "0.52 J for each of 5 steps; a million steps cost 52.00" in " ".join(done.stdout.split())
    assert run_here("explain", path, "--price-per-kwh", "-1", folder=tmp_path).returncode == 2


def test_energy_is_not_said_where_power_is_known_of_a_part_only():
    assert energy(clocked([1980] * 10, power=[400] * 4).trace()) == ()
    assert energy(clocked([1980] * 10).trace()) == ()


@pytest.mark.parametrize("value", [-500.0, 0.0, 1e12])
def test_a_power_that_no_gpu_has_is_not_known(value):
    assert energy(clocked([1980] * 10, power=[value] * 10).trace()) == ()
    assert energy(clocked([1980] * 10, power=[500.0] * 10).trace()) != ()


@pytest.mark.parametrize("kept", range(2, 10))
def test_energy_is_not_said_where_samples_are_missing_inside(kept):
    """The sampler stops after some samples of 100, and takes a last one at the end."""
    story = Story()
    for at in story.steps(2, 10_000, waits=True):
        story.op("aten::mm", at + 1, 20)
        story.kernel(HALF, at, 5000, launch_at=at)
    moments = [*range(0, 200 * kept, 200), 19_900]
    story.events += [hardware_counter("power (W)", at, 400) for at in moments]
    assert energy(story.trace()) == ()
    story.events += [hardware_counter("power (W)", at, 400) for at in range(200 * kept, 19_900, 200)]
    assert energy(story.trace())[0].joules == pytest.approx(8, rel=0.02)


def test_the_page_draws_them_with_their_units(tmp_path):
    story = counted(sm=50)
    story.events += [hardware_counter("dram__bytes_read.sum", 100 * i, 2048.0 * i) for i in range(5)]
    story.events += [hardware_counter("sm__cycles_elapsed.avg.per_second", 1, 1.5e9, device=1)]
    curves = {curve.label: curve for curve in counters_of(load(story.write(tmp_path / "trace.json")))}
    assert curves[f"GPU 0, {SM}"].unit == "%"
    assert curves["GPU 0, dram__bytes_read.sum"].unit == "B"
    assert curves["GPU 1, sm__cycles_elapsed.avg.per_second"].unit == "1/s"


@pytest.mark.parametrize(
    ("name", "quantity", "unit"),
    [
        ("gpc__cycles_elapsed.avg.per_second", Quantity.CLOCK, "1/s"),
        ("sm__cycles_active.avg", None, ""),
        ("sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active", Quantity.COMPUTE, "%"),
        ("dram__bytes_write.sum.per_second", None, "B/s"),
        ("CoreFrequencyMHz::MHz", Quantity.CLOCK, "MHz"),
        ("GpuTime::ns", None, "ns"),
        ("power (W)", Quantity.POWER, "W"),
        ("queue", None, ""),
    ],
)
def test_names_tell_what_is_measured(name, quantity, unit):
    found = counter_meaning(name)
    assert (found.quantity, found.unit) == (quantity, unit)


def test_values_that_are_no_numbers_are_left_out():
    story = counted(sm=50)
    story.events += [hardware_counter(SM, 2000, value) for value in ("x", None, [1], {"a": 1})]
    assert len(story.trace().derived(device_counters)[0].values) == 20
