"""RheoSampling a second time, straight from sections 3.2 to 3.4 and appendices C.1 and D.2: slow, with nothing shared.

Trees are lists, laws are dictionaries, every draw is written out; no Chooser, no Pool, no Tree. Whatever changes a law
or an acceptance of the reference implementation makes the two differ.
"""

from fractions import Fraction as F
from itertools import product
from typing import Any

import numpy as np
import pytest

from exact.enumeration.cycle_law import cycle_law
from rheo_core import SAMPLED, ModelPair, SamplingChooser, TreeMethod, TreeShape, laws, proxies
from rheo_core.construction import layered
from rheo_core.pool import Drafter
from rheo_core.verification import algorithm_1, rrsw, vanilla
from tests.exact.laws import replayed_law
from tests.pairs import HAND_MADE
from tests.products import spread

pytestmark = pytest.mark.exact


def ranked(q):
    """Tokens by falling q, lower ids first among equals."""
    return sorted(range(len(q)), key=lambda token: (-q[token], token))


def normalised(weights):
    mass = sum(weights, F(0))
    return [weight / mass for weight in weights] if mass else None


def tail_law(q, lead):
    return normalised([0 if token in lead else q[token] for token in range(len(q))])


PROXIES = {
    "rheo": lambda q, order, m, y: (
        q[order[0]] if m == 0 else min(q[order[m - 1]], sum(q[token] for token in order[m:]))
    ),
    "next": lambda q, order, m, y: q[order[m]],
    "z": lambda q, order, m, y: min(F(1), sum(q[token] for token in order[m:])),
    "raw": lambda q, order, m, y: q[y],
    "half": lambda q, order, m, y: F(min(q)) / 2,
    "adhoc": lambda q, order, m, y: F(1, 4),
}


def pools(q, m, width, proxy):
    """(probability, slots) of each pool; a slot is (kind, token, score)."""
    order = ranked(q)
    lead = order[: min(m, width)]
    tail = tail_law(q, lead) if m < width else None
    if tail is None:
        yield F(1), [("fixed", token, q[token]) for token in order[:width]]
        return
    for y in range(len(q)):
        if tail[y]:
            fills = [token for token in order if token not in lead and token != y]
            slots = [("fixed", token, q[token]) for token in lead]
            slots.append(("sampled", y, PROXIES[proxy](q, order, m, y)))
            slots += [("fixed", token, q[token]) for token in fills]
            yield tail[y], slots[:width]


def best(nodes):
    """By falling score, then rising depth, then as they were made."""
    return sorted(nodes, key=lambda node: (-node["score"], len(node["tokens"])))


def trees(draft, shape, m, proxy):
    """(probability, kept nodes) of every unpruned tree."""
    root: dict[str, Any] = {"tokens": (), "slots": (), "score": F(1)}
    waiting: list[Any] = [(F(1), [], [root])]
    for _ in range(shape.depth):
        grown = []
        for probability, nodes, parents in waiting:
            options = [list(pools(draft(parent["tokens"]), m, shape.width, proxy)) for parent in parents]
            for chosen in product(*options):
                mass = probability
                level = []
                for parent, (share, slots) in zip(parents, chosen, strict=True):
                    mass *= share
                    for slot, (kind, token, score) in enumerate(slots):
                        tokens = (*parent["tokens"], token)
                        path = (*parent["slots"], slot)
                        level.append({"tokens": tokens, "slots": path, "kind": kind, "score": parent["score"] * score})
                grown.append((mass, nodes + level, best(level)[: shape.width]))
        waiting = grown
    for probability, nodes, _ in waiting:
        yield probability, best(nodes)[: shape.budget]


def point_masses(r, tokens):
    """(probability, token, accepted) of sequential rejection."""
    mass = F(1)
    for token in tokens:
        if r is None:
            return
        yield mass * r[token], token, True
        mass *= 1 - r[token]
        r = normalised([0 if v == token else r[v] for v in range(len(r))])
    if r is not None:
        yield from ((mass * r[token], token, False) for token in range(len(r)))


def verdicts(p, tail, lead, y, fills, rule):
    """(probability, token, accepted) at one parent; `y` None without a sampled child."""
    if rule == "vanilla" or y is None:
        yield from point_masses(p, lead + ([] if y is None else [y]) + fills)
        return
    r, reached = p, F(1)
    if rule == "rrsw":
        for token in lead:
            yield reached * r[token], token, True
            reached *= 1 - r[token]
            r = normalised([0 if v == token else r[v] for v in range(len(r))])
            if r is None:
                return
    accepted = min(F(1), r[y] / tail[y])
    yield reached * accepted, y, True
    residual = normalised([max(F(0), r[v] - tail[v]) for v in range(len(r))])
    others = fills if rule == "rrsw" else lead + fills
    if residual is not None:
        for mass, token, taken in point_masses(residual, others):
            yield reached * (1 - accepted) * mass, token, taken


def emitted(models, shape, m, proxy, rule):
    """The law of the tokens of one cycle."""
    found: dict[tuple[int, ...], Any] = {}
    for probability, kept in trees(models.draft, shape, m, proxy):
        waiting: list[Any] = [(probability, (), ())]
        while waiting:
            mass, slots, tokens = waiting.pop()
            children = sorted((node for node in kept if node["slots"][:-1] == slots), key=lambda node: node["slots"])
            y = [node["tokens"][-1] for node in children if node["kind"] == "sampled"]
            place = next((i for i, node in enumerate(children) if node["kind"] == "sampled"), len(children))
            lead = [node["tokens"][-1] for node in children[:place]]
            fills = [node["tokens"][-1] for node in children[place + 1 :]]
            q = models.draft(tokens)
            tail = tail_law(q, ranked(q)[:m]) if y else None
            for share, token, accepted in verdicts(models.target(tokens), tail, lead, y[0] if y else None, fills, rule):
                if share and accepted:
                    child = next(node for node in children if node["tokens"][-1] == token)
                    waiting.append((mass * share, child["slots"], (*tokens, token)))
                elif share:
                    found[(*tokens, token)] = found.get((*tokens, token), 0) + mass * share
    return found


REAL: dict[str, Any] = {
    "rheo": proxies.RHEO,
    "next": proxies.NEXT_TOKEN,
    "z": proxies.TAIL_MASS,
    "raw": proxies.RAW,
    "half": proxies.HALF_LEAST,
    "adhoc": proxies.ADHOC,
}
RULES = {"algorithm 1": algorithm_1, "vanilla": vanilla, "rrsw": rrsw}
GROWABLE = ("rheo", "next", "z")
CASES = [
    (TreeShape(2, 2, 3), 1, "rheo", "algorithm 1"),
    (TreeShape(3, 2, 4), 1, "rheo", "rrsw"),
    (TreeShape(2, 2, 4), 0, "rheo", "algorithm 1"),
    (TreeShape(2, 2, 2), 0, "half", "algorithm 1"),
    (TreeShape(3, 1, 2), 1, "raw", "algorithm 1"),
    (TreeShape(3, 1, 2), 1, "adhoc", "algorithm 1"),
    (TreeShape(3, 2, 5), 2, "z", "algorithm 1"),
    (TreeShape(3, 2, 3), 1, "next", "rrsw"),
    (TreeShape(2, 3, 5), 1, "rheo", "algorithm 1"),
    (TreeShape(3, 2, 6), 3, "rheo", "vanilla"),
    (TreeShape(2, 2, 6), 1, "z", "vanilla"),
]


@spread("models, case", HAND_MADE, CASES)
def test_both_constructions_and_the_classes_have_the_second_implementation_s_law(models, case):
    compare(models, *case)


def compare(models, shape, m, proxy, rule):
    """The reference implementation's law, by replay and by classes, against the second one's."""
    if m == 0 and models.size > 3:
        shape = TreeShape(shape.width, 1, shape.budget)
    expected = emitted(models, shape, m, proxy, rule)
    assert sum(expected.values()) == 1
    for construction in ("layered", "grown") if proxy in GROWABLE else ("layered",):
        method = TreeMethod("again", None, m, REAL[proxy], construction, RULES[rule])
        if shape.depth < 3 or models.size < 3 or construction == "grown":
            assert replayed_law(method, models.target, models.draft, shape) == expected
        assert cycle_law(method, ModelPair(models.target, models.draft), (), shape)[0] == expected


def test_a_proxy_enters_in_the_arithmetic_of_the_row():
    """1/3 ties with a float32 entry of 1/3 (and then ranks by slot); 0.25 is 1/4 on rational rows."""
    third = np.full(3, 1 / 3, dtype=np.float32)
    drafter = Drafter(ModelPair(lambda prefix: third, lambda prefix: third), 2, 0, proxies.Constant(F(1, 3)))
    kept = layered(drafter, (), TreeShape(2, 1, 1), SamplingChooser(np.random.default_rng(0)))
    assert kept.kind.tolist() == [SAMPLED]
    assert kept.score.dtype == np.float32
    table_1 = HAND_MADE[0]
    for quarter in (0.25, np.float32(0.25), F(1, 4)):
        method = TreeMethod("quarter", None, 1, proxies.Constant(quarter))
        assert replayed_law(method, table_1.target, table_1.draft, TreeShape(3, 1, 2)) == emitted(
            table_1, TreeShape(3, 1, 2), 1, "adhoc", "algorithm 1"
        )


def test_a_tail_mass_that_rounds_above_1_counts_as_1():
    """With m = 0 the tail is the whole row, and a float law may sum to a little more than 1."""
    row = np.full(2, np.nextafter(0.5, 1))
    drafter = Drafter(ModelPair(lambda prefix: row, lambda prefix: row), 2, 0, proxies.TAIL_MASS)
    assert drafter.pool(()).proxy_score() == 1


def test_the_tail_law_is_the_second_implementation_s():
    for models in HAND_MADE:
        q = [F(entry) for entry in models.draft(())]
        lead = ranked(q)[:1]
        if tail_law(q, lead) is not None:
            assert laws.tail_law(np.array(q, dtype=object), iter(lead)).tolist() == tail_law(q, lead)
