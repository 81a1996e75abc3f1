"""What `certify --torch` takes: anything that can be called, with what it needs beside it in the file."""

import sys

import pytest

from exact.cli import agreement, options
from exact.cli.certify_torch import certify_file
from exact.cli.main import app

torch = pytest.importorskip("torch", reason="torch is not installed (extra `torch`)")
pytestmark = pytest.mark.exact

FILE = """
import functools
import torch
from rows import p, q

target = p

def right(p, q):
    x = torch.multinomial(q, 1)
    if torch.rand(1) < p[x] / q[x]:
        return x
    return torch.multinomial((p - q).clamp(min=0), 1)

def wrong(p, q):
    x = torch.multinomial(q, 1)
    if torch.rand(1) < p[x] / q[x]:
        return x
    return torch.multinomial(p, 1)

def at(p, *, q, rule=right):
    from rows import p as again  # a neighbour that is imported while the function runs
    return rule(again, q)

def lacking(p, quick, slow=None):
    return right(p, q)

no_grad = torch.no_grad()(right)
no_grad_wrong = torch.no_grad()(wrong)
inference = torch.inference_mode()(right)
part, part_wrong = functools.partial(right, q=q), functools.partial(wrong, p, q)

class Engine:
    def __init__(self, rule):
        self.rule = rule
    def __call__(self, p):
        return self.rule(p, q)
    def step(self):
        return self.rule(p, q)

engine, engine_wrong = Engine(right), Engine(wrong)
step, step_wrong = engine.step, engine_wrong.step
"""
ROWS = "import torch\np, q = torch.tensor([0.5, 0.3, 0.2]), torch.tensor([0.2, 0.3, 0.5])\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A package with an engine and a file with its neighbour; nothing of it stays loaded."""
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "__init__.py").write_text("", encoding="utf-8")
    (tmp_path / "pkg" / "mod.py").write_text(FILE.replace("from rows", "from pkg.rows"), encoding="utf-8")
    (tmp_path / "pkg" / "rows.py").write_text(ROWS, encoding="utf-8")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "own.py").write_text(FILE, encoding="utf-8")
    (tmp_path / "elsewhere" / "rows.py").write_text(ROWS, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    path, loaded = sys.path.copy(), set(sys.modules)
    yield tmp_path
    sys.path[:] = path
    for name in set(sys.modules) - loaded:
        if name.partition(".")[0] in ("pkg", "rows"):
            del sys.modules[name]


RIGHT = ("right", "at", "no_grad", "inference", "part", "engine", "step")
WRONG = ("wrong", "no_grad_wrong", "part_wrong", "engine_wrong", "step_wrong")


@pytest.mark.parametrize("where", ["elsewhere/own.py", "pkg.mod"])
def test_whatever_can_be_called_gets_its_verdict(where, folder):
    """Planted faults: each way of wrapping, about a wrong rule."""
    for name in (*RIGHT, *WRONG):
        certificate, _ = certify_file(f"{where}:{name}")
        assert certificate is not None, name
        assert certificate.lossless == (name in RIGHT), name


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("elsewhere/own.py:lacking", "without `quick`, expected a name `quick` in the file, or a default"),
        ("elsewhere/own.py:wrongg", "(did you mean wrong?), expected a name that the file defines"),
        ("elsewhere/own.py:p", "expected a function"),
        ("elsewhere/none.py:f", "expected an existing Python file"),
        ("pkg.none:f", "No module named 'pkg.none'"),
        ("pkg.mod.right", "expected path.py:function or package.module:function"),
        ("own.py:", "expected path.py:function or package.module:function"),
    ],
)
def test_what_is_missing_is_named_in_one_line(spec, said, folder, capsys):
    assert options.run(app, ["certify", "--torch", spec]) == options.BAD_INPUT
    err = capsys.readouterr().err
    assert said in err
    assert err.count("\n") == 1


def test_a_neighbour_hides_nothing_that_is_installed_once_the_file_is_loaded(folder):
    """While the file runs its folder comes first, as when Python runs it; then last."""
    certify_file("elsewhere/own.py:right")
    assert sys.path[-1].endswith("elsewhere")


@pytest.mark.parametrize(
    ("word", "code"),
    [("pkg.mod:step", True), ("--torch=pkg:f", True), ("a/own.py:f", True), ("rheo", False), ("rheo:1", False)],
)
def test_a_line_that_names_code_is_run_in_children(word, code):
    assert agreement.names_code(word) is code
