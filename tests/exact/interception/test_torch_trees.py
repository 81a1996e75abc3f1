"""Tree verifiers of the EAGLE shape, through the adapter: one of our own, right and with planted faults."""

import random
from fractions import Fraction
from functools import partial
from typing import Any

import pytest

from exact.interception import certify_function, current_chooser, torch_law
from rheo_core import InvalidInput, TreeShape, methods, speculate

torch = pytest.importorskip("torch", reason="torch is not installed (extra `torch`)")

from exact.interception import temperature_processor, tree_verifier  # noqa: E402

pytestmark = pytest.mark.exact
ROWS = {
    (): [0.5, 0.3, 0.2],
    (0,): [0.2, 0.2, 0.6],
    (1,): [0.7, 0.1, 0.2],
    (0, 2): [0.1, 0.8, 0.1],
    (0, 1): [0.3, 0.3, 0.4],
    (1, 0): [0.25, 0.5, 0.25],
}
PATHS = [(0, 2), (0, 1), (1, 0)]


def target(prefix):
    return torch.tensor(ROWS.get(tuple(prefix), [0.4, 0.4, 0.2]), dtype=torch.float64)


def verify(logits, candidates, processor, fault=None):
    """Go down the tree: at each node try the candidates in order as point masses under the renormalised target."""
    paths, width = candidates.shape
    agree = torch.ones(paths, dtype=torch.bool)
    best = 0
    for depth in range(1, width):
        at = int(agree.nonzero()[0])
        row = logits[0 if fault == "row of another node" else at, depth - 1]
        law = (processor(None, row[None])[0] if processor is not None and fault != "unprocessed" else row).softmax(-1)
        accepted = None
        tried = set()
        coin = random.random()
        for path in range(paths):
            token = int(candidates[path, depth])
            if not agree[path] or token < 0 or token in tried:
                continue
            tried.add(token)
            if coin < law[token]:
                accepted = token
                best = path
                break
            law = law.clone()
            if fault != "not zeroed":
                law[token] = 0
            if fault != "not renormalised":
                law = law / law.sum()
            if fault != "one coin":
                coin = random.random()
        if accepted is None:
            return at, depth - 1, law
        agree = agree & (candidates[:, depth] == accepted)
    row = logits[best, width - 1]
    return best, width - 1, (row if processor is None else processor(None, row[None])[0]).softmax(-1)


@pytest.mark.parametrize(
    ("dtype", "most"), [(torch.float64, 1e-15), (torch.float32, 1e-6), (torch.float16, 2e-3), (torch.bfloat16, 1e-2)]
)
def test_a_right_tree_verifier_is_lossless_up_to_the_rounding_of_its_logits(dtype, most):
    cycle = tree_verifier(verify, target, PATHS, dtype=dtype)
    found = certify_function(cycle, target=target, length=3)
    assert found.lossless is True, str(found)
    assert 0 < found.total_variation < most
    assert (found.total_variation_float64 or 0) <= found.bound
    assert {len(tokens) for tokens in found.law} == {3}
    assert {len(tokens) for tokens in dict[Any, Any](torch_law(cycle))} == {1, 2, 3}


@pytest.mark.parametrize("fault", ["row of another node", "not renormalised", "not zeroed", "one coin"])
def test_a_wrong_tree_verifier_is_refuted(fault):
    cycle = tree_verifier(partial(verify, fault=fault), target, PATHS, dtype=torch.float64)
    found = certify_function(cycle, target=target, length=3)
    assert found.verdict == "lossy", fault
    assert found.total_variation > Fraction(1, 100)
    expected = {"row of another node": 2, "not renormalised": 1, "not zeroed": 1, "one coin": 1}
    assert len(found.sequence) == expected[fault]  # where the fault first shows


def test_the_exact_law_of_one_coin_for_all_siblings():
    cycle = tree_verifier(partial(verify, fault="one coin"), target, [(0,), (1,)], dtype=torch.float64)
    first = certify_function(cycle, target=target, length=1).law
    assert [float(first[token,]) for token in range(3)] == pytest.approx([0.5, 0.1, 0.4], abs=1e-15)


def test_a_processor_belongs_to_both_sides():
    def cooled(prefix):
        return (target(prefix).log() / 0.5).softmax(-1)

    def certify(fault):
        cycle = tree_verifier(
            partial(verify, fault=fault),
            target,
            PATHS,
            dtype=torch.float64,
            processor=temperature_processor(0.5),
        )
        return certify_function(cycle, target=cooled, length=3)

    assert certify(None).lossless is True
    assert certify("unprocessed").verdict == "lossy"


def test_paths_of_different_lengths_are_padded():
    def looking(logits, candidates, processor):
        assert (tuple(logits.shape), candidates.tolist()) == ((2, 3, 3), [[2, 0, 2], [2, 1, -1]])
        return verify(logits, candidates, processor)

    found = certify_function(
        tree_verifier(looking, target, [(0, 2), (1,)], prefix=(2,), dtype=torch.float64),
        target=lambda prefix: target((2, *prefix)),
        length=3,
    )
    assert found.lossless is True


def drawn_paths(replacement):
    def paths():
        first = torch.multinomial(torch.tensor([0.5, 0.25, 0.25]), 2, replacement=replacement).tolist()
        return [(token,) for token in first]

    return paths


def test_trees_drawn_at_random_are_averaged_over():
    right = tree_verifier(verify, target, drawn_paths(False), dtype=torch.float64)
    assert certify_function(right, target=target, length=2).lossless is True  # point masses: whatever the draw


def test_a_tree_drafted_by_rheo_core_is_verified_in_torch():
    """The reference drafts through a chooser on the same walk, before any coin of the verifier."""
    p, q = [Fraction(2, 5), Fraction(2, 5), Fraction(1, 5)], [Fraction(1, 2), Fraction(3, 10), Fraction(1, 5)]

    def paths():
        cycle = speculate(
            lambda prefix: p, lambda prefix: q, (), methods["rheo"], TreeShape(2, 1, 2), current_chooser()
        )
        return [(int(token),) for token in cycle.tree.token]

    found = certify_function(tree_verifier(verify, target, paths, dtype=torch.float64), target=target, length=1)
    assert found.lossless is True
    assert len(torch_law(lambda: tuple(paths()))) > 1


def test_a_token_drawn_by_the_verifier_itself():
    def drawing(logits, candidates, processor):
        path, accepted, law = verify(logits, candidates, processor)
        return path, torch.tensor(accepted), torch.multinomial(law, 1)

    found = certify_function(tree_verifier(drawing, target, PATHS, dtype=torch.float64), target=target, length=2)
    assert found.lossless is True


@pytest.mark.parametrize(
    ("paths", "answer", "said"),
    [
        ([], None, "at least one path"),
        ([()], None, "none of them empty"),
        (PATHS, (7, 0), "paths"),
        (PATHS, (0, 3), "length"),
    ],
)
def test_bad_trees_and_answers_raise(paths, answer, said):
    def answering(logits, candidates, processor):
        return (*answer, logits[0, 0].softmax(-1))

    with pytest.raises(InvalidInput, match=said):
        torch_law(tree_verifier(answering, target, paths))
    with pytest.raises(InvalidInput, match="temperature"):
        temperature_processor(0)
