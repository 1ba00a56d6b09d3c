"""A Markdown page whose words are written by hand, and its marked parts by a benchmark."""

from collections.abc import Mapping
from pathlib import Path


def fill(page: Path, parts: Mapping[str, str]) -> None:
    """Put the parts into a page, which is begun if there is none.

    A part stands between <!-- name --> and <!-- end of name -->; all else is left as it is.
    """
    text = page.read_text() if page.exists() else "".join(_part(name, "") for name in parts)
    for name, content in parts.items():
        text = _replace(page, text, name, content)
    page.write_text(text)


def _part(name: str, content: str) -> str:
    return f"<!-- {name} -->\n{content}<!-- end of {name} -->\n"


def _replace(page: Path, text: str, name: str, content: str) -> str:
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->\n"
    if text.count(begin) != 1 or text.count(end) != 1:
        raise ValueError(f"{page} needs one line {begin.strip()!r} and one line {end.strip()!r}")
    before, after = text[: text.index(begin)], text[text.index(end) + len(end) :]
    return before + _part(name, content) + after
