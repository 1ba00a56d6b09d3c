"""The door to PyMC: `from_pymc` makes a target of a model."""

from contourmc.pymc.door import from_pymc as from_pymc
