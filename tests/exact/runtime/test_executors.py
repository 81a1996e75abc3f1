"""Jobs on executors: order, batches, what travels and what a worker's failure looks like."""

import os
import pickle
import re
import subprocess
import sys
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from fractions import Fraction as F
from functools import partial
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from exact import TooManyOutcomes
from exact.cli import options
from exact.enumeration.walk import EnumerationError
from exact.methods import methods
from exact.methods.load import load_method
from exact.runtime.executors import as_done, in_order, processes, slots
from exact.runtime.pickling import KEPT, Shared, WorkerError, kept, pack, unpack
from rheo_core import InvalidInput


@pytest.fixture(scope="module")
def pool():
    with processes(2) as executor:
        yield executor


def square(job):
    return job * job


def fail_at(limit, error, job):
    if job == limit:
        raise error() if callable(error) else error
    return job


def unsendable():
    return InvalidInput("rule", threading.Lock(), "something else")


def too_many():
    return TooManyOutcomes(7, F(1, 2))


def test_the_same_results_on_every_executor(pool):
    expected = [square(job) for job in range(300)]
    with ThreadPoolExecutor(3) as threads:
        for executor in (None, threads, pool):
            assert list(in_order(square, range(300), executor)) == expected
            assert sorted(as_done(square, range(300), executor)) == list(enumerate(expected))


def test_functions_need_not_be_importable(pool):
    pytest.importorskip("cloudpickle", reason="cloudpickle is not installed (extra `test`)")
    plus = 7
    assert list(in_order(lambda job: job + plus, range(5), pool)) == [7, 8, 9, 10, 11]


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (InvalidInput("p", [1, 2], "a law"), InvalidInput, r"^p: got \[1, 2\], expected a law$"),
        (unsendable, InvalidInput, r"^rule: got <unlocked _thread.lock object at \w+>, expected something else$"),
        (too_many, EnumerationError, r"^more than 7 outcomes \(those enumerated hold 0.5 of the mass\)$"),
        (ZeroDivisionError("x"), WorkerError, r"^ZeroDivisionError: x$"),
    ],
)
def test_what_a_worker_raises_arrives_as_one_line(pool, error, kind, message):
    """`TooManyOutcomes` and anything that holds a lock cannot be pickled: they used to break the whole pool."""
    results = in_order(partial(fail_at, 3, error), range(10), pool)
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(kind, match=message.removesuffix("$")) as caught:
        next(results)
    assert type(caught.value) is kind
    assert re.search(message, str(caught.value))
    assert list(in_order(square, range(3), pool)) == [0, 1, 4], "the pool lives on"


def test_an_error_of_ours_keeps_the_workers_traceback(pool):
    with pytest.raises(WorkerError) as caught:
        list(in_order(os.stat, ["/absent/file"], pool))
    assert "FileNotFoundError" in str(caught.value)
    assert "in _run" in "".join(caught.value.__notes__)


def test_what_is_done_is_given_before_the_failure():
    """All jobs but one are done when it fails: as_done gives them all."""

    def job(number):
        if number == 0:
            time.sleep(0.3)
            raise InvalidInput("job", number, "none that fails")
        return number

    found: list[tuple[int, int]] = []
    with ThreadPoolExecutor(2) as threads:
        done = map(found.append, as_done(job, range(4), threads))
        with pytest.raises(InvalidInput, match="job: got 0"):
            list(done)
    assert sorted(found) == [(1, 1), (2, 2), (3, 3)]


def test_batches_shrink_where_jobs_become_heavy(monkeypatch):
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(time, "perf_counter", lambda: clock.now)
    sizes = []

    class Here(ThreadPoolExecutor):
        def submit(self, function, /, *args, **kwargs):
            sizes.append(len(args[1]))
            future: Future[Any] = Future()
            future.set_result(function(*args))
            return future

    def job(number):
        clock.now += 0.001 if number < 2000 else 0.1
        return number

    assert list(in_order(job, range(4000), Here(1))) == list(range(4000))
    assert max(sizes) == 500
    assert all(later <= 8 * earlier for earlier, later in pairwise(sizes))
    assert sizes[-2] <= 20  # of a tenth of a second: at most four times BATCH_SECONDS


def test_workers_are_counted(pool):
    assert slots(pool) == 2
    with ThreadPoolExecutor(5) as threads:
        assert slots(threads) == 5


def test_every_method_of_the_catalogue_can_be_sent(monkeypatch):
    for installed in (True, False):
        if not installed:
            monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
        for name, method in methods.items():
            assert unpack(pack([method])) == [method], name
    with pytest.raises(InvalidInput, match="pip install cloudpickle"):
        pack(lambda: None)


RULES = """
import rheo_core

class Half:
    uses_token = False
    def __call__(self, score, order, m, sampled):
        return score[order[m]]

@rheo_core.method
def plain(target, draft, prefix, shape, chooser):
    return [chooser.index(target(prefix))]

def verify(p, tail, candidates, sampled, lead, chooser, at):
    return chooser.index(p), -1
"""


@pytest.mark.parametrize("installed", [True, False])
@pytest.mark.parametrize("name", ["plain", "verify"])
def test_a_users_rule_can_be_sent_with_and_without_cloudpickle(tmp_path, monkeypatch, installed, name):
    if installed:
        pytest.importorskip("cloudpickle", reason="cloudpickle is not installed (extra `test`)")
    else:
        monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    rules = tmp_path / "own_rules.py"
    rules.write_text(RULES)
    data = pack(load_method(f"{rules}:{name}"))
    program = (
        "import sys\nfrom fractions import Fraction\n"
        "from exact.runtime.pickling import unpack\nfrom exact.verdict.certify import certify\n"
        "from rheo_core import TreeShape\nrule = unpack(sys.stdin.buffer.read())\n"
        "half = [Fraction(1, 2)] * 2\nprint(certify(rule, lambda x: half, lambda x: half, TreeShape(1, 1, 1)).verdict)"
    )
    done = subprocess.run([sys.executable, "-c", program], input=data, capture_output=True, check=False, timeout=60)
    assert done.stdout.strip() == b"lossless", done.stderr


def test_a_thread_keeps_what_it_used_last():
    made: list[int] = []

    for key in [*range(KEPT), 0, KEPT, 0, 1]:
        kept(("test", key), partial(made.append, key))
    assert made == [*range(KEPT), KEPT, 1], "0 was used and stays, 1 was not and went"


def test_shared_functions_are_unpacked_once_a_thread():
    function: Shared[bytes, int] = Shared(pack(pickle.loads))
    assert function(pickle.dumps(3)) == 3
    assert kept(function.data, lambda: None) is pickle.loads


def test_a_pool_or_a_cluster_but_not_both(monkeypatch):
    with pytest.raises(InvalidInput, match="workers and dask: got 2 and tcp://a:1"), options.opened(2, "tcp://a:1"):
        pass
    with options.opened(None, None) as executor:
        assert executor is None
    with options.opened(None, None, default=2) as executor:
        assert executor is not None
        assert slots(executor) == 2
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InvalidInput, match=r"rheo-lossless\[dask\]"), options.opened(None, "tcp://a:1"):
        pass


@pytest.mark.parametrize("address", ["nonsense", "", "http://127.0.0.1:8787/status", "tcp://127.0.0.1", "127.0.0.1:9"])
def test_a_cluster_that_does_not_answer_is_one_line(monkeypatch, address):
    pytest.importorskip("distributed", reason="distributed is not installed (extra `dask`)")
    monkeypatch.setattr("exact.runtime.executors.CONNECT_SECONDS", 0.5)
    start = time.monotonic()
    with pytest.raises(InvalidInput, match="expected tcp://host:port of a Dask scheduler"):
        options.opened(None, address).__enter__()
    assert time.monotonic() - start < 10


ORPHANS = """
import os
import time
from exact.runtime.executors import processes

if __name__ == "__main__":
    with processes(2) as pool:
        print(*{pool.submit(os.getpid).result() for _ in range(2)}, flush=True)
        time.sleep(60)
"""


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="looks for processes in /proc")
def test_workers_end_when_their_parent_is_killed(tmp_path):
    path = tmp_path / "orphans.py"
    path.write_text(ORPHANS, encoding="utf-8")
    with subprocess.Popen([sys.executable, path], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        workers = [int(each) for each in parent.stdout.readline().split()]
        assert workers
        assert all(_runs(each) for each in workers)
        parent.kill()
    end = time.monotonic() + 20
    while any(map(_runs, workers)) and time.monotonic() < end:
        time.sleep(0.05)
    assert not any(map(_runs, workers))


def _runs(pid):
    """Whether a process is there and no zombie, which nobody may reap in a container."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
