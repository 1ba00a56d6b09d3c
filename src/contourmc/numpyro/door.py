"""`from_numpyro`: a target of a NumPyro model."""

from collections.abc import Callable
from typing import Any

from contourmc._core.checks import require
from contourmc._core.extras import import_extra
from contourmc.targets.base import Target
from contourmc.targets.model import ModelEnergy


def from_numpyro(model: Callable[..., Any], *args: Any, **kwargs: Any) -> Target:
    """The posterior of a NumPyro model with these arguments, as a target.

    It is sampled free of constraints. Draws, estimates and files are by the names of the model's sites, within their
    supports, with its deterministic sites; `to_arviz` adds the observed data and the log likelihood. Chains start at
    draws from the prior unless an `init` is given: a dictionary with a value for every latent site.

    A plate with a `subsample_size` makes it a posterior on mini-batches, drawn anew every step: it needs a kernel, such
    as `csghmc(...)`. Raises for a model with discrete latent sites, `param` sites, or none that is latent.

    >>> import numpyro, numpyro.distributions as dist
    >>> def model(data):
    ...     scale = numpyro.sample("scale", dist.HalfNormal(1.0))
    ...     numpyro.sample("data", dist.Normal(0.0, scale), obs=data)
    >>> cm.sample(cm.from_numpyro(model, y), steps=2_000, kernel=cm.langevin(0.001))["scale"].shape
    (4, 1800)
    """
    require(callable(model), "model", model, "give a function with NumPyro's sample sites")
    import_extra("numpyro", "numpyro")
    from contourmc.numpyro.model import NumPyroModel
    from contourmc.numpyro.subsampled import SubsampledEnergy

    known = NumPyroModel(model, args, kwargs)
    if known.sites.random:
        return SubsampledEnergy(known.random_energy, known, known.sites.observations)
    return ModelEnergy(known.energy, known)
