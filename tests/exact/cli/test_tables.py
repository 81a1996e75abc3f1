"""Tables on a narrow terminal and without one: no verdict and no figure is ever dropped or cut."""

import json

import pytest

from exact.cli import options
from exact.cli.main import app
from exact.cli.tables import blank_table, show

pytestmark = pytest.mark.exact

ROWS = {"contexts": {"*": {"target": ["1/2", "3/10", "1/5"], "draft": ["1/5", "1/2", "3/10"]}}}


@pytest.fixture(params=[20, 60, 80])
def narrow(request, monkeypatch):
    """A terminal of this many columns."""
    monkeypatch.setattr(options.out, "_width", request.param)
    return request.param


@pytest.fixture
def rows(tmp_path):
    """A rows file."""
    path = tmp_path / "r.json"
    path.write_text(json.dumps(ROWS), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("depth", [3, 8, 12, 20])
def test_a_verdict_is_whole_at_every_width_and_depth(rows, narrow, depth, capsys):
    shape = ("--width", "2", "--depth", str(depth), "--budget", "3")
    assert options.run(app, ["certify", "rheo", "--rows", rows, *shape]) == 0
    printed = capsys.readouterr().out
    assert "…" not in printed
    lines = printed.splitlines()
    [head] = [number for number, line in enumerate(lines) if line.startswith("rows")]
    assert lines[head].split() == ["rows", "method", "verdict", "every", "p", "classes", "TV", "tau", "accepted"]
    line = lines[head + 1]
    assert "rheo m=1 lossless" in line
    assert " proved " in line
    assert line.split()[6:8] == ["0", "1.9900"]
    below = printed[printed.index("1.9900") + 6 : printed.index("scope:")].split()
    assert below[:2] == ["0.90", "0.09"]
    assert len(below) == depth


@pytest.mark.parametrize(
    "arguments",
    [
        ("compare", "--width", "2", "--depth", "2", "--budget", "3"),
        ("rates",),
        ("faults",),
        ("table1",),
    ],
)
def test_no_table_is_cut(rows, arguments, monkeypatch, capsys):
    monkeypatch.setattr(options.out, "_width", 60)
    given = [*arguments, *(["--rows", rows] if arguments[0] in ("compare", "rates") else [])]
    options.run(app, given)
    printed = capsys.readouterr().out
    assert "…" not in printed
    words = {
        "compare": ["traversal", "lossless", "ot-optimum", "one layer", "optimum", "0.7600"],
        "rates": ["A*-Rheo", "A*-RRSw", "bound"],
        "faults": ["accepts", "refuted", "certified", "3/14", "5/7"],
        "table1": ["survivors", "A, Y=B", "q~(B) = 3/5"],
    }[arguments[0]]
    assert [word for word in words if word not in printed] == []


def test_columns_named_give_way_and_no_other(narrow, capsys):
    table = blank_table()
    for name in ("rigid words", "first", "second"):
        table.add_column(name)
    table.add_row("not to be broken", "some words " * 5, "other words " * 3)
    show(table, "first", "second")
    lines = capsys.readouterr().out.splitlines()
    assert any("not to be broken" in line for line in lines)
    assert sum(line.count("some") for line in lines) == 5
    assert sum(line.count("other") for line in lines) == 3
    assert max(len(line) for line in lines) <= max(narrow, 40)
