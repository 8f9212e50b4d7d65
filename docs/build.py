"""Build both sites, offline: `python docs/build.py`. Warnings are errors.

The sites lie in docs/_build/torchfx and docs/_build/torchwhy; open index.html there.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("torchfx", "torchwhy")


def main() -> int:
    """Build the sites that the arguments name, or both; return 1 if one has failed."""
    failed = False
    for package in sys.argv[1:] or PACKAGES:
        source, target = ROOT / "packages" / package / "docs", ROOT / "docs" / "_build"
        command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-j", "auto", "-b", "html"]
        command += ["-d", str(target / f"{package}-doctrees"), str(source), str(target / package)]
        failed |= subprocess.run(command, check=False).returncode != 0
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
