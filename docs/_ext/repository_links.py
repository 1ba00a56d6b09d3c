"""Links of a page to files of the repository, right for those who read it there, lead to the page that shows them."""

import re

from sphinx.application import Sphinx

_EXAMPLE = re.compile(r"\]\(\.\./examples/(?:(\w+)\.py)?\)")
_DOCS = re.compile(r"\]\(docs/")


def rewrite(app: Sphinx, page: str, source: list[str]) -> None:
    """`](../examples/network.py)` becomes `](/examples.md#network)`, and `](../examples/)` the whole page."""
    source[0] = _EXAMPLE.sub(lambda link: f"](/examples.md{'#' + link[1] if link[1] else ''})", source[0])


def rewrite_included(app: Sphinx, path: object, page: str, source: list[str]) -> None:
    """In files of the root, such as CHANGELOG.md, `](docs/tuning.md)` becomes `](/tuning.md)`."""
    source[0] = _DOCS.sub("](/", source[0])


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", rewrite)
    app.connect("include-read", rewrite_included)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
