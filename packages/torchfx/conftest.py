"""What is not collected: programs; kernels where Triton is missing, whose imports are to fail nowhere else."""

import gc
import os
from importlib.util import find_spec

import pytest

collect_ignore = ["benchmark", "build", "docs", "examples", "tools"]
collect_ignore_glob = [
    "*conftest.py",  # they hold no doctests, and share one name
    "docs/*.py",  # also if the folder is given: `pytest packages/torchfx/docs`
]
if not find_spec("triton"):
    collect_ignore_glob += ["src/torchfx/_ops/*kernels.py", "src/torchfx/_ops/sos/chunks.py", "tests/*_kernels.py"]
    collect_ignore.append("src/torchfx/_ops/two_float.py")
if not find_spec("torchwhy"):
    collect_ignore.append("src/_torchfx_rules")

if "PYTEST_XDIST_WORKER" in os.environ:
    # Several processes share the cores: OpenMP's threads that wait for each other must sleep rather than keep a core
    # busy. PyTorch reads this when it is loaded, later than this file.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Thousands of tests are millions of objects that stay: the collector would look through them again and again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
