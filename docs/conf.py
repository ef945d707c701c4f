"""How the site is built: `python -m sphinx -W -b html docs docs/_build`; no network."""

from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx

import pdp_calibrate

project = "pdp_calibrate"
author = "The pdp_calibrate developers"
project_copyright = author
version = release = pdp_calibrate.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_design",
]
exclude_patterns = ["_build"]
nitpicky = False  # types in docstrings are written for people

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
myst_dmath_double_inline = True

autosummary_generate = True
autodoc_typehints = "none"  # the docstrings say what an argument means
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

html_theme = "pydata_sphinx_theme"
html_title = "pdp_calibrate"
html_show_sourcelink = False
html_copy_source = False
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme_options = {
    "secondary_sidebar_items": ["page-toc"],
    "navigation_with_keys": False,
    "show_prev_next": True,
    "header_links_before_dropdown": 8,
    "footer_start": ["copyright"],
    "footer_end": [],
}


def inline_math(writer: Any, node: nodes.math) -> None:
    """Write a formula as MathML, which browsers show by themselves."""
    writer.body.append(convert(node.astext()))
    raise nodes.SkipNode


def block_math(writer: Any, node: nodes.math_block) -> None:
    """Write a formula on a line of its own, with the anchor of its label."""
    anchors = "".join(f'<span id="{one}"></span>' for one in node["ids"])
    formula = convert(node.astext(), display="block")
    writer.body.append(f'<div class="formula">{anchors}{formula}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the writer of formulas."""
    app.add_html_math_renderer("mathml", (inline_math, None), (block_math, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
