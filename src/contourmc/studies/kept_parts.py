"""Parts of a study that are kept as files, so that a study that was cut does not make them again."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from contourmc._core.whole_file import write_whole


class KeptParts:
    """folder: None to keep nothing."""

    def __init__(self, folder: Path | None):
        self._folder = folder

    def get(self, name: str, settings: Any, make: Callable[[], Any]) -> Any:
        """A part as plain data, made now unless it was made before with the same settings, which are plain data too."""
        if self._folder is None:
            return make()
        file, wanted = self._folder / f"{name}.json", json.loads(json.dumps(settings))
        if file.exists():
            found = json.loads(file.read_text(encoding="utf-8"))
            if found["settings"] == wanted:
                return found["part"]
        part = make()
        write_whole(file, json.dumps({"settings": wanted, "part": part}))
        return part

    def clear(self) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
