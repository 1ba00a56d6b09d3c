"""The records of runs that were tested under shift, as a table: spoilt images, and those of the other data set."""

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.table import Table

from contourmc.studies.cifar.algorithms import ALGORITHMS
from contourmc.studies.cifar.grouping import groups_of, mean_of
from contourmc.studies.cifar.records import Record
from contourmc.studies.cifar.shifts import CORRUPTIONS

NOTE = (
    "Of the average; means over seeds. Test: accuracy in %, NLL, ECE, Brier score. Spoilt images: accuracy and NLL,"
    " means over five strengths. AUROC: images of the other data set told from the test set by the entropy."
)


def make_shift_table(records: list[Record]) -> Table | None:
    """A row for each setting, the best NLL on the test set first; None if no run was tested under shift."""
    shown = [record for record in records if "corrupted" in record["results"]]
    if not shown:
        return None
    table = Table(
        "algorithm", title="Under shift", title_justify="left", box=SIMPLE_HEAD, padding=0, show_edge=False,
        caption=NOTE, caption_justify="left",
    )  # fmt: skip
    for name in ("epochs", "seeds", "models", "test", *CORRUPTIONS, "AUROC"):
        table.add_column(name, justify="right")
    groups = [group for of_algorithm in groups_of(shown).values() for group in of_algorithm]
    for group in sorted(groups, key=lambda group: np.mean([one["results"]["average"]["nll"] for one in group])):
        table.add_row(*_row(group))
    return table


def _row(group: list[Record]) -> list[str]:
    settings, results = group[0]["settings"], [record["results"] for record in group]
    algorithm, rate = ALGORITHMS[settings["algorithm"]], settings.get("learning_rate")
    networks = settings.get("chains", 1) * algorithm.replicas
    test = [mean_of([100 * one["average"]["accuracy"] for one in results], 2, error=False)]
    test += [mean_of([one["average"][name] for one in results], 3, error=False) for name in ("nll", "ece", "brier")]
    return [
        algorithm.title if rate is None else f"{algorithm.title}, rate {rate:g}",
        f"{networks} × {settings['epochs']}" if networks > 1 else str(settings["epochs"]),
        str(len(group)),
        str(results[0]["models"]),
        ", ".join(test),
        *(_pair([each for one in results for each in one["corrupted"][kind]]) for kind in CORRUPTIONS),
        mean_of([one["out_of_distribution_auroc"] for one in results], 3, error=False),
    ]


def _pair(strengths: list[dict[str, float]]) -> str:
    """Accuracy and NLL, means over strengths and seeds."""
    accuracy, nll = (float(np.mean([each[name] for each in strengths])) for name in ("accuracy", "nll"))
    return f"{100 * accuracy:.1f}, {nll:.2f}"
