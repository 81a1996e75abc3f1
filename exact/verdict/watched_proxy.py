"""A user's own proxy, held to be a function of the score distribution, the order, m and the token.

Trees are merged into classes on the strength of that. A proxy that draws, counts its calls or looks at Y although it
says that it ignores Y would pass for a rule that it is not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rheo_core import InvalidInput
from rheo_core.laws import Row

EXPECTED = "a proxy that is a function of (score, order, m, sampled) and keeps nothing between calls"
MOST_KEPT = 4_000
"""Different calls that are remembered, to be made again."""


class WatchedProxy:
    """A proxy that remembers its answers; `proxy` is what is called, `given` the user's object, `method` the name."""

    def __init__(self, proxy: Callable[..., Any], given: Any, method: str) -> None:
        self.proxy = proxy
        self.method = method
        self.uses_token = bool(getattr(given, "uses_token", True))
        self.calls = 0
        self._known: dict[Any, tuple[tuple[Row, Row, int, int], Any]] = {}
        self._checked: set[Any] = set()

    def __call__(self, score: Row, order: Row, m: int, sampled: int) -> Any:
        """The score of the sampled slot; raises `InvalidInput` where the same call was answered differently before."""
        if not self.uses_token:
            self._check_ignores_token(score, order, m)
        return self._ask(score, order, m, sampled)

    def _ask(self, score: Row, order: Row, m: int, sampled: int) -> Any:
        self.calls += 1
        key = str(score.dtype), tuple(score.tolist()), tuple(order.tolist()), m, sampled
        value = self.proxy(score.copy(), order.copy(), m, sampled)
        known = self._known.get(key)
        if known is None:
            if len(self._known) < MOST_KEPT:
                self._known[key] = (score.copy(), order.copy(), m, sampled), value
        elif not _equal(known[1], value):
            given = f"the scores {known[1]} and {value} in the same place"
            raise InvalidInput(f"proxy of {self.method}", given, EXPECTED)
        return value

    def _check_ignores_token(self, score: Row, order: Row, m: int) -> None:
        key = str(score.dtype), tuple(score.tolist()), m
        if key in self._checked:
            return
        self._checked.add(key)
        values = {token: self._ask(score, order, m, token) for token in order[m:].tolist()}
        if len(set(map(str, values.values()))) > 1:
            given = f"scores that change with Y ({', '.join(f'{y}: {value}' for y, value in values.items())})"
            expected = "one score for all Y, as uses_token = False says"
            raise InvalidInput(f"proxy of {self.method}", given[:300], expected)

    def replay(self, least: int) -> None:
        """Make the remembered calls again, in reverse, until so many calls were made in all."""
        asked = [arguments for arguments, _ in self._known.values()]
        for arguments in reversed(asked):
            self._ask(*arguments)
        while asked and self.calls < least:
            for arguments in reversed(asked):
                self._ask(*arguments)


def _equal(one: Any, other: Any) -> bool:
    return bool(one == other) or repr(one) == repr(other)
