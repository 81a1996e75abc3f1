"""How the page and the figure of many verdicts use their room: nothing cut on a desk, no endless strip."""

import itertools
import re
import shutil
import subprocess

import pytest

from exact import certify
from exact.acceptance import table1
from exact.cli import options
from exact.cli.main import app
from exact.report import Entry, draw_certificates
from rheo_core import TreeShape

pytestmark = pytest.mark.exact

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.mark.parametrize("count", [1, 2, 5, 17, 27])
def test_a_figure_of_many_verdicts_is_about_as_wide_as_high(count):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed (extra `plot`)")
    wrong = certify("rheo-raw", table1.target, table1.draft, TreeShape(2, 1, 2))
    figure = draw_certificates([Entry(f"rule {place}", "rows", wrong, trees=None) for place in range(count)])
    width, height = figure.get_size_inches()
    assert height <= 1.7 * width
    assert (width == 10) == (count <= 5)
    boxes = [axes.get_position() for axes in figure.axes]
    assert len(boxes) == 2 * count
    assert all(0 <= box.x0 < box.x1 <= 1 and 0 <= box.y0 < box.y1 <= 1 for box in boxes)
    assert not any(one.overlaps(two) for one, two in itertools.combinations(boxes, 2))
    assert {text.get_text().split(" on ")[0] for text in figure.texts} == {f"rule {place}" for place in range(count)}


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed: the page is not drawn by a browser here")
def test_the_table_of_verdicts_is_whole_on_a_desk(tmp_path):
    written = tmp_path / "page.html"
    line = ["certify", "--lead", "2", "--width", "2", "--depth", "1", "--budget", "2", "--report", str(written)]
    assert options.run(app, line) == 0
    page = written.read_text("utf-8")
    measure = "let e = document.querySelector('.scroll'); document.body.id = e.scrollWidth + '/' + e.clientWidth"
    (tmp_path / "measured.html").write_text(page.replace("</body>", f"<script>{measure}</script></body>"), "utf-8")
    browse = [str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    browse += ["--window-size=1300,900", "--dump-dom", (tmp_path / "measured.html").as_uri()]
    done = subprocess.run(browse, capture_output=True, text=True, timeout=120, check=True)
    found = re.search(r'<body id="(\d+)/(\d+)"', done.stdout)
    assert found is not None
    assert int(found[1]) <= int(found[2])
