"""Rows files: what is read, at every temperature, support and arithmetic, and every way in which a file can be bad."""

import json
from fractions import Fraction as F

import numpy as np
import pytest

from exact import certify, target_law
from exact.methods.rows_file import ARITHMETICS, parse_rows, read_rows, shipped_rows
from rheo_core import DraftRow, InvalidInput, TreeShape, laws
from tests.pairs import rational, rule

pytestmark = pytest.mark.exact

LAWS = {
    "contexts": {
        "": {"target": ["1/2", "1/5", "3/10"], "draft": [0.5, 0.3, 0.2]},
        "0,2": {"target": [0, 1, 0], "draft": ["1/3", "0.5", "1/6"]},
        "*": {"target": [1, 0, 0], "draft_logits": [1, 0.5, 0]},
    }
}
LOGITS = {"contexts": {"*": {"target_logits": [2.0, 1.0, 0.5, -1.0], "draft_logits": [1.5, 1.0, 1.0, -3.0]}}}


def parsed(document, **options):
    return parse_rows(document if isinstance(document, str) else json.dumps(document), "rows", **options)


def plain(row):
    """The values of a row, a draft row's score law included."""
    return [F(*value.as_integer_ratio()) for value in (row.score if isinstance(row, DraftRow) else row)]


def test_laws_are_read_as_they_are_listed():
    rows = parsed(LAWS)
    assert plain(rows.target(())) == rational(5, 2, 3)
    assert plain(rows.draft((0, 2))) == rational(2, 3, 1)
    assert plain(rows.target((1,))) == plain(rows.target((2, 2, 2))) == [1, 0, 0]
    floats = [F(value) for value in (0.5, 0.3, 0.2)]
    assert plain(rows.draft(())) == [value / sum(floats) for value in floats]  # each over the exact sum


@pytest.mark.parametrize("arithmetic", ARITHMETICS)
def test_logits_are_softmaxed_in_the_arithmetic(arithmetic):
    rows = parsed(LOGITS, arithmetic=arithmetic)
    dtype = "float64" if arithmetic == "rational" else arithmetic
    expected = plain(laws.softmax(np.array([2.0, 1.0, 0.5, -1.0], dtype)))
    if arithmetic == "rational":
        expected = [value / sum(expected) for value in expected]
    assert plain(rows.target(())) == expected
    assert certify("rheo", rows.target, rows.draft, TreeShape(2, 2, 3)).arithmetic == arithmetic


@pytest.mark.parametrize("arithmetic", ARITHMETICS)
@pytest.mark.parametrize("temperature", [0, 0.5, 1, 2])
@pytest.mark.parametrize("support", [1, 2, 3, None])
def test_every_reading_is_lossless(arithmetic, temperature, support):
    rows = parsed(LOGITS, temperature=temperature, support=support, arithmetic=arithmetic)
    for lead in (0, 1, 2):
        found = certify(rule("rheo", lead=lead), rows.target, rows.draft, TreeShape(3, 2, 6), every_target=False)
        assert found.lossless
        assert arithmetic != "rational" or found.total_variation == 0
        assert found.arithmetic == arithmetic


def test_support_cuts_the_sampling_law_and_leaves_the_score():
    for document in (LOGITS, {"contexts": {"*": {"target": [1, 0, 0, 0], "draft": ["2/5", "3/10", "1/5", "1/10"]}}}):
        cut, full = parsed(document, support=2).draft(()), parsed(document).draft(())
        assert isinstance(cut, DraftRow)
        assert plain(cut) == plain(full)
        for m in (0, 1):
            tail = cut.tail(cut.order[:m])
            assert tail is not None
            assert np.flatnonzero(tail).tolist() == sorted(cut.order[m:2].tolist())
        assert cut.tail(cut.order[:2]) is None


def test_ids_map_a_smaller_draft_vocabulary():
    document = {"ids": [2, 0], "contexts": {"*": {"target": [0.25, 0.25, 0.5], "draft": [0.5, 0.5]}}}
    rows = parsed(document)
    assert rows.ids == (2, 0)
    found = certify(rule("rheo", lead=0), rows.target, rows.draft, TreeShape(1, 1, 1), ids=rows.ids)
    assert found.lossless
    assert found.acceptance_by_depth[1] == F(3, 4)


@pytest.mark.parametrize("arithmetic", ["rational", "float32"])
@pytest.mark.parametrize("name", ["top-k", "rheo", "rheo-rrsw"])
def test_the_shipped_rows_are_lossless(name, arithmetic):
    """Real next-token rows: SmolLM2-135M-Instruct and the same model without two of its layers."""
    shipped = shipped_rows(arithmetic=arithmetic)
    assert [rows.name for rows in shipped] == ["gsm8k-21", "gsm8k-3", "humaneval-5", "mt_bench-81", "qa-332"]
    shape = TreeShape(3, 3, 8) if arithmetic == "rational" else TreeShape(3, 2, 6)
    for rows in shipped:
        for lead in (0, 1, 2) if name == "rheo" else (1,):
            mine = rule(name) if name == "top-k" else rule(name, lead=lead)
            found = certify(mine, rows.target, rows.draft, shape, shape.depth, every_target=False)
            assert found.lossless, (rows.name, lead)
            if arithmetic == "rational":
                assert found.total_variation == 0
                assert found.acceptance_length > 1.5
    assert sum(target_law(shipped[0].target, 2).values()) == 1


def refused(message, document, **options):
    """One line that names the file, the entry and what was expected."""

    def read():
        rows = parsed(document, **options)
        return rows.target(()), rows.draft(())

    with pytest.raises(InvalidInput) as caught:
        read()
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def one(**context):
    return {"contexts": {"": {"target": [1, 0], "draft": [1, 0]} | context}}


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("", "rows file rows: got an empty file, expected JSON ("),
        ("  \n", "rows file rows: got an empty file, expected JSON ("),
        ("{not json", "rows file rows: got {not json, expected JSON ("),
        ('{"contexts": {', "rows file rows: got {\"contexts\": {, expected JSON ("),
        ("[" * 100_000, "rows file rows: got [[["),
        ("[" + "1" * 5000 + "]", "rows file rows: got [111"),
        ("[]", 'rows file rows: got list, expected an object with a non-empty object "contexts"'),
        ("3", 'rows file rows: got int, expected an object with a non-empty object "contexts"'),
        ({}, "rows file rows: got an object of [], expected an object with a non-empty"),
        ({"contexts": {}}, "rows file rows: got an object of ['contexts'], expected an object with a non-empty"),
        ({"contexts": []}, "rows file rows: got an object of ['contexts'], expected an object with a non-empty"),
        ({"contexts": {"": []}}, "rows: context '': got neither, expected exactly one of target and target_logits"),
        ({"contexts": {"": {"target": [1]}}}, "rows: context '': got neither, expected exactly one of draft and"),
        (one(target_logits=[1, 0]), "rows: context '': got ['target', 'target_logits'], expected exactly one of"),
        (one(target=[]), "rows: context '': target: got [], expected a non-empty list"),
        (one(target="1/2"), "rows: context '': target: got 1/2, expected a non-empty list"),
        (one(target=[None]), 'rows: context \'\': target[0]: got None, expected a number or an "a/b" string'),
        (one(target=[True]), 'rows: context \'\': target[0]: got True, expected a number or an "a/b" string'),
        (one(target=["1/0", 1]), "rows: context '': target: got 1/0, expected a number or an \"a/b\" string"),
        (one(target=["half", 1]), "rows: context '': target: got half, expected a number or an \"a/b\" string"),
        (one(target=[0.5, 0.4]), "rows: context '': target: got [0.5, 0.4], expected a law: its sum is 0.9, not 1"),
        (one(draft=["1/2", "1/3"]), "rows: context '': draft: got [Fraction(1, 2), Fraction(1, 3)], expected a law"),
        (one(target=[-1, 2]), "rows: context '': target[0]: got Fraction(-1, 1), expected a non-negative number"),
        ('{"contexts": {"": {"target": [NaN, 1], "draft": [1, 0]}}}', "rows: context '': target[0]: got nan, "),
        ('{"contexts": {"": {"target_logits": [NaN], "draft": [1]}}}', "rows: context '': target_logits: got [nan], "),
        ({"contexts": {"x": {}}}, 'rows: context: got x, expected token ids joined by ",", or "*"'),
        ({"contexts": {"-1": {}}}, 'rows: context: got -1, expected token ids joined by ",", or "*"'),
        ({"contexts": {"0,": {}}}, 'rows: context: got 0,, expected token ids joined by ",", or "*"'),
        ({"contexts": {"1_0": {}}}, 'rows: context: got 1_0, expected token ids joined by ",", or "*"'),
        ({"contexts": {" 1": {}}}, 'rows: context: got 1, expected token ids joined by ",", or "*"'),
        ({"contexts": {"0": one()["contexts"][""], "00": {}}}, "rows: context: got 00, expected token ids joined by"),
        ('{"contexts": {}, "contexts": {}}', "rows: key: got contexts, expected each key once"),
        (one() | {"ids": "01"}, "rows: ids: got 01, expected a list of target ids"),
        (one() | {"ids": [0, True]}, "rows: ids: got [0, True], expected a list of target ids"),
        ({"contexts": {"1": one()["contexts"][""]}}, "rows: prefix: got the empty one, expected a context of that"),
    ],
)  # fmt: skip
def test_what_is_no_rows_file(document, message):
    refused(message, document)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"support": 0}, "support: got 0, expected an int of at least 1"),
        ({"temperature": -1}, "temperature: got -1, expected a finite number of at least 0"),
        ({"temperature": 0.5}, "temperature: got 0.5, expected 1: rows: context '': target is a law, not logits"),
        ({"arithmetic": "float8"}, "arithmetic: got float8, expected one of rational, float64, float32, float16"),
    ],
)
def test_what_a_file_of_laws_cannot_be_read_at(options, message):
    refused(message, one(), **options)


def test_a_logit_beyond_the_arithmetic_is_refused_and_not_made_infinite():
    document = {"contexts": {"*": {"target_logits": [0, -70000], "draft_logits": [0, 0]}}}
    refused("rows: logit: got -70000, expected a number within the range of float16", document, arithmetic="float16")
    assert plain(parsed(document, arithmetic="float32").target(())) == [1, 0]
    masked = '{"contexts": {"*": {"target_logits": [0, -Infinity], "draft_logits": [0, 0]}}}'
    assert plain(parsed(masked, arithmetic="float16").target(())) == [1, 0]


def test_a_prefix_that_the_file_lacks_is_named():
    rows = parsed({"contexts": {"": {"target": [0.5, 0.5], "draft": [0.5, 0.5]}}})
    message = r'^rows: prefix: got \d, expected a context of that key, or one of key "\*"'
    with pytest.raises(InvalidInput, match=message):
        certify("rheo", rows.target, rows.draft, TreeShape(1, 2, 2))


def test_files_that_cannot_be_read(tmp_path):
    for path, reason in ((tmp_path / "none.json", "no such file or directory"), (tmp_path, "is a directory")):
        with pytest.raises(InvalidInput, match=rf"^rows file: got .*, expected a readable file \({reason}\)$"):
            read_rows(path)
    bad = tmp_path / "bad.json"
    bad.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidInput, match=r"^rows file: got .*, expected a readable file \(not utf-8 text\)$"):
        read_rows(bad)
    good = tmp_path / "good.json"
    good.write_bytes(b"\xef\xbb\xbf" + json.dumps(LAWS).encode())  # with a byte order mark
    assert read_rows(str(good)).name == "good"
