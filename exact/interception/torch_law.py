"""The exact law of a function that draws through torch, NumPy or `random`, as it stands.

The function is run again and again while its random calls are caught; each call is a branch of one walk. Every run
starts from the state that the function met before the first. Whatever could draw unseen is watched: generators made
before, functions bound before, clocks, entropy, devices, threads, and random state that moved behind the back.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from fractions import Fraction
from typing import Any

import numpy as np

from exact.enumeration.rationals import ZERO, fraction
from exact.enumeration.read_ints import ReadInt
from exact.enumeration.step_laws import StepLaws
from exact.enumeration.walk import DRAWS, NotReproducible, ReplayLog, TooManyOutcomes, UnhashableResult, Walk
from exact.enumeration.whole_rows import MOST_WHOLE_REPLAYS, TRIED, DrawnRows, Spoiled, WholeRow
from exact.interception.patch_numpy import numpy_patches
from exact.interception.patch_random import random_patches
from exact.interception.session import ACTIVE, FILLINGS, Coins, Tracer
from exact.interception.symbolic import FOLLOWED, Uniform
from exact.interception.uninitialised import LEGACY, numpy_memory
from exact.interception.whole_results import WholeResult
from exact.runtime.census import Census, stream, unlisted
from exact.runtime.generators import bound_before, refuse_made_before
from exact.runtime.patches import Patch, Replacements
from exact.runtime.snapshot import Snapshot
from exact.runtime.unseen import Watch, stand_ins
from exact.runtime.unsupported import Unsupported, line_of
from rheo_core import InvalidInput

OFTEN = 16
"""Runs after which all generators that live are looked at, and not the near ones alone."""


def torch_law(function: Callable[..., Any], *args: Any, **kwargs: Any) -> dict[Hashable, Fraction]:
    """The exact law of `function(*args, **kwargs)`, whatever it draws through torch, NumPy or `random`.

    Tensors and arrays in the result become nested tuples of numbers. Uniforms are ideal real numbers; thresholds and
    weights count at their exact binary values; `ln` and `e^x` of numbers other than 0 and 1 to 100 digits. Raises
    `Unsupported` (operation and line) where a draw is not followed, `InvalidInput` on NaN or negative weights, and
    `NotReproducible` where a run leaves something behind that changes the next one.

    >>> import random
    >>> torch_law(lambda: "a" if random.random() < 0.25 else "b")
    {'a': Fraction(1, 4), 'b': Fraction(3, 4)}
    """
    return Interception().law(function, *args, **kwargs)


class Interception:
    """How a law is taken: `coins` "ideal" or "grid", at most `limit` outcomes.

    On the grid a uniform is a float as torch's CPU generator and NumPy's make it: a multiple of 2^-24 below 1 (2^-53 in
    float64), or in float16 and bfloat16 such a float32 one, rounded, with 1 turned into 0. There `<=` differs from `<`.
    Weighted draws (multinomial, choice) are ideal either way. `within` opens a context around every run; what `beside`
    reaches is put back with what the function reaches. With `whole`, a draw from a long row that nobody read gives one
    `WholeResult` for its run; `noted`, `steps` are the draws of the distribution taken last.
    """

    def __init__(
        self,
        coins: Coins = "ideal",
        limit: int | None = None,
        within: Callable[[], AbstractContextManager[Any]] = nullcontext,
        beside: Any = None,
        whole: bool = False,
        noted: bool = False,
    ) -> None:
        if coins not in ("ideal", "grid"):
            raise InvalidInput("coins", coins, "'ideal' or 'grid'")
        self.coins: Coins = coins
        self.limit = limit
        self.within = within
        self.walk: Walk | None = None  # of the law taken last
        self.beside = beside
        self.whole = whole
        self.rows: DrawnRows | None = None
        self.noted = noted
        self.steps = StepLaws()
        self.changed: dict[str, None] = {}
        """What the function wrote into that was not its own: put back before every run."""

    def law(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> dict[Hashable, Fraction]:
        """The exact law of `function(*args, **kwargs)`."""
        masses: dict[Hashable, Any] = {}
        for result, weight in self.outcomes(function, *args, **kwargs):
            masses[result] = masses.get(result, ZERO) + weight
        return {result: fraction(mass) for result, mass in masses.items()}

    def outcomes(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Iterator[tuple[Any, Any]]:
        """(result, exact weight) of every run, one by one; equal results are not merged."""
        if ACTIVE:
            raise Unsupported("torch_law inside torch_law", "a law taken while another is", "one at a time")
        session = Tracer(self.coins)
        self.walk, self.rows = session.walk, session.rows
        self.steps = StepLaws()
        session.walk.max_draws = None if self.limit is None else DRAWS
        snapshot = Snapshot(function, args, kwargs, self.beside)
        session.standing = _standing()
        names = snapshot.named()
        session.legacy = bool(names & LEGACY)
        session.rows.on = self.whole and "type" not in names
        patches = Replacements(_patches(session, function, args, kwargs) + numpy_memory(session, names))
        # The same code once more in other types was watched before.
        again = self.within is not nullcontext
        census = Census(_generators(snapshot), everywhere=not again)
        watch = Watch()
        watch.hooked = not again
        first, made = True, 0
        loaded = "torch" in sys.modules

        def run() -> Hashable:
            nonlocal made
            made += 1
            if first:
                census.moved(far=False)  # whoever takes the outcomes one by one may draw between them
                self.changed |= dict.fromkeys(snapshot.restore())
            session.begin()
            Unsupported.last = None
            with self._caught(session, patches):
                try:
                    result = session.ended(frozen(watch.call(function, *args, **kwargs)))
                    session.rows.over = True
                except Exception as error:
                    if Unsupported.last not in (None, error):
                        raise Unsupported.last from error
                    if isinstance(error, TypeError | AttributeError) and "uniform" in str(error).lower():
                        raise Unsupported("an operation", str(error), FOLLOWED, line_of(error)) from error
                    raise
            if Unsupported.last is not None:
                raise Unsupported.last
            if not loaded and "torch" in sys.modules:
                raise Unsupported("import of torch", "inside the function", "an import before", "the first run")
            if moved := census.moved(far=made <= OFTEN or made % OFTEN == 0):
                raise self._unseen(session, run, moved)
            return result  # type: ignore[no-any-return]

        log, whole = ReplayLog(), list[tuple[Any, WholeResult, int]]()
        try:
            for count, (result, weight) in enumerate(session.walk.runs(run)):
                if isinstance(result, WholeResult):
                    log.most_replays = MOST_WHOLE_REPLAYS
                    whole.append(([(branch, branch.taken) for branch in session.walk.path], result, session.rows.place))
                log.record(session.walk, run, result)
                if self.noted:
                    self.steps.note(session.walk.path, *_noted(result))
                if self.limit is not None and count == self.limit:
                    raise TooManyOutcomes(self.limit, fraction(session.walk.covered_mass()))
                yield result, weight
            if moved := census.moved(near=False):
                raise self._unseen(session, run, moved)
            self.changed |= dict.fromkeys(snapshot.restore())
            watch.hooked = False
            _try_numbers(session, run, whole)
            for filling in FILLINGS[1:] if session.blanks else ():
                session.filling = filling
                self._replay_with_other_fillings(session, log)
            session.filling, first = FILLINGS[0], False
            census.moved(far=False)
            self._replay_with_changes(snapshot, log)
        finally:
            self.changed |= dict.fromkeys(snapshot.restore())

    def _replay_with_other_fillings(self, session: Tracer, log: ReplayLog) -> None:
        """Make the runs again with other numbers in uninitialised memory."""
        try:
            log.replay()
        except NotReproducible as error:
            where = " and ".join(session.blanks)
            raise NotReproducible(f"the result depends on uninitialised memory: {where} ({error})") from error

    def _replay_with_changes(self, snapshot: Snapshot, log: ReplayLog) -> None:
        """Make the runs again without putting back what they change."""
        try:
            log.replay()
        except NotReproducible as error:
            kept = ", ".join(dict.fromkeys([*self.changed, *snapshot.changed()]))
            raise NotReproducible(f"{error} (the code changed {kept})" if kept else str(error)) from error

    def _unseen(self, session: Tracer, run: Callable[[], Any], moved: Sequence[str]) -> Exception:
        """The error for a draw that moved a real generator; the run is made once more to find its line."""
        said = f"a random state that moved: {', '.join(moved)}"
        if not session.suspicious:
            session.suspicious = True
            try:
                run()
            except Unsupported as error:
                return error
            except Exception as error:
                said = " ".join(str(error).split())
        return Unsupported("a draw that was not seen", said, "draws that Python calls on this thread", "this run")

    @contextmanager
    def _caught(self, session: Tracer, patches: Replacements) -> Iterator[None]:
        ACTIVE.append(session)
        session.active = True
        try:
            with patches.applied(), _torch_caught(session), self.within():
                yield
        finally:
            session.active = False
            ACTIVE.pop()


def _try_numbers(session: Tracer, run: Callable[[], Any], whole: list[tuple[Any, WholeResult, int]]) -> None:
    """Make some runs again with plain numbers in place of those that nobody read: nothing else may change."""
    for steps, result, place in whole[:: max(1, len(whole) // TRIED)]:
        support = result.row.support
        for token in {support[0], support[len(support) // 2], support[-1]}:
            session.rows.forced = place, token
            if session.walk.rerun(run, steps) != result.placed(token):
                raise Spoiled
    session.rows.forced = None


def _noted(result: Any) -> tuple[WholeRow | None, Any]:
    return (result.row, result.template) if isinstance(result, WholeResult) else (None, result)


def _patches(session: Tracer, function: Any, args: Any, kwargs: Mapping[str, Any]) -> list[Patch]:
    """Everything that is replaced while the function runs; raises for what was made before and can be seen in it."""
    in_random, originals = random_patches(session)
    in_numpy, in_numpy_names = numpy_patches(session)
    sources, source_names = stand_ins()
    patches, originals = in_random + in_numpy + sources, originals | in_numpy_names
    if "torch" in sys.modules:
        from exact.interception.patch_torch import torch_patches

        patches += torch_patches(session)
    refuse_made_before(function, args, kwargs, originals | source_names)
    looked_up = {id(vars(each.owner).get(each.name)): each.value for each in sources}
    replaced = {number: looked_up[number] for number in source_names.keys() & looked_up.keys()}
    return patches + bound_before(originals, patches, replaced)


def _torch_caught(session: Tracer) -> AbstractContextManager[None]:
    if "torch" not in sys.modules:
        return nullcontext()
    from exact.interception.patch_torch import torch_caught

    return torch_caught(session)


def frozen(result: Any) -> Hashable:
    """A result as a key of a law: tensors and arrays as nested tuples of numbers, containers as tuples."""
    if issubclass(type(result), ReadInt):
        return result  # type: ignore[no-any-return]
    if (handed_on := getattr(type(result), "as_drawn", None)) is not None:
        return frozen(handed_on(result))
    if isinstance(result, Uniform):
        raise Unsupported("a result", "a uniform", "a result decided by the draws", "the return value")
    if isinstance(result, Mapping):
        return tuple((key, frozen(value)) for key, value in result.items())
    if isinstance(result, list | tuple):
        if set(map(type, result)) <= _NUMBERS and all(item == item for item in result):
            return tuple(result)
        return tuple(frozen(item) for item in result)
    if isinstance(result, set | frozenset):
        return frozenset(frozen(item) for item in result)
    if hasattr(result, "tolist"):
        numbers = (result.detach() if hasattr(result, "detach") else result).tolist()
        return frozen(numbers)
    if isinstance(result, float) and result != result:
        raise InvalidInput("result", "NaN", "numbers")
    by: Any = type(result).__hash__
    if by is None or (by is object.__hash__ and type(result).__module__ != "builtins"):
        raise UnhashableResult(f"result: got {result!r}, expected something that is hashed by its value")
    return result  # type: ignore[no-any-return]


_NUMBERS = {int, float, bool}


def _default_generators() -> dict[str, Any]:
    torch = sys.modules.get("torch")
    if torch is None:
        return {}
    devices = torch.cuda.default_generators if torch.cuda.is_initialized() else ()
    return {"torch": torch.default_generator} | {f"torch on {each.device}": each for each in devices}


def _standing() -> dict[str, Hashable]:
    """The streams of the global generators where they stand: a generator made with the same state gives the same."""
    found = _global_generators()
    names = {"random": "random", "numpy": "numpy.random", "torch": "torch"}
    return {name: stream(found[place]) for name, place in names.items() if place in found}


def _global_generators() -> dict[str, Any]:
    numpys = np.random.mtrand._rand
    bits = {"the bits of numpy.random": numpys._bit_generator}
    return {"random": random._inst, "numpy.random": numpys} | bits | _default_generators()


def _generators(snapshot: Snapshot) -> dict[str, Any]:
    """The global generators, and those that the function reaches and the collector does not list."""
    kinds = unlisted()
    return _global_generators() | {place: each for place, each in snapshot.found if isinstance(each, kinds)}
