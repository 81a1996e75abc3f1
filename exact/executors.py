"""Many small jobs on any `concurrent.futures` executor: processes here, a cluster elsewhere, or no executor at all.

Results come in the order of the jobs, so what is found does not depend on who worked or how fast; jobs travel in
batches that grow until sending them costs next to nothing. A method is sent by name where it has one.
"""

from __future__ import annotations

import importlib.util
import os
import pickle
import sys
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from itertools import islice
from multiprocessing import get_context
from typing import Any, TypeVar

from exact.plugins import PLUGIN
from rheo_core import InvalidInput
from rheo_core.errors import check_count

Job = TypeVar("Job")
Result = TypeVar("Result")

BATCH_SECONDS = 0.25
"""A batch is made twice as large until it takes this long."""


@contextmanager
def processes(workers: int) -> Iterator[Executor | None]:
    """A pool of `workers` processes (0: one for each processor); None, which is this process, for one worker."""
    workers = check_count("workers", workers, 0) or os.cpu_count() or 1
    if workers == 1:
        yield None
        return
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"))
    try:
        yield pool
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def in_order(
    function: Callable[[Job], Result],
    jobs: Iterable[Job],
    executor: Executor | None = None,
    *,
    window: int | None = None,
) -> Generator[Result, None, None]:
    """`function(job)` for each job, in the order of the jobs; jobs are taken only as they are needed.

    `window` is the number of batches under way at once (None: twice the number of processors). Closing the iterator
    cancels what has not started. `function` and the jobs must be picklable when the executor uses other processes.
    Raises `InvalidInput` when a worker dies.
    """
    if executor is None:
        yield from map(function, jobs)
        return
    if window is None:
        window = 2 * (os.cpu_count() or 1)
    waiting: deque[Future[tuple[list[Result], float]]] = deque()
    source = iter(jobs)
    size = 1
    try:
        while True:
            while len(waiting) < window and (batch := list(islice(source, size))):
                waiting.append(executor.submit(_batch, function, batch))
            if not waiting:
                return
            try:
                results, seconds = waiting.popleft().result()
            except BrokenExecutor as error:
                expected = "workers that stay alive (is memory short?); what a journal holds is not lost"
                raise InvalidInput("executor", f"a worker died: {error}", expected) from error
            if seconds < BATCH_SECONDS and len(results) == size:
                size *= 2
            yield from results
    finally:
        for future in waiting:
            future.cancel()


def _batch(function: Callable[[Job], Result], jobs: list[Job]) -> tuple[list[Result], float]:
    start = time.perf_counter()
    results = [function(job) for job in jobs]
    return results, time.perf_counter() - start


def pack(thing: Any) -> bytes:
    """`thing` as bytes that another process can unpack; by value where cloudpickle is installed.

    Raises `InvalidInput` for what cannot be sent.
    """
    try:
        if importlib.util.find_spec("cloudpickle") is None:
            return pickle.dumps(thing)
        import cloudpickle

        for name, module in list(sys.modules.items()):
            if name.startswith(PLUGIN):
                cloudpickle.register_pickle_by_value(module)
        return bytes(cloudpickle.dumps(thing))
    except Exception as error:
        expected = "something that can be sent to another process: a name, or an object made of module-level functions"
        raise InvalidInput("method", f"{thing} ({error})", expected) from None


def unpack(data: bytes) -> Any:
    """What `pack` packed."""
    return pickle.loads(data)
