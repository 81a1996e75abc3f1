"""`assert_lossless`: a user's own rule in one line, and the pytest fixture for it."""

import pytest

from exact import assert_lossless as check
from exact.verdict.strategies import model_pairs, pairs, shapes, small_pairs
from rheo_core import InvalidInput, TreeMethod, TreeShape, method, methods, proxies
from rheo_core.verification import algorithm_1
from tests.pairs import alike, rational
from tests.products import shown

pytestmark = pytest.mark.exact
pytest_plugins = ("pytester",)


@method
def chain(target, draft, prefix, shape, chooser):
    """One drafted token, tested against the target."""
    p, q = target(prefix), draft(prefix)
    x = chooser.index(q)
    if chooser.accept(min(1, p[x] / q[x])):
        return [x, chooser.index(target((*prefix, x)))]
    return [chooser.index([max(0, a - b) for a, b in zip(p, q, strict=True)])]


@method
def resamples_from_p(target, draft, prefix, shape, chooser):
    """Planted fault: p instead of the residual."""
    p, q = target(prefix), draft(prefix)
    x = chooser.index(q)
    if chooser.accept(min(1, p[x] / q[x])):
        return [x]
    return [chooser.index(p)]


def residual_dropped(p, tail, candidates, sampled, lead, chooser, at):
    """Planted fault: after the sampled token is rejected the others are tried under p."""
    if sampled != -1 and chooser.accept(min(1, p[candidates[sampled]] / tail[candidates[sampled]])):
        return candidates[sampled], sampled
    rest = [c for i, c in enumerate(candidates) if i != sampled]
    token, child = algorithm_1(p, None, rest, -1, lead, chooser, at)
    return token, candidates.index(token) if child != -1 else -1


@pytest.mark.parametrize("rule", [methods["rheo-rrsw"], algorithm_1, chain], ids=shown)
def test_lossless_rules_pass(rule):
    check(rule, examples=10, shape=TreeShape(2, 2, 3))


def test_a_lossless_rule_passes_on_every_small_shape():
    check("rheo", examples=10)


@pytest.mark.parametrize("name", [name for name, rule in methods.items() if rule.claim == "lossy"])
def test_every_wrong_proxy_is_caught(name):
    with pytest.raises(AssertionError, match="is lossy"):
        check(name, examples=1)


@pytest.mark.parametrize("rule", [resamples_from_p, residual_dropped])
def test_planted_faults_are_caught_with_their_rows(rule):
    with pytest.raises(AssertionError) as caught:
        check(rule)
    said = str(caught.value)
    assert "target() = [" in said
    assert "draft() = [" in said
    assert "right is" in said


@method
def forgets_prefix(target, draft, prefix, shape, chooser):
    """Planted fault: each cycle starts as if the text were empty; one cycle alone cannot show it."""
    return chain.function(lambda context: target(tuple(context)[len(prefix) :]), draft, (), shape, chooser)


@method
def emits_from_q_later(target, draft, prefix, shape, chooser):
    """Planted fault: right on an empty prefix only."""
    return [chooser.index(target(prefix) if not prefix else draft(prefix))]


@pytest.mark.parametrize("rule", [forgets_prefix, emits_from_q_later])
def test_faults_of_the_second_cycle_are_caught(rule):
    with pytest.raises(AssertionError, match="is lossy"):
        check(rule)
    odd = {0: rational(1, 1), 1: rational(1, 2)}
    with pytest.raises(AssertionError, match="is lossy"):
        check(rule, target=lambda prefix: odd[len(prefix) % 2], draft=alike(rational(1, 3)), shape=TreeShape(1, 1, 1))


def deep(depth):
    """A rule that is right above a depth and takes the first candidate from there on."""

    def verify(p, tail, candidates, sampled, lead, chooser, at):
        if len(at[1]) >= depth and candidates:
            return candidates[0], 0
        return algorithm_1(p, tail, candidates, sampled, lead, chooser, at)

    return verify


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_faults_deep_in_the_tree_are_caught(depth):
    with pytest.raises(AssertionError, match="is lossy"):
        check(deep(depth))


def counts_siblings(p, tail, candidates, sampled, lead, chooser, at):
    """Lossless until a tree keeps one candidate here and two there: V1 fails though no small case shows it."""
    if len(candidates) >= 2:
        return algorithm_1(p, tail, candidates, sampled, lead, chooser, at)
    return chooser.index(p), -1


def test_a_rule_without_a_reason_is_refuted_or_warned_of():
    try:
        with pytest.warns(UserWarning, match="fails at"):
            check(counts_siblings, examples=5, shape=TreeShape(2, 2, 3))
    except AssertionError as refuted:
        if "is lossy" not in str(refuted):
            raise


def test_given_models_are_the_ones_that_are_tried():
    p, q = alike(rational(5, 2, 3)), alike(rational(5, 3, 2))
    check("rheo-adhoc", target=p, draft=p, shape=TreeShape(3, 1, 1))
    with pytest.raises(AssertionError, match="P\\(0,\\) is 3/5, right is 1/2"):
        check("rheo-adhoc", target=p, draft=q, shape=TreeShape(3, 1, 2))


def test_a_function_is_held_against_a_law():
    import random

    def coin():
        return random.random() < 0.25

    check(coin, target={True: rational(1, 3)[0], False: rational(1, 3)[1]})
    with pytest.raises(AssertionError, match="not lossless"):
        check(coin, target={True: rational(1, 2)[0], False: rational(1, 2)[1]})


def test_bad_calls_say_what_is_missing():
    with pytest.raises(InvalidInput, match="target"):
        check("rheo", draft=alike(rational(1, 1)))
    with pytest.raises(InvalidInput, match="unless a function"):
        check("rheo", 3)
    with pytest.raises(InvalidInput, match="verify function"):
        check(len)
    with pytest.raises(InvalidInput, match="lead: got 5"):
        check("rheo-raw", lead=5)
    with pytest.raises(InvalidInput, match="examples: got 0"):
        check("rheo", examples=0)
    with pytest.raises(InvalidInput, match="target: got"):
        check("rheo", target=[0.5, 0.5], draft=alike(rational(1, 1)))
    with pytest.raises(InvalidInput, match="that spechub can draft"):
        check("spechub", shape=TreeShape(1, 1, 1))


def test_the_fixture_is_there_once_the_package_is_installed(pytester):
    pytester.makepyfile(
        """
        from rheo_core import TreeMethod, TreeShape, proxies

        def test_mine(assert_lossless):
            assert_lossless("rheo", examples=2, shape=TreeShape(2, 1, 2))

        def test_wrong(assert_lossless):
            assert_lossless(TreeMethod("wrong", None, 1, proxies.RAW), examples=2)
        """
    )
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*AssertionError: wrong m=1 is lossy*"])


def test_strategies_draw_laws_pairs_models_and_shapes():
    from hypothesis import find

    size = 3
    p, q = find(pairs(size), lambda drawn: 0 in drawn[0] and len(set(drawn[1])) == 1)
    assert sum(p) == sum(q) == 1
    assert find(pairs(size), lambda drawn: drawn[0] == drawn[1])
    assert find(pairs(size), lambda drawn: 1 in drawn[1])
    models = find(model_pairs(), lambda drawn: drawn.size == 3 and len(drawn.draft.rows) > 1)
    assert sum(models.draft((0, 1))) == 1
    assert "RowsByPrefix" in repr(models.target)
    shape = find(shapes(), lambda drawn: drawn.depth == 3 and drawn.width == 2)
    assert shape.budget <= 2 + 2 * 4
    assert len(list(small_pairs())) > 8
    assert proxies.RAW.uses_token
    assert isinstance(methods["rheo"], TreeMethod)
