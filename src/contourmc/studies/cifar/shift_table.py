"""The records of runs that were tested under shift, as a table: spoilt images, and those of the other data set."""

from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.table import Table

from contourmc.studies.cifar.algorithms import ALGORITHMS
from contourmc.studies.cifar.records import Record
from contourmc.studies.cifar.shifts import CORRUPTIONS

NOTE = (
    "Of the average. Test: accuracy in %, NLL, ECE, Brier score. Spoilt images: accuracy and NLL, means over five"
    " strengths. AUROC: images of the other data set told from the test set by the entropy."
)


def make_shift_table(records: list[Record]) -> Table | None:
    """A row for each run, the best NLL on the test set first; None if no run was tested under shift."""
    shown = [record for record in records if "corrupted" in record["results"]]
    if not shown:
        return None
    table = Table(
        "algorithm", title="Under shift", title_justify="left", box=SIMPLE_HEAD, padding=0, show_edge=False,
        caption=NOTE, caption_justify="left",
    )  # fmt: skip
    for name in ("epochs", "models", "test", *CORRUPTIONS, "AUROC"):
        table.add_column(name, justify="right")
    for record in sorted(shown, key=lambda record: record["results"]["average"]["nll"]):
        settings, found = record["settings"], record["results"]
        algorithm, average = ALGORITHMS[settings["algorithm"]], found["average"]
        networks = settings.get("chains", 1) * algorithm.replicas
        table.add_row(
            algorithm.title,
            f"{networks} × {settings['epochs']}" if networks > 1 else str(settings["epochs"]),
            str(found["models"]),
            f"{100 * average['accuracy']:.2f}, {average['nll']:.3f}, {average['ece']:.3f}, {average['brier']:.3f}",
            *(_pair(found["corrupted"][kind]) for kind in CORRUPTIONS),
            f"{found['out_of_distribution_auroc']:.3f}",
        )
    return table


def _pair(strengths: list[dict[str, Any]]) -> str:
    accuracy, nll = (np.mean([each[name] for each in strengths]) for name in ("accuracy", "nll"))
    return f"{100 * accuracy:.1f}, {nll:.2f}"
