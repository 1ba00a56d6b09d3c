"""Docstrings as they are written here, in plain text, as what Sphinx reads.

- `name: meaning`, with its continuation indented, becomes a field of that name, to which Sphinx adds the type.
- A paragraph that is indented becomes a block of Python, and one that begins with >>> an example with what it prints.
- `code` becomes a literal, or a link if it is a public name, and docs/tuning.md a link to that page.
- Signs such as * and _ stand for themselves.
"""

import re
import sys
from collections.abc import Iterator
from typing import Any

from sphinx.application import Sphinx
from sphinx.pycode import ModuleAnalyzer

import contourmc

_FIELD = re.compile(r"(\w+(?:, \w+)*): +(.+)")
_SECOND_FIELD = re.compile(r"(?<=\.)  +(?=\w+: )")
_CODE = re.compile(r"(`[^`]+`)")
_PAGE = re.compile(r"docs/(\w+)\.md")


def paragraphs(lines: list[str]) -> Iterator[list[str]]:
    paragraph: list[str] = []
    for line in [*lines, ""]:
        if line.strip():
            paragraph.append(line)
        elif paragraph:
            yield paragraph
            paragraph = []


def literal(code: str) -> str:
    public = code.removeprefix("cm.") in contourmc.__all__
    return f":py:obj:`{code} <contourmc.{code.removeprefix('cm.')}>`" if public else f"``{code}``"


def escaped(text: str) -> str:
    """Text in which nothing but `code` has a meaning."""
    parts = _CODE.split(text)
    return "".join(literal(part[1:-1]) if i % 2 else plain(part) for i, part in enumerate(parts))


def plain(text: str) -> str:
    return _PAGE.sub(r":doc:`/\1`", re.sub(r"([*_|\\])", r"\\\1", text))


def fields(paragraph: list[str]) -> list[tuple[list[str], list[str]]] | None:
    """The names and lines of each field, or None for a paragraph of prose."""
    found: list[tuple[list[str], list[str]]] = []
    for line in (part for whole in paragraph for part in _SECOND_FIELD.split(whole)):
        start = _FIELD.fullmatch(line)
        if start:
            found.append((start[1].split(", "), [start[2]]))
        elif found and line.startswith("    "):
            found[-1][1].append(line[4:])
        else:
            return None
    return found


def restructured(lines: list[str]) -> Iterator[str]:
    for paragraph in paragraphs(lines):
        named = fields(paragraph)
        if paragraph[0].startswith(">>> "):
            yield from (".. code-block:: pycon", "", *(f"    {line}" for line in paragraph))
        elif all(line.startswith("    ") for line in paragraph):
            yield from (".. code-block:: python", "", *paragraph)
        elif named:
            for names, meaning in named:
                yield from (f":param {name}: {body}" for name in names for body in [field_body(meaning)])
        else:
            yield from map(escaped, paragraph)
        yield ""


def field_body(meaning: list[str]) -> str:
    """One line; a list such as that of the rules of `Contour` keeps its lines."""
    listed = [line for line in meaning if line.startswith("`") and "`  " in line]
    if not listed:
        return escaped(" ".join(meaning))
    first = meaning.index(listed[0])
    return "\n".join(
        [escaped(" ".join(meaning[:first])), "", *(f"    | {escaped(line)}" for line in meaning[first:]), ""]
    )


def after_assignment(name: str, thing: Any) -> list[str] | None:
    """The text that follows a name where it is assigned; Sphinx looks for it only in the module that is documented."""
    for module, content in [*sys.modules.items()]:
        if module.startswith("contourmc.") and vars(content).get(name) is thing:
            found = ModuleAnalyzer.for_module(module).find_attr_docs().get(("", name))
            if found:
                return found
    return None


def process(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    if what == "data":
        lines[:] = after_assignment(name.rsplit(".", 1)[-1], thing) or lines
    lines[:] = "\n".join(restructured(lines)).split("\n")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("autodoc-process-docstring", process)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
