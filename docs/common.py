"""Settings of Sphinx that both sites share. Each package's `docs/conf.py` imports them."""

from __future__ import annotations

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "extensions"))

project = ""  # each package sets its own
author = "the authors of torchfx and torchwhy"
project_copyright = f"2026, {author}"
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "plain_docstrings",
    "reference_pages",
    "command_pages",
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

myst_enable_extensions = ["colon_fence", "attrs_block", "deflist"]
myst_heading_anchors = 4
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
