"""What is not collected: programs, and hand-offs to frameworks that are missing."""

import gc
import os
from importlib.util import find_spec

import pytest

FRAMEWORKS = {
    "lightning.py": ("lightning", "pytorch_lightning"),
    "transformers.py": ("transformers",),
    "tensorboard_plugin": ("tensorboard",),
    "mcp_server.py": ("mcp",),
}

collect_ignore = ["benchmark", "build", "docs", "examples", "tools"]
collect_ignore += [f"src/torchwhy/{name}" for name, packages in FRAMEWORKS.items() if not any(map(find_spec, packages))]
collect_ignore_glob = [
    "*conftest.py",  # they hold no doctests, and share one name
    "docs/*.py",  # also if the folder is given: `pytest packages/torchwhy/docs`
]

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
