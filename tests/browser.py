"""Headless Chromium, for tests of pages that people open."""

import json
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path
from typing import Any, NamedTuple

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
    "--enable-logging=stderr", "--allow-file-access-from-files",
)  # fmt: skip
VIRTUAL = 20_000  # milliseconds of the page's own clock, which runs as fast as the page is done with its work
TIMEOUT = 120  # seconds; of a browser that does not end

# A page that holds the one under test, and may look into it and touch it: both are files.
AROUND = """<!doctype html><meta charset="utf-8"><iframe src="{address}" style="width:{width}px;height:800px"></iframe>
<pre id="result"></pre><script>
const frame = document.querySelector("iframe");
const pause = (milliseconds) => new Promise((resume) => setTimeout(resume, milliseconds));
frame.onload = async () => {{
  const page = frame.contentWindow, {{ document: content }} = page;
  const use = async () => {{ {script} }};
  let result;
  try {{ result = await use(); }} catch (error) {{ result = {{ failed: String(error) }}; }}
  document.querySelector("#result").textContent = JSON.stringify(result);
}};
</script>"""


class Page(NamedTuple):
    """dom: the page's HTML after its scripts have run.  console: what they wrote to the console.
    result: what the script of the test returned, if it had one.
    """

    dom: str
    console: list[str]
    result: Any = None


def open_page(file: Path, folder: Path) -> Page:
    """A page as a browser has it once its scripts are done; skips the test where there is no browser."""
    return _open(file.resolve().as_uri(), folder)


def use_page(file: Path, folder: Path, script: str, width: int = 1200) -> Page:
    """The same, in a frame of this width, with a script of the test: it sees `page`, `content` and `pause(ms)`."""
    around = folder / "around.html"
    text = AROUND.format(address=file.resolve().as_uri(), width=width, script=script)
    around.write_text(text, encoding="utf-8")
    opened = _open(around.resolve().as_uri(), folder)
    found = re.search(r'<pre id="result">(.*?)</pre>', opened.dom, re.DOTALL)
    assert found is not None, opened.console
    return opened._replace(result=json.loads(unescape(found[1])))


def _open(address: str, folder: Path) -> Page:
    done = _run(folder, "--dump-dom", address)
    return Page(done.stdout, [line for line in done.stderr.splitlines() if ":CONSOLE" in line])


def _run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    browser = next(filter(None, map(shutil.which, NAMES)), None)
    if browser is None:
        pytest.skip(f"there is no browser: none of {', '.join(NAMES)} is installed")
    own = ("--virtual-time-budget=" + str(VIRTUAL), f"--user-data-dir={folder / 'browser'}")
    return subprocess.run(
        [browser, *FLAGS, *own, *words], capture_output=True, text=True, encoding="utf-8", timeout=TIMEOUT, check=True
    )
