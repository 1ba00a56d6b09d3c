"""What Table 1 leaves open, chosen by cross-validation: `python -m contourmc.studies.uci.search [NAME …]`.

A tenth of the training set of each of the ten splits is held out, and the RMSE on it, averaged over the splits, is the
score of a setting; no test set is looked at. It is one choice for all ten splits, so that what one of them tests on
has, where another holds it out, a small part in it. For each data set and each family, with and without momentum:

    1. activation, units and noise of the model, by the baseline, SGLD or SGHMC,
    2. burn-in, by the same,
    3. where the energy partition begins, the step size of learning θ, and whether it weighs the models, by the
       contour method.

The grids are what was left of wider ones, tried on fewer splits with the same observations held out: smaller noise, at
which chains diverge; initial weights of twice the variance; precisions of the prior up to 2; weights θ with A = 100, or
with θ learnt from the first step on, with both of which they collapse. L2 of 1e-4 is taken as the precision of the
prior beside the energy summed over the data.

The grids of noise and of ω were widened after first results on the test sets had been seen, since the best settings lay
at their ends; the choices are by cross-validation alone. Most scores of the models, and those of A = 10 with weights
θ, come from an earlier version than the others, with other random numbers.

Every score is kept beside the choice in `search.json`, from where the study takes its settings. What is on file is not
run again; without the file, all is searched anew, in about half an hour on two cores. The random numbers of another
version give somewhat other scores.
"""

import itertools
import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, TypeVar

import numpy as np
from rich.console import Console

from contourmc.run import DivergenceError
from contourmc.studies.uci.cells import (
    BASELINES,
    EPOCHS,
    FILE,
    PAPERS,
    WIDTH,
    Flattening,
    Model,
    Split,
    load_splits,
    measure,
    scores,
)

Setting = TypeVar("Setting", Model, Flattening)

# σ to try, for a network that predicts the targets as they are, and normalised.
NOISES: Mapping[str, Mapping[bool, tuple[float, ...]]] = {
    "energy": {False: (0.25, 0.4, 0.6)},
    "concrete": {False: (0.5, 0.7, 1.0, 1.4, 2.0), True: (0.13, 0.2)},
    "yacht": {False: (0.25, 0.4), True: (0.07, 0.1)},
    "wine": {False: (0.25, 0.35, 0.5, 0.7, 1.0), True: (0.7,)},
}
BURN_INS = (0.1, 0.4)
# A of ω_k, and the power of θ in the weights: θ learnt so slowly that it tells of the energies, and may weigh the
# models; or so fast that it drives the chain about, as in the study of CIFAR-10, and models count alike.
OMEGAS = ((0.3, 1.0), (1.0, 1.0), (10.0, 1.0), (1.0, 0.0), (10.0, 0.0), (100.0, 0.0))


class Search:
    """The search for one family on one data set; what is on file is not run again."""

    def __init__(self, name: str, method: str, splits: list[Split]):
        self.name, self.method, self.splits = name, method, splits
        self.record = scores().get(name, {}).get(method, {"scores": []})

    def run(self) -> None:
        """Make the choice, and write it down with all scores."""
        temperature, zeta = PAPERS[self.name]
        baseline = BASELINES[self.method]
        first = [
            Model(temperature, activation, normalised, noise, BURN_INS[0])
            for activation in ("relu", "tanh")
            for normalised, noises in NOISES[self.name].items()
            for noise in noises
        ]
        model = self._best(baseline, first)
        model = self._best(baseline, [replace(model, burn_in=share) for share in BURN_INS])
        lowest, tenth, _, last_tenth, _ = self._energies(baseline, model)
        # From a bin below the energies of the baseline's models, empty at first, or from a bin that holds a tenth of
        # them; up to another tenth.
        lows = WIDTH * math.floor(lowest / WIDTH - 1), WIDTH * round(tenth / WIDTH)
        third = [
            Flattening(zeta, low, 2 + math.ceil((last_tenth - low) / WIDTH), omega, power)
            for low, (omega, power) in itertools.product(lows, OMEGAS)
        ]
        flattening = self._best(self.method, third, model)
        self.record |= {"model": asdict(model), "flattening": asdict(flattening)}
        self._write()

    def _best(self, method: str, settings: Sequence[Setting], model: Model | None = None) -> Setting:
        """The settings of least RMSE on what is held out; those that diverge are out."""
        found = [self._score(method, setting, model)["rmse"] or math.inf for setting in settings]
        return settings[int(np.argmin(found))]

    def _score(self, method: str, setting: Model | Flattening, model: Model | None) -> dict[str, Any]:
        described = {"method": method, **asdict(setting)}
        for known in self.record["scores"]:
            if described.items() <= known.items():
                return known
        pair = (setting, None) if isinstance(setting, Model) else (model, setting)
        try:
            cell = measure(method, self.splits, *pair, EPOCHS, progress=False)  # type: ignore[arg-type]
        except DivergenceError:
            found = {"rmse": None}
        else:
            found = {"rmse": float(np.mean(cell.rmse)), "energies": cell.energies}
        self.record["scores"].append(described | found)
        self._write()
        Console(stderr=True).print(f"{self.name} {method} {setting}: {found}", highlight=False, soft_wrap=True)
        return described | found

    def _energies(self, method: str, model: Model) -> list[float]:
        return self._score(method, model, None)["energies"]

    def _write(self) -> None:
        everything = scores()
        everything.setdefault(self.name, {})[self.method] = self.record
        FILE.write_text(json.dumps(everything, indent=1) + "\n")


def main(names: list[str]) -> None:
    """Search for the data sets named, or all."""
    for name in names or list(PAPERS):
        splits = load_splits(name, 10, None, inner=True)
        for method in BASELINES:
            Search(name, method, splits).run()


if __name__ == "__main__":
    main(sys.argv[1:])
