"""The page of `certify --report`: whole, closed in itself, safe whatever the names are, and drawn by a real browser."""

import json
import re
import shlex
import shutil
import subprocess
from fractions import Fraction as F
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
from markupsafe import Markup

from exact import certify
from exact.cli import options
from exact.cli.main import app
from exact.enumeration.tree_classes import classes
from exact.report import Entry, draw_certificates
from exact.report.html import PARTS, printable, rows_table, template
from exact.report.svg import shown_token, tree_picture
from rheo_core import InvalidInput, ModelPair, TreeShape, proxies
from rheo_core.pool import Drafter

pytestmark = pytest.mark.exact

VOID = {"meta", "rect", "path", "circle", "br", "line"}
NASTY = "<b>&\"rows'</b>"
ROWS = {
    "contexts": {
        "*": {"target": ["1/2", "1/5", "3/10"], "draft": ["1/2", "3/10", "1/5"]},
        "0": {"target": ["1/3", "1/3", "1/3"], "draft": ["1/7", "2/7", "4/7"]},
    },
    "vocabulary": [{"text": text} for text in ("</td><script>", " &amp;\n", "\u202e\x00")],
}
RULE = """
from rheo_core import method
from rheo_core.verification import algorithm_1

def verify(p, tail, candidates, sampled, lead, chooser, at):
    if candidates and chooser.accept(p[candidates[0]]):
        return candidates[0], 0
    return chooser.index(p), -1

@method(name="<i>plain</i>")
def plain(target, draft, prefix, shape, chooser):
    return [chooser.index(target(prefix))]
"""
FUNCTION = """
import random
target = {"<b>": 0.25, "&": 0.75}

def wrong():
    return "<b>" if random.random() < 0.5 else "&"

def right():
    return "<b>" if random.random() < 0.25 else "&"
"""
SHAPE = ["--rows", "rows.json", "--width", "2", "--depth", "2", "--budget", "4"]


class Page(HTMLParser):
    """Reads a page strictly: every element is closed, in order; keeps texts, classes, ids and addresses."""

    def __init__(self, page):
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, Any]]] = []
        self.texts: list[str] = []
        self.feed(page)
        self.close()
        assert self.open == [], "every element is closed"

    def handle_starttag(self, tag, attrs):
        assert len(dict(attrs)) == len(attrs), "no attribute twice"
        assert not (self.open and self.open[-1] == "p" and tag in ("details", "div", "table", "p", "dl")), (
            "no block in a p"
        )
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        assert tag in VOID
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)

    @property
    def text(self):
        return "".join(self.texts)

    def marked(self, name):
        return [given for _, given in self.elements if name in (given.get("class") or "").split()]


@pytest.mark.parametrize("broken", ["<p><b></p></b>", "<p><details></details></p>", "<div>", '<a x="1" x="2"></a>'])
def test_the_reader_of_pages_sees_what_is_broken(broken):
    with pytest.raises(AssertionError):
        Page(broken)


@pytest.mark.parametrize("open_", ['<img src="a.png">', '<a href="https://example.org">x</a>', '<p onclick="x">y</p>'])
def test_what_reaches_out_of_a_page_is_seen(open_):
    with pytest.raises(AssertionError):
        check_closed(Page(f"<style>:root</style>{open_}".replace('.png">', '.png"></img>')))


def check_closed(page):
    """A page that needs nothing from outside and runs nothing."""
    names = {name for name, _ in page.elements}
    assert not names & {"script", "link", "img", "iframe", "object", "embed", "base", "form"}
    ids = {given["id"] for _, given in page.elements if "id" in given}
    for name, given in page.elements:
        assert not any(key.startswith("on") or key in ("src", "srcset", "style") for key in given), (name, given)
        if "href" in given:
            assert given["href"].startswith("#")
            assert given["href"][1:] in ids
    style = page.texts[page.texts.index(next(each for each in page.texts if ":root" in each))]
    assert "url(" not in style
    assert "@import" not in style


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "rows.json").write_text(json.dumps(ROWS), encoding="utf-8")
    (tmp_path / f"{NASTY.replace('/', '')}.py").write_text(RULE, encoding="utf-8")
    (tmp_path / "fn <&>.py").write_text(FUNCTION, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def report(*arguments, code):
    assert options.run(app, ["certify", *arguments, "--report", "page.html"]) == code
    with open("page.html", encoding="utf-8") as file:
        return file.read()


def test_a_page_of_several_methods_holds_every_verdict_and_the_way_to_each_again(folder):
    own = f"{NASTY.replace('/', '')}.py"
    page = report("rheo", "rheo-raw", f"{own}:verify", f"{own}:plain", *SHAPE, code=1)
    read = Page(page)
    check_closed(read)
    assert len([1 for name, _ in read.elements if name == "article"]) == 4
    assert "Lossy: 2 of 4 certifications" in read.text
    for label in ("rheo m=1", "rheo-raw m=1", "verify m=1", "<i>plain</i>"):
        assert read.text.count(label) >= 2, "in the table and on its own section"
    assert "P(0, 0) comes out as 13/90 0.144444, should be 1/6 0.166667." in read.text
    assert "Total variation 1/45 0.0222222." in read.text
    assert "A cycle emits 29/12 2.41667 tokens on average" in read.text
    assert read.text.count("scope: these rows; first 3 tokens after prefix (), one cycle") == 3 + 2  # sections, banner
    assert read.text.count("; exact; float64 and float32 up to rounding") == 2, "the lossless rule of the user's own"
    assert "scope: every target at this q; first 3 tokens" in read.text
    assert "no draft trees that can be enumerated" in read.text
    line = [
        "rheo-exact",
        "certify",
        "rheo",
        "rheo-raw",
        f"{own}:verify",
        f"{own}:plain",
        *SHAPE,
        "--report",
        "page.html",
    ]
    assert shlex.join(line) in read.text
    assert re.search(r"time\d{4}-\d\d-\d\dT", read.text)
    assert "rheo-lossless" in read.text
    assert len([1 for name, given in read.elements if name == "svg" and given.get("class") == "tree"]) == 2 + 3 + 2
    assert "</td><script>" in read.text, "a token's text is text"
    assert "\\x00" in read.text
    assert "\u202e" not in page
    (folder / "test_found.py").write_text(_pre(page, "rheo-raw"), encoding="utf-8")
    names: dict[str, Any] = {}
    exec(compile((folder / "test_found.py").read_text(encoding="utf-8"), str(folder / "test_found.py"), "exec"), names)
    (test,) = [each for name, each in names.items() if name.startswith("test_")]
    with pytest.raises(AssertionError, match="got 13/90, right 1/6"):
        test()


def _pre(page, name):
    """The test that a page shows for a method."""
    found = [each for each in re.findall(r"<pre>(.*?)</pre>", page, re.DOTALL) if f"{name} is lossy" in each]
    return Page(f"<pre>{found[0]}</pre>").text


def test_sums_on_the_page_are_whole(folder):
    read = Page(report("rheo", *SHAPE, code=0))
    assert "Lossless" in read.text
    assert read.text.count("The 8 most probable of 27; the others hold 19/40 0.475, and should hold 19/40 0.475.") == 1
    assert read.marked("bad") == []
    assert "the optimum" in read.text
    assert "Lemma 7.3" in read.text


def test_rounding_is_not_marked_as_wrong(folder):
    read = Page(report("rheo", "rheo-raw", *SHAPE, "--arithmetic", "float16", code=1))
    assert "lossless up to rounding" in read.text
    assert "rounding bound" in read.text
    lossless = Page(report("rheo", *SHAPE, "--arithmetic", "float16", code=0))
    assert lossless.marked("off") == []
    assert read.marked("off")


@pytest.mark.parametrize(("name", "code"), [("wrong", 1), ("right", 0)])
def test_a_page_of_a_function(folder, name, code):
    page = report("--torch", f"fn <&>.py:{name}", code=code)
    read = Page(page)
    check_closed(read)
    assert f"fn <&>.py:{name}" in read.text
    assert "all 2 outcomes were walked" in read.text
    assert ("Lossy" in read.text, "Where it is wrong" in read.text) == (code == 1, code == 1)
    assert "scope: these inputs; ideal coins" in read.text
    if code:
        names: dict[str, Any] = {"__file__": str(folder / "test_found.py")}
        exec(_pre_of_function(page), names)
        with pytest.raises(AssertionError, match="lossy"):
            names["test_wrong_is_lossless"]()


def _pre_of_function(page):
    (found,) = re.findall(r"<pre>(.*?)</pre>", page, re.DOTALL)
    return Page(f"<pre>{found}</pre>").text


def test_a_function_without_a_target_shows_its_law_alone(folder):
    (folder / "alone.py").write_text(FUNCTION.replace("target =", "other ="), encoding="utf-8")
    read = Page(report("--torch", "alone.py:wrong", code=3))
    assert "no target" in read.text
    assert len(read.marked("banner")) == 1
    assert "unsure" in read.marked("banner")[0]["class"]
    named = Page(report("--torch", "alone.py:wrong", "--target", "other", code=1))
    assert "Lossy" in named.text


def test_the_labelled_list_has_a_page_of_all_its_verdicts(folder):
    page = report("--all", "--lead", "2", "--width", "2", "--depth", "1", "--budget", "2", code=0)
    read = Page(page)
    check_closed(read)
    assert "All 17 verdicts are as claimed" in read.text
    assert len(read.marked("mark")) == 2 * 2 * 17
    assert "␣" in read.text, "the tokens' own texts are on the trees"
    assert (read.text.count("lossy, as claimed"), read.text.count("lossless, as claimed")) == (4, 30)


@pytest.mark.parametrize("plain", [True, False])
def test_texts_of_tokens_are_text_on_the_page(folder, plain):
    texts = ["<script>alert(1)</script>", "&lt;b&gt;", '"><img src=x>']
    vocabulary = texts if plain else [{"text": each} for each in texts]
    (folder / "rows.json").write_text(json.dumps({**ROWS, "vocabulary": vocabulary}), encoding="utf-8")
    page = report("rheo-raw", *SHAPE, code=1)
    check_closed(Page(page))
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "&amp;lt;b" in page
    assert "<img" not in page


def test_bad_names_of_files_are_refused_before_the_work(folder, capsys):
    for arguments, said in (
        (["rheo", "--report", "."], "report: got ."),
        (["rheo", "--report", "no/such/page.html"], "report: got no/such/page.html"),
        (["rheo", "--seconds", "5"], "seconds: got 5"),
        (["rheo", "--target", "right"], "target: got right"),
        (["--torch", "fn <&>.py:right", "--limit", "-1"], "limit: got -1"),
        (["--torch", "fn <&>.py:right", "--seconds", "-1"], "seconds: got -1"),
        (["--torch", "fn <&>.py:right", "--target", "absent"], "target: got fn <&>.py:absent"),
    ):
        assert options.run(app, ["certify", *arguments]) == 2
        err = capsys.readouterr().err
        assert err.count("\n") == 1
        assert said in err, (arguments, err)


def macro(name, *arguments):
    """What a macro of the page makes of its arguments."""
    return str(getattr(template(PARTS).module, name)(*arguments)).strip()


def test_what_is_not_markup_is_text():
    assert macro("table", ["<>&"], [["\"'"]]).count("&lt;&gt;&amp;</th>") == 1
    assert "<td>&#34;&#39;</td>" in macro("table", ["x"], [["\"'"]])
    assert printable(Markup("<b>")) == "<b>"
    assert printable("a\x00\x1b\u202e\ud800b") == "a\\x00\\x1b\\u202e\\ud800b"
    assert "\x1b" not in macro("bar", F(1, 2), "plain", "\x1b[2J")


def test_no_figure_is_lost_by_being_long():
    long = F(1, 3**40)
    assert str(long) in macro("number", long)
    assert str(long) in macro("figure", long)
    assert macro("number", F(1, 2)) == '<span class="number">1/2 <small>0.5</small></span>'
    assert macro("number", 3) == '<span class="number">3</span>'


def test_rows_that_are_too_many_or_too_wide_are_said_to_be_so():
    row = (F(1, 2), F(1, 2))
    assert "2 further rows were read." in macro("rows_table", rows_table({(i,): row for i in range(42)}, None))
    assert "further" not in macro("rows_table", rows_table({(i,): row for i in range(40)}, None))
    assert "Rows of 100 tokens" in macro("rows_table", rows_table({(): (F(1, 100),) * 100}, None))
    paired = macro("rows_table", rows_table({(): (row, (F(1, 3), F(2, 3)))}, None))
    assert "score (empty)" in paired
    assert "2/3" in paired


def test_tokens_are_named_with_what_cannot_be_seen():
    assert shown_token(0, [" a\tb"]) == "0 ␣a\\tb"
    assert shown_token(3, ["only one"]) == "3"
    assert shown_token(0, ["x" * 40]) == "0 " + "x" * 17 + "…"


def test_boxes_of_a_tree_stay_inside_and_apart():
    row = [F(1, 2), F(1, 4), F(1, 4)]
    drafter = Drafter(ModelPair(lambda prefix: row, lambda prefix: row), 3, 1, proxies.RHEO)
    for each in classes(drafter, (), TreeShape(3, 3, 6)):
        picture = tree_picture(each.tree, ["漢字" * 5, " the", "x"])
        assert len(picture.boxes) == len(each.tree)
        assert [box.kind for box in picture.boxes] == [("lead", "sampled", "fill")[kind] for kind in each.tree.kind]
        drawn = Page(macro("tree", picture))
        shown = [given["class"] for name, given in drawn.elements if name == "rect"]
        assert shown == [box.kind for box in picture.boxes]
        spans = []
        for box in picture.boxes:
            assert 0 <= box.x < box.x + box.width <= picture.width
            assert 0 <= box.y < box.y + box.height <= picture.height
            spans.append((box.x, box.x + box.width, box.y, box.y + box.height))
        for place, (a, b, c, d) in enumerate(spans):
            assert all(b <= e or f <= a or d <= g or h <= c for e, f, g, h in spans[place + 1 :])


def test_the_figure_shows_the_law_where_it_is_first_wrong(folder):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed (extra `plot`)")
    line = ["certify", "rheo", "rheo-raw", *SHAPE, "--plot"]
    assert options.run(app, [*line, "figure.svg"]) == 1
    assert (folder / "figure.svg").read_bytes().startswith(b"<?xml")
    assert options.run(app, [*line, "figure.txt"]) == 2
    wrong = certify("rheo-raw", row_of("target"), row_of("draft"), TreeShape(2, 2, 4))
    entries = [Entry("rheo-raw m=1", "rows", wrong, trees=None), Entry("again", "rows", wrong, names=["a", "b", "c"])]
    figure = draw_certificates(entries)
    assert len(figure.axes) == 4
    law = figure.axes[1]
    assert law.get_ylabel() == "P(0, token)"
    bars: Any = law.patches
    assert [bar.get_height() for bar in bars] == [float(wrong.law(2)[0, v]) for v in range(3)]
    assert [text.get_text() for text in figure.axes[3].get_xticklabels()] == ["a", "b", "c"]


def row_of(side):
    rows: Any = ROWS["contexts"]
    return lambda prefix: [F(mass) for mass in rows["0" if prefix == (0,) else "*"][side]]


def test_shorter_laws_are_marginals_of_the_longest():
    certificate = certify("rheo-raw", row_of("target"), row_of("draft"), TreeShape(2, 2, 4))
    for law in (certificate.law, certificate.right):
        for length in (1, 2, 3):
            marginal: dict[tuple[int, ...], F] = {}
            for tokens, mass in law().items():
                marginal[tokens[:length]] = marginal.get(tokens[:length], F(0)) + mass
            assert law(length) == marginal
    assert certificate.law(1) == certificate.right(1)
    assert certificate.counterexample is not None
    assert certificate.law(2)[0, 0] == certificate.counterexample.got
    assert certificate.right(2)[0, 0] == certificate.counterexample.right
    for wrong in (0, 4, 1.5):
        with pytest.raises(InvalidInput, match="length"):
            certificate.law(wrong)  # type: ignore[arg-type]


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed: the page is not drawn by a browser here")
def test_a_real_browser_draws_the_page_on_a_desk_a_phone_and_paper(folder):
    image = pytest.importorskip("matplotlib.image", reason="matplotlib is not installed: nothing reads the screenshots")
    report("rheo", "rheo-raw", *SHAPE, code=1)
    address = (folder / "page.html").as_uri()
    common = [str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}"]

    def browse(*arguments):
        done = subprocess.run([*common, *arguments, address], capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    for width in (1200, 500):
        browse(f"--screenshot={folder / 'shot.png'}", f"--window-size={width},900", "--hide-scrollbars")
        shot = image.imread(folder / "shot.png")
        assert shot.shape[:2] == (900, width)
        assert len(np.unique(shot.reshape(-1, shot.shape[2]), axis=0)) > 50, "letters and colours, no empty page"
    browse(f"--print-to-pdf={folder / 'page.pdf'}")
    assert (folder / "page.pdf").read_bytes().startswith(b"%PDF")
    dumped = browse("--dump-dom")
    assert dumped.count("<article") == 2
    assert "Lossy: 1 of 2 certifications" in dumped
