"""Each run starts from the state before the first; what code writes into is named; equal streams are equal coins."""

import os
import random
import tempfile
import time
from fractions import Fraction

import numpy as np
import pytest

import exact
from exact.interception import Unsupported, certify_function, torch_law
from exact.runtime.census import stream
from exact.runtime.snapshot import Snapshot

torch = pytest.importorskip("torch", reason="torch is not installed (extra `torch`)")
pytestmark = pytest.mark.exact
P, Q = [0.5, 0.3, 0.2], [0.7, 0.2, 0.1]
TARGET, DRAFT = torch.tensor(P), torch.tensor(Q)
ARRAY, LIST = np.array(P), list(P)
ARRAY.flags.writeable = False


def chain(p):
    x = torch.multinomial(DRAFT, 1)
    if torch.rand(1) < p[x] / DRAFT[x]:
        return x
    return torch.multinomial((p - DRAFT).clamp(min=0), 1)


def of_a_global():
    TARGET[TARGET < 0.25] = 0
    TARGET.div_(TARGET.sum())
    return chain(TARGET)


def of_an_argument(p=TARGET):
    p.copy_(torch.where(p < 0.25, 0, p) / torch.where(p < 0.25, 0, p).sum())
    return chain(p)


def of_a_shared_view():
    view = TARGET.numpy()
    view[:] = [0.625, 0.375, 0.0]
    return chain(TARGET)


def of_an_array():
    ARRAY.flags.writeable = True
    ARRAY[:] = [0.625, 0.375, 0.0]
    return chain(torch.tensor(ARRAY, dtype=torch.float32))


def of_a_list():
    LIST[:] = [0.625, 0.375, 0.0]
    return chain(torch.tensor(LIST))


class Model:
    def __init__(self):
        self.row = torch.tensor(P)

    def __call__(self, prefix):
        return self.row


MODEL = Model()


def of_a_models_row():
    MODEL.row[2] = 0
    MODEL.row /= MODEL.row.sum()
    return chain(MODEL.row)


ALIASES = [
    (of_a_global, TARGET, None, "`TARGET`"),
    (of_an_argument, TARGET, None, "a default"),
    (of_a_shared_view, TARGET, None, "`TARGET`"),
    (of_an_array, ARRAY, None, "`ARRAY`"),
    (of_a_list, LIST, None, "`LIST`"),
    (of_a_models_row, MODEL, 1, "`row` of the target"),
]


@pytest.mark.parametrize(("function", "target", "length", "named"), ALIASES)
def test_a_target_that_the_code_writes_into_is_the_one_it_was(function, target, length, named):
    found = certify_function(function, target=target, length=length)
    assert found.lossless is False
    assert float(found.total_variation) == pytest.approx(0.2, abs=1e-6)
    assert named in found.scope
    assert TARGET.tolist() == torch.tensor(P).tolist()  # and is that again
    assert ARRAY.tolist() == LIST == P


def test_without_the_snapshot_the_writer_would_pass(monkeypatch):
    monkeypatch.setattr(Snapshot, "_walk", lambda self, roots: None)
    before = TARGET.clone()
    try:
        found = certify_function(of_a_global, target=lambda: torch.multinomial(TARGET, 1))
        assert found.lossless is not False
    finally:
        TARGET.copy_(before)


COUNT = [0]


def counts():
    COUNT[0] += 1
    return int(random.random() < (0.5 if COUNT[0] == 1 else 0.25))


def test_state_that_matters_is_refused_by_name_and_averaged_nowhere():
    with pytest.raises(exact.NotReproducible, match="COUNT"):
        torch_law(counts)
    assert COUNT == [0]


def test_state_that_does_not_matter_is_named():
    log = []

    def logs():
        log.append(1)
        return int(random.random() < 0.5)

    found = certify_function(logs, target=[0.5, 0.5])
    assert found.lossless
    assert "the code changed `log`" in found.scope
    assert log == []


def test_an_iterator_made_before_is_refused():
    numbers = iter([0, 1] * 9)
    with pytest.raises(Unsupported, match="numbers"):
        torch_law(lambda: (next(numbers), random.random() < 0.5)[0])


def test_equal_streams_are_the_same_coins():
    def default_seeds():
        g, h = torch.Generator(), torch.Generator()
        return 2 * int(torch.rand(1, generator=g) < 0.5) + int(torch.rand(1, generator=h) < 0.5)

    def signs():
        return (random.Random(1).random() < 0.5) == (random.Random(-1).random() < 0.5)

    def wrapped():
        g, h = torch.Generator().manual_seed(-1), torch.Generator().manual_seed(2**64 - 1)
        return bool((torch.rand(1, generator=g) < 0.5) == (torch.rand(1, generator=h) < 0.5))

    def shared():
        return bool(random.Random(1).random() < 0.5) == bool(np.random.RandomState([1]).random_sample() < 0.5)

    half = Fraction(1, 2)
    assert torch_law(default_seeds) == {0: half, 3: half}
    assert torch_law(signs) == torch_law(wrapped) == {True: 1}
    with pytest.raises(Unsupported, match="the same calls"):  # one stream, read in two ways
        torch_law(shared)


def test_other_streams_are_independent():
    def numpys():
        return bool(np.random.default_rng(1).random() < 0.5), bool(np.random.RandomState(1).random_sample() < 0.5)

    def torchs():
        g, h = torch.Generator().manual_seed(1), torch.Generator().manual_seed(2)
        return bool(torch.rand(1, generator=g) < 0.5), bool(torch.rand(1, generator=h) < 0.5)

    assert len(torch_law(numpys)) == len(torch_law(torchs)) == 4


def test_a_stream_is_what_its_generator_will_give():
    generator = torch.Generator().manual_seed(5)
    legacy = np.random.RandomState(5)
    assert stream(generator) == stream(legacy)
    torch.rand(4, generator=generator)
    legacy.random_sample(2)
    assert stream(generator) == stream(legacy) != stream(np.random.RandomState(5))


def hidden(probability):
    deep = {"a": [np.random.default_rng(3)]}

    def draw():
        if random.random() < probability:
            return int(next(map(deep["a"][0].integers, [2])))
        return int(random.random() < 0.5)

    return draw


@pytest.mark.parametrize("probability", [0.05, 0.001])
def test_a_generator_in_a_helpers_closure_is_refused(probability):
    helper = hidden(probability)
    with pytest.raises(Unsupported, match="PCG64"):
        certify_function(lambda: helper(), target=[0.5, 0.5])


def test_a_clock_on_a_rare_branch_is_refused_with_its_line():
    def clock():
        rare = random.random() < 0.001
        return time.time_ns() % 2 if rare else int(random.random() < 0.5)

    with pytest.raises(Unsupported, match=r"time\.time_ns at test_state.py"):
        certify_function(clock, target=[0.5, 0.5])


def test_a_librarys_own_names_are_no_draws_of_the_code():
    def draws():
        with tempfile.NamedTemporaryFile():
            return int(random.random() < 0.5)

    assert certify_function(draws, target=[0.5, 0.5]).lossless


def test_a_progress_bar_is_no_clock_of_the_code():
    tqdm = pytest.importorskip("tqdm", reason="tqdm is not installed (extra `torch`)").tqdm

    def draws():
        with open(os.devnull, "w", encoding="utf-8") as nowhere:
            return sum(int(random.random() < 0.5) for _ in tqdm(range(1), file=nowhere))

    assert certify_function(draws, target=[0.5, 0.5]).lossless
