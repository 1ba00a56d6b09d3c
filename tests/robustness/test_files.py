"""Files of draws: positions of any structure come back, and a failure harms neither the process nor an older file."""

import json
import os
import re
import shutil
import subprocess
import sys
import zlib
from collections import OrderedDict, defaultdict
from dataclasses import replace
from itertools import cycle
from typing import NamedTuple

import equinox
import h5py
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray

import contourmc as cm
from contourmc._core.whole_file import write_whole
from contourmc.draws import draw_store
from contourmc.draws.trajectory import Trajectory
from contourmc.engine.kernel_run import KernelRun


class Point(NamedTuple):
    place: object
    scale: object = None


class Line(equinox.Module):
    slope: object
    name: str = equinox.field(static=True)


class Curve(equinox.Module):
    height: object
    function: object = equinox.field(static=True)


def made(one):
    """The draws of two chains around a position, as if they had been sampled."""
    random = np.random.default_rng(0)

    def normal(*axes):
        return jax.tree.map(lambda leaf: random.normal(size=(*axes, *np.shape(leaf))).astype(leaf.dtype), one)

    figures = random.normal(size=(3, 2, 40)).astype(np.float32)
    trajectory = Trajectory(
        np.arange(1, 6), random.normal(size=(2, 5)), normal(2, 5), jax.tree.map(np.square, normal(2, 5)), normal(2),
        None, None,
    )  # fmt: skip
    return cm.Samples(normal(2, 40), *figures, np.arange(40), trajectory, {"seed": 0}, 1.0)


def sign(file):
    """Give a file that was changed the checksum of its content, as somebody would who means harm."""
    content = file.read_bytes()
    file.write_bytes(content + b"\ncontourmc CRC-32 %08x\n" % zlib.crc32(content))


def again(samples, folder):
    return cm.Samples.load(samples.save(folder / "run.nc"))


def number(value=0.0):
    return np.array(value, np.float32)


def vector(size=3):
    return np.zeros(size, np.float32)


POSITIONS = {
    "a bare vector": vector(),
    "a number": number(),
    "a dictionary of x": {"x": vector()},
    "names of the file's own variables": {name: number() for name in ("energies", "log_weights", "draws", "y")},
    "names of axes": {"chain": number(), "draw": vector(), "mark": vector(), "bin": number(), "basin": number()},
    "names of other names' axes": {"x": vector(), "x_0": vector(), "x_0_": number()},
    "names with slashes": {"a/b": number(), "a_b": number(), "/": number()},
    "names with dots": {"a.b": number(), "a": {"b": number()}, ".": number(), "..": number()},
    "odd names": {"": number(), " ": number(), "é→\t\n": number(), "\ud800": number(), "0[1]'\"": number()},
    "integers for names": {10: number(), 9: vector()},
    "a list": [vector(), number()],
    "a list of one": [vector()],
    "twelve in a list": [vector(1)] * 12,
    "a tuple": (vector(), number()),
    "nested": {"layers": [(vector(), {"bias": [number()]}), None, {}], "scale": ()},
    "a named tuple": Point(vector(), Point(number())),
    "an ordered dictionary": OrderedDict(b=number(), a=vector()),
    "a module of Equinox": Line(vector(), "line"),
    "bfloat16": {"low": vector().astype(jnp.bfloat16), "half": vector().astype(np.float16), "x": vector()},
}


@pytest.mark.parametrize("kind", POSITIONS)
def test_a_position_of_any_structure_comes_back(kind, tmp_path):
    samples = made(POSITIONS[kind])
    back = again(samples, tmp_path)
    for one, other in ((back.draws, samples.draws), (back.trajectory.means, samples.trajectory.means)):
        assert jax.tree.structure(one) == jax.tree.structure(other)
        for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("kind", ["a list", "a tuple", "nested", "a named tuple", "names with dots"])
def test_estimates_from_a_file_are_those_of_the_run(kind, tmp_path):
    samples = made(POSITIONS[kind])
    back = again(samples, tmp_path)
    for estimate in (
        lambda run: run.mean(),
        lambda run: run.variance(),
        lambda run: run.standard_error(),
        lambda run: run.ess(),
        lambda run: run.quantile([0.1, 0.9]),
        lambda run: run.resample(7),
    ):
        jax.tree.map(np.testing.assert_array_equal, estimate(back), estimate(samples))
    assert str(back.diagnose()) == str(samples.diagnose())


@pytest.mark.usefixtures("untyped")
def test_lists_of_a_run_that_tuned_itself_come_back(tmp_path):
    def energy(x):
        return jnp.sum((x[0] ** 2 - 4) ** 2) / 2 + x[1] ** 2 / 2

    run = cm.sample(energy, init=[jnp.ones(1), 0.0], steps=20_000, chains=2, seed=np.int64(3))
    back = again(run, tmp_path)
    assert str(back.diagnose()) == str(run.diagnose())
    assert back.settings == run.settings
    assert back.settings["seed"] == 3
    assert back.expectation(lambda x: x[1]) == run.expectation(lambda x: x[1])


def test_settings_may_hold_numbers_of_numpy_and_jax(tmp_path):
    settings = {"seed": np.int64(3), "rate": np.float32(0.5), "on": np.True_, "all": np.arange(2), "one": jnp.ones(1)}
    back = again(replace(made(vector()), settings=settings), tmp_path)
    assert back.settings == {"seed": 3, "rate": 0.5, "on": True, "all": [0, 1], "one": [1.0]}


def test_random_keys_of_a_target_come_back(tmp_path):
    keys = jax.random.split(jax.random.key(0), (2, 40))
    back = again(replace(made(vector()), target_states={"key": keys}), tmp_path).target_states["key"]
    assert back.dtype == keys.dtype
    np.testing.assert_array_equal(jax.random.key_data(back), jax.random.key_data(keys))


def test_true_names_stand_beside_those_in_the_file(tmp_path):
    with xarray.open_datatree(made({"a/b": number()}).save(tmp_path / "run.nc"), engine="h5netcdf") as tree:
        assert tree["draws/a_b"].attrs["path"] == "['a/b']"


def test_what_cannot_come_back_is_a_dictionary_and_says_so(tmp_path, monkeypatch):
    unknown = {"default": defaultdict(list, a=number()), "curve": Curve(number(), np.sin), "point": Point(number())}
    file = made(unknown).save(tmp_path / "run.nc")
    monkeypatch.delitem(globals(), "Point")  # as in a process that has not imported its module
    with pytest.warns(UserWarning, match="comes back as a dictionary") as caught:
        back = cm.Samples.load(file)
    assert {name: set(part) for name, part in back.draws.items()} == {
        "default": {"a"}, "curve": {"height"}, "point": {"place", "scale"},
    }  # fmt: skip
    assert {str(warning.message).split()[0].split(":")[1] for warning in caught} == {"defaultdict", "Curve", "Point"}


def test_a_file_cannot_call_anything(tmp_path):
    file = made({"command": number()}).save(tmp_path / "run.nc")
    with h5py.File(file, "r+") as opened:
        _, structure = json.loads(opened["draws"].attrs["structure"])["dict"][0]
        harmful = {"class": "os:system", "items": [["command", structure]], "fields": {}}
        opened["draws"].attrs["structure"] = json.dumps(harmful)
    sign(file)
    with pytest.warns(UserWarning, match="os:system comes back as a dictionary"):
        assert set(cm.Samples.load(file).draws) == {"command"}


# --- Failures -----------------------------------------------------------------------------------------

FULL = """
import resource, sys
from pathlib import Path
import numpy as np
import contourmc as cm
from contourmc.draws import draw_store
from contourmc.draws.trajectory import Trajectory

x = np.random.default_rng(0).normal(size=(2, 40, 1000))
trajectory = Trajectory(np.arange(1), np.zeros((2, 1)), None, None, None, None, None)
run = cm.Samples(x, *x[..., :3].transpose(2, 0, 1), np.arange(40), trajectory, {}, 1.0)
file = Path(sys.argv[1])
before = file.read_bytes()
for room in (0, 1_000, 50_000, 500_000):
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))
    try:
        run.save(file)
    except OSError as error:
        print(error)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert file.read_bytes() == before
    assert list(file.parent.iterdir()) == [file]
assert (cm.Samples.load(run.save(file)).draws == x).all()
print("still here", flush=True)
"""


def test_a_full_disk_is_an_error_that_leaves_process_run_and_older_file_unharmed(tmp_path):
    """Files may not grow beyond a limit here, which writes cannot tell from a full disk."""
    file = made(vector()).save(tmp_path / "run.nc")
    done = subprocess.run([sys.executable, "-c", FULL, str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    *errors, last = done.stdout.splitlines()
    assert len(errors) == 4
    for error in errors:
        assert "the file was not written: File too large" in error
        assert str(file) in error
    assert last == "still here"


def test_an_interrupted_writer_leaves_the_older_file(tmp_path):
    def interrupted(opened):
        opened.write(b"half of a file")
        raise KeyboardInterrupt

    file = made(vector()).save(tmp_path / "run.nc")
    before = file.read_bytes()
    with pytest.raises(KeyboardInterrupt):
        write_whole(file, interrupted)
    assert file.read_bytes() == before
    assert os.listdir(tmp_path) == ["run.nc"]


def test_a_folder_that_cannot_be_made_is_an_error_with_the_name_of_the_file(tmp_path):
    (tmp_path / "taken").write_text("not a folder")
    with pytest.raises(OSError, match=r"not written: .*taken/run.nc"):
        made(vector()).save(tmp_path / "taken" / "run.nc")


def test_a_link_is_followed_and_stays_one(tmp_path):
    (tmp_path / "disk").mkdir()
    link = tmp_path / "run.nc"
    link.symlink_to(tmp_path / "disk" / "run.nc")
    again(made(vector()), tmp_path)
    assert link.is_symlink()
    assert os.listdir(tmp_path / "disk") == ["run.nc"]


def test_other_files_are_refused_by_name(tmp_path):
    content = made(vector()).save(tmp_path / "run.nc").read_bytes()
    file = tmp_path / "other.nc"
    for other in (b"", b"text", content[:7], content[:100], content[: len(content) // 2]):
        file.write_bytes(other)
        with pytest.raises(ValueError, match=r"other.nc.* is not a file of draws, or is incomplete"):
            cm.Samples.load(file)
    xarray.Dataset({"x": 1.0}).to_netcdf(file, engine="h5netcdf")
    with pytest.raises(ValueError, match=r"other.nc.* is not a file of draws"):
        cm.Samples.load(file)
    with pytest.raises(ValueError, match=r"none.nc.*no such file"):
        cm.Samples.load(tmp_path / "none.nc")


def test_files_of_other_versions_are_refused(tmp_path):
    """Up to version 4 they had no checksum."""
    file = made(vector()).save(tmp_path / "run.nc")
    with h5py.File(file, "r+") as opened:
        assert opened.attrs["format"] == "contourmc samples 5"
        opened.attrs["format"] = "contourmc samples 4"
    with pytest.raises(ValueError, match=r"run.nc.*reads contourmc samples 5, and this is contourmc samples 4"):
        cm.Samples.load(file)


def flipped(content, bit):
    """The same bytes but for one bit."""
    changed = bytearray(content)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def test_a_flipped_bit_or_a_missing_end_is_an_error_that_names_the_file(tmp_path):
    content = made({"x": vector(), "scale": number()}).save(tmp_path / "run.nc").read_bytes()
    file = tmp_path / "damaged.nc"
    for bit in np.random.default_rng(0).integers(8 * len(content), size=100):
        file.write_bytes(flipped(content, int(bit)))
        with pytest.raises(ValueError, match=r"damaged.nc.*(is damaged|is incomplete)"):
            cm.Samples.load(file)
    cut = [content[:-count] for count in (1, 20, 30, 100, 5000)]
    for other in (*cut, content + b"more", content[:-50] + content[-40:]):
        file.write_bytes(other)
        with pytest.raises(ValueError, match=r"damaged.nc.*(is damaged|is incomplete)"):
            cm.Samples.load(file)
    file.write_bytes(content)
    cm.Samples.load(file)


def test_a_file_that_another_program_has_changed_is_refused(tmp_path):
    file = made(vector()).save(tmp_path / "run.nc")
    with h5py.File(file, "r+") as opened:
        opened["energies"][0, 0] = 1.0
    with pytest.raises(ValueError, match=r"run.nc.*is incomplete, or another program has changed it"):
        cm.Samples.load(file)


# --- Damaged folders of runs ----------------------------------------------------------------------------------


def wells(x):
    return 4 * jnp.sum((x**2 - 1) ** 2)


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory):
    """The folder of a run that was closed half way, with chunks that are complete and one that is not."""
    folder, kernel = tmp_path_factory.mktemp("kept") / "run", cm.csgld(0.01, cm.Partition(low=0, width=0.5, bins=20))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(draw_store, "MOST_DRAWS", 256)
        with cm.start(wells, init=jnp.ones(2), steps=8000, kernel=kernel, chains=2, thin=4, checkpoint=folder) as run:
            run.advance(5000)
    return folder


@pytest.fixture
def damaged(run_folder):
    """Damages a file of the folder in a way; the folder is whole again at the end."""
    before = {file: file.read_bytes() for file in run_folder.rglob("*") if file.is_file()}

    def damage(name, way):
        shutil.rmtree(run_folder)
        for file, content in before.items():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        file, content = run_folder / name, before[run_folder / name]
        match way:
            case "gone":
                file.unlink()
            case "cut":
                file.write_bytes(content[: len(content) // 2])
            case "flipped":
                file.write_bytes(flipped(content, 4 * len(content)))  # in the middle
            case "exchanged":  # a chunk of positions, with the next one
                file.write_bytes(before[file.parents[1] / "1" / "0"])
        return run_folder

    yield damage
    shutil.rmtree(run_folder)
    for file, content in before.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)


def numbers(run):
    return jax.tree.leaves((np.asarray(run.draws), run.energies, run.log_weights, run.steps, run.trajectory.theta))


def test_a_damaged_file_of_a_run_is_noticed_by_a_reader_or_harmless(run_folder, damaged):
    whole = numbers(cm.Samples.open(run_folder))
    names = sorted(file.relative_to(run_folder) for file in run_folder.rglob("*") if file.is_file())
    names, harmless = [name for name in names if name.parts[0] not in ("lock", "states")], set()
    for name, way in zip(names, cycle(["gone", "cut", "flipped"]), strict=False):
        try:
            back = numbers(cm.Samples.open(damaged(name, way)))
        except ValueError as error:
            assert re.search(rf"({name}' is not possible: (it is|there is no)|no run has written)", str(error))  # noqa: PT017
        else:
            for one, other in zip(back, whole, strict=True):
                np.testing.assert_array_equal(one, other)
            harmless.add(name.parts[0])
    assert harmless == {"run.json", "call.pkl"}


CHUNK = "draws-0.zarr/draws/x/c/0/0/0"
BEFORE_THE_FIRST_STEP = {
    ("run.json", "gone"): r"it holds other files.*and no run",
    ("run.json", "cut"): r"its run.json is not that of a run",
    ("run.json", "flipped"): r"its run.json is (damaged|not that of a run)",  # by where the flipped bit is
    ("call.pkl", "gone"): r"repeat the call of `sample`",
    ("call.pkl", "cut"): r"call.pkl is damaged.*repeat the call of `sample`",
    ("call.pkl", "flipped"): r"call.pkl is damaged.*repeat the call of `sample`",
    (CHUNK, "gone"): f"{CHUNK}' is not possible: it is missing, and with it draws",
    (CHUNK, "cut"): f"{CHUNK}' is not possible: it is damaged: its content is not what was written",
    (CHUNK, "flipped"): f"{CHUNK}' is not possible: it is damaged: its content is not what was written",
    (CHUNK, "exchanged"): f"{CHUNK}' is not possible: it is damaged: it is not the chunk that was written",
    ("draws-0.zarr/zarr.json", "gone"): r"draws-0.zarr/zarr.json' is not possible: it is missing",
    ("draws-0.zarr/energies/zarr.json", "cut"): r"energies/zarr.json' is not possible: it is damaged: it is not JSON",
    ("draws-0.zarr/checksums/c/0/0", "gone"): r"checksums/c/0/0' is not possible: it is missing",
}


def test_a_damaged_file_is_an_error_before_a_run_goes_on(damaged, monkeypatch):
    monkeypatch.setattr(KernelRun, "advance_to", lambda *_: pytest.fail("it sampled"))
    for (name, way), words in BEFORE_THE_FIRST_STEP.items():
        with pytest.raises(ValueError, match=words):
            cm.resume(damaged(name, way))


def test_what_the_next_checkpoint_replaces_may_be_damaged(run_folder, damaged):
    """The incomplete chunk too, since the checkpoint has its draws."""
    whole, last = numbers(cm.resume(damaged("lock", "gone"))), "draws-0.zarr/draws/x/c/0/4/0"
    for name, way in (("samples.nc", "flipped"), (last, "cut"), (last, "gone")):
        for run in (cm.resume(damaged(name, way)), cm.Samples.open(run_folder)):
            for one, other in zip(numbers(run), whole, strict=True):
                np.testing.assert_array_equal(one, other)


def test_a_folder_without_its_draws_is_refused(damaged):
    folder = damaged("lock", "gone")
    shutil.rmtree(folder / "draws-0.zarr")
    for attempt in (cm.resume, cm.Samples.open):
        with pytest.raises(ValueError, match=r"draws-0.zarr/zarr.json' is not possible: it is missing"):
            attempt(folder)
    assert not (folder / "draws-0.zarr").exists()
