"""Settings of Sphinx that both sites share. Each package's `docs/conf.py` imports them."""

from __future__ import annotations

import gc
import os
import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "extensions"))
gc.set_threshold(100_000, 50, 100)  # documents are many objects that stay: the default takes a tenth of the build

project = ""  # each package sets its own
URLS = {
    name.lower(): url
    for path in sorted(HERE.parent.glob("packages/*/pyproject.toml"))
    for name, url in tomllib.loads(path.read_text(encoding="utf-8"))["project"].get("urls", {}).items()
}
"""The project's addresses by label, such as "source", as the packages have them in `project.urls`."""

author = "the authors of torchfx and torchwhy"
project_copyright = f"2026, {author}"
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "plain_docstrings",
    "code_blocks",
    "local_links",
    "reference_pages",
    "command_pages",
    "example_pages",
    "sphinx_copybutton",
    "sphinx_llm.txt",
]

# The address of the sources, and of the inventories of other projects, are needed on the network only.
if os.environ.get("DOCS_ONLINE"):
    extensions.append("sphinx.ext.intersphinx")
    intersphinx_mapping = {
        "python": ("https://docs.python.org/3", None),
        "torch": ("https://docs.pytorch.org/docs/stable", None),
        "numpy": ("https://numpy.org/doc/stable", None),
        "scipy": ("https://docs.scipy.org/doc/scipy", None),
    }

source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build"]
default_role = "py:obj"  # `name` links to a name that is documented here, and is code otherwise
add_module_names = False
nitpicky = False
toc_object_entries = False
suppress_warnings = ["ref.python"]  # a short name with several meanings stays code
smartquotes = False

autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
autodoc_class_signature = "mixed"
autodoc_use_legacy_class_based = False
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True

myst_enable_extensions = ["colon_fence", "attrs_block", "deflist", "substitution"]
myst_heading_anchors = 4
myst_substitutions = {
    "source_tree": (
        "`git clone {source}` fetches the source tree of both packages. Questions and faults: {issues}. "
        "Releases: {changelog}."
        if {"source", "issues", "changelog"} <= URLS.keys()
        else "The project has no public address yet: take a copy of the source tree (the folder with `packages/` and "
        "`docs/`) from the place where you found these pages. It contains both packages, their examples and "
        "benchmarks, and the changes of each version in `CHANGELOG.md`."
    ).format_map(URLS)
}
myst_links_external_new_tab = False

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "furo"
html_show_sphinx = False
html_copy_source = False
html_theme_options = {"navigation_with_keys": False}
html_static_path = [str(HERE / "static")]
html_css_files = ["site.css"]
html_js_files = [("site.js", {"defer": "defer"})]
html_favicon = str(HERE / "static" / "icon.svg")

llms_txt_build_parallel = False
llms_txt_nested_enabled = False  # an index for each folder: time grows with the square of the number of pages
llms_txt_suppress_unknown_node_warnings = ["abbreviation"]  # the star and the slash of signatures
