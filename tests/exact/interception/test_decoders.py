"""Decoders with a state, certified as objects: caches, recurrent states, ends, batches; each with its faulty twin."""

import threading
from fractions import Fraction as F
from typing import Any

import pytest

from exact.cli import options
from exact.cli.main import app
from exact.enumeration.walk import NotReproducible
from exact.interception import certify_decoder
from rheo_core import InvalidInput

pytestmark = pytest.mark.exact
ROWS = {0: [F(1, 2), F(3, 10), F(1, 5)], 1: [F(1, 5), F(1, 5), F(3, 5)]}
Q = [F(2, 5), F(2, 5), F(1, 5)]
P4, Q4 = [F(1, 2), F(3, 10), F(1, 5), F(0)], [F(2, 5), F(1, 5), F(2, 5), F(0)]


def by_parity(prefix):
    return ROWS[sum(prefix) % 2]


def residual(p, q):
    left = [max(F(0), a - b) for a, b in zip(p, q, strict=True)]
    return [x / sum(left) for x in left]


class Recurrent:
    """A recurrent state (the parity of what was fed), rolled back when a draft is rejected, or not."""

    def __init__(self, leaks=False):
        self.leaks: Any = leaks

    def start(self, prompt):
        self.state = sum(prompt)

    def step(self, chooser):
        p, x = ROWS[self.state % 2], chooser.index(Q)
        if chooser.accept(min(F(1), p[x] / Q[x])):
            y = chooser.index(ROWS[(self.state + x) % 2])
            self.state += x + y
            return [x, y]
        y = chooser.index(residual(p, Q))
        self.state += y + (x if self.leaks else 0)
        return [y]


class Ending(Recurrent):
    """Token 2 ends a text: `past` goes on behind it, `stops` at a rejected one, `suppressed` never accepts it."""

    def __init__(self, fault=""):
        self.fault = fault

    def start(self, prompt):
        self.done = False

    def step(self, chooser):
        if self.done:
            return None
        p = [P4[0] / (P4[0] + P4[1]), P4[1] / (P4[0] + P4[1]), 0, 0] if self.fault == "suppressed" else P4
        x = chooser.index(Q4)
        if chooser.accept(min(F(1), p[x] / Q4[x])):
            return [x] if x == 2 and self.fault != "past" else [x, chooser.index(P4)]
        self.done = self.fault == "stops" and x == 2
        return [chooser.index(residual(p, Q4))]


@pytest.mark.parametrize("prompt", [(), (1,)])
def test_a_state_that_keeps_a_rejected_draft_is_lossy(prompt):
    assert certify_decoder(Recurrent(), by_parity, prompt, length=2).lossless
    lossy = certify_decoder(Recurrent(leaks=True), by_parity, prompt, length=2)
    assert lossy.lossless is False
    if not prompt:
        assert (lossy.total_variation, lossy.sequence, lossy.got, lossy.due) == (F(1, 25), (0, 2), F(7, 50), F(1, 10))


@pytest.mark.parametrize(
    ("fault", "variation", "sequence"),
    [("", 0, None), ("past", None, None), ("stops", F(1, 5), None), ("suppressed", None, (2,))],
)
def test_where_a_text_ends_is_part_of_what_is_compared(fault, variation, sequence):
    found = certify_decoder(Ending(fault), lambda prefix: P4, length=3, end=[2])
    assert found.lossless is (fault == "")
    assert variation is None or found.total_variation == variation
    assert sequence is None or found.sequence == sequence
    assert fault != "stops" or found.sequence[-1] == "stops"


def test_planted_fault_a_decoder_that_is_not_copied_is_seen_to_change(monkeypatch):
    """Without a copy for each branch the decoder of the branch before is gone on with; what it starts anew is right."""
    from exact.interception import decoders

    class Growing(Recurrent):
        total = 0

        def start(self, prompt):
            super().start(prompt)
            self.state += self.total // 2 % 2

        def step(self, chooser):
            self.total += 1
            return super().step(chooser)

    assert certify_decoder(Growing(), by_parity, length=2).lossless
    monkeypatch.setattr(decoders, "_copied", lambda decoder: decoder)
    with pytest.raises(NotReproducible, match="changed `decoder`"):
        certify_decoder(Growing(), by_parity, length=2)


class Batch:
    """Two requests a step; `shared`: one coin for both; `ordered`: the second request gets the first one's row."""

    def __init__(self, fault=""):
        self.fault = fault

    def start(self, prompts):
        self.texts = [list(prompt) for prompt in prompts]

    def step(self, chooser):
        answers, coin = [], None
        for number, text in enumerate(self.texts):
            row = ROWS[sum(self.texts[0 if self.fault == "ordered" else number]) % 2]
            token = coin if self.fault == "shared" and coin is not None else chooser.index(row)
            coin = token
            answers.append([token])
            text.append(token)
        return answers


@pytest.mark.parametrize(
    ("fault", "prompts"), [("", [(0,), (1,)]), ("shared", [(0,), (0,)]), ("ordered", [(0,), (1,)])]
)
def test_batches_are_independent_and_each_request_has_its_own_law(fault, prompts):
    found = certify_decoder(Batch(fault), by_parity, prompts, length=2, batch=True)
    assert found.lossless is (fault == "")


def test_a_batch_that_depends_on_its_order_is_seen_in_the_order_reversed():
    class First(Batch):
        def step(self, chooser):
            rows = [sum(text) % 2 for text in self.texts]
            answers = [[chooser.index(ROWS[0 if rows[0] == 1 else row])] for row in rows]
            for text, (token,) in zip(self.texts, answers, strict=True):
                text.append(token)
            return answers

    assert certify_decoder(First(), by_parity, [(0,), (1,)], length=1, batch=True).lossless is False


def test_a_torch_decoder_shares_its_parameters_and_keeps_its_cache():
    torch = pytest.importorskip("torch", reason="torch is not installed (extra `torch`)")
    base: Any = torch.nn.Module

    class Table(base):  # type: ignore[misc]
        def __init__(self):
            super().__init__()
            self.rows = torch.nn.Parameter(torch.tensor([[0.5, 0.3, 0.2], [0.2, 0.2, 0.6]]), requires_grad=False)
            self.cache = []

        def forward(self, tokens):
            self.cache += tokens
            return self.rows[sum(self.cache) % 2]

    class Cached:
        def __init__(self, crops=True):
            self.model, self.crops = Table(), crops
            self.q = torch.tensor([0.4, 0.4, 0.2])

        def start(self, prompt):
            self.model.cache.clear()
            self.row = self.model(list(prompt))

        def step(self):
            x = int(torch.multinomial(self.q, 1))
            kept, behind = len(self.model.cache), self.model([x])
            if torch.rand(1) < self.row[x] / self.q[x]:
                y = int(torch.multinomial(behind, 1))
                self.row = self.model([y])
                return [x, y]
            if self.crops:
                del self.model.cache[kept:]
            y = int(torch.multinomial((self.row - self.q).clamp(min=0), 1))
            self.row = self.model([y])
            return [y]

    right = Cached()
    rows = right.model.rows
    found = certify_decoder(right, lambda prefix: rows[sum(prefix) % 2], length=2)
    assert found.verdict.startswith("lossless"), str(found)
    assert right.model.rows is rows
    assert right.model.cache == []
    assert certify_decoder(Cached(crops=False), lambda prefix: rows[sum(prefix) % 2], length=2).lossless is False


def test_what_is_no_decoder_or_cannot_be_copied_is_refused_in_words():
    with pytest.raises(InvalidInput, match=r"an object with start\(prompt\) and step"):
        certify_decoder(object(), by_parity, length=1)
    stuck = Recurrent()
    stuck.leaks = threading.Lock()
    with pytest.raises(InvalidInput, match="state can be copied"):
        certify_decoder(stuck, by_parity, length=1)

    class Words(Recurrent):
        def step(self, chooser):
            return ["a"]

    with pytest.raises(InvalidInput, match="token ids, or nothing when the text has ended"):
        certify_decoder(Words(), by_parity, length=1)


FILE = """
from fractions import Fraction as F

P, Q, length, end = [F(1, 2), F(1, 2)], [F(1, 4), F(3, 4)], 2, [1]

def target(prefix):
    return P

class Engine:
    def start(self, prompt):
        pass

    def step(self, chooser):
        x = chooser.index(Q)
        if chooser.accept(min(1, P[x] / Q[x])):
            return [x]
        return [0]

class Wrong(Engine):
    def step(self, chooser):
        return [chooser.index(Q)]

engine = Engine()
"""


@pytest.mark.parametrize(("name", "code"), [("engine", 0), ("Engine", 0), ("Wrong", 1)])
def test_a_decoder_in_a_file_is_certified_by_the_command(name, code, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(FILE, encoding="utf-8")
    assert options.run(app, ["certify", "--torch", f"mine.py:{name}"]) == code
    (tmp_path / "short.py").write_text(FILE.replace(", length", ", size"), encoding="utf-8")
    assert options.run(app, ["certify", "--torch", f"short.py:{name}"]) == options.BAD_INPUT
    assert "a decoder without `length`" in capsys.readouterr().err


class Forgetful(Recurrent):
    """A cache that `start` does not clear: right for the first request, wrong from the second on."""

    def __init__(self):
        self.cache: list[int] = []

    def start(self, prompt):
        pass

    def step(self, chooser):
        token = chooser.index(ROWS[sum(self.cache) % 2])
        self.cache.append(token)
        return [token]


def test_what_start_forgets_to_clear_shows_in_the_next_request():
    found = certify_decoder(Forgetful(), by_parity, length=2)
    assert found.lossless is False
    assert "started again after one step of a request" in found.scope
    right = certify_decoder(Recurrent(), by_parity, length=2)
    assert "texts of at most 2 tokens" in right.scope
    assert "as it was given, and started again" in right.scope


def test_planted_fault_a_decoder_that_is_never_used_twice_hides_it(monkeypatch):
    from exact.interception import decoders

    real: Any = decoders._run
    monkeypatch.setattr(decoders, "_run", lambda *given: real(*given[:-1], False))
    assert certify_decoder(Forgetful(), by_parity, length=2).lossless
