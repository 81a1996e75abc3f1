"""The exact law of a method's first tokens, for the tests: by classes, and by replay of the whole program."""

from fractions import Fraction

from exact import law
from exact.enumeration.cycle_law import cycle_law, joint_law
from exact.enumeration.rationals import rational_models
from rheo_core import ModelPair, find_method, speculate


def emitted_law(method, target, draft, shape, prefix=(), ids=None):
    """The law of what one cycle emits, by classes where the method has them."""
    found, _ = cycle_law(find_method(method), ModelPair(target, draft, ids), prefix, shape)
    return {tokens: Fraction(int(mass.numerator), int(mass.denominator)) for tokens, mass in found.items()}


def replayed_law(method, target, draft, shape, prefix=(), ids=None, limit=None):
    """The same by replay of `speculate`: the oracle."""
    return law(lambda chooser: speculate(target, draft, prefix, method, shape, chooser, ids=ids).tokens, limit=limit)


def text_law(method, target, draft, shape, length, prefix=(), ids=None):
    """The joint law of the first `length` tokens, one cycle continued from the target."""
    pair = rational_models(ModelPair(target, draft, ids))
    emitted, _ = cycle_law(find_method(method), pair, prefix, shape)
    return joint_law(emitted, pair.p, length, prefix)


def first_token(method, target, draft, shape, ids=None):
    """The law of the first token as a list over the vocabulary."""
    return as_row(text_law(method, target, draft, shape, 1, ids=ids), len(target(())))


def as_row(found, size):
    """A law of sequences of one token as a list over the vocabulary."""
    return [found.get((token,), Fraction(0)) for token in range(size)]


def total_variation(one, other):
    """Half the sum of absolute differences of two laws."""
    return sum(abs(one.get(key, Fraction(0)) - other.get(key, Fraction(0))) for key in {*one, *other}) / 2
