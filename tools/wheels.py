"""Build the wheels of both packages for every platform on one machine, and check them.

    python -m pip install -r tools/requirements.txt
    python tools/wheels.py --to dist

The native libraries have a C interface and need neither Python nor PyTorch: one wheel serves every version of Python.
CMake builds them with the flags that each package's CMakeLists.txt holds; Zig's C++ compiler brings the headers and
libraries of every system along (tools/zig.cmake). The same sources and versions give the same bytes.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

from check_wheel import complaints
from sbom import bill

ROOT = Path(__file__).parents[1]
PACKAGES = ("torchwhy", "torchfx")
WITHOUT_PYTORCH = ("torchwhy",)


@dataclass(frozen=True)
class Platform:
    """One platform: its tag on the index, Zig's name of it, and CMake's names of system and processor.

    `packages` are those that run there: the index has no PyTorch 2.6 or later for some.
    """

    tag: str
    target: str
    system: str
    processor: str
    packages: tuple[str, ...] = PACKAGES


PLATFORMS = (
    Platform("manylinux_2_17_x86_64.manylinux2014_x86_64", "x86_64-linux-gnu.2.17", "Linux", "x86_64"),
    Platform("manylinux_2_17_aarch64.manylinux2014_aarch64", "aarch64-linux-gnu.2.17", "Linux", "aarch64"),
    Platform("musllinux_1_2_x86_64", "x86_64-linux-musl", "Linux", "x86_64", WITHOUT_PYTORCH),
    Platform("musllinux_1_2_aarch64", "aarch64-linux-musl", "Linux", "aarch64", WITHOUT_PYTORCH),
    Platform("macosx_11_0_x86_64", "x86_64-macos.11.0", "Darwin", "x86_64", WITHOUT_PYTORCH),
    Platform("macosx_11_0_arm64", "aarch64-macos.11.0", "Darwin", "arm64"),
    Platform("win_amd64", "x86_64-windows-gnu", "Windows", "AMD64"),
    Platform("win_arm64", "aarch64-windows-gnu", "Windows", "ARM64", WITHOUT_PYTORCH),
)


def name_and_version(package: str) -> tuple[str, str]:
    """Return a package's name on the index and its version, which its pyproject.toml says and nothing else."""
    project = tomllib.loads((ROOT / "packages" / package / "pyproject.toml").read_text("utf-8"))["project"]
    return project["name"], project["version"]


def main() -> int:
    """Build what the arguments ask for; return 1 if a wheel fails its checks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--to", type=Path, default=ROOT / "dist", help="folder of the wheels (default: dist)")
    parser.add_argument("--package", choices=PACKAGES, action="append", help="only this package; may be repeated")
    parser.add_argument("--platform", action="append", help="only platforms whose tag has this text; may be repeated")
    parser.add_argument("--sdist", action="store_true", help="build the source distributions too")
    asked = parser.parse_args()
    platforms = [one for one in PLATFORMS if not asked.platform or any(text in one.tag for text in asked.platform)]
    if not platforms:
        parser.error(f"--platform: no tag has {asked.platform}; tags: {', '.join(one.tag for one in PLATFORMS)}")
    asked.to.mkdir(parents=True, exist_ok=True)
    failed = False
    for package in asked.package or PACKAGES:
        if asked.sdist:
            build_package(package, asked.to, "--sdist", [], {})
        for platform in (one for one in platforms if package in one.packages):
            wheel = build_wheel(package, platform, asked.to)
            found = complaints(wheel)
            failed |= bool(found)
            print(f"{wheel.name}  {wheel.stat().st_size / 1e6:.2f} MB  {'; '.join(found) or 'ok'}", flush=True)
    return int(failed)


def build_wheel(package: str, platform: Platform, to: Path) -> Path:
    """Build a package's wheel for a platform into a folder and return its path."""
    zig = Path(sysconfig.get_path("purelib")) / "ziglang" / "zig"
    environment = {
        "ZIG": os.fspath(zig),
        "ZIG_TARGET": platform.target,
        "ZIG_SYSTEM": platform.system,
        "ZIG_PROCESSOR": platform.processor,
        f"{package.upper()}_NEEDS_NATIVE": "1",
    }
    settings = [f"wheel.tags=py3-none-{tag}" for tag in platform.tag.split(".")]
    settings += ["wheel.reproducible=true", f"cmake.define.CMAKE_TOOLCHAIN_FILE={ROOT / 'tools' / 'zig.cmake'}"]
    with tempfile.TemporaryDirectory(dir=to) as folder:
        materials = Path(folder) / f"{package}.cdx.json"
        materials.write_text(bill(*name_and_version(package), platform.system), "utf-8")
        environment["WHEEL_SBOM"] = os.fspath(materials)
        build_package(package, Path(folder), "--wheel", [*settings, f"build-dir={folder}/build"], environment)
        (wheel,) = Path(folder).glob("*.whl")
        return wheel.replace(to / wheel.name)


def build_package(package: str, to: Path, kind: str, settings: list[str], environment: dict[str, str]) -> None:
    """Run a package's build backend with what is installed here."""
    command = [sys.executable, "-m", "build", kind, "--no-isolation", "--outdir", os.fspath(to)]
    command += [f"-C{setting}" for setting in settings] + [os.fspath(ROOT / "packages" / package)]
    done = subprocess.run(
        command, env=os.environ | environment, capture_output=True, text=True, errors="replace", check=False
    )
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stdout[-4000:]}{done.stderr[-4000:]}")


if __name__ == "__main__":
    sys.exit(main())
