"""What `make dist` has built: the wheel in an environment of its own, without the checkout, and what the sdist holds.

The environment has what the wheel asks for, and no extra. In it the README's ten lines must run as typed, and so must
`contourmc --help`.
"""

import os
import re
import subprocess
import sys
import tarfile
import tempfile
import time
import venv
from pathlib import Path

ROOT = Path(__file__).parent.parent
NEEDED = (
    "pyproject.toml",
    "README.md",
    "LICENSE",
    "CHANGELOG.md",
    "CITATION.cff",
    "src/contourmc/py.typed",
    "Makefile",
)
LARGEST = 5_000_000  # bytes of the sdist


def only(pattern: str) -> Path:
    found = list((ROOT / "dist").glob(pattern))
    if len(found) != 1:
        raise SystemExit(f"dist holds {len(found)} of {pattern}, and should hold one: make dist")
    return found[0]


def try_sdist(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {name.split("/", 1)[-1] for name in archive.getnames()}
    missing = [name for name in NEEDED if name not in names]
    data = [name for name in names if name.startswith("results/") or name.endswith((".npz", ".csv", ".jsonl", ".nc"))]
    if missing or data or sdist.stat().st_size > LARGEST:
        raise SystemExit(f"{sdist.name}: lacks {missing}, holds data {data}, {sdist.stat().st_size:,} bytes")
    print(f"{sdist.name}: {len(names)} files, {sdist.stat().st_size / 1e6:.1f} MB, no data")


def ten_lines() -> str:
    found = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    if found is None:
        raise SystemExit("README.md has no block of Python")
    return found[1]


def try_wheel(wheel: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        venv.create(place / "env", with_pip=True)
        binaries = place / "env" / ("Scripts" if sys.platform == "win32" else "bin")
        (place / "ten_lines.py").write_text(ten_lines(), encoding="utf-8")
        for command in (
            ["python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(wheel)],
            ["python", "-I", "ten_lines.py"],
            ["contourmc", "--help"],
            ["contourmc", "--version"],
        ):
            began = time.monotonic()
            program, *arguments = command
            # Nothing but what was installed: neither the checkout nor a PYTHONPATH that leads to it.
            done = subprocess.run(
                [binaries / program, *arguments], cwd=place, capture_output=True, text=True, env=environment(place)
            )
            print(f"{time.monotonic() - began:6.1f} s  {' '.join(command)}")
            if done.returncode:
                raise SystemExit(f"{done.stdout}{done.stderr}\n{wheel.name} fails: {' '.join(command)}")


def environment(place: Path) -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {"HOME": str(place)}


if __name__ == "__main__":
    try_sdist(only("*.tar.gz"))
    try_wheel(only("*.whl"))
    print("The wheel works without the checkout.")
