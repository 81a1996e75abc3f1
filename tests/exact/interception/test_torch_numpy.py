"""`random` and NumPy, unmodified: the law of every call that is followed, and what is refused by name."""

import bisect
import functools
import itertools
import math
import operator
import random
import subprocess
import sys
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from exact.interception import Interception, Unsupported, torch_law
from rheo_core import InvalidInput

pytestmark = pytest.mark.exact
P = [0.5, 0.125, 0.375]
CDF = list(itertools.accumulate(P))
BY_WEIGHT = dict(enumerate(map(Fraction, P)))
THIRDS = {k: Fraction(1, 3) for k in range(3)}
ORDERS = {order: Fraction(1, 6) for order in itertools.permutations(range(3))}


BoundClass, BoundRandom = np.random.Generator, random.Random


class Unread:
    GENERATOR = 0


def shuffled(shuffle, x):
    shuffle(x)
    return x


@pytest.mark.parametrize(
    ("draw", "expected"),
    [
        (lambda: random.choices(range(3), P)[0], BY_WEIGHT),
        (lambda: random.choices(range(3), cum_weights=CDF)[0], BY_WEIGHT),
        (lambda: random.choices(range(3), weights=np.array(P).tolist())[0], BY_WEIGHT),
        (lambda: bisect.bisect(CDF, random.random()), BY_WEIGHT),
        (lambda: next(i for i, c in enumerate(CDF) if random.random() < 2 or c), {0: 1}),
        (lambda: int(random.random() * 3), THIRDS),
        (lambda: int(random.uniform(0, 3)), THIRDS),
        (lambda: random.randrange(3), THIRDS),
        (lambda: random.randint(0, 2), THIRDS),
        (lambda: random.choice([0, 1, 2]), THIRDS),
        (lambda: random.getrandbits(1), {0: Fraction(1, 2), 1: Fraction(1, 2)}),
        (lambda: tuple(random.sample(range(3), 3)), ORDERS),
        (lambda: tuple(shuffled(random.shuffle, [0, 1, 2])), ORDERS),
        (lambda: random.Random(3).randrange(3), THIRDS),
        (lambda: np.random.choice(3, p=P), BY_WEIGHT),
        (lambda: np.random.choice(3, size=(1, 1), p=P)[0, 0], BY_WEIGHT),
        (lambda: np.random.choice([0, 1, 2]), THIRDS),
        (lambda: np.searchsorted(CDF, np.random.rand(), side="right"), BY_WEIGHT),
        (lambda: np.searchsorted(np.array(CDF), np.random.random_sample(1))[0], BY_WEIGHT),
        (lambda: int((np.cumsum(P) <= np.random.rand()).sum()), BY_WEIGHT),
        (lambda: int(np.argmax(np.random.rand() < np.cumsum(P))), BY_WEIGHT),
        (lambda: np.random.multinomial(1, P).argmax(), BY_WEIGHT),
        (lambda: np.random.randint(3), THIRDS),
        (lambda: np.random.randint(0, 3, size=2)[0], THIRDS),
        (lambda: np.random.permutation(3), ORDERS),
        (lambda: shuffled(np.random.shuffle, np.arange(3)), ORDERS),
        (lambda: np.random.default_rng().choice(3, p=P), BY_WEIGHT),
        (lambda: np.random.default_rng(5).choice(3, p=P), BY_WEIGHT),
        (lambda: np.random.default_rng().integers(0, 2, endpoint=True), THIRDS),
        (lambda: tuple(np.random.default_rng().choice(3, size=3, replace=False)), ORDERS),
        (lambda: np.random.default_rng().permutation([0, 1, 2]), ORDERS),
        (lambda: np.random.RandomState(1).choice(3, p=P), BY_WEIGHT),
        (lambda: np.random.default_rng().binomial(1, 0.25), {1: Fraction(1, 4), 0: Fraction(3, 4)}),
        (lambda: bool(np.random.uniform(1, 3) < 1.5), {True: Fraction(1, 4), False: Fraction(3, 4)}),
        (lambda: bool(np.random.default_rng().random() < np.float32(0.1)), {True: Fraction(float(np.float32(0.1)))}),
        (lambda: bool(np.float64(0.25) > random.random()), {True: Fraction(1, 4), False: Fraction(3, 4)}),
        (lambda: bool(np.asarray(np.random.rand(2))[0] < 0.25), {True: Fraction(1, 4), False: Fraction(3, 4)}),
        (lambda: bool(np.exp(np.log(np.random.rand())) < 0.25), {True: Fraction(1, 4), False: Fraction(3, 4)}),
        (lambda: bool(math.exp(math.log(random.random())) < 0.25), {True: Fraction(1, 4), False: Fraction(3, 4)}),
        (lambda: isinstance(np.random.default_rng(), np.random.Generator), {True: 1}),
        (lambda: isinstance(random.Random(), random.Random), {True: 1}),
        (lambda: isinstance(np.random.default_rng(), BoundClass), {True: 1}),
        (lambda: BoundRandom(1).randrange(3), THIRDS),
        (lambda: [Unread.GENERATOR, random.randrange(3)][1], THIRDS),
    ],
)
def test_draws_have_their_law(draw, expected):
    law = torch_law(draw)
    assert {key: law[key] for key in expected} == expected
    assert sum(law.values()) == 1


def test_arrays_of_uniforms_are_compared_one_by_one():
    law = torch_law(lambda: (np.random.default_rng().random((1, 2)) * np.array([2, 1]) < 0.5).tolist())
    assert law[((True, True),)] == Fraction(1, 8)
    assert law == torch_law(lambda: (np.random.rand(1, 2) / [0.5, 1] <= 0.5).tolist())


def test_weighted_draws_without_replacement():
    law = torch_law(lambda: np.random.choice(3, size=2, replace=False, p=P))
    p = list(map(Fraction, P))
    assert law == {(i, j): p[i] * p[j] / (1 - p[i]) for i, j in itertools.permutations(range(3), 2)}


def test_seeds_given_twice_give_the_same_numbers():
    def numpy():
        first = np.random.default_rng(1).random(2) < 0.5
        return bool((first == (np.random.default_rng(1).random(2) < 0.5)).all())

    def legacy():
        np.random.seed(0)
        first = np.random.rand() < 0.5
        np.random.seed(0)
        return bool(first == (np.random.rand() < 0.5))

    def standard():
        random.seed(0)
        first = random.random() < 0.5
        random.seed(0)
        return bool(first == (random.random() < 0.5))

    assert torch_law(numpy) == torch_law(legacy) == torch_law(standard) == {True: 1}


def test_a_seed_given_twice_with_other_calls_is_refused():
    def program():
        np.random.default_rng(1).random()
        return np.random.default_rng(1).integers(3)

    with pytest.raises(Unsupported, match="seed used twice"):
        torch_law(program)


GENERATOR = np.random.default_rng(0)
BOUND = random.random
BOUND_GENERATOR = np.random.default_rng
BOUND_METHOD = GENERATOR.random
INSTANCE = random.Random(0)


class Holder:
    def __init__(self):
        self.rng = random.Random(0)


HOLDERS = [Holder()]


class Owner:
    rng = np.random.default_rng(0)


def helper():
    return GENERATOR.random()


def bound_in_a_default(make=np.random.default_rng):
    return make().random() < 0.5


def made_in_a_closure():
    make = np.random.default_rng
    return lambda: make().random() < 0.5


def with_default(rng=GENERATOR):
    return rng.random() < 0.5


def closure():
    rng = np.random.default_rng(0)
    return lambda: rng.random() < 0.5


@pytest.mark.parametrize(
    ("function", "arguments", "named"),
    [
        (lambda: GENERATOR.random() < 0.5, (), "Generator.*GENERATOR"),
        (lambda: BOUND() < 0.5, (), "Random.random.*BOUND"),
        (lambda: BOUND_GENERATOR().random() < 0.5, (), "default_rng.*BOUND_GENERATOR"),
        (lambda: BOUND_METHOD() < 0.5, (), "Generator.random.*BOUND_METHOD"),
        (lambda: INSTANCE.random() < 0.5, (), "Random.*INSTANCE"),
        (lambda: HOLDERS[0].rng.random() < 0.5, (), "Random.random.*made before"),
        (lambda: HOLDERS[0].rng.choice([1, 2]), (), "Random.getrandbits.*made before"),
        (lambda rng: rng.random() < 0.5, (np.random.default_rng(0),), "Generator.*argument 1"),
        (lambda rng: rng.rand() < 0.5, (np.random.RandomState(0),), "RandomState.*argument 1"),
        (lambda rng: rng.random() < 0.5, (random.Random(0),), "Random.*argument 1"),
        (with_default, (), "Generator.*default 1"),
        (lambda: helper() < 0.5, (), "Generator.random.*`GENERATOR` of"),
        (lambda: Owner().rng.random() < 0.5, (), "Generator.random.*`Owner.rng`"),
        (bound_in_a_default, (), "default_rng.*default 1"),
        (made_in_a_closure(), (), "default_rng.*`make`"),
        (functools.partial(with_default, rng=INSTANCE), (), "Random.*argument `rng`"),
        (lambda rngs: rngs[0].random() < 0.5, ([INSTANCE],), r"Random.*argument 1\[0\]"),
        (closure(), (), "Generator.*`rng`"),
        (lambda holder: holder.rng.random() < 0.5, (Holder(),), "Random.*argument 1, `rng`"),
        (GENERATOR.random, (), "Generator"),
        (lambda: random.gauss(0, 1), (), "random.gauss"),
        (lambda: random.betavariate(1, 1), (), "random.betavariate"),
        (lambda: random.SystemRandom().random(), (), "SystemRandom"),
        (lambda: np.random.randn(), (), "randn"),
        (lambda: np.random.normal(), (), "normal"),
        (lambda: np.random.default_rng().beta(1, 1), (), "beta"),
        (lambda: np.random.Generator(np.random.PCG64(3)).random(), (), "numpy.random.PCG64"),
        (lambda: np.random.default_rng().binomial(2, 0.5), (), "binomial"),
        (lambda: np.random.rand(2).sum(), (), r"`\+`"),
        (lambda: np.sqrt(np.random.rand()), (), "sqrt"),
        (lambda: np.random.rand(2).astype(float), (), "float"),
        (lambda: np.arctan2(np.random.rand(2), 1), (), "arctan2"),
        (lambda: operator.and_(random.random(), 1), (), "&"),
        (lambda: math.sqrt(random.random()), (), "float"),
        (lambda: sorted([random.random(), random.random()]), (), "`<`"),
        (lambda: [0, 1, 2].__getitem__(random.random()), (), "index"),  # type: ignore[call-overload]
        (lambda: random.getrandbits(64), (), "getrandbits"),
        (lambda: random.random(), (), "result"),
    ],
)
def test_what_is_not_followed_is_refused_by_name(function, arguments, named):
    with pytest.raises(Unsupported, match=named) as error:
        torch_law(function, *arguments)
    assert error.value.line == "the return value" or "test_torch_numpy.py:" in error.value.line or "Generator" in named


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda: random.choices([0, 1], [0.5, math.nan]), "non-negative"),
        (lambda: random.choices([0, 1], [-1, 2]), "non-negative"),
        (lambda: random.choices([0, 1], [0, 0]), "positive sum"),
        (lambda: np.random.choice(2, p=[0.5, 0.4]), "sum to 1"),
        (lambda: np.random.choice(2, p=[1.5, -0.5]), "non-negative"),
        (lambda: random.random() < math.nan, "NaN"),
    ],
)
def test_numbers_that_no_draw_can_use_raise(function, said):
    with pytest.raises(InvalidInput, match=said) as error:
        torch_law(function)
    assert "test_torch_numpy.py:" in str(error.value)


def test_everything_is_put_back_and_real_draws_are_untouched():
    random.seed(1)
    np.random.seed(1)
    first = random.random(), np.random.rand()
    random.seed(1)
    np.random.seed(1)
    names = {name: getattr(random, name) for name in dir(random)} | {n: getattr(np.random, n) for n in dir(np.random)}
    logarithm = math.log
    torch_law(lambda: random.random() < 0.5 and np.random.rand() < 0.5)
    with pytest.raises(Unsupported):
        torch_law(lambda: np.random.rand(2).sum())
    after = {name: getattr(random, name) for name in dir(random)} | {n: getattr(np.random, n) for n in dir(np.random)}
    assert all(names[name] == after[name] for name in names)
    assert math.log is logarithm
    assert (random.random(), np.random.rand()) == first
    assert 0 <= INSTANCE.random() < 1


def test_between_outcomes_the_libraries_are_as_they_are():
    for _ in Interception().outcomes(lambda: random.random() < 0.5):
        assert isinstance(random.random(), float)
        assert isinstance(np.random.rand(), float)


def test_a_generator_kept_from_a_law_is_refused_afterwards():
    kept: list[Any] = []
    sys.kept = kept  # type: ignore[attr-defined]
    torch_law(lambda: sys.kept.append(np.random.default_rng()))  # type: ignore[attr-defined]
    del sys.kept  # type: ignore[attr-defined]
    with pytest.raises(Unsupported, match="a law that has been taken"):
        kept[0].random()


def test_torch_is_not_imported_for_code_without_it():
    code = (
        "import random, sys; from exact.interception import torch_law;"
        "print(torch_law(lambda: random.random() < 0.25)[True], 'torch' in sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.split() == ["1/4", "False"]
