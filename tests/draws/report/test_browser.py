"""The page in a browser: charts are drawn, values appear, tables work, names stay names."""

import csv
import io
import re
from pathlib import Path

import numpy as np
import pytest
from tests.chromium import Page


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    with Page(tmp_path_factory.mktemp("profile")) as page:
        yield page


def show(page: Page, file: Path, width: int = 1200) -> None:
    page.look(width, 800)
    page.open(file.resolve().as_uri())


@pytest.fixture(scope="module")
def file(run, tmp_path_factory):
    return run.report(tmp_path_factory.mktemp("report") / "report.html", title="Two wells")


def test_the_console_is_empty(file, page):
    show(page, file)
    assert page.problems == page.console == []


def test_charts_keep_their_words_for_screen_readers(file, page):
    show(page, file)
    script = """
      return [...document.querySelectorAll("figure")].map((figure) => ({
        drawings: figure.querySelectorAll("[role=img] > svg").length,
        marks: [...figure.querySelectorAll("svg.marks > *")].filter((one) => one.getBBox().height > 20).length,
        same: figure.querySelector("[role=img]").getAttribute("aria-label") ===
          figure.querySelector("figcaption").textContent,
      }));
    """
    charts = page.use(script)
    assert len(charts) == 15
    for chart in charts:
        assert (chart["drawings"], chart["same"]) == (1, True)
        assert chart["marks"] > 0


def test_no_name_runs_as_a_script(nasty, page, tmp_path):
    show(page, nasty.report(tmp_path / "report.html"))
    assert page.problems == page.console == []


def point(chart, x, y):
    """What appears when one points into the axes of a chart, at shares of their width and height."""
    return f"""
      const box = document.querySelector('[data-chart="{chart}"] .axes').getBoundingClientRect();
      const there = {{ clientX: box.x + {x} * box.width, clientY: box.y + {y} * box.height, bubbles: true }};
      document.querySelector('[data-chart="{chart}"] .grid').dispatchEvent(new PointerEvent("pointermove", there));
      const hover = document.querySelector("#hover");
      return hover.hidden ? null : hover.innerText;
    """


def test_values_appear_where_one_points(file, page):
    """Of a bar, also above it; of the nearest draw; of a band and its line; and not beside the axes."""
    show(page, file)
    assert re.fullmatch(r"a\[0\]: \S+\nto: \S+\ndensity: \S+", page.use(point(0, 0.5, 0.1)))
    found = page.use(point(0, 0.5, 0.1)).split()
    assert float(found[1]) <= 0 + 0.1
    assert float(found[3]) >= 0 - 0.1
    assert re.fullmatch(r"a\[0\]: \S+\na\[1\]: \S+", page.use(point(3, 0.16, 0.5)))
    assert page.use(point(3, 0.5, 0.01)) is None
    assert re.match(r"temperature T: \S+\n", page.use(point(11, 0.5, 0.5)))
    assert page.use(point(0, -0.05, 0.5)) is None


def test_a_table_becomes_a_csv_file(file, run, page):
    show(page, file)
    script = """
      let saved = null;
      window.URL.createObjectURL = (blob) => { saved = blob; return "blob:none"; };
      document.querySelector("#estimates .save-table").click();
      return await saved.text();
    """
    rows = list(csv.DictReader(io.StringIO(page.use(script).lstrip("\ufeff"))))
    found = run.summary()
    assert [row["coordinate"] for row in rows] == list(found.rows)
    # All digits but the last: sums over arrays that lie elsewhere in memory may be rounded differently.
    np.testing.assert_allclose([float(row["mean"]) for row in rows], [row.mean for row in found.rows.values()], 1e-14)


def test_formulas_of_a_spreadsheet_are_text_in_a_csv_file(nasty, page, tmp_path):
    script = """
      let saved = null;
      window.URL.createObjectURL = (blob) => { saved = blob; return "blob:none"; };
      document.querySelector("#estimates .save-table").click();
      return await saved.text();
    """
    show(page, nasty.report(tmp_path / "report.html"))
    rows = list(csv.DictReader(io.StringIO(page.use(script).lstrip("\ufeff"))))
    assert "'=1+1" in [row["coordinate"] for row in rows]
    assert "<script>alert(1)</script>" in [row["coordinate"] for row in rows]


def test_on_a_phone_nothing_is_wider_than_the_page(file, page):
    show(page, file, width=390)
    scrolled, width = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert scrolled <= width == 390
