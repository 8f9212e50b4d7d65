"""Try built packages in a fresh environment: `python tools/try_wheels.py dist [--tests] [--without-compiler]`.

Installs both packages from the folder, everything else from the index. Then the README's main jobs must run and the
native libraries must be in use; with `--tests` the whole test suite runs against what was installed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
TRACE = ROOT / "packages" / "torchwhy" / "tests" / "recorded" / "training_step.json.gz"


def main() -> int:
    """Install, run, report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="folder of the wheels")
    parser.add_argument("--tests", action="store_true", help="run the test suite too")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        environment = Path(folder) / "environment"
        venv.create(environment, with_pip=True)
        programs = environment / ("Scripts" if sys.platform == "win32" else "bin")
        # Where a wheel does not fit, the build must fail, not compile.
        settings = os.environ | {"PATH": os.pathsep.join([str(programs), os.environ["PATH"]])}

        def run(*command: str) -> str:
            print("$", *command, flush=True)
            done = subprocess.run(
                [str(programs / command[0]), *command[1:]],
                cwd=folder,
                env=settings,
                stdout=subprocess.PIPE,
                text=True,
                encoding="utf-8",
                check=True,
            )
            print(done.stdout[-1500:], flush=True)
            return done.stdout

        install = ["python", "-m", "pip", "install", "-q", "--only-binary", "torchfx,torchwhy"]
        install += ["--find-links", str(asked.folder.resolve()), "-c", str(ROOT / "constraints.txt")]
        extra = "[test]" if asked.tests else ""
        run(*install, "torchwhy")
        run("torchwhy", "explain", str(TRACE))
        run(*install, f"torchfx{extra or '[plot]'}", f"torchwhy{extra or '[torch]'}")
        run("torchfx", "demo")
        if "native, instruction set" not in run("torchfx", "info") or "native" not in run("torchwhy", "info"):
            print("a native library is not in use")
            return 1
        if asked.tests:
            # --import-mode=append: what is installed comes before the sources of the clone.
            run("python", "-m", "pytest", "-q", "-n", "auto", "--import-mode=append", str(ROOT / "packages"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
