"""How the site is built: `python -m sphinx -W --keep-going docs docs/_build`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

from ectype import __version__

project = "ectype"
author = "the ectype contributors"
version = release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "commands", "docstrings"]
exclude_patterns = ["_build"]

myst_enable_extensions = ["deflist"]
myst_heading_anchors = 4

default_role = "py:obj"
add_module_names = False
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
maximum_signature_line_length = 88
python_display_short_literal_types = True
# Two dashes before an option have to stay two.
smartquotes = False

html_theme = "furo"
html_title = "ectype"
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme_options = {"navigation_with_keys": True}
