"""conda-forge's recipes can be rendered, and ask for what the packages need."""

import hashlib
import tomllib

import pytest
from packaging.requirements import Requirement
from rattler_build import PlatformConfig, RenderConfig, Stage0Recipe, VariantConfig

from conda_recipe import NAMES, recipe
from wheels import PACKAGES, ROOT, name_and_version

VARIANTS = """
python: [{python}.* *_cpython]
cxx_compiler: [gxx]
c_stdlib: [sysroot]
"""


@pytest.mark.parametrize("package", PACKAGES)
@pytest.mark.parametrize("platform", ["linux-64", "linux-aarch64", "osx-arm64", "win-64"])
@pytest.mark.parametrize("python", ["3.10", "3.14"])
def test_a_recipe_asks_for_what_the_package_needs(package, platform, python, tmp_path):
    name, version = name_and_version(package)
    (tmp_path / f"{name}-{version}.tar.gz").write_bytes(b"sources")
    parsed = Stage0Recipe.from_yaml(recipe(package, tmp_path, ["somebody"]))
    settings = RenderConfig(PlatformConfig(target_platform=platform))
    (rendered,) = parsed.render(VariantConfig.from_yaml(VARIANTS.format(python=python)), settings)
    (source,) = rendered.recipe.to_dict()["source"]
    assert source["sha256"] == hashlib.sha256(b"sources").hexdigest()
    assert source["url"].endswith(f"{name}-{version}.tar.gz")
    project = tomllib.loads((ROOT / "packages" / package / "pyproject.toml").read_text("utf-8"))["project"]
    needed = map(Requirement, project["dependencies"])
    wanted = {NAMES.get(one.name, one.name) for one in needed if python == "3.10" or one.name != "tomli"}
    assert {str(one).split()[0] for one in rendered.recipe.requirements.run} == wanted | {"python"}
