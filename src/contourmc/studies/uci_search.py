"""What Table 1 leaves open, chosen by cross-validation: `python -m contourmc.studies.uci_search [NAME …]`.

A tenth of the training set of each of the ten splits is held out, and the RMSE on it, averaged over the splits, is the
score of a setting; no test set is looked at. It is one choice for all ten splits, so that what one of them tests on
has, where another holds it out, a small part in it. For each data set and each family, with and without momentum:

    1. activation, units and noise of the model, by the baseline, SGLD or SGHMC,
    2. burn-in, by the same,
    3. where the energy partition begins, the step size of learning θ, and the power of the weights, by the contour
       method.

Every score is kept beside the choice in `uci_search.json`, from where the study takes its settings.
"""

import itertools
import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from rich.console import Console

from contourmc.run import DivergenceError
from contourmc.studies.uci_cells import (
    BASELINES,
    EPOCHS,
    PAPERS,
    WIDTH,
    Cell,
    Flattening,
    Model,
    Split,
    load_splits,
    measure,
)

FILE = Path(__file__).with_suffix(".json")
Setting = TypeVar("Setting", Model, Flattening)

# σ to try, for a network that predicts the targets as they are, and normalised.
NOISES: Mapping[str, Mapping[bool, tuple[float, ...]]] = {
    "energy": {False: (0.4, 0.6), True: (0.07, 0.1)},
    "concrete": {False: (1.0, 1.4, 2.0), True: (0.13, 0.2)},
    "yacht": {False: (0.25, 0.4), True: (0.07, 0.1)},
    "wine": {False: (0.5, 0.7, 1.0), True: (0.7,)},
}
BURN_INS = (0.1, 0.4)
# A of ω_k = A / (k^0.75 + 1000), and the power of the weights in units of 1/ζ.
LEARNING = ((10.0, 1.0), (10.0, 0.3), (100.0, 0.3))


class Search:
    """The search for one family on one data set."""

    def __init__(self, name: str, method: str, splits: list[Split]):
        self.name, self.method, self.splits = name, method, splits
        self.scores: list[dict[str, Any]] = []
        self.cells: dict[Any, Cell] = {}
        self.console = Console(stderr=True)

    def run(self) -> dict[str, Any]:
        """The choice, and all scores."""
        temperature, zeta = PAPERS[self.name]
        first = [
            Model(temperature, activation, normalised, noise, BURN_INS[0])
            for activation in ("relu", "tanh")
            for normalised, noises in NOISES[self.name].items()
            for noise in noises
        ]
        model, _ = self._best(BASELINES[self.method], first)
        model, cell = self._best(BASELINES[self.method], [replace(model, burn_in=share) for share in BURN_INS])
        lowest, tenth, _, last_tenth, _ = cell.energies
        # From a bin below the energies of the baseline's models, empty at first, or from a bin that holds a tenth of
        # them; up to another tenth.
        lows = WIDTH * math.floor(lowest / WIDTH - 1), WIDTH * round(tenth / WIDTH)
        third = [
            Flattening(zeta, low, 2 + math.ceil((last_tenth - low) / WIDTH), omega, power / zeta)
            for low, (omega, power) in itertools.product(lows, LEARNING)
        ]
        flattening, _ = self._best(self.method, third, model)
        return {"model": asdict(model), "flattening": asdict(flattening), "scores": self.scores}

    def _best(self, method: str, settings: Sequence[Setting], model: Model | None = None) -> tuple[Setting, Cell]:
        """The settings of least RMSE on what is held out; those that diverge are out."""
        for setting in settings:
            if setting not in self.cells:
                self._score(method, setting, model)
        return min(
            ((setting, self.cells[setting]) for setting in settings if setting in self.cells),
            key=lambda pair: np.mean(pair[1].rmse),
        )

    def _score(self, method: str, setting: Model | Flattening, model: Model | None) -> None:
        pair = (setting, None) if isinstance(setting, Model) else (model, setting)
        rmse = None
        try:
            cell = measure(method, self.splits, *pair, EPOCHS, progress=False)  # type: ignore[arg-type]
        except DivergenceError:
            pass
        else:
            self.cells[setting], rmse = cell, cell.rmse
        score = None if rmse is None else float(np.mean(rmse))
        self.scores.append({"method": method, **asdict(setting), "rmse": score, "by_split": rmse})
        self.console.print(f"{self.name} {method} {setting}: {score}", highlight=False)


def chosen(name: str, method: str) -> tuple[Model, Flattening]:
    """The settings of a data set, for the family of a contour method."""
    found = json.loads(FILE.read_text())[name][method]
    return Model(**found["model"]), Flattening(**found["flattening"])


def scores() -> dict[str, Any]:
    """All that was searched."""
    return json.loads(FILE.read_text())


def main(names: list[str]) -> None:
    """Search for the data sets named, or all, and write the file anew."""
    for name in names or list(PAPERS):
        splits = load_splits(name, 10, None, inner=True)
        for method in BASELINES:
            result = Search(name, method, splits).run()
            everything = scores() if FILE.exists() else {}
            everything.setdefault(name, {})[method] = result
            FILE.write_text(json.dumps(everything, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
