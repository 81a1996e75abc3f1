"""Every random call of torch against the law it has by definition, and what is refused by name."""

import itertools
import math
import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

import exact
from exact.interception import Unsupported, current_chooser, torch_law

torch = pytest.importorskip("torch", reason="torch is not installed (extra `torch`)")
pytestmark = pytest.mark.exact
P = torch.tensor([0.5, 0.125, 0.375])
ROWS = torch.tensor([[0.5, 0.5, 0.0], [0.25, 0.25, 0.5]])


def fractions(*values):
    return [Fraction(value) for value in values]


def test_the_public_name():
    assert exact.torch_law is torch_law
    assert torch_law(lambda: bool(torch.rand(()) < 0.25)) == {True: Fraction(1, 4), False: Fraction(3, 4)}


@pytest.mark.parametrize(
    "draw",
    [
        lambda: torch.rand(2),
        lambda: torch.rand((2,)),
        lambda: torch.rand(size=(2,), dtype=torch.float64),
        lambda: torch.rand(1, 2)[0],
        lambda: torch.rand_like(P[:2]),
        lambda: torch.empty(2).uniform_(),
        lambda: torch.empty(2).uniform_(0, 1),
        lambda: torch.empty(2, dtype=torch.bfloat16).uniform_(),
        lambda: torch.empty(2).uniform_(2, 4) / 2 - 1,
        lambda: 1 - torch.rand(2),
        lambda: torch.stack([torch.rand(()), torch.rand(())]),
        lambda: torch.cat([torch.rand(1), torch.rand(1)]),
        lambda: torch.rand(4)[[0, 3]],
        lambda: torch.rand(3, generator=torch.Generator().manual_seed(3))[1:],
        lambda: torch.rand(2, 2).view(-1)[:2].clone().detach().contiguous(),
        lambda: torch.rand(2).to(torch.float64).clamp(min=0.0, max=1.0),
        lambda: torch.where(torch.tensor([True, False]), torch.rand(2), torch.rand(2)),
        lambda: torch.rand(2).exp().log(),
        lambda: torch.tensor([random.random(), random.random()]),
        lambda: torch.as_tensor(np.random.rand(2)),
        lambda: torch.from_numpy(np.random.default_rng().random((1, 2)))[0],
        lambda: torch.rand(2).masked_fill(torch.rand(2).isnan(), 2.0),
    ],
)
def test_two_uniforms_in_many_forms(draw):
    law = torch_law(lambda: draw() < torch.tensor([0.5, 0.25]))
    expected = {
        (a, b): Fraction(1, 2) * Fraction(1 if b else 3, 4) for a, b in itertools.product([True, False], repeat=2)
    }
    assert law == expected


@pytest.mark.parametrize(
    ("draw", "expected"),
    [
        (lambda: torch.multinomial(P, 1).item(), dict(enumerate(fractions(0.5, 0.125, 0.375)))),
        (lambda: P.multinomial(num_samples=1).item(), dict(enumerate(fractions(0.5, 0.125, 0.375)))),
        (lambda: torch.multinomial(8 * P, 1).item(), dict(enumerate(fractions(0.5, 0.125, 0.375)))),
        (
            lambda: torch.multinomial(ROWS, 1)[:, 0],
            {(i, j): Fraction(1, 2) * ROWS[1, j].item() for i in (0, 1) for j in (0, 1, 2)},
        ),
        (
            lambda: torch.multinomial(P, 2, replacement=True),
            {(i, j): Fraction((P[i] * P[j]).item()) for i in range(3) for j in range(3)},
        ),
        (
            lambda: torch.multinomial(P, 2),
            {
                (i, j): Fraction(P[i].item()) * Fraction(P[j].item()) / (1 - Fraction(P[i].item()))
                for i, j in itertools.permutations(range(3), 2)
            },
        ),
        (lambda: int(torch.bernoulli(torch.tensor(0.25))), {1: Fraction(1, 4), 0: Fraction(3, 4)}),
        (lambda: int(torch.empty(()).bernoulli_(0.25)), {1: Fraction(1, 4), 0: Fraction(3, 4)}),
        (lambda: int(torch.bernoulli(torch.zeros(()), 0.25)), {1: Fraction(1, 4), 0: Fraction(3, 4)}),
        (lambda: torch.randint(3, (1,)).item(), {k: Fraction(1, 3) for k in range(3)}),
        (lambda: torch.randint(low=2, high=4, size=()).item(), {k: Fraction(1, 2) for k in (2, 3)}),
        (lambda: torch.empty((), dtype=torch.long).random_(3).item(), {k: Fraction(1, 3) for k in range(3)}),
        (lambda: torch.randperm(3), {order: Fraction(1, 6) for order in itertools.permutations(range(3))}),
        (lambda: torch.rand(3).argsort(), {order: Fraction(1, 6) for order in itertools.permutations(range(3))}),
        (lambda: int(torch.rand(()) * 4), {k: Fraction(1, 4) for k in range(4)}),
        (lambda: (torch.rand(()) * 4).long().item(), {k: Fraction(1, 4) for k in range(4)}),
        (lambda: (torch.rand(()) * 4).floor().item() == 2, {True: Fraction(1, 4), False: Fraction(3, 4)}),
    ],
)
def test_draws_have_their_law(draw, expected):
    assert torch_law(draw) == expected


INVERSES = [
    lambda: torch.searchsorted(P.cumsum(0), torch.rand(1))[0].item(),
    lambda: torch.searchsorted(P.cumsum(0), torch.rand(()), right=True).item(),
    lambda: torch.bucketize(torch.rand(()), P.cumsum(0)).item(),
    lambda: (P.cumsum(0) <= torch.rand(())).sum().item(),
    lambda: (torch.rand(()) < P.cumsum(0)).int().argmax().item(),
    lambda: (P.cumsum(0) - torch.rand(()) > 0).nonzero()[0].item(),
]
RACES = [
    lambda: (P / torch.empty_like(P).exponential_()).argmax().item(),
    lambda: P.clone().div_(torch.empty_like(P).exponential_()).argmax(dim=-1).item(),
    lambda: (torch.empty_like(P).exponential_(1.5) / P).argmin().item(),
    lambda: (-torch.rand(3).log() / P).argmin().item(),
    lambda: (torch.rand(3).log() / P).argmax().item(),
    lambda: (torch.log1p(-torch.rand(3)) / P).max(0).indices.item(),
    lambda: torch.topk(P / torch.empty_like(P).exponential_(), 1).indices.item(),
    lambda: (P / torch.empty(1, 3).exponential_()).sort(descending=True).indices[0, 0].item(),
]
GUMBELS = [
    lambda: (P.log() - torch.empty_like(P).exponential_().log()).argmax().item(),
    lambda: ((P.log() - torch.log(-torch.log(torch.rand(3)))) / 0.5).argmax().item(),
    lambda: torch.nn.functional.gumbel_softmax(P.log(), hard=True).argmax().item(),
]


@pytest.mark.parametrize("draw", INVERSES + RACES)
def test_a_draw_by_inverse_cdf_or_by_a_race_is_the_draw_by_weights(draw):
    assert torch_law(draw) == dict(enumerate(fractions(0.5, 0.125, 0.375)))


@pytest.mark.parametrize("draw", GUMBELS)
def test_gumbel_noise_weighs_by_the_exponential_of_the_float_logits(draw):
    law = torch_law(draw)
    weights = [math.exp(x) for x in P.log().tolist()]
    for token, weight in enumerate(weights):
        assert abs(float(law[token]) - weight / sum(weights)) < 1e-15
    assert sum(law.values()) == 1


def test_the_best_of_a_race_come_without_replacement():
    law = torch_law(lambda: torch.topk(P / torch.empty_like(P).exponential_(), 2).indices)
    assert law == torch_law(lambda: torch.multinomial(P, 2))


def test_a_zero_weight_never_wins_a_race_and_all_zero_gives_the_first():
    weights = torch.tensor([0.0, 0.5, 0.5])
    assert torch_law(lambda: (weights / torch.empty_like(P).exponential_()).argmax().item()) == {
        1: Fraction(1, 2),
        2: Fraction(1, 2),
    }
    assert torch_law(lambda: (torch.zeros(3) / torch.empty(3).exponential_()).argmax().item()) == {0: 1}


def test_thresholds_count_in_the_type_that_torch_compares_in():
    single, double = Fraction(float(torch.tensor(0.1))), Fraction(0.1)
    assert torch_law(lambda: bool(torch.rand(()) < 0.1))[True] == single  # torch casts the number to float32
    assert torch_law(lambda: bool(torch.rand((), dtype=torch.float64) < 0.1))[True] == double
    assert torch_law(lambda: torch.rand(()).item() < 0.1)[True] == double
    half = torch.tensor(0.1, dtype=torch.float16)
    assert torch_law(lambda: bool(torch.rand(()) < half))[True] == Fraction(float(half))
    for kind in (torch.float16, torch.bfloat16):
        narrow = torch.tensor(0.1, dtype=kind)
        law = torch_law(lambda kind=kind: bool(torch.rand((), dtype=kind) < 0.1))
        assert law[True] == Fraction(float(narrow))
        assert not bool(narrow < 0.1)  # torch rounds the number to the narrow type as well


def test_assignments_views_and_masks_carry_uniforms():
    def program():
        coins = torch.zeros(3)
        coins[0] = torch.rand(())
        coins[1:] = torch.rand(2)
        view = coins.view(3, 1)[1]
        view.mul_(2)
        coins = coins.masked_fill(torch.tensor([False, False, True]), 0.0)
        return coins < 0.5

    quarter = {True: Fraction(1, 4), False: Fraction(3, 4)}
    assert torch_law(program) == {
        (a, b, True): Fraction(1, 2) * quarter[b] for a, b in itertools.product([True, False], repeat=2)
    }


def test_seeds_given_twice_give_the_same_numbers():
    def one_seed():
        first = torch.rand(2, generator=torch.Generator().manual_seed(0)) < 0.5
        second = torch.rand(2, generator=torch.Generator().manual_seed(0)) < 0.5
        return bool((first == second).all())

    def global_seed():
        torch.manual_seed(7)
        first = torch.multinomial(P, 1).item()
        torch.manual_seed(7)
        return first == torch.multinomial(P, 1).item()

    def no_seed():
        first = torch.rand(2, generator=torch.Generator()) < 0.5
        return bool((first == (torch.rand(2, generator=torch.Generator()) < 0.5)).all())

    assert torch_law(one_seed) == torch_law(global_seed) == {True: 1}
    assert torch_law(no_seed) == {True: 1}  # torch starts every generator from one default seed


def test_tensors_in_results_become_nested_tuples():
    law = torch_law(lambda: {"a": torch.ones(1, 2), "b": [torch.tensor(3), None, "x"]})
    assert law == {(("a", ((1.0, 1.0),)), ("b", (3, None, "x"))): 1}


def test_a_chooser_on_the_same_walk():
    law = torch_law(lambda: (current_chooser().index([1, 3]), bool(torch.rand(()) < 0.5)))
    assert law[1, True] == Fraction(3, 8)


def test_views_made_before_do_not_miss_what_is_written():
    def of_a_uniform():
        coins = torch.rand(3)
        known, view = coins.masked_fill(torch.tensor([True, True, True]), 0.0), coins[1:]
        coins.mul_(2)
        coins[0] = 1.0
        first = coins[0]
        coins[0] = torch.rand(())
        return bool(view[0] < 1), bool(known.sum() == 0), bool(first < 0.25)

    law = torch_law(of_a_uniform)
    assert law == {
        (a, True, b): Fraction(1, 2) * Fraction(1 if b else 3, 4) for a in (True, False) for b in (True, False)
    }

    def of_a_plain_tensor():
        coins = torch.zeros(3)
        view = coins[1]
        coins[1] = torch.rand(())
        return bool(view < 0.5)

    with pytest.raises(Unsupported, match="shares its numbers"):
        torch_law(of_a_plain_tensor)


def test_keyed_random_are_iterated_expanded_and_shown():
    def program():
        coins = torch.rand(2)
        assert "uniforms" in f"{coins} {coins[0]!r}"
        assert f"{coins[0].item():.3f}"
        assert not hasattr(coins[0].item(), "shape")
        shaped = torch.zeros(2, 2).expand_as(coins.expand(2, 2)).sum().item()
        return [bool(coin < 0.5) for coin in coins], shaped, (coins.expand(2, 2) < 0.5).tolist()[1]

    assert torch_law(program) == {
        ((a, b), 0.0, (a, b)): Fraction(1, 4) for a, b in itertools.product([True, False], repeat=2)
    }


@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
def test_real_draws_have_the_law(kind):
    """The unmodified function on the real generator, against its exact law, and against a law that is wrong by 1/20."""

    def function():
        x = torch.multinomial(P, 1).item()
        return x if torch.rand((), dtype=kind) < 0.5 else int(torch.rand((), dtype=kind) * 3)

    torch.manual_seed(0)
    n = 4000
    counts: dict[Any, int] = {}
    for _ in range(n):
        result = function()
        counts[result] = counts.get(result, 0) + 1
    law: dict[Any, Fraction] = dict(torch_law(function))

    def statistic(expected):
        return sum((counts[x] - n * float(expected[x])) ** 2 / (n * float(expected[x])) for x in law)

    threshold = stats.chi2.isf(1e-4, df=2)
    assert statistic(law) < threshold
    wrong = dict(law)
    wrong[0], wrong[1] = law[0] - Fraction(1, 20), law[1] + Fraction(1, 20)
    noncentrality = n * sum(float((law[x] - wrong[x]) ** 2 / wrong[x]) for x in law)
    assert stats.ncx2.sf(threshold, 2, noncentrality) > 0.9999  # the power against this fault
    assert statistic(wrong) > threshold
