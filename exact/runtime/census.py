"""The generators that live in the process, and whether they moved: it shows what no hook sees.

NumPy's methods are no C functions to a profiler, and C that calls C shows nothing. Both move the state of a generator,
wherever it is held, and all of them are found through the collector.
"""

from __future__ import annotations

import gc
import random
import sys
import tempfile
from collections.abc import Mapping
from types import CodeType
from typing import Any

import numpy as np

from exact.runtime.alive import Alive

_RANDOM = random.Random.__base__ or random.Random
_NAMES: Any = vars(tempfile)["_RandomNameSequence"]
_PYTHONS, _SYSTEMS, _NUMPYS, _LEGACY = random.Random, random.SystemRandom, np.random.Generator, np.random.RandomState
_BITS = np.random.BitGenerator
_KINDS = (_PYTHONS, _LEGACY, _BITS)  # as they are: while code runs, the names stand for others
_ALIVE = Alive((*_KINDS, _NAMES))


class Census:
    """All generators alive, and whether they stand where they stood.

    Found through the collector, wherever they are held: closures, objects, dictionaries in dictionaries. Those in C
    without a place of their own there (torch's, `_random.Random`) are given in `also`, by place.
    """

    def __init__(self, also: Mapping[str, Any] | None = None, everywhere: bool = True) -> None:
        chosen = _ALIVE.all() if everywhere else []
        self._places = dict((also or {}).items())
        self._held = list({id(each): each for each in self._places.values()}.values())
        self._near = len(self._held)
        ours = {id(getattr(each, "_rng", None)) for each in chosen if type(each) is _NAMES}  # names of temporary files
        ours |= {id(each) for each in self._held}
        self._held += [each for each in chosen if isinstance(each, _KINDS) and id(each) not in ours]
        self._states = list(map(state, self._held))

    def __len__(self) -> int:
        return len(self._held)

    def moved(self, near: bool = True, far: bool = True) -> list[str]:
        """Names and places of the generators that moved since the last look: near are those given in `also`."""
        names = []
        for i in range(0 if near else self._near, len(self._held) if far else self._near):
            generator = self._held[i]
            now = state(generator)
            if now != self._states[i]:
                self._states[i] = now
                names.append(f"{type(generator).__module__}.{type(generator).__qualname__} ({self._place(generator)})")
        return names

    def _place(self, generator: Any) -> str:
        for place, value in self._places.items():
            if value is generator:
                return place
        return place_of(generator)


def unlisted() -> tuple[type, ...]:
    """The kinds of generators that the collector does not list."""
    torch = sys.modules.get("torch")
    return (_RANDOM,) if torch is None else (_RANDOM, torch._C.Generator)


def state(generator: Any) -> Any:
    """Where a generator stands, as a value that is compared."""
    if isinstance(generator, _NUMPYS):
        generator = generator.bit_generator
    if isinstance(generator, _BITS):
        return _plain(generator.state)
    if isinstance(generator, _LEGACY):
        return _plain(generator.get_state(legacy=False))
    if isinstance(generator, _SYSTEMS):
        return None
    if isinstance(generator, _RANDOM):
        return (*vars(_RANDOM)["getstate"](generator), getattr(generator, "gauss_next", None))
    return _of_torch(generator).tobytes()


def _plain(state: Any) -> Any:
    if isinstance(state, dict):
        return tuple((name, _plain(value)) for name, value in state.items())
    return state.tobytes() if isinstance(state, np.ndarray) else state


def _of_torch(generator: Any) -> Any:
    return sys.modules["torch"]._C.Generator.get_state(generator).numpy()


def stream(generator: Any) -> Any:
    """What decides all numbers that a generator will give: equal streams of one kind are equal values.

    The Mersenne Twister of `random`, of NumPy and of torch's CPU generator is one kind: `Random(1)` and
    `RandomState([1])` are one stream.
    """
    if isinstance(generator, _PYTHONS):
        _, (*words, position), *_ = generator.getstate()
        return "MT19937", np.array(words, dtype=np.uint32).tobytes(), position
    if isinstance(generator, _NUMPYS):
        generator = generator.bit_generator
    if isinstance(generator, _LEGACY | _BITS):
        held = generator.get_state(legacy=False) if isinstance(generator, _LEGACY) else generator.state
        if held["bit_generator"] == "MT19937":
            return "MT19937", held["state"]["key"].astype(np.uint32).tobytes(), int(held["state"]["pos"])
        return held["bit_generator"], _plain(held["state"])
    if generator.device.type != "cpu":
        return str(generator.device), _of_torch(generator).tobytes()
    held = _of_torch(generator)
    left, after = int(held[8:12].view(np.int32)[0]), int(held[16:24].view(np.uint64)[0])
    words = held[24 : 24 + 8 * 624].view(np.uint64).astype(np.uint32)
    return "MT19937", words.tobytes(), 624 if left == 1 else after


def place_of(thing: Any, depth: int = 3) -> str:
    """Where something is held, in words: a name of a module, an attribute, a variable of a closure."""
    for holder in gc.get_referrers(thing):
        if _ALIVE.holds_in(holder):
            continue
        if isinstance(holder, dict):
            name = next((key for key, value in holder.items() if value is thing), None)
            module = holder.get("__name__") if "__spec__" in holder else None
            if isinstance(name, str) and isinstance(module, str):
                return f"`{name}` of {module}"
            if name is not None and depth:
                return f"`{name}` in {place_of(holder, depth - 1)}"
        elif type(holder).__name__ == "cell":
            for cells in gc.get_referrers(holder):
                for owner in gc.get_referrers(cells) if isinstance(cells, tuple) else ():
                    code = getattr(owner, "__code__", None)
                    if isinstance(code, CodeType) and getattr(owner, "__closure__", None) is cells:
                        name = code.co_freevars[[each is holder for each in cells or ()].index(True)]
                        return f"`{name}` in the closure of {owner.__qualname__}"
        elif isinstance(holder, _NUMPYS):
            return place_of(holder, depth)
        elif getattr(holder, "__dict__", None) is not None and thing in vars(holder).values():
            return f"an attribute of a {type(holder).__qualname__}"
    return f"held by no name ({type(thing).__qualname__})"
