"""Write conda-forge's recipe of a package.

    python tools/conda_recipe.py dist torchwhy --maintainer NAME > recipe.yaml

Version and hash belong to the source distribution in the folder; pyproject.toml of the package has the rest.
conda-forge builds the native library for each platform with its own compilers.
"""

from __future__ import annotations

import argparse
import hashlib
import tomllib
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

from wheels import PACKAGES, ROOT

NAMES = {"isal": "python-isal", "soundfile": "pysoundfile", "torch": "pytorch"}
"""conda-forge's names of projects that have another one on the Python index."""

RECIPE = """\
schema_version: 1
context:
  version: "{version}"
package:
  name: {name}
  version: ${{{{ version }}}}
source:
  url: https://pypi.org/packages/source/{name[0]}/{name}/{name}-${{{{ version }}}}.tar.gz
  sha256: {sha256}
build:
  number: 0
  script:
    env:
      {package_upper}_NEEDS_NATIVE: "1"
    content: ${{{{ PYTHON }}}} -m pip install . -vv --no-deps --no-build-isolation
requirements:
  build:
    - ${{{{ compiler("cxx") }}}}
    - ${{{{ stdlib("c") }}}}
    - cmake
    - ninja
    - if: build_platform != target_platform
      then:
        - python
        - cross-python_${{{{ target_platform }}}}
  host:
    - python
    - pip
{host}
  run:
    - python
{run}
tests:
  - python:
      imports: [{package}]
      pip_check: true
  - script:
      - {package} info
about:
  homepage: https://pypi.org/project/{name}/
  license: {license}
  license_file: LICENSE
  summary: "{summary}"
extra:
  recipe-maintainers: [{maintainers}]
"""


def recipe(package: str, folder: Path, maintainers: list[str]) -> str:
    """Return the recipe of a package whose source distribution is in a folder."""
    declared = tomllib.loads((ROOT / "packages" / package / "pyproject.toml").read_text("utf-8"))
    project: dict[str, Any] = declared["project"]
    sources = folder / f"{project['name']}-{project['version']}.tar.gz"
    return RECIPE.format(
        package=package,
        package_upper=package.upper(),
        name=project["name"],
        version=project["version"],
        sha256=hashlib.sha256(sources.read_bytes()).hexdigest(),
        host=_lines(declared["build-system"]["requires"]),
        run=_lines(project["dependencies"]),
        license=project["license"],
        summary=project["description"],
        maintainers=", ".join(maintainers),
    )


def _lines(requirements: list[str]) -> str:
    """Return requirements of the Python index as the recipe's lines.

    Of markers, only versions of Python remain: what they say of platforms is about the index's wheels.
    """
    lines = []
    for needed in map(Requirement, requirements):
        text = f"{NAMES.get(needed.name, needed.name)} {needed.specifier}".strip()
        marker = str(needed.marker or "")
        if marker.startswith("python_version "):
            versions = marker.removeprefix("python_version ").replace(" ", "").replace('"', "")
            lines += [f'    - if: match(python, "{versions}")', f"      then: {text}"]
        else:
            lines.append(f"    - {text}")
    return "\n".join(lines)


def main() -> None:
    """Print the recipe that the arguments ask for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="folder of the source distribution")
    parser.add_argument("package", choices=PACKAGES)
    parser.add_argument("--maintainer", action="append", default=[], help="a GitHub account; may be repeated")
    asked = parser.parse_args()
    print(recipe(asked.package, asked.folder, asked.maintainer), end="")


if __name__ == "__main__":
    main()
