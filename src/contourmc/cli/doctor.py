"""`contourmc doctor`: what is installed, on which devices it runs, and whether it gets a known answer right."""

import time
from pathlib import Path

import typer
from rich.table import Table
from rich.text import Text

from contourmc.cli.output import console

# A mixture of two Gaussians, of mass 0.4 at −6 and 0.6 at 4: the README's.
MASS, CENTRES = 0.6, (-6.0, 4.0)
LEAST = 0.05  # by which the mass may be off at least; and
ERRORS = 5.0  # standard errors, if that is more: one run in a million would be off by more
REMEDY = "Something in this installation computes wrong numbers: report the table above, with the line below."


def doctor() -> None:
    """Show versions, devices, precision and the compilation cache, and sample a problem with a known answer."""
    table = Table(title="contourmc doctor", title_justify="left", show_header=False)
    for name, text in described().items():
        table.add_row(Text(name, "bold"), Text(text))
    console.print(table)
    began = time.perf_counter()
    passed, words = self_test()
    took = f"{time.perf_counter() - began:.1f} s"
    if not passed:
        console.print(Text.assemble(("Self-test failed. ", "bold red"), REMEDY))
        console.print(f"{words} ({took})", soft_wrap=True)
        raise typer.Exit(1)
    console.print(Text.assemble(("Self-test passed: ", "bold green"), f"{words} ({took})"), soft_wrap=True)


def described() -> dict[str, str]:
    """What is here, by name."""
    import jax.numpy as jnp

    from contourmc._core.compilation_cache import cache_folder, use_compilation_cache
    from contourmc._core.cores import available_cores
    from contourmc._core.versions import NEEDED, OPTIONAL, version_of, versions

    use_compilation_cache()
    found = versions()
    needed = {name: found[name] for name in ("Python", *NEEDED) if name in found}
    missing = [name for name in OPTIONAL if not version_of(name)]
    optional = [f"{name} {found[name]}" for name in OPTIONAL if name in found]
    return needed | {
        "optional": ", ".join(optional) or "none",
        "not installed": ", ".join(missing) or "none",
        "devices": _devices(),
        "cores": str(available_cores()),
        "precision": str(jnp.result_type(float)),
        "compilation cache": _cache(cache_folder()),
    }


def self_test() -> tuple[bool, str]:
    """Sample the README's mixture from one of its modes: whether the mass of the other comes right, and in words."""
    import jax.numpy as jnp

    from contourmc import sample

    left, right = CENTRES

    def energy(x):
        return -jnp.logaddexp(jnp.log(1 - MASS) - (x - left) ** 2 / 2, jnp.log(MASS) - (x - right) ** 2 / 2)

    try:
        run = sample(energy, init=left, steps=100_000, chains=8, seed=0, progress=False)
        mass, error = run.expectation(lambda x: x > 0, error=True)
    except Exception as failure:  # whatever an installation may do
        return False, f"It ended in {type(failure).__name__}: {failure}"
    passed = abs(mass - MASS) < max(LEAST, ERRORS * error) and error < LEAST
    return bool(passed), f"a mass of {mass:.3f} ± {error:.3f} in a mode where it is {MASS}"


def _devices() -> str:
    """What JAX can compute on, or why it cannot."""
    import jax

    try:
        return ", ".join(f"{device.device_kind} ({device.platform} {device.id})" for device in jax.devices())
    except RuntimeError as error:
        return f"none: {error}"


def _cache(folder: Path | None) -> str:
    """Where compiled programs are kept, and how much room they take."""
    if folder is None:
        return "off"
    files = [file.stat().st_size for file in folder.glob("*") if file.is_file()]
    return f"{folder} ({len(files):,} files, {sum(files) / 2**20:.1f} MiB)"
