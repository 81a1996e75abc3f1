"""The certificate document and the checker that shares no code with what made it."""

import copy
import hashlib
import json
import subprocess
import sys
import tempfile
from fractions import Fraction as F
from pathlib import Path

import pytest

from exact import certify, check
from exact.enumeration.rationals import converted_row, exact_row
from rheo_core import DraftRow, TreeMethod, TreeShape, method, proxies
from rheo_core.verification import algorithm_1
from tests.pairs import alike, rational, rule, varied

pytestmark = pytest.mark.exact
CHECKER = Path(check.__file__)


def own_verify(p, tail, candidates, sampled, lead, chooser, at):
    """A user's own rule."""
    return algorithm_1(p, tail, candidates, sampled, lead, chooser, at)


@method
def own_cycle(target, draft, prefix, shape, chooser):
    """A user's own method without a tree."""
    return [chooser.index(target(prefix))]


def logits(prefix):
    """A draft row whose score law and tail law differ."""
    return converted_row(DraftRow.logits([2.0, 1.0, 0.5, 0.25], temperature=0.5, support=3), exact_row_law)


def exact_row_law(row):
    """A float row over its exact sum."""
    numbers = exact_row(row)
    return numbers / sum(numbers.tolist())


P3, Q3 = varied(rational(1, 2, 3), rational(3, 1, 1)), varied(rational(5, 3, 2), rational(1, 2, 2), rational(1, 1, 0))
CERTIFICATES = {
    "rheo": lambda: certify("rheo", P3, Q3, TreeShape(3, 2, 4)),
    "rheo m=0": lambda: certify(rule("rheo", lead=0), P3, Q3, TreeShape(2, 3, 5)),
    "rheo grown": lambda: certify(rule("rheo", construction="grown"), P3, Q3, TreeShape(2, 3, 5)),
    "top-k": lambda: certify("top-k", P3, Q3, TreeShape(2, 2, 4)),
    "rheo-rrsw": lambda: certify("rheo-rrsw", P3, Q3, TreeShape(3, 2, 6)),
    "rheo-adhoc": lambda: certify("rheo-adhoc", alike(rational(5, 2, 3)), alike(rational(5, 3, 2)), TreeShape(3, 1, 2)),
    "rheo-raw": lambda: certify("rheo-raw", P3, Q3, TreeShape(3, 2, 4)),
    "losing target": lambda: certify("rheo-adhoc", alike([0, 0, 1]), alike(rational(5, 3, 2)), TreeShape(3, 1, 2)),
    "undecided": lambda: certify(rule("rheo-half", lead=0), alike([0, 1]), alike(rational(1, 2)), TreeShape(2, 2, 1)),
    "first verdict only": lambda: certify("rheo", P3, Q3, TreeShape(2, 2, 3), every_target=False),
    "two laws a row": lambda: certify("rheo", alike(rational(1, 2, 3, 4)), logits, TreeShape(3, 2, 4)),
    "id map": lambda: certify(
        "rheo", alike(rational(1, 2, 3, 4)), alike(rational(3, 1, 1)), TreeShape(2, 2, 3), ids=[3, 0, 1]
    ),
    "one-hot": lambda: certify("rheo", P3, alike([1, 0, 0]), TreeShape(2, 2, 3)),
}


def signed(document):
    """The document with a fresh digest, as a forger would sign it."""
    body = {**document, "sha256": ""}
    canonical = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return {**body, "sha256": hashlib.sha256(canonical.encode()).hexdigest()}


def recheck(document):
    """Check one document: its derived figures that were taken as recorded, in order."""
    check.PURSE[0] = check.WORK
    taken = check.held({"certificate": document})[1]
    return sorted(taken.keys() & document["derived"].keys())


@pytest.mark.parametrize("name", CERTIFICATES)
def test_every_figure_is_recomputed(name):
    assert recheck(json.loads(CERTIFICATES[name]().to_json())) == []


def altered(value):
    """Every way in which one derived figure is changed, with its path."""
    if isinstance(value, bool):
        return [((), not value), ((), None)]
    if value is None:
        return [((), True), ((), 1)]
    if isinstance(value, (int, float)):
        return [((), value + 1)]
    if isinstance(value, str):
        text = str(F(value) + F(1, 97)) if "/" in value or value.isdigit() else value[::-1]
        return [((), text)]
    items = value.items() if isinstance(value, dict) else enumerate(value)
    return [((key, *path), new) for key, below in items for path, new in altered(below)]


def put(document, path, new):
    """A copy of the document with one entry replaced."""
    changed = copy.deepcopy(document)
    place = changed
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = new
    return changed


@pytest.mark.parametrize("name", ["rheo", "rheo-adhoc", "losing target", "id map"])
def test_each_altered_figure_is_rejected_even_when_signed_anew(name):
    document = json.loads(CERTIFICATES[name]().to_json())
    changes = altered(document["derived"])
    assert len(changes) > 15
    for path, new in changes:
        forged = signed(put(document, ("derived", *path), new))
        with pytest.raises((check.Wrong, ValueError)):
            recheck(forged)
    dropped = {key: value for key, value in document["derived"].items() if key != "acceptance_length"}
    with pytest.raises((check.Wrong, ValueError)):
        recheck(signed({**document, "derived": dropped}))


def test_altered_inputs_are_rejected():
    document = json.loads(CERTIFICATES["rheo"]().to_json())
    with pytest.raises(check.Wrong, match="sha256"):
        recheck(put(document, ("inputs", "shape", "budget"), 3))
    for path, new in (
        (("shape", "budget"), 3),
        (("method", "m"), 0),
        (("method", "verify"), "vanilla"),
        (("method", "proxy"), {"constant": "0"}),
        (("rows", "target", ""), ["1/2", "1/4", "1/4"]),
        (("rows", "draft", ""), ["1/5", "3/10", "1/2"]),
    ):
        with pytest.raises((check.Wrong, ValueError)):  # a tree may now reach rows that were not recorded
            recheck(signed(put(document, ("inputs", *path), new)))
    with pytest.raises(check.Wrong, match="not a law"):
        recheck(signed(put(document, ("inputs", "rows", "target", ""), ["1/2", "1/4", "1/8"])))


def own(method_):
    """A certificate of a user's own rule."""
    return json.loads(certify(method_, P3, Q3, TreeShape(2, 2, 3)).to_json())


def test_a_users_own_rule_is_taken_as_recorded_and_said_so():
    second = ["every_target", "every_target_counterexample"]
    assert recheck(own(TreeMethod("own", None, 1, verify=own_verify))) == ["emitted", *second]
    assert recheck(own(own_cycle)) == ["classes", "emitted", *second]


def test_a_users_own_rule_on_floats_is_taken_as_recorded_with_its_verdict():
    """Its run on the rows as rationals stands in no document, so neither verdict can be recomputed."""
    import numpy as np

    law, other = np.array([0.7, 0.2, 0.1]), np.array([0.5, 0.3, 0.2])
    mine = TreeMethod("own", None, 1, verify=own_verify)
    document = json.loads(certify(mine, lambda prefix: law, lambda prefix: other, TreeShape(2, 2, 3)).to_json())
    assert document["derived"]["lossless"] is True
    assert {"emitted", "lossless", "verdict", "total_variation"} <= set(recheck(document))
    with pytest.raises(check.Wrong, match="rounding"):
        recheck(signed(put(document, ("inputs", "rounding_most"), "99/100")))


def test_proved_is_never_taken_as_recorded():
    with pytest.raises(check.Wrong, match="every_target"):
        recheck(signed(put(own(own_cycle), ("derived", "every_target"), True)))


def test_two_cycles_are_said_not_to_be_recomputed():
    document = json.loads(certify("rheo-adhoc", P3, Q3, TreeShape(3, 2, 2), cycles=2).to_json())
    second = ["every_target", "every_target_counterexample"]
    assert recheck(document) == ["counterexample", *second, "lossless", "total_variation", "verdict"]


def test_what_follows_from_a_recorded_law_is_still_recomputed():
    document = own(own_cycle)
    for path in (("total_variation", "exact"), ("acceptance_length", "exact")):
        with pytest.raises(check.Wrong):
            recheck(signed(put(document, ("derived", *path), "1/7")))


def test_a_float_run_is_taken_as_recorded_but_its_rational_rows_are_recomputed():
    import numpy as np

    law = np.array([0.7, 0.2, 0.1])
    document = json.loads(certify("rheo", lambda prefix: law, lambda prefix: law, TreeShape(2, 2, 3)).to_json())
    assert recheck(document) == ["classes", "emitted"]
    with pytest.raises(check.Wrong, match="lossless"):
        recheck(signed(put(document, ("derived", "lossless"), False)))


def run(*paths):
    """The checker as a lone file, without this package."""
    return subprocess.run(
        [sys.executable, "-I", str(CHECKER), *map(str, paths)],
        capture_output=True,
        text=True,
        check=False,
        cwd=tempfile.gettempdir(),
    )


def test_the_checker_runs_as_a_lone_file_with_its_exit_codes(tmp_path):
    document = json.loads(CERTIFICATES["rheo"]().to_json())
    cases = {
        "good.json": (json.dumps(document), 0, "tau"),
        "forged.json": (json.dumps(signed(put(document, ("derived", "lossless"), False))), 1, "REJECTED"),
        "text.json": ("not json", 2, "not a certificate"),
        "list.json": ("[]", 2, "not a certificate"),
        "empty.json": ("", 2, "not a certificate"),
        "own.json": (json.dumps(own(own_cycle)), 3, "a rule not known here, if it emits what is recorded"),
    }
    for name, (text, code, said) in cases.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        result = run(tmp_path / name)
        assert (result.returncode, said in result.stdout + result.stderr) == (code, True), (name, result)
    assert run(tmp_path / "missing.json").returncode == 2
    assert run().returncode == run("a", "b").returncode == 2


def test_a_figure_forged_beside_its_certificate_is_rejected(tmp_path):
    document = json.loads(CERTIFICATES["rheo-adhoc"]().to_json())
    path = tmp_path / "results.json"
    honest = {"rows": "Table 1", "verdict": "lossy", "lossless": False}
    forged: list[dict[str, object]] = [
        {"verdict": "lossless"},
        {"lossless": True},
        {"classes": 999},
        {"claim": "lossless"},
    ]
    for result, code in ((honest, 0), *(({**honest, **part}, 1) for part in forged)):
        path.write_text(
            json.dumps({"command": "certify", "results": [{**result, "certificate": document}]}), encoding="utf-8"
        )
        assert run(path).returncode == code


@pytest.mark.parametrize(("name", "value"), [("length", 0), ("length", -1), ("cycles", 0), ("cycles", -3)])
def test_no_tokens_and_no_cycles_certify_nothing(name, value):
    document = json.loads(CERTIFICATES["rheo-adhoc"]().to_json())
    with pytest.raises(ValueError, match="a whole number from 1"):
        recheck(signed(put(document, ("inputs", name), value)))


def test_the_checker_is_small_and_needs_only_the_standard_library():
    text = CHECKER.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 400
    assert max(map(len, text.splitlines())) <= 100
    imported = {line.split()[1].split(".")[0] for line in text.splitlines() if line.startswith(("import ", "from "))}
    assert imported <= set(sys.stdlib_module_names)


def test_the_document_names_everything_it_was_made_from():
    document = json.loads(CERTIFICATES["rheo"]().to_json())
    assert document["schema"] == check.SCHEMA
    assert set(document["versions"]) == {"rheo-lossless", "python", "numpy"}
    assert document["inputs"]["method"]["proxy"] == proxies.RHEO.name
    assert document["derived"]["classes"]["count"] > 1
