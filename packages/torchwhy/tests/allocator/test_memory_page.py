"""The page of one snapshot, and of two."""

import json
import re

import pytest

from tests.allocator.snapshots import Allocator
from tests.allocator.test_snapshot import ADAM, MODULE, TRAIN, training
from tests.command_line import run_here
from tests.traces import Story
from torchwhy import load, load_snapshot
from torchwhy.allocator.changes import changes
from torchwhy.allocator.recorded import recorded_memory
from torchwhy.allocator.segments import pools_of
from torchwhy.allocator.snapshot import EARLIER, UNKNOWN

LINEAR = ("/opt/venv/lib/python3.11/site-packages/torch/nn/modules/linear.py", 134, "forward")
NET = ("/home/me/net.py", 9, "forward")


def points(page):
    """Of the first curve: what is allocated and reserved at its moments."""
    read = {key: re.search(rf'data-{key}="([\d ]+)"', page)[1] for key in ("times", "allocated", "reserved")}
    return {key: list(map(int, text.split())) for key, text in read.items()}


def test_the_page_has_the_curve_and_marks_its_peak(tmp_path):
    path = training().write(tmp_path / "snapshot.pickle")
    ran = run_here("memory", path, "-o", tmp_path / "page.html", folder=tmp_path)
    assert (ran.returncode, ran.stdout) == (0, "")
    page = (tmp_path / "page.html").read_text()
    curve = points(page)
    assert curve["allocated"] == [v * 1000 for v in (10, 10, 40, 70, 120, 90, 90, 60, 60, 10, 10, 30)]
    assert set(curve["reserved"]) == {1 << 20}
    peak = re.search(r'class="peak" x1="([\d.]+)"', page)[1]
    assert float(peak) == pytest.approx(960 * 400 / 1100, abs=0.1)
    assert "peak of 120 kB allocated at 400 us" in page


def test_reserved_follows_the_segments_taken_and_given_back(tmp_path):
    made = Allocator(segment=10_000)
    made.alloc(1_000, TRAIN)
    made.take(4_000)
    made._record("segment_free", addr=1, size=1_500, frames=[])
    memory = load_snapshot(made.write(tmp_path / "s.pickle")).devices[0]
    assert memory.reserved.tolist() == [7_500, 11_500, 10_000]


def test_modules_are_named_by_the_functions_forward(tmp_path):
    made = Allocator()
    made.alloc(3_000, LINEAR, MODULE, NET, TRAIN)
    made.alloc(1_000, ADAM, TRAIN)
    path = made.write(tmp_path / "s.pickle")
    ran = run_here("memory", path, folder=tmp_path)
    assert "net > linear" in ran.stdout
    holders = json.loads(run_here("memory", path, "--format", "json", folder=tmp_path).stdout)["devices"][0]["holders"]
    assert [(one["module"], one["bytes"]) for one in holders] == [("net.linear", 3_000), ("", 1_000)]


def test_pools_add_up_to_the_device(tmp_path):
    made = Allocator(segment=1 << 20)
    blocks = [made.alloc(1_000, TRAIN) for _ in range(4)]
    made.free(blocks[1])
    written = made.snapshot()
    private = {**written["segments"][0], "segment_pool_id": (0, 3), "segment_type": "small", "stream": 7}
    written["segments"].append(private)
    made.snapshot = lambda: written
    memory = load_snapshot(made.write(tmp_path / "s.pickle")).devices[0]
    pools = pools_of(memory.layout)
    assert [(pool.name, pool.stream) for pool in pools] == [("large", 0), ("small, private pool 0.3", 7)]
    for field in ("reserved_bytes", "split_bytes", "cached_bytes"):
        assert sum(getattr(pool, field) for pool in pools) == getattr(memory, field)
    assert sum(end - start for start, end in memory.layout[0].used) == memory.layout[0].used_bytes == 3 * 1024


def test_two_snapshots_are_compared_by_stacks_without_their_lines(tmp_path):
    before, after = Allocator(), Allocator()
    before.alloc(2_000, NET)
    before.alloc(500, TRAIN)
    after.alloc(5_000, (NET[0], 77, NET[2]))
    after.alloc(500, TRAIN)
    after.alloc(300, ADAM, TRAIN)
    paths = [made.write(tmp_path / f"{name}.pickle") for name, made in (("a", before), ("b", after))]
    [change] = changes(*map(load_snapshot, paths))
    assert [(one.bytes, one.before_bytes, one.after_bytes) for one in change.holders] == [
        (3_000, 2_000, 5_000),
        (300, 0, 300),
    ]
    told = run_here("memory", *paths, folder=tmp_path).stdout
    assert "+3.00 kB" in told
    assert run_here("memory", *paths, "-o", tmp_path / "page.html", folder=tmp_path).returncode == 0
    page = (tmp_path / "page.html").read_text()
    assert page.count("<figure") == 2
    assert "+3.00 kB" in page


def test_a_snapshot_has_not_changed_against_itself(tmp_path):
    path = training().write(tmp_path / "s.pickle")
    assert changes(load_snapshot(path), load_snapshot(path))[0].holders == ()
    assert "each stack holds as much as before" in run_here("memory", path, path, folder=tmp_path).stdout


def test_names_of_a_snapshot_are_text_on_the_page(tmp_path):
    made = Allocator()
    evil = "<script>alert(1)</script>"
    made.alloc(1_000, (f"/home/me/{evil}.py", 3, evil), (f"{evil}.py", 1, "forward"))
    written = made.snapshot()
    written["segments"][0]["segment_type"] = evil
    made.snapshot = lambda: written
    run_here("memory", made.write(tmp_path / "s.pickle"), "-o", tmp_path / "page.html", folder=tmp_path)
    page = (tmp_path / "page.html").read_text()
    assert evil not in page
    assert "&lt;script&gt;" in page


def test_misuse_is_told(tmp_path):
    path = training().write(tmp_path / "s.pickle")
    assert run_here("memory", path, path, path, folder=tmp_path).returncode == 2
    assert run_here("memory", path, "--open", folder=tmp_path).returncode == 2
    assert run_here("memory", path, "-o", tmp_path / "missing" / "page.html", folder=tmp_path).returncode == 3


def recorded(tmp_path):
    """A trace: what was there before, two allocations of one operator, a release, and memory of the host."""
    story = Story()
    story.step(1, at=0, us=1000)
    story.op("aten::linear", at=10, us=100)
    story.op("aten::empty", at=20, us=10)
    story.memory(25, 4_000, 5_000, 9_000, addr=1)
    story.memory(50, 2_000, 7_000, 9_000, addr=2)
    story.op("aten::relu", at=200, us=50)
    story.memory(210, -4_000, 3_000, 9_000, addr=1)
    story.memory(220, 3_000, 6_000, 9_000, addr=1)
    story.memory(300, 64, 64, device=-1, addr=9)
    return story.write(tmp_path / "trace.json")


def test_a_trace_tells_who_holds_its_memory_at_the_peak(tmp_path):
    host, gpu = recorded_memory(load(recorded(tmp_path))).devices
    assert (host.name, host.peak_bytes) == ("CPU", 64)
    assert (gpu.name, gpu.peak_bytes, gpu.peak_us, gpu.reserved_bytes) == ("GPU 0", 7_000, 50, 9_000)
    held = {one.stack: one.bytes for one in gpu.holders}
    assert held == {("aten::empty", "aten::linear"): 4_000, ("aten::linear",): 2_000, EARLIER: 1_000}
    assert sum(held.values()) == gpu.peak_bytes


def test_without_addresses_nobody_is_said_to_hold_memory(tmp_path):
    story = Story()
    story.op("aten::a", at=0, us=10)
    story.memory(5, 1_000, 1_000)
    del story.events[-1]["args"]["Addr"]
    [gpu] = recorded_memory(load(story.write(tmp_path / "trace.json"))).devices
    assert [(one.bytes, one.stack, one.purpose) for one in gpu.holders] == [(1_000, UNKNOWN, "unknown")]


def test_the_peak_lies_in_the_history(tmp_path):
    text = run_here("memory", recorded(tmp_path), folder=tmp_path).stdout
    assert "7.00 kB allocated at 50.0 us, in a history of 4 events, from 25.0 us to 220 us" in " ".join(text.split())


def test_an_address_used_again_is_held_by_the_later_allocation(tmp_path):
    story = Story()
    story.op("aten::a", at=0, us=10)
    story.memory(5, 1_000, 1_000, addr=1)
    story.memory(6, -1_000, 0, addr=1)
    story.op("aten::b", at=20, us=10)
    story.memory(25, 5_000, 5_000, addr=1)
    [gpu] = recorded_memory(load(story.write(tmp_path / "trace.json"))).devices
    assert [(one.bytes, one.stack) for one in gpu.holders] == [(5_000, ("aten::b",))]


def test_the_memory_of_a_trace_is_on_its_report_and_on_a_page_of_its_own(tmp_path):
    path = recorded(tmp_path)
    for command in ("report", "memory"):
        assert run_here(command, path, "-o", tmp_path / "page.html", folder=tmp_path).returncode == 0
        page = (tmp_path / "page.html").read_text()
        assert page.count("<figure") == 2
        assert "peak of 7.00 kB allocated at 50.0 us" in page
        assert "aten::linear" in page
