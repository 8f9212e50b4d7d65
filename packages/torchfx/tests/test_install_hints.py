"""No hint sends anybody to a package index for torchfx: the package of that name there is another one."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SUFFIXES = {".py", ".md", ".toml", ".txt", ".js", ".html", ".cpp", ".h"}
FROM_AN_INDEX = re.compile(r"""(pip3?|pipx|uv)\s+(pip\s+)?(install|add|run)\s+(-\S+\s+)*['"]?torchfx\b""")

AN_EXTRA = re.compile(r"(?<!packages/)\btorchfx\[[a-z]")
"""An extra without the folder, in what people read; `pyproject.toml` names its own."""


def test_hints_are_recognised():
    assert FROM_AN_INDEX.search("needs mutagen: pip install 'torchfx[tags]'")
    assert FROM_AN_INDEX.search("pip install -U torchfx")
    assert AN_EXTRA.search("with PyAV (`torchfx[av]`)")
    by_folder = 'pip install -c constraints.txt "packages/torchfx[plot]"'
    assert not FROM_AN_INDEX.search(by_folder)
    assert not AN_EXTRA.search(by_folder)


@pytest.mark.parametrize("folder", ["packages/torchfx", "packages/torchwhy", "."])
def test_nothing_is_installed_by_that_name(folder):
    paths = (ROOT / folder).glob("*") if folder == "." else (ROOT / folder).rglob("*")
    files = [path for path in paths if path.suffix in SUFFIXES and path.is_file() and path != Path(__file__)]
    assert files
    for pattern, read in ((FROM_AN_INDEX, files), (AN_EXTRA, [path for path in files if path.suffix != ".toml"])):
        texts = ((path, path.read_text("utf-8", "ignore")) for path in read)
        assert [(path, hint[0]) for path, text in texts for hint in pattern.finditer(text)] == []
