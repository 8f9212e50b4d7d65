"""No hint sends anybody to a package index for torchfx: the package of that name there is another one."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SUFFIXES = {".py", ".md", ".toml", ".txt", ".js", ".html", ".cpp", ".h"}
FROM_AN_INDEX = re.compile(r"""(pip3?|pipx|uv)\s+(pip\s+)?(install|add|run)\s+(-\S+\s+)*['"]?torchfx\b""")


def test_hints_are_recognised():
    assert FROM_AN_INDEX.search("needs mutagen: pip install 'torchfx[tags]'")
    assert FROM_AN_INDEX.search("pip install -U torchfx")
    assert not FROM_AN_INDEX.search('pip install -c constraints.txt "packages/torchfx[plot]"')


@pytest.mark.parametrize("folder", ["packages/torchfx", "packages/torchwhy", "."])
def test_nothing_is_installed_by_that_name(folder):
    paths = (ROOT / folder).glob("*") if folder == "." else (ROOT / folder).rglob("*")
    files = [path for path in paths if path.suffix in SUFFIXES and path.is_file() and path != Path(__file__)]
    assert files
    found = [(path, hint[0]) for path in files for hint in FROM_AN_INDEX.finditer(path.read_text("utf-8", "ignore"))]
    assert found == []
