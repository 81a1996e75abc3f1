"""Files are written whole or not at all, and a command that cannot write one says so before it does anything else."""

import itertools
import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest
import typer

from exact.cli import options, rates, sizes
from exact.cli.main import app as exact_app
from exact.runtime import atomic_files
from gpu_runner.cli.main import app as gpu_app
from montecarlo.cli.main import app as montecarlo_app
from rheo_core import InvalidInput

APPS = {"rheo-exact": exact_app, "rheo-montecarlo": montecarlo_app, "gpu_runner": gpu_app}


def group_of(app):
    """The group of commands behind a program, all of them loaded."""
    group: Any = typer.main.get_command(app)
    group.load(*group.commands)
    return group


def targets():
    """(program, command, option) of everything that the programs write: every option that asks for a FILE."""
    for program, app in APPS.items():
        for name, command in group_of(app).commands.items():
            for each in command.params:
                if each.param_type_name == "option" and each.metavar == "FILE":
                    yield program, name, each.name


TARGETS = list(targets())


def required(command):
    """Something for every argument and option without which the command line is refused anyway."""
    needed = [each for each in command.params if each.required]
    return [text for each in needed for text in ([] if each.param_type_name == "argument" else [each.opts[0]]) + ["1"]]


def test_the_files_that_are_written_are_found():
    assert {("rheo-exact", "compare", "plot"), ("rheo-exact", "hunt", "pytest")} <= set(TARGETS)
    assert {("rheo-exact", "hunt", "resume"), ("rheo-exact", "rates", "save")} <= set(TARGETS)
    assert {("rheo-montecarlo", "power", "plot"), ("rheo-montecarlo", "audit", "save")} <= set(TARGETS)
    assert {("gpu_runner", "bench", "save")} <= set(TARGETS)
    assert len(TARGETS) >= 30


@pytest.mark.parametrize(("program", "command", "option"), TARGETS)
def test_a_file_that_cannot_be_written_is_refused_before_the_work(
    monkeypatch, capsys, tmp_path, program, command, option
):
    """The command itself is replaced by one that must not be reached."""
    group = group_of(APPS[program])
    group.commands[command].callback = lambda **_: pytest.fail("the command was run")
    monkeypatch.setattr(typer.main, "get_command", lambda app: group)
    ending = {"plot": ".png", "report": ".html"}.get(option, ".json")
    for path in (tmp_path / "missing" / f"file{ending}", tmp_path):
        assert options.run(APPS[program], [command, *required(group.commands[command]), f"--{option}", str(path)]) == 2
        error = capsys.readouterr().err
        assert error.startswith(f"error: {option}: got ")
        assert error.count("\n") == 1
    assert not list(tmp_path.iterdir())


PAIRS = [(*one[:2], one[2], two[2]) for one, two in itertools.combinations(TARGETS, 2) if one[:2] == two[:2]]
PAIRS = [pair for pair in PAIRS if {*pair[2:]} != {"plot", "report"}]  # their endings differ


@pytest.mark.parametrize(("program", "command", "one", "two"), PAIRS)
def test_a_file_is_written_by_one_option_alone(monkeypatch, capsys, tmp_path, program, command, one, two):
    """The command itself is replaced: it must not be reached with one file, and must be with two."""
    group = group_of(APPS[program])
    group.commands[command].callback = lambda **_: 77
    monkeypatch.setattr(typer.main, "get_command", lambda app: group)
    endings = {"plot": ".png", "report": ".html"}
    ending = endings.get(one) or endings.get(two, ".json")
    path, other = (tmp_path / f"{name}{ending}" for name in ("file", "other"))
    call = [command, *required(group.commands[command]), f"--{one}", str(path), f"--{two}"]
    (tmp_path / "link").symlink_to(tmp_path)
    for again in (path, tmp_path / "link" / path.name):
        assert options.run(APPS[program], [*call, str(again)]) == 2
        error = capsys.readouterr().err
        assert error.startswith((f"error: {one} and {two}: got ", f"error: {two} and {one}: got "))
        assert "a file of its own for each" in error
        assert error.count("\n") == 1
    assert options.run(APPS[program], [*call, str(other)]) == 77
    devices = [*call[:-3], f"--{one}", "/dev/null", f"--{two}", "/dev/null"]
    assert options.run(APPS[program], devices) == (2 if "plot" in (one, two) else 77)
    assert "of its own" not in capsys.readouterr().err


@pytest.mark.parametrize(
    "reading",
    [
        ["rates", "--rows", "FILE"],
        ["rates", "--rows=FILE"],
        ["certify", "FILE:rule"],
        ["compare", "--method", "FILE:rule"],
    ],
)
def test_what_a_call_reads_it_does_not_overwrite(capsys, tmp_path, reading):
    path = tmp_path / "file"
    path.write_text("kept")
    (tmp_path / "link").symlink_to(path)
    call = [word.replace("FILE", str(path)) for word in reading]
    for save in (path, tmp_path / "link"):
        assert options.run(exact_app, [*call, "--save", str(save)]) == 2
        assert "a file that this call does not name elsewhere" in capsys.readouterr().err
    assert path.read_text() == "kept"


@pytest.mark.parametrize("name", ["page.pdf", "page", ".html", "page.html.txt", "page.json"])
def test_a_page_needs_a_known_ending(capsys, tmp_path, name):
    assert options.run(exact_app, ["certify", "--report", str(tmp_path / name)]) == 2
    error = capsys.readouterr().err
    assert "report: got " in error
    assert "a file that ends in .html or .htm" in error
    assert error.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["figure.gif", "figure", ".png", "figure.png.txt"])
@pytest.mark.parametrize("command", ["rates", "compare", "classes", "table1"])
def test_a_figure_needs_a_known_ending(capsys, tmp_path, command, name):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed (extra `plot`)")
    assert options.run(exact_app, [command, "--plot", str(tmp_path / name)]) == 2
    error = capsys.readouterr().err
    assert "a file that ends in .png, .svg or .pdf" in error
    assert error.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_the_missing_extra_is_named_before_the_work(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert options.run(exact_app, ["rates", "--plot", str(tmp_path / "a.png")]) == 2
    assert "rheo-lossless[plot]" in capsys.readouterr().err


def test_what_was_there_stays_until_the_new_file_is_whole(monkeypatch, tmp_path):
    path = tmp_path / "file.json"
    path.write_text("before")
    atomic_files.check_writable(path)
    assert path.read_text() == "before"
    monkeypatch.setattr(Path, "replace", lambda self, target: (_ for _ in ()).throw(OSError(28, "disk full")))
    with pytest.raises(InvalidInput, match="disk full"):
        atomic_files.save_text(path, "after")
    assert path.read_text() == "before"
    assert [each.name for each in tmp_path.iterdir()] == ["file.json"]
    monkeypatch.undo()
    atomic_files.save_text(path, "after, with é")
    assert path.read_bytes() == "after, with é".encode()


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "folder").mkdir()
    real, link = tmp_path / "folder" / "real.json", tmp_path / "link.json"
    link.symlink_to(real)
    atomic_files.check_writable(link)
    atomic_files.save_text(link, "through")
    assert link.is_symlink()
    assert real.read_text() == "through"


def test_a_device_or_a_pipe_is_written_to_and_not_replaced(tmp_path):
    atomic_files.check_writable(Path(os.devnull))
    atomic_files.save_text(Path(os.devnull), "nothing")
    assert not Path(os.devnull).is_file()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    heard = []
    reader = threading.Thread(target=lambda: heard.append(pipe.read_bytes()))
    reader.start()
    atomic_files.check_writable(pipe)
    atomic_files.save_text(pipe, "through the pipe")
    reader.join(timeout=10)
    assert heard == [b"through the pipe"]


@pytest.mark.parametrize("name", ["x" * 300, "a\0b"])
def test_names_that_no_file_system_takes(tmp_path, name):
    with pytest.raises(InvalidInput, match="save: got"):
        atomic_files.check_writable(tmp_path / name)
    with pytest.raises(InvalidInput, match="save: got"):
        atomic_files.save_text(tmp_path / name, "text")


BROKEN = "def verify(p, tail, candidates, sampled, lead, chooser, at):\n    return nothing\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["hunt", "chain", "--lead", "1", "--seconds", "1"], "no lead with chain"),
        (["hunt", "rheo", "--workers", "-1", "--seconds", "1"], "workers: got -1"),
        (["hunt", "rheo", "--resume", "other.json", "--seconds", "1"], "resume: got other.json"),
        (["hunt", "rheo", "--denominator", "1", "--max-vocabulary", "1"], "vocabulary: got 1"),
        (["hunt", "broken.py:verify", "--seconds", "1"], "NameError"),
        (["certify", "rheo", "--workers", "-1"], "workers: got -1"),
        (["certify", "rheo", "--resume", "other.json"], "resume: got other.json"),
        (["rates", "--workers", "-1"], "workers: got -1"),
        (["rates", "--resume", "other.json"], "resume: got other.json"),
        (["rates", "--temperatures", "-1"], "temperature: got -1"),
        (["rates", "--plot", "a.png", "--target", "1", "--draft", "1"], "plot: got a.png"),
    ],
)
def test_bad_input_is_one_line_even_where_a_size_is_told(monkeypatch, capsys, tmp_path, arguments, said):
    monkeypatch.chdir(tmp_path)
    for module in (sizes, rates):
        monkeypatch.setattr(module, "ANNOUNCED", 0)
    (tmp_path / "other.json").write_text(json.dumps({"of": "another method"}) + "\n")
    (tmp_path / "broken.py").write_text(BROKEN)
    assert options.run(exact_app, arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert said in error
    assert error.count("\n") == 1


SMALL = ["--width", "2", "--depth", "1", "--budget", "2"]


def test_the_size_is_told_before_the_work(monkeypatch, capsys):
    assert options.run(exact_app, ["hunt", "rheo-raw", "--first", "--seconds", "5"]) == 1
    assert "cases, then cases by chance; at most 5 s" in capsys.readouterr().err
    arguments = ["rates", "--width", "2", "--depth", "2", "--budget", "2", "--temperatures", ""]
    assert options.run(exact_app, arguments) == 0
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(rates, "ANNOUNCED", 0)
    assert options.run(exact_app, [*arguments, "--draft-cost", "1", "--verify-cost", "2"]) == 0
    assert capsys.readouterr().err == "60 exact runs, some 0 s; Ctrl-C stops\n"  # 3 m, 5 files, 1 T and 3 shapes


def test_a_long_sweep_is_estimated_within_a_factor_of_ten(monkeypatch):
    """K = 3, D = 3, R = 8 over five temperatures takes some seconds on a current core."""
    told: list[float] = []

    def noted(seconds):
        told.append(seconds)
        return ""

    monkeypatch.setattr(rates, "ANNOUNCED", 0)
    monkeypatch.setattr(rates, "spelled", noted)
    monkeypatch.setattr(rates, "sweeps", lambda *arguments: [])
    monkeypatch.setattr(rates, "report_sweeps", lambda *arguments: None)
    assert options.run(exact_app, ["rates"]) == 0
    assert 1 < told[0] < 100


def test_compare_draws_what_it_prints(tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed (extra `plot`)")
    picture = tmp_path / "compare.svg"
    assert options.run(exact_app, ["compare", "rheo", "top-k", *SMALL, "--plot", str(picture)]) == 0
    assert picture.read_text().count("<!-- rheo m=1 -->") == 1
