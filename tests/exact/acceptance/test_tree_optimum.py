"""The best lossless rule on dynamic trees: held to its definition, to one layer, and to the rules that are there."""

from fractions import Fraction as F
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from exact.acceptance import linear_program as room
from exact.acceptance.draft_optimum import all_trees, draft_optimum
from exact.acceptance.node_transport import node_transport, steps
from exact.acceptance.one_layer import acceptance_length, drafted_sets
from exact.acceptance.tree_optimum import tree_law, tree_optimum
from exact.enumeration.tree_classes import classes
from exact.methods import methods
from exact.methods.load import with_lead
from exact.methods.optimum import optimum
from exact.methods.rows_file import shipped_rows
from exact.verdict.certify import certify
from rheo_core import InvalidInput, ModelPair, TreeMethod, TreeShape, method
from rheo_core.construction import layered

pytestmark = pytest.mark.exact


def random_pair(seed, size):
    """Rows that differ at every prefix, with zeros and ties."""
    rng = np.random.default_rng(seed)
    rows: dict[Any, Any] = {}

    def model(which):
        def row(prefix):
            if (which, prefix) not in rows:
                weights = rng.integers(0, 5, size) + np.eye(size, dtype=int)[rng.integers(size)]
                rows[which, prefix] = [F(int(x), int(weights.sum())) for x in weights]
            return rows[which, prefix]

        return row

    return ModelPair(model("target"), model("draft"))


def always(row):
    return lambda prefix: row


def drafted(method, pair, shape):
    return classes(method.drafter(pair, shape), (), shape)


def by_definition(p, size, trees, depth):
    """The oracle: the joint distribution of tree and emitted text, and the law of D + 1 tokens, written out in full."""
    columns: list[tuple[int, tuple[int, ...]]] = []
    for number, tree in enumerate(trees):
        paths = {path for path, _, _ in tree}
        columns += [
            (number, (*path, v)) for path in [(), *sorted(paths)] for v in range(size) if (*path, v) not in paths
        ]

    def chance(text, behind=()):
        return float(np.prod([float(p((*behind, *text[:i]))[text[i]]) for i in range(len(text))]))

    texts = list(np.ndindex(*[size] * (depth + 1)))
    equations = [[float(number == column[0]) for column in columns] for number in range(len(trees))]
    right = [float(mass) for mass in trees.values()]
    for text in texts:
        equations.append([
            chance(text[len(s) :], s) if text[: len(s)] == s else 0.0 for _, s in columns
        ])  # fmt: skip
        right.append(chance(text))
    found = linprog([1.0 - len(s) for _, s in columns], A_eq=equations, b_eq=right, method="highs")
    return -found.fun


@pytest.mark.parametrize("seed", range(12))
def test_the_program_is_the_definition(seed):
    shape = TreeShape(*[(2, 2, 3), (2, 2, 4), (3, 2, 4), (2, 3, 4)][seed % 4])
    pair, size = random_pair(seed, 3 if shape.depth == 2 else 2), 3 if shape.depth == 2 else 2
    trees = tree_law(drafted(with_lead(methods["rheo"], seed % 2), pair, shape))
    assert float(tree_optimum(pair.p, trees).value) == pytest.approx(by_definition(pair.p, size, trees, shape.depth))


@pytest.mark.parametrize("seed", range(8))
def test_one_layer_is_the_transport_optimum(seed):
    pair, rule = random_pair(seed, 4), with_lead(methods["rheo"], seed % 3)
    trees = tree_law(drafted(rule, pair, TreeShape(3, 1, 3)))
    most = optimum(pair.p(()), drafted_sets(rule, pair, 3)).value
    assert tree_optimum(pair.p, trees).value == tree_optimum(pair.p, trees, layered=True).value == most


RULES = [*[with_lead(methods[name], lead) for name in ("rheo", "rheo-rrsw") for lead in (0, 1, 2)], methods["top-k"]]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule.name} {rule.lead}")
@pytest.mark.parametrize("seed", range(4))
def test_no_lossless_rule_accepts_more_and_knowing_more_accepts_no_less(rule, seed):
    shape = [TreeShape(3, 2, 4), TreeShape(2, 3, 5)][seed % 2]
    pair = random_pair(seed, 3)
    trees = tree_law(drafted(rule, pair, shape))
    accepted = acceptance_length(rule, pair, shape) - 1
    whole, layered = tree_optimum(pair.p, trees), tree_optimum(pair.p, trees, layered=True)
    assert accepted <= layered.value <= whole.value <= shape.depth
    assert sum(whole.reached.values()) == whole.value


def gains(seeds, layered):
    shape, rule = TreeShape(2, 2, 3), with_lead(methods["rheo"], 0)
    for seed in seeds:
        pair = random_pair(seed, 3)
        yield tree_optimum(pair.p, tree_law(drafted(rule, pair, shape)), layered=layered).value > (
            acceptance_length(rule, pair, shape) - 1
        )


def test_algorithm_1_is_not_always_the_best_rule_that_goes_layer_by_layer():
    assert any(gains(range(20), True))
    assert sum(gains(range(20), False)) >= sum(gains(range(20), True))


def test_a_program_that_forgets_kinds_bounds_nothing():
    """Planted fault: without slots and kinds a layered program falls below Algorithm 1, which sees them."""
    pair, shape, rule = random_pair(11, 4), TreeShape(3, 3, 6), with_lead(methods["rheo"], 0)
    found = drafted(rule, pair, shape)
    accepted = acceptance_length(rule, pair, shape) - 1
    assert tree_optimum(pair.p, tree_law(found), layered=True).value >= accepted
    blind: dict[Any, Any] = {}
    for tree, mass in tree_law(found).items():
        key = frozenset((path, 0, 0) for path, _, _ in tree)
        blind[key] = blind.get(key, 0) + mass
    assert tree_optimum(pair.p, blind, layered=True).value < accepted


@pytest.mark.parametrize("fault", ["value", "multiplier", "tight"])
def test_a_wrong_vertex_is_no_optimum(fault, monkeypatch):
    """Planted faults: a value or a multiplier that is off, and constraints wrongly taken for tight."""
    pair = random_pair(5, 4)
    trees = tree_law(drafted(methods["rheo"], pair, TreeShape(3, 3, 6)))
    real = room._vertices

    def off(task):
        values, multipliers = real(task)
        spoiled = values if fault == "value" else multipliers
        place = next(i for i, x in enumerate(spoiled) if x)
        spoiled[place] *= F(999, 1000)
        return values, multipliers

    if fault == "tight":
        monkeypatch.setattr(room, "TIGHT", 0.3)
        monkeypatch.setattr(room, "ROUNDS", 1)
    else:
        monkeypatch.setattr(room, "_vertices", off)
    with pytest.raises(ArithmeticError, match="proved in rationals"):
        tree_optimum(pair.p, trees)


def test_small_probabilities_need_refinement(monkeypatch):
    """Real rows, whose least masses are below what floats keep apart; planted fault: the first proposal alone."""
    file = next(each for each in shipped_rows() if each.name == "qa-332")
    pair = ModelPair(file.target, file.draft)
    trees = tree_law(drafted(with_lead(methods["rheo"], 0), pair, TreeShape(3, 2, 4)))
    layered, whole = (tree_optimum(pair.p, trees, layered=each).value for each in (True, False))
    assert acceptance_length(with_lead(methods["rheo"], 0), pair, TreeShape(3, 2, 4)) - 1 <= layered <= whole
    monkeypatch.setattr(room, "ROUNDS", 1)
    with pytest.raises(ArithmeticError, match="proved in rationals"):
        tree_optimum(pair.p, trees, layered=True)


def test_a_layered_rule_that_saw_what_lies_below_would_accept_more():
    """Planted fault: the program of the rule that knows the tree, taken for the layered one."""
    pair = random_pair(5, 3)
    trees = tree_law(drafted(with_lead(methods["rheo"], 0), pair, TreeShape(2, 2, 3)))
    layered, whole = (tree_optimum(pair.p, trees, layered=each).value for each in (True, False))
    assert (layered, whole) == (F(83, 80), F(17, 16))


@pytest.mark.parametrize(
    ("trees", "expected"),
    [({frozenset([((0,), 0, 0)]): F(1, 2)}, "sums to 1"), ({frozenset([((0, 1), 0, 0)]): 1}, "parent of every node")],
)
def test_no_law_of_trees_is_refused(trees, expected):
    with pytest.raises(InvalidInput, match=expected):
        tree_optimum(lambda prefix: [F(1, 2), F(1, 2)], trees)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("lead", [0, 1, 2])
def test_transport_at_each_node_is_lossless_and_never_above_the_best_layered_rule(seed, lead):
    """Its flow is a solution of the program's own constraints; planted fault: a flow of more than the target's row."""
    pair, shape = random_pair(seed, 3), [TreeShape(3, 2, 4), TreeShape(2, 3, 5)][seed % 2]
    trees = tree_law(drafted(with_lead(methods["rheo"], lead), pair, shape))
    reached: dict[Any, Any] = {(): 1}
    for path, step in steps(pair.p, trees):
        assert step.chance == reached[path]
        for drafted_set, mass in step.sets.items():
            assert sum(x for (each, _), x in step.flow.items() if each == drafted_set) <= mass
        for (each, token), share in step.flow.items():
            assert token in each
            reached[(*path, token)] = reached.get((*path, token), 0) + step.chance * share
    assert all(reached[path] <= reached[path[:-1]] * pair.p(path[:-1])[path[-1]] for path in reached if path)
    value = node_transport(pair.p, trees)
    assert value == sum(reached.values()) - 1 <= tree_optimum(pair.p, trees, layered=True).value
    if lead:
        assert value >= acceptance_length(with_lead(methods["rheo"], lead), pair, shape) - 1


def test_transport_at_each_node_beats_algorithm_1_on_a_dynamic_tree_and_certifies():
    """The largest gain with one lead over all rows in sixths at V = 3, and the rule itself run: it is lossless."""
    p, q = [F(0), F(2, 3), F(1, 3)], [F(1, 6), F(1, 3), F(1, 2)]
    pair, shape, rule = ModelPair(always(p), always(q)), TreeShape(3, 2, 4), methods["rheo"]
    assert isinstance(rule, TreeMethod)
    trees = tree_law(classes(rule.drafter(pair, shape), (), shape))
    table = dict(steps(pair.p, trees))

    @method(name="transport")
    def transport(target, draft, prefix, shape, chooser):
        tree = layered(rule.drafter(ModelPair(target, draft), shape), prefix, shape, chooser)
        paths, tokens = {tree.tokens_to(node) for node in range(len(tree))}, tuple[int, ...]()
        while tokens in table:
            step, offered = table[tokens], frozenset(path[-1] for path in paths if path[:-1] == tokens and path)
            shares = [step.flow.get((offered, token), F(0)) / F(step.sets[offered]) for token in range(len(p))]
            token = chooser.index([*shares, 1 - sum(shares)])
            if token == len(p):
                taken = [sum(x for (_, v), x in step.flow.items() if v == token) for token in range(len(p))]
                rest = [x - y for x, y in zip(target(prefix), taken, strict=True)]
                return [*tokens, chooser.index([x / sum(rest) for x in rest])]
            tokens = (*tokens, token)
        return [*tokens, chooser.index(target(prefix))]

    certificate = certify(transport, always(p), always(q), shape)
    assert certificate.lossless
    accepted = acceptance_length(rule, pair, shape)
    assert certificate.acceptance_length == node_transport(pair.p, trees) + 1 > accepted
    assert (accepted, certificate.acceptance_length - accepted) == (F(19, 9), F(2, 9))


def by_hand(size, shape, targets, weights):
    """The oracle: the best of all single trees is never better than the best distribution over them."""
    return max(
        sum(
            F(weight) * tree_optimum(target, {frozenset((path, 0, 0) for path in tree): 1}).value
            for target, weight in zip(targets, weights, strict=True)
        )
        for tree in all_trees(size, shape)
    )


@pytest.mark.parametrize("shape", [TreeShape(2, 1, 2), TreeShape(2, 2, 2), TreeShape(2, 2, 3)], ids=str)
def test_the_best_trees_for_a_family_are_at_least_those_of_rheo_and_of_any_one_tree(shape):
    q = [F(1, 2), F(1, 3), F(1, 6)]
    rows = [[x / 2 + F(1, 2) * (i == j) for j, x in enumerate(q)] for i in range(3)]  # their mean under q is q
    targets = [always(row) for row in rows]
    best = draft_optimum(targets, 3, shape, q)
    assert sum(best.trees.values()) == 1
    assert best.value == sum(weight * each for weight, each in zip(q, best.accepted, strict=True))
    assert best.value >= by_hand(3, shape, targets, q)
    for lead in range(3):
        trees = tree_law(drafted(with_lead(methods["rheo"], lead), ModelPair(always(q), always(q)), shape))
        assert best.value >= sum(w * tree_optimum(each, trees).value for w, each in zip(q, targets, strict=True))
    attained = {frozenset((path, 0, 0) for path in tree): mass for tree, mass in best.trees.items()}
    assert tuple(tree_optimum(each, attained).value for each in targets) >= best.accepted
    worst = draft_optimum(targets, 3, shape)
    assert min(worst.accepted) == worst.value >= min(best.accepted)


def test_a_program_that_lets_the_tree_know_its_target_is_better_than_any_draft():
    """Planted fault: one distribution of trees for each target, which is D + 1 tokens a cycle."""
    rows = [[F(1, 6), F(1, 6), F(2, 3)], [F(2, 3), F(1, 6), F(1, 6)]]
    shape = TreeShape(1, 2, 2)
    one = draft_optimum([always(row) for row in rows], 3, shape, [F(1, 2), F(1, 2)])
    each = [draft_optimum([always(row)], 3, shape, [1]).value for row in rows]
    assert one.value < sum(each) / 2 == 2


def test_every_tree_of_a_shape_is_listed_once():
    shape = TreeShape(2, 2, 3)
    found = list(all_trees(3, shape))
    paths = [(a,) for a in range(3)] + [(a, b) for a in range(3) for b in range(3)]
    right = {
        frozenset(chosen)
        for n in range(4)
        for chosen in combinations(paths, n)
        if all(path[:-1] in {(), *chosen} for path in chosen)
        and all(sum(each[:-1] == path for each in chosen) <= 2 for path in [(), *paths])
    }
    assert len(found) == len(set(found))
    assert set(found) == right
    with pytest.raises(InvalidInput, match="at most 3000"):
        draft_optimum([], 9, TreeShape(3, 3, 9))
