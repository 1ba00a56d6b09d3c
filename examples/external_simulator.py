"""The rate constants of a reaction, from an ODE that SciPy solves: an energy that is not written in JAX.

A turns into B, and B into C. Only B is observed, and swapping the two rates changes it by a factor alone, which is not
known either: the posterior has a mode for each order of the rates.
"""

import numpy as np
from scipy.integrate import solve_ivp

import contourmc as cm

TIMES = np.linspace(0.5, 8.0, 16)
NOISE = 0.03


def amount_of_b(first, second):
    """Of B at the times of measurement, when all was A at first."""
    solution = solve_ivp(lambda t, y: [-first * y[0], first * y[0] - second * y[1]], (0, 8), [1.0, 0.0], "LSODA",
                         t_eval=TIMES, rtol=1e-8, atol=1e-10)  # fmt: skip
    return solution.y[1]


MEASURED = amount_of_b(1.5, 0.5) + NOISE * np.random.default_rng(0).normal(size=16)


def energy(x):
    """Minus the log posterior: x holds the logarithms of both rates and of the factor, with a wide normal prior."""
    first, second, factor = np.exp(x)
    misfit = (factor * amount_of_b(first, second) - MEASURED) / NOISE
    return np.sum(misfit**2) / 2 + np.sum(x**2) / 2


if __name__ == "__main__":
    target = cm.external(energy, gradient="differences", difference_step=1e-3)  # an ODE is solved to a few digits only
    run = cm.sample(target, init=np.log([1.5, 0.5, 1.0]), steps=2000, chains=8)
    print(run.summary())
    print(f"the first rate is the larger one with probability {run.mean(lambda x: x[0] > x[1]):.2f}")
