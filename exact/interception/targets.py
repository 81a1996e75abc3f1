"""What is right for a function, and what its results are: targets and results read as distributions of token ids."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Any, cast

import numpy as np

from exact.enumeration import whole_rows
from exact.enumeration.cycle_law import Comparison, compare, early_end, joint_law
from exact.enumeration.rationals import exact, exact_law, exact_row, fraction
from exact.enumeration.whole_rows import Spread, WholeRow, add_row, spread
from exact.interception.function_certificate import Law
from exact.interception.symbolic_maps import FLOAT_TYPES
from exact.interception.torch_law import Interception, frozen
from exact.interception.whole_results import WholeResult
from rheo_core import InvalidInput, ModelPair
from rheo_core.checks import check_count, check_law

Target = Any
"""A law by result, a row [V], a function that samples it, or with a length a model, target(prefix) -> row."""
EPS64 = Fraction(1, 2**52)


def renamed(outcomes: Iterable[tuple[Any, Any]], name: Callable[[Any], Hashable]) -> Law:
    """A law from (result, weight), with results renamed and equal ones added up."""
    masses: dict[Hashable, Any] = {}
    for result, weight in outcomes:
        key = name(result)
        masses[key] = masses.get(key, 0) + weight
    return {result: fraction(mass) for result, mass in masses.items()}


def check_target(target: Target, length: int | None) -> None:
    """Raise where a target and a length do not go together, before anything is run."""
    if length is not None:
        check_count("length", length, 1)
        if not callable(target):
            raise InvalidInput("target", target, "a function of the prefix, where a length is given")
    elif not callable(target) and not isinstance(target, Mapping):
        _row(target)


def check_result(result: Hashable, target: Target, length: int | None) -> None:
    """Raise on a result that cannot be compared: called on each as it comes, so that the first one refuses at once."""
    if length is not None:
        if not _sequence(result):
            raise InvalidInput("result", result, "at least one token, where a length is given")
    elif not callable(target) and not isinstance(target, Mapping):
        _one_token(result)


def is_short(result: Hashable, length: int | None) -> bool:
    """Whether a result has fewer tokens than the length, so that it is continued from the target."""
    return length is not None and len(_sequence(result)) < length


def early_result(
    short: Collection[Hashable], target: Target, length: int | None, how: Interception
) -> tuple[int, ...] | None:
    """The shortest of some short results that ends where the target goes on; None without one."""
    if length is None or not callable(target):
        return None
    return early_end(dict.fromkeys(map(_sequence, short), 1), _Model(target, how), length)


def compared(
    law: Law, target: Target, length: int | None, how: Interception, args: Any, kwargs: Any
) -> tuple[Law, Law, float, int]:
    """The law and the right law over the same kind of results; how coarse the target's own rows are (0: not), and V."""
    if length is not None:
        model = _Model(target, how)
        emitted = _emitted(law)
        if isinstance(emitted, Spread) and len(model(())) ** length > whole_rows.LISTED:
            return emitted, TextLaw(model, length), model.eps, model.vocabulary  # type: ignore[return-value]
        text = joint_law(dict(emitted), model, length)
        return dict(text.items()), dict(joint_law({(): 1}, model, length).items()), model.eps, model.vocabulary
    law = _listed(law)
    if callable(target):
        return law, how.law(target, *args, **kwargs), 0, 0
    if isinstance(target, Mapping):
        return law, _given(target), 0, 0
    row = _row(target)
    right: Law = {token: fraction(p) for token, p in enumerate(row) if p}
    return renamed(law.items(), _one_token), right, _coarseness(target), len(row)


def _emitted(law: Law) -> Mapping[tuple[int, ...], Any]:
    """The tokens of results, kept in rows where the row stands for the last one."""
    plain: dict[tuple[int, ...], Any] = {}
    rows: dict[tuple[int, ...], list[tuple[Any, WholeRow]]] = {}
    for result, mass in law.items():
        if isinstance(result, WholeResult):
            first, second = _sequence(result.placed(0)), _sequence(result.placed(1))
            if first[:-1] == second[:-1]:
                add_row(rows, first[:-1], exact(mass), result.row)
                continue
        for each, weight in _listed({result: mass}).items():
            plain[_sequence(each)] = plain.get(_sequence(each), 0) + exact(weight)
    return spread(plain, rows)


def _listed(law: Law) -> Law:
    """A law with every result written out; raises `InvalidInput` where they are too many."""
    most = sum(len(result.row.support) for result in law if isinstance(result, WholeResult))
    if most > whole_rows.LISTED:
        raise InvalidInput("distribution", f"{most:,} results", f"at most {whole_rows.LISTED:,} to list them")
    if not most:
        return law
    return renamed(((each, mass * share) for result, mass in law.items() for each, share in _results(result)), _itself)


def _results(result: Any) -> Iterable[tuple[Any, Any]]:
    if not isinstance(result, WholeResult):
        return [(result, 1)]
    return ((result.placed(token), result.row.share(token)) for token in result.row.support)


def _itself(result: Hashable) -> Hashable:
    return result


class TextLaw(Mapping[tuple[int, ...], Fraction]):
    """A model's own distribution of texts of one length, too long to be listed."""

    def __init__(self, model: _Model, length: int) -> None:
        self.model = model
        self.length = length

    def __getitem__(self, tokens: tuple[int, ...]) -> Fraction:
        mass = Fraction(len(tokens) == self.length)
        for end, token in enumerate(tokens if mass else ()):
            mass *= fraction(WholeRow(self.model(tokens[:end])).share(token))
        if not mass:
            raise KeyError(tokens)
        return mass

    def __len__(self) -> int:
        return int(self.model.vocabulary**self.length)

    def __iter__(self) -> Iterator[tuple[int, ...]]:
        raise InvalidInput("distribution", f"up to {len(self):,} texts", f"at most {whole_rows.LISTED:,} to list them")

    def compare(self, emitted: Any, above: Any = 0) -> Comparison:
        """Emitted text, continued from the model, against it."""
        return compare(emitted, cast(ModelPair, self), (), self.length, above)  # of which the rows alone are read

    def apart(self, other: Any) -> Fraction:
        """How far two models' texts may be apart: the most that a row read in both differs by, for each token.

        Where no row was read, emitted text goes on with the model's own.
        """
        rows = {prefix: (row, other.model.raw(prefix)) for prefix, row in self.model.read.items()}
        each = {(id(one), id(two)): (one, two) for one, two in rows.values()}
        most = max((WholeRow(one.tolist()).distance(WholeRow(two.tolist())) for one, two in each.values()), default=0)
        return min(Fraction(1), self.length * fraction(most))

    def p(self, prefix: tuple[int, ...]) -> Any:
        """The row at a prefix."""
        return self.model.raw(prefix)

    def impossible(self, emitted: Spread) -> tuple[tuple[int, ...], Fraction, Fraction] | None:
        """A text that is emitted and that the model never gives, with its two probabilities."""
        for tokens, mass in emitted.plain.items():
            if any(not self.model.raw(tokens[:end])[tokens[end]] for end in range(min(len(tokens), self.length))):
                return tokens, fraction(mass), Fraction(0)
        for tokens, kept in emitted.rows.items() if self.length else ():
            row = self.model.raw(tokens) if len(tokens) < self.length else None
            never = any(not self.model.raw(tokens[:end])[tokens[end]] for end in range(min(len(tokens), self.length)))
            for mass, each in kept:
                found = next((t for t in each.support if never or (row is not None and not row[t])), None)
                if found is not None:
                    return (*tokens, found), fraction(mass * each.share(found)), Fraction(0)
        return None


class _Model:
    """A user's target(prefix), asked within the same arithmetic as the function."""

    def __init__(self, target: Callable[..., Any], how: Interception) -> None:
        self.target = target
        self.how = how
        self.eps = 0.0
        self.vocabulary = 0
        self.read: dict[tuple[int, ...], Any] = {}
        self._laws: dict[Any, Any] = {}

    def raw(self, prefix: tuple[int, ...]) -> Any:
        """The numbers of a row as they are; it counts as the row over their sum."""
        if prefix not in self.read:
            self(prefix)
        return self.read[prefix]

    def __call__(self, prefix: tuple[int, ...]) -> Any:
        with self.how.within():
            row = self.target(prefix)
        self.eps = max(self.eps, _coarseness(row))
        numbers = np.array(frozen(row), dtype=object)
        key = numbers.shape, tuple(numbers.ravel().tolist()), _coarseness(row)
        if key not in self._laws:
            self._laws[key] = numbers, _row(row)
        numbers, law = self._laws[key]
        self.read[prefix] = numbers
        self.vocabulary = max(self.vocabulary, len(law))
        return law


def _row(values: Any) -> Any:
    """A row as exact numbers over their sum; raises unless it is a law in its own arithmetic."""
    numbers = frozen(values)
    if not isinstance(numbers, tuple) or not numbers or any(isinstance(x, tuple) for x in numbers):
        raise InvalidInput("target", values, "a law, a row [V], or a function")
    row = exact_row(numbers)
    tolerance = len(row) * Fraction(max(_coarseness(values), float(EPS64)))
    if any(isinstance(x, float) for x in numbers):
        if min(row) < 0 or abs(sum(row) - 1) > tolerance:
            raise InvalidInput("target", numbers, "a law: non-negative numbers that sum to 1")
        return exact_law(numbers)
    return check_law(list(map(fraction, row)), "target")


def _coarseness(values: Any) -> float:
    """eps of a row's float type where it is narrower than float64, else 0."""
    kind = str(getattr(values, "dtype", "")).removeprefix("torch.")
    return 2.0 ** (1 - FLOAT_TYPES[kind].precision) if kind in FLOAT_TYPES and kind != "float64" else 0.0


def _given(target: Mapping[Any, Any]) -> Law:
    keys, values = list(target), list(target.values())
    row = _row([x.item() if hasattr(x, "item") else x for x in values])
    return renamed(zip(keys, row, strict=True), frozen)


def atoms(result: Any) -> list[Any]:
    """The numbers of a result, nested tuples opened."""
    return [atom for item in result for atom in atoms(item)] if isinstance(result, tuple) else [result]


def _sequence(result: Any) -> tuple[int, ...]:
    """The token ids of a result: an int, a row of them, a batch of one row, or a column."""
    tokens = result if isinstance(result, tuple) else (result,)
    while len(tokens) == 1 and isinstance(tokens[0], tuple):
        tokens = tokens[0]
    if tokens and all(isinstance(token, tuple) and len(token) == 1 for token in tokens):
        tokens = tuple(token[0] for token in tokens)
    rows = [token for token in tokens if isinstance(token, tuple)]
    if rows and len(rows) == len(tokens):
        expected = "one sequence of token ids (certify one row of the batch at a time)"
        raise InvalidInput("result", f"a batch of {len(rows)} sequences", expected)
    if not all(isinstance(token, int) and not isinstance(token, bool) for token in tokens):
        raise InvalidInput("result", result, "one row of token ids and nothing else (return the tokens alone)")
    return tokens


def _one_token(result: Hashable) -> int:
    tokens = _sequence(result)
    if len(tokens) != 1:
        raise InvalidInput("result", result, "one token, where the target is a row (give a length for more)")
    return tokens[0]
