"""The door to NumPyro: `from_numpyro` makes a target of a model."""

from contourmc.numpyro.door import from_numpyro as from_numpyro
