"""Numbers are shown with the digits that tell them apart."""

import numpy as np
import pytest

from contourmc.draws.exhibits.numbers import Measured, digits_of, shown


@pytest.mark.parametrize(
    ("number", "text"),
    [
        ("a name", "a name"),
        (1234, "1,234"),
        (0.5, "0.5000"),
        (12.34567, "12.35"),
        (1234.567, "1,235"),
        (1.5e-7, "1.500e-07"),
        (1e20, "1.000e+20"),
        (float("nan"), "–"),
        (float("inf"), "inf"),
        (Measured(2459000.0131, 0.01), "2,459,000.01310"),
        (Measured(2459000.0131, 2000.0), "2,459,000"),
        (Measured(0.0014113, 0.98), "0.0014"),
        (Measured(3.0, 0.0), "3.000"),
        (Measured(3.0, float("nan")), "3.000"),
        (Measured(1.5e-20, 1e-20), "1.500e-20"),
    ],
)
def test_as_a_page_shows_it(number, text):
    assert shown(number) == text


def test_a_measured_number_is_the_number():
    """In full, for files."""
    assert str(Measured(2459000.0131, 2000.0)) == "2459000.0131"


@pytest.mark.parametrize(
    ("values", "digits"),
    [([0.0, 1.0], 5), ([1e-12, 1.0], 5), ([1e6, 1e6 + 1], 11), ([3.0, 3.0], 5), ([np.nan, 2.0], 5), ([], 5)],
)
def test_digits_that_tell_numbers_apart(values, digits):
    assert digits_of(values) == digits
