"""SGLD, SGHMC and their contour forms as Optax transformations, for training loops that are there already.

    import contourmc.optax as samplers

    tx = samplers.csghmc(0.1, cm.Partition(low=500.0, width=200.0, bins=50), data_size=len(train), temperature=0.01)
    state = tx.init(params)
    loss, grads = jax.value_and_grad(mean_loss)(params, batch)
    updates, state = tx.update(grads, state, params, value=loss)
    params = optax.apply_updates(params, updates)
    state.info.log_weight, state.info.bin, state.kernel.theta

The loss is the *mean* over a batch, as usual; `data_size` makes it an energy. See docs/optax.md.
"""

from contourmc.optax.samplers import csghmc, csgld, sghmc, sgld
from contourmc.optax.transformation import SamplerState, sampler

__all__ = ["SamplerState", "csghmc", "csgld", "sampler", "sghmc", "sgld"]
