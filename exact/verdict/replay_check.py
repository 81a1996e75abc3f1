"""A rule of the user's own draws through its chooser alone, and is a function of its draws and of what it is given.

An enumeration meets every outcome once, and a tree method node by node, so a draw from elsewhere, a state between
calls or a row written into would pass for an exact law that is none. Every call of such a rule is watched: it is handed
copies, which are compared afterwards, and so is all that it can reach; at the end runs are made once more in reverse.
Rules of this project are not watched.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from exact.enumeration.fixed_trees import FixedTreeMethod
from exact.enumeration.rationals import fraction
from exact.enumeration.walk import EnumerationError, ExhaustiveChooser, NotReproducible, ReplayLog, recorded
from exact.runtime.census import Census
from exact.runtime.patches import applied
from exact.runtime.reachable import State
from exact.runtime.snapshot import Snapshot
from exact.runtime.unseen import Watch, nobody_watches, stand_ins
from exact.runtime.unsupported import Unsupported
from exact.verdict.handed import UNTOUCHED, Handed, RefusedCall
from exact.verdict.identity import CycleMethod, is_ours
from exact.verdict.transcript import plain_row
from exact.verdict.watched_proxy import WatchedProxy
from rheo_core import DraftRow, FunctionMethod, InvalidInput, Method, TreeMethod
from rheo_core.models import ModelPair, Prefix

EXPECTED = "a rule that draws through its chooser alone and keeps nothing between calls"
LEAST = 500
"""Calls of a proxy, at least."""

NO_MASS, ALL_MASS = Fraction(0), Fraction(1)
LOOKED = "a rule that does not look at the cycle number in `at`: it does not lose in the first {}, but may later"


class DeterministicModel:
    """A model that is asked twice at each prefix; raises `InvalidInput` where it answers differently."""

    def __init__(self, model: Callable[[Prefix], Any], name: str) -> None:
        self.model = model
        self.name = name

    def __call__(self, prefix: Prefix) -> Any:
        """Give the row at `prefix`."""
        watch = _WATCH.get()
        with nullcontext() if watch is None else watch.paused():
            first, second = self.model(prefix), self.model(prefix)
        if not _same(_plain(first), _plain(second)):
            given = "two different rows when asked twice"
            raise InvalidInput(f"{self.name}({prefix})", given, "one row: a model must be a function of its prefix")
        return first


def _plain(row: Any) -> Any:
    """Give a row as plain numbers; None for what is no row, which is refused elsewhere."""
    if isinstance(row, DraftRow):
        return plain_row(row)
    try:
        array = np.asarray(row)
    except (TypeError, ValueError):
        return None
    return array.tolist() if array.ndim == 1 else None


def _same(first: Any, second: Any) -> bool:
    return bool(first == second) or repr(first) == repr(second)  # NaN is not equal to itself


def check_models_again(models: ModelPair, rule: str) -> None:
    """Raise `InvalidInput` where a model answers another row than it did before the rule was run."""
    again = models.unread()
    for name, now, kept in (("target", again.p, models.target_rows), ("draft", again.q, models.draft_rows)):
        for prefix, row in kept.items():
            if plain_row(now(prefix)) != plain_row(row):
                raise RefusedCall(rule, f"another row {name}({prefix}) after it ran than before", UNTOUCHED)


PARTS = {
    "verify": (TreeMethod, "verify"),
    "proxy": (TreeMethod, "proxy"),
    "topology": (FixedTreeMethod, "topology"),
    "draft": (FixedTreeMethod, "draft"),
    "verify_siblings": (FixedTreeMethod, "verify"),
    "cycle_function": (FunctionMethod, "function"),
}
"""What a part is handed (a method of `Handed`), the kind of method that has it, and its name there."""


def own_parts(rule: Method) -> dict[str, Any]:
    """Give the parts of a method that are not this project's own code, by what they are handed."""
    found = {kind: getattr(rule, name) for kind, (of, name) in PARTS.items() if isinstance(rule, of)}
    found = found or {"cycle_function": rule.cycle}
    return {kind: part for kind, part in found.items() if not is_ours(part)}


def tells_types(rule: Method) -> bool:
    """Whether code of the user's own asks for types, and so could tell a number that waits to be read from an int."""
    return any("type" in Snapshot(part, (), {}).named() for part in own_parts(rule).values())


class Part:
    """A part of a rule, every call of which is watched; its attributes are those of the part."""

    def __init__(self, watch: RuleWatch, kind: str, part: Callable[..., Any]) -> None:
        self.watch = watch
        self.kind = kind
        self.part = part

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Give the part's answer."""
        return self.watch.call(self.kind, self.part, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.part, name)


class RuleWatch:
    """What is watched while a rule is certified; `calls` counts its calls, `looked` says it read its cycle's number."""

    def __init__(self, rule: Method, parts: dict[str, Any], tiny: Fraction = NO_MASS) -> None:
        self.name = rule.name
        self.tiny = tiny
        self.broken = NO_MASS
        self.calls = 0
        self.looked = False
        self.log = ReplayLog(strict=False)
        self.state = State({_called(kind): part for kind, part in parts.items()})
        self.watch = Watch()
        self.proxy: WatchedProxy | None = None
        self.hooked = True
        self._looked_at = 0
        shared: list[Census] = _CENSUS.get() or []
        self.census = shared[0] if shared else _census()
        if not shared and (kept := _CENSUS.get()) is not None:
            kept.append(self.census)
        self.running = 0
        self._stale = False

    def rule(self, rule: Any, parts: dict[str, Any]) -> Method:
        """Give the rule with its parts watched."""
        wrapped: dict[str, Any] = {kind: Part(self, kind, part) for kind, part in parts.items()}
        if "proxy" in wrapped:
            self.proxy = wrapped["proxy"] = WatchedProxy(wrapped["proxy"], parts["proxy"], rule.name)
        names: Any = {PARTS[kind][1]: part for kind, part in wrapped.items()}
        if isinstance(rule, TreeMethod | FixedTreeMethod | FunctionMethod):
            return replace(rule, **names)
        return CycleMethod(rule.name, rule.claim, wrapped["cycle_function"])

    def call(self, kind: str, part: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Give one call of a part: with copies of its arguments, and nothing changed behind it."""
        if self._stale and not self.running:
            self.renew()
        self.calls += 1
        self.log.used = True
        handed = Handed(self._look)
        given = getattr(handed, kind)(*args, **kwargs)
        self.running += 1
        try:
            named = {"ids": given[-1]} if "ids" in kwargs else {}
            call = self.watch.call if self.hooked else _call
            answer = call(part, *given[: len(args)], **named)
        except Unsupported as error:
            raise RefusedCall(f"{self.name}: {error.argument}", error.value, EXPECTED) from error
        except (EnumerationError, RefusedCall):
            raise
        except Exception as error:
            weight = _weight(args)
            if weight > self.tiny:
                if isinstance(error, InvalidInput):
                    error.by_rule = True
                raise
            self.broken += weight
            return _anything(kind, args)
        finally:
            self.running -= 1
        handed.check(self.name)
        self.check()
        return answer

    def check(self) -> None:
        """Raise `InvalidInput` where something that the rule reaches is not as it was."""
        place = self.state.changed()
        if place is not None:
            raise RefusedCall(self.name, f"a call that changes {place}", EXPECTED)

    def check_generators(self) -> None:
        """Raise `InvalidInput` where a generator that lives anywhere in the process was drawn from."""
        moved, self._looked_at = self.census.moved(), self.calls
        if moved:
            raise RefusedCall(self.name, f"a draw from {moved[0]}", EXPECTED)

    def renew(self) -> None:
        """Compare with what is there now: a model was asked meanwhile, which may keep what it likes."""
        self.state.renew()
        self._stale = False

    @contextmanager
    def paused(self) -> Iterator[None]:
        """A model is asked, maybe in the middle of a call: what it changes is not the rule's doing."""
        running, self.running = self.running, 0
        with nobody_watches():
            if self.calls != self._looked_at:
                self.check_generators()
            if running:
                self.check()
            try:
                yield
            finally:
                self.census.moved()
                self.running, self._stale = running, True
                if running:
                    self.renew()

    def finish(self) -> None:
        """Compare large arrays and all generators too, and make the runs once more in reverse."""
        self.check_generators()
        place = None if self._stale else self.state.changed_at_last()
        if place is not None:
            raise RefusedCall(self.name, f"a call that changes {place}", EXPECTED)
        self.hooked = False  # every branch was seen already
        if self.proxy is not None:
            self.proxy.replay(LEAST)
        try:
            self.log.replay()
        except NotReproducible as error:
            raise InvalidInput(self.name, f"another answer to the same coins ({error})", EXPECTED) from error

    def check_cycle_independence(self, cycles: int) -> None:
        """Raise `InvalidInput` where a rule that lost in none of so many cycles looked at their number."""
        if self.looked:
            raise InvalidInput(self.name, "a look at the number of the cycle", LOOKED.format(cycles))

    def _look(self) -> None:
        self.looked = True


class _StandIns:
    """Stand-ins for clocks and entropy where C calls them, in place while any thread watches a rule."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.users = 0
        self.stack = ExitStack()

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Put them in place for a while."""
        with self.lock:
            if not self.users:
                self.stack.enter_context(applied(stand_ins()[0]))
            self.users += 1
        try:
            yield
        finally:
            with self.lock:
                self.users -= 1
                if not self.users:
                    self.stack.close()


_STAND_INS = _StandIns()
_CENSUS: ContextVar[list[Census] | None] = ContextVar("census", default=None)
_WATCH: ContextVar[RuleWatch | None] = ContextVar("watch", default=None)


def _call(part: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return part(*args, **kwargs)


def _weight(args: Any) -> Fraction:
    """Give the probability of the branch that a call stands in, as far as it was drawn when the call broke."""
    walk = next((each.walk for each in args if isinstance(each, ExhaustiveChooser)), None)
    return ALL_MASS if walk is None else fraction(walk.weight)


def _anything(kind: str, args: Any) -> Any:
    """Give an answer for a branch that only rounding reaches, and that breaks there."""
    if kind == "draft":
        return []
    row = args[0].p if kind == "verify_siblings" else args[0](args[2]) if kind == "cycle_function" else args[0]
    token = int(np.argmax(row))
    return (token,) if kind == "cycle_function" else (token, -1)


def _called(kind: str) -> str:
    return PARTS[kind][1]


def _census() -> Census:
    torch = sys.modules.get("torch")
    return Census() if torch is None else Census({"torch's generator": torch.default_generator})


@contextmanager
def one_census() -> Iterator[None]:
    """Within, the generators of the process are looked for once at most: that takes some milliseconds."""
    shared = _CENSUS.get()
    token = _CENSUS.set([] if shared is None else shared)
    try:
        yield
    finally:
        _CENSUS.reset(token)


@contextmanager
def watched(rule: Method, tiny: Fraction = NO_MASS) -> Iterator[tuple[Method, RuleWatch | None]]:
    """The rule, watched if any of its code is the user's own; at the end its runs are made once more.

    Raises `InvalidInput` where a call writes into a row, changes anything that it reaches, draws from a generator that
    is not its chooser, or answers differently when it is run again. A branch of no more than `tiny` probability may
    break: `broken` counts their probability.
    """
    parts = own_parts(rule)
    if not parts:
        yield rule, None
        return
    watch = RuleWatch(rule, parts, tiny)
    token = _WATCH.set(watch)
    try:
        watch.census.moved()  # what moved before is not the rule's doing
        with _STAND_INS():
            with recorded(watch.log):
                yield watch.rule(rule, parts), watch
            watch.finish()
    except NotReproducible as error:
        raise InvalidInput(rule.name, f"another answer to the same coins ({error})", EXPECTED) from error
    finally:
        _WATCH.reset(token)
