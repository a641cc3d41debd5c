"""An executed notebook becomes a page: one HTML file, one style, no request to anywhere.

nbconvert renders the cells (``templates/notebook``), formulas become MathML, and this module puts the page around them
(``templates/page.*``). The palette is the one of :mod:`searcheval.plots`, so drawings and page switch to dark together.

>>> formula(r"x^2").partition(">")[2]
'<mrow><msup><mi>x</mi><mn>2</mn></msup></mrow></math>'
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import sys
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from html import escape, unescape
from pathlib import Path
from typing import Any, ClassVar
from xml.etree import ElementTree

import jinja2
import latex2mathml.converter
import nbformat
from bs4 import BeautifulSoup, Tag
from nbconvert.exporters import HTMLExporter
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath, MathBlockParser, MathInlineParser
from nbformat import NotebookNode
from traitlets.config import Config

from searcheval.errors import InputError
from searcheval.io import write_text
from searcheval.plots import PALETTE, mostly_rtl, reads_rtl
from searcheval.report import Suite

_TEMPLATES = Path(__file__).with_name("templates")
#: What of an output is shown, best first. No widgets and no scripts: they would call out to the network.
_SHOWN = [
    "text/html",
    "text/markdown",
    "image/svg+xml",
    "image/png",
    "image/jpeg",
    "text/latex",
    "text/plain",
]
_NOTHING = {"NaN", "nan", "None", "NaT", "<NA>", "...", "–", ""}
_HIDDEN_CELL = {"hide", "hide-cell", "remove-cell"}
_HIDDEN_INPUT = {"remove-input", "hide-input"}
_HIDDEN_OUTPUT = {"remove-output", "hide-output"}


def render(
    notebook: Path,
    html: Path,
    *,
    title: str,
    links: Sequence[tuple[str, str]] = (),
    pages: Mapping[str, str] | None = None,
    subtitle: str = "",
    note: str = "",
) -> None:
    """Write the page of an executed notebook.

    Parameters
    ----------
    notebook : Path
        The executed ``.ipynb``. Cells tagged ``hide`` are left out; of those tagged ``remove-input`` or
        ``remove-output`` the other half stays. All code is folded.
    html : Path
        The page; replaced in one step, so that a reader never sees half of it.
    title : str
        Name of the page, in the bar on top. It is the headline too if the notebook has no ``# headline`` of its own.
    links : sequence of (label, href)
        The pages of this report, relative to ``html``.
    pages : mapping, optional
        Where the notebooks that prose links to are published: ``{"00_methodology.ipynb": "../methodology.html"}``.
    subtitle, note : str
        Plain text under the headline: what the page is, and what to keep in mind.

    Raises
    ------
    InputError
        For a file that is no notebook, and a formula that cannot be converted (it is named).

    Examples
    --------
    >>> import nbformat.v4 as v4, pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.ipynb").write_text(nbformat.writes(v4.new_notebook(cells=[v4.new_markdown_cell("# Hello")])))
    >>> render(folder / "a.ipynb", folder / "a.html", title="A page")
    >>> "<h1>Hello</h1>" in (folder / "a.html").read_text()
    True
    """
    notebook, html = Path(notebook), Path(html)
    book = _read(notebook)
    _without_machine_paths(book, (html.parent, notebook.parent, Path.cwd()))
    _describe_images(book)
    drawings = _lift_drawings(book)
    try:
        body, _ = _Exporter(config=_config()).from_notebook_node(book)  # type: ignore[no-untyped-call]
    except FormulaError as problem:
        raise InputError(notebook, None, f"the formula {problem}", "LaTeX that latex2mathml converts") from None
    soup = BeautifulSoup(body, "html.parser")
    _keep_offline(soup)
    for link in soup.find_all("a", href=True):
        link["href"] = (pages or {}).get(str(link["href"]), link["href"])
    heading = _headings(soup, title)
    _tables(soup)
    _directions(soup)
    _errors(soup)
    page = _page(soup, heading, title=title, links=links, subtitle=subtitle, note=note, here=html.name)
    write_text(html, re.sub(r'<svg data-drawing="(\d+)"></svg>', lambda m: drawings[int(m[1])], page))


def _read(notebook: Path) -> NotebookNode:
    try:
        return NotebookNode(nbformat.read(notebook, as_version=4))  # type: ignore[no-untyped-call]
    except (OSError, ValueError, AttributeError, KeyError, nbformat.ValidationError) as problem:
        raise InputError(notebook, None, str(problem) or type(problem).__name__, "a Jupyter notebook") from None


def _without_machine_paths(book: NotebookNode, roots: Sequence[Path]) -> None:
    """Shorten absolute paths of this machine in code and outputs: the page is public, and the same everywhere."""
    shorter = {os.path.abspath(root): "." for root in roots} | {sys.prefix: "<python>", str(Path.home()): "~"}
    known = sorted((root for root in shorter if len(Path(root).parts) > 1), key=len, reverse=True)
    # A root counts only where a path begins and a name ends: /home/a in /home/a/x, not in /home/alpha
    pattern = re.compile(r"(?<![\w.~/-])(" + "|".join(map(re.escape, known)) + r")(?![\w.-])")
    cell_file = re.compile(r"[^\s\"'(<>]*[/\\]ipykernel_\d+[/\\]\d+\.py")

    def short(text: str) -> str:
        return pattern.sub(lambda m: shorter[m[1]], cell_file.sub("<cell>", text))

    for cell in book.cells:
        cell.source = short(cell.source)
        for output in cell.get("outputs", ()):
            if output.output_type == "stream":
                output.text = short(_last_state(output.text))
            elif output.output_type == "error":
                output.traceback = [short(line) for line in output.traceback]
            else:
                output.data.update({k: short(v) for k, v in output.data.items() if k.startswith("text/")})


def _last_state(text: str) -> str:
    """What a terminal would show in the end: a line redrawn after a carriage return replaces the one before.

    >>> _last_state("10%\\r50%\\r99%\\ndone\\r\\n")
    '99%\\ndone\\n'
    """
    return "\n".join(line.rstrip("\r").rsplit("\r", 1)[-1] for line in text.split("\n"))


def _describe_images(book: NotebookNode) -> None:
    """Give every image of an output an alternative text: its metadata's, else the cell's first comment."""
    for cell in book.cells:
        comment = re.search(r"^\s*#+[ \t]*(\S.*)$", cell.source, re.MULTILINE) if cell.cell_type == "code" else None
        for output in cell.get("outputs", ()):
            metadata = output.get("metadata", {})
            alt = metadata.get("alt") or (comment[1].strip() if comment else "figure")
            for kind in (k for k in output.get("data", {}) if k.startswith("image/")):
                metadata.setdefault(kind, {}).setdefault("alt", alt)


def _lift_drawings(book: NotebookNode) -> list[str]:
    """Take the SVGs of plots.figure out of the outputs (HTML parsers lower their names), leaving numbered places."""
    drawings: list[str] = []

    def lift(match: re.Match[str]) -> str:
        drawings.append(match[0])
        return f'<svg data-drawing="{len(drawings) - 1}"></svg>'

    for cell in book.cells:
        for output in cell.get("outputs", ()):
            if "text/html" in output.get("data", {}):
                source = output.data["text/html"]
                output.data["text/html"] = re.sub(r'<svg class="se-drawing".*?</svg>', lift, source, flags=re.DOTALL)
    return drawings


# ------------------------------------------------------------------------------------------------------------ formulas


class FormulaError(ValueError):
    """A formula that cannot become MathML; the message is the formula and what is wrong."""


_ENVIRONMENTS = {f"{kind}matrix{star}" for kind in ("", "p", "b", "B", "v", "V", "small") for star in ("", "*")} | {
    "cases",
    "align",
    "align*",
    "array",
    "substack",
}
_SAME_AS = {
    "aligned": "align*",
    "split": "align*",
    "gathered": "align*",
    "equation": "",
    "equation*": "",
    "gather": "align*",
}
_CHILDREN = {"mfrac": 2, "msub": 2, "msup": 2, "munder": 2, "mover": 2, "mroot": 2, "msubsup": 3, "munderover": 3}


def formula(latex: str, *, display: bool = False) -> str:
    r"""A LaTeX formula as a ``<math>`` element.

    Parameters
    ----------
    latex : str
        The formula without its dollars.
    display : bool
        Whether it stands on a line of its own.

    Raises
    ------
    FormulaError
        For what latex2mathml does not know or would silently drop: an unknown command or environment, unbalanced
        braces, a missing argument, ``&`` or ``\\`` outside an environment.

    Examples
    --------
    >>> formula(r"\frac{a}{b}").count("<mfrac>")
    1
    >>> formula(r"\wrong{a}")  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    searcheval.publish.FormulaError: \wrong{a} (unknown command \wrong)
    """
    try:
        tree = latex2mathml.converter.convert_to_element(_known(latex), display="block" if display else "inline")
    except FormulaError:
        raise
    except Exception as problem:  # latex2mathml raises errors of its own and plain ones alike
        raise FormulaError(f"{latex.strip()} ({type(problem).__name__})") from None
    for node in tree.iter():
        _tidy(node, latex)
    return ElementTree.tostring(tree, encoding="unicode")


def _known(latex: str) -> str:
    """The formula with environments that latex2mathml knows; refused where braces or environments are wrong."""
    bare = re.sub(r"\\[\\{}]", "", latex)
    if bare.count("{") != bare.count("}"):
        raise FormulaError(f"{latex.strip()} (unbalanced braces)")

    def known(match: re.Match[str]) -> str:
        name = _SAME_AS.get(match[2], match[2])
        if name and name not in _ENVIRONMENTS:
            raise FormulaError(f"{latex.strip()} (unknown environment {name})")
        return f"\\{match[1]}{{{name}}}" if name else ""

    return re.sub(r"\\(begin|end)\{([^}]*)\}", known, latex)


def _tidy(node: ElementTree.Element, latex: str) -> None:
    """Check one node, and put right what MathML Core wants otherwise."""
    node.text = unescape(node.text or "")
    node.attrib.pop("href", None)
    if node.tag != "mtext" and re.match(r"\\[A-Za-z]+", node.text):
        raise FormulaError(f"{latex.strip()} (unknown command {node.text})")
    if node.text == "&" or node.get("linebreak"):
        raise FormulaError(rf"{latex.strip()} (& and \\ belong inside \begin{{aligned}} or the like)")
    if len(node) != _CHILDREN.get(node.tag, len(node)):
        raise FormulaError(f"{latex.strip()} (an argument is missing)")
    if node.tag == "mi" and len(node.text) == 1 and unicodedata.category(node.text) == "Sm":
        node.tag = "mo"  # latex2mathml makes \pm an identifier, without the space around it
    variant = {"double-struck": "DOUBLE-STRUCK", "bold": "BOLD", "bold-italic": "BOLD ITALIC"}.get(
        node.get("mathvariant", "")
    )
    if variant:  # browsers draw no mathvariant but "normal"
        node.text = "".join(_variant(c, variant) for c in node.text)
        del node.attrib["mathvariant"]


def _variant(letter: str, variant: str) -> str:
    """A letter or digit of a mathematical alphabet, or the letter itself where there is none.

    >>> _variant("R", "DOUBLE-STRUCK"), _variant("1", "BOLD"), _variant("+", "BOLD")
    ('ℝ', '𝟏', '+')
    """
    name = unicodedata.name(letter, "")
    plain = name.removeprefix("LATIN ").removeprefix("GREEK ").replace(" LETTER ", " ")
    for candidate in (f"MATHEMATICAL {variant} {plain}", f"{variant} {plain}"):
        try:
            return unicodedata.lookup(candidate)
        except KeyError:
            continue
    return letter


# A dollar opens a formula if no letter or digit stands before it and no blank after it; it closes one if no blank
# stands before it and no letter or digit after it. So "$2 and $3", "US$ 5" and "`$x`" stay as they are.
_INLINE = r"(?<![\w$\\])\$(?P<math_inline_tex>(?=[^\s$])(?:\\[\s\S]|[^$\\`\n]|\n(?!\s*\n))+?)(?<!\s)\$(?![\w$])"
_BLOCK = r"(?s:(?<![\w$\\`])\$\$(?P<math_block_tex>.+?)(?<!\\)\$\$(?!`))"
_SUM_OF_MONEY = re.compile(r"\d[\d.,]*(?:\s*[kKmM])?[,;.)]?\s+[A-Za-z(]{2,}")


class _Block(MathBlockParser):
    """Blocks of markdown; a formula is a block only where a line begins with it."""

    SPECIFICATION: ClassVar[dict[str, str]] = {
        **MathBlockParser.SPECIFICATION,
        "multiline_math": r"(?s:^ {0,3}\$\$.+?\$\$[ \t]*$"
        r"|^ {0,3}\\begin\{(?P<math_env_name>[a-z]*\*?)\}.*?\\end\{(?P=math_env_name)\})",
    }


class _Inline(MathInlineParser):
    """Runs of markdown; a literal dollar stays one."""

    SPECIFICATION: ClassVar[dict[str, str]] = {
        **MathInlineParser.SPECIFICATION,
        "inline_math_tex": _INLINE,
        "block_math_tex": _BLOCK,
    }

    def parse_inline_math_tex(self, m: re.Match[str], state: Any) -> int:
        """Take a formula, unless it reads like a sum of money."""
        return 0 if _SUM_OF_MONEY.match(m["math_inline_tex"]) else super().parse_inline_math_tex(m, state)


class _Renderer(IPythonRenderer):
    """Markdown to HTML, with formulas as MathML."""

    def block_math(self, body: str) -> str:
        """A formula on its own line."""
        return formula(body, display=True)

    def inline_math(self, body: str) -> str:
        """A formula in the text."""
        return formula(body)

    def latex_environment(self, name: str, body: str) -> str:
        r"""A formula written as ``\begin{align} ... \end{align}``."""
        return formula(f"\\begin{{{name}}}{body}\\end{{{name}}}", display=True)


def _latex_output(latex: str) -> str:
    """A ``text/latex`` output, with or without its dollars, as a formula on its own line."""
    body = latex.strip()
    for start, end in (("$$", "$$"), ("$", "$"), (r"\[", r"\]"), (r"\(", r"\)")):
        if len(body) > len(start + end) and body.startswith(start) and body.endswith(end):
            body = body[len(start) : -len(end)]
            break
    return formula(body.replace(r"\displaystyle", ""), display=True)


# ---------------------------------------------------------------------------------------------------------- nbconvert


class _Exporter(HTMLExporter):
    """nbconvert's exporter with our template, markdown and labels."""

    @jinja2.pass_context
    def markdown2html(self, context: jinja2.runtime.Context, source: str) -> str:
        """Markdown of a cell or an output to HTML."""
        renderer = _Renderer(
            escape=False, attachments=context.get("cell", {}).get("attachments", {}), exclude_anchor_links=True
        )
        return MarkdownWithMath(renderer, block=_Block(), inline=_Inline(hard_wrap=False)).render(source)

    def default_filters(self) -> Iterator[tuple[str, Any]]:
        """nbconvert's filters and ours."""
        yield from super().default_filters()  # type: ignore[no-untyped-call]
        yield from (("latex2html", _latex_output), ("code_label", _code_label))


def _code_label(cell: NotebookNode) -> str:
    """What the fold of a cell's code says."""
    tags = cell.metadata.get("tags", ())
    return (
        "parameters of this run" if "injected-parameters" in tags else "parameters" if "parameters" in tags else "code"
    )


def _config() -> Config:
    config = Config()
    config.HTMLExporter.template_name = "notebook"
    config.HTMLExporter.extra_template_basedirs = [str(_TEMPLATES)]
    config.HTMLExporter.exclude_input_prompt = config.HTMLExporter.exclude_output_prompt = True
    config.NbConvertBase.display_data_priority = _SHOWN
    config.TagRemovePreprocessor.enabled = True
    config.TagRemovePreprocessor.remove_cell_tags = _HIDDEN_CELL
    config.TagRemovePreprocessor.remove_input_tags = _HIDDEN_INPUT
    config.TagRemovePreprocessor.remove_all_outputs_tags = _HIDDEN_OUTPUT
    return config


# --------------------------------------------------------------------------------------------------- after nbconvert


def _keep_offline(soup: BeautifulSoup) -> None:
    """Drop whatever of an output would run or load something, and the styles that the page's own style replaces."""
    for tag in soup.find_all(["script", "link", "iframe", "object", "embed", "base", "meta", "form", "audio", "video"]):
        tag.decompose()
    for style in soup.find_all("style"):
        if style.has_attr("scoped") or "se" in _classes(style) or re.search(r"url\(|@import", style.get_text()):
            style.decompose()
    for tag in soup.find_all(True):
        for name in [n for n in tag.attrs if n.startswith("on") or n in ("srcset", "background", "ping")]:
            del tag[name]
        if re.search(r"url\(", str(tag.get("style", ""))):
            del tag["style"]
        if str(tag.get("href", "")).strip().lower().startswith(("javascript:", "vbscript:")):
            del tag["href"]
    for image in soup.find_all(["img", "source", "image"]):
        _keep_image_offline(soup, image)


def _keep_image_offline(soup: BeautifulSoup, image: Tag) -> None:
    """An image elsewhere becomes a link to it."""
    source = str(image.get("src") or image.get("href") or image.get("xlink:href") or "")
    if re.match(r"\s*([a-z][a-z0-9+.-]*:)?//", source, re.IGNORECASE):
        link = soup.new_tag("a", href=source)
        link.string = str(image.get("alt") or "image")
        image.replace_with(link)
    elif image.name == "img" and not image.get("alt"):
        image["alt"] = "figure"


def _classes(tag: Tag) -> list[str]:
    return list(tag.get_attribute_list("class"))


def _headings(soup: BeautifulSoup, title: str) -> str:
    """Give headings their ids; return the headline: the notebook's ``#`` heading where it begins with one."""
    headline = escape(title)
    for i, h1 in enumerate(soup.select(".prose h1")):
        if i == 0 and h1.find_previous(["h2", "h3"]) is None:
            headline = h1.decode_contents().strip()
            h1.decompose()
        else:
            h1.name = "h2"
    taken = {"content", "show-code"}
    for heading in soup.select(".prose :is(h2, h3, h4)"):
        text = heading.get_text()
        base = re.sub(r"[^\w]+", "-", text.lower()).strip("-") or "section"
        name = next(n for n in (base, *(f"{base}-{i}" for i in range(2, 10_000))) if n not in taken)
        taken.add(name)
        heading["id"] = name
        anchor = soup.new_tag("a", href=f"#{name}", attrs={"class": "anchor", "aria-label": "Link to this section"})
        anchor.string = "#"
        heading.append(anchor)
    return headline


def _contents(soup: BeautifulSoup) -> str:
    """The table of contents: h2, and h3 below them."""
    entries: list[tuple[str, str, list[tuple[str, str]]]] = []
    for heading in soup.select(".prose :is(h2, h3)"):
        label = "".join(str(c) for c in heading.contents if not (isinstance(c, Tag) and "anchor" in _classes(c)))
        label = re.sub(r"</?a\b[^>]*>", "", label).strip()
        if heading.name == "h3" and entries:
            entries[-1][2].append((str(heading["id"]), label))
        else:
            entries.append((str(heading["id"]), label, []))

    def item(name: str, label: str, below: Sequence[tuple[str, str]] = ()) -> str:
        inner = f"\n<ol>{''.join(item(*b) for b in below)}</ol>" if below else ""
        return f'<li><a href="#{escape(name)}">{label}</a>{inner}</li>\n'

    return f"<ol>\n{''.join(item(*e) for e in entries)}</ol>" if entries else ""


def _tables(soup: BeautifulSoup) -> None:
    """Every table scrolls in a box of its own; those that pandas drew get numbers to the right."""
    for table in soup.find_all("table"):
        if "dataframe" in _classes(table):
            _align(table)
        if table.find_parent(class_="se-scroll") is None:
            table.wrap(soup.new_tag("div", attrs={"class": "se-scroll", "tabindex": "0"}))


def _align(table: Tag) -> None:
    """The table of a plain frame in the page's style."""
    table.attrs = {"class": "dataframe"}
    for row in table.find_all("tr"):
        row.attrs = {}
    for cell in table.find_all("td"):
        if len(cell.get_text()) > 40:
            cell["class"] = "long"
    if table.select_one("[colspan], [rowspan]"):
        return
    heads = table.select("thead tr")
    if len(heads) == 2 and not "".join(th.get_text() for th in heads[1].find_all("th")[1:]).strip():
        heads[0].find_all("th")[0].string = (
            heads[1].find_all("th")[0].get_text()
        )  # the index's name, beside the columns'
        heads[1].decompose()
    rows = [row.find_all(["th", "td"]) for row in table.select("tr")]
    for column in zip(*rows, strict=False):
        texts = [cell.get_text().strip() for cell in column if cell.name == "td"]
        if any(map(_reads_as_number, texts)) and all(_reads_as_number(t) or t in _NOTHING for t in texts):
            for cell in column:
                cell["class"] = "num"


def _reads_as_number(text: str) -> bool:
    return bool(re.fullmatch(r"[-+−]?[\d.,]*\d(e[-+]?\d+)?%?|-?inf", text))


def _directions(soup: BeautifulSoup) -> None:
    """Say where a text reads from right to left."""
    for tag in soup.find_all(
        ["p", "li", "dd", "dt", "blockquote", "pre", "h2", "h3", "h4", "td", "th", "caption", "figcaption"]
    ):
        text = tag.get_text()
        if not tag.has_attr("dir") and (reads_rtl(text) if tag.name in ("td", "th") else mostly_rtl(text)):
            tag["dir"] = "rtl"


def _errors(soup: BeautifulSoup) -> None:
    """Mark the errors that are one line and no traceback, as InputError's: they wrap."""
    for error in soup.select(".output_error"):
        if "\n" not in error.get_text().strip():
            error["class"] = " ".join([*_classes(error), "one-line"])


# -------------------------------------------------------------------------------------------------------------- page


def _page(soup: BeautifulSoup, heading: str, **fields: Any) -> str:
    environment = jinja2.Environment(loader=jinja2.FileSystemLoader(_TEMPLATES), autoescape=False)
    script = _script()
    return environment.get_template("page.html.j2").render(
        heading=heading,
        body=str(soup).strip(),
        toc=_contents(soup),
        has_code=soup.select_one("details.code") is not None,
        style=style(),
        script=script,
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        **fields,
    )


@cache
def style() -> str:
    """The style sheet of the pages: the palette as custom properties, then the rules.

    Examples
    --------
    >>> "--ink: #1c2228" in style()
    True
    """
    light, dark = (" ".join(f"--{name}: {pair[i]};" for name, pair in PALETTE.items())[:-1] for i in (0, 1))
    rules = (_TEMPLATES / "page.css").read_text(encoding="utf-8")
    return (
        f":root {{ {light} }}\n@media screen and (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}\n{rules.strip()}"
    )


@cache
def _script() -> str:
    return (_TEMPLATES / "page.js").read_text(encoding="utf-8")


PAGES = {"01_seed": "Systems", "03_score": "Scores"}


def cards(suites: Sequence[Suite]) -> str:
    """An HTML list with a link to every page of every suite."""
    items = []
    for suite in suites:
        names = [(PAGES.get(page.removesuffix(".html"), page), page) for page in suite.pages]
        names += [("report.md", "report.md"), ("report.json", "report.json")]
        links = " · ".join(
            f'<a href="{escape(suite.folder)}/{escape(href)}">{escape(name)}</a>' for name, href in names
        )
        items.append(f"<li><strong>{escape(suite.caption)}</strong><br>{links}</li>")
    return f'<ul class="cards">{"".join(items)}</ul>'
