"""A file of JSON lines to which measurements are added as soon as they are done, so that a second call goes on."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any


class KeptLines:
    """The lines of a file, each a dictionary.

    A last line that was cut off in the middle of writing is as if it had not been written.
    """

    def __init__(self, file: Path) -> None:
        self._file = file

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for line in self._file.read_text().splitlines() if self._file.exists() else ():
            try:
                yield json.loads(line)
            except json.JSONDecodeError:
                continue

    def add(self, fields: dict[str, Any]) -> None:
        """Write one more line."""
        self._file.parent.mkdir(parents=True, exist_ok=True)
        with self._file.open("a+b") as file:
            if file.tell() and self._ends_within_a_line():
                file.write(b"\n")
            file.write(json.dumps(fields).encode() + b"\n")

    def _ends_within_a_line(self) -> bool:
        with self._file.open("rb") as file:
            file.seek(-1, 2)
            return file.read(1) != b"\n"
