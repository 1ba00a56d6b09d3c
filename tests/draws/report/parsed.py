"""A page as elements: enough of HTML to look at what a report holds, and to refuse one that is not well formed."""

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "link", "br", "img", "hr", "input"}


@dataclass
class Element:
    """tag, attributes: as in the page.  text: all that is in it, scripts included.  children: elements inside."""

    tag: str
    attributes: dict[str, str]
    text: str = ""
    children: list["Element"] = field(default_factory=list)

    def all(self, tag: str = "", **attributes: str) -> list["Element"]:
        """The elements inside, at any depth, with this tag and these attributes; data_name stands for data-name."""
        found = []
        for child in self.children:
            alike = all(child.attributes.get(name.replace("_", "-")) == value for name, value in attributes.items())
            found += [child] * (alike and tag in ("", child.tag)) + child.all(tag, **attributes)
        return found

    def one(self, tag: str = "", **attributes: str) -> "Element":
        (element,) = self.all(tag, **attributes)
        return element


def parse(text: str) -> Element:
    """The elements of a page; raises if tags do not match."""
    reader = _Reader()
    reader.feed(text)
    reader.close()
    assert len(reader.open) == 1, [element.tag for element in reader.open]
    return reader.open[0]


class _Reader(HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open = [Element("", {})]

    def handle_starttag(self, tag, attrs):
        element = Element(tag, {name: value or "" for name, value in attrs})
        self.open[-1].children.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_endtag(self, tag):
        assert self.open[-1].tag == tag, f"<{self.open[-1].tag}> ends as </{tag}>"
        self.open.pop()

    def handle_data(self, data):
        for element in self.open:
            element.text += data
