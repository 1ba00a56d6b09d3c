"""The rates of a reaction, from an ODE that SciPy's Fortran solves: an energy that is not written in JAX.

A turns into B, and B into C. Only B is measured, up to a factor that is not known. Swapping the two rates changes B by
a factor alone, so that the posterior has a mode for each order of the rates.
"""

import numpy as np
from scipy.integrate import odeint

import contourmc as cm

TIMES = np.linspace(0, 8, 17)
NOISE = 0.03


def change(y, t, first, second):
    """Of A and B, of their derivatives by the first rate, and of that of B by the second."""
    a, b, a_first, b_first, b_second = y
    left, left_first = first * a, a + first * a_first
    return -left, left - second * b, -left_first, left_first - second * b_first, -b - second * b_second


def amount_of_b(rates):
    """With its derivatives by both rates, at all times; in the beginning all is A."""
    return odeint(change, [1.0, 0, 0, 0, 0], TIMES, args=tuple(rates))[1:, [1, 3, 4]].T


MEASURED = amount_of_b([2.5, 0.5])[0] + NOISE * np.random.default_rng(0).normal(size=16)


def value_and_gradient(x):
    """Minus the log posterior of the logarithms of both rates and of the factor; their prior is standard normal."""
    curves = np.exp(x[2]) * amount_of_b(np.exp(x[:2]))
    misfit = (curves[0] - MEASURED) / NOISE
    slopes = np.stack([np.exp(x[0]) * curves[1], np.exp(x[1]) * curves[2], curves[0]]) / NOISE
    return misfit @ misfit / 2 + x @ x / 2, slopes @ misfit + x


run = cm.sample(cm.external(value_and_gradient), init=np.log([2.5, 0.5, 1.0]), steps=5000)
print(f"{run.summary()}\nthe first rate is the larger one in {run.expectation(lambda x: x[0] > x[1]):.0%} of all cases")
