"""`rheo-exact rates`, `compare` and `faults`, and how names of methods are found."""

import json
from importlib.metadata import EntryPoint

import pytest

from exact import methods
from exact.cli import options
from exact.cli.faults import FaultOutcome, run
from exact.cli.main import app
from exact.faults import cases
from exact.methods.load import load_method
from exact.methods.witnesses import witnesses
from rheo_core import InvalidInput, TreeMethod
from rheo_core import methods as core_methods
from rheo_core.verification import algorithm_1

pytestmark = pytest.mark.exact

SMALL = ["--width", "2", "--depth", "2", "--budget", "3"]


@pytest.fixture
def rows(tmp_path):
    path = tmp_path / "rows.json"
    path.write_text(
        json.dumps({"contexts": {"*": {"target": ["1/2", "1/5", "3/10"], "draft": ["1/2", "3/10", "1/5"]}}})
    )
    return str(path)


def rheo_exact(capsys, *arguments):
    code = options.run(app, [str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_faults_prints_the_kill_table(capsys):
    code, out, _ = rheo_exact(capsys, "faults")
    assert code == 0
    assert "SURVIVED" not in out
    faulty = sum(1 for case in cases.values() if not case.lossless)
    assert f"{faulty} of {faulty} faults refuted" in out
    assert f"{len(cases) - faulty} of {len(cases) - faulty} false alarms certified, 0 not as labelled" in out


def test_faults_by_key_as_a_document(capsys):
    code, out, _ = rheo_exact(capsys, "faults", "C1", "A5", "--json")
    first, second = json.loads(out)["results"]
    assert code == 0
    assert [first["law"][token]["exact"] for token in "012"] == ["1/5", "12/25", "8/25"]
    assert (first["verdict"], first["total_variation"]["exact"], first["label"]) == ("lossy", "2/25", "lossy")
    assert (second["verdict"], second["acceptance"]["exact"], second["loses"]["exact"]) == (
        "lossless",
        "43/100",
        "37/100",
    )
    code, _, err = rheo_exact(capsys, "faults", "Z9")
    assert code == 2
    assert err.startswith("error: case: got Z9")
    assert err.count("\n") == 1


def test_a_survivor_would_be_seen():
    """The planted fault of the table itself: a lossless method under a lossy label, and one under a wrong law."""
    good, bad = cases["C1c"], cases["C1"]
    assert run(type(bad)(**{**vars(bad), "method": good.method})).problems == [
        "SURVIVED",
        "another law",
        "another acceptance",
    ]
    assert run(type(good)(**{**vars(good), "method": bad.method})).problems[0] == "false alarm"
    assert isinstance(run(good), FaultOutcome)


def test_compare_on_a_file(capsys, rows):
    code, out, _ = rheo_exact(capsys, "compare", "--rows", rows, *SMALL)
    assert code == 0
    assert "Every method labelled lossless is lossless" in out
    for name in methods.methods:
        assert name in out


def test_compare_as_a_document(capsys, rows):
    code, out, _ = rheo_exact(capsys, "compare", "rheo", "rheo-rrsw", "chain", "--rows", rows, *SMALL, "--json")
    results = {entry["method"]: entry for entry in json.loads(out)["results"]}
    assert code == 0
    assert results["rheo m=1"]["one_layer"]["exact"] == "1"
    assert results["chain"]["optimum"]["exact"] == "9/10"
    assert results["chain"]["gap"]["exact"] == "0"
    assert "Leviathan" in results["chain"]["reference"]


def test_compare_with_the_best_rules_on_the_same_trees(capsys, rows):
    given = ["compare", "rheo", "rheo-rrsw", "chain", "--rows", rows, *SMALL, "--tree-optimum"]
    code, out, _ = rheo_exact(capsys, *given, "--json")
    rheo, rrsw, chain = json.loads(out)["results"]
    assert code == 0
    assert "tree_optimum" not in chain
    assert rheo["tree_optimum"] == rrsw["tree_optimum"]
    best, tau = rheo["tree_optimum"], float(rheo["acceptance_length"]["float"])
    assert tau <= best["layered"]["float"] <= best["whole"]["float"]
    shown = rheo_exact(capsys, *given)[1]
    assert f"{best['whole']['float']:.4f}" in shown
    assert "best by layer" in shown


def test_compare_reports_a_label_that_is_contradicted(capsys, rows, tmp_path):
    plugin = tmp_path / "mine.py"
    plugin.write_text(
        "from rheo_core import method\n"
        "@method(name='greedy', claim='lossless')\n"
        "def greedy(target, draft, prefix, shape, chooser):\n"
        "    row = list(target(prefix))\n"
        "    return [row.index(max(row))]\n"
    )
    code, out, _ = rheo_exact(capsys, "compare", f"{plugin}:greedy", "--rows", rows, *SMALL)
    assert code == 1
    assert "greedy is labelled lossless and is lossy" in " ".join(out.split())


def test_every_lossy_label_has_a_witness():
    lossy = {name for name, method in methods.methods.items() if method.claim == "lossy"}
    assert lossy == set(witnesses)


def test_rates_of_one_pool(capsys):
    code, out, _ = rheo_exact(
        capsys, "rates", "--target", "1/4,0,1/2,1/4", "--draft", "1/4,1/4,1/4,1/4", "--lead", 1, "--pool", 3, "--json"
    )
    (pool,) = json.loads(out)["pools"]
    assert code == 0
    assert {name: pool[name]["exact"] for name in ("rheo", "rrsw", "optimum", "gap_rheo")} == {
        "rheo": "29/30",
        "rrsw": "1",
        "optimum": "1",
        "gap_rheo": "1/30",
    }
    code, out, _ = rheo_exact(capsys, "rates", "--target", "0.5,0.5", "--draft", "1/4,3/4")
    assert code == 0
    assert len([line for line in out.splitlines() if line.strip()[:1].isdigit() or "given laws" in line]) >= 6


def test_rates_of_a_file_of_laws_sweep_m_alone(capsys, rows):
    code, out, _ = rheo_exact(capsys, "rates", "--rows", rows, *SMALL, "--json")
    document = json.loads(out)
    assert code == 0
    assert [sweep["lead"] for sweep in document["sweeps"]] == [0, 1, 2]
    assert {sweep["temperature"] for sweep in document["sweeps"]} == {1}
    assert document["choices"] == []


def test_rates_at_a_prefix(capsys, tmp_path):
    path = tmp_path / "rows.json"
    here, there = ({"target": ["1/2", "1/2"], "draft": draft} for draft in (["1/2", "1/2"], ["1/4", "3/4"]))
    path.write_text(json.dumps({"contexts": {"": here, "*": there}}))
    code, out, _ = rheo_exact(
        capsys, "rates", "--rows", path, "--prefix", 1, "--lead", 0, "--pool", 1, "--width", 1, "--depth", 1, "--json"
    )
    document = json.loads(out)
    assert code == 0
    assert document["pools"][0]["rheo"]["exact"] == "3/4"
    assert document["sweeps"][0]["acceptance_length"]["exact"] == "7/4"


def test_rates_of_real_rows_with_costs_and_a_plot(capsys, tmp_path):
    contexts = {
        key: {"target_logits": [2.0, 1.0, 0.5], "draft_logits": [1.5, 1.2, 0.1 * len(key)]}
        for key in ("", "0", "1", "2")
    }
    path, plot = tmp_path / "logits.json", tmp_path / "plot.svg"
    path.write_text(json.dumps({"contexts": contexts}))
    code, out, _ = rheo_exact(
        capsys, "rates", "rheo", "top-k", "--rows", path, "--width", 2, "--depth", 1, "--budget", 2,
        "--temperatures", "0,1/2", "--draft-cost", 1, "--verify-cost", 3, "--plot", plot,
    )  # fmt: skip
    assert code == 0
    assert "0.5" in out
    assert "Tokens a unit of time at draft step 1, verify step 3" in out
    assert "<svg" in plot.read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--target", "1/2,1/2"], "both laws, or neither"),
        (["--target", "1/2,x", "--draft", "1/2,1/2"], "joined by commas"),
        (["--target", "1/2,1/3", "--draft", "1/2,1/2"], "its sum is 5/6"),
        (["--draft-cost", "1"], "both --draft-cost and --verify-cost"),
        (["--draft-cost", "-1", "--verify-cost", "1"], "draft cost: got -1"),
        (["--lead", "4"], "lead: got 4"),
        (["--temperatures", "warm"], "joined by commas"),
        (["no-such-method"], "method: got no-such-method"),
        (["--prefix", "0,x"], 'token ids joined by ","'),
        (["--prefix", "0,1"], "a context of that key"),
    ],
)
def test_bad_input_is_one_line_and_2(capsys, arguments, message):
    code, _, err = rheo_exact(capsys, "rates", *arguments)
    assert code == 2
    assert message in err
    assert err.count("\n") == 1


def test_names_of_the_catalogue_are_found_everywhere(capsys, rows):
    assert load_method("block") is methods.methods["block"]
    code, out, _ = rheo_exact(capsys, "certify", "k-seq", "--rows", rows, *SMALL, "--json")
    assert code == 0
    assert json.loads(out)["results"][0]["method"] == "k-seq"


def test_methods_of_other_packages_are_found_by_entry_point(monkeypatch):
    mine = EntryPoint("mine", "rheo_core.verification:algorithm_1", methods.GROUP)
    whole = EntryPoint("whole", "exact.methods.chain:CHAIN", methods.GROUP)
    shadow = EntryPoint("rheo", "rheo_core.verification:rrsw", methods.GROUP)
    monkeypatch.setattr(methods, "entry_points", lambda group: [mine, whole, shadow])
    methods._installed.cache_clear()
    try:
        found = methods.methods["mine"]
        assert isinstance(found, TreeMethod)
        assert (found.verify, found.lead, found.claim) == (algorithm_1, 1, None)
        assert methods.methods["whole"].name == "chain"
        assert methods.methods["rheo"] is core_methods["rheo"]  # a built-in name cannot be taken over
        assert list(methods.methods).count("rheo") == 1
        assert {"mine", "whole"} <= set(methods.methods)
    finally:
        methods._installed.cache_clear()


def test_an_entry_point_that_is_no_method_is_refused(monkeypatch):
    monkeypatch.setattr(methods, "entry_points", lambda group: [EntryPoint("bad", "math:pi", methods.GROUP)])
    methods._installed.cache_clear()
    try:
        with pytest.raises(InvalidInput, match="entry point bad"):
            methods.methods["bad"]
    finally:
        methods._installed.cache_clear()


def test_every_method_is_listed_with_its_source_and_claim(capsys):
    code, out, _ = rheo_exact(capsys, "methods", "--json")
    listed = {each["method"]: each for each in json.loads(out)["methods"]}
    assert code == 0
    assert list(listed) == list(methods.methods)
    assert all(each["source"] and each["claims"] == methods.methods[name].claim for name, each in listed.items())
    assert listed["rheo"]["drafts"] == "dynamic tree, m = 1 (--lead)"
    shown = rheo_exact(capsys, "methods")[1]
    assert all(name in shown for name in listed)
