"""Build both sites, offline: `python docs/build.py`. Warnings are errors.

The sites lie in docs/_build/torchfx and docs/_build/torchwhy; open index.html there. Both are built at once: Sphinx
reads and writes with all cores, but it resolves links, indexes and writes Markdown with one.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("torchfx", "torchwhy")


def main() -> int:
    """Build the sites that the arguments name, or both; return 1 if one has failed."""
    target = ROOT / "docs" / "_build"
    builds = []
    for package in sys.argv[1:] or PACKAGES:
        command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-j", "auto", "-b", "html"]
        command += ["-d", str(target / f"{package}-doctrees"), str(ROOT / "packages" / package / "docs")]
        builds.append(subprocess.Popen([*command, str(target / package)]))
    statuses = [build.wait() for build in builds]
    return int(any(statuses))


if __name__ == "__main__":
    sys.exit(main())
