"""The settings of our best recipe for Table 1, chosen by cross-validation.

    python -m contourmc.studies.uci.search [NAME …] [--out results/uci/search.json] [--anew]

A tenth of the training set of each of the ten splits is held out; the RMSE on it, averaged over the splits, is the
score of a setting. Test sets are not used. There is one choice for all ten splits, so that the test set of one split
has a small influence on it through the splits that hold out some of the same observations. For each data set and each
family of methods, with and without momentum:

    1. activation, units and noise of the model are chosen by the score of the baseline, SGLD or SGHMC,
    2. then the burn-in, by the same score,
    3. then, by the score of the contour method, where the energy partition begins, the step size of learning θ, and
       whether θ weights the models.

Wider grids were tried first, on fewer splits with the same observations held out. They also had smaller noise, at
which chains diverge; initial weights of twice the variance; precisions of the prior up to 2; and weights θ with A = 100
or with θ learnt from the first step on, where in both cases the weights collapse. The paper's L2 penalty of 1e-4 is
taken as the precision of the prior, next to the energy summed over the data.

The grids of noise and of ω were widened after the first results on the test sets had been seen, since the best
settings lay at their ends; the choices are by cross-validation alone. Most scores of the models, and those of A = 10
with weights θ, come from an earlier version than the others, with other random numbers.

The study takes its settings from the `search.json` of the package, which holds the choices and every score. A search
goes on from the file that it writes if that exists, else from the file of the package, and runs only what is missing
there. With --anew it starts from nothing, and takes about half an hour on two cores. Another version of the library has
other random numbers and gives slightly different scores.
"""

import argparse
import itertools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from contourmc._core.console import make_console
from contourmc._core.whole_file import write_whole
from contourmc.engine.run import DivergenceError
from contourmc.studies.uci.cells import BASELINES, EPOCHS, WIDTH, Model, Split, load_splits, measure
from contourmc.studies.uci.recipes import BEST, PAPERS, LearntAfterBurnIn, scores

Setting = TypeVar("Setting", Model, LearntAfterBurnIn)

# σ to try, by whether the network predicts normalised targets.
NOISES: Mapping[str, Mapping[bool, tuple[float, ...]]] = {
    "energy": {False: (0.25, 0.4, 0.6)},
    "concrete": {False: (0.5, 0.7, 1.0, 1.4, 2.0), True: (0.13, 0.2)},
    "yacht": {False: (0.25, 0.4), True: (0.07, 0.1)},
    "wine": {False: (0.25, 0.35, 0.5, 0.7, 1.0), True: (0.7,)},
}
BURN_INS = (0.1, 0.4)
# A of ω_k, and the power of θ in the weights. Either θ is learnt so slowly that it reflects the energies, and can
# weight the models; or so fast that it drives the chain around, as in the study of CIFAR-10, and all models count
# equally.
OMEGAS = ((0.3, 1.0), (1.0, 1.0), (10.0, 1.0), (1.0, 0.0), (10.0, 0.0), (100.0, 0.0))


class Search:
    """The search for one family on one data set; it runs only what its file does not hold."""

    def __init__(self, name: str, method: str, splits: list[Split], file: Path):
        self.name, self.method, self.splits, self.file = name, method, splits, file
        self.record = _read(file).get(name, {}).get(method, {"scores": []})

    def run(self) -> None:
        """Make the choice, and write it to the file with all scores."""
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
        # The partition begins one bin below the energies of the baseline's models, or where a tenth of them lie below;
        # it ends where a tenth lie above.
        lows = WIDTH * math.floor(lowest / WIDTH - 1), WIDTH * round(tenth / WIDTH)
        third = [
            LearntAfterBurnIn(zeta, low, 2 + math.ceil((last_tenth - low) / WIDTH), omega, power)
            for low, (omega, power) in itertools.product(lows, OMEGAS)
        ]
        flattening = self._best(self.method, third, model)
        self.record |= {"model": asdict(model), "flattening": asdict(flattening)}
        self._write()

    def _best(self, method: str, settings: Sequence[Setting], model: Model | None = None) -> Setting:
        """The settings with the smallest RMSE on what is held out; settings that diverge are excluded."""
        found = [self._score(method, setting, model)["rmse"] or math.inf for setting in settings]
        return settings[int(np.argmin(found))]

    def _score(self, method: str, setting: Model | LearntAfterBurnIn, model: Model | None) -> dict[str, Any]:
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
        make_console(stderr=True).print(f"{self.name} {method} {setting}: {found}", soft_wrap=True)
        return described | found

    def _energies(self, method: str, model: Model) -> list[float]:
        return self._score(method, model, None)["energies"]

    def _write(self) -> None:
        everything = _read(self.file)
        everything.setdefault(self.name, {})[self.method] = self.record
        write_whole(self.file, json.dumps(everything, indent=1) + "\n")


def _read(file: Path) -> dict[str, Any]:
    return json.loads(file.read_text(encoding="utf-8"))


def prepare_file(file: Path, *, anew: bool) -> None:
    """Make sure that there is a file to go on from: by default a copy of the package's."""
    file.parent.mkdir(parents=True, exist_ok=True)
    if anew or not file.exists():
        write_whole(file, json.dumps({} if anew else scores(), indent=1) + "\n")


def main(arguments: Sequence[str] | None = None) -> None:
    """Search for the data sets named, or for all."""
    parser = argparse.ArgumentParser(description="Choose by cross-validation what the paper leaves open in Table 1.")
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"data sets, of {', '.join(BEST.data_sets)}; all by default"
    )
    default = Path("results/uci/search.json")
    parser.add_argument("--out", type=Path, default=default, help=f"the file to write and to go on from ({default})")
    parser.add_argument("--data", type=Path, help="a folder that holds the data; by default they are downloaded")
    parser.add_argument("--anew", action="store_true", help="start from nothing, and replace the file")
    given = parser.parse_args(arguments)
    unknown = [name for name in given.names if name not in BEST.data_sets]
    if unknown:
        parser.error(f"there is no data set {unknown[0]!r}; choose from {', '.join(BEST.data_sets)}")
    prepare_file(given.out, anew=given.anew)
    try:
        for name in given.names or BEST.data_sets:
            splits = load_splits(name, 10, given.data, inner=True)
            for method in BASELINES:
                Search(name, method, splits, given.out).run()
    except KeyboardInterrupt:
        message = f"interrupted: {given.out} has the scores so far; a search without --anew goes on from there"
        raise SystemExit(message) from None


if __name__ == "__main__":
    main()
