"""Work as bytes that another process, or another machine, can unpack.

A method of the catalogue travels by its name; a function or a rule of the user's own by value where cloudpickle is
installed, else by its file. What a thread has unpacked it keeps, so that a sweep's models and methods are made once
there, however many batches follow.
"""

from __future__ import annotations

import importlib
import importlib.util
import io
import pickle
import sys
import threading
import traceback
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Generic, TypeVar

from exact.enumeration.walk import EnumerationError
from rheo_core import InvalidInput

Job = TypeVar("Job")
Result = TypeVar("Result")
Thing = TypeVar("Thing")

KEPT = 4
"""Things kept by a thread: at most two methods and a sweep are under way at once."""

PLUGIN = "_rheo_plugin_"
"""How the modules made of a user's files begin."""

_NAMED: dict[str, Callable[[], Iterable[tuple[Hashable, Any]]]] = {}
"""Modules whose objects travel by name: each lists (key, object), and its `by_name(key)` finds one again."""

PLAIN = (str, int, float, Fraction, type(None))

_here = threading.local()


def travels_by_name(module: str, listed: Callable[[], Iterable[tuple[Hashable, Any]]]) -> None:
    """Let the objects that `module` lists be packed as their keys; its function `by_name(key)` gives them back."""
    _NAMED[module] = listed


def pack(thing: Any) -> bytes:
    """`thing` as bytes that another process can unpack; by value where cloudpickle is installed.

    Raises `InvalidInput` for what cannot be sent.
    """
    pickler: Any = pickle.Pickler
    names = {id(each): (module, key) for module, listed in _NAMED.items() for key, each in listed()}
    plugins = [module for name, module in list(sys.modules.items()) if name.startswith(PLUGIN)]
    try:
        if importlib.util.find_spec("cloudpickle") is not None:
            import cloudpickle

            pickler = cloudpickle.Pickler
            for module in plugins:
                cloudpickle.register_pickle_by_value(module)

        class ByName(pickler):  # type: ignore[misc]
            def persistent_id(self, each: Any) -> tuple[str, Hashable] | None:
                return names.get(id(each))

        file = io.BytesIO()
        ByName(file, protocol=pickle.HIGHEST_PROTOCOL).dump(thing)
        return file.getvalue()
    except Exception as error:
        expected = (
            "something that can be sent to another process: a name, or an object made of module-level functions "
            "(anything else: pip install cloudpickle)"
        )
        raise InvalidInput("method", f"{thing} ({error})", expected) from None


def unpack(data: bytes) -> Any:
    """What `pack` packed."""
    return _ByName(io.BytesIO(data)).load()


class _ByName(pickle.Unpickler):
    def persistent_load(self, place: Any) -> Any:
        module, key = place
        return importlib.import_module(module).by_name(key)


def kept(key: Hashable, make: Callable[[], Thing]) -> Thing:
    """What this thread made for `key` before, or makes now; what was not asked for longest is dropped."""
    held: dict[Hashable, Thing] = vars(_here).setdefault("held", {})
    thing = held.pop(key) if key in held else make()
    held[key] = thing
    if len(held) > KEPT:
        del held[next(iter(held))]
    return thing


@dataclass(frozen=True)
class Shared(Generic[Job, Result]):
    """A packed function of one argument; the thread that calls it unpacks it once."""

    data: bytes

    def __call__(self, job: Job) -> Result:
        """The function's result."""
        function: Callable[[Job], Result] = kept(self.data, lambda: unpack(self.data))
        return function(job)


class WorkerError(Exception):
    """An exception that no input should cause, raised in a worker; its traceback is a note."""


def portable(error: Exception) -> Exception:
    """An exception that arrives in another process with the same message, whatever it holds."""
    if isinstance(error, InvalidInput):
        value = error.value if isinstance(error.value, PLAIN) else " ".join(repr(error.value).split())
        kind = type(error) if type(error).__init__ is InvalidInput.__init__ else InvalidInput
        return kind(error.argument, value, error.expected)
    if isinstance(error, EnumerationError):
        return EnumerationError(str(error))
    found = WorkerError(f"{type(error).__name__}: {error}")
    found.add_note("".join(traceback.format_exception(error)))
    return found
