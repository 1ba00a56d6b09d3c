"""A Markdown page that leads with the picture: its words are written by hand, its tables by the benchmark."""

from pathlib import Path

CAPTION = (
    "Error against evaluations of the density, where a gradient counts as one more. Left: the mode masses, right:\n"
    "log Z; above: the median of the problems, below: the worst of them. Runs that gave no number count as 1 on the\n"
    "left, and as an arrow at the top on the right; methods that do not estimate log Z are on the left alone."
)


def fill(page: Path, picture: Path, tables: str) -> None:
    """Put the picture and the tables into the marked parts of a page, which is begun if there is none.

    A part stands between <!-- name --> and <!-- end of name -->; all else is left as it is.
    """
    text = page.read_text() if page.exists() else "".join(_part(name, "") for name in ("picture", "tables"))
    text = _replace(page, text, "picture", f"![Error against evaluations, all methods]({picture.name})\n\n{CAPTION}\n")
    page.write_text(_replace(page, text, "tables", tables))


def _part(name: str, content: str) -> str:
    return f"<!-- {name} -->\n{content}<!-- end of {name} -->\n"


def _replace(page: Path, text: str, name: str, content: str) -> str:
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->\n"
    if text.count(begin) != 1 or text.count(end) != 1:
        raise ValueError(f"{page} needs one line {begin.strip()!r} and one line {end.strip()!r}")
    before, after = text[: text.index(begin)], text[text.index(end) + len(end) :]
    return before + _part(name, content) + after
