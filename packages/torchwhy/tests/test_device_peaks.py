"""Measured peaks in `pyproject.toml`."""

import subprocess
import sys

import pytest

from torchwhy.device_peaks import peaks_as_toml, read_device_peaks
from torchwhy.errors import ArgumentError, ArgumentTypeError, TorchWhyError
from torchwhy.trace.peaks import Peaks, peaks_for


@pytest.fixture
def pyproject(tmp_path):
    def write(text):
        path = tmp_path / "pyproject.toml"
        path.write_text(text, "utf-8")
        return path

    return write


def test_what_is_written_reads_back(pyproject):
    devices = {
        "NVIDIA H100 80GB HBM3": Peaks(2951.0, 5, {"float32": 51.2, "bfloat16": 690.0}, measured=True),
        'an "odd" \\ name': Peaks(0.0123, 0, {}, measured=True),
    }
    path = pyproject("\n\n".join(peaks_as_toml(name, peaks) for name, peaks in devices.items()))
    read = read_device_peaks(path)
    assert read == {**devices, "NVIDIA H100 80GB HBM3": Peaks(2950.0, 5, {"float32": 51.2, "bfloat16": 690.0}, True)}
    assert peaks_for("h100 80gb hbm3", read).source == "the measured"


def test_a_file_without_the_table_has_none(pyproject):
    assert read_device_peaks(pyproject("[project]\nname = 'x'\n")) == {}


@pytest.mark.parametrize(
    ("body", "error", "message"),
    [
        ("bandwith_gb_s = 3", ArgumentError, "unknown key 'bandwith_gb_s', did you mean 'bandwidth_gb_s'"),
        ("teraflops = {}", ArgumentError, "lacks bandwidth_gb_s"),
        ("bandwidth_gb_s = 0", ArgumentError, "bandwidth_gb_s must be greater than 0 and finite, got 0"),
        ("bandwidth_gb_s = inf", ArgumentError, "finite, got inf"),
        ("bandwidth_gb_s = '3'", ArgumentTypeError, "bandwidth_gb_s must be a number, got '3'"),
        ("bandwidth_gb_s = true", ArgumentTypeError, "must be a number, got True"),
        ("bandwidth_gb_s = 1\npcie_generation = 1.5", ArgumentTypeError, "pcie_generation must be a whole number"),
        ("bandwidth_gb_s = 1\npcie_generation = 12", ArgumentError, r"must lie in \[0, 9\], 0 for none, got 12"),
        ("bandwidth_gb_s = 1\nteraflops = 3", ArgumentTypeError, "teraflops must be a table of types"),
        ("bandwidth_gb_s = 1\nteraflops = {bf16 = 3}", ArgumentError, "unknown type 'bf16' in teraflops, did you mean"),
        ("bandwidth_gb_s = 1\nteraflops = {float32 = -3}", ArgumentError, "teraflops.float32 must be greater than 0"),
    ],
)
def test_wrong_tables_are_explained(pyproject, body, error, message):
    with pytest.raises(error, match=message) as raised:
        read_device_peaks(pyproject(f'[tool.torchwhy.device."some GPU"]\n{body}\n'))
    assert '[tool.torchwhy.device."some GPU"]' in str(raised.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[tool", "is not TOML"),
        ("[tool.torchwhy]\ndevice = 3", "must be a table"),
        ("[tool.torchwhy.device]\nx = 3", "x"),
    ],
)
def test_other_files_are_refused(pyproject, text, message):
    with pytest.raises(TorchWhyError, match=message):
        read_device_peaks(pyproject(text))


def test_reading_needs_no_torch():
    code = "import sys, torchwhy.device_peaks; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
