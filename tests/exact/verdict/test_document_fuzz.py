"""Documents of a forger who signs anew: nothing false is accepted, nothing ends in a traceback, nothing runs long."""

import copy
import json
import random
import subprocess
import sys
import time
from fractions import Fraction as F
from itertools import product
from typing import Any

import numpy as np
import pytest

from exact import certify, check
from rheo_core import DraftRow, TreeMethod, TreeShape, proxies, verification
from tests.exact.verdict.test_document import CERTIFICATES, P3, Q3, own, own_cycle, own_verify, put, recheck, signed
from tests.pairs import alike, rational, rule

pytestmark = pytest.mark.exact
PLAIN_RUN, FULL_RUN = 1_500, 100_000
TWO = TreeShape(2, 1, 2)
A, B = alike(rational(1, 2)), alike(rational(2, 1))
FLOATS = alike(np.array([0.75, 0.25]))
SEEDS = {
    "rheo": lambda: certify("rheo", A, B, TWO),
    "rheo m=0 grown": lambda: certify(rule("rheo", lead=0, construction="grown"), A, B, TreeShape(2, 2, 2)),
    "top-k": lambda: certify("top-k", A, B, TWO),
    "rrsw": lambda: certify("rheo-rrsw", A, B, TWO),
    "raw": lambda: certify("rheo-raw", A, B, TWO),
    "losing target": CERTIFICATES["losing target"],
    "undecided": CERTIFICATES["undecided"],
    "own verify": lambda: certify(TreeMethod("own", None, 1, verify=own_verify), A, B, TWO),
    "floats": lambda: certify("rheo", FLOATS, FLOATS, TWO),
    "constant, two cycles": lambda: certify(TreeMethod("c", None, 0, proxies.Constant(F(1))), A, B, TWO, cycles=2),
}
ODD: list[object] = [None, True, False, 0, 1, -1, 2, 10**6, 10**9, 1.5, "", "0", "1", "1/2", "2/4", "-1/2"]
ODD += ["7/3", "1e1000000000", [], {}, ["1/2", "1/2"], "lossless", "lossy", "algorithm_1", "vanilla", "rrsw"]
ODD += ["z", "q(Y)", "float64", "a\nb", "\x1b[31m"]


def places(value, path=()):
    """Every place of a document."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in items:
        yield from places(below, (*path, key))


def at(document, path):
    for key in path:
        document = document[key]
    return document


def mutated(document, rng):
    """The document with one place replaced, moved, left out or doubled."""
    everywhere = [path for path in places(document) if path and path != ("sha256",)]
    kind = rng.choice((0, 0, 0, 0, 1, 1, 2, 3, 4, 5))
    if kind == 0:  # most of what is written in a document is numbers
        everywhere = [path for path in everywhere if str(at(document, path)).replace("/", "").isdigit()]
    where = rng.choice(everywhere)
    value = at(document, where)
    new: Any
    if kind == 0 and isinstance(value, str) and value[:1].isdigit() and "," not in value:
        new = str(F(value) + rng.choice([F(1, 7), F(-1, 3), F(1)])) if value.replace("/", "").isdigit() else value
    elif kind == 1 and isinstance(value, int | float):
        new = value + rng.choice([1, -1])
    elif kind == 2:
        other = rng.choice([path for path in places(document) if path])
        new = copy.deepcopy(at(document, other))
    elif kind == 3:
        changed = copy.deepcopy(document)
        del at(changed, where[:-1])[where[-1]]
        return changed
    elif kind == 4 and isinstance(value, dict):
        new = {**value, rng.choice(["", "0", "1", "name", "x"]): rng.choice(ODD)}
    else:
        new = rng.choice(ODD)
    return put(document, where, new)


def truth(document):
    """What `certify` says of the parts and rows of a document, whatever the document says."""
    inputs, method = document["inputs"], document["inputs"]["method"]
    rules = (proxies.RHEO, proxies.TAIL_MASS, proxies.NEXT_TOKEN, proxies.RAW, proxies.HALF_LEAST)
    names = {each.name: each for each in rules}
    given = method["proxy"]
    proxy = proxies.Constant(F(given["constant"])) if isinstance(given, dict) else names[given]

    def law(row):
        return [F(x) for x in row]

    def draft(prefix):
        row = inputs["rows"]["draft"].get(",".join(map(str, prefix)), first)
        return DraftRow.pair(law(row["score"]), law(row["sampling"])) if isinstance(row, dict) else law(row)

    def target(prefix):
        return law(inputs["rows"]["target"].get(",".join(map(str, prefix)), some))

    first, some = next(iter(inputs["rows"]["draft"].values())), next(iter(inputs["rows"]["target"].values()))
    made = TreeMethod("x", None, method["m"], proxy, "layered", getattr(verification, method["verify"]))
    shape = TreeShape(**inputs["shape"])
    rest = {"prefix": tuple(inputs["prefix"]), "ids": inputs["rows"]["ids"]}
    return certify(made, target, draft, shape, inputs["length"], **rest).document()["derived"]


RECOMPUTED = ("classes", "emitted", "lossless", "verdict", "total_variation", "acceptance_length")
FIGURES = ("acceptance_length", "total_variation")


def fuzz(count, seed):
    """How many of `count` forged documents were accepted, taken in part as recorded, refuted, refused."""
    rng, seeds = random.Random(seed), [json.loads(make().to_json()) for make in SEEDS.values()]
    known: dict[str, dict[str, Any]] = {}
    ends, wrong, slowest = dict.fromkeys(("held", "recorded", "Wrong", "refused"), 0), [], 0.0
    for number in range(count):
        forged = mutated(seeds[number % len(seeds)], rng)
        forged = signed(mutated(forged, rng) if rng.random() < 0.5 else forged)
        began = time.process_time()
        try:
            taken = recheck(forged)
        except check.Wrong:
            ends["Wrong"] += 1
        except Exception:
            ends["refused"] += 1
        else:
            ends["recorded" if taken else "held"] += 1
            original, derived = seeds[number % len(seeds)], forged["derived"]
            if not taken and forged != original:
                same = {**forged["inputs"], "method": {**forged["inputs"]["method"], "name": "", "identity": {}}}
                key = check.canonical(same)
                right = known[key] = known[key] if key in known else truth(forged)
                wrong += [(name, forged) for name in RECOMPUTED if right[name] != derived[name]]
                if derived["every_target"] and not right["every_target"]:
                    wrong.append(("every_target", forged))
            if taken and forged["inputs"] == original["inputs"] and forged["inputs"]["cycles"] == 1:
                same = derived["emitted"] == original["derived"]["emitted"]
                wrong += [(key, forged) for key in FIGURES if same and derived[key] != original["derived"][key]]
        slowest = max(slowest, time.process_time() - began)
    return ends, wrong, slowest


def test_no_forged_document_is_accepted_with_a_false_figure(capsys):
    ends, wrong, slowest = fuzz(PLAIN_RUN, 1)
    with capsys.disabled():
        print(f"\n{PLAIN_RUN} forged documents: {ends}; the slowest took {slowest:.2f} s")
    assert wrong == []
    assert slowest < 5
    assert min(ends["Wrong"], ends["refused"]) > PLAIN_RUN // 5


@pytest.mark.slow
def test_no_forged_document_of_a_hundred_thousand_is_accepted_with_a_false_figure(capsys):
    ends, wrong, slowest = fuzz(FULL_RUN, 2)
    with capsys.disabled():
        print(f"\n{FULL_RUN} forged documents: {ends}; the slowest took {slowest:.2f} s")
    assert wrong == []
    assert slowest < 5


def test_a_checker_that_recomputes_no_total_variation_is_seen(monkeypatch):
    """Planted fault: the total variation is taken from the document."""
    derive = check.Case.derive

    def careless(case, inputs, recorded):
        return {**derive(case, inputs, recorded), "total_variation": recorded["total_variation"]}

    monkeypatch.setattr(check.Case, "derive", careless)
    document = json.loads(SEEDS["raw"]().to_json())
    forged = signed(put(document, ("derived", "total_variation"), {"exact": "1/7", "float": 1 / 7}))
    assert recheck(forged) == []
    monkeypatch.undo()
    with pytest.raises(check.Wrong, match="total_variation"):
        recheck(forged)


HOSTILE = {
    "exponent": '{"schema": "1e1000000000", "x": 1e1000000000}',
    "long number": '{"x": ' + "9" * 100_000 + "}",
    "not a number": '{"x": NaN}',
    "deep": "[" * 100_000,
    "deep objects": '{"a":' * 50_000,
    "key twice": '{"schema": 1, "schema": 1}',
    "many lists": "[" + "[]," * 2_000_000 + "[]]",
    "much text": '{"results": "' + "é" * 5_000_000 + '"}',
    "no results": '{"command": "certify", "results": []}',
    "bytes": b"\xff\xfe\x00",
}


def lone(path):
    """The checker as a lone file: its exit code, its output, and the CPU seconds and bytes that it took.

    The bytes are the process's own peak (VmHWM): `ru_maxrss` keeps the peak of the process that started it.
    """
    code = (
        "import resource, runpy, sys\nsys.argv = ['check.py', sys.argv[1]]\n"
        f"try: runpy.run_path({check.__file__!r}, run_name='__main__')\n"
        "finally:\n    use = resource.getrusage(resource.RUSAGE_SELF)\n"
        "    peak = [line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')]\n"
        "    print(f'used {use.ru_utime + use.ru_stime} {peak[0]}')"
    )
    done = subprocess.run([sys.executable, "-I", "-c", code, str(path)], capture_output=True, text=True, check=False)
    *_, seconds, kilobytes = done.stdout.split()
    return done.returncode, done.stdout + done.stderr, float(seconds), int(kilobytes) * 1024


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_refused_in_bounded_time_and_memory(name, tmp_path):
    path = tmp_path / "file.json"
    text: Any = HOSTILE[name]
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    code, said, seconds, size = lone(path)
    assert (code, "Traceback" in said) == (2, False)
    assert seconds < 5
    assert size < 200 << 20


HUGE = {
    "length": {("inputs", "length"): 10**6},
    "depth and budget": {("inputs", "shape", "depth"): 10**6, ("inputs", "shape", "budget"): 10**6},
    "length beyond": {("inputs", "length"): 10**9},
    "budget": {("inputs", "shape", "budget"): -1},
    "lead": {("inputs", "method", "m"): True},
    "row": {("inputs", "rows", "draft", ""): ["5", "5"]},
    "verify": {("inputs", "method", "verify"): "mine"},
    "digits": {("inputs", "rows", "draft", ""): [f"1/1{'0' * 89_999}1", f"1{'0' * 90_000}/1{'0' * 89_999}1"]},
}


@pytest.mark.parametrize("name", HUGE)
def test_huge_and_wrong_inputs_are_refused_in_bounded_time(name, tmp_path):
    document = json.loads(SEEDS["rheo"]().to_json())
    changes: Any = HUGE[name]
    for path, new in changes.items():
        document = put(document, path, new)
    file = tmp_path / "file.json"
    file.write_text(json.dumps(signed(document)), encoding="utf-8")
    code, said, seconds, size = lone(file)
    assert code in ((0,) if name == "length" else (1, 2)), said  # no text that a cycle emits is longer
    assert "Traceback" not in said
    assert seconds < 5
    assert size < 200 << 20


def test_names_are_shown_without_control_characters(tmp_path, capsys):
    document = put(json.loads(SEEDS["rheo"]().to_json()), ("inputs", "method", "name"), "a\nholds: b\x1b[31m\u202e\x00")
    path = tmp_path / "file\x1b[31m.json"
    path.write_text(json.dumps(signed(document)), encoding="utf-8")
    assert check.main(str(path)) == 0
    shown = capsys.readouterr().out
    assert shown.count("\n") == 2
    assert all(each == "\n" or " " <= each <= "~" for each in shown)


@pytest.mark.parametrize("where", ["every_target_reason", "lemmas", "rows", "scope", "method"])
def test_what_stands_beside_a_certificate_is_recomputed_or_said_to_be_recorded(where, tmp_path, capsys):
    document = json.loads(SEEDS["rheo"]().to_json())
    new = {"lemmas": {"Lemma 4": False}}.get(where, "proved for every target and draft")
    path = tmp_path / "file.json"
    path.write_text(json.dumps({"command": "certify", "results": [{where: new, "certificate": document}]}))
    code, shown = check.main(str(path)), capsys.readouterr().out
    if where == "scope":
        assert code == 1
    else:
        assert code == 0
        first, second = shown.splitlines()
        assert "as recorded, not checked" in second
        assert str(next(iter(new)) if isinstance(new, dict) else new) not in first


def test_a_moved_name_is_a_label_and_the_parts_are_what_is_printed(tmp_path, capsys):
    document = put(json.loads(SEEDS["raw"]().to_json()), ("inputs", "method", "name"), "rheo")
    path = tmp_path / "file.json"
    path.write_text(json.dumps(signed(document)))
    assert check.main(str(path)) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert "q(Y)" in first
    assert "rheo" not in first
    assert '"name": "rheo"' in second


def test_parts_that_are_not_known_are_not_taken_for_algorithm_1():
    document = json.loads(certify(TreeMethod("own", None, 1, verify=own_verify), P3, Q3, TWO).to_json())
    forged = signed(put(document, ("inputs", "method", "verify"), "algorithm_1"))
    with pytest.raises(check.Wrong, match="identity"):
        recheck(forged)
    assert own(own_cycle)["inputs"]["method"]["identity"]["function"]["known"] is False


def edited(name, *changes):
    """A document of `SEEDS`, signed anew after each (path, value) was put in."""
    document = json.loads(SEEDS[name]().to_json())
    for path, new in changes:
        document = put(document, path, new)
    return signed(document)


def beside(figure, value):
    """A results file with one honest certificate and one figure beside it."""
    return {"command": "certify", "results": [{figure: value, "certificate": edited("raw")}]}


PARTS, DERIVED = ("inputs", "method"), ("derived",)
FORGED: dict[str, Any] = {  # what a forger writes, and the exit codes that do not take it for a result
    "wrong lossless": (lambda: edited("rheo", ((*DERIVED, "lossless"), False)), 1),
    "lossless as a number": (lambda: edited("rheo", ((*DERIVED, "lossless"), 1)), 1),
    "wrong every target": (lambda: edited("raw", ((*DERIVED, "every_target"), False)), 1),
    "proved for a user's rule": (lambda: edited("own verify", ((*DERIVED, "every_target"), True)), 1),
    "wrong class count": (lambda: edited("rheo", ((*DERIVED, "classes", "count"), 2)), 1),
    "not a number": (lambda: edited("rheo", ((*DERIVED, "total_variation", "float"), float("nan"))), 1),
    "minus zero": (lambda: edited("rheo", ((*DERIVED, "total_variation", "float"), -0.0)), 1),
    "own law with a negative token": (
        lambda: edited("own verify", ((*DERIVED, "emitted"), {"-1": "1/2", "0,0": "1/2"})),
        1,
    ),
    "own law with a token spelt twice": (
        lambda: edited("own verify", ((*DERIVED, "emitted"), {"1": "1/2", "01": "1/2"})),
        1,
    ),
    "a bound that excuses all": (lambda: edited("floats", (("inputs", "rounding_bound"), "1")), 1),
    "a most that excuses all": (lambda: edited("floats", (("inputs", "rounding_most"), "1")), 1),
    "parts that are another's": (lambda: edited("own verify", ((*PARTS, "verify"), "algorithm_1")), 1),
    "a constant with an exponent": (lambda: edited("raw", ((*PARTS, "proxy"), {"constant": "1e1000000000"})), 2),
    "a proxy with an exponent": (lambda: edited("raw", ((*PARTS, "proxy"), "1e1000000000")), 2),
    "a flag for a number": (lambda: edited("rheo", ((*PARTS, "m"), True)), 2),
    "a float for a count": (lambda: edited("rheo", (("inputs", "cycles"), 1.0)), 2),
    "a word for a flag": (lambda: edited("rheo", (("inputs", "second"), "no")), 1),
    "a row that is an object": (
        lambda: edited("rheo", (("inputs", "rows", "target", ""), {"1/3": 0, "2/3": 0})),
        1,
    ),
    "another schema": (lambda: edited("rheo", (("schema",), "rheo-certificate/9")), 2),
    "a question that is not asked": (lambda: edited("rheo", (("inputs", "proved"), True)), 2),
    "a false document around an honest one": (
        lambda: {**edited("rheo", ((*DERIVED, "lossless"), False)), "results": [{"certificate": edited("rheo")}]},
        2,
    ),
    "an honest one, then a false one": (
        lambda: {
            "command": "certify",
            "results": [
                {"certificate": edited("rheo")},
                {"certificate": edited("rheo", ((*DERIVED, "lossless"), False))},
            ],
        },
        1,
    ),
    "an honest one, then none": (lambda: {"command": "", "results": [{"certificate": edited("rheo")}, {}]}, 2),
    "scope": (lambda: beside("scope", "scope: every target at every q"), 1),
    "a verdict of null": (lambda: beside("verdict", None), 1),
    "a claim": (lambda: beside("claim", "lossless"), 1),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_forger_who_signs_anew_is_refused(name, tmp_path, capsys):
    make, code = FORGED[name]
    path = tmp_path / "file.json"
    path.write_text(json.dumps(make()))
    assert check.main(str(path)) == code, capsys.readouterr()


def test_without_the_bound_of_the_checker_a_float_run_is_excused(monkeypatch):
    """Planted fault: the rounding bound is the document's own."""
    forged = edited("floats", (("inputs", "rounding_most"), "1"))
    made = check.Case.__init__

    def careless(case, inputs, other_target=None):
        made(case, {**inputs, "rounding_most": json.loads(SEEDS["floats"]().to_json())["inputs"]["rounding_most"]})

    monkeypatch.setattr(check.Case, "__init__", careless)
    assert recheck(forged) == ["classes", "emitted"]


@pytest.mark.parametrize("every", [True, False])
def test_many_classes_and_long_lists_of_children_are_paid_for(every, tmp_path):
    """Trees of 200 nodes over six tokens, by Lemma 4 and on every draw: refused before 5 s and 200 MB."""
    contexts = [",".join(map(str, each)) for n in range(4) for each in product(range(6), repeat=n)]
    uniform = {context: ["1/6"] * 6 for context in contexts}
    document = edited(
        "raw" if every else "rheo",
        (("inputs", "rows"), {"target": uniform, "draft": uniform, "ids": None}),
        (("inputs", "shape"), {"width": 6, "depth": 3, "budget": 200}),
        (("inputs", "length"), 4),
    )
    path = tmp_path / "file.json"
    path.write_text(json.dumps(document))
    code, said, seconds, size = lone(path)
    assert (code, "work: more than" in said) == (2, True)
    assert seconds < 5
    assert size < 200 << 20
