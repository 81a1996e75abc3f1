"""Randomness that nobody catches: seen while code runs, and refused by name.

Two watchmen, since each is blind somewhere. A profile hook sees every C function that Python calls (a clock, the
system's entropy, a generator's method), on rare branches too, since every branch is run. An audit hook sees files,
processes, threads and sockets, whoever opens them. NumPy's methods and C functions called from C (`map(rng.random,
...)`) show to neither: for them there are `stand_ins` and the census of generators.

Libraries may use such sources for themselves: the caller decides. The nearest frame that is not a helper of the
standard library answers for a call; `_QUIET` names the few whose answer is never handed out.
"""

from __future__ import annotations

import gc
import multiprocessing.process  # noqa: F401 (it draws a key when it is first imported: not in the code under test)
import os
import random
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FrameType, ModuleType
from typing import Any

from exact.runtime.patches import Patch
from exact.runtime.unsupported import OURS, STANDARD_LIBRARY, Unsupported, format_line

INSTEAD = "draws through the generators that are followed, and nothing else that may differ from call to call"

_CLOCKS = "time time_ns perf_counter perf_counter_ns monotonic monotonic_ns process_time process_time_ns thread_time"
_TABLE = {
    "a clock": {
        "time": f"{_CLOCKS} thread_time_ns clock_gettime clock_gettime_ns localtime gmtime ctime asctime strftime",
        "datetime": "now utcnow today",
        "posix": "times getloadavg",
        "nt": "times",
        "resource": "getrusage",
    },
    "the system's entropy": {
        "posix": "urandom getrandom",
        "nt": "urandom",
        "_ssl": "RAND_bytes RAND_pseudo_bytes",
        "_uuid": "generate_time_safe UuidCreate",
    },
    "another process": {
        "posix": "fork forkpty posix_spawn posix_spawnp system popen execv execve",
        "_posixsubprocess": "fork_exec",
        "nt": "spawnv spawnve system startfile",
        "_winapi": "CreateProcess",
    },
    "another thread": {
        "_thread": "start_new_thread start_new start_joinable_thread",
        "_queue": "put put_nowait",
    },
    "an open descriptor": {"posix": "read pread readv preadv", "nt": "read"},
    "who is running": {
        "posix": "getpid getppid gettid",
        "nt": "getpid getppid",
        "_thread": "get_ident get_native_id",
        "gc": "get_count get_stats get_objects",
    },
    "where an object lies": {"builtins": "id hash"},
}
_SOURCES = {
    (module, name): what
    for what, modules in _TABLE.items()
    for module, names in modules.items()
    for name in names.split()
}
_NAMES = frozenset(name for _, name in _SOURCES) | {"random", "getrandbits", "seed", "getstate", "setstate"}
_OWN_FRAME_ONLY = ("who is running", "where an object lies")  # libraries ask for these all the time, for themselves
_EVENTS = {
    "subprocess.Popen": "another process",
    "os.system": "another process",
    "os.fork": "another process",
    "os.forkpty": "another process",
    "os.posix_spawn": "another process",
    "os.spawn": "another process",
    "os.exec": "another process",
    "_thread.start_new_thread": "another thread",
    "_thread.start_joinable_thread": "another thread",
    "socket.__new__": "the network",
    "ctypes.dlopen": "a foreign library",
    "ctypes.dlsym": "a foreign library",
}
_DEVICES = ("/dev/", "/proc/", "/sys/")
_HARMLESS = ("/dev/null", "/dev/full", "/dev/zero", "/proc/self/fd", "/dev/shm/")

_ANYTHING = frozenset({*_TABLE, *_EVENTS.values(), "a device", "a generator"})
_QUIET = {
    "tempfile.py": _ANYTHING,
    "multiprocessing/synchronize.py": _ANYTHING,
    "multiprocessing/resource_tracker.py": _ANYTHING,
    "multiprocessing/process.py": frozenset({"who is running"}),
    "logging/__init__.py": frozenset({"a clock", "who is running"}),
    "linecache.py": _ANYTHING,
}
_QUIET_PACKAGES = {
    "torch": _ANYTHING - {"the system's entropy", "a generator"},  # compilation, its caches and its own measurements
    "triton": _ANYTHING - {"the system's entropy", "a generator"},
    "tqdm": _ANYTHING - {"the system's entropy", "a generator"},  # a progress bar's clock and monitor
    "hypothesis": frozenset({"a clock"}),  # which measures every collection of garbage
}


def responsible(frame: FrameType | None) -> FrameType | None:
    """The frame that answers for a call: the nearest one that is no helper of the standard library; None: ours."""
    if frame is not None and frame.f_code.co_filename.startswith(OURS) and frame.f_code is not _RUNNER:
        return None
    while frame is not None and frame.f_code is not _RUNNER and _helper(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def _helper(path: str) -> bool:
    """Whether a file is one of the standard library that only passes on what it is asked for, or one of ours."""
    if path.startswith(OURS):
        return True
    return _in_standard_library(path) and path[len(STANDARD_LIBRARY) + 1 :] not in _QUIET


def _in_standard_library(path: str) -> bool:
    return path.startswith("<frozen") or (path.startswith(STANDARD_LIBRARY) and "site-packages" not in path)


def may_use(what: str, frame: FrameType | None) -> bool:
    """Whether the caller may use a source: it keeps the answer to itself, or is a library that is being imported."""
    if what in _OWN_FRAME_ONLY and frame is not None and frame.f_code is not _RUNNER:
        path = frame.f_code.co_filename
        if _in_standard_library(path) or "site-packages" in path:
            return True
    answering = responsible(frame)
    if answering is None:
        return True
    path = answering.f_code.co_filename
    if _in_standard_library(path):
        return what in _QUIET.get(path[len(STANDARD_LIBRARY) + 1 :], frozenset())
    if "site-packages" not in path:
        return False
    package = path.replace("\\", "/").rpartition("site-packages/")[2].partition("/")[0]
    return what in _QUIET_PACKAGES.get(package, frozenset()) or importing(answering)


def importing(frame: FrameType | None) -> bool:
    """Whether a frame runs because a module is being imported."""
    while frame is not None and frame.f_code is not _RUNNER:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def source(function: Any) -> tuple[str, str] | None:
    """(what it is, its name), if a C function is a source of what may differ from call to call."""
    owner, name = getattr(function, "__self__", None), function.__name__
    if isinstance(owner, _RANDOM):
        return "a generator", f"{type(owner).__module__}.{type(owner).__qualname__}.{name}"
    if isinstance(owner, type):
        module = owner.__module__ if issubclass(owner, _DATE) else ""
    elif owner is None or isinstance(owner, ModuleType):
        module = function.__module__ or getattr(owner, "__name__", "")
    else:
        module = type(owner).__module__
    what = _SOURCES.get((module, name))
    module = {"posix": "os", "nt": "os", "datetime": "datetime.datetime", "_thread": "threading"}.get(module, module)
    return None if what is None else (what, f"{module}.{name}")


class Watch:
    """Sees what code under test uses while `call` runs it, and raises `Unsupported` with the name and the line.

    Code that swallows the exception does not get past it: `call` raises it again at its end.
    """

    def __init__(self) -> None:
        self.hooked = True  # False: no profile hook, for runs that are made again
        self.refusal: Unsupported | None = None

    def call(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """`function(*args, **kwargs)`, watched."""
        _audit()
        self.refusal = None
        outer, before = sys.getprofile(), getattr(_HERE, "watch", None)
        outer_threads = threading.getprofile()
        _HERE.watch = self
        collecting = gc.isenabled()
        gc.disable()  # whoever is called back by a collection would be taken for the code under test
        if self.hooked:
            hook = self._hook(outer)
            threading.setprofile(hook)
            sys.setprofile(hook)
        try:
            return function(*args, **kwargs)
        finally:
            if self.hooked:
                _restore(outer)
                threading.setprofile(outer_threads)
            if collecting:
                gc.enable()
            _HERE.watch = before
            refusal, self.refusal = self.refusal, None
            if refusal is not None:
                raise refusal

    def _hook(self, outer: Any) -> Callable[[FrameType, str, Any], None]:
        names = _NAMES

        def hook(frame: FrameType, event: str, arg: Any) -> None:
            if event == "c_call" and arg.__name__ in names:
                self._judge(frame, arg)

        def both(frame: FrameType, event: str, arg: Any) -> None:
            outer(frame, event, arg)
            hook(frame, event, arg)

        return both if callable(outer) else hook

    def _judge(self, frame: FrameType, function: Any) -> None:
        if getattr(_HERE, "watch", self) is None:
            return
        found = source(function)
        if found is not None and not may_use(found[0], frame):
            self.refuse(*found, frame)

    def refuse(self, what: str, name: str, frame: FrameType | None) -> None:
        """Raise for a source that was used in a frame."""
        self.refusal = Unsupported(name, what, INSTEAD, _line(frame))
        raise self.refusal


def unwatched(function: Callable[..., Any], *args: Any) -> Any:
    """`function(*args)` for the interception's own use, whatever it takes: nothing of it may reach the code."""
    watch, _HERE.watch = getattr(_HERE, "watch", None), None
    try:
        return function(*args)
    finally:
        _HERE.watch = watch


_RUNNER: CodeType = Watch.call.__code__
_HERE = threading.local()
_RANDOM = random.Random.__base__ or random.Random
_DATE = __import__("datetime").date


@contextmanager
def nobody_watches() -> Iterator[None]:
    """Within, nobody watches: a model is asked in the middle of a rule, and answers for itself."""
    outer, threads, before = sys.getprofile(), threading.getprofile(), getattr(_HERE, "watch", None)
    sys.setprofile(None)
    threading.setprofile(None)
    _HERE.watch = None
    try:
        yield
    finally:
        _HERE.watch = before
        threading.setprofile(threads)
        _restore(outer)


def _line(frame: FrameType | None) -> str:
    answering = responsible(frame)
    if answering is None or answering.f_code is _RUNNER:
        return "the function itself"
    return format_line(answering, answering.f_lineno)


def _restore(outer: Any) -> None:
    """Put a profiler back as it was; one in C is enabled again, as it cannot be called."""
    if outer is None or callable(outer):
        sys.setprofile(outer)
    else:
        sys.setprofile(None)
        outer.enable()


_AUDITED: list[bool] = []


def _audit() -> None:
    """Listen to the interpreter's audit events, once for the process: silent while nothing is watched."""
    if not _AUDITED:
        _AUDITED.append(True)
        sys.addaudithook(_on_event)


def _on_event(event: str, args: tuple[Any, ...]) -> None:
    watch = getattr(_HERE, "watch", None)
    if watch is None:
        return
    what = _EVENTS.get(event)
    name = event
    if event == "open":
        path = args[0]
        if isinstance(path, int) or not _is_device(os.fspath(path)):
            return
        what, name = "a device", f"open({path!r})"
    if what is not None:
        frame = sys._getframe(1)
        if not may_use(what, frame):
            watch.refuse(what, name, frame)


def _is_device(path: Any) -> bool:
    path = os.fsdecode(path)
    real = path if path.startswith(_DEVICES) else os.path.realpath(path)
    return real.startswith(_DEVICES) and not real.startswith(_HARMLESS)


def stand_ins() -> tuple[list[Patch], dict[int, str]]:
    """Replacements of the sources where they are looked up, for C that calls them; the originals' names by their id.

    Whoever may use a source gets the original's answer. Only while a `Watch` runs does any of them refuse.
    """
    places: list[tuple[str, str]] = [(module, name) for module, name in _SOURCES if module not in _NOT_REPLACED]
    patches, originals = [], {}
    for module, name in [*places, ("random", "_urandom")]:
        owner = sys.modules.get("os" if module in ("posix", "nt") else module)
        function = getattr(owner, name, None)
        found = source(function) if callable(function) and hasattr(function, "__name__") else None
        if found is not None:
            patches.append(Patch(owner, name, _stand_in(function, *found)))
            originals[id(function)] = found[1]
    wrapper = vars(tempfile)["_TemporaryFileWrapper"]
    patches.append(Patch(wrapper, "name", property(_name_of_file, lambda self, name: self.__dict__.update(name=name))))
    for name in ("mktemp", "mkdtemp", "mkstemp"):
        patches.append(Patch(tempfile, name, _stand_in(getattr(tempfile, name), _RANDOM_NAME, f"tempfile.{name}")))
    return patches, originals


_RANDOM_NAME = "a random name"  # which the standard library may use, and not hand out


def _name_of_file(file: Any) -> Any:
    watch, frame = getattr(_HERE, "watch", None), sys._getframe(1)
    if watch is not None and not _in_standard_library(frame.f_code.co_filename):
        watch.refuse(_RANDOM_NAME, "the name of a temporary file", frame)
    return file.__dict__["name"]


_NOT_REPLACED = ("builtins", "datetime", "_thread", "gc", "_queue", "_posixsubprocess", "_winapi")


def _stand_in(original: Any, what: str, name: str) -> Callable[..., Any]:
    def asked(*args: Any, **kwargs: Any) -> Any:
        watch = getattr(_HERE, "watch", None)
        frame = sys._getframe(1)
        if watch is not None and not may_use(what, frame):
            watch.refuse(what, name, frame)
        return original(*args, **kwargs)

    return asked
