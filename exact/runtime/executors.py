"""Many small jobs on any `concurrent.futures` executor: processes here, a Dask cluster elsewhere, or none at all.

What is found does not depend on who worked or how fast: results come by job, in the order of the jobs where they are
asked for that way. Jobs travel in batches that grow until sending them costs next to nothing.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    wait,
)
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from itertools import islice
from multiprocessing import get_context, parent_process
from typing import Generic, TypeVar

from exact.enumeration.exits import checked
from exact.runtime import own_code
from exact.runtime.pickling import Shared, pack, portable
from rheo_core import InvalidInput
from rheo_core.checks import check_count

Job = TypeVar("Job")
Result = TypeVar("Result")

BATCH_SECONDS = 0.5
"""What a batch is to take: the next ones are made larger until they do, and smaller when one takes four times that."""

GROWTH = 8
"""A batch is at most so many times as large as the last: jobs may differ."""

CONNECT_SECONDS = 5
ADDRESS = re.compile(r"((tcp|tls)://)?(\[[0-9a-fA-F:.]+\]|[^\s/:\[\]]+):[0-9]+")


@contextmanager
def processes(workers: int) -> Iterator[Executor | None]:
    """A pool of `workers` processes (0: one for each processor); None, which is this process, for one worker."""
    workers = check_count("workers", workers, 0) or os.cpu_count() or 1
    if workers == 1:
        yield None
        return
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_end_with_parent)
    try:
        yield pool
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _end_with_parent() -> None:
    """End this worker when the process that started it ends, be it killed: nobody else would. Note what it reads."""
    own_code.note_opened(True)
    parent = parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def cluster(address: str) -> Iterator[Executor]:
    """The Dask cluster whose scheduler is at `address`; raises `InvalidInput` where none with workers answers there."""
    expected = "tcp://host:port of a Dask scheduler with workers"
    if not ADDRESS.fullmatch(address):
        raise InvalidInput("dask", address, expected)
    try:
        client = import_module("distributed").Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except Exception as error:
        raise InvalidInput("dask", address, f"{expected} ({error})") from None
    try:
        if not client.ncores():
            raise InvalidInput("dask", address, f"{expected} (this one has none)")
        yield client.get_executor(pure=False)
    finally:
        client.close()


def slots(executor: Executor) -> int:
    """How many jobs an executor runs at once, as far as it says."""
    client = getattr(executor, "_client", None)
    told: int | None = getattr(executor, "_max_workers", None) if client is None else sum(client.ncores().values())
    return told or os.cpu_count() or 1


def in_order(
    function: Callable[[Job], Result],
    jobs: Iterable[Job],
    executor: Executor | None = None,
    *,
    window: int | None = None,
) -> Generator[Result, None, None]:
    """`function(job)` for each job, in the order of the jobs; jobs are taken only as they are needed.

    `window` is the number of batches under way at once (None: twice the number of workers). Closing the iterator
    cancels what has not started. `function` is sent by value (see `sending.pack`); the jobs must be picklable when the
    executor uses other processes. Raises what `function` raises (from another process: `InvalidInput`,
    `EnumerationError`, or else `WorkerError`), and `InvalidInput` when a worker dies.
    """
    if executor is None:
        yield from (function(job) for job in jobs)  # unlike map, not ended by a StopIteration
        return
    batches = _Batches(function, enumerate(jobs), executor, window)
    try:
        while batches.fill():
            done = batches.take(next(iter(batches.waiting)))
            yield from (result for _, result in done.results)
            if done.error is not None:
                raise done.error
    finally:
        batches.cancel()


def as_done(
    function: Callable[[Job], Result], jobs: Iterable[Job], executor: Executor | None = None
) -> Generator[tuple[int, Result], None, None]:
    """(number of the job, `function(job)`) as each is done, so that nothing finished is lost when another job fails.

    The rest is as with `in_order`.
    """
    if executor is None:
        yield from enumerate(function(job) for job in jobs)
        return
    batches = _Batches(function, enumerate(jobs), executor, None)
    failed: list[Exception] = []
    try:
        while not failed and batches.fill():
            for future in wait(batches.waiting, return_when=FIRST_COMPLETED).done:
                try:
                    done = batches.take(future)
                except InvalidInput as error:
                    failed.append(error)
                    continue
                yield from done.results
                failed += [] if done.error is None else [done.error]
        if failed:
            raise failed[0]
    finally:
        batches.cancel()


@dataclass(frozen=True)
class _Done(Generic[Result]):
    """What came of a batch: numbered results, and the exception that ended it early."""

    results: list[tuple[int, Result]]
    seconds: float
    error: Exception | None
    files: dict[str, str] = field(default_factory=dict)


class _Batches(Generic[Job, Result]):
    """Batches of numbered jobs under way; `waiting` maps their futures, oldest first, to their sizes."""

    def __init__(
        self,
        function: Callable[[Job], Result],
        jobs: Iterator[tuple[int, Job]],
        executor: Executor,
        window: int | None,
    ) -> None:
        here = isinstance(executor, ThreadPoolExecutor)
        self.function = function if here else Shared[Job, Result](pack(function))
        self.jobs = jobs
        self.executor = executor
        self.window = window or 2 * slots(executor)
        self.size = 1
        self.waiting: dict[Future[_Done[Result]], int] = {}

    def fill(self) -> bool:
        """Send batches until the window is full; whether any is under way."""
        while len(self.waiting) < self.window and (batch := list(islice(self.jobs, self.size))):
            with _alive():
                self.waiting[self.executor.submit(_run, self.function, batch)] = len(batch)
        return bool(self.waiting)

    def take(self, future: Future[_Done[Result]]) -> _Done[Result]:
        """What came of a batch, waited for; the size of the next ones follows the time it took."""
        size = self.waiting.pop(future)
        with _alive():
            done = future.result()
        own_code.seen_elsewhere(done.files)
        if size == self.size and not BATCH_SECONDS <= done.seconds <= 4 * BATCH_SECONDS:
            wanted = int(size * BATCH_SECONDS / max(done.seconds, 1e-9))
            self.size = max(1, min(wanted, GROWTH * size))
        return done

    def cancel(self) -> None:
        """Cancel what has not started."""
        for future in self.waiting:
            future.cancel()


@contextmanager
def _alive() -> Iterator[None]:
    """One line for what an executor itself raises: a worker died or left, or cannot take or give back a job."""
    try:
        yield
    except Exception as error:
        of_cluster = type(error).__module__.partition(".")[0] == "distributed"
        died = "a worker died: " if of_cluster or isinstance(error, (BrokenExecutor, CancelledError)) else ""
        expected = "workers that stay alive and have this package; what a journal holds is not lost: run it again"
        raise InvalidInput("executor", f"{died}{type(error).__name__}: {error}", expected) from error


def _run(function: Callable[[Job], Result], jobs: list[tuple[int, Job]]) -> _Done[Result]:
    start = time.perf_counter()
    results: list[tuple[int, Result]] = []
    error: Exception | None = None
    try:
        for number, job in jobs:
            results.append((number, function(job)))
    except BaseException as raised:
        found = checked(None, raised)
        if not isinstance(found, Exception):
            raise
        error = portable(found) if isinstance(function, Shared) else found
    files = own_code.own_files() if isinstance(function, Shared) else {}
    return _Done(results, time.perf_counter() - start, error, files)
