"""The page in a browser: charts are drawn, values appear, zoom and tables work, names stay names."""

import csv
import io
import re
from pathlib import Path

import pytest
from tests.chromium import Page

DRAWN = "document.documentElement.dataset.charts === 'drawn'"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    with Page(tmp_path_factory.mktemp("profile")) as page:
        yield page


def show(page: Page, file: Path, width: int = 1200) -> None:
    """Open a report, and wait until its charts are drawn."""
    page.look(width, 800)
    page.open(file.resolve().as_uri())
    page.until(DRAWN)


@pytest.fixture(scope="module")
def file(run, tmp_path_factory):
    return run.report(tmp_path_factory.mktemp("report") / "report.html", title="Two wells")


def test_every_chart_is_drawn_and_the_console_is_empty(file, page):
    show(page, file)
    assert page.problems == page.console == []


def test_charts_keep_their_words_for_screen_readers(file, page):
    show(page, file)
    script = """
      return [...document.querySelectorAll("figure")].map((figure) => ({
        drawings: figure.querySelectorAll("[role=img] svg").length,
        marks: figure.querySelectorAll("svg .role-mark path, svg .role-mark line").length,
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


def test_values_appear_where_one_points(file, page):
    show(page, file)
    script = """
      const bars = [...document.querySelectorAll('[data-chart="0"] .mark-rect.role-mark path')];
      const box = (bar) => bar.getBoundingClientRect();
      const bar = bars.reduce((one, two) => box(one).height >= box(two).height ? one : two);
      const there = { clientX: box(bar).x + 1, clientY: box(bar).y + 5, bubbles: true };
      bar.dispatchEvent(new PointerEvent("pointermove", there));
      bar.dispatchEvent(new MouseEvent("mousemove", there));
      await pause(50);
      const hover = document.querySelector("#hover");
      return hover.hidden ? null : hover.innerText;
    """
    shown = page.use(script)
    assert re.fullmatch(r"a\[0\]: \S+\nto: \S+\ndensity: \S+", shown)


def test_the_wheel_zooms_with_a_key_and_scrolls_without(file, page):
    show(page, file)
    script = """
      const chart = document.querySelector("#marginals .chart");
      const labels = () => [...chart.querySelectorAll(".role-axis-label text")].map((one) => one.textContent).join();
      const turn = async (ctrlKey) => {
        const box = chart.querySelector("svg").getBoundingClientRect();
        const there = { clientX: box.x + box.width / 2, clientY: box.y + box.height / 2 };
        const target = chart.querySelector("svg .background") ?? chart.querySelector("svg");
        const wheel = new WheelEvent(
          "wheel", { ...there, deltaY: -300, ctrlKey, bubbles: true, cancelable: true });
        target.dispatchEvent(wheel);
        await pause(100);
        return wheel.defaultPrevented;
      };
      const before = labels();
      const scrolled = !(await turn(false)) && labels() === before;
      const zoomed = await turn(true) && labels() !== before;
      return { scrolled, zoomed };
    """
    assert page.use(script) == {"scrolled": True, "zoomed": True}


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
    assert [float(row["mean"]) for row in rows] == [row.mean for row in found.rows.values()]


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
