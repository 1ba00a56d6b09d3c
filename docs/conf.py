"""How Sphinx builds the site: `make docs`. Every `code-cell` of a page is executed; an error in one fails the build."""

import os
import sys
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

import contourmc

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))
os.environ["MATPLOTLIBRC"] = str(HERE)  # for the processes that execute pages, as is the next line
os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # for `contourmc`
os.environ["PYTHONWARNINGS"] = "ignore:IProgress not found"  # tqdm's, which NumPyro imports

project = "contourmc"
author = "the authors of contourmc"
copyright = "the authors of contourmc, Apache-2.0"
version = release = contourmc.__version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx_copybutton", "docstrings", "mathml", "repository_links"]
exclude_patterns = ["_ext"]
suppress_warnings = ["misc.highlighting_failure"]  # an ellipsis in a snippet that is not a whole program

copybutton_prompt_text = r">>> |\.\.\. "  # what is copied are the lines to type
copybutton_prompt_is_regexp = True

html_theme = "furo"
html_title = "contourmc"
html_static_path = ["_static", str(files("ziamath.fonts") / "STIXTwoMath-Regular.ttf")]  # for formulas
html_css_files = ["site.css"]
html_math_renderer = "mathml"  # the browser's own: nothing is loaded from elsewhere
html_show_sphinx = False
html_show_sourcelink = False
html_show_search_summary = False  # a page that is opened as a file may not read others

myst_enable_extensions = ["amsmath", "colon_fence", "dollarmath"]
myst_heading_anchors = 3

nb_execution_mode = "force"  # what the library does today, not what it did when a page was last changed
nb_execution_timeout = 300
nb_execution_show_tb = True  # an error is a warning of the build, and so an error
nb_merge_streams = True
nb_render_markdown_format = "gfm"  # with tables

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "all"
python_display_short_literal_types = True
python_maximum_signature_line_length = 88
python_use_unqualified_type_names = True

# PyTorch is large: without it the guide to it is shown, and not executed.
if find_spec("torch") is None:
    tags.add("without_torch")  # noqa: F821  # given by Sphinx
    nb_execution_excludepatterns = ["guides/classifier.md"]
    autodoc_mock_imports = ["torch"]
