"""Is a function that draws through torch, NumPy or `random` lossless?

Its exact distribution is held against the right one; where they differ the same code is followed again in float64,
which tells rounding from a bias: there a bias stays and rounding vanishes. The verdict names the shortest sequence
whose probability is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from fractions import Fraction
from typing import Any

from exact.enumeration.rationals import fraction
from exact.enumeration.rounding import most_rounding, worst_rounding
from exact.enumeration.whole_rows import Spoiled
from exact.interception.float64_rerun import default_eps, float64_throughout, in_float64, widened_function
from exact.interception.function_certificate import FunctionCertificate, Law
from exact.interception.narrow_inputs import NarrowInputs, declared_type, type_eps
from exact.interception.session import Coins
from exact.interception.symbolic_maps import FLOAT_TYPES
from exact.interception.targets import (
    EPS64,
    Target,
    TextLaw,
    atoms,
    check_result,
    check_target,
    compared,
    early_result,
    is_short,
    renamed,
)
from exact.interception.torch_law import Interception
from exact.interception.whole_results import WholeResult
from exact.runtime.snapshot import copied

Wrong = tuple[Any, Fraction, Fraction]
_EPS32 = 2.0**-23


def certify_function(
    function: Callable[..., Any],
    *args: Any,
    target: Target,
    length: int | None = None,
    coins: Coins = "ideal",
    limit: int | None = None,
    dtype: Any = None,
    eps: float | None = None,
    one_cycle: bool | None = None,
    **kwargs: Any,
) -> FunctionCertificate:
    """Certify `function(*args, **kwargs)`, or refute it, against its right distribution.

    `target` is the right law itself (a mapping from results), a row [V] for a function of one token, or a function
    called with the same arguments whose law is the right one (say, plain sampling). With `length` L it is a model,
    `target(prefix) -> row`: results are then rows of tokens (a batch of one, or a column), cut at L or continued
    from the target. Rows of floats count over their exact sums. `one_cycle` says that the function is one cycle of a
    decoder, which goes on after a short result (None: what its attribute `one_cycle` says, else no). Of any other
    function a result that ends where the target goes on is an end that the target does not make: undecided.

    Lossless up to rounding: in float64 the same code has a total variation within the rounding of float64, its own is
    within that of its type (`exact.enumeration.rounding`), and it never emits what the target cannot. Its type is the
    coarsest one met inside or among its inputs (where it is coarser than float32, every single draw must be within the
    bound, whatever the probability of its branch). A type that cannot be met there (inside an extension, say) is
    declared by `dtype` ("bfloat16", torch.bfloat16, np.float16) or by its `eps`. Neither excuses a bias, which float64
    shows.
    Between that bound and the worst that roundings could add up to, it is undecided. Results that cannot be compared
    are refused at the first one. (The function's own `dtype` or `eps` argument is bound by `functools.partial`.)
    """
    check_target(target, length)
    declared = declared_type(dtype, eps)
    one_cycle = getattr(function, "one_cycle", False) is True if one_cycle is None else one_cycle
    count = continued = 0
    short: set[Hashable] = set()

    def one_by_one(result: Hashable) -> Hashable:
        nonlocal count, continued
        last = result.placed(result.row.support[-1]) if isinstance(result, WholeResult) else result
        check_result(last, target, length)
        count += 1
        if is_short(last, length):
            continued += 1
            every = not one_cycle and isinstance(result, WholeResult)
            short.update(map(result.placed, result.row.support) if every else [last])  # type: ignore[attr-defined]
        return result

    seen = NarrowInputs()
    target = target if callable(target) else copied(target)
    native = Interception(coins, limit, beside=target, whole=True, noted=True)
    wide = Interception(coins, limit, lambda: float64_throughout(seen), beside=target, whole=True, noted=True)

    def again() -> None:
        nonlocal count, continued
        count = continued = 0
        short.clear()

    law = taken(native, one_by_one, again, function, *args, **kwargs)
    steps = native.steps  # those of a target that samples come after
    law, right, rounded, vocabulary = compared(law, target, length, native, args, kwargs)
    variation = total_variation(law, right)
    if not isinstance(right, TextLaw):
        vocabulary = max(vocabulary, len({atom for result in law | right for atom in atoms(result)}))
    vocabulary = max(2, vocabulary)
    tokens = _length(law, right)
    bound = most_rounding(tokens, vocabulary, EPS64)

    def certificate(
        lossless: bool | None,
        verdict: str,
        variation64: Fraction | None,
        wrong: Wrong | None,
        own: tuple[Fraction, Fraction, str] | None = None,
    ) -> FunctionCertificate:
        end = None if one_cycle or not lossless else early_result(short, target, length, native)
        if end is not None:
            lossless, verdict = None, f"undecided: {_ENDS.format(end)}"
        sequence, actual, expected = wrong or (None, None, None)
        measured, most, kind = own or (None, None, None)
        return FunctionCertificate(
            lossless,
            verdict,
            variation,
            variation64,
            bound,
            sequence,
            actual,
            expected,
            count,
            coins,
            law,
            right,
            tuple(native.changed),
            measured,
            kind,
            continued,
            most,
        )

    if not variation:
        return certificate(True, "lossless", None, None)
    impossible = _never(law, right)
    args, kwargs = in_float64(args, seen), in_float64(kwargs, seen)
    try:
        rerun = widened_function(function, seen)
        law64 = taken(wide, lambda result: result, lambda: None, rerun, *args, **kwargs)
        steps64 = wide.steps
        law64, right64, _, _ = compared(law64, target, length, wide, args, kwargs)
    except Exception as error:
        if impossible is not None:
            return certificate(False, _IMPOSSIBLE, None, impossible)
        said = f"{type(error).__name__}: {error}"
        worst = _differing(law, right, law, right, _NONE)
        return certificate(None, f"undecided: it does not run in float64 ({said})", None, worst)
    row = None if callable(target) or length is not None else seen.unrounded(right64)
    right64 = right64 if row is None else {token: Fraction(p) for token, p in enumerate(row) if p}
    variation64 = total_variation(law64, right64)
    if impossible is not None:
        return certificate(False, _IMPOSSIBLE, variation64, impossible)
    if variation64 > bound:
        wrong = _differing(law, right, law64, right64, bound / vocabulary)
        if not callable(target):
            rounded = 0.0 if row is not None or seen.has(right64) else max(rounded, seen.eps or 0.0)
        if rounded and variation64 <= most_rounding(tokens, vocabulary, rounded):
            return certificate(None, f"undecided: {_ROUNDED}", variation64, wrong)
        return certificate(False, "lossy", variation64, wrong)
    # The code is right in float64; what is left is what its own type does.
    usual = max(default_eps(), min(seen.eps or 0.0, _EPS32))
    name, coarsest, how = max(seen.coarsest(usual), declared, key=lambda each: each[1])
    least = most_rounding(tokens, vocabulary, usual)
    # The distances of its draws from those in float64, and what is left there, account for all that is off.
    between = right.apart(right64) if isinstance(right, TextLaw) else total_variation(right, right64)
    measured = min(Fraction(1), fraction(steps.expected_distance(steps64)) + variation64 + between)
    if variation <= measured <= least:
        own = measured, least, next(each for each in FLOAT_TYPES if type_eps(each) == usual)
        return certificate(True, "lossless up to rounding", variation64, None, own)
    most = most_rounding(tokens, vocabulary, coarsest)
    own = measured, most, name
    step = steps.furthest(steps64)
    if variation <= measured <= most and step <= most_rounding(1, vocabulary, coarsest):
        named = "" if coarsest == usual else f" in {name} ({how})"
        return certificate(True, f"lossless up to rounding{named}", variation64, None, own)
    wrong = _differing(law, right, law, right, most / vocabulary)
    if variation <= most < measured:
        verdict = f"undecided: {_UNACCOUNTED.format(float(measured), float(most))}"
        return certificate(None, verdict, variation64, _differing(law, right, law, right, _NONE), own)
    if variation <= most:
        verdict = f"undecided: {_STEP.format(name, float(step))}"
        return certificate(None, verdict, variation64, _differing(law, right, law, right, _NONE), own)
    if variation <= worst_rounding(tokens, vocabulary, coarsest):
        return certificate(None, f"undecided: {_MORE.format(name)}", variation64, wrong, own)
    return certificate(False, f"lossy in its own type: {_COARSE.format(name)}", variation64, wrong, own)


_IMPOSSIBLE = "lossy: it emits what the target never does"
_ROUNDED = "what differs is within the rounding of the rows given; give them in float64, or the target as a function"
_MORE = "right in float64, but in {} off by more than a few roundings; run it in a finer type (or declare its dtype=)"
_STEP = "right in float64, but in {} one of its draws is off by TV {:.3g}, more than rounding: look for a residual of 0"
_ENDS = (
    "a text ends after {}, where the target goes on; ends are not compared (one_cycle=True for one cycle of a decoder)"
)
_UNACCOUNTED = "right in float64, but its draws differ from those there by up to {:.3g} in all, above {:.3g}"
_COARSE = "right in float64, but in {} off by more than all its roundings"


def taken(
    how: Interception, name: Callable[[Any], Any], again: Callable[[], None], function: Any, *args: Any, **kwargs: Any
) -> Law:
    """The law of a function; where it breaks on a number that waits to be read, once more with plain numbers."""
    try:
        return renamed(how.outcomes(function, *args, **kwargs), name)
    except Exception as error:
        if how.rows is None or not (how.rows.unread or how.rows.forced or isinstance(error, Spoiled)):
            raise
    how.whole = False
    again()
    return renamed(how.outcomes(function, *args, **kwargs), name)


def total_variation(law: Mapping[Any, Fraction], right: Mapping[Any, Fraction]) -> Fraction:
    """Half the sum of |law - right|."""
    if isinstance(right, TextLaw):
        return fraction(right.compare(law).total_variation)
    return sum((abs(law.get(x, _NONE) - right.get(x, _NONE)) for x in law.keys() | right.keys()), _NONE) / 2


def _length(law: Law, right: Law) -> int:
    return right.length if isinstance(right, TextLaw) else max(len(atoms(result)) for result in law | right)


def _never(law: Law, right: Law) -> Wrong | None:
    """A result that is emitted and never due."""
    if isinstance(right, TextLaw):
        return right.impossible(law)  # type: ignore[arg-type]
    return _shortest(law, right, lambda got, due: got > 0 and due == 0)


def _shortest(law: Law, right: Law, wrong: Callable[[Fraction, Fraction], bool]) -> Wrong | None:
    """The shortest beginning of a result whose probability is wrong, the most wrong one of its length."""
    for end in range(1, _length(law, right) + 1):
        actual, expected = _begun(law, end), _begun(right, end)
        found = [(x, actual.get(x, _NONE), expected.get(x, _NONE)) for x in {**expected, **actual}]
        found = [each for each in found if wrong(each[1], each[2])]
        if found:
            return max(found, key=lambda each: abs(each[1] - each[2]))
    return None


def _differing(law: Law, right: Law, law64: Law, right64: Law, bound: Fraction) -> Wrong | None:
    """The shortest wrong sequence, found in one pair of laws and told in another."""
    if isinstance(right, TextLaw):
        wrong = right.compare(law, bound).wrong or right.compare(law).wrong
        return wrong and (wrong[0], fraction(wrong[1]), fraction(wrong[2]))
    found = _shortest(law64, right64, lambda actual, expected: abs(actual - expected) > bound)
    if found is None:
        return None
    end = len(found[0]) if isinstance(found[0], tuple) else 1
    return found[0], _begun(law, end).get(found[0], _NONE), _begun(right, end).get(found[0], _NONE)


def _begun(law: Law, end: int) -> Law:
    """The law of the first `end` numbers of a result; a result that is no tuple stays itself."""
    return renamed(law.items(), lambda result: tuple(atoms(result)[:end]) if isinstance(result, tuple) else result)


_NONE = Fraction(0)
