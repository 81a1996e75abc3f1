"""Every file in examples/ is certified by the command that stands at its head, and a broken one is not."""

import re
import shlex
from pathlib import Path

import pytest

from exact.cli import options
from exact.cli.main import app

pytestmark = pytest.mark.exact
ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_is_lossless_and_broken_it_is_not(path, tmp_path, monkeypatch):
    if "torch" in path.read_text(encoding="utf-8"):
        pytest.importorskip("torch", reason="torch is not installed (extra `torch`)")
    text = path.read_text(encoding="utf-8")
    (line,) = re.findall(r"^rheo-exact (.*)$", text, re.MULTILINE)
    monkeypatch.chdir(tmp_path)
    broken = re.sub(r"max\(0, (.*?)\) for", r"\1 * 0 + 1 for", text).replace("(p - q).clamp(min=0)", "p")
    assert broken != text
    for content, code in ((text, 0), (broken, 1)):
        (tmp_path / "examples").mkdir(exist_ok=True)
        (tmp_path / "examples" / path.name).write_text(content, encoding="utf-8")
        assert options.run(app, shlex.split(line)) == code
