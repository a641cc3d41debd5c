"""Drawings and tables: what a reader sees, what a screen reader says, and that both are safe and always the same."""

from __future__ import annotations

import re
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
import pytest
from bs4 import BeautifulSoup, Tag

from searcheval import plots

HOSTILE = '<script>alert(1)</script> & "quoted" <b>'
FRAME = pd.DataFrame({"nDCG@10": [0.71, 0.83, np.nan], "RR": [0.5, 0.9, 0.7]}, index=["bm25", "fused", "dense"])


def soup(shown: plots.Drawing | plots.Table) -> BeautifulSoup:
    return BeautifulSoup(shown._repr_html_(), "html.parser")


def cells(shown: plots.Table) -> list[list[Tag]]:
    return [row.find_all(["th", "td"]) for row in soup(shown).select("tbody tr")]


def shown_texts(drawing: plots.Drawing) -> list[str]:
    return [t.get_text() for t in soup(drawing).find_all("text")]


def drawings() -> dict[str, plots.Drawing]:
    per_query = pd.Series([0.4, 0.0, -0.2, np.nan], index=["rain", "گوشی ارزان", HOSTILE, "gone"])
    rows = pd.DataFrame({"diff": [0.1, 0.0], "low": [0.05, -0.1], "high": [0.2, 0.1]}, index=["a", "b"])
    axes = {
        "heatmap": plots.heatmap(FRAME, label="Scores"),
        "differences": plots.differences(per_query, label="fused minus bm25"),
        "lines": plots.lines(FRAME.T, label_x="measure", label_y="score"),
        "bars": plots.bars(FRAME, label="Means"),
        "intervals": plots.intervals(rows, label="Differences"),
        "flow": plots.flow(
            [("Seed", "run"), ("Judge", "label"), ("Score", "count"), ("Test", "pair"), ("Gate", "stop")]
        ),
    }
    return {name: plots.figure(ax, alt=f"the {name}", caption="A caption.") for name, ax in axes.items()}


@pytest.fixture(scope="module")
def drawn() -> dict[str, plots.Drawing]:
    return drawings()


# ------------------------------------------------------------------------------------------------------------- figure


def test_a_figure_is_an_inline_svg_with_alt_text_and_caption(drawn: dict[str, plots.Drawing]) -> None:
    for name, drawing in drawn.items():
        page = soup(drawing)
        (svg,) = page.select("figure svg")
        assert (svg["role"], svg["aria-label"]) == ("img", f"the {name}")
        assert page.figcaption is not None
        assert page.figcaption.get_text() == "A caption."
        assert repr(drawing) == f"[figure: the {name}]"
        assert page.find("image") is None, "no embedded raster"


def test_alt_text_is_escaped_and_required() -> None:
    svg = soup(plots.figure(plots.axes(), alt=HOSTILE, caption=HOSTILE)).svg
    assert svg is not None
    assert svg["aria-label"] == HOSTILE
    with pytest.raises(ValueError, match="alt text"):
        plots.figure(plots.axes(), alt=" ")


def test_drawings_are_the_same_bytes_every_time(drawn: dict[str, plots.Drawing]) -> None:
    assert {n: d._repr_html_() for n, d in drawings().items()} == {n: d._repr_html_() for n, d in drawn.items()}
    assert not any(re.search(r"\b20\d\d-\d\d|Matplotlib", d.svg) for d in drawn.values())


def test_every_colour_is_a_name_of_the_palette(drawn: dict[str, plots.Drawing]) -> None:
    for drawing in drawn.values():
        bare = re.sub(
            r"var\(--([a-z]+), (#[0-9a-f]{6})\)", lambda m: m[1] * (plots.PALETTE[m[1]][0] == m[2]), drawing.svg
        )
        assert not re.findall(r"#[0-9a-f]{6}\b|var\(--(?!font)", bare)
    assert "--accent" in drawn["bars"].svg
    assert "--surface" in drawn["bars"].svg


def test_text_is_text_in_the_pages_font(drawn: dict[str, plots.Drawing]) -> None:
    assert {"Means", "bm25", "0.710", "n/a"} <= set(shown_texts(drawn["bars"]))
    assert all("DejaVu" not in d.svg for d in drawn.values())


def test_svg_of_one_drawing_does_not_touch_another(drawn: dict[str, plots.Drawing]) -> None:
    ids = [re.findall(r'\bid="([^"]+)"', d.svg) for d in drawn.values()]
    flat = [i for one in ids for i in one]
    assert flat
    assert len(flat) == len(set(flat))
    for one, drawing in zip(ids, drawn.values(), strict=True):
        assert set(re.findall(r'(?:url\(|href=")#([^)"]+)', drawing.svg)) == set(one)
        assert "<style" not in drawing.svg


def test_right_to_left_labels_are_isolated_and_hostile_ones_escaped(drawn: dict[str, plots.Drawing]) -> None:
    texts = shown_texts(drawn["differences"])
    assert "\u2067گوشی ارزان\u2069" in texts
    assert any(t.startswith("<script>alert(1)") for t in texts)
    assert "<script" not in drawn["differences"].svg


def test_settings_of_matplotlib_stay_and_pyplot_shows_nothing_twice() -> None:
    before = dict(matplotlib.rcParams)
    plots.figure(plots.bars(FRAME), alt="bars")
    assert dict(matplotlib.rcParams) == before
    matplotlib.use("agg")
    from matplotlib import pyplot

    figure, ax = pyplot.subplots()
    ax.plot([1, 2], [3, 4])
    plots.figure(ax, alt="a line")
    assert not pyplot.fignum_exists(figure.number)


# -------------------------------------------------------------------------------------------------------------- plots


def test_heatmap_values_are_readable_on_every_shade_in_both_themes() -> None:
    for theme in (0, 1):
        accent, surface, ink = (_rgb(plots.PALETTE[c][theme]) for c in ("accent", "surface", "ink"))
        for share in np.linspace(0, 1, 21):
            strength = plots.heat_strength(float(share))
            assert _contrast(strength * accent + (1 - strength) * surface, ink) >= 4.5
    for name in ("ink", "muted", "accent", "bad", *plots.SERIES):
        for theme in (0, 1):
            assert _contrast(_rgb(plots.PALETTE[name][theme]), _rgb(plots.PALETTE["soft"][theme])) >= 4.5, name


def _rgb(colour: str) -> np.ndarray:
    return np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])


def _contrast(a: np.ndarray, b: np.ndarray) -> float:
    one, two = (
        float(np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4) @ (0.2126, 0.7152, 0.0722))
        for c in (a, b)
    )
    return (max(one, two) + 0.05) / (min(one, two) + 0.05)


def test_heatmap_hatches_what_is_missing(drawn: dict[str, plots.Drawing]) -> None:
    assert "n/a" in shown_texts(drawn["heatmap"])
    assert "<pattern" in drawn["heatmap"].svg
    assert "<pattern" not in plots.figure(plots.heatmap(FRAME.fillna(0)), alt="all there").svg
    with pytest.raises(ValueError, match="low < high"):
        plots.heatmap(FRAME, low=1, high=1)


def test_differences_counts_and_sorts() -> None:
    series = pd.Series({"a": -0.1, "b": 0.3, "c": 0.0, "d": 0.1, "e": np.nan, "f": 1e-12})
    ax: Any = plots.differences(series, label="x")
    assert [t.get_text() for t in ax.get_yticklabels()] == ["b", "d", "f", "c", "a"]
    assert [t.get_text() for t in ax.texts] == ["2 better, 2 equal, 1 worse, 1 not compared", "x"]
    assert [p.get_width() for p in ax.patches] == [0.3, 0.1, 0.0, 0.0, -0.1]


def test_differences_of_many_queries_have_no_names() -> None:
    ax = plots.differences(pd.Series(np.linspace(-1, 1, 200), index=[f"q{i}" for i in range(200)]))
    assert not ax.get_yticklabels()
    assert ax.get_ylabel() == "200 queries, sorted"
    assert plots.differences(pd.Series(dtype=float)).texts[0].get_text() == "0 better, 0 equal, 0 worse"


def test_lines_end_in_their_names_even_after_a_gap() -> None:
    frame = pd.DataFrame({"a": [0.1, 0.2, np.nan], "b": [0.2, 0.3, 0.21], "none": [np.nan] * 3}, index=[1, 5, 10])
    ax: Any = plots.lines(frame)
    assert {t.get_text(): t.xy for t in ax.texts} == {"a": (5, 0.2), "b": (10, 0.21)}


def test_bars_stop_at_five_columns() -> None:
    with pytest.raises(ValueError, match="heatmap"):
        plots.bars(pd.DataFrame(np.ones((1, 6))))


def test_intervals_say_which_column_is_missing_and_mark_the_undecided() -> None:
    with pytest.raises(ValueError, match="'low' is not there"):
        plots.intervals(pd.DataFrame({"diff": [0.1], "high": [0.2]}))
    ax = plots.intervals(pd.DataFrame({"diff": [0.1, 0.1], "low": [0.05, -0.1], "high": [0.2, 0.3]}))
    dots = [line.get_markerfacecolor() for line in ax.lines if line.get_marker() == "o"]
    assert dots == [plots.colour("accent"), plots.colour("surface")]


def test_flow_wraps_to_rows_with_an_arrow_between_neighbours() -> None:
    ax: Any = plots.flow([(f"step {i}", "does a thing") for i in range(7)])
    tops = [box.get_y() for box in ax.patches]
    assert len(tops) == 7
    assert len(set(tops)) == 3
    assert sum(t.arrow_patch is not None for t in ax.texts if hasattr(t, "arrow_patch")) == 6


# -------------------------------------------------------------------------------------------------------------- table


def test_cells_read_as_they_should() -> None:
    frame = pd.DataFrame(
        {"n": [3, 12], "mean": [0.12345, np.nan], "ok": [True, False], "text": ["x", None], "tiny": [-0.00001, 2.0]},
        index=pd.Index(["bm25", "fused"], name="system"),
    )
    rows = [[c.get_text() for c in row] for row in cells(plots.table(frame))]
    assert rows == [["bm25", "3", "0.123", "yes", "x", "0.000"], ["fused", "12", "–", "no", "–", "2.000"]]
    page = soup(plots.table(frame, "A caption & more"))
    assert [th.get_text() for th in page.select('thead th[scope="col"]')] == [
        "system",
        "n",
        "mean",
        "ok",
        "text",
        "tiny",
    ]
    assert [th.get_text() for th in page.select('tbody th[scope="row"]')] == ["bm25", "fused"]
    assert page.caption is not None
    assert page.caption.get_text() == "A caption & more"
    assert all(td["title"] == "not available" for td in page.find_all("td") if td.get_text() == "–")
    assert [th.get_text() for th in page.select("thead th.num")] == ["n", "mean", "tiny"]
    assert page.select_one("div.se-scroll > table") is not None


def test_decimals_index_and_series() -> None:
    frame = pd.DataFrame({"p": [0.00012], "mean": [0.5]})
    assert [c.get_text() for c in cells(plots.table(frame, decimals={"p": 4}, index=False))[0]] == ["0.0001", "0.500"]
    assert [c.get_text() for c in cells(plots.table(pd.Series({"a": 0.25}), decimals=1))[0]] == ["a", "0.2"]
    with pytest.raises(ValueError, match="no column 'q'"):
        plots.table(frame, decimals={"q": 4})


def test_hostile_text_is_escaped_everywhere() -> None:
    frame = pd.DataFrame({HOSTILE: [HOSTILE]}, index=pd.Index([HOSTILE], name=HOSTILE))
    html = plots.table(frame, HOSTILE)._repr_html_()
    assert "<script" not in html
    assert "<b>" not in html
    assert {t.get_text() for t in BeautifulSoup(html, "html.parser").find_all(["td", "th", "caption"])} == {HOSTILE}


def test_direction_and_wrapping_of_text() -> None:
    frame = pd.DataFrame({"text": ["هدفون Sony WH-1000XM5", "headphones", "word " * 20], "grade": [1, 2, 3]})
    rows = cells(plots.table(frame, index=False))
    assert [row[0].get("dir") for row in rows] == ["rtl", "auto", "auto"]
    assert rows[0][1].get("dir") is None
    assert ["long" in row[0].get_attribute_list("class") for row in rows] == [False, False, True]
    assert all("long" in row[0]["class"] for row in cells(plots.table(frame, index=False, wrap=["text"])))


@pytest.mark.parametrize(("highlight", "best"), [("max", {"0.900"}), ("min", {"0.100"}), (None, set())])
def test_highlight_takes_all_that_read_the_same(highlight: str | None, best: set[str]) -> None:
    frame = pd.DataFrame({"m": [0.9, 0.90001, 0.1, np.nan], "name": list("abcd")})
    shown = soup(plots.table(frame, highlight=highlight))
    assert {td.get_text() for td in shown.select(".best")} == best
    assert len(shown.select(".best")) == {"max": 2, "min": 1, None: 0}[highlight]


def test_an_unknown_highlight_is_refused() -> None:
    with pytest.raises(ValueError, match="'best'"):
        plots.table(FRAME, highlight="best")


def test_an_empty_frame_says_so() -> None:
    assert "no rows" in plots.table(pd.DataFrame({"a": []}))._repr_html_()


def test_plain_text_of_a_table() -> None:
    assert repr(plots.table(pd.DataFrame({"m": [0.5]}, index=["bm25"]))).split() == ["m", "bm25", "0.500"]
