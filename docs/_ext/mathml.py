"""Formulas as MathML, by docutils: browsers set it themselves, so that nothing is loaded from elsewhere."""

import re

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

_LOG = re.compile(r"\\log(?=\s*\\?[A-Za-z])(?!\s*\\(?:left|big))")


def spaced(formula: str) -> str:
    """As TeX sets it: log Ψ has a thin space, and log(Ψ) has none."""
    return _LOG.sub(r"\\log\\,", formula)


def visit_inline(writer: HTML5Translator, node: nodes.math) -> None:
    writer.body.append(tex2mathml(spaced(node.astext())))
    raise nodes.SkipNode


def visit_block(writer: HTML5Translator, node: nodes.math_block) -> None:
    writer.body.append(f'<div class="formula">{tex2mathml(spaced(node.astext()), as_block=True)}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
