"""Every sweep gives the same result on every executor, and loses nothing when a worker is killed."""

import json
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import asdict
from functools import partial

import pytest

from exact.acceptance.one_layer import Costs, choices
from exact.acceptance.sweeps import sweep, versions_of
from exact.cli import certify, classes, faults, main, options
from exact.cli.compare import compare
from exact.faults import cases
from exact.methods import methods
from exact.methods.rows_file import parse_rows
from exact.runtime.executors import cluster, in_order, processes
from exact.runtime.journal import Journal, resumed
from exact.search import Bounds, exhaust
from exact.search.acceptance_gap import widest_gaps
from montecarlo.checks import Suite
from montecarlo.cli.main import app as montecarlo_app
from montecarlo.keyed_random import Uniforms
from montecarlo.pairs import Dials, synthetic
from montecarlo.planning import ErrorRates, Powers
from montecarlo.simulation import MISS, simulate
from rheo_core import InvalidInput, ModelPair, TreeShape
from tests.montecarlo.killers import always, counted, killer

ROWS = parse_rows(
    '{"contexts": {"*": {"target": ["1/2", "1/5", "3/10"], "draft": ["1/2", "3/10", "1/5"]}}}', "three tokens"
)
SHAPE = TreeShape(2, 2, 3)
CHOSEN = [methods[name] for name in ("rheo", "rheo-rrsw", "top-k", "chain", "traversal", "typical")]


def certified(executor: Executor | None):
    jobs = certify.jobs_on(ROWS, CHOSEN, SHAPE)
    return [(each.label, each.certificate) for each in certify.run(jobs, executor)]


def compared(executor: Executor | None):
    return list(compare(CHOSEN, [ROWS], SHAPE, executor=executor))


def swept(executor: Executor | None):
    return list(sweep(versions_of(methods["rheo"], SHAPE), [ROWS], SHAPE, executor=executor))


def chosen(executor: Executor | None):
    pairs = [ModelPair(ROWS.target, ROWS.draft)]
    return list(choices(CHOSEN[:3], pairs, [SHAPE, TreeShape(2, 1, 2)], Costs(1, 2), executor=executor))


def drafted(executor: Executor | None):
    jobs = [(classes.tree_method(methods[name]), ROWS) for name in ("rheo", "top-k")]
    found = list(in_order(partial(classes.sorted_classes, jobs, SHAPE, 1000, 5), range(2), executor))
    return [(count, [(each.tree.key(), each.probability) for each in listed]) for count, listed in found]


def faulty(executor: Executor | None):
    return list(faults.run_all([cases[key] for key in ("A1", "C1", "R6")], executor))


def hunted(executor: Executor | None):
    return exhaust("rheo-half", [Bounds(2, 2, 2, 2, 3, 2)], executor=executor).counterexample


def gaps(executor: Executor | None):
    bounds = [Bounds(2, 1, 2, 2, 4, 0)]
    return widest_gaps("rheo", "rheo-rrsw", seconds=1000, bounds=bounds, executor=executor)


def simulated(executor: Executor | None):
    suite = Suite(methods["rheo"], synthetic(Dials(vocabulary=8, states=2)), SHAPE, Uniforms(3))
    return asdict(simulate(suite, 9000, executor=executor))


def powered(executor: Executor | None):
    errors = ErrorRates(1e-6, MISS)
    return Powers((methods["rheo-raw"], methods["typical"]), (ROWS,), SHAPE, 1000, errors).all(executor)


def proved(executor: Executor | None):
    pytest.importorskip("flint", reason="python-flint is not installed (extra `prove`)")
    from exact.proofs.pools import prove_pools

    return [(each.name, each.verdict, each.cases, each.witness) for each in prove_pools(limit=3, executor=executor)]


SWEEPS = [certified, compared, swept, chosen, drafted, faulty, hunted, gaps, simulated, powered]
LONG = [proved]


@pytest.fixture(scope="module")
def pool():
    with processes(2) as executor:
        yield executor


@pytest.fixture(scope="module")
def pair_of_workers():
    """The address of a Dask cluster of two processes."""
    distributed = pytest.importorskip("distributed", reason="distributed is not installed (extra `dask`)")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, memory_limit=None, silence_logs=50
    ) as local:
        yield local


@pytest.mark.parametrize("program", SWEEPS, ids=lambda program: program.__name__)
def test_the_same_result_on_threads_and_processes(program, pool):
    expected = program(None)
    with ThreadPoolExecutor(2) as threads:
        assert program(threads) == expected
    assert program(pool) == expected


@pytest.mark.slow
@pytest.mark.parametrize("program", LONG, ids=lambda program: program.__name__)
def test_longer_ones_too(program, pool):
    assert program(pool) == program(None)


@pytest.mark.slow
@pytest.mark.parametrize("program", [*SWEEPS, *LONG], ids=lambda program: program.__name__)
def test_the_same_result_on_a_cluster(program, pair_of_workers):
    with cluster(pair_of_workers.scheduler_address) as executor:
        assert program(executor) == program(None)


def test_nothing_is_lost_when_a_worker_of_a_cluster_is_killed(pair_of_workers, tmp_path):
    flag = tmp_path / "flag"
    flag.touch()
    with cluster(pair_of_workers.scheduler_address) as executor:
        assert list(in_order(partial(killer, str(flag), 30), range(60), executor)) == [job**2 for job in range(60)]
    assert not flag.exists(), "nobody was killed"


@pytest.mark.slow
def test_a_job_that_kills_every_worker_is_one_line(pair_of_workers):
    with (
        cluster(pair_of_workers.scheduler_address) as executor,
        pytest.raises(InvalidInput, match="executor: got a worker died: KilledWorker"),
    ):
        list(in_order(always, range(8), executor))


@pytest.mark.slow
def test_a_scheduler_that_goes_away_is_one_line():
    distributed = pytest.importorskip("distributed", reason="distributed is not installed (extra `dask`)")
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None, silence_logs=50) as local,
        cluster(local.scheduler_address) as executor,
    ):
        results = in_order(partial(killer, "/absent", -1), range(10_000), executor)
        next(results)
        local.close()
        with pytest.raises(InvalidInput, match="executor: got a worker died"):
            list(results)


def test_a_killed_process_loses_nothing_that_the_journal_holds(tmp_path):
    flag, folder, path = tmp_path / "flag", tmp_path / "done", tmp_path / "journal"
    flag.touch()
    folder.mkdir()
    jobs = {f"job {number}": number for number in range(24)}
    function = partial(counted, str(folder), str(flag))
    with processes(2) as pool, pytest.raises(InvalidInput, match=r"a worker died.*what a journal holds is not lost"):
        list(resumed(function, jobs, pool, Journal(path, "s")))
    assert not flag.exists()
    kept = Journal(path, "s").known
    assert 0 < len(kept) < 24
    before = set(folder.iterdir())
    with processes(2) as pool:
        assert list(resumed(function, jobs, pool, Journal(path, "s"))) == [number**2 for number in range(24)]
    again = {int(each.name.partition(".")[0]) for each in set(folder.iterdir()) - before}
    assert again == {number for key, number in jobs.items() if key not in kept}


DEADLY = """
import os
from rheo_core.verification import algorithm_1

def verify(p, tail, candidates, sampled, lead, chooser, at):
    if os.path.exists({flag!r}):
        os.unlink({flag!r})
        os.abort()
    return algorithm_1(p, tail, candidates, sampled, lead, chooser, at)
"""


def test_a_command_whose_worker_is_killed_says_so_and_goes_on(tmp_path, capsys):
    rules, flag, journal = tmp_path / "rules.py", tmp_path / "flag", tmp_path / "journal"
    rules.write_text(DEADLY.format(flag=str(flag)))
    arguments = [
        "compare",
        "rheo",
        "top-k",
        f"{rules}:verify",
        "--width",
        "2",
        "--depth",
        "1",
        "--budget",
        "2",
        "--json",
    ]
    assert options.run(main.app, arguments) == 0
    undisturbed = capsys.readouterr().out
    arguments += ["--workers", "2", "--resume", str(journal)]
    flag.touch()
    assert options.run(main.app, arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: executor: got a worker died")
    assert captured.err.count("\n") == 1
    assert options.run(main.app, arguments) == 0
    assert capsys.readouterr().out == undisturbed


def test_a_journal_holds_several_simulations(tmp_path, capsys):
    journal = tmp_path / "journal"
    small = ["--vocabulary", "8", "--states", "2", "--width", "2", "--depth", "1", "--budget", "2", "--json"]
    arguments = ["simulate", "rheo", "top-k", "--cycles", "300", *small, "--resume", str(journal)]
    assert options.run(montecarlo_app, arguments) == 0
    first = json.loads(capsys.readouterr().out)
    lines = journal.read_text().splitlines()
    assert [json.loads(line)["job"] for line in lines[1:]] == ["1: rheo on synthetic", "2: top-k on synthetic"]
    assert options.run(montecarlo_app, arguments) == 0
    assert json.loads(capsys.readouterr().out) == first


def test_a_users_error_in_a_worker_is_one_line(tmp_path, capsys):
    rules = tmp_path / "broken.py"
    rules.write_text(
        "import rheo_core\n@rheo_core.method\ndef broken(target, draft, prefix, shape, chooser):\n    return 1 / 0\n"
    )
    small = ["--vocabulary", "8", "--states", "2", "--width", "2", "--depth", "1", "--budget", "2"]
    for workers in ("1", "2"):
        code = options.run(montecarlo_app, ["simulate", f"{rules}:broken", *small, "--workers", workers])
        assert code == 2
        captured = capsys.readouterr()
        assert captured.err.startswith("error: broken: got ZeroDivisionError: division by zero")
        assert captured.err.count("\n") == 1
