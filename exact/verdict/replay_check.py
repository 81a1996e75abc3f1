"""A rule of the user's own draws through its chooser alone, and keeps nothing from one call to the next.

An enumeration meets every outcome once, so a draw from elsewhere or a state between calls would pass for an exact law
that is none. The runs of such a rule are made once more at the end; generators in its sight are held to stand still,
and the system's entropy is refused. Rules of this project are not asked again.
"""

from __future__ import annotations

import os
import random
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import replace
from functools import partial, wraps
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from exact.enumeration.cycle_law import Emitted, NodeLaws, emitted_law
from exact.enumeration.fixed_trees import Node, NodeMethod, nodewise_law
from exact.enumeration.tree_classes import TreeClass
from exact.enumeration.walk import NotReproducible, Recall, recalled
from exact.runtime.generators import generator_kinds, held
from exact.runtime.patches import Patch, applied, importing
from exact.verdict.identity import CycleMethod, is_ours
from exact.verdict.watched_proxy import WatchedProxy
from rheo_core import Chooser, DraftRow, FunctionMethod, InvalidInput, Method, TreeMethod, TreeShape
from rheo_core.rows import Pair, Prefix
from rheo_core.verification import Place, Verdict

CYCLES = (1, 2, 1000)
"""The cycles that a rule is told it is in."""

REFERENCE = ("rheo_core.", "exact.methods.")


class Steady:
    """A model that is asked twice at each prefix; raises `InvalidInput` where it answers differently."""

    def __init__(self, model: Callable[[Prefix], Any], name: str) -> None:
        self.model = model
        self.name = name

    def __call__(self, prefix: Prefix) -> Any:
        """The row at `prefix`."""
        first, second = self.model(prefix), self.model(prefix)
        if not _same(_plain(first), _plain(second)):
            given = "two different rows when asked twice"
            raise InvalidInput(f"{self.name}({prefix})", given, "one row: a model must be a function of its prefix")
        return first


def _plain(row: Any) -> Any:
    """A row as plain numbers; None for what is no row, which is refused elsewhere."""
    if isinstance(row, DraftRow):
        return row.record(0)
    try:
        array = np.asarray(row)
    except (TypeError, ValueError):
        return None
    return array.tolist() if array.ndim == 1 else None


def _same(first: Any, second: Any) -> bool:
    return bool(first == second) or repr(first) == repr(second)  # NaN is not equal to itself


def check_every_cycle(
    rule: Method, pair: Pair, prefix: Prefix, shape: TreeShape, known: list[TreeClass] | None, emitted: Emitted
) -> None:
    """Raise `InvalidInput` unless a rule emits the law `emitted` in other cycles too; `known` are its classes.

    Only for rules that are handed addresses, and not for those of this project.
    """
    for cycle in CYCLES:
        if isinstance(rule, TreeMethod) and known is not None and not comes_from(rule.verify, REFERENCE):
            laws = NodeLaws(rule.drafter(pair, shape), partial(_in_cycle, rule.verify, cycle))
            law = emitted_law(known, laws, prefix)
        elif isinstance(rule, NodeMethod) and not all(
            comes_from(part, REFERENCE) for part in (rule.verify, rule.draft)
        ):
            law = nodewise_law(_renumbered(rule, cycle), pair, prefix, shape)
        else:
            return
        if law != emitted:
            given = f"another law in cycle {cycle} than in cycle 0"
            raise InvalidInput(rule.name, given, "a rule that does not look at the cycle number in `at`")


def _in_cycle(
    verify: Any,
    cycle: int,
    p: Any,
    tail: Any,
    candidates: Sequence[int],
    sampled: int,
    lead: int,
    chooser: Chooser,
    at: Place,
) -> Any:
    return verify(p, tail, candidates, sampled, lead, chooser, (cycle, *at[1:]))


def _renumbered(rule: NodeMethod, cycle: int) -> NodeMethod:
    def there(node: Node) -> Node:
        return replace(node, at=(cycle, node.at[1]))

    def draft(node: Node, chooser: Chooser) -> Any:
        return rule.draft(there(node), chooser)

    def verify(node: Node, candidates: Sequence[int], chooser: Chooser) -> Verdict:
        return rule.verify(there(node), candidates, chooser)

    return replace(rule, draft=draft, verify=verify)


def comes_from(part: Any, packages: tuple[str, ...]) -> bool:
    """Whether a function, or what a partial is made of, is defined in one of `packages` (names ending in a dot)."""
    while isinstance(part, partial):
        part = part.func
    return str(getattr(part, "__module__", "")).startswith(packages)


EXPECTED = "a rule that draws through its chooser alone and keeps nothing between calls"
LEAST = 500
"""Runs of a rule, at least, before it is taken to have no state."""

_MADE: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
_RUNNING: ContextVar[str | None] = ContextVar("running", default=None)


@contextmanager
def asked_again(rule: Method) -> Iterator[Method]:
    """The rule, watched if it is a user's own; at the end its runs are made once more.

    Raises `InvalidInput` where a run differs, or where it drew from a generator that is not its chooser.
    """
    parts = {name: part for name, part in _parts(rule).items() if not is_ours(part)}
    if not parts:
        yield rule
        return
    generators = {place: each for part in parts.values() for place, each in _generators(part).items()}
    recall = Recall(always=False)
    watch = partial(_watched, rule.name, generators, recall)
    watched = {name: watch(part) for name, part in parts.items()}
    proxy = WatchedProxy(watched["proxy"], parts["proxy"], rule.name) if "proxy" in parts else None
    if proxy is not None:
        watched["proxy"] = proxy
    before = _states(generators)
    with _entropy_refused():
        try:
            try:
                with recalled(recall):
                    yield _with_parts(rule, watched)
            except InvalidInput:  # which may only follow from a draw unseen
                recall.precise = bool(_moved(before, _states(generators)))
                recall.ask()
                raise
            recall.precise = bool(_moved(before, _states(generators)))
            if proxy is not None:
                proxy.ask_again(LEAST)
            _ask(recall, rule, parts)
        except NotReproducible as error:
            moved = _moved(before, _states(generators))
            given = _drawn(moved) if moved else f"another answer to the same coins ({error})"
            raise InvalidInput(rule.name, given, EXPECTED) from error


def _ask(recall: Recall, rule: Method, parts: dict[str, Any]) -> None:
    """Make the runs again, of a rule not met before until it has been run so many times: it may change late."""
    key: Any = rule if "cycle" in parts else next(iter(parts.values()))
    try:
        made = _MADE.get(key, 0)
    except TypeError:  # no key of a dictionary: asked once
        made = LEAST
    recall.ask()
    made += recall.made
    while recall.made and made < LEAST:
        recall.ask()
        made += recall.asked
    with suppress(TypeError):
        _MADE[key] = made


def _parts(rule: Method) -> dict[str, Any]:
    """The functions that a method draws in."""
    if isinstance(rule, TreeMethod):
        return {"verify": rule.verify, "proxy": rule.proxy}
    if isinstance(rule, NodeMethod):
        return {"draft": rule.draft, "verify": rule.verify}
    return {"function": rule.function} if isinstance(rule, FunctionMethod) else {"cycle": rule.cycle}


def _with_parts(rule: Any, parts: dict[str, Any]) -> Method:
    return CycleMethod(rule.name, rule.claim, **parts) if "cycle" in parts else replace(rule, **parts)


def _watched(name: str, generators: dict[str, Any], recall: Recall, part: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(part)
    def asked(*args: Any, **kwargs: Any) -> Any:
        recall.touched = True
        before = _states(generators) if recall.precise else {}
        token = _RUNNING.set(name)
        try:
            answer = part(*args, **kwargs)
        finally:
            _RUNNING.reset(token)
        if recall.precise and (moved := _moved(before, _states(generators))):
            raise InvalidInput(name, _drawn(moved), EXPECTED)
        return answer

    return asked


def _drawn(moved: Sequence[str]) -> str:
    return f"a draw from {' and '.join(moved)}"


def _generators(part: Any) -> dict[str, Any]:
    """Generators that a rule can be seen to hold, or to hold a method of, by where they are."""
    while isinstance(part, partial):
        part = part.func
    seen = held(getattr(part, "rule", part))
    if (owner := seen.get("the object of the method")) is not None:
        seen |= {f"attribute `{name}`": value for name, value in getattr(owner, "__dict__", {}).items()}
    found = {place: getattr(value, "__self__", value) for place, value in seen.items()}
    return {place: value for place, value in found.items() if isinstance(value, generator_kinds())}


def _states(generators: dict[str, Any]) -> dict[str, Any]:
    """Where the global generators of `random`, NumPy and torch stand, and those of `generators`."""
    _, key, *rest = np.random.get_state(legacy=True)  # noqa: NPY002 (the global one is what is looked at)
    states: dict[str, Any] = {"random": random.getstate(), "numpy.random": (np.asarray(key).tobytes(), *rest)}
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "default_generator"):
        states["torch"] = torch.default_generator.get_state().numpy().tobytes()
    return states | {place: _state(generator) for place, generator in generators.items()}


def _state(generator: Any) -> Any:
    if isinstance(generator, random.Random):
        return None if isinstance(generator, random.SystemRandom) else generator.getstate()
    if isinstance(generator, np.random.Generator):
        return repr(generator.bit_generator.state)
    state = generator.get_state()
    return state.numpy().tobytes() if hasattr(state, "numpy") else (np.asarray(state[1]).tobytes(), *state[2:])


def _moved(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    return [name for name, state in before.items() if after[name] != state]


class _Shared:
    """Replacements that stay while any thread needs them."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.users = 0
        self.stack = ExitStack()


_ENTROPY = _Shared()


@contextmanager
def _entropy_refused() -> Iterator[None]:
    """The system's entropy, and generators seeded by it, refuse to be used inside a rule."""
    with _ENTROPY.lock:
        if not _ENTROPY.users:
            _ENTROPY.stack.enter_context(applied(_patches()))
        _ENTROPY.users += 1
    try:
        yield
    finally:
        with _ENTROPY.lock:
            _ENTROPY.users -= 1
            if not _ENTROPY.users:
                _ENTROPY.stack.close()


def _patches() -> list[Patch]:
    entropy, seed = os.urandom, random.Random.seed

    def refuse() -> None:
        rule = _RUNNING.get()
        if rule is not None and not importing():
            raise InvalidInput(rule, "a draw from the system's entropy", EXPECTED)

    def urandom(size: int) -> bytes:
        refuse()
        return entropy(size)

    def seeded(self: random.Random, a: Any = None, version: int = 2) -> None:
        if a is None:
            refuse()
        seed(self, a, version)

    owners: list[tuple[Any, str, Any]] = [(os, "urandom", urandom), (random, "_urandom", urandom)]
    return [Patch(*each) for each in (*owners, (random.Random, "seed", seeded))]
