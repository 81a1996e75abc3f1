"""Every check of an input, and the one line that a refusal is.

A certificate is worth nothing if a bad row was quietly repaired on the way in: nothing is clipped or renormalised here.
A refusal names the argument, the value that was given and what was expected.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from numbers import Integral, Rational, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

FLOATS = (np.dtype(np.float64), np.dtype(np.float32), np.dtype(np.float16))


class InvalidInput(ValueError):
    """An argument that the definitions of the paper do not allow.

    >>> str(InvalidInput("budget", 0, "an int of at least 1"))
    'budget: got 0, expected an int of at least 1'
    """

    by_rule = False
    """Whether it was raised inside a rule of the user's own, which may refuse nothing in a certificate's name."""

    def __init__(self, argument: str, value: object, expected: str) -> None:
        self.argument = argument
        self.value = value
        self.expected = expected
        super().__init__(f"{argument}: got {_short(value)}, expected {expected}")

    def __reduce__(self) -> tuple[type[InvalidInput], tuple[str, object, str]]:
        return type(self), (self.argument, self.value, self.expected)


def _short(value: object) -> str:
    """Give the value on one line, cut in the middle when it is long."""
    text = " ".join(str(value).split()) if isinstance(value, str) else " ".join(repr(value).split())
    return text if len(text) <= 160 else f"{text[:110]} ... {text[-40:]}"


def check_count(name: str, value: Any, least: int) -> int:
    """`value` as an int; raises unless it is a whole number (NumPy's included) of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise InvalidInput(name, value, f"an int of at least {least}")
    return int(value)


def check_probability(probability: Any) -> None:
    """Raise unless 0 <= probability <= 1 (NaN is refused too)."""
    try:
        possible = bool(0 <= probability <= 1)
    except (TypeError, ValueError):  # no number at all; more than one
        possible = False
    if not possible:
        raise InvalidInput("probability", probability, "a number in [0, 1]")


def check_weights(weights: Any) -> NDArray[Any]:
    """`weights` as a 1-D array; raises unless all are non-negative, finite and their sum is positive."""
    try:
        row = np.asarray(weights)
    except ValueError:  # rows of different lengths
        raise InvalidInput("weights", weights, "a non-empty 1-D row of numbers") from None
    if row.ndim != 1 or not len(row) or row.dtype.kind not in "iufO":
        raise InvalidInput("weights", weights, "a non-empty 1-D row of numbers")
    if not ((row >= 0) & (row < np.inf)).all():
        raise InvalidInput("weights", weights, "finite non-negative numbers")
    if not (row > 0).any():
        raise InvalidInput("weights", weights, "a positive sum")
    return row


def check_temperature(temperature: Any) -> None:
    """Raise unless the temperature is a finite number of at least 0."""
    if isinstance(temperature, bool) or not isinstance(temperature, Real) or not 0 <= float(temperature) < math.inf:
        raise InvalidInput("temperature", temperature, "a finite number of at least 0")


def check_logits(logits: ArrayLike, name: str = "logits") -> NDArray[Any]:
    """`logits` as a 1-D float row; NaN, +inf and a row of nothing but -inf are refused."""
    try:
        row = np.asarray(logits)
    except (TypeError, ValueError):  # rows of different lengths; a tensor type that NumPy lacks
        raise InvalidInput(name, logits, "a non-empty 1-D row of floats") from None
    if row.dtype.kind in "iu":
        row = row.astype(np.float64)
    if row.ndim != 1 or not len(row) or row.dtype not in FLOATS:
        raise InvalidInput(name, logits, "a non-empty 1-D row of floats")
    if np.isnan(row).any() or not np.isfinite(row.max()):
        raise InvalidInput(name, row.tolist(), "finite logits (-inf for a masked token, but not for all)")
    return row


def check_law(values: ArrayLike | Sequence[Any], name: str) -> NDArray[Any]:
    """`values` [V] as a read-only distribution in its own arithmetic.

    Integers and rationals become exact object rows. Raises `InvalidInput` on anything that is not 1-D and numeric, on a
    negative or NaN entry, and on a row that does not sum to 1: exactly for rationals; for floats the exact sum must lie
    within V * eps(type) of 1. Nothing is renormalised.

    >>> check_law([1, 0], "q").tolist()
    [Fraction(1, 1), Fraction(0, 1)]
    """
    row = _arithmetic(values, name)
    if not len(row):
        raise InvalidInput(name, values, "at least one entry")
    for token in np.flatnonzero(~np.asarray(row >= 0, dtype=bool)):
        raise InvalidInput(f"{name}[{token}]", row.tolist()[token], "a non-negative number")
    if row.dtype == object:
        mass, tolerance = sum(row.tolist()), Fraction(0)
    else:
        mass, tolerance = _exact_sum(row, name), len(row) * Fraction(float(np.finfo(row.dtype).eps))
    if abs(mass - 1) > tolerance:
        within = "exactly 1" if not tolerance else f"1 within {float(tolerance):.3g} ({row.dtype}, {len(row)} entries)"
        shown = mass if row.dtype == object else float(mass)
        raise InvalidInput(name, row.tolist(), f"a law: its sum is {shown}, not {within}")
    row.flags.writeable = False
    return row


def _exact_sum(row: NDArray[Any], name: str) -> Fraction:
    if not np.isfinite(row).all():
        raise InvalidInput(name, row.tolist(), "finite entries")
    mass = Fraction(math.fsum(row.tolist()))  # correctly rounded; only a sum near the border needs more
    border = len(row) * float(np.finfo(row.dtype).eps)
    if abs(abs(float(mass) - 1) - border) > 1e-15:
        return mass
    return sum((Fraction(entry) for entry in row.tolist()), Fraction(0))


def _arithmetic(values: ArrayLike | Sequence[Any], name: str) -> NDArray[Any]:
    """Give a fresh 1-D array of one of the four arithmetics."""
    try:
        row = np.array(values)
    except (TypeError, ValueError):  # rows of different lengths; a tensor type that NumPy lacks
        raise InvalidInput(name, values, "a 1-D row of numbers") from None
    if row.ndim != 1:
        raise InvalidInput(name, values, f"a 1-D row, not shape {row.shape}")
    if row.dtype.kind in "iu":
        row = row.astype(object)
    if row.dtype == object:
        return _rationals(row, name)
    if row.dtype not in FLOATS:
        raise InvalidInput(name, values, f"float64, float32, float16 or rationals, not {row.dtype}")
    return row


def _rationals(row: NDArray[Any], name: str) -> NDArray[Any]:
    entries = row.tolist()
    kinds = set(map(type, entries))  # one or two: asked of the types, not of each entry
    strange = {kind for kind in kinds if issubclass(kind, bool) or not issubclass(kind, Rational)}
    for token, entry in enumerate(entries):
        if type(entry) in strange:
            raise InvalidInput(f"{name}[{token}]", entry, "an int or a rational: object rows hold nothing else")
    if any(issubclass(kind, Integral) for kind in kinds):
        row[:] = [Fraction(int(entry)) if isinstance(entry, Integral) else entry for entry in entries]
    return row


def check_same(row: NDArray[Any], other: NDArray[Any], name: str, other_name: str) -> None:
    """Raise unless two rows have one length and one arithmetic."""
    if len(row) != len(other):
        raise InvalidInput(name, f"{len(row)} entries", f"{len(other)}, as in {other_name}")
    if row.dtype != other.dtype:
        raise InvalidInput(name, row.dtype, f"the arithmetic of {other_name}, {other.dtype}")


def check_map(ids: Sequence[int] | None, draft_size: int, target_size: int) -> None:
    """Raise unless `ids` maps the draft vocabulary into the target's, one to one."""
    if ids is None:
        if draft_size != target_size:
            raise InvalidInput(
                "draft vocabulary", draft_size, f"the target's, {target_size}, or a map ids[draft id] = target id"
            )
        return
    if len(ids) != draft_size:
        raise InvalidInput("ids", f"{len(ids)} entries", f"one for each of the {draft_size} draft ids")
    seen: dict[int, int] = {}
    for draft_id, target_id in enumerate(ids):
        check_id(target_id, target_size, f"ids[{draft_id}]")
        if target_id in seen:
            raise InvalidInput(f"ids[{draft_id}]", target_id, f"a target id of its own (ids[{seen[target_id]}] has it)")
        seen[target_id] = draft_id


def check_id(token: Any, size: int, name: str) -> int:
    """`token` as an int; raises unless it is an id of a vocabulary of `size` tokens (negative ids are refused)."""
    if isinstance(token, bool) or not isinstance(token, Integral) or not 0 <= int(token) < size:
        raise InvalidInput(name, token, f"a token id in 0..{size - 1}")
    return int(token)


def check_candidates(p: NDArray[Any], candidates: Sequence[int]) -> None:
    """Raise unless every candidate is an id of the target's vocabulary (p[-1] would be read in silence)."""
    for i, token in enumerate(candidates):
        check_id(token, len(p), f"candidates[{i}]")


def check_verdict(verdict: Any, candidates: Sequence[int], size: int) -> tuple[int, int]:
    """Give a rule's answer (token, child); raises unless `child` is -1 or the index of `token` among the candidates."""
    if not isinstance(verdict, tuple) or len(verdict) != 2:
        raise InvalidInput("result of verify", verdict, "a pair (token, index of the accepted candidate or -1)")
    token, child = check_id(verdict[0], size, "token emitted by verify"), verdict[1]
    is_index = not isinstance(child, bool) and isinstance(child, Integral)
    if not is_index or not -1 <= int(child) < len(candidates) or (child != -1 and candidates[child] != token):
        raise InvalidInput("child", child, f"-1 or the index of token {token} among the candidates {list(candidates)}")
    return token, int(child)
