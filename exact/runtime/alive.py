"""The generators alive in the process, without a look at every object each time that they are asked for.

A look at all objects takes tens of milliseconds once torch is loaded. What is made later is young to the collector
until its second collection, so it is enough to look at the young before each of those, and when the generators are
asked for. Whatever breaks this (a callback removed, objects thawed) leads to a look at all objects again.
"""

from __future__ import annotations

import _thread
import atexit
import gc
import sys
import time
import weakref
from collections.abc import Iterable
from itertools import compress
from typing import Any


class Alive:
    """The objects alive of some kinds and of the classes derived from them, but for those of the interception."""

    def __init__(self, kinds: Iterable[type]) -> None:
        self.kinds = tuple(kinds)
        self._weak: dict[int, weakref.ref[Any]] = {}
        self._held: dict[int, Any] = {}  # NumPy's have no weak references: let go of when nobody else holds them
        self._frozen = -1
        self._most = 64

    def all(self) -> list[Any]:
        """Those that are alive now."""
        collecting = gc.isenabled()
        gc.disable()
        try:
            self._look()
            self._let_go()
            known = [held() for held in self._weak.values()]
            return [*(each for each in known if each is not None), *self._held.values()]
        finally:
            if collecting:
                gc.enable()

    def holds_in(self, holder: Any) -> bool:
        """Whether something that refers to a generator is where this object keeps it."""
        return holder is self._held

    def _look(self) -> None:
        frozen = gc.get_freeze_count()
        if self._collecting in gc.callbacks and frozen == self._frozen:
            self._look_at_young()
            return
        if self._collecting not in gc.callbacks:
            gc.callbacks.append(self._collecting)
            atexit.register(self._stop)
        self._frozen = frozen
        self._note(gc.get_objects())

    def _collecting(self, phase: str, info: dict[str, int]) -> None:
        """Look at what is about to become old."""
        if phase == "start" and info["generation"] > 0:
            try:
                self._look_at_young()
                if len(self._held) + len(self._weak) > self._most:
                    self._let_go()
                    self._most = 2 * (len(self._held) + len(self._weak)) + 64
            except KeyboardInterrupt:  # which a callback cannot raise
                self._frozen = -1
                _thread.start_new_thread(_interrupt_soon, ())

    def _look_at_young(self) -> None:
        self._note(gc.get_objects(0))
        self._note(gc.get_objects(1))

    def _note(self, objects: list[Any]) -> None:
        wanted = {each for kind in self.kinds for each in _with_subclasses(kind)}
        for each in compress(objects, map(wanted.__contains__, map(type, objects))):
            try:
                self._weak[id(each)] = weakref.ref(each)
            except TypeError:
                self._held[id(each)] = each

    def _let_go(self) -> None:
        self._weak = {number: held for number, held in self._weak.items() if held() is not None}
        for number in [number for number in self._held if _references(self._held, number) == _NOBODY]:
            del self._held[number]

    def _stop(self) -> None:
        if self._collecting in gc.callbacks:
            gc.callbacks.remove(self._collecting)


def _references(held: dict[int, Any], number: int) -> int:
    return sys.getrefcount(held[number])


_NOBODY = _references({0: object()}, 0)


def _interrupt_soon() -> None:
    time.sleep(0.01)
    _thread.interrupt_main()


def _with_subclasses(kind: type) -> set[type]:
    found: set[type] = set()
    derived: type
    for derived in kind.__subclasses__():
        found |= _with_subclasses(derived)
    return found if kind.__module__.startswith("exact.interception.") else {kind, *found}
