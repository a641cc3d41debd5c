"""Frames in, Axes out: the few drawings and the one table that the notebooks show.

Every drawing is made with matplotlib's object API (no pyplot, so nothing is drawn twice) and shown by :func:`figure` as
an inline SVG whose text is real text and whose colours are names: a published page defines them for light and dark
(:data:`PALETTE`), and JupyterLab falls back to the light ones.

>>> import pandas as pd
>>> scores = pd.DataFrame({"nDCG@10": [0.71, 0.83]}, index=["bm25", "fused"])
>>> figure(bars(scores, label="Mean by system"), alt="fused 0.83, bm25 0.71")
[figure: fused 0.83, bm25 0.71]
"""

from __future__ import annotations

import hashlib
import io
import math
import numbers
import re
import sys
import textwrap
import unicodedata
import warnings
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import wraps
from html import escape
from itertools import pairwise
from typing import Any, ParamSpec, TypeVar

import matplotlib
import pandas as pd
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, Rectangle
from matplotlib.ticker import MaxNLocator

P = ParamSpec("P")
R = TypeVar("R")

#: The one palette: name -> (light, dark). Drawings and pages know a colour as ``var(--name)``.
PALETTE: dict[str, tuple[str, str]] = {
    "surface": ("#ffffff", "#14171b"),
    "soft": ("#f4f6f8", "#1d2228"),
    "line": ("#dde2e7", "#313942"),
    "muted": ("#5b6570", "#9ca6b1"),
    "ink": ("#1c2228", "#e4e7eb"),
    "accent": ("#1f5fae", "#7db1f5"),
    "orange": ("#b84e06", "#f0955a"),
    "green": ("#0b7a63", "#4fc3a1"),
    "purple": ("#a03f84", "#e08fc8"),
    "slate": ("#66717d", "#aab4bf"),
    "bad": ("#b3261e", "#f28b82"),
}
#: Names of the colours that up to five systems or measures get, in this order; told apart by colour-blind readers too.
SERIES = ("accent", "orange", "green", "purple", "slate")

WIDTH = 720  # px of a drawing; one unit of the SVG is one px
_PX = 1 / 72
_SCROLLS = 'class="se-scroll" style="overflow-x:auto" tabindex="0"'  # a box that scrolls sideways, by keyboard too
_MARKERS = ("o", "s", "^", "D", "v")
_RTL_KINDS = {"R", "AL"}
_ISOLATED = re.compile("\u2068[^\u2069]*\u2069")  # names set apart do not say which way a sentence runs
_FAINT, _STRONG = 0.03, 0.53  # a heat map's accent over the surface: ink is readable on all of it, in light and dark


def colour(name: str) -> str:
    """The light value of a colour of the palette, which :func:`figure` turns into ``var(--name)``.

    Parameters
    ----------
    name : str
        A key of :data:`PALETTE`.

    Raises
    ------
    KeyError
        For a name that the palette does not hold.

    Examples
    --------
    >>> colour("surface")
    '#ffffff'
    """
    return PALETTE[name][0]


_STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "searcheval",
    "font.family": [
        "DejaVu Sans"
    ],  # comes with matplotlib, and is wider than the reader's font: what fits here fits there
    "font.size": 13,
    "text.color": colour("ink"),
    "text.parse_math": False,
    "axes.edgecolor": colour("line"),
    "axes.facecolor": "none",
    "axes.labelcolor": colour("muted"),
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 15,
    "axes.titleweight": "bold",
    "axes.titlepad": 12,
    "axes.axisbelow": True,
    "axes.unicode_minus": False,
    "axes.prop_cycle": cycler(color=[colour(c) for c in SERIES]),
    "figure.facecolor": colour("surface"),
    "figure.constrained_layout.h_pad": 6 * _PX,
    "figure.constrained_layout.w_pad": 2 * _PX,
    "grid.color": colour("line"),
    "grid.linewidth": 0.8,
    "hatch.color": colour("line"),
    "hatch.linewidth": 1.2,
    "legend.frameon": False,
    "legend.labelcolor": colour("ink"),
    "lines.linewidth": 2,
    "savefig.facecolor": colour("surface"),
    "xtick.color": colour("muted"),
    "xtick.major.size": 0,
    "xtick.major.pad": 6,
    "ytick.color": colour("muted"),
    "ytick.labelcolor": colour("ink"),
    "ytick.major.size": 0,
    "ytick.major.pad": 8,
}


def _styled(draw: Callable[P, R]) -> Callable[P, R]:
    """Run ``draw`` under this module's style and leave matplotlib's settings as they were."""

    @wraps(draw)
    def styled(*args: P.args, **kwargs: P.kwargs) -> R:
        with matplotlib.rc_context(_STYLE), warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=r"Glyph \d+")  # measured only; the reader's font has the letter
            return draw(*args, **kwargs)

    return styled


@_styled
def axes(width: float = WIDTH, height: float = 320) -> Axes:
    """Blank Axes in the style of this module, for a drawing that is not here.

    Parameters
    ----------
    width, height : float
        Size in px.

    Examples
    --------
    >>> ax = axes(height=200)
    >>> _ = ax.plot([1, 2, 3], [0.2, 0.4, 0.3])
    >>> figure(ax, alt="three points")
    [figure: three points]
    """
    return Figure(figsize=(width * _PX, height * _PX), layout="constrained").subplots()


class Notes:
    """What :func:`notes` returns: a list of sentences, in a notebook as HTML with everything escaped."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = list(lines)

    def _repr_html_(self) -> str:
        rtl = ' dir="rtl"'
        items = "".join(
            f"<li{rtl if reads_rtl(_ISOLATED.sub('', line)) else ''}>{escape(line)}</li>" for line in self.lines
        )
        return f'<ul class="notes">{items}</ul>'

    def __repr__(self) -> str:
        return "\n".join(f"- {line}" for line in self.lines)


def notes(lines: Sequence[str]) -> Notes:
    """Show sentences that were computed, as a list.

    Examples
    --------
    >>> notes(["bm25 is higher than dense."])
    - bm25 is higher than dense.
    """
    return Notes(lines)


# ---------------------------------------------------------------------------------------------------------- drawings


class Drawing:
    """What :func:`figure` returns: a ``<figure>`` with an inline SVG in a notebook, its alternative text elsewhere.

    Attributes
    ----------
    svg : str
        The ``<svg>`` element. The same drawing gives the same bytes.
    alt, caption : str
        What a screen reader says, and what stands below.
    """

    def __init__(self, svg: str, alt: str, caption: str = "") -> None:
        self.svg, self.alt, self.caption = svg, alt, caption

    def _repr_html_(self) -> str:
        caption = f"\n<figcaption>{escape(self.caption)}</figcaption>" if self.caption else ""
        return f'<figure class="se-figure" style="margin:1em 0"><div {_SCROLLS}>{self.svg}</div>{caption}</figure>'

    def __repr__(self) -> str:
        return f"[figure: {self.alt}]"


@_styled
def figure(ax: Axes | Figure, alt: str, caption: str | None = None) -> Drawing:
    """Show Axes as an inline SVG that follows the page's font and its light or dark colours.

    Parameters
    ----------
    ax : Axes or Figure
        What to show. A figure made by pyplot is closed, so that the inline backend does not show it again.
    alt : str
        What the drawing says, in words, for those who do not see it.
    caption : str, optional
        Shown below.

    Raises
    ------
    ValueError
        For an empty ``alt``.

    Examples
    --------
    >>> figure(axes(), alt="nothing yet", caption="An empty plot.")
    [figure: nothing yet]
    """
    if not alt.strip():
        raise ValueError("figure() needs an alt text: say in words what the drawing shows")
    whole: Any = ax if isinstance(ax, Figure) else ax.get_figure(root=True)
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close(whole)
    buffer = io.BytesIO()
    whole.savefig(buffer, format="svg", metadata={"Date": None})
    return Drawing(_inline_svg(buffer.getvalue().decode(), alt), alt, caption or "")


def _inline_svg(svg: str, alt: str) -> str:
    """matplotlib's SVG file as an element for the middle of a page."""
    svg = svg[svg.index("<svg") :]
    width, height = (float(n) for n in re.findall(r"[\d.]+", re.findall(r'viewBox="0 0 [\d.]+ [\d.]+"', svg)[0])[2:])
    body = svg[svg.index(">") + 1 :]
    body = re.sub(r"\s*<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    body = re.sub(r"\s*<defs>\s*<style[^>]*>[^<]*</style>\s*</defs>", "", body)  # it would apply to the whole page
    body = body.replace("xlink:href", "href")
    body = re.sub(r' transform="rotate\(-0 [^"]*"', "", body)
    body = re.sub(r"font-family: [^;\"]*;? ?", "", body)
    body = re.sub(r'(?<= d=")[^"]*', lambda m: re.sub(r"(\.\d\d)\d+", r"\1", " ".join(m[0].split())), body)
    body = re.sub(r"(<text\b[^>]*>)([^<]*)(?=</text>)", lambda m: m[1] + _isolated(m[2]), body)
    body = _own_ids(_named_colours(body))
    style = (
        f"width:100%;max-width:{width:g}px;min-width:{min(width, max(520, 0.8 * width)):g}px;height:auto;display:block;"
        "font-family:var(--font,system-ui,-apple-system,'Segoe UI',Roboto,'Noto Sans',Tahoma,sans-serif);"
        "font-variant-numeric:tabular-nums;stroke-linejoin:round;stroke-linecap:butt"
    )
    return (
        f'<svg class="se-drawing" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img" '
        f'aria-label="{escape(alt)}" style="{style}">{body.strip()}'
    )


def _named_colours(svg: str) -> str:
    """Each colour of the palette by its name; black and white count as ink and surface."""
    names = {light: name for name, (light, _) in PALETTE.items()} | {"#000000": "ink"}
    svg = re.sub(r'\b(fill|stroke)="(#[0-9a-f]{6})"', r'style="\1: \2"', svg)

    def named(match: re.Match[str]) -> str:
        name = names.get(match[2].lower())
        return f"{match[1]}: var(--{name}, {PALETTE[name][0]})" if name else match[0]

    svg = re.sub(r"(fill|stroke): (#[0-9a-f]{6})", named, svg)
    return re.sub(r'<text style="(?![^"]*fill:)', '<text style="fill: var(--ink, #1c2228); ', svg)


def _own_ids(svg: str) -> str:
    """Ids that hold in a page of several drawings: unused ones dropped, the others named after the content."""
    used = set(re.findall(r"url\(#([^)]+)\)", svg)) | set(re.findall(r'href="#([^"]+)"', svg))
    prefix = "d" + hashlib.sha256(svg.encode()).hexdigest()[:8]
    svg = re.sub(r' id="([^"]+)"', lambda m: f' id="{prefix}{m[1]}"' if m[1] in used else "", svg)
    return re.sub(r'(url\(#|href="#)', rf"\g<1>{prefix}", svg)


def _isolated(text: str) -> str:
    """Right-to-left text in an isolate of its own, so that its parts keep their order wherever it is anchored."""
    return f"\u2067{text}\u2069" if reads_rtl(text) else text


def mostly_rtl(text: str) -> bool:
    """True if more than half of the letters are right-to-left ones (a running text).

    >>> mostly_rtl("گوشی ارزان"), mostly_rtl("the query گوشی"), mostly_rtl("42")
    (True, False, False)
    """
    rtl = sum(unicodedata.bidirectional(c) in _RTL_KINDS for c in text if c.isalpha())
    return rtl * 2 > sum(c.isalpha() for c in text)


def reads_rtl(text: str) -> bool:
    """True if a short text (a cell, a label) reads from right to left: it starts so, or is mostly so.

    >>> reads_rtl("هدفون Sony WH-1000XM5"), reads_rtl("Sony"), reads_rtl("query: گوشی")
    (True, False, False)
    """
    first = next((c for c in text if c.isalpha()), "")
    return mostly_rtl(text) or (first != "" and unicodedata.bidirectional(first) in _RTL_KINDS)


# -------------------------------------------------------------------------------------------------------------- table

_TABLE_STYLE = (  # for JupyterLab; publish has its own
    '<style class="se">.se-table td,.se-table th{text-align:start;white-space:nowrap;vertical-align:top;'
    "font-variant-numeric:tabular-nums}.se-table .num{text-align:end}.se-table .long{white-space:normal;"
    "min-width:16em;overflow-wrap:anywhere}.se-table .best{font-weight:700}.se-table caption{text-align:start}</style>"
)


class Table:
    """What :func:`table` returns: a ``<table>`` in a notebook, plain text elsewhere."""

    def __init__(self, html: str, text: str) -> None:
        self._html, self._text = html, text

    def _repr_html_(self) -> str:
        return self._html

    def __repr__(self) -> str:
        return self._text


def table(
    frame: pd.DataFrame | pd.Series,
    caption: str | None = None,
    *,
    decimals: int | Mapping[str, int] = 3,
    index: bool = True,
    highlight: str | None = None,
    wrap: Sequence[str] = (),
) -> Table:
    """A frame as a table: numbers to the right with fixed decimals, what is missing as "–", everything escaped.

    Parameters
    ----------
    frame : DataFrame or Series
        Whole numbers stay whole, booleans read yes and no. A named index prints its name.
    caption : str, optional
        Shown above the table.
    decimals : int or dict of column to int
        Decimals of the numbers that are not whole; in a dict, columns not named have 3.
    index : bool
        Whether the index is shown.
    highlight : "max" or "min", optional
        Bold for the best value of each column of numbers; values that read the same are all bold.
    wrap : sequence of column names
        Columns of running text: always given room and wrapped. Cells longer than 40 characters are anyway.

    Raises
    ------
    ValueError
        For another ``highlight``, or a name in ``wrap`` or ``decimals`` that is no column.

    Examples
    --------
    >>> import pandas as pd
    >>> table(pd.DataFrame({"n": [3, 12], "mean": [0.5, None]}, index=["bm25", "fused"]))
            n   mean
    bm25    3  0.500
    fused  12      –
    """
    if isinstance(frame, pd.Series):
        frame = frame.to_frame(name="value" if frame.name is None else frame.name)
    if highlight not in (None, "max", "min"):
        raise ValueError(f"highlight is 'max', 'min' or None, not {highlight!r}")
    places = dict(decimals) if isinstance(decimals, Mapping) else {}
    unknown = [name for name in (*wrap, *places) if name not in frame.columns and name != frame.index.name]
    if unknown:
        raise ValueError(f"no column {unknown[0]!r} in the table; it has {', '.join(map(str, frame.columns))}")
    default = decimals if isinstance(decimals, int) else 3
    columns = [
        _Column(name, frame.iloc[:, i].tolist(), places.get(name, default), name in wrap)
        for i, name in enumerate(frame.columns)
    ]
    head = _Column(
        frame.index.name, frame.index.tolist(), places.get(str(frame.index.name), default), frame.index.name in wrap
    )
    return Table(_table_html(columns, head if index else None, caption, highlight), _table_text(columns, head, index))


class _Column:
    """A column of a table: its cells as text, and how they stand."""

    def __init__(self, name: Hashable, values: list[Any], decimals: int, wrap: bool) -> None:
        self.name = "" if name is None else str(name)
        self.values, self.wrap = values, wrap
        self.missing = [_missing(v) for v in values]
        self.texts = ["–" if gone else _text(v, decimals) for v, gone in zip(values, self.missing, strict=True)]
        there = [v for v, gone in zip(values, self.missing, strict=True) if not gone]
        self.numeric = bool(values) and all(_is_number(v) for v in there)

    def best(self, highlight: str | None) -> set[str]:
        """The texts to print bold."""
        shown = (
            {t: float(v) for v, t, gone in zip(self.values, self.texts, self.missing, strict=True) if not gone}
            if (highlight and self.numeric and len(self.values) > 1)
            else {}
        )
        if not shown:
            return set()
        return {(max if highlight == "max" else min)(shown, key=lambda t: shown[t])}

    def attributes(self, row: int, best: set[str]) -> str:
        """The attributes of one cell."""
        text = self.texts[row]
        long = not self.numeric and (self.wrap or len(text) > 40)
        kinds = [k for k, on in (("num", self.numeric), ("long", long), ("best", text in best)) if on]
        kind = f' class="{" ".join(kinds)}"' if kinds else ""
        title = ' title="not available"' if self.missing[row] else ""
        return kind + title + ("" if self.numeric else ' dir="rtl"' if reads_rtl(text) else ' dir="auto"')


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _missing(value: Any) -> bool:
    return bool(value is None or (pd.api.types.is_scalar(value) and pd.isna(value)))


def _text(value: Any, decimals: int) -> str:
    """One value as text: whole numbers whole, other numbers with fixed decimals, booleans as words.

    >>> _text(7, 3), _text(-0.00001, 2), _text(True, 3)
    ('7', '0.00', 'yes')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, numbers.Integral) or not _is_number(value):
        return str(value)
    text = f"{float(value):.{decimals}f}"
    return text.removeprefix("-") if not text.strip("-0.") else text


def _table_html(columns: list[_Column], head: _Column | None, caption: str | None, highlight: str | None) -> str:
    title = f"<caption><span>{escape(caption)}</span></caption>" if caption else ""
    corner = "" if head is None else _header(head) if head.name else "<td></td>"
    best = [c.best(highlight) for c in columns]
    rows = []
    for r in range(len(columns[0].values) if columns else 0):
        first = "" if head is None else f'<th scope="row"{head.attributes(r, set())}>{escape(head.texts[r])}</th>'
        cells = (f"<td{c.attributes(r, b)}>{escape(c.texts[r])}</td>" for c, b in zip(columns, best, strict=True))
        rows.append(f"<tr>{first}{''.join(cells)}</tr>")
    if not rows:
        rows = [f'<tr><td colspan="{max(1, len(columns) + (head is not None))}">no rows</td></tr>']
    return "\n".join(
        (
            f'<div {_SCROLLS}>{_TABLE_STYLE}<table class="se-table">{title}',
            f"<thead><tr>{corner}{''.join(map(_header, columns))}</tr></thead>",
            "<tbody>",
            *rows,
            "</tbody></table></div>",
        )
    )


def _header(column: _Column) -> str:
    kind = ' class="num"' if column.numeric else ""
    return f'<th scope="col"{kind} dir="{"rtl" if reads_rtl(column.name) else "auto"}">{escape(column.name)}</th>'


def _table_text(columns: list[_Column], head: _Column, index: bool) -> str:
    frame = pd.DataFrame(dict(enumerate(c.texts for c in columns)), index=pd.Index(head.texts, name=head.name or None))
    with pd.option_context("display.width", 1000):
        return str(frame.to_string(header=[c.name for c in columns], index=index)) if columns else "(no columns)"


# -------------------------------------------------------------------------------------------------------------- plots


@_styled
def heatmap(
    frame: pd.DataFrame,
    ax: Axes | None = None,
    *,
    low: float = 0.0,
    high: float = 1.0,
    label: str = "",
    decimals: int = 2,
) -> Axes:
    """Rows by columns of numbers as shaded cells with their value; what is missing is hatched and reads "n/a".

    Parameters
    ----------
    frame : DataFrame of numbers
    ax : Axes, optional
    low, high : float
        Values of the faintest and the strongest cell; what lies outside is drawn like the nearest of them.
    label : str
        Title: what the numbers are.
    decimals : int
        Decimals of the values printed.

    Raises
    ------
    ValueError
        If ``high`` is not above ``low``.

    Examples
    --------
    >>> import pandas as pd
    >>> ax = heatmap(pd.DataFrame({"q1": [1.0, 0.4], "q2": [0.2, None]}, index=["bm25", "fused"]), label="nDCG@10")
    >>> [t.get_text() for t in ax.texts][:4]
    ['1.00', '0.20', '0.40', 'n/a']
    """
    if not high > low:
        raise ValueError(f"heatmap needs low < high, not {low:g} and {high:g}")
    rows, columns = frame.shape
    names = [_short(c, 24) for c in frame.columns]
    longest = max(map(len, names), default=0)
    tall = longest * 7.5 > 560 / max(columns, 1)
    if ax is None:
        side = 7 * max((len(_short(r, 40)) for r in frame.index), default=0)
        ax = axes(max(WIDTH, side + 46 * columns), 50 + 34 * rows + (6.8 * longest if tall else 16))
    for r in range(rows):
        for c in range(columns):
            _heat_cell(ax, r, c, frame.iat[r, c], low, high, decimals)
    ax.set(xlim=(0, max(columns, 1)), ylim=(max(rows, 1), 0))
    ax.set_yticks([r + 0.5 for r in range(rows)], [_short(r, 40) for r in frame.index])
    ax.tick_params(top=False, labeltop=True, bottom=False, labelbottom=False)
    ax.set_xticks([c + 0.5 for c in range(columns)], names)
    if tall:
        ax.tick_params(axis="x", labelrotation=60)
        for text in ax.get_xticklabels():
            text.set(ha="left", va="center", rotation_mode="anchor")
    ax.spines[:].set_visible(False)
    _titles(ax, label, pad=20 + 6.8 * longest if tall else 32)
    return ax


def _heat_cell(ax: Axes, row: int, column: int, value: Any, low: float, high: float, decimals: int) -> None:
    """One cell: the accent at the strength of the value, over the surface, so that it fits light and dark."""
    box: dict[str, Any] = {"xy": (column + 0.02, row + 0.04), "width": 0.96, "height": 0.92, "linewidth": 0}
    middle: dict[str, Any] = {"x": column + 0.5, "y": row + 0.5, "ha": "center", "va": "center", "fontsize": 12.5}
    if _missing(value):
        ax.add_patch(Rectangle(**box, facecolor="none", edgecolor=colour("line"), hatch="///"))
        ax.text(**middle, s="n/a", color=colour("muted"))
        return
    ax.add_patch(Rectangle(**box, facecolor=colour("accent"), alpha=heat_strength((float(value) - low) / (high - low))))
    ax.text(**middle, s=_text(value, decimals), color=colour("ink"))


def heat_strength(share: float) -> float:
    """How strongly a heat map paints a value at ``share`` (0 to 1) of its scale.

    >>> heat_strength(0.0), heat_strength(1.0), heat_strength(7.0)
    (0.03, 0.53, 0.53)
    """
    return round(_FAINT + (_STRONG - _FAINT) * min(max(share, 0.0), 1.0), 3)


@_styled
def differences(series: pd.Series, ax: Axes | None = None, *, label: str = "") -> Axes:
    """Per-query differences as sorted horizontal bars around zero, with the counts of better, equal and worse.

    Parameters
    ----------
    series : Series
        New minus baseline, a value a query; the index names the query. Missing values are counted, not drawn.
    ax : Axes, optional
    label : str
        Title: what is compared, on which measure.

    Notes
    -----
    Beyond 40 queries the bars stand without names; the table beside them has these.

    Examples
    --------
    >>> import pandas as pd
    >>> ax = differences(pd.Series({"q1": 0.2, "q2": 0.0, "q3": -0.1}), label="fused minus bm25")
    >>> ax.texts[0].get_text()
    '1 better, 1 equal, 1 worse'
    """
    known = series.dropna().sort_values(kind="stable", ascending=False)
    values = [0.0 if abs(v) < 1e-9 else float(v) for v in known]
    better, worse, gone = sum(v > 0 for v in values), sum(v < 0 for v in values), len(series) - len(known)
    counts = f"{better} better, {len(values) - better - worse} equal, {worse} worse" + (
        f", {gone} not compared" if gone else ""
    )
    named = len(values) <= 40
    ax = ax or axes(height=110 + (20 * max(len(values), 2) if named else 460))
    rows = range(len(values))
    shades = [colour("accent" if v > 0 else "orange") for v in values]
    ax.barh(rows, values, height=0.72 if named else 1.0, color=shades, edgecolor=shades, linewidth=0 if named else 0.7)
    ties = [r for r in rows if values[r] == 0]
    ax.plot([0] * len(ties), ties, "o", markersize=4.5 if named else 2, color=colour("slate"))
    ax.axvline(0, color=colour("ink"), linewidth=1)
    reach = max((abs(v) for v in values), default=0) * 1.08 or 1
    ax.set(xlim=(-reach, reach), ylim=(max(len(values), 1) - 0.4, -0.6), xlabel="← worse · better →")
    ax.set_yticks(list(rows) if named else [], [_short(q, 36) for q in known.index] if named else [])
    ax.grid(axis="x")
    ax.spines[["left", "bottom"]].set_visible(False)
    if not named:
        ax.set_ylabel(f"{len(values)} queries, sorted")
    _titles(ax, label, counts)
    return ax


@_styled
def intervals(
    frame: pd.DataFrame, ax: Axes | None = None, *, label: str = "", value: str = "diff", zero: float = 0.0
) -> Axes:
    """Estimates with their intervals, one a row, around a line of no difference.

    Parameters
    ----------
    frame : DataFrame
        Columns ``value``, ``low`` and ``high``; the index names the row. Rows without an interval show the point alone.
    ax : Axes, optional
    label : str
        Title.
    value : str
        Column of the estimate.
    zero : float
        Where the line stands; an interval that holds it is drawn hollow, as undecided.

    Raises
    ------
    ValueError
        For a frame without one of the columns.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"diff": [0.05], "low": [-0.01], "high": [0.11]}, index=["fused"])
    >>> intervals(rows, label="Against bm25").texts[0].get_text()
    '+0.050 [-0.010, +0.110]'
    """
    absent = [c for c in (value, "low", "high") if c not in frame.columns]
    if absent:
        raise ValueError(f"intervals needs the columns {value}, low and high; {absent[0]!r} is not there")
    ax = ax or axes(height=100 + 34 * max(len(frame), 1))
    for row, (point, low, high) in enumerate(frame[[value, "low", "high"]].astype(float).itertuples(index=False)):
        if math.isnan(point):
            _beside(ax, "n/a", (zero, row), (6, 0), color=colour("muted"))
            continue
        decided = not low <= zero <= high and not math.isnan(low)
        shade = colour(("accent" if point > zero else "orange") if decided else "slate")
        ax.plot([low, high], [row, row], color=shade, solid_capstyle="round")
        ax.plot(
            [point],
            [row],
            "o",
            markersize=8,
            color=shade,
            markeredgewidth=2,
            markerfacecolor=shade if decided else colour("surface"),
        )
        said = f"{point:+.3f}" + ("" if math.isnan(low) else f" [{low:+.3f}, {high:+.3f}]")
        _beside(ax, said, (1, row), (8, 0), xycoords=("axes fraction", "data"))
    ax.axvline(zero, color=colour("ink"), linewidth=1, zorder=0)
    ax.set_ylim(max(len(frame), 1) - 0.5, -0.5)
    ax.set_yticks(range(len(frame)), [_short(r, 40) for r in frame.index])
    ax.margins(x=0.06)
    ax.grid(axis="x")
    ax.spines[["left", "bottom"]].set_visible(False)
    _titles(ax, label)
    return ax


@_styled
def lines(
    frame: pd.DataFrame, ax: Axes | None = None, *, label_x: str = "", label_y: str = "", label: str = ""
) -> Axes:
    """One line a column over the index, named at its end.

    Parameters
    ----------
    frame : DataFrame of numbers
        Index: x, numbers or names. Gaps (NaN) are left open.
    ax : Axes, optional
    label_x, label_y : str
        What the axes show.
    label : str
        Title.

    Examples
    --------
    >>> import pandas as pd
    >>> ax = lines(pd.DataFrame({"bm25": [0.5, 0.6], "fused": [0.5, 0.8]}, index=[5, 10]), label_x="k")
    >>> [t.get_text() for t in ax.texts][:2]
    ['fused', 'bm25']
    """
    ax = ax or axes(height=340)
    numeric = all(_is_number(x) for x in frame.index)
    xs = [float(x) for x in frame.index] if numeric else list(range(len(frame)))
    ends: list[tuple[float, float, str, str]] = []
    for i, name in enumerate(frame.columns):
        ys, shade = [math.nan if _missing(y) else float(y) for y in frame[name]], _series_colour(i)
        mark = _MARKERS[i % len(_MARKERS)] if len(xs) <= 40 else ""
        ax.plot(xs, ys, marker=mark, markersize=8, color=shade, markeredgecolor=colour("surface"), markeredgewidth=1)
        last = max((j for j, y in enumerate(ys) if not math.isnan(y)), default=None)
        if last is not None:
            ends.append((ys[last], xs[last], _short(name, 28), shade))
    if not numeric or len(xs) <= 8:
        ax.set_xticks(xs, [_short(x, 18) for x in frame.index])
    elif pd.api.types.is_integer_dtype(frame.index.dtype):
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set(xlabel=label_x)
    ax.grid(axis="y")
    ax.spines["left"].set_visible(False)
    _end_labels(ax, ends)
    _titles(ax, label, label_y)
    return ax


def _end_labels(ax: Axes, ends: list[tuple[float, float, str, str]]) -> None:
    """A name at the end of each line, moved apart where they would overlap."""
    bottom, top = ax.get_ylim()
    gap = (top - bottom) * 17 / 260
    at = math.inf
    for y, x, name, shade in sorted(ends, key=lambda end: (-end[0], end[2])):
        at = min(y, at - gap)
        _beside(ax, name, (x, y), (10, (at - y) / (top - bottom) * 260), color=shade, fontsize=12.5, fontweight="bold")


@_styled
def bars(frame: pd.DataFrame, ax: Axes | None = None, *, label: str = "", decimals: int = 3) -> Axes:
    """Grouped horizontal bars with their values: a group a row, a bar a column.

    Parameters
    ----------
    frame : DataFrame of numbers, not negative
        Index: systems. Columns: up to five measures. What is missing reads "n/a".
    ax : Axes, optional
    label : str
        Title.
    decimals : int
        Decimals of the values printed.

    Raises
    ------
    ValueError
        For more than five columns: draw a heat map instead.

    Examples
    --------
    >>> import pandas as pd
    >>> ax = bars(pd.DataFrame({"nDCG@10": [0.71, None]}, index=["bm25", "dense"]), label="Means")
    >>> [t.get_text() for t in ax.texts][:2]
    ['0.710', 'n/a']
    """
    rows, columns = frame.shape
    if columns > len(SERIES):
        raise ValueError(f"bars shows up to {len(SERIES)} columns, not {columns}: use heatmap")
    ax = ax or axes(height=80 + (28 if columns > 1 else 0) + rows * (18 * columns + 14))
    slot = 0.8 / max(columns, 1)
    for c, name in enumerate(frame.columns):
        heights = [r - 0.4 + slot * (c + 0.5) for r in range(rows)]
        values = [math.nan if _missing(v) else float(v) for v in frame.iloc[:, c]]
        ax.barh(
            heights, [0 if math.isnan(v) else v for v in values], slot * 0.86, color=_series_colour(c), label=str(name)
        )
        for y, v, raw in zip(heights, values, frame.iloc[:, c].tolist(), strict=True):
            text, shade = ("n/a", "muted") if math.isnan(v) else (_text(raw, decimals), "ink")
            _beside(ax, text, (0 if math.isnan(v) else v, y), (5, 0), color=colour(shade))
    top = max((float(v) for v in frame.to_numpy().ravel() if not _missing(v)), default=1.0)
    ax.set(ylim=(max(rows, 1) - 0.5, -0.5), xlim=(0, 1 if 0.2 < top <= 1 else top * 1.05 or 1))
    ax.set_yticks(range(rows), [_short(r, 40) for r in frame.index])
    ax.grid(axis="x")
    ax.spines[["left", "bottom"]].set_visible(False)
    if columns > 1:
        ax.legend(
            loc="lower left",
            bbox_to_anchor=(0, 1),
            ncols=columns,
            borderpad=0,
            borderaxespad=0.3,
            handlelength=0.8,
            handleheight=0.8,
            handletextpad=0.5,
            columnspacing=1.6,
        )
    _titles(ax, label, pad=36 if columns > 1 else 14)
    return ax


@_styled
def flow(steps: Sequence[tuple[str, str]], ax: Axes | None = None) -> Axes:
    """Boxes and arrows in reading order: where the data goes.

    Parameters
    ----------
    steps : sequence of (title, detail)
        Up to four stand in one row; more wrap to rows of three.
    ax : Axes, optional

    Examples
    --------
    >>> ax = flow([("Seed", "run every system"), ("Judge", "label the pool"), ("Score", "one row a query")])
    >>> [t.get_text() for t in ax.texts if t.get_fontweight() == "bold"]
    ['Seed', 'Judge', 'Score']
    """
    columns = len(steps) if len(steps) <= 4 else 3
    gap, fall = 34.0, 34.0
    wide = (WIDTH - 4 - gap * (columns - 1)) / max(columns, 1)
    details = [textwrap.fill(detail, max(int((wide - 26) / 7.0), 8)) for _, detail in steps]
    high = 52 + 17 * max((d.count("\n") + 1 for d in details), default=1)
    rows = math.ceil(len(steps) / max(columns, 1))
    if ax is None:
        height = rows * high + max(rows - 1, 0) * fall + 4
        ax = Figure(figsize=(WIDTH * _PX, height * _PX)).add_axes((0, 0, 1, 1))
    ax.set(xlim=(-2, WIDTH - 2), ylim=(rows * high + max(rows - 1, 0) * fall + 2, -2))
    ax.axis("off")
    spots = [((i % columns) * (wide + gap), (i // columns) * (high + fall)) for i in range(len(steps))]
    for (x, y), (title, _), detail in zip(spots, steps, details, strict=True):
        ax.add_patch(
            FancyBboxPatch(
                (x, y),
                wide,
                high,
                "round,pad=0,rounding_size=7",
                facecolor=colour("soft"),
                edgecolor=colour("line"),
                linewidth=1,
            )
        )
        ax.text(x + 14, y + 28, title, fontweight="bold", fontsize=14)
        for i, line in enumerate(detail.split("\n")):
            ax.text(x + 14, y + 50 + 16.5 * i, line, fontsize=12, color=colour("muted"))
    for here, there in pairwise(spots):
        _arrow(ax, list(_path(here, there, wide, high, gap, fall)))
    return ax


def _path(
    here: tuple[float, float], there: tuple[float, float], wide: float, high: float, gap: float, fall: float
) -> Iterator[tuple[float, float]]:
    """The corners of an arrow from box to box: straight in a row, around the bend to the next."""
    (x, y), (x2, y2) = here, there
    if y == y2:
        yield from ((x + wide + 5, y + high / 2), (x2 - 5, y + high / 2))
    else:
        turn = y + high + fall / 2
        yield from ((x + wide / 2, y + high + 4), (x + wide / 2, turn), (x2 + wide / 2, turn), (x2 + wide / 2, y2 - 5))


def _arrow(ax: Axes, corners: list[tuple[float, float]]) -> None:
    ax.plot(*zip(*corners[:-1], strict=True), color=colour("slate"), linewidth=1.4)
    ax.annotate(
        "",
        corners[-1],
        corners[-2],
        arrowprops={
            "arrowstyle": "-|>,head_width=0.28,head_length=0.5",
            "color": colour("slate"),
            "linewidth": 1.4,
            "shrinkA": 0,
            "shrinkB": 0,
        },
    )


def _beside(ax: Axes, text: str, point: tuple[float, float], offset: tuple[float, float], **how: Any) -> None:
    """Text at an offset (px) from a point of the data."""
    ax.annotate(text, point, offset, **{"textcoords": "offset points", "va": "center", "fontsize": 12, **how})


def _series_colour(i: int) -> str:
    return colour(SERIES[i] if i < len(SERIES) else "muted")


def _short(text: object, limit: int) -> str:
    """A label on one line, cut at ``limit`` characters."""
    line = " ".join(str(text).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def _titles(ax: Axes, title: str, below: str = "", pad: float = 14) -> None:
    """The title, and a muted line under it, at the left edge of the drawing (of the Axes, if it is one of several)."""
    if not title and not below:
        return
    whole: Any = ax.figure
    alone = len(whole.axes) == 1
    where = ("figure fraction", "axes fraction") if alone else "axes fraction"
    point = (2 * _PX / whole.get_figwidth() if alone else 0, 1)
    extra = 20 if below else 0
    ax.set_title(" \n " if title and below else " ", y=1.0, pad=pad)  # the room that the lines below take
    how: dict[str, Any] = {"xycoords": where, "textcoords": "offset points", "va": "bottom"}
    lines = [ax.annotate(below, point, (0, pad), color=colour("muted"), **how)] if below else []
    if title:
        lines.append(ax.annotate(title, point, (0, pad + extra), fontsize=15, fontweight="bold", **how))
    for line in lines:
        line.set_in_layout(False)
