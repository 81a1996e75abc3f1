"""Pools, ranking and the two constructions, beside a construction written straight from the definitions."""

from fractions import Fraction as F
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rheo_core import FILL, LEAD, SAMPLED, DraftRow, InvalidInput, ModelPair, SamplingChooser, TreeShape, proxies
from rheo_core.construction import expand, layered
from rheo_core.growth import Growth, NotGrowable, grown
from rheo_core.pool import Drafter, Pool
from rheo_core.tree import Tree, rank
from tests.pairs import both, drawn_models, rational, rows, rule, shapes
from tests.products import shown


def pool_oracle(q, width, m):
    """Section 3.2 word by word: {Y: [(token, kind, score)]}; key None where there is no sampled slot."""
    order = sorted(range(len(q)), key=lambda token: (-q[token], token))
    lead = [(token, LEAD, q[token]) for token in order[: min(m, width)]]
    z = sum(q[token] for token in order[m:])
    if m >= width or not z:
        return {None: lead + [(token, FILL, q[token]) for token in order[len(lead) : width]]}
    proxy = q[order[0]] if m == 0 else min(q[order[m - 1]], z)
    pools = {}
    for y in order[m:]:
        if q[y]:
            fills = [(token, FILL, q[token]) for token in order[m:] if token != y][: width - m - 1]
            pools[y] = [*lead, (y, SAMPLED, proxy), *fills]
    return pools


@given(st.integers(1, 5).flatmap(rows), st.integers(1, 6), st.integers(0, 6))
@settings(max_examples=100)
def test_pools_against_the_definition(q, width, m):
    m = min(m, width)
    pool = Pool(DraftRow.law(q), width, m, proxies.RHEO)
    expected = pool_oracle(q, width, m)
    assert (pool.tail is None) == (list(expected) == [None])
    for y, slots in expected.items():
        found = pool.slots(y)
        assert [slot for slot, *_ in found] == list(range(len(found)))
        assert [(token, kind, score) for _, kind, token, score in found] == slots


def test_score_and_true_probability_are_kept_apart():
    pool = Pool(DraftRow.law(rational(5, 3, 2)), 3, 1, proxies.RHEO)
    assert [score for *_, score in pool.slots(2)] == [F(1, 2), F(1, 2), F(3, 10)]  # Table 1
    tail: Any = pool.tail
    assert tail.tolist() == [0, F(3, 5), F(2, 5)]
    with pytest.raises(ValueError, match="read-only"):
        tail[0] = 1  # a verification rule that changes it would change every later visit


@pytest.mark.parametrize("proxy", [each for each in vars(proxies).values() if isinstance(each, proxies.ProxyRule)])
@given(st.integers(2, 5).flatmap(rows), st.integers(0, 4))
@settings(max_examples=40)
def test_uses_token_says_whether_y_matters(proxy, q, m):
    row = DraftRow.law(q)
    m = min(m, len(q) - 1)
    values = {proxy(row.score, row.order, m, token) for token in row.order[m:].tolist()}
    if not proxy.uses_token:
        assert len(values) == 1
    else:
        assert values == {row.score[token] for token in row.order[m:]}


def test_the_paper_proxy_lies_between_the_next_token_and_1():
    """Lemma 4, and m = 0: q(x1) itself and no "+ epsilon"."""
    row = DraftRow.law(rational(6, 2, 1, 1))
    assert [proxies.RHEO(row.score, row.order, m, -1) for m in range(4)] == [F(3, 5), F(2, 5), F(1, 5), F(1, 10)]
    row = DraftRow.law(rational(4, 3, 2, 1))  # here q(x_m) is the smaller of the two at m = 1, z at m = 3
    assert [proxies.RHEO(row.score, row.order, m, -1) for m in range(4)] == [F(2, 5), F(2, 5), F(3, 10), F(1, 10)]
    for dtype in (np.float16, np.float32, np.float64):
        q = np.array([0.5, 0.5], dtype=dtype)
        assert proxies.RHEO(q, np.array([0, 1]), 0, -1) == q[0]


def test_a_proxy_is_taken_into_the_arithmetic_of_the_rows():
    for dtype in (np.float16, np.float32, np.float64):
        pool = Pool(DraftRow.law(np.array([0.5, 0.5], dtype)), 2, 1, lambda *_: 0.1)
        assert type(pool.proxy_score(1)) is dtype
    exact = Pool(DraftRow.law(rational(1, 1)), 2, 1, lambda *_: 0.1)
    assert exact.proxy_score(1) == F(0.1)
    assert isinstance(exact.proxy_score(1), F)


@pytest.mark.parametrize("value", [-0.25, 1.25, float("nan"), F(5, 4)])
def test_a_proxy_outside_0_to_1_is_refused(value):
    pool = Pool(DraftRow.law(rational(1, 1)), 2, 1, lambda *_: value)
    with pytest.raises(InvalidInput, match=r"^proxy: got .*, expected a score in \[0, 1\] \(above 1 a child would"):
        pool.slots(1)


def test_ranks_are_stable():
    """By falling score, equal scores as they stand: 1,000 equal ones keep their order."""
    assert rank([F(1, 4), F(1, 2), F(1, 4), F(1, 2)]) == [1, 3, 0, 2]
    assert rank(np.full(1000, 0.5, np.float32)) == list(range(1000))
    assert rank([]) == []


def tree_oracle(q, shape, m, draw):
    """U ranked by sorting on the whole key: (score falling, depth rising, slots of parents and self left to right).

    `draw(path)` is the tail token below a parent. Nodes are dicts; a level is expanded in full before it is ranked.
    """
    levels: list[list[dict[str, Any]]] = [[{"path": (), "place": (), "tokens": (), "score": 1}]]
    for _ in range(shape.depth):
        parents = sorted(levels[-1], key=lambda node: (-node["score"], node["place"]))[: shape.width]
        level = []
        for place, parent in enumerate(parents):
            pools = pool_oracle(q(parent["tokens"]), shape.width, m)
            y = None if None in pools else draw(parent["path"])
            for slot, (token, kind, score) in enumerate(pools[y]):
                level.append(
                    {
                        "path": (*parent["path"], slot),
                        "place": (place, slot),
                        "tokens": (*parent["tokens"], token),
                        "kind": kind,
                        "score": parent["score"] * score,
                    }
                )
        levels.append(level)
    nodes = [(-node["score"], depth, node["place"], node) for depth, level in enumerate(levels) for node in level]
    return [node for *_, node in sorted(nodes, key=lambda entry: entry[:3]) if node["path"]]


class Recorded:
    """Draws by address from one seeded generator per address."""

    def index(self, weights, at=None):
        seed = sum((slot + 1) * 7**i for i, slot in enumerate(at[2]))
        return SamplingChooser(np.random.default_rng(seed)).index(weights)

    def accept(self, probability, at=None):
        raise AssertionError("no coin is tossed while a tree is drafted")


@given(drawn_models(most=5), shapes(depth=4), st.integers(0, 4))
@settings(max_examples=80)
def test_the_layered_tree_against_the_definition(pair, shape, m):
    m = min(m, shape.width)
    drafter = rule("rheo", lead=m).drafter(pair.pair(), shape)

    def draw(path):
        tokens: tuple[int, ...] = ()
        for end in range(len(path)):
            tokens = (*tokens, drawn[path[: end + 1]])
        return Recorded().index(drafter.pool(tokens).tail, ("tail", 0, path, 0))

    tree = layered(drafter, (), shape, Recorded())
    unpruned = expand(drafter, (), shape, Recorded())
    drawn = {unpruned.path(node): int(unpruned.token[node]) for node in range(len(unpruned))}
    expected = tree_oracle(pair.draft, shape, m, draw)[: shape.budget]
    assert [tree.path(node) for node in range(len(tree))] == [node["path"] for node in expected]
    assert [tree.tokens_to(node) for node in range(len(tree))] == [node["tokens"] for node in expected]
    assert tree.kind.tolist() == [node["kind"] for node in expected]
    assert tree.score.tolist() == [node["score"] for node in expected]
    assert tree.depth.tolist() == [len(node["path"]) for node in expected]
    assert tree == unpruned.first(shape.budget)


@given(drawn_models(most=4), shapes(depth=3), st.integers(0, 4))
@settings(max_examples=50)
def test_pruned_trees_hold_every_parent_before_its_children(pair, shape, m):
    """Lemma 5, ancestor monotonicity; and at most R nodes."""
    tree = layered(rule("rheo", lead=min(m, shape.width)).drafter(pair.pair(), shape), (), shape, Recorded())
    assert 1 <= len(tree) <= shape.budget
    for node, parent in enumerate(tree.parent.tolist()):
        assert parent < node
        assert parent == -1 or tree.score[node] <= tree.score[parent]
        assert tree.depth[node] == (1 if parent == -1 else tree.depth[parent] + 1)


def table_1_tree():
    drafter = rule("rheo").drafter(ModelPair(*both(rational(5, 3, 2))), TreeShape(3, 2, 6))
    return layered(drafter, (), TreeShape(3, 2, 6), Recorded())


def test_trees_are_compared_by_all_their_arrays():
    tree = table_1_tree()
    assert tree == table_1_tree()
    assert hash(tree) == hash(table_1_tree())
    assert tree != "a tree"
    arrays = {name: getattr(tree, name) for name in ("token", "parent", "depth", "slot", "kind", "score")}
    for name, array in arrays.items():
        changed = array.copy()
        changed[-1] = changed[-1] + 1
        if name != "depth":  # depth follows from the parents
            assert Tree(**(arrays | {name: changed})) != tree


def test_trees_read_from_the_root():
    tree = table_1_tree()
    assert tree.children(-1) == sorted(np.flatnonzero(tree.parent == -1), key=lambda node: tree.slot[node])
    for node in range(len(tree)):
        assert tree.path(node)[-1] == tree.slot[node]
        assert tree.tokens_to(node)[-1] == tree.token[node]
        assert len(tree.path(node)) == tree.depth[node]
    assert tree.path(-1) == tree.tokens_to(-1) == ()


@pytest.mark.parametrize(
    "proxy", [proxies.RAW, proxies.HALF_LEAST, lambda score, order, m, sampled: F(1, 2)], ids=shown
)
def test_only_the_proxies_of_lemma_4_are_grown(proxy):
    drafter = Drafter(ModelPair(*both(rational(5, 3, 2))), 3, 1, proxy)
    with pytest.raises(NotGrowable):
        grown(drafter, (), TreeShape(3, 2, 4), Recorded())


def test_growth_asks_for_each_draw_and_for_nothing_else():
    growth = Growth(
        rule("rheo").drafter(ModelPair(*both(rational(5, 3, 2))), TreeShape(3, 1, 3)), (), TreeShape(3, 1, 3)
    )
    with pytest.raises(InvalidInput, match="supply: got no draw waiting"):
        growth.supply(1)
    waiting: Any = growth.next_draw()
    assert waiting.tolist() == [0, F(3, 5), F(2, 5)]
    assert growth.path == ()
    with pytest.raises(InvalidInput, match="next_draw: got a draw not supplied"):
        growth.next_draw()
    twin = growth.copy()
    growth.supply(2)
    twin.supply(1)
    assert growth.next_draw() is None
    assert twin.next_draw() is None
    assert (growth.tree().token.tolist(), twin.tree().token.tolist()) == ([0, 2, 1], [0, 1, 2])


@pytest.mark.parametrize("build", [grown, layered])
def test_a_tree_may_be_deeper_than_python_recurses(build):
    shape, chooser = TreeShape(1, 1_200, 1_200), SamplingChooser(np.random.default_rng(0))
    drafter = rule("rheo", lead=0).drafter(ModelPair(*both(rational(1, 1))), shape)
    tree = build(drafter, (), shape, chooser)
    assert tree.depth.tolist() == list(range(1, shape.depth + 1))
