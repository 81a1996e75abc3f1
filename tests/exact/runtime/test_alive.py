"""The generators alive, against a look at every object of the process."""

import _thread
import gc
import random
import time

import numpy as np
import pytest

from exact.runtime.alive import Alive

pytestmark = pytest.mark.exact


class Own(np.random.RandomState):
    """A generator of a user's own class."""


KINDS = (random.Random, np.random.RandomState, np.random.BitGenerator)


def everywhere():
    """Ids of all generators, by a look at every object; those of the interception are none."""
    found = [each for each in gc.get_objects() if issubclass(type(each), KINDS)]
    return {id(each) for each in found if not type(each).__module__.startswith("exact.interception.")}


def ids(alive):
    return {id(each) for each in alive.all()}


@pytest.fixture
def alive():
    found = Alive(KINDS)
    assert ids(found) == everywhere()
    yield found
    found._stop()


def test_what_is_made_later_is_found_whatever_the_collector_does(alive):
    kept: list[object] = []
    chance = random.Random(0)
    makers = (np.random.default_rng, random.Random, Own, lambda seed: [random.Random(seed)])
    for seed in range(60):
        kept.append(makers[seed % 4](seed))
        if seed % 5 == 0:
            gc.collect(chance.randrange(3))
        if seed % 7 == 0:
            kept.append([[] for _ in range(3_000)])  # the collector runs by itself
        if seed % 3 == 0:
            kept.pop(chance.randrange(len(kept)))
        assert ids(alive) == everywhere()


def test_what_nobody_holds_any_more_is_let_go(alive):
    before = len(alive.all())
    for seed in range(300):
        np.random.default_rng(seed), random.Random(seed)
    assert len(alive._held) + len(alive._weak) < before + 500  # while nobody asks, too
    gc.collect()
    assert len(alive.all()) == before


def test_without_its_callback_it_looks_at_everything_again(alive):
    gc.callbacks.remove(alive._collecting)
    made = np.random.default_rng(1)
    gc.collect()
    assert id(made.bit_generator) not in alive._held
    assert ids(alive) == everywhere()


def test_looking_at_the_young_alone_would_miss_one_that_grew_old(alive, monkeypatch):
    """The planted fault: no look before a collection."""
    monkeypatch.setattr(alive, "_look_at_young", lambda: None)
    made = np.random.default_rng(1)
    gc.collect()
    monkeypatch.undo()
    assert id(made.bit_generator) not in ids(alive)


def test_an_interruption_while_it_looks_is_not_lost(alive, monkeypatch):
    monkeypatch.setattr(alive, "_note", lambda objects: _thread.interrupt_main())

    def work():
        gc.collect()
        time.sleep(10)

    with pytest.raises(KeyboardInterrupt):
        work()
    monkeypatch.undo()
    assert ids(alive) == everywhere()
