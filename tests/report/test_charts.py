"""Charts: strict pages show them, the numbers are there, and no label breaks out."""

import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from discreet.display.chart_parts import Axis, compute_ticks, read_stylesheet
from discreet.display.charts import (
    ChartSeries,
    EstimateRow,
    render_estimates,
    render_hundred,
    render_series,
)

NASTY = '<b onload="x">&amp;</b> "quoted" \' and ' + "long" * 60


def parsed(picture):
    return ElementTree.fromstring(picture.html)


def one_of_each(label="central"):
    x = [0.1, 0.5, 1.0, 2.0, 5.0]
    y = [0.6, 0.65, 0.7, 0.75, 0.8]
    low, high = [v - 0.02 for v in y], [v + 0.02 for v in y]
    return [
        render_estimates(
            [
                EstimateRow(label, 0.3, 0.2, 0.4, note=label, manipulable_range=(0.1, 0.5)),
                EstimateRow("b", -0.1, -0.2, 0.0),
            ],
            title=label,
            axis=Axis(label),
            reference=(label, 0.25),
        ),
        render_series(
            [
                ChartSeries(label, x, y, low, high),
                ChartSeries("no privacy", [0.1, 5], [0.83, 0.83], is_reference=True),
            ],
            title=label,
            x=Axis(label, is_log=True),
            y=Axis(label),
        ),
        render_hundred([(62, label), (38, "made up")], title=label),
    ]


@pytest.mark.parametrize("picture", one_of_each(NASTY), ids=["dots", "lines", "hundred"])
def test_charts_work_under_a_strict_policy_whatever_a_label_holds(picture):
    tree = parsed(picture)  # one well-formed element
    for element in tree.iter():
        assert element.tag not in ("script", "style", "b")
        assert not {name for name in element.attrib if name == "style" or name.startswith("on")}
        assert not any("url(" in value or "://" in value for value in element.attrib.values())
    assert NASTY in "".join(tree.itertext())


def test_every_class_of_a_chart_is_known_to_the_stylesheet_or_needs_no_looks():
    used = set()
    for picture in one_of_each():
        for names in re.findall(r'class="([^"]*)"', picture.html):
            used |= set(names.split())
    sheet = read_stylesheet()
    assert {name for name in used if f".{name}" not in sheet} <= {"band", "plot", "up"}
    for colour in ("prefers-color-scheme: dark", "@media print", "forced-colors"):
        assert colour in sheet


def test_a_dot_lies_where_its_value_is_and_the_numbers_are_in_the_row():
    made = render_estimates(
        [EstimateRow("a", 0.25, 0.0, 0.5), EstimateRow("b", 2.0, -1.0, 3.0)],
        title="t",
        axis=Axis(low=0, high=1),
    )
    rows = parsed(made).findall(".//tbody/tr")
    assert rows[0].find(".//circle").get("cx") == "25%"
    interval = rows[0].find(".//line[@class='range']")
    assert (interval.get("x1"), interval.get("x2")) == ("0%", "50%")
    assert [cell.text for cell in rows[0].findall("td")[:2]] == ["25.0 %", "0.0 % to 50.0 %"]
    assert rows[1].find(".//circle").get("cx") == "100%"  # held inside, with arrows both ways
    assert [t.text for t in rows[1].findall(".//text")] == ["◂", "▸"]
    assert rows[1].findall("td")[0].text == "200.0 %"


def test_a_line_rises_with_its_values_and_its_table_has_every_point():
    x, y = [0.1, 1.0, 10.0], [0.5, 0.6, 0.8]
    made = render_series(
        [ChartSeries("c", x, y, y, y)],
        title="t",
        x=Axis("epsilon", is_log=True),
        y=Axis(low=0.5, high=1.0),
    )
    tree = parsed(made)
    points = [
        tuple(map(float, p.split(","))) for p in tree.find(".//polyline").get("points").split()
    ]
    assert points == [(0, 100), (50, 80), (100, 40)]
    cells = [cell.text for cell in tree.findall(".//tbody//td")]
    assert cells == [
        "50.0 % (50.0 % to 50.0 %)",
        "60.0 % (60.0 % to 60.0 %)",
        "80.0 % (80.0 % to 80.0 %)",
    ]
    assert tree.find(".//{*}title").text == "t"
    assert "80.0 %" in tree.find(".//{*}desc").text


def test_tick_labels_keep_their_distance():
    x = [0.1, 0.11, 0.12, 0.5, 4.9, 5.0]
    made = render_series(
        [ChartSeries("c", x, [0.5] * 6)], title="t", x=Axis("epsilon", is_log=True)
    )
    labels = [
        (float(t.get("x").rstrip("%")), t.text)
        for t in parsed(made).iter("text")
        if t.get("text-anchor") == "middle"
    ]
    places = [place for place, _ in labels]
    assert all(b - a > 7 for a, b in pairwise(places))
    assert labels[-1][1] == "5"


def test_series_differ_without_colour():
    many = [ChartSeries(str(k), [1, 2], [k, k + 1]) for k in range(6)]
    found = parsed(render_series(many, title="t", x=Axis("x"))).findall(".//li/svg")
    looks = {re.sub(r"series-\d", "", ElementTree.tostring(one).decode()) for one in found}
    assert len(looks) == 6


def test_a_hundred_marks_are_a_hundred():
    tree = parsed(render_hundred([(50, "a"), (30, "b"), (15, "c"), (5, "d")], title="t"))
    crowd = tree.find("svg")
    assert len(list(crowd)) - 2 == 100
    assert len(crowd.findall("circle")) == 50
    with pytest.raises(ValueError, match="hundred"):
        render_hundred([(62, "a"), (37, "b")], title="t")


def test_one_value_one_point_and_nothing_at_all_are_drawn():
    parsed(render_estimates([EstimateRow("a", 0.5, 0.5, 0.5)], title="t"))
    parsed(render_estimates([], title="t"))
    parsed(
        render_series([ChartSeries("a", [1.0], [0.5])], title="t", x=Axis("epsilon", is_log=True))
    )
    parsed(
        render_series([ChartSeries("a", [1.0, 2.0], [float("nan"), 0.5])], title="t", x=Axis("x"))
    )


def test_ticks_are_round_numbers_inside():
    assert compute_ticks(0, 1) == [0, 0.25, 0.5, 0.75, 1.0]
    assert compute_ticks(-0.2, 0.3) == [-0.2, 0.0, 0.2]
