"""Coins as floats really are: the grid of torch's generators, and what rounding does to a coin."""

import random
from fractions import Fraction

import pytest

from exact.interception import Interception, Unsupported, torch_law

torch = pytest.importorskip("torch", reason="torch is not installed (extra `torch`)")

pytestmark = [pytest.mark.exact, pytest.mark.certificate]
P = torch.tensor([0.5, 0.125, 0.375])


def test_races_are_of_ideal_coins():
    races = (lambda: (P / torch.empty_like(P).exponential_()).argmax(), lambda: (torch.rand(3).log() / P).argmax())
    for draw in (*races, lambda: torch.rand(3).argmax().item(), lambda: torch.rand(3).argsort()):
        with pytest.raises(Unsupported, match="grid"):
            Interception(coins="grid").law(draw)


@pytest.mark.parametrize(
    ("dtype", "zero"),
    [
        ("float32", Fraction(1, 2**24)),
        ("float64", Fraction(1, 2**53)),
        ("float16", Fraction(1, 2**12) + Fraction(1, 2**24)),
        ("bfloat16", Fraction(1, 2**9) + Fraction(1, 2**24)),
    ],
)
def test_on_the_grid_a_token_of_probability_zero_is_accepted_with_the_mass_of_coin_zero(dtype, zero):
    kind = getattr(torch, dtype)
    grid = Interception(coins="grid")
    assert grid.law(lambda: bool(torch.rand((), dtype=kind) <= 0))[True] == zero
    assert grid.law(lambda: bool(torch.rand((), dtype=kind) < 0)) == {False: 1}
    assert grid.law(lambda: bool(torch.rand((), dtype=kind) < 1)) == {True: 1}


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_the_grid_of_a_narrow_type_is_that_of_the_real_generator(dtype):
    torch.manual_seed(3)
    narrow = torch.rand(5000, dtype=dtype)
    torch.manual_seed(3)
    wide = torch.rand(5000).to(dtype)
    assert bool((narrow == torch.where(wide == 1, 0, wide)).all())  # what the session assumes
    every = torch.arange(2**24, dtype=torch.float64) / 2**24
    coins = every.to(torch.float32).to(dtype).double()
    coins = torch.where(coins == 1, 0.0, coins)
    grid = Interception(coins="grid")
    for edge in (2.0**-20, 0.1, 0.25, 0.999):
        for act in (torch.lt, torch.le):
            edge_in_type = torch.tensor(edge, dtype=dtype)
            law = grid.law(lambda act=act, edge=edge_in_type: bool(act(torch.rand((), dtype=dtype), edge)))
            assert law.get(True, 0) == Fraction(int(act(coins, edge_in_type.double()).sum()), 2**24)


def test_a_coin_rounded_to_a_narrower_type_is_rounded_as_torch_rounds():
    coins = (torch.arange(2**24, dtype=torch.float64) / 2**24).to(torch.float32)
    grid = Interception(coins="grid")
    for scale, shift in ((-3, 1), (1000, -0.5)):
        rounded = (scale * coins.double() + shift).to(torch.float16).double()
        for edge in (-0.0626, 0.0, 0.1, 700.2):
            for act in (torch.lt, torch.le):

                def program(act=act, edge=edge, scale=scale, shift=shift):
                    wide = torch.rand(()).double() * scale + shift
                    return bool(act(wide.half().double(), edge))

                assert grid.law(program).get(True, 0) == Fraction(int(act(rounded, edge).sum()), 2**24)


def test_a_python_coin_against_a_tensor_is_rounded_on_the_grid_only():
    threshold = torch.tensor(0.1)
    for compared in (lambda: bool(random.random() < threshold), lambda: bool(threshold > random.random())):
        assert torch_law(compared)[True] == Fraction(float(threshold))
        below = torch.nextafter(threshold, torch.tensor(0.0))
        middle = (Fraction(float(threshold)) + Fraction(float(below))) / 2
        assert abs(Interception(coins="grid").law(compared)[True] - middle) <= Fraction(1, 2**53)
    for act in (lambda u: 1 - u, lambda u: threshold * u / threshold, lambda u: (u - 1) / -1 + 0 * threshold):
        law = torch_law(lambda act=act: bool(act(random.random()) < torch.tensor([0.25])))
        assert law == {True: Fraction(1, 4), False: Fraction(3, 4)}
