"""A mixture of three Gaussians in PyMC, for the velocities of 82 galaxies: six labellings, equally probable."""

import numpy as np
import pymc as pm

import contourmc as cm

# Roeder (1990), in km/s.
VELOCITIES = """
9172 9350 9483 9558 9775 10227 10406 16084 16170 18419 18552 18600 18927 19052 19070 19330 19343 19349 19440 19473 19529
19541 19547 19663 19846 19856 19863 19914 19918 19973 19989 20166 20175 20179 20196 20215 20221 20415 20629 20795 20821
20846 20875 20986 21137 21492 21701 21814 21921 21960 22185 22209 22242 22249 22314 22374 22495 22746 22747 22888 22914
23206 23241 23263 23484 23538 23542 23666 23706 23711 24129 24285 24289 24366 24717 24990 25633 26960 26995 32065 32789
34279"""
velocities = np.array(VELOCITIES.split(), float) / 1000

with pm.Model(coords={"component": ["a", "b", "c"]}) as model:
    weights = pm.Dirichlet("weights", np.full(3, 2.0), dims="component")
    mean = pm.Normal("mean", 20.0, 10.0, dims="component")
    scale = pm.LogNormal("scale", 0.5, 0.5, dims="component")
    pm.Deterministic("range", mean.max() - mean.min())
    pm.NormalMixture("velocity", weights, mean, sigma=scale, observed=velocities)

run = cm.sample(cm.from_pymc(model), steps=100_000, chains=8)
print(run.summary(), *run.modes(), run.diagnose(), run.log_evidence(), sep="\n")
