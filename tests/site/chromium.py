"""A headless Chromium, driven through a pipe: no port, and no library."""

import base64
import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--remote-debugging-pipe",
)  # fmt: skip


class Page:
    """One tab. `problems` are the errors of its console, and what it could not load, since it was opened."""

    def __init__(self, program: str, profile: Path):
        (chromium_reads, we_write), (we_read, chromium_writes) = os.pipe(), os.pipe()

        def as_three_and_four() -> None:
            # Both are moved out of the way first: either may be 3 or 4 already.
            reads, writes = os.dup(chromium_reads), os.dup(chromium_writes)
            os.dup2(reads, 3), os.dup2(writes, 4)

        self._process = subprocess.Popen(
            [program, *FLAGS, f"--user-data-dir={profile}", "about:blank"],
            close_fds=False, preexec_fn=as_three_and_four, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(chromium_reads), os.close(chromium_writes)
        self._to, self._from = os.fdopen(we_write, "wb"), os.fdopen(we_read, "rb")
        self._pending, self._number, self._session = b"", 0, None
        self.problems: list[str] = []
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

    def _call(self, method: str, **arguments: Any) -> dict[str, Any]:
        self._number += 1
        call = {"id": self._number, "method": method, "params": arguments}
        self._to.write(json.dumps(call | ({"sessionId": self._session} if self._session else {})).encode() + b"\0")
        self._to.flush()
        while (answer := self._message()).get("id") != self._number:
            self._note(answer.get("method"), answer.get("params", {}))
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def _note(self, event: str | None, told: dict[str, Any]) -> None:
        if event == "Runtime.exceptionThrown":
            self.problems.append(str(told["exceptionDetails"]))
        elif event == "Runtime.consoleAPICalled" and told["type"] in ("error", "assert"):
            self.problems.append(str(told["args"]))
        elif event == "Log.entryAdded" and told["entry"]["level"] == "error":
            self.problems.append(told["entry"]["text"] + " " + told["entry"].get("url", ""))
        elif event == "Network.loadingFailed":
            self.problems.append(f"not loaded: {told['errorText']}")

    def open(self, url: str) -> None:
        """Go to a page, and wait until all of it is loaded."""
        self.problems.clear()
        self._call("Page.navigate", url=url)
        self.until(f"location.href === {json.dumps(url)} && document.readyState === 'complete'")

    def evaluate(self, script: str) -> Any:
        """The value of a line of JavaScript on the page."""
        answer = self._call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{script}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

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
