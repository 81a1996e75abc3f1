"""The generators that live in the process, and whether they moved: it shows what no hook sees.

NumPy's methods are no C functions to a profiler, and C that calls C shows nothing. Both move the state of a generator,
wherever it is held, and all of them are found through the collector in some milliseconds.
"""

from __future__ import annotations

import gc
import random
from collections.abc import Mapping
from itertools import compress
from typing import Any

import numpy as np

_RANDOM = random.Random.__base__ or random.Random
_KINDS = (random.Random, np.random.RandomState, np.random.BitGenerator)


class Census:
    """All generators alive, and whether they stand where they stood.

    Found through the collector, wherever they are held: closures, objects, dictionaries in dictionaries. Those in C
    without a place of their own there (torch's, `_random.Random`) are given in `also`, by place.
    """

    def __init__(self, also: Mapping[str, Any] | None = None) -> None:
        found = gc.get_objects()
        types = list(map(type, found))
        wanted = {each for each in set(types) if issubclass(each, _KINDS)}
        generators = list(compress(found, map(wanted.__contains__, types))) if wanted else []
        del found
        self._places = dict((also or {}).items())
        self._held = [each for each in generators if not isinstance(each, random.SystemRandom)]
        known = {id(each) for each in self._held}
        self._held += [each for each in self._places.values() if id(each) not in known]
        self._states = list(map(state, self._held))

    def __len__(self) -> int:
        return len(self._held)

    def moved(self) -> list[str]:
        """Names and places of the generators that moved since the last look, or were moved back to another state."""
        names = []
        for i, generator in enumerate(self._held):
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


def state(generator: Any) -> Any:
    """Where a generator stands, as a value that is compared."""
    if isinstance(generator, np.random.Generator):
        generator = generator.bit_generator
    if isinstance(generator, np.random.BitGenerator):
        return repr(generator.state)
    if isinstance(generator, np.random.RandomState):
        return repr(generator.get_state(legacy=False))
    if isinstance(generator, random.SystemRandom):
        return None
    if isinstance(generator, _RANDOM):
        return (*vars(_RANDOM)["getstate"](generator), getattr(generator, "gauss_next", None))
    return generator.get_state().numpy().tobytes()


def place_of(thing: Any, depth: int = 3) -> str:
    """Where something is held, in words: a name of a module, an attribute, a variable of a closure."""
    for holder in gc.get_referrers(thing):
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
                    if code is not None and getattr(owner, "__closure__", None) is cells:
                        name = code.co_freevars[cells.index(holder)]
                        return f"`{name}` in the closure of {owner.__qualname__}"
        elif isinstance(holder, np.random.Generator):
            return place_of(holder, depth)
        elif getattr(holder, "__dict__", None) is not None and thing in vars(holder).values():
            return f"an attribute of a {type(holder).__qualname__}"
    return f"held by no name ({type(thing).__qualname__})"
