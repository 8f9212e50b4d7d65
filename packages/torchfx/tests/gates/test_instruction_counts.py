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


@pytest.mark.parametrize("name", MEASURED)
def test_instructions_per_sample_stay_within_budget(workload, name, tmp_path):
    ran = subprocess.run(
        ["valgrind", "--tool=callgrind", f"--toggle-collect=torchfx_*{'phase' if 'both ways' in name else 'ward*'}",
         f"--callgrind-out-file={tmp_path / 'out'}", workload, name],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    instructions = int(re.search(r"Collected : (\d+)", ran.stderr)[1])
    samples = (8 if "many" in name else 1) * 65536
    per_sample = instructions / samples
    assert 0.5 * MEASURED[name] < per_sample < 1.25 * MEASURED[name], f"{per_sample:.2f} instructions per sample"
