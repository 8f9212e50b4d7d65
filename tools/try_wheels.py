"""Try built wheels in a fresh environment: `python tools/try_wheels.py dist [--package torchwhy] [--tests]`.

Installs the packages from the folder and nothing of theirs from elsewhere, all they need from the index. No compiler is
in reach. Then the README's main jobs must run, with the native libraries in use; with `--tests` the whole test suite,
too, against what was installed. What torchwhy installs beside NumPy stays below a limit (`LARGEST`). The README's
commands (environment, installation, main job) are timed, also by processor time, which Windows does not count (0).
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

from wheels import PACKAGES, ROOT, name_and_version

TRACE = ROOT / "packages" / "torchwhy" / "tests" / "recorded" / "training_step.json.gz"
JOBS = {"torchwhy": ["torchwhy", "explain", str(TRACE)], "torchfx": ["torchfx", "demo"]}
NATIVE = {"torchwhy": "scanner of traces native", "torchfx": "native, instruction set"}
TOOLS = ("pip", "setuptools", "pkg_resources")
EXTRAS = {"torchwhy": "", "torchfx": "[plot]"}
LARGEST = {"torchwhy": 30_000_000}
"""Bytes of all that is installed but NumPy, which takes 72 MB (2.4, with its bytecode)."""


def processor_seconds() -> float:
    """Return the processor time of all processes that were started and ended."""
    return os.times().children_user + os.times().children_system


class Environment:
    """A fresh virtual environment in a folder."""

    def __init__(self, folder: Path) -> None:
        """Make it."""
        self._started, self._spent = time.perf_counter(), processor_seconds()
        self._folder = folder
        self._home = folder / "environment"
        venv.create(self._home, with_pip=True)
        self._programs = self._home / ("Scripts" if sys.platform == "win32" else "bin")

    def run(self, *command: str, alone: bool = False) -> str:
        """Run a program of the environment in the folder and return what it prints.

        Args:
            command: a program and its arguments.
            alone: whether no other folder's programs are found, such as a compiler.
        """
        path = str(self._programs) if alone else os.pathsep.join([str(self._programs), os.environ["PATH"]])
        print("$", *command, flush=True)
        started = time.perf_counter()
        done = subprocess.run(
            [str(self._programs / command[0]), *command[1:]],
            cwd=self._folder,
            env=os.environ | {"PATH": path},
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
        print(f"{done.stdout[-1500:]}[{time.perf_counter() - started:.1f} s]", flush=True)
        if done.returncode:
            raise SystemExit(f"{' '.join(command)} ended with {done.returncode}")
        return done.stdout

    def install(self, package: str, extra: str, folder: Path) -> None:
        """Install a package's wheel that fits this machine, then what it needs."""
        name, version = name_and_version(package)
        pip = ("python", "-m", "pip", "install", "-q", "--disable-pip-version-check")
        wheel = ("--no-index", "--no-deps", "--only-binary", ":all:", "--find-links", str(folder.resolve()))
        self.run(*pip, *wheel, f"{name}=={version}", alone=True)
        needs = ("--prefer-binary", "-c", str(ROOT / "constraints.txt"), f"{name}{extra}=={version}")
        self.run(*pip, *needs, alone=True)

    def age(self) -> str:
        """Return the time since it was begun."""
        return (
            f"{time.perf_counter() - self._started:.0f} s, {processor_seconds() - self._spent:.0f} s of processor time"
        )

    def installed_bytes(self, *but: str) -> int:
        """Return the size of everything installed except for some packages."""
        packages = self._home.rglob("site-packages")
        files = (path for site in packages for path in site.rglob("*") if path.is_file())
        return sum(path.stat().st_size for path in files if not set(but) & set(path.parts))


def squeezed(text: str) -> str:
    """Return a text with single blanks."""
    return " ".join(text.split())


def main() -> int:
    """Install, run; return 1 where a native library isn't in use or too much is installed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="folder of the wheels")
    parser.add_argument("--package", choices=PACKAGES, action="append", help="only this package; may be repeated")
    parser.add_argument("--tests", action="store_true", help="run the test suite too")
    asked = parser.parse_args()
    packages = asked.package or PACKAGES
    with tempfile.TemporaryDirectory() as folder:
        environment = Environment(Path(folder))
        for package in packages:
            environment.install(package, EXTRAS[package], asked.folder)
            environment.run(*JOBS[package], alone=True)
            print(f"{package}: from no environment to the end of its main job {environment.age()}", flush=True)
            if NATIVE[package] not in squeezed(environment.run(package, "info", alone=True)):
                print(f"{package}: the native library is not in use")
                return 1
            size = environment.installed_bytes(*TOOLS)
            without_numpy = environment.installed_bytes(*TOOLS, "numpy", "numpy.libs")
            print(f"{package}: {size / 1e6:.0f} MB with all that it needs, {without_numpy / 1e6:.0f} MB without NumPy")
            if without_numpy > LARGEST.get(package, without_numpy):
                print(f"{package}: more than {LARGEST[package] / 1e6:.0f} MB without NumPy")
                return 1
        if asked.tests:
            for package in packages:
                environment.install(package, "[test]", asked.folder)
            # Only what is installed can be imported: the clone's packages lie in its src folders. Not with
            # --import-mode=append, which takes the packages' conftest.py files for each other's.
            tests = [str(ROOT / "packages" / package / "tests") for package in packages]
            environment.run("python", "-m", "pytest", "-n", "auto", *tests)
    return 0


if __name__ == "__main__":
    sys.exit(main())
