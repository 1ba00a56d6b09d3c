"""The sites of a NumPyro model: which can be sampled, what is observed, and the names of their axes."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from numpyro import distributions, handlers, infer

from contourmc._core.checks import require
from contourmc.targets.view import Labels

_Site = dict[str, Any]


@dataclass(frozen=True)
class Sites:
    """latent: the shapes of latent sites, within their supports, by name.
    deterministic: the names of deterministic sites that do not depend on a subsample.
    observed: the observed data by name.
    observations: the size of the largest subsampled plate, or 0.
    random: whether the density depends on a random key, as for a subsample.
    labels: names of axes, those of plates.
    """

    latent: dict[str, tuple[int, ...]]
    deterministic: tuple[str, ...]
    observed: dict[str, np.ndarray]
    observations: int
    random: bool
    labels: Labels


def find_sites(model: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Sites:
    """What a model is made of; raises if it cannot be sampled."""
    seeded = handlers.substitute(handlers.seed(model, jax.random.key(0)), substitute_fn=infer.init_to_uniform())
    try:
        trace = handlers.trace(seeded).get_trace(*args, **kwargs)
    except NotImplementedError as error:
        remedy = f"NumPyro has no map from free numbers to the support of one of its sites: {error}"
        raise ValueError(f"model={model!r} is not possible: {remedy}") from error
    samples = {name: site for name, site in trace.items() if site["type"] == "sample"}
    latent = {name: site for name, site in samples.items() if not site["is_observed"]}
    observed = {name: site for name, site in samples.items() if site["is_observed"] and not _is_factor(site)}
    plates = {name: site["args"] for name, site in trace.items() if site["type"] == "plate"}
    parts = {name: size for name, (size, part) in plates.items() if part is not None and part < size}
    for name, site in trace.items():
        remedy = "it has no prior: give it one with numpyro.sample, or fix it with numpyro.handlers.substitute"
        require(site["type"] != "param", "model", f"a param site {name!r}", remedy)
    require(bool(latent), "model", getattr(model, "__name__", model), "it has no latent site that could be sampled")
    for name, site in latent.items():
        _require_continuous(name, site)
        inside = [frame.name for frame in site["cond_indep_stack"] if frame.name in parts]
        remedy = "each step sees others of its values: sample it outside of the subsampled plate"
        require(not inside, "model", f"a latent site {name!r} in the subsampled plate {inside}", remedy)
    deterministic = {name: site for name, site in trace.items() if site["type"] == "deterministic"}
    fixed = {name: site for name, site in deterministic.items() if not _frames(site) & {*parts}}
    return Sites(
        latent={name: np.shape(site["value"]) for name, site in latent.items()},
        deterministic=tuple(fixed),
        observed={name: np.asarray(site["value"]) for name, site in observed.items()},
        observations=max(parts.values(), default=0),
        random=bool(parts) or any(site["type"] == "prng_key" for site in trace.values()),
        labels=Labels({name: _axes(name, site) for name, site in (latent | observed | fixed).items()}),
    )


def _require_continuous(name: str, site: _Site) -> None:
    """Raise unless a latent site can be sampled by gradients."""
    support, kind = site["fn"].support, type(site["fn"]).__name__
    remedy = "energies need continuous ones: sum it out, for example with MixtureSameFamily"
    require(not support.is_discrete, "model", f"a discrete latent site {name!r} ({kind})", remedy)
    remedy = "its distribution is a single point: use numpyro.deterministic"
    require(not isinstance(site["fn"], distributions.Delta), "model", f"a latent site {name!r} (Delta)", remedy)


def _is_factor(site: _Site) -> bool:
    return isinstance(site["fn"], distributions.Unit)


def _frames(site: _Site) -> set[str]:
    """The names of plates around a site."""
    return {frame.name for frame in site.get("cond_indep_stack", ())}


def _axes(name: str, site: _Site) -> tuple[str, ...]:
    """The names of a site's axes: of plates; those that the site gives, as for ArviZ; or as ArviZ names them."""
    shape, events = np.shape(site["value"]), site["fn"].event_dim if site["type"] == "sample" else 0
    names = [f"{name}_dim_{i}" for i in range(len(shape))]
    for frame in site.get("cond_indep_stack", ()):
        place = len(shape) - events + frame.dim
        if place >= 0 and shape[place] == frame.size:
            names[place] = frame.name
    given = (site.get("infer") or {}).get("event_dims")
    if given and len(given) == events:
        names[len(shape) - events :] = given
    return tuple(names)
