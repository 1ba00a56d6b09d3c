"""A headless Chromium, driven through a pipe, for tests of pages that people open: no port, and no library."""

import base64
import fcntl
import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--remote-debugging-pipe",
)  # fmt: skip


class Page:
    """One tab; where there is no browser, the test that asks for it is skipped.

    problems: what went wrong since the page was opened: errors, dialogs, and what could not be loaded.
    console: what the page has written to its console since then, errors or not.
    """

    def __init__(self, profile: Path):
        program = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
        if program is None:
            pytest.skip(f"there is no browser: none of {', '.join(NAMES)} is installed; make docs-check installs one")
        (chromium_reads, we_write), (we_read, chromium_writes) = os.pipe(), os.pipe()
        # Chromium has them as 3 and 4, by a shell: for Python to see to it, it would fork, of which JAX warns.
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 20) for end in (chromium_reads, chromium_writes)]
        self._process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{ends[0]} 4>&{ends[1]}', "bash",
             program, *FLAGS, f"--user-data-dir={profile}", "about:blank"],
            pass_fds=ends, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        for end in (chromium_reads, chromium_writes, *ends):
            os.close(end)
        self._to, self._from = os.fdopen(we_write, "wb"), os.fdopen(we_read, "rb")
        self._pending, self._number, self._session = b"", 0, None
        self.problems: list[str] = []
        self.console: list[str] = []
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._call(f"{domain}.enable")

    def __enter__(self) -> "Page":
        return self

    def __exit__(self, *error: object) -> None:
        self._session = None
        self._call("Browser.close")
        self._process.wait(timeout=30)
        self._to.close(), self._from.close()

    def _message(self) -> dict[str, Any]:
        while b"\0" not in self._pending:
            more = os.read(self._from.fileno(), 1 << 16)
            if not more:
                raise RuntimeError("Chromium has ended")
            self._pending += more
        message, _, self._pending = self._pending.partition(b"\0")
        return json.loads(message)

    def _send(self, method: str, **arguments: Any) -> int:
        """Call a method, and do not wait for its answer, which has the number that this gives."""
        self._number += 1
        call = {"id": self._number, "method": method, "params": arguments}
        self._to.write(json.dumps(call | ({"sessionId": self._session} if self._session else {})).encode() + b"\0")
        self._to.flush()
        return self._number

    def _call(self, method: str, **arguments: Any) -> dict[str, Any]:
        number = self._send(method, **arguments)
        while (answer := self._message()).get("id") != number:
            self._note(answer.get("method"), answer.get("params", {}))
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def _note(self, event: str | None, told: dict[str, Any]) -> None:
        if event == "Runtime.exceptionThrown":
            self.problems.append(str(told["exceptionDetails"]))
        elif event == "Page.javascriptDialogOpening":  # it would hold up everything else
            self.problems.append(f"a dialog: {told['message']}")
            self._send("Page.handleJavaScriptDialog", accept=True)
        elif event == "Runtime.consoleAPICalled":
            self._wrote(str(told["args"]), told["type"] in ("error", "assert"))
        elif event == "Log.entryAdded":
            entry = told["entry"]
            self._wrote(f"{entry['text']} {entry.get('url', '')}", entry["level"] == "error")
        elif event == "Network.loadingFailed":
            self.problems.append(f"not loaded: {told['errorText']}")

    def _wrote(self, text: str, wrong: bool) -> None:
        self.console.append(text)
        if wrong:
            self.problems.append(text)

    def open(self, url: str) -> None:
        """Go to a page, and wait until all of it is loaded."""
        self.problems.clear()
        self.console.clear()
        self._call("Page.navigate", url=url)
        self.until(f"location.href === {json.dumps(url)} && document.readyState === 'complete'")

    def evaluate(self, script: str) -> Any:
        """The value of a line of JavaScript on the page."""
        answer = self._call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{script}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def use(self, script: str) -> Any:
        """What lines of JavaScript return, which may wait with `await pause(milliseconds)`."""
        pause = "const pause = (milliseconds) => new Promise((resume) => setTimeout(resume, milliseconds));"
        return self.evaluate(f"(async () => {{ {pause} {script} }})()")

    def until(self, condition: str, seconds: float = 30) -> None:
        """Wait until a line of JavaScript is true."""
        end = time.monotonic() + seconds
        while not self.evaluate(condition):
            if time.monotonic() > end:
                raise TimeoutError(f"{condition} did not become true in {seconds:g} s")
            time.sleep(0.05)

    def look(self, width: int, height: int, *, dark: bool = False) -> None:
        """The size of the window, and whether its user prefers dark pages."""
        self._call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._call("Emulation.setEmulatedMedia", features=[scheme])

    def screenshot(self, file: Path) -> None:
        file.write_bytes(base64.b64decode(self._call("Page.captureScreenshot")["data"]))
