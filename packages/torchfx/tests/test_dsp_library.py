"""A native library that does not fit is warned of once, and plain PyTorch computes; no command ends in a traceback."""

import _ctypes
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from torchfx import native_library
from torchfx._ops.native import instruction_set, library

pytestmark = pytest.mark.skipif(library is None, reason="damages the native library")

NAME = "torchfx_dsp"
HERE = None if library is None else Path(library._name)


def load(monkeypatch, path, abi_version=1):
    """What is loaded from a path, with the warning as text."""
    monkeypatch.setattr(native_library, "_find", lambda name: path)
    with pytest.warns(RuntimeWarning) as heard:
        found, reason = native_library.load(NAME, abi_version)
    (warning,) = heard
    return found, reason, str(warning.message)


@pytest.mark.parametrize("content", [b"", b"no library", b"\x7fELF", b"MZ" + bytes(1000)], ids=range(4))
def test_a_file_that_is_no_library_is_not_loaded(content, monkeypatch, tmp_path):
    path = tmp_path / "library"
    path.write_bytes(content)
    found, reason, warning = load(monkeypatch, path)
    assert found is None
    assert reason.startswith(f"{path} cannot be loaded: ")
    assert warning == f"{reason}; plain PyTorch computes, more slowly; install torchfx again"


def test_a_library_of_something_else_is_not_used(monkeypatch):
    found, reason, _ = load(monkeypatch, _ctypes.__file__)
    assert found is None
    assert f"{NAME}_abi_version" in reason


@pytest.mark.parametrize("off", [-1, 1])
def test_a_library_of_another_version_is_not_used(off, monkeypatch):
    version = getattr(library, f"{NAME}_abi_version")()
    found, reason, _ = load(monkeypatch, HERE, version + off)
    assert found is None
    assert reason == f"{HERE} has interface version {version}, this torchfx needs {version + off}"


@pytest.mark.skipif(sys.platform != "linux", reason="writes the header of Linux's libraries")
def test_a_library_for_another_processor_is_not_loaded(monkeypatch, tmp_path):
    content = bytearray(HERE.read_bytes())
    content[18:20] = (0xF3).to_bytes(2, "little")  # e_machine: RISC-V
    path = tmp_path / "library"
    path.write_bytes(content)
    found, reason, _ = load(monkeypatch, path)
    assert found is None
    assert "cannot be loaded" in reason


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such files")
@pytest.mark.parametrize("part", [*range(0, 65, 8), 0.001, 0.01, 0.1, 0.5, 0.9, 0.999999])
def test_a_library_that_was_cut_is_not_loaded(part, monkeypatch, tmp_path):
    path = tmp_path / "library"
    path.write_bytes(HERE.read_bytes()[: part if isinstance(part, int) else int(part * HERE.stat().st_size)])
    found, reason, _ = load(monkeypatch, path)
    assert found is None
    assert reason.startswith(f"{path} cannot be loaded: ")


def test_a_command_runs_with_a_library_that_was_cut(tmp_path):
    path = tmp_path / "library"
    path.write_bytes(HERE.read_bytes()[:9999])
    program = f"""
import sys
from torchfx import native_library
native_library._find = lambda name: {str(path)!r}
sys.argv = ["torchfx", "info"]
from torchfx.cli import main
main()
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert len(re.findall("cannot be loaded", done.stderr)) == 1
    assert "reference" in done.stdout


CPUINFO = Path("/proc/cpuinfo")


@pytest.mark.skipif("TORCHFX_ISA" in os.environ or not CPUINFO.is_file(), reason="compares with what Linux says")
def test_the_widest_instruction_set_of_the_processor_is_used():
    flags = re.search(r"^flags\s*:(.*)$", CPUINFO.read_text(), re.MULTILINE)
    if flags is None:
        pytest.skip("not an x86 processor")
    avx2 = {"avx2", "fma"}
    wide = {"avx512": avx2 | {"avx512f", "avx512dq", "avx512bw", "avx512vl"}, "avx2": avx2, "baseline": set()}
    assert instruction_set() == next(name for name, needed in wide.items() if needed <= set(flags[1].split()))
