"""Check that a folder holds a whole release: `python tools/check_release.py dist v1.2.3`."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from packaging.utils import canonicalize_name, parse_sdist_filename, parse_wheel_filename

from check_wheel import complaints, exported_names
from wheels import PACKAGES, PLATFORMS, ROOT, name_and_version

NOT_OURS = {"torchfx"}
"""Names that belong to other projects on the index; a package's is `name` in its pyproject.toml."""


def missing(folder: Path, version: str) -> list[str]:
    """Return what a release of a version lacks or has too much; nothing if it is whole."""
    wheels = sorted(folder.glob("*.whl"))
    found = [text for package in PACKAGES for text in _of_package(package, folder, wheels, version)]
    found += [f"{path.name}: {text}" for path in wheels for text in complaints(path)]
    if f"\n## {version}\n" not in (ROOT / "CHANGELOG.md").read_text("utf-8"):
        found.append(f"CHANGELOG.md has no heading '## {version}'")
    if not re.search(rf"^version: {re.escape(version)}$", (ROOT / "CITATION.cff").read_text("utf-8"), re.MULTILINE):
        found.append(f"CITATION.cff is not of version {version}")
    return found


def _of_package(package: str, folder: Path, wheels: list[Path], version: str) -> list[str]:
    name, declared = name_and_version(package)
    found = [f"packages/{package}/pyproject.toml says version {declared}, the tag {version}"] * (declared != version)
    if canonicalize_name(name) in NOT_OURS:
        found.append(
            f"{name}: another project's name on the index; packages/{package}/pyproject.toml needs another one"
        )
    named = canonicalize_name(name)
    mine = {path: parse_wheel_filename(path.name) for path in wheels}
    mine = {path: parts for path, parts in mine.items() if parts[0] == named}
    tags = [str(tag.platform) for _, _, _, all_tags in mine.values() for tag in all_tags]
    wanted = {tag for platform in PLATFORMS if package in platform.packages for tag in platform.tag.split(".")}
    found += [f"{name}: no wheel for {tag}" for tag in sorted(wanted - set(tags))]
    found += [f"{name}: a wheel for {tag}, where it does not run" for tag in sorted(set(tags) - wanted)]
    found += [f"{path.name}: not version {version}" for path, parts in mine.items() if str(parts[1]) != version]
    sources = [parse_sdist_filename(path.name) for path in folder.glob("*.tar.gz")]
    if [str(one) for of, one in sources if of == named] != [version]:
        found.append(f"{name}: not one source distribution of version {version}")
    if len({frozenset(exported_names(path)) for path in mine}) > 1:
        found.append(f"{name}: the wheels' libraries give out different functions")
    return found


def main() -> int:
    """Check the folder of the first argument against the tag of the second; return 1 if it is no release."""
    found = missing(Path(sys.argv[1]), sys.argv[2].removeprefix("v"))
    print("\n".join(found) or "a whole release")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
