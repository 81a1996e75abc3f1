"""What a rule or a function carries from one call to the next, or draws outside its chooser, is no exact verdict."""

import os
import random
from fractions import Fraction

import pytest

from exact import certify
from exact.cli import options
from exact.cli.main import app
from exact.enumeration.walk import MOST_REPLAYS, NotReproducible, ReplayLog, law, outcomes, recorded
from rheo_core import TreeMethod, TreeShape

pytestmark = pytest.mark.exact

RULES = """
import itertools
import random
import secrets
from random import random as bound

import numpy as np
import torch

rng = np.random.default_rng(3)
old = random.Random(3)
calls = itertools.count()


def rule(draw):
    def verify(p, tail, candidates, sampled, lead, chooser, at):
        x = chooser.index(p)
        if draw() < 0.05:
            x = 0
        return x, (candidates.index(x) if x in candidates else -1)

    return verify


def node(p, tail, candidates, sampled, lead, chooser, at):
    x = chooser.index(p)
    if rng.random() < 0.05:
        x = 0
    return x, (candidates.index(x) if x in candidates else -1)


@method
def cycle(target, draft, prefix, shape, chooser):
    x = chooser.index(target(prefix))
    return [0 if random.random() < 0.05 else x]


python = rule(lambda: random.random())
early = rule(bound)
numpy = rule(lambda: np.random.rand())
torches = rule(lambda: torch.rand(1).item())
fresh = rule(lambda: np.random.default_rng().random())
unseeded = rule(lambda: random.Random().random())
system = rule(lambda: secrets.randbelow(100) / 100)
hidden = rule(lambda: old.random())
late = rule(lambda: next(calls) < 200)
again = rule(lambda: random.Random(5).random())
steady = rule(lambda: 1)
""".replace("import torch\n", "import torch\n\nfrom rheo_core import method\n")

BEGIN = "import itertools\nimport torch\n\ntarget = [0.5, 0.5]\ncalls = itertools.count()\n\n\n"


def ask_torch(tmp_path, capsys, body):
    """The exit code and the error of `certify --torch` on a file."""
    path = tmp_path / "own.py"
    path.write_text(f"{BEGIN}def own():\n{body}", encoding="utf-8")
    code = options.run(app, ["certify", "--torch", f"{path}:own"])
    return code, capsys.readouterr()


@pytest.mark.parametrize(
    "body",
    [
        "    p = [0.5, 0.5] if next(calls) < 3 else [0.25, 0.75]\n"
        "    return torch.multinomial(torch.tensor(p), 1).item()\n",
        "    x = torch.multinomial(torch.tensor(target), 1).item()\n    return x if next(calls) < 2 else 0\n",
        "    x = torch.multinomial(torch.tensor(target), 1).item()\n"
        "    return x if next(calls) < 2 else torch.multinomial(torch.tensor(target), 1).item()\n",
        "    return torch.multinomial(torch.tensor(target), 1).item() if next(calls) < 2 else 1\n",
    ],
)
def test_a_function_that_changes_after_its_walk_is_refused(tmp_path, capsys, body):
    code, shown = ask_torch(tmp_path, capsys, body)
    assert code == 2
    assert "next(`calls`)" in shown.err, "the count is named before a replay could differ"
    assert shown.err.count("\n") == 1


def test_the_scope_says_that_it_was_replayed(tmp_path, capsys):
    code, shown = ask_torch(tmp_path, capsys, "    return torch.multinomial(torch.tensor(target), 1).item()\n")
    assert code == 0
    assert "no state between calls (replayed)" in shown.out
    many = "    return sum(torch.multinomial(torch.tensor(target), 9, replacement=True).tolist()) % 2\n"
    code, shown = ask_torch(tmp_path, capsys, many)
    assert code == 0
    assert "no state between calls (an even sample of the runs replayed)" in shown.out


def test_a_function_without_end_is_told_its_bound_and_not_a_limit_of_digits(tmp_path, capsys):
    body = (
        "    while True:\n"
        "        x = torch.multinomial(torch.tensor([0.3, 0.7]), 1).item()\n"
        "        if x == 99:\n            return x\n"
    )
    code, shown = ask_torch(tmp_path, capsys, body)
    assert code == 2
    assert "a run of more than 1000 random calls" in shown.err
    assert "digits" not in shown.err


def test_an_even_sample_of_many_runs_is_made_again():
    runs = 0

    def program(chooser):
        nonlocal runs
        runs += 1
        return tuple(chooser.index([1] * 10) for _ in range(4))

    log = ReplayLog()
    with recorded(log):
        assert sum(weight for _, weight in outcomes(program)) == 1
    assert runs == 10**4
    log.replay()
    assert MOST_REPLAYS / 2 <= runs - 10**4 <= MOST_REPLAYS


def test_nothing_is_remembered_where_nobody_asks():
    changing = iter([0, 0, 1, 1])
    assert law(lambda chooser: chooser.index([1, 1]) + next(changing)) == {0: Fraction(1, 2), 1: Fraction(1, 2)}
    with recorded(log := ReplayLog()):
        law(lambda chooser: chooser.index([1, 1]) + next(changing))
    changing = iter([0, 0])
    with pytest.raises(NotReproducible, match="one run gave 2 and, asked again with the same coins, 1"):
        log.replay()


def ask_rule(tmp_path, capsys, name):
    """The exit code and the output of `certify` on a rule of the file above."""
    path, rows = tmp_path / "own.py", tmp_path / "rows.json"
    path.write_text(RULES, encoding="utf-8")
    rows.write_text('{"contexts": {"*": {"target": ["1/2", "1/2"], "draft": ["3/10", "7/10"]}}}', encoding="utf-8")
    shape = ["--width", "2", "--depth", "1", "--budget", "2"]
    return options.run(app, ["certify", f"{path}:{name}", "--rows", str(rows), *shape]), capsys.readouterr()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("python", "random.Random.random at own.py"),
        ("early", "random.Random.random at own.py"),
        ("cycle", "random.Random.random at own.py"),
        ("numpy", "a draw from numpy.random.mtrand.RandomState"),
        ("torches", "a draw from torch._C.Generator"),
        ("node", "a call that changes the generator global `rng`"),
        ("fresh", "got the system's entropy"),
        ("unseeded", "random.Random.seed at own.py"),
        ("system", "got the system's entropy"),
        ("hidden", "random.Random.random at own.py"),
        ("again", "random.Random.seed at own.py"),
        ("late", "a call that changes global `calls`"),
    ],
)
def test_a_rule_that_draws_outside_its_chooser_is_refused_by_name(tmp_path, capsys, name, said):
    code, shown = ask_rule(tmp_path, capsys, name)
    assert code == 2, shown
    assert said in shown.err
    assert shown.err.count("\n") == 1


def test_a_rule_that_is_a_function_of_its_coins_gets_its_verdict(tmp_path, capsys):
    assert ask_rule(tmp_path, capsys, "steady")[0] == 0


def test_models_may_move_a_generator_and_no_patch_stays():
    def target(prefix):
        random.seed(len(prefix))
        return [Fraction(1, 2), Fraction(1, 2)] if random.random() < 2 else []

    def verify(p, tail, candidates, sampled, lead, chooser, at):
        x = chooser.index(p)
        return x, (candidates.index(x) if x in candidates else -1)

    before = os.urandom, random.Random.seed, vars(random)["_urandom"]
    rule = TreeMethod("own", None, lead=1, verify=verify)
    assert certify(rule, target, lambda prefix: [Fraction(3, 10), Fraction(7, 10)], TreeShape(2, 1, 2)).lossless
    assert (os.urandom, random.Random.seed, vars(random)["_urandom"]) == before
