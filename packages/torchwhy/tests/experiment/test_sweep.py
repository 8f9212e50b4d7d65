"""Where overhead ends: on invented points, and once for real."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchwhy.experiment import Case, Sweep, sweep, workload_named
from torchwhy.experiment.cases import sizes_from
from torchwhy.experiment.document import sweep_document
from torchwhy.experiment.picture import paint
from torchwhy.experiment.regime import share_over_floor
from torchwhy.experiment.sweep import Point, crossover, finding
from torchwhy.present.formats import render


def points(shares, **disturbed):
    return [Point(n, 1.0, 0.0, 1.0, share, 1e9, str(n) in disturbed) for n, share in shares.items()]


@given(st.floats(20, 2000))
def test_a_cubic_workload_crosses_where_its_work_equals_its_overhead(true_size):
    """time = 1 + (n / true_size)^3, so half of it is work at true_size exactly."""
    sizes = [2**i for i in range(3, 13)]
    shares = {n: share_over_floor(1 + (n / true_size) ** 3, 1.0) for n in sizes}
    assert crossover(points(shares)) == pytest.approx(true_size, rel=1e-3)


def test_sizes_on_one_side_have_no_crossing():
    assert crossover(points({64: 0.1, 128: 0.2})) is None
    assert crossover(points({64: 0.6, 128: 0.9})) is None


def test_the_last_crossing_counts():
    assert 256 < crossover(points({64: 0.1, 128: 0.6, 256: 0.4, 512: 0.9})) < 512


def test_disturbed_points_are_left_out():
    disturbed = [*points({64: 0.2}), Point(128, 1.0, 0.0, 1.0, 0.99, 1e9, disturbed=True), *points({256: 0.8})]
    assert crossover(disturbed) == pytest.approx(128)
    assert disturbed[1].regime == "undecided"
    assert finding(Sweep("x", Case(64), 1e-6, tuple(disturbed), 128.0)).endswith("took the processors")


def test_the_finding_covers_every_case():
    def said(shares):
        found = points(shares)
        return finding(Sweep("matmul-add", Case(64), 1e-6, tuple(found), crossover(found)))

    assert said({64: 0.2, 256: 0.8}) == "overhead-bound below size 128; above it, more than half the time is work"
    assert said({64: 0.2, 256: 0.3}).startswith("overhead-bound up to size 256")
    assert said({64: 0.7, 256: 0.9}).startswith("more than half the time is work at every size")


def test_a_real_sweep_is_drawn_both_ways(tmp_path):
    seen = []
    workload = workload_named("matmul-add")
    found = sweep(workload, Case(1, "fp32"), [2, 4], max_time_s=0.2, progress=seen.append)
    assert seen == [point.size for point in found.points] == [2, 4]
    assert found.points[1].flops_per_s == pytest.approx(144 / found.points[1].min_s)
    text = render(sweep_document(found), "text")
    assert "size 2" in text
    assert "GFLOP/s" in text
    assert finding(found).split(";")[0] in " ".join(text.split())
    paint(found, tmp_path / "sweep.png")
    assert (tmp_path / "sweep.png").read_bytes().startswith(b"\x89PNG")


@given(st.integers(1, 10_000), st.integers(1, 10_000))
def test_ranges_double_and_keep_both_ends(low, more):
    sizes = sizes_from(f"size={low}..{low + more}")
    assert (sizes[0], sizes[-1]) == (low, low + more)
    assert all(b == 2 * a for a, b in pairwise(sizes[:-1]))
