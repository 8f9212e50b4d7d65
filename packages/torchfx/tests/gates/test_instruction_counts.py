"""Instructions per sample of fixed workloads on the baseline path, counted by callgrind: no noise, no clock."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from torchfx._ops import native

HERE = Path(__file__).parent
COMPILER = shutil.which("c++") or shutil.which("g++")
pytestmark = pytest.mark.skipif(
    native.library is None or COMPILER is None or shutil.which("valgrind") is None,
    reason="needs the native library, a C++ compiler and valgrind",
)

# Instructions per sample, measured with GCC 12 at -O3, SSE2; budgets leave a quarter for other compilers.
MEASURED = {
    "sos one": 40.5,
    "sos many": 40.2,
    "sos one both ways": 78.9,
    "sos many both ways": 78.1,
    "lfilter one": 48.7,
    "lfilter many": 24.3,
    "fir one short": 52.4,
    "fir one long": 129.0,
    "fir one long infinite": 293.7,
    "fir many long rows": 105.7,
    "sos many gradient": 153.9,
}
MEASURED_IN_BLOCKS = {"limiter": 143.1, "compressor": 65.1, "network": 1696.0}
"""The same for a program's blocks of 2 x 64, where what a call does once weighs most."""


@pytest.fixture(scope="module")
def workload(tmp_path_factory):
    program = tmp_path_factory.mktemp("gates") / "workload"
    library = Path(native.library._name)
    subprocess.run(
        [COMPILER, "-O2", "-std=c++17", f"-I{HERE.parents[1] / 'csrc'}", HERE / "workload.cpp", library,
         f"-Wl,-rpath,{library.parent}", "-o", program],
        check=True,
    )  # fmt: skip
    return program


def instructions(workload, name, functions, folder):
    """Return how many instructions a workload runs in these functions."""
    ran = subprocess.run(
        ["valgrind", "--tool=callgrind", f"--toggle-collect={functions}",
         f"--callgrind-out-file={folder / 'out'}", workload, name],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return int(re.search(r"Collected : (\d+)", ran.stderr)[1])


@pytest.mark.parametrize("name", MEASURED)
def test_instructions_per_sample_stay_within_budget(workload, name, tmp_path):
    samples = (8 if "many" in name else 1) * 65536
    per_sample = (
        instructions(workload, name, f"torchfx_*{'phase' if 'both ways' in name else 'ward*'}", tmp_path) / samples
    )
    assert 0.5 * MEASURED[name] < per_sample < 1.25 * MEASURED[name], f"{per_sample:.2f} instructions per sample"


@pytest.mark.parametrize("name", MEASURED_IN_BLOCKS)
def test_instructions_of_short_blocks_stay_within_budget(workload, name, tmp_path):
    per_sample = instructions(workload, name, "torchfx_program_run", tmp_path) / (1000 * 2 * 64)
    measured = MEASURED_IN_BLOCKS[name]
    assert 0.5 * measured < per_sample < 1.25 * measured, f"{per_sample:.1f} instructions per sample"
