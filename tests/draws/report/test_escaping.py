"""Names, settings and titles of the user are shown, and never a part of the page or of its scripts."""

import json

import pytest
from tests.draws.report.conftest import NASTY
from tests.draws.report.parsed import parse

from contourmc.draws.report.escaping import script_json


@pytest.fixture(scope="module")
def page(nasty, tmp_path_factory):
    file = nasty.report(tmp_path_factory.mktemp("nasty") / "report.html", title=NASTY[1])
    return parse(file.read_text(encoding="utf-8"))


def test_names_are_text(page):
    """There are as many scripts as on any page, no picture, and every name stands there letter by letter."""
    assert len(page.all("script")) == 2
    assert page.all("img") == []
    assert not any(name.startswith("on") for element in page.all() for name in element.attributes)
    assert page.one("h1").text == NASTY[1]
    names = [row.children[0].text for row in page.one("table", data_name="estimates").one("tbody").all("tr")]
    assert sorted(names) == sorted(NASTY)
    assert NASTY[3] in page.one("table", data_name="settings").text
    assert NASTY[1] in page.one("section", id="predictions").text


def test_names_in_charts_are_data(page):
    content = page.one("script", id="charts").text
    assert not set(content) & set("<>&\u2028\u2029")
    titles = {layer["titles"]["x"] for chart in json.loads(content) for layer in chart["layers"]}
    assert NASTY[0] in titles
    assert {NASTY[0], NASTY[3]} <= {text.text for text in page.all("text")}


@pytest.mark.parametrize("text", NASTY)
def test_json_in_a_script_gives_the_text_back(text):
    inside = script_json({"name": text})
    assert json.loads(inside) == {"name": text}
    assert not set(inside) & set("<>&\u2028\u2029")


def test_json_has_no_numbers_that_scripts_cannot_read():
    with pytest.raises(ValueError, match="not JSON compliant"):
        script_json([float("nan")])
