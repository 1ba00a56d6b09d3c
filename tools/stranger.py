"""A stranger's path, with a clock: clone → `make demo` → an energy of one's own → its report.

Every command is read from the README, and nothing else is done: a step that is not there fails.

    python -m tools.stranger        # or make stranger
"""

import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
REPORT = "report.*"  # what `contourmc sample` writes to be read


def on_readme(readme: str, pattern: str) -> str:
    found = re.search(pattern, readme, re.MULTILINE)
    if found is None:
        raise SystemExit(f"README.md has no step like {pattern}")
    return found[0]


def timed(what: str, command: str, place: Path) -> None:
    began = time.monotonic()
    done = subprocess.run(["bash", "-c", command], cwd=place, capture_output=True, text=True)
    print(f"{time.monotonic() - began:7.1f} s  {what}", flush=True)
    if done.returncode:
        raise SystemExit(f"{done.stdout}{done.stderr}\n{command} ended with status {done.returncode}")


def main() -> None:
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder) / "contourmc"
        timed("git clone", f"git clone --quiet '{ROOT}' '{clone}'", Path(folder))
        readme = (clone / "README.md").read_text(encoding="utf-8")
        timed("make demo", f"PYTHON={sys.executable} {on_readme(readme, r'^make demo')}", clone)
        own = re.search(r"```python\n# (\w+\.py)\n.*?```", readme, re.DOTALL)
        if own is not None:  # a file that the README asks its reader to write
            (clone / own[1]).write_text(own[0].removeprefix("```python\n").removesuffix("```"), encoding="utf-8")
        activate = on_readme(readme, r"^source \.venv/bin/activate")
        sample = on_readme(readme, r'contourmc sample \S+\.py:\w+ --init "[^"]+"')
        timed(sample, f"{activate} && {sample}", clone)
        reports = sorted((clone / "results").glob(f"energy/{REPORT}"))
        if not reports:
            raise SystemExit("no report was written")
        print(f"{time.monotonic() - began:7.1f} s  from nothing to {', '.join(file.name for file in reports)}")


if __name__ == "__main__":
    main()
