"""Charts as SVG: marks lie where the numbers are, axes have round ticks, and names stay text."""

import re
from itertools import pairwise

import numpy as np
import pytest
from tests.draws.report.parsed import parse

from contourmc.draws.exhibits.chart import Axis, Chart, Layer
from contourmc.draws.exhibits.drawing import HEIGHT, draw


def drawn(*layers, x=None, y=None, **options):
    return draw(Chart("", "", x or Axis("x"), y or Axis("y"), layers, **options), 400)


def line(x, y, name="line"):
    return Layer("line", {"x": x, "y": y}, name)


def texts(drawing):
    return [text.text for text in parse(drawing.svg).all("text")]


def ticks(drawing):
    """Of the horizontal axis."""
    return [text for text in parse(drawing.svg).all("text", text_anchor="middle") if "class" not in text.attributes]


def numbers(path):
    return [float(number) for number in re.findall(r"-?[0-9.]+", path)]


@pytest.mark.parametrize(
    ("layer", "path"),
    [
        (line([0, 1], [0, 2]), [0, 1, 1, 0]),
        (Layer("steps", {"x": [0, 0.5, 1], "y": [0, 2, 1]}, ""), [0, 1, 0.5, 0, 1, 0.5]),
        (Layer("bars", {"x": [0], "x2": [1], "y": [2], "y2": [0]}, ""), [0, 1, 0, 1, 1]),
        (Layer("band", {"x": [0, 1], "y": [0, 1], "y2": [1, 2]}, ""), [0, 1, 1, 0.5, 1, 0, 0, 0.5]),
        (Layer("rule", {"x": [0.5]}, ""), [0.5, 0, 1]),
    ],
    ids=lambda value: value.mark if isinstance(value, Layer) else "",
)
def test_marks_lie_where_the_numbers_are(layer, path):
    """As shares of the width, and of the height from the top."""
    drawing = drawn(layer, x=Axis("x", limits=(0.0, 1.0)), y=Axis("y", limits=(0.0, 2.0)))
    _, _, across, down = drawing.values["box"]
    mark = parse(drawing.svg).all("path")[-1].attributes["d"]
    heights = {"bars": [1, 2, 4], "rule": [1, 2], "steps": [1, 3, 5]}.get(layer.mark, range(1, len(path), 2))
    expected = [share * (down if i in heights else across) for i, share in enumerate(path)]
    np.testing.assert_allclose(numbers(mark), expected, atol=0.051)


@pytest.mark.parametrize(
    ("axis", "values", "labels"),
    [
        (Axis("x"), [0.02, 1.97], ["0.0", "0.5", "1.0", "1.5", "2.0"]),
        (Axis("x"), [-3.0, 2.9], ["−3", "−2", "−1", "0", "1", "2", "3"]),
        (Axis("x"), [6_020, 19_900], ["6,000", "8,000", "10,000", "12,000", "14,000", "16,000", "18,000", "20,000"]),
        (Axis("x"), [1e-7, 9e-7], ["1e-7", "2e-7", "3e-7", "4e-7", "5e-7", "6e-7", "7e-7", "8e-7", "9e-7"]),
        (Axis("x", log=True), [0.08, 6.3], ["0.1", "0.2", "0.5", "1", "2", "5"]),
        (Axis("x", log=True), [3e-11, 4e-4], ["1e-10", "1e-9", "1e-8", "1e-7", "1e-6", "1e-5", "0.0001"]),
        (Axis("x", log=True), [3e-21, 0.4], ["1e-20", "1e-17", "1e-14", "1e-11", "1e-8", "1e-5", "0.01"]),
        (Axis("x", zero=True), [0.2, 0.7], ["0.0", "0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7"]),
        (Axis("x"), [3.0, 3.0], ["1.5", "2.0", "2.5", "3.0", "3.5", "4.0", "4.5"]),
        (Axis("x", limits=(1.0, 1.0)), [1.0], ["0.6", "0.8", "1.0", "1.2", "1.4"]),
        (Axis("x", log=True), [2.0], ["1", "2"]),
        (Axis("x"), [], ["0.6", "0.8", "1.0", "1.2", "1.4"]),
    ],
)
def test_axes_have_round_ticks(axis, values, labels):
    values = np.asarray(values, float)
    drawing = draw(Chart("", "", axis, Axis("y"), [line(values, np.arange(len(values)))]), 1000)
    assert [tick.text for tick in ticks(drawing)] == labels


def test_ticks_leave_room_for_one_another():
    """Long ones are fewer: none of these touches its neighbour at 6.4 pixels a character."""
    drawing = drawn(line([1e5, 9e5], [0, 1]))
    ends = [(float(tick.attributes["x"]), 3.2 * len(tick.text)) for tick in ticks(drawing)]
    assert len(ends) > 2
    assert all(one + half < other - its_half for (one, half), (other, its_half) in pairwise(ends))


def test_a_chart_far_from_zero_keeps_its_shape():
    """Energies of large posteriors differ in their last digits only."""
    y = 4.9e6 + np.arange(5.0)
    drawing = drawn(line(np.arange(5), y))
    assert drawing.values["layers"][0]["columns"]["y"] == y.tolist()
    assert {"4,900,000.0", "4,900,004.0"} <= {*texts(drawing)}
    assert numbers(parse(drawing.svg).all("path")[-1].attributes["d"])[-1] == 0  # at the top


def test_a_chart_leaves_out_what_is_not_finite():
    layer = line([1.0, 2.0, 3.0, 4.0], [np.nan, 5.0, np.inf, 0.0])
    drawing = drawn(layer, y=Axis("y", log=True))
    assert drawing.values["layers"][0]["columns"] == {"x": [2.0], "y": [5.0]}
    assert "nan" not in drawing.svg


def test_names_are_text_and_long_ones_are_cut():
    drawing = drawn(line([0, 1], [0, 1], "</svg><script>"), line([0, 1], [0, 1], "&amp;"), x=Axis("a" * 50))
    assert {"</svg><script>", "&amp;", "a" * 39 + "…"} <= {*texts(drawing)}


def test_a_legend_that_is_too_long_for_a_row_takes_more():
    one, many = (drawn(*(line([0, 1], [0, 1], f"a layer number {i}") for i in range(count))) for count in (2, 9))
    assert one.values["box"][1] < many.values["box"][1] < HEIGHT / 2
    assert len(texts(drawn(line([0, 1], [0, 1], "a"), line([0, 1], [0, 1], "b"), legend=False))) == len(
        texts(drawn(line([0, 1], [0, 1])))
    )
