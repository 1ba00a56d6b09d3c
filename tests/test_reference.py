"""Every name on the pages of the reference has a short example in its docstring, which runs and prints what it says."""

import ast
import doctest
import inspect
import re
import socket
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

import contourmc as cm

ROOT = Path(__file__).parent.parent
PAGES = ROOT / "docs" / "reference"
DIRECTIVE = re.compile(r"^\.\. (currentmodule|automodule|auto\w+):: ([\w.]+)", re.MULTILINE)
PREAMBLE = re.findall(r"```\{code-cell\} python\n(.*?)```", (PAGES / "index.md").read_text(), re.DOTALL)[0]
MOST_LINES = 6  # of code in an example: the reference shows what a name is for, guides show more
OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS

# What examples need besides the package; those whose library is not installed are skipped.
NEEDS = {
    "contourmc.torch": "torch",
    "contourmc.torch.ensemble_callback": "lightning",
    "contourmc.from_pymc": "pymc",
    "contourmc.callbacks.tensorboard": "tensorboardX",
    "contourmc.callbacks.wandb": "wandb",
}


def source(module: str) -> Path | None:
    """The file of a module, which need not be possible to import here."""
    place = ROOT / "src" / module.replace(".", "/")
    return next((file for file in (place / "__init__.py", place.with_suffix(".py")) if file.exists()), None)


def docstring(module: str, name: str) -> str | None:
    """That of a name, where it is defined; of one that is not a class or a function, the text that follows it."""
    body = ast.parse(source(module).read_text()).body
    for node in (each for top in body for each in ([*top.body] if isinstance(top, ast.If) else [top])):
        if isinstance(node, ast.ImportFrom) and any(name == (each.asname or each.name) for each in node.names):
            file = source(f"{node.module}.{name}")  # of a module
            return ast.get_docstring(ast.parse(file.read_text())) if file else docstring(node.module, name)
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name:
            return ast.get_docstring(node)
        if isinstance(node, ast.Assign) and name in [getattr(each, "id", None) for each in node.targets]:
            after = body[body.index(node) + 1]
            return ast.literal_eval(after.value) if isinstance(after, ast.Expr) else None
    raise LookupError(f"{module} has no {name}")


def public(module: str) -> list[str]:
    """The names in `__all__`, or else those of the functions and classes that the module defines."""
    body = ast.parse(source(module).read_text()).body
    for node in body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", None) == "__all__":
            return ast.literal_eval(node.value)
    names = [node.name for node in body if isinstance(node, ast.ClassDef | ast.FunctionDef)]
    return [name for name in names if not name.startswith("_")]


def documented() -> set[str]:
    """Every name on the pages of the reference, with its module."""
    names = set()
    for page in PAGES.glob("*.md"):
        module = ""
        for directive, name in DIRECTIVE.findall(page.read_text()):
            if directive == "currentmodule":
                module = name
            elif directive == "automodule":
                names |= {f"{name}.{each}" for each in public(name)}
            else:
                names.add(f"{module}.{name}")
    return names


NAMES = sorted(documented() | {f"contourmc.{name}" for name in public("contourmc")})
# Of the class that everybody uses; its properties need no example.
METHODS = [name for name, _ in inspect.getmembers(cm.Samples, callable) if not name.startswith("_")]


def example(name: str, names: dict) -> doctest.DocTest:
    text = docstring(*name.rsplit(".", 1)) or ""
    return doctest.DocTestParser().get_doctest(text, names, name, None, None)


@pytest.fixture(scope="module")
def names():
    """What the first lines of the reference define."""
    found = {"__name__": "__main__"}
    exec(compile(PREAMBLE, "docs/reference/index.md", "exec"), found)
    return found


@pytest.mark.parametrize("name", NAMES)
def test_every_name_has_a_short_example(name):
    lines = sum(each.source.count("\n") for each in example(name, {}).examples)
    assert 0 < lines <= MOST_LINES, "give its docstring a few lines that begin with >>>"


@pytest.mark.parametrize("name", [name for name in NAMES if name != "contourmc.distributed"])
def test_examples_run_and_print_what_they_say(name, names, tmp_path, monkeypatch):
    for library in (NEEDS.get(name), NEEDS.get(name.rsplit(".", 1)[0])):
        if library is not None and find_spec(library) is None:
            pytest.skip(f"{library} is not installed")
    monkeypatch.chdir(tmp_path)
    told: list[str] = []
    result = doctest.DocTestRunner(optionflags=OPTIONS).run(example(name, dict(names)), out=told.append)
    plt.close("all")
    assert result.failed == 0, "".join(told)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_of_samples_has_a_short_example(name, names, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = inspect.getdoc(getattr(cm.Samples, name)) or ""
    found = doctest.DocTestParser().get_doctest(text, dict(names), name, None, None)
    told: list[str] = []
    assert 0 < sum(each.source.count("\n") for each in found.examples) <= MOST_LINES
    assert doctest.DocTestRunner(optionflags=OPTIONS).run(found, out=told.append).failed == 0, "".join(told)


def test_the_example_that_has_to_come_first_in_a_process():
    """`distributed` is called before anything else, with a port that is free here."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = str(free.getsockname()[1])
    examples = example("contourmc.distributed", {}).examples
    code = "import jax\nimport contourmc as cm\n" + "".join(each.source for each in examples).replace("9876", port)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "".join(each.want for each in examples)
