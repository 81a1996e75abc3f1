"""Question sets: what is read, and which line of a bad file is named."""

import json

import pytest

from gpu_runner.measure.prompts import QUESTIONS
from gpu_runner.reproduce.question_sets import SETS, SetQuestion, asked_for, load_set
from rheo_core import InvalidInput

FIRST = {"question_id": 81, "category": "writing", "turns": ["Write a poem.", "Shorter."], "reference": ["..."]}


def write(folder, *lines, name="mt_bench"):
    path = folder / name / "question.jsonl"
    path.parent.mkdir(exist_ok=True)
    parts = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
    path.write_bytes(b"\n".join(parts))
    return path


def test_the_papers_columns_in_their_order():
    assert list(SETS) == ["alpaca", "gsm8k", "humaneval", "mt_bench", "qa", "sum"]
    assert [info.columns[0] for info in SETS.values()] == ["Alpaca", "Math", "Code", "MT", "QA", "Sum"]
    assert [info.turns for info in SETS.values()] == [1, 1, 1, 2, 1, 1]


def test_questions_in_their_order(tmp_path):
    second = {"question_id": "b\u2028", "turns": ["Zwei\u2028Zeilen?\u0085"]}
    write(tmp_path, FIRST, json.dumps(second, ensure_ascii=False).encode() + b"\r", b"", {**FIRST, "question_id": 3})
    assert load_set(tmp_path, "mt_bench") == (
        SetQuestion(81, ("Write a poem.", "Shorter."), "writing"),
        SetQuestion("b\u2028", ("Zwei\u2028Zeilen?\u0085",), ""),
        SetQuestion(3, ("Write a poem.", "Shorter."), "writing"),
    )


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"{", r"jsonl:2: got \{, expected a JSON object"),
        (b"\xff" * 99, r"jsonl:2: got .*\.\.\., expected a JSON object in UTF-8"),
        (b"[]", r"jsonl:2: got \[\], expected a JSON object"),
        ({**FIRST, "question_id": True}, "jsonl:2: question_id: got True"),
        ({"turns": ["a"]}, "jsonl:2: question_id: got None"),
        ({**FIRST, "turns": []}, r"jsonl:2: turns: got \[\]"),
        ({**FIRST, "turns": "text"}, "jsonl:2: turns: got text"),
        ({"question_id": 1}, "jsonl:2: turns: got None"),
        ({**FIRST, "turns": ["a", " "]}, r"jsonl:2: turns\[1\]: got ' '"),
        ({**FIRST, "turns": [3]}, r"jsonl:2: turns\[0\]: got 3"),
        (b'{"question_id": 1, "turns": ["a \\ud83d"]}', r"jsonl:2: turns\[0\]: got 'a \\ud83d', expected Unicode text"),
        ({**FIRST, "category": 3}, "jsonl:2: category: got 3"),
        (FIRST, "jsonl:2: question_id: got 81, expected an id of its own"),
    ],
)
def test_the_bad_line_is_named(tmp_path, line, message):
    write(tmp_path, FIRST, line)
    with pytest.raises(InvalidInput, match=message):
        load_set(tmp_path, "mt_bench")


def test_an_empty_file_and_a_missing_set(tmp_path):
    write(tmp_path, b"")
    with pytest.raises(InvalidInput, match="no questions"):
        load_set(tmp_path, "mt_bench")
    with pytest.raises(InvalidInput, match=r"expected qa/question.jsonl in it \(it has mt_bench\)"):
        load_set(tmp_path, "qa")


def test_what_is_asked_takes_turns_between_sets_and_is_never_cut_in_silence(tmp_path):
    for name, texts in (("one", ["a", "b"]), ("two", ["c", "d", "e"])):
        (tmp_path / name).mkdir()
        lines = [json.dumps({"question_id": i, "turns": [text]}) for i, text in enumerate(texts)]
        (tmp_path / name / "question.jsonl").write_text("\n".join(lines))
    both = ["one", "two"]
    assert asked_for(None, tmp_path, both, 0) == [("a",), ("c",), ("b",), ("d",), ("e",)]
    assert asked_for(None, tmp_path, both, 1) == [("a",), ("c",)]
    assert asked_for(["x", "y"], None, None, 1) == [("x",)]
    assert asked_for(None, None, None, 0) == list(QUESTIONS)
    with pytest.raises(InvalidInput, match="questions: got 3, expected 1 to 2, or 0 for all"):
        asked_for(None, tmp_path, both, 3)
    with pytest.raises(InvalidInput, match="both or neither"):
        asked_for(None, tmp_path, None, 0)
    with pytest.raises(InvalidInput, match="one at a time"):
        asked_for(["x"], tmp_path, both, 0)
