"""The user's code in processes of its own: an end without an answer is no verdict, and two hash seeds must agree.

`os._exit(0)`, an abort or a kill for want of memory end the process that they happen in, with any exit code. So a
command that runs a user's file does so in children, each with another PYTHONHASHSEED and another filling of fresh
memory. They answer through a file with a secret that the user's code is not told; what they print and write is shown
and saved when all of them have answered alike.
"""

from __future__ import annotations

import faulthandler
import importlib
import json
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from io import StringIO
from pathlib import Path
from typing import Any

from exact.enumeration.exits import is_own
from exact.runtime import atomic_files, own_code, streams

SEEDS = (1, 2)
"""Hash seeds that are always tried, side by side."""
MORE_SEEDS = (3, 4, 5, 6, 7, 8)
"""Those tried as well where the user's own code makes sets: two elements keep their order under 8 seeds once in 128."""
FILLINGS = (255, 192)
"""What malloc of the GNU C library fills memory with, flipped: zero bytes, and bytes 0x3f (floats of about 3/4)."""
BOOT = (
    "import json, sys; job = json.load(open(sys.argv[1])); sys.path[:] = job['path']; sys.argv[:] = job['argv']; "
    "from exact.runtime.child import begin; begin(job)"
)
GRACE = 2.0
"""Seconds in which a child that is interrupted may end by itself."""
POLL = 0.02

Answer = dict[str, Any]


class Child:
    """One process that runs a command line; the `first` of them may draw a bar of progress and keep the journal."""

    def __init__(self, run: str, line: Sequence[str], seed: int, first: bool, shown: dict[str, Any]) -> None:
        self.seed = seed
        self.folder = Path(tempfile.mkdtemp(prefix="rheo-"))
        self.secret = secrets.token_hex(16)
        self.printed = streams.Printed()
        job = {
            "run": run, "argv": list(line), "path": sys.path, "secret": self.secret, "folder": str(self.folder),
            "parent": os.getpid(), "suffix": "" if first else f".hash-seed-{seed}", **shown,
        }  # fmt: skip
        (self.folder / "job").write_text(json.dumps(job))
        flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
        self.process = subprocess.Popen(
            [sys.executable, *flags, "-P", "-c", BOOT, str(self.folder / "job")],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=None if first and sys.stderr is not None else subprocess.DEVNULL,
            env=os.environ | {"PYTHONHASHSEED": str(seed), "GLIBC_TUNABLES": _tunables(seed)},
            start_new_session=True,
        )
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        pipe = self.process.stdout.fileno()
        for part in iter(lambda: os.read(pipe, 1 << 16), b""):
            self.printed.write(part.decode("utf-8", "backslashreplace"))

    def answer(self) -> Answer | None:
        """What the child answered; None where it ended without."""
        try:
            answer: Answer = json.loads((self.folder / "answer").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return answer if answer.get("secret") == self.secret else None

    def note(self) -> str:
        """The one line that says what the code under test printed; empty where nothing was."""
        self.reader.join(0.2)
        return self.printed.note()

    def end(self) -> str:
        """How a child that did not answer ended, where, and what it printed last."""
        code = self.process.returncode
        how = f"an end with exit code {code}" if code >= 0 else f"an end by {_signal(-code)}"
        self.reader.join(0.2)
        self.printed.note()
        last = f"; the last line printed: '{streams.shortened(self.printed.last)}'" if self.printed.last else ""
        return f"{how}{self._place()}{last}"

    def _place(self) -> str:
        with suppress(OSError):
            text = (self.folder / "fault").read_text(encoding="utf-8", errors="replace")
            found = [each for each in re.findall(r'File "([^"]*)", line (\d+)', text) if is_own(each[0])]
            return f" at {Path(found[0][0]).name}:{found[0][1]}" if found else ""
        return ""

    def stop(self, kindly: bool = False) -> None:
        """End the child and whatever it started, and remove its folder."""
        if kindly and self.process.poll() is None:
            self._signal_all(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(GRACE)
        self._signal_all(getattr(signal, "SIGKILL", signal.SIGTERM))
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _signal_all(self, number: int) -> None:
        with suppress(ProcessLookupError, PermissionError):
            if hasattr(os, "killpg"):
                os.killpg(self.process.pid, number)
            elif self.process.poll() is None:
                self.process.send_signal(number)


def _tunables(seed: int) -> str:
    own = f"glibc.malloc.perturb={FILLINGS[seed != SEEDS[0]]}:glibc.malloc.tcache_count=0"
    return ":".join(filter(None, [os.environ.get("GLIBC_TUNABLES", ""), own]))


def _signal(number: int) -> str:
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"signal {number}"
    return f"{name} (out of memory, or a kill)" if name == "SIGKILL" else name


def first_seed() -> int:
    """The hash seed of the first child: the one that is asked for, else the first."""
    asked = os.environ.get("PYTHONHASHSEED", "")
    return int(asked) if asked.isdecimal() else SEEDS[0]


def answers(run: str, line: Sequence[str], shown: dict[str, Any], alone: bool) -> Iterator[tuple[Child, Answer | None]]:
    """(child, its answer) of every seed, the first seed's first; `alone`: of that one only.

    A child that answers nothing, or refuses, ends all. `KeyboardInterrupt` ends them too.
    """
    begun: list[Child] = []
    first = first_seed()

    def start(seeds: Sequence[int]) -> list[Child]:
        made = [Child(run, line, seed, seed == first, shown) for seed in seeds]
        begun.extend(made)
        return made

    kindly = True
    try:
        seeds = [first] if alone else [first, *[seed for seed in SEEDS if seed != first][:1]]
        found = _ended(start(seeds))
        yield from found
        if not alone and all(each is not None and each["order"] for _, each in found):
            more = [seed for seed in MORE_SEEDS if seed not in seeds]
            for at in range(0, len(more), 2):
                yield from _ended(start(more[at : at + 2]))
        kindly = False
    finally:
        for child in begun:
            child.stop(kindly)


def _ended(children: list[Child]) -> list[tuple[Child, Answer | None]]:
    """Wait until all have ended, or one without a verdict: then only that one is listed."""
    waiting = list(children)
    while waiting:
        for child in list(waiting):
            if child.process.poll() is not None:
                waiting.remove(child)
                answer = child.answer()
                if answer is None or answer["message"] is not None:
                    return [(child, answer)]
        time.sleep(POLL)
    return [(child, child.answer()) for child in children]


class _Buffer(StringIO):
    """Output that is shown later; a terminal where that will be one."""

    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self.terminal = terminal

    def isatty(self) -> bool:
        """Whether it will be shown on a terminal."""
        return self.terminal


def begin(job: dict[str, Any]) -> None:
    """Run a job in this child, write its answer, and end."""
    me, leave = os.getpid(), os._exit
    folder = Path(job["folder"])
    (folder / "job").unlink()
    threading.Thread(target=_end_with, args=(job["parent"], leave), daemon=True).start()
    fault = open(folder / "fault", "w", encoding="utf-8")  # noqa: SIM115
    faulthandler.enable(fault)
    _note_ends(fault)
    error = os.fdopen(os.dup(2), "w", buffering=1, errors="backslashreplace")
    os.dup2(1, 2)
    theirs, out = sys.stdout, _Buffer(job["terminal"])
    sys.stdout, sys.stderr = out, error
    atomic_files.WAITING = []
    atomic_files.SUFFIX = job["suffix"]
    with streams.kept_apart(theirs):
        module, _, name = job["run"].partition(":")
        answer: Answer = getattr(importlib.import_module(module), name)(job)
    with suppress(Exception):
        theirs.flush()
    order = answer["message"] is None and own_code.order_can_matter()
    answer |= {"secret": job["secret"], "out": out.getvalue(), "files": atomic_files.WAITING, "order": order}
    if os.getpid() == me:  # and no copy of it that the user's code made
        (folder / "answer.part").write_text(json.dumps(answer), encoding="utf-8")
        (folder / "answer.part").replace(folder / "answer")
    leave(0)


def _end_with(parent: int, leave: Callable[[int], Any]) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    leave(1)


def _note_ends(fault: Any) -> None:
    """Note the line from which the process ends itself, where that is not a crash."""
    leave = os._exit

    def note() -> None:
        faulthandler.dump_traceback(fault, all_threads=False)

    def noted(status: int) -> None:
        note()
        leave(status)

    def heard(event: str, arguments: tuple[Any, ...]) -> None:
        if event in ("os.kill", "os.killpg", "signal.pthread_kill"):
            note()

    os._exit = noted  # type: ignore[assignment]
    sys.addaudithook(heard)
