"""The folder of a run: what is in it, and who may write to it.

run.json         what the run is: its settings, and those of the target and the kernel
call.pkl         the call that made it, for `resume`
lock             held by the process that runs it, and by none once that has ended
states/          the last two checkpoints, such as 3.npz
draws-0.zarr/    the draws, for xarray and `Samples.open`; another number after θ was learnt again
samples.nc       all else that `Samples` has, as of the last checkpoint
"""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from contourmc._core.checks import require
from contourmc._core.whole_file import is_unfinished, remove_unfinished, write_whole
from contourmc.checkpoints.identity import Identity, differences

FORMAT = 2  # 1: checkpoints by Orbax
_ELSEWHERE = "Choose another folder"


class RunFolder:
    """path: of the folder, which need not exist yet."""

    def __init__(self, path: str | Path):
        self.path = Path(path).absolute()  # the process may go to another directory meanwhile
        self._file = self.path / "run.json"
        require(not self.path.exists() or self.path.is_dir(), "checkpoint", str(path), f"it is a file. {_ELSEWHERE}")

    @property
    def states(self) -> Path:
        return self.path / "states"

    @property
    def call(self) -> Path:
        return self.path / "call.pkl"

    def require_there(self) -> None:
        """Raise if somebody has removed the folder."""
        if not self._file.exists():
            message = f"the folder of the run, {self.path}, is gone, and with it the draws on disk. Begin the run anew"
            raise FileNotFoundError(message)

    def require_shared(self) -> None:
        """Raise if this process does not see what the first one has written."""
        remedy = "this process does not see it: give a folder on a file system that all processes share"
        require(self._file.exists(), "checkpoint", str(self.path), remedy)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """A context in which no other process can run this folder; raises if another one does.

        The system unlocks it when the process ends, however it ends.
        """
        from filelock import FileLock, Timeout

        file, new = self.path / "lock", not self.path.exists()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            held = FileLock(file).acquire(blocking=False)
        except Timeout:
            remedy = "another process is running it: wait for it or end it; `contourmc show` tells how far it is"
            raise ValueError(f"checkpoint={str(self.path)!r} is not possible: {remedy}") from None
        except OSError as error:
            if new:
                with suppress(OSError):
                    self.path.rmdir()
            remedy = f"it cannot be written: {error.strerror or error}. {_ELSEWHERE}"
            raise ValueError(f"checkpoint={str(self.path)!r} is not possible: {remedy}") from None
        try:
            with held:
                yield
        finally:
            if not self._file.exists():  # the run did not begin, or its folder is gone
                with suppress(OSError):
                    file.unlink(missing_ok=True)
                    self.path.rmdir()

    def is_locked(self) -> bool:
        """Whether a process is running it; nothing is written, since the folder may be somebody else's."""
        from filelock import FileLock, Timeout

        try:
            with FileLock(self.path / "lock").acquire(blocking=False):
                return False
        except Timeout:
            return True
        except OSError:  # who cannot lock it cannot tell
            return False

    def read(self) -> tuple[Identity, int] | None:
        """What the run is that is there, and how many steps it is to make; None for a new folder.

        Raises for a folder that belongs to something else.
        """
        if not self._file.exists():
            names = [entry.name for entry in self.path.iterdir()] if self.path.exists() else []
            others = [name for name in names if name != "lock" and not is_unfinished(name)]
            remedy = f"it holds other files, such as {others[0]}, and no run. {_ELSEWHERE}" if others else ""
            require(not others, "checkpoint", str(self.path), remedy)
            return None
        try:
            content = json.loads(self._file.read_text(encoding="utf-8"))
            version, identity, steps = int(content["format"]), content["run"], content["steps"]
            digest = content.pop("digest", None)
        except (ValueError, KeyError, TypeError):
            remedy = f"its run.json is not that of a run. {_ELSEWHERE}"
            raise ValueError(f"checkpoint={str(self.path)!r} is not possible: {remedy}") from None
        damaged = f"its run.json is damaged: its content is not what was written, by its digest. {_ELSEWHERE}"
        require(digest in (None, _digest(content)), "checkpoint", str(self.path), damaged)
        remedy = f"it has format {version}, and this version of contourmc reads format {FORMAT}"
        older = ": end it with the version that wrote it, 0.2.0 or older, or begin anew in another folder"
        remedy += ": use a newer version" if version > FORMAT else older
        require(version == FORMAT, "checkpoint", str(self.path), remedy)
        require(digest is not None, "checkpoint", str(self.path), damaged)
        return identity, steps

    def write(self, identity: Identity, steps: int) -> None:
        """Write down what the run is, and how many steps it is to make, which may be more than it was planned for."""
        content = {"format": FORMAT, "steps": steps, "run": identity}
        write_whole(self._file, json.dumps(content | {"digest": _digest(content)}, indent=1))

    def note_steps(self, steps: int) -> None:
        """Write down how many steps the run is to make, if it has been extended."""
        found = self.read()
        if found is not None and found[1] != steps:
            self.write(found[0], steps)

    def write_call(self, content: bytes) -> None:
        """Keep the call that made the run, after a digest of it."""
        write_whole(self.call, hashlib.sha256(content).digest() + content)

    def read_call(self) -> bytes:
        """The call that made the run; raises if it is not what was written."""
        whole = self.call.read_bytes()
        size = hashlib.sha256().digest_size
        if hashlib.sha256(whole[size:]).digest() != whole[:size]:
            raise ValueError(f"{self.call} is damaged: its content is not what was written, by its digest")
        return whole[size:]

    def tidy(self) -> None:
        """Remove what processes that were killed had begun to write; only for who holds the lock."""
        for folder in (self.path, self.states):
            remove_unfinished(folder)

    def require_same(self, before: Identity, now: Identity) -> None:
        """Raise, naming what differs, unless both are the same run."""
        found = differences(before, now)
        more = f", and {len(found) - 3} more" if len(found) > 3 else ""
        remedy = f"it holds another run: {'; '.join(found[:3])}{more}. Repeat the call that made it, or choose another"
        require(not found, "checkpoint", str(self.path), f"{remedy} folder")


def _digest(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
