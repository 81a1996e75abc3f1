"""The second verdict: losslessness for every target, its lemmas, and what must not be called proved."""

import random
from fractions import Fraction as F
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exact import certify
from exact.enumeration.tree_classes import TreeClass, brute_force_classes, grown_classes
from exact.verdict.every_target import check_lemmas, first_failing, first_moved
from exact.verdict.strategies import model_pairs, shapes
from rheo_core import FILL, LEAD, SAMPLED, ModelPair, Tree, TreeMethod, TreeShape, proxies
from rheo_core.verification import algorithm_1, rrsw
from tests.pairs import alike, rational, rule, varied

pytestmark = pytest.mark.exact

Q5 = rational(10, 4, 3, 2, 1)
Z_DRAFT = {(): rational(1, 2, 2), (2,): rational(1, 0, 0)}


def z_draft(prefix):
    """The draft on which RRSw with proxy z loses."""
    return Z_DRAFT.get(tuple(prefix), rational(1, 1, 1))


@pytest.mark.parametrize("construction", ["layered", "grown"])
@pytest.mark.parametrize("name", ["top-k", "rheo", "rheo-rrsw", "rheo-next", "rheo-z"])
def test_lossless_methods_are_proved_for_every_target(name, construction):
    method = rule(name, construction=construction)
    found = certify(
        method, varied(Q5, rational(1, 1, 1, 1, 1)), varied(Q5, rational(1, 2, 3, 4, 5)), TreeShape(3, 2, 5)
    )
    assert (found.lossless, found.every_target) == (True, True), found.every_target_reason
    assert found.lemmas
    assert all(found.lemmas.values())
    assert "every target" in found.scope


@settings(max_examples=60)
@given(models=model_pairs(), shape=shapes(width=3, depth=2), m=st.integers(0, 3))
def test_proved_methods_are_lossless_whatever_the_models(models, shape, m):
    shape = TreeShape(max(shape.width, m), shape.depth, shape.budget)
    found = certify(rule("rheo", lead=m), models.target, models.draft, shape)
    assert found.lossless
    assert found.every_target


@pytest.mark.parametrize("name", ["rheo-adhoc", "rheo-raw"])
def test_a_wrong_proxy_is_refuted_by_another_target_where_the_given_one_hides_it(name):
    # p all on one token: any rule that emits only what p allows looks lossless there
    found = certify(rule(name), alike([0, 0, 1]), alike(rational(5, 3, 2)), TreeShape(3, 1, 2))
    assert found.lossless is True
    assert found.every_target is False
    losing = found.every_target_counterexample
    assert losing is not None
    assert losing.got != losing.right
    again = certify(rule(name), lambda prefix: losing.target[prefix], alike(rational(5, 3, 2)), TreeShape(3, 1, 2))
    assert again.lossless is False
    assert again.counterexample == losing


def test_rrsw_with_proxy_z_is_refuted_and_algorithm_1_is_proved():
    shape, uniform = TreeShape(2, 2, 2), alike(rational(1, 1, 1))
    assert certify("rheo-rrsw-z", uniform, z_draft, shape).every_target is False
    assert certify("rheo-z", uniform, z_draft, shape).every_target is True


def test_proxy_zero_is_undecided_where_it_happens_to_be_lossless():
    zero = TreeMethod("zero", None, 0, proxies.Constant(0))
    found = certify(zero, alike(rational(1, 1)), alike(rational(1, 2)), TreeShape(2, 2, 2))
    assert (found.lossless, found.every_target) == (True, None)
    assert not found.lemmas["Lemma 4"]


def own_algorithm_1(p, tail, candidates, sampled, lead, chooser, at):
    """A user's own copy of Algorithm 1."""
    return algorithm_1(p, tail, candidates, sampled, lead, chooser, at)


def own_rrsw(p, tail, candidates, sampled, lead, chooser, at):
    """A user's own copy of RRSw: it needs the leads, which the paper's proxy keeps."""
    return rrsw(p, tail, candidates, sampled, lead, chooser, at)


def gives_up_on_small_p(p, tail, candidates, sampled, lead, chooser, at):
    """Algorithm 1, except for one target law: no check at other rows can see it."""
    if p[0] == F(1, 3):
        return int(np.argmax(p)), -1
    return algorithm_1(p, tail, candidates, sampled, lead, chooser, at)


@pytest.mark.parametrize(
    ("verify", "sets"), [(own_algorithm_1, "all candidate subsets"), (own_rrsw, "that pruning can leave")]
)
def test_a_users_verifier_holds_on_these_rows_and_no_more(verify, sets):
    uniform = alike(rational(1, 1, 1, 1, 1))
    found = certify(TreeMethod("own", None, 1, verify=verify), uniform, alike(Q5), TreeShape(3, 2, 5))
    assert (found.lossless, found.every_target) == (True, None)
    assert "hold on these rows" in found.every_target_reason
    assert sets in found.every_target_reason


def test_a_users_verifier_that_fails_elsewhere_is_never_called_proved():
    own = TreeMethod("own", None, 1, verify=gives_up_on_small_p)
    found = certify(own, alike(rational(3, 2, 1)), alike(rational(3, 2, 1)), TreeShape(3, 1, 2))
    assert found.lossless
    assert found.every_target is not True
    assert certify(own, alike(rational(1, 1, 1)), alike(rational(3, 2, 1)), TreeShape(3, 1, 2)).lossless is False


def test_algorithm_1_in_an_order_of_the_users_own_holds_on_these_rows():
    method = TreeMethod("backwards", None, 1, verify=partial(algorithm_1, order=lambda rest: rest[::-1]))
    found = certify(method, alike(Q5), alike(Q5), TreeShape(3, 2, 5))
    assert (found.lossless, found.every_target) == (True, None)
    assert "hold on these rows" in found.every_target_reason


def test_beyond_brute_force_each_class_is_handed_to_the_layered_code():
    found = certify(rule("rheo"), alike(Q5), alike(Q5), TreeShape(4, 3, 6))
    assert found.every_target is True
    assert "adversarial fillings" in found.every_target_reason


@pytest.mark.parametrize("m", [0, 1, 2])
def test_layered_code_ignores_what_fills_the_undrawn_slots(m):
    pair, shape = ModelPair(alike(Q5), varied(Q5, rational(1, 1, 1, 1, 1), rational(0, 3, 3, 1, 1))), TreeShape(3, 3, 6)
    drafter = rule("rheo", lead=m).drafter(pair, shape)
    classes = list(grown_classes(drafter, (), shape))
    rng = random.Random(7)
    fillings = tuple(lambda kept, weights: rng.choice(kept) for _ in range(20))
    assert first_moved(classes[:40], drafter, (), shape, fillings) is None


def test_a_tree_that_a_filling_moves_is_seen():
    """Planted fault: classes of one draft handed to the layered code of another."""
    shape = TreeShape(2, 2, 3)
    right = rule("rheo").drafter(ModelPair(alike(Q5), alike(Q5)), shape)
    other = rule("rheo").drafter(ModelPair(alike(Q5), alike(rational(6, 5, 4, 3, 2))), shape)
    classes = list(grown_classes(right, (), shape))
    assert first_moved(classes, right, (), shape) is None
    assert first_moved(classes, other, (), shape) is not None


@pytest.mark.parametrize(
    ("name", "false"), [("rheo-adhoc", {"Lemma 4", "Lemma 7.1", "Lemma 7.3"}), ("rheo-half", {"Lemma 4"})]
)
def test_lemmas_fail_where_the_proxy_is_wrong(name, false):
    shape = TreeShape(3, 1, 2) if name == "rheo-adhoc" else TreeShape(2, 2, 2)
    method = rule(name, lead=1 if name == "rheo-adhoc" else 0)
    draft = rational(5, 3, 2) if name == "rheo-adhoc" else rational(1, 2)
    drafter = method.drafter(ModelPair(alike(draft), alike(draft)), shape)
    classes = brute_force_classes(drafter, (), shape)
    failed = {lemma for lemma, holds in check_lemmas(classes, drafter, ()).items() if not holds}
    assert false <= failed
    assert first_failing(classes, drafter, ()) is not None


def drawn_tree(*nodes):
    """A tree from (parent, slot, kind, token, score) of each node in rank order."""
    parent, slot, kind, token, score = zip(*nodes, strict=True)
    depths: list[int] = []
    for each in parent:  # a parent that stands later has no depth yet
        depths.append(1 if each == -1 or each >= len(depths) else depths[each] + 1)
    ints = [np.array(column) for column in (token, parent, depths, slot, kind)]
    return Tree(ints[0], ints[1], ints[2], ints[3], ints[4], np.array(score, dtype=object))


LEAD_A, HALF, FIFTH = (-1, 0, LEAD, 0, F(1, 2)), F(1, 2), F(1, 5)
Y_B, Y_C = ((-1, 1, SAMPLED, token, HALF) for token in (1, 2))
FILL_B, FILL_C = ((-1, 2, FILL, token, FIFTH) for token in (1, 2))
TABLE_1 = [(F(3, 5), (LEAD_A, Y_B)), (F(2, 5), (LEAD_A, Y_C))]
WRONG_CLASSES = {
    "a child outranks its parent": ({"Lemma 5"}, [(F(1), (LEAD_A, (0, 0, LEAD, 0, F(3, 5))))]),
    "a child stands before its parent": ({"Lemma 5"}, [(F(1), ((1, 0, LEAD, 0, FIFTH), LEAD_A))]),
    "two tokens in one fill slot": ({"Lemma 7.2"}, [(HALF, (LEAD_A, FILL_B)), (HALF, (LEAD_A, FILL_C))]),
    "the next slot is drawn or a fill": (
        {"Lemma 7.1", "Lemma 7.3"},
        [(F(3, 5), (LEAD_A, Y_B)), (F(2, 5), (LEAD_A, FILL_B))],
    ),
    "Y survives in another proportion": ({"Lemma 7.3"}, [(HALF, (LEAD_A, Y_B)), (HALF, (LEAD_A, Y_C))]),
    "Y of one token never survives": ({"Lemma 7.3"}, [(F(1), (LEAD_A, Y_B))]),
}


@pytest.mark.parametrize("fault", WRONG_CLASSES)
def test_each_lemma_fails_on_classes_that_break_it_alone(fault):
    """Planted classes at Table 1's draft: what is wrong with each is told by its lemma, and by no other."""
    drafter = rule("rheo").drafter(ModelPair(alike(rational(5, 3, 2)), alike(rational(5, 3, 2))), TreeShape(3, 2, 2))

    def failed(listed):
        found = [TreeClass(drawn_tree(*nodes), probability) for probability, nodes in listed]
        return {lemma for lemma, holds in check_lemmas(found, drafter, ()).items() if not holds}

    expected, listed = WRONG_CLASSES[fault]
    assert failed(TABLE_1) == set()
    assert failed(listed) == expected


def test_lemma_4_alone_fails_for_a_proxy_below_the_next_token():
    draft = rational(5, 3, 2)
    drafter = rule("rheo-half").drafter(ModelPair(alike(draft), alike(draft)), TreeShape(3, 2, 2))
    found = [TreeClass(drawn_tree(*nodes), probability) for probability, nodes in TABLE_1]
    assert {lemma for lemma, holds in check_lemmas(found, drafter, ()).items() if not holds} == {"Lemma 4"}


def test_m_chosen_by_a_fair_coin_breaks_the_product_form_and_is_lossless():
    """The p-free condition is sufficient, not necessary: no verdict but "undecided" is right."""
    from rheo_core import method

    @method
    def mixed(target, draft, prefix, shape, chooser):
        chosen = rule("rheo", lead=0 if chooser.accept(F(1, 2)) else 1)
        return chosen.cycle(target, draft, prefix, shape, chooser).tokens

    found = certify(mixed, alike(rational(1, 2, 3)), alike(rational(3, 2, 1)), TreeShape(2, 2, 3))
    assert (found.lossless, found.every_target) == (True, None)
