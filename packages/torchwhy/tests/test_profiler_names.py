"""The package's public names, and what importing it costs."""

import subprocess
import sys

import pytest


def test_importing_the_package_imports_no_torch_until_a_name_is_used():
    code = """
import sys, torchwhy as profiler
print('torch' in sys.modules)
torchwhy.measure
print('torch' in sys.modules)
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["False", "True"]


def test_names_are_what_they_say():
    assert {name: getattr(profiler, name).__name__ for name in profiler.__all__} == {n: n for n in profiler.__all__}
    assert set(profiler.__all__) <= set(dir(profiler))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        profiler.nothing  # noqa: B018
