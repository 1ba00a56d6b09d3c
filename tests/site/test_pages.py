"""What the pages of the site say of the code is so; that what they show was executed, the build itself sees to."""

import re
import tomllib
from pathlib import Path

import pytest

import contourmc as cm

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"


def python_blocks(text: str) -> list[str]:
    return re.findall(r"```(?:\{code-cell\} )?python\n(.*?)```", text, re.DOTALL)


def test_every_public_name_is_on_a_page_of_the_reference():
    pages = "\n".join(page.read_text() for page in (DOCS / "reference").glob("*.md"))
    documented = set(re.findall(r"^\.\. auto\w+:: (?:contourmc\.)?(\w+)", pages, re.MULTILINE))
    assert set(cm.__all__) <= documented


def test_the_start_page_has_the_readmes_ten_lines():
    assert python_blocks((DOCS / "start.md").read_text())[0] == python_blocks((ROOT / "README.md").read_text())[0]


def test_every_example_is_on_the_page_of_examples():
    shown = set(re.findall(r"\{literalinclude\} \.\./examples/(\w+\.py)", (DOCS / "examples.md").read_text()))
    assert shown == {file.name for file in (ROOT / "examples").glob("*.py")}


def test_every_page_is_in_a_table_of_contents():
    listed = {page.stem for page in DOCS.glob("*.md")} | {f"guides/{page.stem}" for page in DOCS.glob("guides/*.md")}
    contents = (DOCS / "index.md").read_text() + re.sub("<", "<guides/", (DOCS / "guides" / "index.md").read_text())
    missing = {page for page in listed if not re.search(rf"^(?:.*<)?{re.escape(page)}>?$", contents, re.MULTILINE)}
    assert missing == {"index"}


def test_the_dynamics_of_contributing_is_the_one_that_is_tested():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    (block,) = python_blocks(text[text.index("<!-- dynamics -->") : text.index("<!-- end of dynamics -->")])
    assert block in (ROOT / "tests" / "test_extending.py").read_text()


def test_contributing_names_the_layers_of_the_contract():
    contract = re.search(r"^layers = \[\n(.*?)^\]", (ROOT / "pyproject.toml").read_text(), re.DOTALL | re.MULTILINE)
    assert contract
    named = set(re.findall(r"`(\w+)`", (ROOT / "CONTRIBUTING.md").read_text()))
    assert set(re.findall(r"\w+", contract[1])) <= named


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_targets_of_make_exist(page):
    known = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"(?:^|`)make ([a-z-]+)", (ROOT / page).read_text(), re.MULTILINE)) <= known


def test_versions_agree():
    assert f"\nversion: {cm.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    newest, date = re.findall(r"^## (\d\S*) - (\S+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)[0]
    assert newest == cm.__version__
    assert f"\ndate-released: {date}\n" in (ROOT / "CITATION.cff").read_text()


def test_supported_versions_agree():
    """Of Python and JAX, in pyproject.toml, the README and the first page of the site."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (jax,) = [entry for entry in project["dependencies"] if entry.startswith("jax>")]
    assert (project["requires-python"], jax) == (">=3.11,<3.14", "jax>=0.8,<0.13")
    for page, pythons in (("README.md", "Python 3.11 to 3.13"), ("docs/start.md", "Python 3.11, 3.12 or 3.13")):
        text = (ROOT / page).read_text().replace("\n", " ")
        assert pythons in text
        assert "JAX, from 0.8 up to 0.12" in text
