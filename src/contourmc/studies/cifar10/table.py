"""The records of runs as the paper's Table 2."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from contourmc.studies.cifar10.algorithms import ALGORITHMS


def read_records(folder: Path) -> list[dict[str, Any]]:
    """All records in a folder."""
    return [json.loads(file.read_text()) for file in sorted(folder.glob("*-epochs-seed-*.json"))]


def make_table(records: list[dict[str, Any]]) -> Table:
    """A row for each algorithm and length: means over seeds beside the paper's, in percent."""
    table = Table(
        "algorithm", "epochs", "seeds", "BPE", "paper", "BMA", "paper", "NLL", "ECE", "models", "s / epoch",
        title="CIFAR-10, ResNet-20: best point (BPE) and model average (BMA), NLL and ECE of the average",
        title_justify="left",
    )  # fmt: skip
    for name, algorithm in ALGORITHMS.items():
        group = [record for record in records if record["settings"]["algorithm"] == name]
        for epochs in sorted({record["results"]["epochs"] for record in group}):
            rows = [record["results"] for record in group if record["results"]["epochs"] == epochs]
            averages = [row["average"] for row in rows if row["average"] is not None]
            table.add_row(
                algorithm.title,
                str(epochs),
                str(len(rows)),
                _mean([100 * row["best_point"]["accuracy"] for row in rows], 2),
                f"{algorithm.paper[0]:.2f}",
                _mean([100 * average["accuracy"] for average in averages], 2),
                f"{algorithm.paper[1]:.2f}",
                _mean([average["nll"] for average in averages], 3),
                _mean([average["ece"] for average in averages], 3),
                _mean([average["models"] for average in averages], 0),
                _mean([row["seconds"] / row["epochs"] for row in rows], 3),
            )
    return table


def _mean(values: list[float], digits: int) -> str:
    """The mean, with the standard deviation over seeds where there are several."""
    if not values:
        return "–"
    spread = f" ± {np.std(values, ddof=1):.{digits}f}" if len(values) > 1 else ""
    return f"{np.mean(values):.{digits}f}{spread}"
