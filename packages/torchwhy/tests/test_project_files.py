"""The files that describe the project agree with each other."""

import re
import sys
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[3]
PACKAGES = {
    path.parent.name: tomllib.loads(path.read_text())["project"] for path in ROOT.glob("packages/*/pyproject.toml")
}


def test_both_packages_are_looked_at():
    assert set(PACKAGES) == {"torchfx", "torchwhy"}


@pytest.mark.parametrize("name", PACKAGES)
def test_the_citation_has_the_version_and_the_licence(name):
    cited = dict(re.findall(r"^(version|license): (\S+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE))
    assert cited == {"version": PACKAGES[name]["version"], "license": PACKAGES[name]["license"]}


@pytest.mark.parametrize("name", PACKAGES)
def test_a_package_that_says_it_is_typed_is_marked(name):
    marked = (ROOT / "packages" / name / "src" / name / "py.typed").exists()
    assert ("Typing :: Typed" in PACKAGES[name]["classifiers"]) == marked


@pytest.mark.parametrize("name", PACKAGES)
def test_classifiers_begin_with_the_oldest_python_allowed(name):
    prefix = "Programming Language :: Python :: 3."
    minors = [int(each.removeprefix(prefix)) for each in PACKAGES[name]["classifiers"] if each.startswith(prefix)]
    assert PACKAGES[name]["requires-python"] == f">=3.{min(minors)}"
    assert minors == list(range(min(minors), max(minors) + 1))
