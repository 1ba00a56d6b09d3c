"""`contourmc`: help, version, wrong calls, and what is imported when."""

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from contourmc.cli.main import app

# Prints what has been imported after `import contourmc`, and after the command line; then imports every study.
IMPORTS = """
import json, sys
HEAVY = ("matplotlib", "xarray", "arviz", "typer", "flax", "contourmc.studies", "contourmc.cli")

def imported():
    return [name for name in HEAVY if name in sys.modules]

import contourmc
seen = [imported()]
import contourmc.cli
seen.append([name for name in sys.modules if name.startswith("contourmc.studies.")])
seen.append(imported())
from contourmc.problems import GaussianMixture, NineModes
from contourmc.studies.catalogue import SIMULATIONS, UCI

def refuse(*_):
    raise AssertionError("a study computed something while it was imported")

GaussianMixture.grid = GaussianMixture.theta = NineModes.grid = refuse
import importlib
for study in (*SIMULATIONS, UCI):
    importlib.import_module(study.module)
seen.append("matplotlib" in sys.modules)
seen.append(contourmc.plots.plot_density.__name__)
print(json.dumps(seen))
"""


def test_nothing_heavy_is_imported_before_it_is_used():
    """Neither by `import contourmc` nor by the command line; and no study computes anything when it is imported.

    `contourmc.plots` is there without being imported, and Matplotlib comes with it.
    """
    shown = subprocess.run([sys.executable, "-c", IMPORTS], capture_output=True, text=True, check=False)
    assert shown.returncode == 0, shown.stderr
    library, studies, command_line, matplotlib, plot = json.loads(shown.stdout)
    assert library == []
    assert sorted(studies) == ["contourmc.studies.base", "contourmc.studies.catalogue"]
    assert set(command_line) == {"typer", "contourmc.studies", "contourmc.cli"}
    assert not matplotlib
    assert plot == "plot_density"


def test_wrong_calls_are_refused(tmp_path):
    file = tmp_path / "file"
    file.touch()
    result = CliRunner().invoke(app, ["demo", "--out", str(file / "below"), "--steps", "1000"])
    assert result.exit_code == 2
    assert "cannot be" in result.output
    assert CliRunner().invoke(app, ["demo", "--steps", "5"]).exit_code == 2
    assert CliRunner().invoke(app, ["nonsense"]).exit_code == 2


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_and_version(option):
    result = CliRunner().invoke(app, [option])
    assert result.exit_code == 0
    assert "contour" in result.output
