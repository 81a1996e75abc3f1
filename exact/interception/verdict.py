"""Is a function that draws through torch, NumPy or `random` lossless?

Its exact law is held against the right one; where they differ the same code is followed again in float64, which tells
rounding from a bias. The verdict names the shortest sequence whose probability is wrong.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from exact.enumeration.cycle_law import joint_law
from exact.enumeration.rationals import apart, exact_law, exact_row, fraction, long_numbers
from exact.enumeration.walk import ASKED_AGAIN
from exact.interception.float64_rerun import default_eps, float64_throughout, widened, widened_function
from exact.interception.narrow_inputs import Seen
from exact.interception.session import Coins
from exact.interception.symbolic_maps import FLOAT_TYPES
from exact.interception.torch_law import Interception, frozen
from exact.runtime.snapshot import copied
from rheo_core import InvalidInput
from rheo_core.laws import check_law

Law = dict[Any, Fraction]
Target = Any
"""A law by result, a row [V], a function that samples it, or with a length a model, target(prefix) -> row."""
Wrong = tuple[Any, Fraction, Fraction]
EPS64 = Fraction(1, 2**52)
SLACK = 64


@dataclass(frozen=True)
class FunctionCertificate:
    """The verdict on a function.

    `total_variation` is exact, between `law` and `right`; `total_variation_float64` is that of the same code in
    float64 (None where the first is 0 already), to be compared with `bound` = 64 L V 2^-52. `sequence` is the shortest
    one (or the result) whose probability `got` is not the `due` one.
    """

    lossless: bool | None
    verdict: str
    total_variation: Fraction
    total_variation_float64: Fraction | None
    bound: Fraction
    sequence: Any
    got: Fraction | None
    due: Fraction | None
    outcomes: int
    coins: Coins
    law: Law = field(repr=False)
    right: Law = field(repr=False)
    changed: tuple[str, ...] = ()
    """What the code wrote into that was not its own; it was put back before every run."""

    @property
    def scope(self) -> str:
        """What the verdict is about."""
        coins = "ideal coins" if self.coins == "ideal" else "coins on the grid of their float type"
        how = "exact" if not self.total_variation else "exact law of the floats as they are"
        again = "replayed" if self.outcomes <= ASKED_AGAIN else "an even sample of the runs replayed"
        changed = f"; the code changed {', '.join(self.changed)}, put back before every run" if self.changed else ""
        return f"these inputs; {coins}; no state between calls ({again}){changed}; {how}"

    def __str__(self) -> str:
        lines = [f"{self.verdict}: TV {float(self.total_variation):.3g} over {self.outcomes} outcomes"]
        if self.total_variation_float64 is not None:
            tv, bound = float(self.total_variation_float64), float(self.bound)
            lines.append(f"the same code in float64: TV {tv:.3g}, {'within' if tv <= bound else 'above'} {bound:.3g}")
        if self.got is not None and self.due is not None:
            sequence = ", ".join(map(str, self.sequence)) if isinstance(self.sequence, tuple) else self.sequence
            got, due = apart(self.got, self.due)
            lines.append(f"P({sequence}) is {got}, right is {due}")
        return "\n".join([*lines, self.scope])

    @long_numbers()
    def document(self) -> dict[str, Any]:
        """The verdict as JSON values: exact numbers as "a/b" beside a float."""

        def number(value: Fraction | None) -> Any:
            return None if value is None else {"exact": str(value), "float": float(value)}

        return {
            "lossless": self.lossless,
            "verdict": self.verdict,
            "total_variation": number(self.total_variation),
            "total_variation_float64": number(self.total_variation_float64),
            "bound": number(self.bound),
            "sequence": plain(self.sequence),
            "got": number(self.got),
            "due": number(self.due),
            "outcomes": self.outcomes,
            "scope": self.scope,
            "law": [[plain(key), str(mass), float(mass)] for key, mass in self.law.items()],
            "right": [[plain(key), str(mass), float(mass)] for key, mass in self.right.items()],
        }

    def to_json(self) -> str:
        """The verdict as one JSON document."""
        return json.dumps(self.document(), indent=2)


def plain(key: Any) -> Any:
    """A result as a JSON value."""
    return json.loads(json.dumps(key, default=str))


def certify_function(
    function: Callable[..., Any],
    *args: Any,
    target: Target,
    length: int | None = None,
    coins: Coins = "ideal",
    limit: int | None = None,
    **kwargs: Any,
) -> FunctionCertificate:
    """Certify `function(*args, **kwargs)`, or refute it, against its right law.

    `target` is the right law itself (a mapping from results), a row [V] for a function of one token, or a function
    called with the same arguments whose law is the right one (say, plain sampling). With `length` L it is a model,
    `target(prefix) -> row`: results are then rows of tokens (a batch of one, or a column), cut at L or continued
    from the target. Rows of floats count over their exact sums.

    Lossless up to rounding: the same code in float64 has TV <= 64 L V 2^-52, its own TV is at most 64 L V eps of the
    coarsest type among its inputs (torch's default type, what an adapter was asked for), and it never emits what the
    target cannot.
    """
    count = 0

    def as_it_is(result: Hashable) -> Hashable:
        nonlocal count
        count += 1
        return result

    seen = Seen()
    target = target if callable(target) else copied(target)
    native = Interception(coins, limit, beside=target)
    wide = Interception(coins, limit, lambda: float64_throughout(seen), beside=target)
    law = renamed(native.outcomes(function, *args, **kwargs), as_it_is)
    law, right, rounded, vocabulary = _compared(law, target, length, native, args, kwargs)
    variation = total_variation(law, right)
    vocabulary = max(2, vocabulary, _vocabulary(law | right))
    size = SLACK * _length(law | right) * vocabulary
    bound = size * EPS64

    def certificate(
        lossless: bool | None, verdict: str, variation64: Fraction | None, wrong: Wrong | None
    ) -> FunctionCertificate:
        sequence, got, due = wrong or (None, None, None)
        return FunctionCertificate(
            lossless,
            verdict,
            variation,
            variation64,
            bound,
            sequence,
            got,
            due,
            count,
            coins,
            law,
            right,
            tuple(native.changed),
        )

    if not variation:
        return certificate(True, "lossless", None, None)
    impossible = _shortest(law, right, lambda got, due: got > 0 and due == 0)
    args, kwargs = widened(args, seen), widened(kwargs, seen)
    try:
        law64 = wide.law(widened_function(function, seen), *args, **kwargs)
        law64, right64, _, _ = _compared(law64, target, length, wide, args, kwargs)
    except Exception as error:
        if impossible is not None:
            return certificate(False, _IMPOSSIBLE, None, impossible)
        said = f"{type(error).__name__}: {error}"
        worst = _differing(law, right, law, right, _NONE)
        return certificate(None, f"undecided: it does not run in float64 ({said})", None, worst)
    variation64 = total_variation(law64, right64)
    coarse = size * Fraction(max(seen.eps or 0.0, default_eps(), getattr(function, "eps", 0.0)))
    if impossible is not None:
        return certificate(False, _IMPOSSIBLE, variation64, impossible)
    if variation64 > bound:
        wrong = _differing(law, right, law64, right64, bound / vocabulary)
        if not callable(target):
            rounded = 0.0 if seen.has(right64) else max(rounded, seen.eps or 0.0)
        if variation64 <= size * Fraction(rounded):
            return certificate(None, f"undecided: {_ROUNDED}", variation64, wrong)
        return certificate(False, "lossy", variation64, wrong)
    if variation > coarse:
        wrong = _differing(law, right, law, right, coarse / vocabulary)
        return certificate(False, "lossy: something in it is coarser than its inputs", variation64, wrong)
    return certificate(True, "lossless up to rounding", variation64, None)


_IMPOSSIBLE = "lossy: it emits what the target never does"
_ROUNDED = "what differs is within the rounding of the rows given; give them in float64, or the target as a function"


def total_variation(law: Mapping[Any, Fraction], right: Mapping[Any, Fraction]) -> Fraction:
    """Half the sum of |law - right|."""
    return sum((abs(law.get(x, _NONE) - right.get(x, _NONE)) for x in law.keys() | right.keys()), _NONE) / 2


def renamed(outcomes: Iterable[tuple[Any, Any]], name: Callable[[Any], Hashable]) -> Law:
    """A law from (result, weight), with results renamed and equal ones added up."""
    masses: dict[Hashable, Any] = {}
    for result, weight in outcomes:
        key = name(result)
        masses[key] = masses.get(key, 0) + weight
    return {result: fraction(mass) for result, mass in masses.items()}


def _compared(
    law: Law, target: Target, length: int | None, how: Interception, args: Any, kwargs: Any
) -> tuple[Law, Law, float, int]:
    """The law and the right law over the same kind of results; how coarse the target's own rows are (0: not), and V."""
    if length is not None:
        if not _is_positive(length):
            raise InvalidInput("length", length, "an int of at least 1")
        if not callable(target):
            raise InvalidInput("target", target, "a function of the prefix, where a length is given")
        model = _Model(target, how)
        emitted = renamed(law.items(), _sequence)
        text = joint_law(emitted, model, length)
        return dict(text.items()), dict(joint_law({(): 1}, model, length).items()), model.eps, model.vocabulary
    if callable(target):
        return law, how.law(target, *args, **kwargs), 0, 0
    if isinstance(target, Mapping):
        return law, _given(target), 0, 0
    row = _row(target)
    right: Law = {token: fraction(p) for token, p in enumerate(row) if p}
    return renamed(law.items(), _one_token), right, _coarseness(target), len(row)


def _is_positive(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


class _Model:
    """A user's target(prefix), asked within the same arithmetic as the function."""

    def __init__(self, target: Callable[..., Any], how: Interception) -> None:
        self.target = target
        self.how = how
        self.eps = 0.0
        self.vocabulary = 0

    def __call__(self, prefix: tuple[int, ...]) -> Any:
        with self.how.within():
            row = self.target(prefix)
        self.eps = max(self.eps, _coarseness(row))
        law = _row(row)
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


def _atoms(result: Any) -> list[Any]:
    """The numbers of a result, nested tuples opened."""
    return [atom for item in result for atom in _atoms(item)] if isinstance(result, tuple) else [result]


def _sequence(result: Any) -> tuple[int, ...]:
    """The token ids of a result: an int, a row of them, a batch of one row, or a column."""
    tokens = result if isinstance(result, tuple) else (result,)
    while len(tokens) == 1 and isinstance(tokens[0], tuple):
        tokens = tokens[0]
    if tokens and all(isinstance(token, tuple) and len(token) == 1 for token in tokens):
        tokens = tuple(token[0] for token in tokens)
    if not all(isinstance(token, int) and not isinstance(token, bool) for token in tokens):
        raise InvalidInput("result", result, "one row of token ids and nothing else (return the tokens alone)")
    return tokens


def _one_token(result: Hashable) -> int:
    tokens = _sequence(result)
    if len(tokens) != 1:
        raise InvalidInput("result", result, "one token, where the target is a row (give a length for more)")
    return tokens[0]


def _length(law: Law) -> int:
    return max(len(_atoms(result)) for result in law)


def _vocabulary(law: Law) -> int:
    return len({atom for result in law for atom in _atoms(result)})


def _shortest(law: Law, right: Law, wrong: Callable[[Fraction, Fraction], bool]) -> Wrong | None:
    """The shortest beginning of a result whose probability is wrong, the most wrong one of its length."""
    for end in range(1, _length(law | right) + 1):
        got, due = _begun(law, end), _begun(right, end)
        found = [(x, got.get(x, _NONE), due.get(x, _NONE)) for x in {**due, **got}]
        found = [each for each in found if wrong(each[1], each[2])]
        if found:
            return max(found, key=lambda each: abs(each[1] - each[2]))
    return None


def _differing(law: Law, right: Law, law64: Law, right64: Law, bound: Fraction) -> Wrong | None:
    """The shortest wrong sequence, found in one pair of laws and told in another."""
    found = _shortest(law64, right64, lambda got, due: abs(got - due) > bound)
    if found is None:
        return None
    end = len(found[0]) if isinstance(found[0], tuple) else 1
    return found[0], _begun(law, end).get(found[0], _NONE), _begun(right, end).get(found[0], _NONE)


def _begun(law: Law, end: int) -> Law:
    """The law of the first `end` numbers of a result; a result that is no tuple stays itself."""
    return renamed(law.items(), lambda result: tuple(_atoms(result)[:end]) if isinstance(result, tuple) else result)


_NONE = Fraction(0)
