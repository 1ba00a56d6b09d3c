"""Where a run stands, also while another process runs it: in words, and as a view that is kept up to date."""

import time
from typing import TYPE_CHECKING, NamedTuple

from rich.console import Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from contourmc.cli.output import console
from contourmc.draws.exhibits.numbers import counted

if TYPE_CHECKING:
    from contourmc import Samples
    from contourmc.checkpoints.folder import RunFolder

PAUSE = 2.0  # seconds between two looks at the folder


class Standing(NamedTuple):
    """samples: as of the last checkpoint.  steps: that the run is to make.  running: whether a process runs it."""

    samples: "Samples"
    steps: int
    running: bool

    @property
    def done(self) -> int:
        return int(self.samples.trajectory.steps[-1])

    @property
    def complete(self) -> bool:
        return self.done >= self.steps

    @property
    def head(self) -> str:
        """How far the run is."""
        samples, running = self.samples, "is running" if self.running else "is not running"
        chains = counted(samples.chains, "chain")
        at = f"at its last checkpoint it had made {self.done:,} of {self.steps:,} steps of {chains}"
        return f"The run {running}; {at} ({samples.stage}), in {samples.seconds:.1f} s."

    @property
    def findings(self) -> list[str]:
        """What it has found so far: the estimates, and what to think of them."""
        if self.samples.energies.shape[1] == 0 or self.samples.stage != "sampling":
            return ["It has no draws yet."]
        return [str(self.samples.summary()), str(self.samples.diagnose())]


def standing_of(place: "RunFolder") -> Standing | None:
    """Where the run in a folder stands; None if there is no run. Raises if it has not written a checkpoint yet."""
    from contourmc import Samples

    found = place.read()
    if found is None:
        return None
    running = place.is_locked()
    return Standing(Samples.open(place.path), found[1], running)


def watch(place: "RunFolder") -> None:
    """Keep a view of a run in the terminal until it is complete, or Ctrl-C."""
    from contourmc.draws.run_files import SUMMARY

    seen, standing = None, None
    try:
        with Live(Text("Waiting for the first checkpoint …"), console=console, auto_refresh=False) as live:
            while standing is None or not standing.complete:
                written = place.path / SUMMARY
                now = (written.stat().st_mtime_ns if written.exists() else 0, place.is_locked())
                if now != seen and now[0]:
                    try:
                        standing = standing_of(place) or standing
                        seen = now
                    except (ValueError, OSError, KeyError):  # it is just being replaced
                        pass
                    if standing is not None:
                        live.update(_view(standing), refresh=True)
                        continue
                time.sleep(PAUSE)
    except KeyboardInterrupt:
        return


def _view(standing: Standing) -> RenderableType:
    """The head, a bar, and what was found; the verdict above the table, which may be longer than the terminal."""
    bar = Table.grid(padding=(0, 1))
    share = f"{standing.done / standing.steps:.0%}"
    bar.add_row(ProgressBar(total=standing.steps, completed=standing.done, width=40), Text(share))
    tables = [Text(text, no_wrap=text.count("\n") > 1) for text in reversed(standing.findings)]
    return Group(Text(standing.head), bar, *tables)
