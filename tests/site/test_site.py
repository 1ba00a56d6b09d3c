"""The site that `make docs` has built, in a browser: `make docs-check`."""

from pathlib import Path
from urllib.parse import quote

import pytest
from tests.chromium import Page
from tests.test_reference import NAMES

ROOT = Path(__file__).parent.parent.parent
SITE = ROOT / "build" / "docs"
PAGES = sorted(str(page.relative_to(SITE)) for page in SITE.rglob("*.html"))
SCREENSHOTS = SITE.parent / "screenshots"

pytestmark = pytest.mark.skipif(not PAGES, reason="there is no site in build/docs: make docs")

MISSING_PICTURES = "[...document.images].filter(i => !(i.complete && i.naturalWidth > 0)).map(i => i.src)"
EAGER = "document.querySelectorAll('img[loading=lazy]').forEach(i => i.loading = 'eager')"
LOADED = "[...document.images].every(i => i.complete)"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    with Page(tmp_path_factory.mktemp("profile")) as page:
        page.look(1280, 900)
        yield page


def address(name: str) -> str:
    return f"file://{quote(str(SITE / name))}"


def test_pages_have_no_error_and_no_missing_picture(page):
    wrong = {}
    for name in PAGES:
        page.open(address(name))
        page.evaluate(EAGER)
        page.until(LOADED)
        found = [*page.problems, *page.evaluate(MISSING_PICTURES)]
        if found:
            wrong[name] = found
    assert not wrong


def test_every_name_of_the_reference_is_shown_with_its_example(page):
    shown = set()
    for name in [name for name in PAGES if name.startswith("reference/")]:
        page.open(address(name))
        shown |= set(
            page.evaluate(
                "[...document.querySelectorAll('dt.sig-object, [id^=module-]')]"
                ".filter(e => e.parentElement.querySelector('.highlight-pycon')).map(e => e.id.replace('module-', ''))"
            )
        )
    assert set(NAMES) <= shown


def test_nothing_is_loaded_from_elsewhere(page):
    for name in PAGES:
        page.open(address(name))
        loaded = page.evaluate("performance.getEntriesByType('resource').map(r => r.name)")
        assert [url for url in loaded if not url.startswith(("file:", "data:", "blob:"))] == [], name


def test_the_search_finds_a_name_without_a_server(page):
    page.open(address("search.html") + "?q=csgld")
    page.until("document.querySelectorAll('#search-results li a').length > 0")
    found = page.evaluate("[...document.querySelectorAll('#search-results li a')].map(a => a.textContent)")
    assert any("csgld" in title for title in found)
    assert page.problems == []


@pytest.mark.parametrize("width", [390, 1024, 1280, 1366, 1440, 1920])
@pytest.mark.parametrize("name", ["index.html", "start.html", "method.html", "gallery.html", "reference/running.html"])
def test_a_window_need_not_be_scrolled_sideways(page, name, width):
    """Wide tables and formulas scroll by themselves, on a phone and on the usual screens."""
    page.look(width, 844)
    page.open(address(name))
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.look(1280, 900)


def test_screenshots_to_look_at(page):
    """Wide, narrow and dark; the dark ones are dark."""
    SCREENSHOTS.mkdir(exist_ok=True)
    brightness = (
        "(() => { const c = getComputedStyle(document.body).backgroundColor.match(/[0-9.]+/g).map(Number);"
        " return (c[0] + c[1] + c[2]) / 3 })()"
    )
    looks = {"wide": (1280, 900, False), "narrow": (390, 844, False), "dark": (1280, 900, True)}
    for look, (width, height, dark) in looks.items():
        page.look(width, height, dark=dark)
        for name in ("index", "start", "method", "choosing", "guides/lattice", "reference/kernels"):
            page.open(address(f"{name}.html"))
            page.screenshot(SCREENSHOTS / f"{name.replace('/', '-')}-{look}.png")
            assert (page.evaluate(brightness) < 80) == dark
    page.look(1280, 900)
