"""The records of runs as the paper's Table 2."""

import json
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.table import Table

from contourmc.checks import require
from contourmc.studies.cifar.algorithms import ALGORITHMS, BATCH_SIZE, IMAGES

if TYPE_CHECKING:
    from matplotlib.figure import Figure


FEWEST = 20  # test images in a bin of confidence that the picture shows


def read_records(folder: Path) -> list[dict[str, Any]]:
    """All records in a folder, in the order of the paper's table."""
    records = []
    for file in sorted(folder.glob("*-seed-*.json")):
        known = False
        with suppress(ValueError, KeyError, TypeError):
            record = json.loads(file.read_text())
            known = record["settings"]["algorithm"] in ALGORITHMS and record["results"]["epochs"] > 0
            records.append(record)
        require(known, "file", str(file), "it is no record of a run: remove it, or make it again")
    return sorted(records, key=lambda record: list(ALGORITHMS).index(record["settings"]["algorithm"]))


def make_table(records: list[dict[str, Any]]) -> Table:
    """A row for each setting: means over seeds beside the paper's, in percent."""
    title = "ResNet-20 on CIFAR-10 (in brackets: the paper)"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    for name in ("algorithm", "epochs", "seeds", "BPE", "BMA", "NLL", "ECE", "s/epoch"):
        table.add_column(name, justify="left" if name == "algorithm" else "right")
    groups: dict[str, list[dict[str, Any]]] = {}
    for record in records:
        groups.setdefault(_setting(record), []).append(record)
    for group in groups.values():
        settings, rows = group[0]["settings"], [record["results"] for record in group]
        algorithm, done = ALGORITHMS[settings["algorithm"]], rows[0]["epochs"]
        whole = settings["images"] == IMAGES and done == settings["epochs"]
        points, averages = (f" ({figure:.2f})" if whole else "" for figure in algorithm.paper)
        ends = [row["average"] for row in rows if row["average"] is not None]
        table.add_row(
            ", ".join([algorithm.title, *_unusual(settings)]),
            str(done) if done == settings["epochs"] else f"{done} of {settings['epochs']}",
            str(len(rows)),
            _mean([100 * row["best_point"]["accuracy"] for row in rows], 2) + points,
            _mean([100 * end["accuracy"] for end in ends], 2) + averages,
            _mean([end["nll"] for end in ends], 3),
            _mean([end["ece"] for end in ends], 3),
            _mean([row["seconds"] / row["epochs"] for row in rows], 3),
        )
    return table


def _setting(record: dict[str, Any]) -> str:
    """What two runs that differ by their seed alone have in common."""
    settings = {name: value for name, value in record["settings"].items() if name not in ("seed", "device", "jax")}
    return json.dumps([settings, record["results"]["epochs"]], sort_keys=True)


def _unusual(settings: dict[str, Any]) -> list[str]:
    """What the paper did otherwise, in words."""
    words = [] if settings["images"] == IMAGES else [f"{settings['images']:,} images"]
    words += [] if settings["batch_size"] == BATCH_SIZE else [f"batch {settings['batch_size']}"]
    words += [] if settings["depth"] == 3 else [f"ResNet-{6 * settings['depth'] + 2}"]
    return words + [f"no {name}" for name, switch in settings["augmentation"].items() if switch is False]


def draw(records: list[dict[str, Any]]) -> "Figure":
    """Accuracy along each run, of single points and of the average so far; and how reliable the averages are."""
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.5), layout="constrained")
    right.plot([0, 1], [0, 1], color="k", lw=1, ls="--", label="calibrated")
    for i, record in enumerate(records):
        history, results = record["history"], record["results"]
        title, color = ALGORITHMS[record["settings"]["algorithm"]].title, f"C{i % 10}"
        name = f"{title}, {results['epochs']} epochs"
        epochs = np.array([entry["epoch"] for entry in history])
        points = np.array([100 * entry["point"]["accuracy"] for entry in history])
        averaged = np.array([entry["average"] is not None for entry in history])
        average = np.array([100 * entry["average"]["accuracy"] for entry in history if entry["average"] is not None])
        left.plot(epochs, points, color=color, lw=0.8, alpha=0.6)
        left.plot(epochs[averaged], average, color=color, lw=2.2, label=name)
        if averaged.any():
            confidence, accuracy, share = (np.array(values) for values in results["reliability"].values())
            many = share * record["settings"]["test_images"] >= FEWEST
            label = f"{name}, ECE {results['average']['ece']:.3f}"
            right.plot(confidence[many], accuracy[many], "o-", color=color, ms=3, lw=1.2, label=label)
    last = [100 * record["results"]["last_point"]["accuracy"] for record in records]
    left.set(xlabel="epoch", ylabel="test accuracy, %", title="Single points (thin) and their average so far (thick)")
    left.set_ylim(min(last) - 8, None)
    right.set(xlabel="confidence of the average", ylabel="accuracy", title="Reliability of the model averages")
    for panel in (left, right):
        panel.spines[["top", "right"]].set_visible(False)
        panel.legend(frameon=False, fontsize=8)
    return figure


def _mean(values: list[float], digits: int) -> str:
    """The mean, with the standard deviation over seeds where there are several."""
    if not values:
        return "–"
    spread = f" ± {np.std(values, ddof=1):.{digits}f}" if len(values) > 1 else ""
    return f"{np.mean(values):.{digits}f}{spread}"
