"""Peaks of this machine, measured and read back."""

import json

import msgspec
import pytest
import torch

from tests.command_line import run_here
from torchwhy.device_peaks import read_device_peaks
from torchwhy.errors import ArgumentError
from torchwhy.experiment import peaks
from torchwhy.experiment.document import peaks_document
from torchwhy.experiment.peaks import DevicePeaks, Rate, measure_peaks
from torchwhy.present.formats import FORMATS, render

FOUND = DevicePeaks("cpu", "cpu", 2.13e10, 1 << 28, (Rate("float32", 1024, 1e-2, 2.147e11),), disturbed=True)


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(peaks, "LONG_ENOUGH_S", 1e-9)  # one size
    monkeypatch.setattr(peaks, "SMALLEST", 64)
    monkeypatch.setattr(peaks, "COPIED", {"cpu": 1 << 20})


def test_every_type_of_the_processor_is_measured(small):
    (found,) = measure_peaks("cpu", timed_s=0.05)
    assert [rate.dtype for rate in found.rates] == ["float64", "float32", "bfloat16", "float16"]
    for rate in found.rates:
        assert rate.flops_per_s == pytest.approx(2 * 64**3 / rate.time_s)
    assert 0 < found.bandwidth_bytes_per_s < 1e13
    assert torch.get_float32_matmul_precision() == "highest"


def test_larger_products_are_tried_until_they_last(monkeypatch):
    times = {512: 1e-3, 1024: 4e-3, 2048: 4e-2, 4096: 0.5}  # the last but one is the fastest for its work
    asked = []

    class Timed:
        warnings = ()

        def __init__(self, size):
            self.min_s = times[size]

    def measured(call, max_time_s):
        asked.append(len(call.args[0]))
        return Timed(asked[-1])

    monkeypatch.setattr(peaks, "measure", measured)
    rate, _ = peaks._fastest(torch.device("cpu"), "float32", 1.0)
    assert asked == [512, 1024, 2048, 4096]
    assert rate == Rate("float32", 1024, 4e-3, 2 * 1024**3 / 4e-3)


def test_the_answer_is_a_table_that_reads_back(tmp_path):
    assert msgspec.toml.decode(FOUND.toml) == {
        "tool": {"torchwhy": {"device": {"cpu": {"bandwidth_gb_s": 21.3, "teraflops": {"float32": 0.215}}}}}
    }
    (tmp_path / "pyproject.toml").write_text(FOUND.toml)
    assert read_device_peaks(tmp_path / "pyproject.toml")["cpu"].flops("float32") == pytest.approx(2.15e11)


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_has_the_answer(form):
    assert render(peaks_document([FOUND]), form)


def test_text_and_json_have_figures_table_and_doubt():
    text = " ".join(render(peaks_document([FOUND]), "text").split())
    for part in ("product of float32", "0.215 TFLOP/s", "21.3 GB/s", "teraflops = { float32 = 0.215 }", "too low"):
        assert part in text
    data = json.loads(render(peaks_document([FOUND]), "json"))
    assert (data["schema"], data["kind"], data["devices"][0]["toml"]) == (1, "peaks", FOUND.toml)


def test_peaks_have_no_grid_and_no_sweep(tmp_path):
    ran = run_here("experiment", "peaks", "--grid", folder=tmp_path)
    assert ran.returncode == 2
    assert "--grid and --sweep are not for peaks" in ran.stderr
    with pytest.raises(ArgumentError, match="is not here"):
        measure_peaks("hpu")
