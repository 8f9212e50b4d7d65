"""Check that a folder holds a whole release: `python tools/check_release.py dist v1.2.3`."""

from __future__ import annotations

import sys
from pathlib import Path

from check_wheel import complaints, exported_names
from packaging.utils import parse_sdist_filename, parse_wheel_filename
from wheels import PACKAGES, PLATFORMS, ROOT


def missing(folder: Path, version: str) -> list[str]:
    """Return what a release of a version lacks or has too much."""
    found = []
    wheels = sorted(folder.glob("*.whl"))
    for package in PACKAGES:
        mine = {path: parse_wheel_filename(path.name) for path in wheels if path.name.startswith(f"{package}-")}
        tags = {str(tag.platform) for _, _, _, all_tags in mine.values() for tag in all_tags}
        wanted = {tag for platform in PLATFORMS for tag in platform.tag.split(".")}
        found += [f"{package}: no wheel for {tag}" for tag in sorted(wanted - tags)]
        found += [f"{path.name}: not version {version}" for path, parts in mine.items() if str(parts[1]) != version]
        sources = [parse_sdist_filename(path.name) for path in folder.glob(f"{package}-*.tar.gz")]
        if [str(one) for _, one in sources] != [version]:
            found.append(f"{package}: no source distribution of version {version}")
        interfaces = {frozenset(exported_names(path)) for path in mine}
        if len(interfaces) > 1:
            found.append(f"{package}: the wheels' libraries give out different functions")
    found += [f"{path.name}: {text}" for path in wheels for text in complaints(path)]
    if f"\n## {version}" not in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"):
        found.append(f"CHANGELOG.md has no heading for {version}")
    return found


def main() -> int:
    """Check the folder of the first argument against the tag of the second; return 1 if it is no release."""
    found = missing(Path(sys.argv[1]), sys.argv[2].removeprefix("v"))
    print("\n".join(found) or "a whole release")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
