"""`gpu_runner data`: fetching from a server of our own, and the faults that a check must name."""

import hashlib
import json
import threading
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from exact.cli import options
from gpu_runner.cli.main import app
from gpu_runner.reproduce import set_files
from gpu_runner.reproduce.question_sets import SETS, load_set


def question(number, *turns):
    return {"question_id": number, "category": "", "turns": list(turns)}


def write(folder, name, questions):
    path = folder / name / "question.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(each if isinstance(each, str) else json.dumps(each) for each in questions) + "\n")
    return path


def whole(turns=1):
    return [question(n, *(f"What is {n}? {turn}" for turn in range(turns))) for n in range(80)]


def run(capsys, *arguments):
    code = options.run(app, ["data", *map(str, arguments)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.fixture
def public(tmp_path, monkeypatch):
    """A server with two sets, whose checksums are the pinned ones here."""
    root = tmp_path / "public"
    for name in ("gsm8k", "mt_bench"):
        path = write(root, name, whole(SETS[name].turns))
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        monkeypatch.setitem(SETS, name, replace(SETS[name], sha256=digest))
    handler = partial(type("Quiet", (SimpleHTTPRequestHandler,), {"log_message": lambda *_: None}), directory=root)
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_where_the_sets_come_from(capsys):
    code, out, _ = run(capsys)
    assert code == 0
    for word in ("alpaca", "CC BY-NC 4.0", "mt_bench", "https://github.com/SafeAILab/EAGLE", "cb7e084", "--fetch"):
        assert word in out
    code, out, _ = run(capsys, "--json")
    assert json.loads(out)["sets"]["qa"]["licence"] == "CC BY-SA 3.0"


def test_fetched_sets_pass_the_check(public, tmp_path, capsys):
    place = tmp_path / "new" / "sets"
    asked = ("--fetch", place, "--sets", "gsm8k", "--sets", "mt_bench", "--from", public + "/")
    code, out, _ = run(capsys, *asked)
    assert (code, out.count("bytes")) == (0, 2)
    assert len(load_set(place, "mt_bench")) == 80
    code, out, _ = run(capsys, *asked)
    assert (code, out.count("already there")) == (0, 2)
    code, out, _ = run(capsys, "--check", place)
    assert code == 0
    assert out.count("the file at cb7e084") == 2
    assert "not in" in out


def test_what_is_not_the_pinned_file_is_not_kept(public, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(SETS, "gsm8k", replace(SETS["gsm8k"], sha256="0" * 64))
    place = tmp_path / "new"
    code, _, err = run(capsys, "--fetch", place, "--sets", "gsm8k", "--from", public)
    assert code == 2
    assert "gsm8k/question.jsonl: sha256: got" in err
    assert not (place / "gsm8k" / "question.jsonl").exists()
    mine = write(place, "gsm8k", whole())
    before = mine.read_bytes()
    code, _, err = run(capsys, "--fetch", place, "--sets", "gsm8k", "--from", public)
    assert code == 2
    assert mine.read_bytes() == before


@pytest.mark.parametrize(
    ("base", "words"),
    [
        ("PUBLIC/nowhere", "404"),
        ("http://127.0.0.1:9", "refused"),
        ("file:///etc", "expected an http or https address"),
        ("http://[", "expected"),
    ],
)
def test_a_network_that_fails_is_one_line(base, words, public, tmp_path, capsys):
    code, _, err = run(capsys, "--fetch", tmp_path / "new", "--from", base.replace("PUBLIC", public))
    assert code == 2
    assert len(err.splitlines()) == 1
    assert words in err
    assert not list((tmp_path / "new").glob("*/*"))


def test_too_much_is_refused(public, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(set_files, "LARGEST", 100)
    code, _, err = run(capsys, "--fetch", tmp_path, "--sets", "gsm8k", "--from", public)
    assert code == 2
    assert "a file of at most 100 bytes" in err


def test_a_check_names_every_problem(tmp_path, capsys):
    lines = whole(2)
    lines[4] = "{broken"
    lines[9] = question(9, "one turn")
    lines[19] = question(3, "an id", "of before")
    lines[29] = question(29, *lines[0]["turns"])
    write(tmp_path, "mt_bench", lines)
    write(tmp_path, "own", [question("a", "x", "y", "z")])
    code, out, _ = run(capsys, "--check", tmp_path)
    assert code == 2
    said = [
        "mt_bench/question.jsonl:5: got {broken, expected a JSON object",
        "mt_bench/question.jsonl:10: 1 turn, where MT-bench has 2",
        "mt_bench/question.jsonl:20: question_id 3 is that of line 4",
        "mt_bench/question.jsonl:30: the same turns as on line 1",
        "mt_bench/question.jsonl: 79 questions that can be read, where MT-bench has 80",
    ]
    for each in said:
        assert each in out
    assert "not the file at cb7e084" in out
    assert "a set of your own" in out
    code, out, _ = run(capsys, "--check", tmp_path, "--json")
    counts = {each["name"]: len(each["problems"]) for each in json.loads(out)["sets"]}
    assert (code, counts) == (2, {"mt_bench": len(said), "own": 0})


def test_a_line_nested_too_deeply_is_named_and_the_check_goes_on(tmp_path, capsys):
    nested = '{"question_id": 1, "turns": ' + "[" * 200_000 + "]" * 200_000 + "}"
    path = write(tmp_path, "own", [question(0, "a"), nested, question(2, "b"), question(2, "c")])
    code, out, err = run(capsys, "--check", tmp_path)
    assert (code, err) == (2, "")
    assert f"{path}:2: got " in out
    assert f"{path}:4: question_id 2 is that of line 3" in out


def test_options_that_do_not_go_together(tmp_path, capsys):
    for asked, words in [
        (("--check", tmp_path), "a folder with NAME/question.jsonl in it"),
        (("--check", tmp_path, "--fetch", tmp_path), "one at a time"),
        (("--sets", "qa"), "--fetch DIR with it"),
        (("--fetch", tmp_path, "--sets", "quiz"), "expected one of alpaca"),
    ]:
        code, _, err = run(capsys, *asked)
        assert code == 2
        assert words in err
