"""Recordings that would deceive: copies, texts selected by what they say, rows chosen by their token; honest ones."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from exact.cli import options
from montecarlo.auditing import Audit, audit
from montecarlo.chunks import Chunker
from montecarlo.cli.main import app
from montecarlo.copies import Copies
from montecarlo.recording import Record, Row, Writer, read
from montecarlo.reference_run import whole

P, Q = np.array([0.5, 0.3, 0.15, 0.05]), np.array([0.3, 0.4, 0.2, 0.1])
END, LIMIT = 3, 24


def report_of(records, **options):
    return audit(Chunker(10).chunks(iter(records)), **options)


def text_records(text, request, row=None, **fields):
    row = whole(P) if row is None else row
    return [Record(f"{request}:{i}", int(t), row, None, None, None, request, **fields) for i, t in enumerate(text)]


@pytest.mark.parametrize("order", ["one after another", "side by side"])
def test_a_text_recorded_many_times_raises_no_alarm(order):
    """Forty times, under ids of their own. Planted fault: kept, they alarm in many of the runs."""
    rng = np.random.default_rng(0)
    kept = 0
    for _ in range(5):
        text = rng.choice(4, size=60, p=P)
        texts = [text_records(text, str(r)) for r in range(40)]
        records = [
            each for part in (texts if order == "one after another" else zip(*texts, strict=True)) for each in part
        ]
        report = report_of(records)
        assert not report.evidence_of_loss
        assert (report.tokens, report.copies_by_text) == (60, 39)
        assert report.verdict == "refused"
        assert "39 texts repeat an earlier one" in str(report.refusal)
        lone = [replace(each, request=None) for each in records] if order == "one after another" else []
        kept += bool(lone) and report_of(lone).evidence_of_loss
    assert kept >= 1 or order == "side by side"


@pytest.mark.parametrize("selected", [False, True])
def test_honest_one_token_answers_are_all_kept(selected):
    """4,000 answers to one prompt. Planted fault: dropped by text, the answers that are left are no draws from P."""
    tokens = np.random.default_rng(1).choice(4, size=4000, p=P).tolist()
    if selected:
        long = np.random.default_rng(1).choice(400, size=(200, 12), p=np.append(np.full(399, 1e-3), 0.601))
        row = whole(np.append(np.full(399, 1e-3), 0.601))
        records = [
            each
            for n, text in enumerate(long)
            for t in dict.fromkeys(text)
            for each in text_records([t], f"{n}.{t}", row)
        ]
        assert report_of(records).evidence_of_loss
        return
    report = report_of([each for n, t in enumerate(tokens) for each in text_records([t], str(n))])
    assert (report.tokens, report.copies_by_text, report.copies_by_key) == (4000, 0, 0)
    assert report.verdict == "no loss seen"
    assert report.repeated > 3900


def test_copies_are_dropped_by_request_and_seed_whatever_they_say():
    rng = np.random.default_rng(2)
    texts = [rng.choice(4, size=2, p=P) for _ in range(500)]
    first = [each for n, text in enumerate(texts) for each in text_records(text, str(n), seed=7, source="a")]
    again = [replace(each, source="b") for each in first]
    report = report_of(first + again)
    assert (report.tokens, report.copies_by_key, report.verdict) == (1000, 500, "no loss seen")
    other = [replace(each, seed=8) for each in again]
    assert report_of(first + other).tokens == 2000


def test_equal_long_texts_under_seeds_of_their_own_are_evidence():
    """Requests that were to be independent went alike: no copy, but one stream of random numbers."""
    rng = np.random.default_rng(3)
    texts = [rng.choice(4, size=60, p=P) for _ in range(10)]
    records = [
        each for n, text in enumerate(texts) for k in (0, 1) for each in text_records(text, f"{n}.{k}", seed=2 * n + k)
    ]
    report = report_of(records)
    assert report.evidence_of_loss
    assert report.copies_by_text == 0
    unknown = report_of([replace(each, seed=None) for each in records])
    assert (unknown.verdict, unknown.copies_by_text) == ("refused", 10)


def test_a_loss_is_evidence_beside_copies():
    rng = np.random.default_rng(4)
    texts = [rng.choice(4, size=60, p=Q) for _ in range(40)]
    report = report_of([each for n in range(80) for each in text_records(texts[n % 40], str(n))])
    assert report.copies_by_text == 40
    assert report.verdict == "evidence of loss"


def test_what_waits_for_a_decision_is_bounded(monkeypatch):
    monkeypatch.setattr("montecarlo.copies.HELD", 100)
    row = Row(None, np.array([1 - 1e-9, 1e-9]), 0.0)
    copies = Copies()
    waiting = 0
    for _ in copies.without(each for n in range(50) for each in text_records([0] * 20, str(n), row)):
        waiting = max(waiting, len(copies._queue))
    assert waiting <= 101
    assert copies.by_text == 0


def cycle(rng, fault):
    if fault:
        return [rng.choice(4, p=0.5 * P + 0.5 * Q)]
    x = rng.choice(4, p=Q)
    if rng.random() < P[x] / Q[x]:
        return [x, rng.choice(4, p=P)]
    left = np.maximum(0, P - Q)
    return [rng.choice(4, p=left / left.sum())]


def answers(rng, count, fault=False):
    """Texts that end by END or at LIMIT."""
    for _ in range(count):
        text: list[int] = []
        while len(text) < LIMIT and END not in text:
            text += cycle(rng, fault)
        yield text[: text.index(END) + 1 if END in text else LIMIT][:LIMIT]


def write(path, kind, fault=False, seed=5):
    rng = np.random.default_rng(seed)
    with Writer(path, **({"end": [END]} if kind == "complete" else {})) as run:
        if kind == "emitted listed":
            p = np.array([0.3, 0.25, 0.2, 0.15, 0.1])
            for token in rng.choice(5, size=4000, p=[0.4, 0.15, 0.2, 0.15, 0.1] if fault else p).tolist():
                ids = [0, 1, *([token] if token > 1 else [])]
                run.write(token, {"ids": ids, "probs": p[ids], "rest": float(1 - p[ids].sum())})
            return
        for number, text in enumerate(answers(rng, 600 if fault or kind == "cut dropped" else 450, fault)):
            if kind == "cut dropped" and END not in text:
                continue
            for place, token in enumerate(text):
                if kind == "end stripped" and token == END:
                    continue
                last = place + 1 == len(text)
                stop = {"stop": "end" if token == END else "length"} if kind == "complete" and last else {}
                run.write(token, P, Q, request=str(number), **stop)


@pytest.mark.parametrize("kind", ["end stripped", "cut dropped", "emitted listed", "whole", "complete"])
@pytest.mark.parametrize("fault", [False, True], ids=["lossless", "lossy"])
def test_ways_of_recording_that_accuse_a_lossless_engine_are_named(tmp_path, capsys, kind, fault):
    """No verdict where the pattern explains all evidence; a loss beside it is one still. Planted fault: an audit that
    does not look for patterns accuses the lossless engine."""
    write(tmp_path / "run.jsonl", kind, fault)
    code = options.run(app, ["audit", str(tmp_path / "run.jsonl"), "--json"])
    captured = capsys.readouterr()
    document = json.loads(captured.out)
    honest = kind in ("whole", "complete")
    assert code == (1 if fault else 0 if honest else 2)
    assert document["verdict"] == ("evidence of loss" if fault else "no loss seen" if honest else "refused")
    if code == 2:
        named = {"end stripped": "token 3", "cut dropped": "length limit", "emitted listed": "list the best n alone"}
        assert named[kind] in captured.err
        assert captured.err.count("\n") == 1
        blind = Audit(patterns=False)
        for chunk in Chunker(10).chunks(read(tmp_path / "run.jsonl")):
            blind.update(chunk)
        assert blind.report().evidence_of_loss


@pytest.mark.parametrize("length", [LIMIT, 0], ids=["all cut by the limit", "of many lengths"])
def test_an_engine_that_never_emits_its_end_token_is_lossy(length):
    """Texts of one length were cut, so no end token was left out of them. Where lengths differ one may have been, until
    the run's end ids and every stop are recorded."""
    rng = np.random.default_rng(6)
    p = np.append(P[:3], 0) / P[:3].sum()
    texts = [rng.choice(4, size=length or rng.integers(5, LIMIT), p=p) for _ in range(200)]
    bare = [each for n, text in enumerate(texts) for each in text_records(text, str(n))]
    assert report_of(bare).verdict == ("evidence of loss" if length else "refused")
    last = {f"{n}:{len(text) - 1}" for n, text in enumerate(texts)}
    said = [replace(each, end=(END,), stop="stop" if each.where in last else None) for each in bare]
    assert report_of(said).verdict == "evidence of loss"


@pytest.mark.parametrize("apart", [False, True], ids=["one text", "texts of one token"])
def test_an_engine_that_always_emits_one_token_is_no_pattern(apart):
    records = [Record(str(i), 1, whole([0.7, 0.3]), None, None, None, str(i) if apart else None) for i in range(500)]
    assert report_of(records).verdict == "evidence of loss"


def test_a_filter_that_was_not_recorded_is_no_pattern():
    """Rows list the best two of five and the engine never leaves them: rows of one length are honest."""
    row = Row(np.array([0, 1]), np.array([0.3, 0.25]), 0.45)
    tokens = np.random.default_rng(7).choice(2, size=500, p=[0.3 / 0.55, 0.25 / 0.55])
    report = report_of(text_records(tokens, "a", row))
    assert report.verdict == "evidence of loss"


def alarms(runs, texts, length, level, fault=False, seed=0):
    """Runs of several texts that alarm at `level` when each stops at its greatest evidence; `fault`: q is emitted."""
    rng = np.random.default_rng(seed)
    rows = [whole(p) for p in rng.dirichlet(np.full(6, 0.7), size=6)]
    drafts = [
        whole(0.5 * row.probs + 0.5 * p) for row, p in zip(rows, rng.dirichlet(np.full(6, 0.7), size=6), strict=True)
    ]
    cumulative = np.array([row.probs for row in (drafts if fault else rows)]).cumsum(axis=1)
    found = 0
    for _ in range(runs):
        records, last = [], 0
        for number in range(texts):
            for place, u in enumerate(rng.random(length)):
                token = min(int(np.searchsorted(cumulative[last], u, side="right")), 5)
                records.append(Record("", token, rows[last], drafts[last], None, place % 3, str(number)))
                last = token
        running = Audit(level)
        for chunk in Chunker(3).chunks(iter(records)):
            running.update(chunk)
        found += running.log_evidence >= -np.log(level)
    return found


def test_stopping_at_the_best_moment_gains_nothing():
    """At level .2 the bound is computed: more alarms have probability 1e-6 if each run alarms with .2 at most. Planted
    fault: tokens from the draft's rows alarm in more runs than that."""
    most = stats.binom.isf(1e-6, 200, 0.2)
    assert alarms(200, 3, 25, 0.2) <= most < alarms(200, 3, 100, 0.2, fault=True)


@pytest.mark.slow
def test_ten_thousand_runs_stopped_at_the_best_moment():
    found = alarms(10_000, 4, 25, 1e-2)
    print(f"{found} alarms")
    assert found <= 130
