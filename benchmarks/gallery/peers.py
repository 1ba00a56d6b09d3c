"""The table of methods that contourmc is compared with: a new one needs a file of its own, and a line here."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import contourmc as cm
from benchmarks.gallery.contour_peer import csgld, csgld_settings
from benchmarks.gallery.dynesty_peer import dynesty
from benchmarks.gallery.jaxns_peer import jaxns
from benchmarks.gallery.langevin import resgld, resgld_settings, sgld, sgld_settings
from benchmarks.gallery.nautilus_peer import nautilus
from benchmarks.gallery.nuts import nuts
from benchmarks.gallery.outcome import Outcome, Tuning
from benchmarks.gallery.pocomc_peer import pocomc
from benchmarks.gallery.tempered import tempered_smc
from benchmarks.gallery.ultranest_peer import ultranest

AUTOMATIC = "contourmc"


@dataclass(frozen=True)
class Peer:
    """run: of (problem, setting, tuning, budget, seed).
    settings: those to choose from; None for a peer that tunes itself, and needs nothing of ours.
    share: a trial of the search has the budget over this.
    needs: packages, by the names that pip knows, the method's own last; none for one on our own engine.
    nested: whether it is a nested sampler.
    """

    run: Callable[..., Outcome]
    settings: Callable[[Tuning], list[Any]] | None = None
    share: int = 10
    needs: tuple[str, ...] = ()
    nested: bool = False


PEERS = {
    "SGLD": Peer(sgld, sgld_settings),
    "reSGLD": Peer(resgld, resgld_settings),
    # Late in a run csgld turns to NaN: a short trial would not tell.
    "BlackJAX csgld": Peer(csgld, csgld_settings, share=1, needs=("blackjax",)),
    "NUTS": Peer(nuts, needs=("blackjax",)),
    "tempered SMC": Peer(tempered_smc, needs=("blackjax",)),
    "pocoMC": Peer(pocomc, needs=("torch", "pocomc")),
    "dynesty": Peer(dynesty, needs=("dynesty",), nested=True),
    "nautilus": Peer(nautilus, needs=("nautilus-sampler",), nested=True),
    "UltraNest": Peer(ultranest, needs=("ultranest",), nested=True),
    "JAXNS": Peer(jaxns, needs=("jaxns",), nested=True),
}
METHODS = (AUTOMATIC, *PEERS)


def missing_packages(method: str) -> list[str]:
    """Those that a method needs and that are not installed."""
    needs = PEERS[method].needs if method in PEERS else ()
    return [name for name in needs if _version(name) is None]


def version_of(method: str) -> str:
    """Of the package that makes the method's draws."""
    needs = PEERS[method].needs if method in PEERS else ()
    return f"{needs[-1]} {_version(needs[-1])}" if needs else f"contourmc {cm.__version__}"


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
