"""A page: complete, offline, the same every time, and safe whatever a cell holds."""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import nbformat
import pandas as pd
import pytest
from bs4 import BeautifulSoup

from searcheval import plots, publish
from searcheval.errors import InputError

v4: Any = nbformat.v4  # not typed
HOSTILE = "<script>alert(1)</script>"
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
DRAWING = plots.figure(plots.bars(pd.DataFrame({"m": [0.5]}, index=["bm25"])), alt="bm25 has 0.5")
PANDAS = pd.DataFrame({"query": ["گوشی ارزان", HOSTILE], "score": [0.5, None]}, index=pd.Index(["q1", "q2"], name="id"))

PANDAS_HTML = f"<div><style scoped>.dataframe {{}}</style>{PANDAS.to_html()}</div>"  # what pandas shows in a notebook


def code(source: str, *outputs: Any, tags: tuple[str, ...] = (), number: int = 1) -> Any:
    return v4.new_code_cell(source, outputs=list(outputs), metadata={"tags": list(tags)}, execution_count=number)


def shows(metadata: dict[str, Any] | None = None, **data: str) -> Any:
    names = {k.replace("_", "/", 1).replace("svg", "svg+xml"): v for k, v in data.items()}
    return v4.new_output("display_data", data=names, metadata=metadata or {})


def stream(text: str, name: str = "stdout") -> Any:
    return v4.new_output("stream", text=text, name=name)


def error(name: str, *traceback: str) -> Any:
    return v4.new_output("error", ename=name, evalue="", traceback=list(traceback))


def everything() -> list[Any]:
    """A cell of every kind."""
    return [
        v4.new_markdown_cell("# The headline\n\nAn intro with $x_1 \\le 2$ in it."),
        v4.new_markdown_cell(
            "## Scores\n\n$$\\frac{a}{b}$$\n\n### Detail\n\n### Detail\n\nپرس‌وجوی فارسی در متن\n\n- گوشی ارزان"
        ),
        code('suite = "a"', tags=("parameters",)),
        code('suite = "b"', tags=("injected-parameters",)),
        code("secret_input = 1", stream("the output stays"), tags=("remove-input",)),
        code("secret_cell = 1", stream("gone"), tags=("hide",)),
        code("# A tiny picture\nshow()", shows(image_png=PNG)),
        code("show()", shows({"alt": "said in metadata"}, image_png=PNG)),
        code("show()", shows(image_png=PNG)),
        code("frame", shows(text_html=PANDAS_HTML, text_plain="plain")),
        code("table", shows(text_html=plots.table(PANDAS)._repr_html_())),
        code("figure", shows(text_html=DRAWING._repr_html_())),
        code(
            "math", shows(text_latex="$\\displaystyle \\kappa = 1$"), shows(text_markdown="**p** is $p < 0.05$ for $3.")
        ),
        code("print()", stream(f"10%\r99%\n{HOSTILE}"), stream("a warning", "stderr")),
        code("bad", error("ZeroDivisionError", "\x1b[31mZeroDivisionError\x1b[39m", "Traceback", "division by zero")),
        code("worse", error("InputError", "InputError: qrels.csv:7: found x; expected y")),
        code(
            "evil",
            shows(
                text_html=f'{HOSTILE}<img src="https://a.example/x.png" onerror="x()"><link href="//b.example/y.css">'
            ),
        ),
        code(
            "evil",
            shows(text_html='<iframe src="https://c.example"></iframe><style>@import "https://d.example"</style>'),
        ),
        code(
            "evil",
            shows(text_html='<p style="background:url(//e.example)">kept</p><a href="javascript:x()">kept too</a>'),
        ),
        code(
            "widget", v4.new_output("display_data", data={"application/javascript": "alert(2)", "text/plain": "a bar"})
        ),
    ]


def render(folder: Path, *cells: Any, **options: Any) -> str:
    book = v4.new_notebook(cells=list(cells), metadata={"papermill": {"output_path": "/secret/path"}})
    (folder / "in.ipynb").write_text(v4.writes(book), encoding="utf-8")
    publish.render(folder / "in.ipynb", folder / "out.html", **{"title": "A page", **options})
    return (folder / "out.html").read_text(encoding="utf-8")


def prose(folder: Path, text: str) -> BeautifulSoup:
    return BeautifulSoup(render(folder, v4.new_markdown_cell(text)), "html.parser")


@pytest.fixture(scope="module")
def html(tmp_path_factory: pytest.TempPathFactory) -> str:
    links = [("Index", "../index.html"), ("Here", "out.html")]
    return render(tmp_path_factory.mktemp("page"), *everything(), links=links, subtitle="About <it>", note="Mind & see")


@pytest.fixture(scope="module")
def page(html: str) -> BeautifulSoup:
    return BeautifulSoup(html, "html.parser")


# ------------------------------------------------------------------------------------------------------------ offline


def test_nothing_is_requested(page: BeautifulSoup, html: str) -> None:
    for tag in page.find_all(True):
        for name in ("src", "srcset", "poster", "data", "xlink:href", "action"):
            assert not re.match(r"\s*(\w+:)?//", str(tag.get(name, ""))), tag
        assert tag.name in ("a", "math", "svg") or "//" not in str(tag.get("href", "")), tag
        assert not [a for a in tag.attrs if a.startswith("on")], tag
    assert [link["href"] for link in page.find_all("link")] == ["data:,"]
    assert page.find("iframe") is None
    assert "@import" not in html
    assert "url(//" not in html
    assert "kept" in page.get_text()
    assert "kept too" in page.get_text()
    assert [a["href"] for a in page.find_all("a") if "example" in str(a.get("href"))] == ["https://a.example/x.png"]


def test_only_our_script_may_run(page: BeautifulSoup) -> None:
    (script,) = page.find_all("script")
    policy = page.find("meta", attrs={"http-equiv": "Content-Security-Policy"})
    assert policy is not None
    assert script.string is not None
    digest = base64.b64encode(hashlib.sha256(script.string.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in str(policy["content"])
    assert "default-src 'none'" in str(policy["content"])
    assert "alert(2)" not in str(page)
    assert "a bar" in page.get_text()


def test_hostile_text_stays_text(page: BeautifulSoup) -> None:
    assert sum(HOSTILE in t.get_text() for t in page.select("td, .output_stdout pre")) == 3


def test_two_renderings_are_the_same_bytes(tmp_path: Path, html: str) -> None:
    links = [("Index", "../index.html"), ("Here", "out.html")]
    assert render(tmp_path, *everything(), links=links, subtitle="About <it>", note="Mind & see") == html


def test_no_path_of_this_machine(tmp_path: Path) -> None:
    here, home = tmp_path.resolve(), Path.home()
    seen = render(
        tmp_path,
        code(f'suite = "{here}/data"', stream(f"{here}/a.csv and {home}/x/b.csv and {here}-other/c.csv")),
        code("warn", stream("/tmp/ipykernel_123/45678.py:2: UserWarning: odd\n", "stderr")),
    )
    assert f"{here}/" not in seen
    assert f"{home}/" not in seen
    assert "ipykernel_" not in seen
    assert "./a.csv" in seen
    assert "&lt;cell&gt;:2: UserWarning" in seen
    assert f"{here}-other/c.csv" in seen
    assert "/secret/path" not in seen


# ------------------------------------------------------------------------------------------------------------ the page


def test_head_bar_and_headline(page: BeautifulSoup) -> None:
    assert page.html is not None
    assert page.html["lang"] == "en"
    assert page.title is not None
    assert page.title.get_text() == "A page"
    assert page.find("meta", attrs={"name": "viewport"}) is not None
    assert [h1.get_text() for h1 in page.find_all("h1")] == ["The headline"]
    assert [(a.get_text(), a["href"], a.get("aria-current")) for a in page.select(".bar nav a")] == [
        ("Index", "../index.html", None),
        ("Here", "out.html", "page"),
    ]
    assert [p.get_text() for p in page.select(".subtitle, .note")] == ["About <it>", "Mind & see"]
    assert len(page.find_all("main")) == 1


def test_a_page_without_headline_takes_the_title(tmp_path: Path) -> None:
    page = prose(tmp_path, "Just text & more.")
    assert [h1.get_text() for h1 in page.find_all("h1")] == ["A page"]
    assert page.select_one(".toc") is None
    assert page.find(id="show-code") is None


def test_contents_resolve(page: BeautifulSoup) -> None:
    for contents in page.select("nav.toc, .toc nav"):
        names = [unquote(str(a["href"]))[1:] for a in contents.find_all("a")]
        assert names == ["scores", "detail", "detail-2"]
        for name in names:
            assert len(page.find_all(id=name)) == 1
    assert len(page.select("nav.toc, .toc nav")) == 2
    ids = [str(tag["id"]) for tag in page.find_all(id=True)]
    assert len(ids) == len(set(ids))


def test_code_is_folded_and_hidden_where_asked(page: BeautifulSoup) -> None:
    folds = page.select("details.code")
    assert folds
    assert not any(fold.has_attr("open") for fold in folds)
    assert [s.get_text() for s in page.select("details.code summary")][:3] == [
        "parameters",
        "parameters of this run",
        "code",
    ]
    assert all(pre.find_parent("details") for pre in page.select(".cell .highlight pre"))
    text = page.get_text()
    assert "secret_input" not in text
    assert "the output stays" in text
    assert "secret_cell" not in text
    assert "gone" not in text
    assert page.select_one("button#show-code[hidden]") is not None


def test_errors_are_visible(page: BeautifulSoup) -> None:
    traceback, line = page.select(".output_error")
    assert "division by zero" in traceback.get_text()
    assert "one-line" not in traceback["class"]
    assert line.get_text().strip() == "InputError: qrels.csv:7: found x; expected y"
    assert "one-line" in line["class"]
    assert not traceback.find_parent("details")
    assert not line.find_parent("details")


def test_streams_show_their_last_state(page: BeautifulSoup) -> None:
    assert any(p.get_text().startswith(f"99%\n{HOSTILE}") for p in page.select(".output_stdout pre"))
    assert [p.get_text() for p in page.select(".output_stderr pre")] == ["a warning"]


def test_images_have_alt_text(page: BeautifulSoup) -> None:
    assert [i["alt"] for i in page.find_all("img")] == ["A tiny picture", "said in metadata", "figure"]


def test_drawings_arrive_unchanged(html: str) -> None:
    assert DRAWING.svg in html
    assert 'viewBox="0 0' in DRAWING.svg


def test_tables_share_one_style_and_scroll_by_themselves(page: BeautifulSoup) -> None:
    tables = page.find_all("table")
    assert len(tables) == 2
    assert all(t.find_parent(class_="se-scroll") for t in tables)
    assert len(page.find_all("style")) == 1
    pandas = page.select_one("table.dataframe")
    assert pandas is not None
    assert pandas.attrs == {"class": ["dataframe"]}
    assert [th.get_text() for th in pandas.select("thead th")] == ["id", "query", "score"]
    assert [td.get_text() for td in pandas.select("td.num")] == ["0.5", "NaN"]
    assert pandas.select_one("td.num, th.num") is not None
    assert "num" in pandas.select("thead th")[2]["class"]


def test_right_to_left_text_says_so(page: BeautifulSoup) -> None:
    assert [(t.name, t.get_text()) for t in page.select('main [dir="rtl"]')] == [
        ("p", "پرس‌وجوی فارسی در متن"),
        ("li", "گوشی ارزان"),
        ("td", "گوشی ارزان"),
        ("td", "گوشی ارزان"),
    ]


def test_the_palette_is_the_one_of_the_drawings(html: str) -> None:
    for name, (light, dark) in plots.PALETTE.items():
        assert f"--{name}: {light}" in html
        assert f"--{name}: {dark}" in html


# ------------------------------------------------------------------------------------------------------------ formulas


def test_formulas_become_mathml(page: BeautifulSoup) -> None:
    shown = [(m["display"], m.get_text()) for m in page.find_all("math")]
    assert shown == [("inline", "x1≤2"), ("block", "ab"), ("block", "κ=1"), ("inline", "p<0.05")]
    assert "for $3." in page.get_text()


@pytest.mark.parametrize(
    "text",
    [
        "It costs $2 and then $3.",
        "From $2/$3 to $4k.",
        "US$ 5 or A$6, not 7$",
        "$5 bill and US$",
        "a range $10-$20 of prices",
        "$1,000 here, there $2,000",
    ],
)
def test_literal_dollars_stay(tmp_path: Path, text: str) -> None:
    page = prose(tmp_path, text)
    assert page.find("math") is None
    assert text in page.get_text()


def test_dollars_in_code_stay(tmp_path: Path) -> None:
    page = prose(tmp_path, "`$x$` and `$$y$$` and \\$z\\$\n\n```sh\necho $HOME $PATH\n```\n\n    $$indented$$\n")
    assert page.find("math") is None
    assert all(t in page.get_text() for t in ("$x$", "$$y$$", "$z$", "echo $HOME $PATH", "$$indented$$"))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("$2^g - 1$", "2g−1"),
        ("($x$), then $y$-axis.", "xy"),
        ("$0 \\le p$", "0≤p"),
        ("$a <\nb$", "a<b"),
        ("- item $z$", "z"),
        ("| a |\n|---|\n| $t$ |", "t"),
        ("## Head $h$", "h"),
        ("price \\$5 and $v$", "v"),
        ("**$w$**", "w"),
        ("$10\\%$", "10%"),
        ("\\begin{align*}a&=b\\end{align*}", "a=b"),
    ],
)
def test_formulas_are_found(tmp_path: Path, text: str, shown: str) -> None:
    body = prose(tmp_path, text).find("main")
    assert body is not None
    for contents in body.select(".toc"):
        contents.decompose()
    assert "".join(m.get_text() for m in body.find_all("math")) == shown


@pytest.mark.parametrize(
    ("latex", "why"),
    [
        (r"\wrong{a}", "unknown command"),
        (r"\frac{a", "unbalanced"),
        (r"\frac{a}", "missing"),
        (r"x^2^3", "DoubleSuperscripts"),
        (r"\begin{tikz}a\end{tikz}", "unknown environment tikz"),
        (r"a & b", "aligned"),
        (r"a \\ b", "aligned"),
        (r"\left( x", "MissingRight"),
    ],
)
def test_a_broken_formula_is_named(tmp_path: Path, latex: str, why: str) -> None:
    with pytest.raises(publish.FormulaError, match=why):
        publish.formula(latex)
    with pytest.raises(InputError) as caught:
        render(tmp_path, v4.new_markdown_cell(f"See ${latex}$."))
    assert latex in str(caught.value)
    assert "in.ipynb" in str(caught.value)
    assert [p.name for p in tmp_path.iterdir()] == ["in.ipynb"], "no half page is left"


def test_mathml_is_what_browsers_draw() -> None:
    assert "𝟙" in publish.formula(r"\mathbb{1}[x]")
    assert "ℝ" in publish.formula(r"\mathbb{R}")
    assert "<mo>±</mo>" in publish.formula(r"a \pm b").replace("&#177;", "±")
    assert publish.formula(r"\begin{aligned}a&=b\\c&=d\end{aligned}").count("<mtr>") == 2
    assert "<script" not in publish.formula(r"\text{<script>}")
    assert "javascript" not in publish.formula(r"\href{javascript:x()}{y}")


# ------------------------------------------------------------------------------------------------------------- files


def test_what_is_no_notebook_is_refused(tmp_path: Path) -> None:
    (tmp_path / "in.ipynb").write_text("no json")
    with pytest.raises(InputError, match="Jupyter notebook"):
        publish.render(tmp_path / "in.ipynb", tmp_path / "out.html", title="x")
    with pytest.raises(InputError, match="Jupyter notebook"):
        publish.render(tmp_path / "absent.ipynb", tmp_path / "out.html", title="x")


def test_a_failed_write_leaves_the_old_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = render(tmp_path, v4.new_markdown_cell("old"))

    def fails(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", fails)
    with pytest.raises(OSError, match="disk full"):
        render(tmp_path, v4.new_markdown_cell("new"))
    assert (tmp_path / "out.html").read_text() == old
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in.ipynb", "out.html"]
