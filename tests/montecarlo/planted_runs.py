"""Runs of a small engine with one fault each, as records: what the audit must name, and how many tokens it needs.

The engine is chain speculation on Markov rows (a row depends on the last token), written out on its own.
"""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from montecarlo.recording import Record, Row
from montecarlo.reference_run import whole

VOCABULARY, DEPTH, TEXT = 16, 3, 60

Rows = np.ndarray


def pair(seed: int, vocabulary: int = VOCABULARY) -> tuple[Rows, Rows]:
    """Target and draft rows [V, V]."""
    rng = np.random.default_rng([seed, 77])
    p, other = (rng.dirichlet(np.full(vocabulary, 0.4), size=vocabulary) + 1e-3 for _ in range(2))
    p /= p.sum(axis=1, keepdims=True)
    q = 0.6 * p + 0.4 * other / other.sum(axis=1, keepdims=True)
    return p, q / q.sum(axis=1, keepdims=True)


def _tempered(row: Rows, temperature: float) -> Rows:
    law = row ** (1 / temperature)
    return np.asarray(law / law.sum(axis=-1, keepdims=True))


class Engine:
    """One cycle after another of chain speculation; `fault` is one of FAULTS or None."""

    def __init__(self, rng: np.random.Generator, p: Rows, q: Rows, fault: str | None) -> None:
        self._rng, self._q, self._fault = rng, q, fault
        self._p = {"too flat": _tempered(p, 1.25), "too sharp": _tempered(p, 0.8)}.get(fault or "", p)
        self._hot, self._cold = _tempered(p, 1.8), _tempered(p, 0.35)
        self._stale: int | None = None

    def _draw(self, law: Rows) -> int:
        return min(int(np.searchsorted(law.cumsum(), self._rng.random() * law.sum(), side="right")), len(law) - 1)

    def cycle(self, last: int) -> list[int]:
        """The tokens of a cycle after the token `last`."""
        out: list[int] = []
        if self._fault == "a changing temperature":
            self._p = self._hot if self._rng.random() < 0.5 else self._cold
        for place in range(DEPTH + 1):
            p, q = self._p[last], self._q[last]
            if self._fault == "after a rejection" and place == 0 and self._stale is not None:
                p = 0.5 * p + 0.5 * self._p[self._stale]
            if self._fault == "one position" and place == 2:
                p = 0.5 * p + 0.5 / len(p)
            if place == DEPTH:
                out.append(self._draw(p))
                self._stale = None
                break
            x = self._draw(q)
            ratio = p[x] / q[x]
            if self._fault == "towards the draft":
                ratio = 1.5 * ratio
            if self._fault == "away from the draft":
                ratio = 0.7 * min(1, ratio)
            if self._rng.random() < ratio:
                out.append(x)
                last = x
                continue
            left = np.maximum(p - q, 0)
            left = self._p[x] if self._fault == "the next row's token" else left if left.sum() > 0 else p
            out.append(self._draw(left))
            self._stale = x
            break
        return out


DIRECTIONS = (
    "towards the draft",
    "away from the draft",
    "too flat",
    "too sharp",
    "a changing temperature",
    "one position",
    "after a rejection",
    "the next row's token",
)


def records(
    fault: str | None, seed: int, tokens: int, draft: bool = True, best: int | None = None, vocabulary: int = VOCABULARY
) -> Iterator[Record]:
    """Records of texts of TEXT tokens; `best`: rows list the best few and the rest; `draft`: with draft rows."""
    rng = np.random.default_rng([seed, 78])
    p, q = pair(seed, vocabulary)
    rows = [_listed(row, best) for row in p]
    drafts = [_listed(row, best) for row in q]
    engine = Engine(rng, p, q, fault)
    for number in range(-(-tokens // TEXT)):
        last, done, count = 0, 0, 0
        while done < TEXT:
            for position, token in enumerate(engine.cycle(last)[: TEXT - done]):
                q_row = drafts[last] if draft else None
                yield Record(f"{number}:{done}", token, rows[last], q_row, count, position, str(number))
                last, done = token, done + 1
            count += 1


def _listed(row: Rows, best: int | None) -> Row:
    if best is None:
        return whole(row)
    ids = np.argsort(-row, kind="stable")[:best]
    return Row(ids, row[ids], float(1 - row[ids].sum()))


HALF = whole([0.5, 0.5])
P, Q = np.array([0.5, 0.3, 0.15, 0.05]), np.array([0.3, 0.4, 0.2, 0.1])


def _serial(kind: str, seed: int, tokens: int) -> Iterator[Record]:
    rng = np.random.default_rng(seed)
    token = {
        "0101": np.arange(tokens) % 2,
        "twice": np.repeat(rng.integers(2, size=tokens // 2), 2),
        ".9": (np.cumsum(rng.random(tokens) < 0.9) + 1) % 2,
        ".55": (np.cumsum(rng.random(tokens) < 0.55) + 1) % 2,
    }[kind]
    for i, t in enumerate(token.tolist()):
        yield Record(str(i), t, HALF, None, None, None, "a")


def _twins(seed: int, tokens: int) -> Iterator[Record]:
    rng = np.random.default_rng(seed)
    for number in range(tokens // 38):
        text = rng.choice(4, size=19, p=P).tolist()
        for each in "ab":
            for place, t in enumerate(text):
                yield Record(f"{number}{each}:{place}", t, whole(P), whole(Q), None, None, f"{number}{each}")


def _copied(seed: int, tokens: int) -> Iterator[Record]:
    """An n-gram lookup whose proposal is kept once in ten times without being verified."""
    rng = np.random.default_rng(seed)
    p, _ = pair(seed, 64)
    follows: dict[tuple[int, int], int] = {}
    text = [0, 1]
    for i in range(tokens):
        key = text[-2], text[-1]
        row = p[text[-1]]
        kept = key in follows and rng.random() < 0.1
        token = follows[key] if kept else int(rng.choice(64, p=row))
        follows[key] = token
        yield Record(str(i), token, whole(row), None, None, None, "a")
        text.append(token)


def _temperatures(seed: int, tokens: int) -> Iterator[Record]:
    rng = np.random.default_rng(seed)
    p, d = np.array([0.4, 0.3, 0.2, 0.1]), np.array([0.08, 0.02, -0.04, -0.06])
    for number in range(tokens // 100):
        for place, t in enumerate(rng.choice(4, size=100, p=p + (d if number % 2 else -d)).tolist()):
            yield Record(f"{number}:{place}", t, whole(p), None, None, None, str(number))


def _draws(law: Rows, row: Row, draft: Row | None = None) -> Callable[[int, int], Iterator[Record]]:
    def made(seed: int, tokens: int) -> Iterator[Record]:
        emitted = np.random.default_rng(seed).choice(len(law), size=tokens, p=law)
        for i, t in enumerate(emitted.tolist()):
            yield Record(str(i), t, row, draft, None, None, "a")

    return made


def _blinded(seed: int, tokens: int) -> Iterator[Record]:
    yield Record("first", 1, whole([1 - 1e-310, 1e-310]), whole([0.5, 0.5]), None, None, None)
    yield from _draws(np.array([0.2, 0.8]), whole([0.7, 0.3]), whole([0.2, 0.8]))(seed, tokens)


RUNS: dict[str, Callable[[int, int], Iterator[Record]]] = {
    **{name: partial(records, name) for name in DIRECTIONS},
    "0101...": lambda seed, tokens: _serial("0101", seed, tokens),
    "every token twice": lambda seed, tokens: _serial("twice", seed, tokens),
    "a switch of .9": lambda seed, tokens: _serial(".9", seed, tokens),
    "a switch of .55": lambda seed, tokens: _serial(".55", seed, tokens),
    "twins": _twins,
    "copied n-grams": _copied,
    "texts hot and cold": _temperatures,
    "unlisted .5 for .4": _draws(
        np.array([0.25, 1 / 6, 1 / 12, 0.2, 0.2, 0.1]), Row(np.array([0, 1, 2]), np.array([0.3, 0.2, 0.1]), 0.4)
    ),
    "the draft's law": _draws(Q, whole(P), whole(Q)),
    "half the draft's law": _draws(0.5 * P + 0.5 * Q, whole(P), whole(Q)),
    "off by .02": _draws(P + np.array([0.02, -0.02, 0, 0]), whole(P), whole(Q)),
    "after a record of 1e-310": _blinded,
}
"""Each fault of the table in docs/recording.md: seed and tokens to records."""
