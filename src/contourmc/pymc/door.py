"""`from_pymc`: a target of a PyMC model."""

from typing import Any

from contourmc._core.checks import require
from contourmc._core.extras import import_extra
from contourmc.targets.model import ModelEnergy


def from_pymc(model: Any = None) -> ModelEnergy:
    """The posterior of a PyMC model, as a target, by PyMC's own compilation to JAX.

    model: by default that of the context, inside of `with model:`. Its data are as they are now.

    It is sampled free of constraints. Draws, estimates and files are by the names of the model's variables, within
    their supports, with its deterministic ones; `to_arviz` adds dims and coords, the observed data and the log
    likelihood. Chains start at draws from the prior unless an `init` is given: a dictionary with a value for every free
    variable.

    It computes in the precision that JAX has, not in that of PyMC: turn on `jax_enable_x64` for float64. Raises for a
    model with discrete free variables, with mini-batches, or without a free variable.

    >>> import pymc as pm
    >>> with pm.Model() as model:
    ...     scale = pm.HalfNormal("scale", 1.0)
    ...     seen = pm.Normal("data", 0.0, scale, observed=y)
    >>> cm.sample(cm.from_pymc(model), steps=2_000, kernel=cm.langevin(0.001))["scale"].shape
    (4, 1800)
    """
    pymc = import_extra("pymc", "pymc")
    if model is None:
        model = pymc.modelcontext(None) if pymc.Model.get_context(error_if_none=False) is not None else None
        require(model is not None, "model", None, "give a pymc.Model, or call this inside of `with model:`")
    require(isinstance(model, pymc.Model), "model", model, "give a pymc.Model, or call this inside of `with model:`")
    from contourmc.pymc.model import PyMCModel

    known = PyMCModel(model)
    return ModelEnergy(known.energy, known)
