"""Experiments as data, and their figures from made-up answers against direct computation."""

import io
import math
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console
from scipy import stats

from gpu_runner.measure.bench import Answer
from gpu_runner.measure.shared_contexts import SharedAnswer
from gpu_runner.measure.statistics import deviation, stratified
from gpu_runner.reproduce.experiments import (
    EXPERIMENTS,
    PAPER,
    SAME_CONTEXTS,
    Base,
    find_experiment,
    number_of,
    tasks,
)
from gpu_runner.reproduce.results import SharedContextAnswer, result_rows
from gpu_runner.reproduce.run_folder import Shard
from gpu_runner.reproduce.tables import notes, tables
from rheo_core import InvalidInput, TreeShape

SETS = ("gsm8k", "mt_bench")
SEEDS = (0, 1)


def test_the_papers_settings():
    made = {name: find_experiment(name) for name in EXPERIMENTS}
    labels = {name: [method.label for method in each.cells[0].methods] for name, each in made.items()}
    assert labels["table2"] == ["autoregressive", "top-k", "rheo m=1"]
    assert labels["table3"] == ["top-k", "rheo-rrsw m=1", "rheo m=1"]
    assert labels["table4"] == ["top-k", "rheo-rrsw m=1", "rheo m=1"]
    assert labels["figure3"] == ["top-k", *(f"rheo m={m}" for m in range(6))]
    assert labels["figure4"] == ["top-k", "rheo m=0", "rheo m=1"]
    assert {method.shape for method in made["table2"].cells[0].methods} == {TreeShape(10, 8, 59)}
    assert {method.shape for method in made["table4"].cells[0].methods} == {TreeShape(3, 1, 3)}
    assert [method.support for method in made["table5"].cells[0].methods[1:]] == [128, 256, 512, 1024, None]
    assert [cell.temperature for cell in made["figure4"].cells] == [0, 0.2, 0.4, 0.6, 0.8, 1]
    assert made["table4"].count == "accepted"
    with pytest.raises(InvalidInput, match=r"experiment: got table9, expected one of table2"):
        find_experiment("table9")


def test_every_task_is_in_one_part_and_a_question_in_one_process():
    experiment = find_experiment("figure4")
    asked: dict[str, list[int | str]] = {"gsm8k": [1, 2, 3], "mt_bench": ["a", "b"], "qa": [7]}
    whole = list(tasks(experiment, asked, SEEDS, "both"))
    assert len(whole) == len(set(whole)) == 6 * 2 * 6 * (3 + 1)
    parts = [list(tasks(experiment, asked, SEEDS, "both", Shard(i, 2))) for i in range(2)]
    assert sorted(map(repr, parts[0] + parts[1])) == sorted(map(repr, whole))
    assert not {(t.question_set, t.question) for t in parts[0]} & {(t.question_set, t.question) for t in parts[1]}
    assert all({task.question_set for task in part} >= {"gsm8k", "mt_bench"} for part in parts)
    assert {task.what for task in tasks(experiment, asked, SEEDS, "same")} == {SAME_CONTEXTS}
    assert SAME_CONTEXTS not in {task.what for task in tasks(experiment, asked, SEEDS, "own")}


def test_draws_of_a_question_are_its_own():
    numbers = {number_of(name, question) for name in SETS for question in (*range(50), "1b")}
    assert len(numbers) == 102
    assert number_of("gsm8k", 3) == number_of("gsm8k", 3)


def made_up(experiment, seed=0, questions=(5, 6, "x")):
    """Answers and shared with numbers of all kinds, each question's own mean apart from the others'."""
    rng = np.random.default_rng(seed)
    answers, shared = [], []
    for cell in experiment.cells:
        labels = [method.label for method in cell.methods]
        for name in SETS:
            for number, question in enumerate(questions):
                for each in SEEDS:
                    for place, label in enumerate(labels):
                        cycles = int(rng.integers(3, 9))
                        plain = label == "autoregressive"
                        accepted = [] if plain else rng.integers(0, 3 + number + place, cycles).tolist()
                        emitted = [1] * cycles if plain else [n + 1 for n in accepted]
                        answers.append(
                            Answer(
                                label, question, each, name, cell.name, tokens=[1] * sum(emitted), emitted=emitted,
                                accepted=accepted, drafting=rng.random(cycles - 1).tolist(),
                                verifying=rng.random(cycles - 1).tolist(), seconds=float(rng.random() + 0.5),
                            )
                        )  # fmt: skip
                    drafting = [label for label in labels if label != "autoregressive"]
                    count = int(rng.integers(2, 6))
                    numbers = {label: (1 + number + rng.random(count)).tolist() for label in drafting}
                    shares = {label: rng.random(count).tolist() for label in drafting}
                    deep = {label: sorted(rng.random(3).tolist(), reverse=True) for label in drafting}
                    shared.append(
                        SharedContextAnswer(
                            cell.name, name, question, each, SharedAnswer(numbers, shares, shares, deep)
                        )
                    )
    return answers, shared


def chosen(found, method, name, cell=""):
    (row,) = [e for e in found if (e.method, e.question_set, e.cell) == (method, name, cell)]
    return row


def student(values):
    mean, half = np.mean(values), stats.t.ppf(0.975, len(values) - 1) * stats.sem(values)
    return mean, mean - half, mean + half


def close(interval, expected):
    assert np.allclose((interval.mean, interval.low, interval.high), expected, rtol=1e-12)


def test_figures_of_a_set_are_those_computed_directly():
    experiment = find_experiment("table2")
    answers, shared = made_up(experiment)
    found = result_rows(experiment, SETS, answers, shared)

    def mine(label, **where):
        keys = {"question_set": "gsm8k", "rule": label, **where}
        return [a for a in answers if all(getattr(a, key) == value for key, value in keys.items())]

    def tau(some):
        return sum(len(a.tokens) for a in some) / sum(len(a.emitted) for a in some)

    rheo = chosen(found, "rheo m=1", "gsm8k")
    assert rheo.mean == pytest.approx(tau(mine("rheo m=1")))
    assert rheo.std == pytest.approx(np.std([tau(mine("rheo m=1", seed=s)) for s in SEEDS], ddof=1))
    questions = (5, 6, "x")
    close(
        rheo.difference,
        student([tau(mine("rheo m=1", question=q)) - tau(mine("top-k", question=q)) for q in questions]),
    )
    rates = [
        np.mean(
            [
                (len(a.tokens) / a.seconds) / (len(b.tokens) / b.seconds)
                for a, b in zip(mine("rheo m=1", question=q), mine("autoregressive", question=q), strict=True)
            ]
        )
        for q in questions
    ]
    close(rheo.speed_up, student(rates))
    assert rheo.drafting == pytest.approx(np.median([s for a in mine("rheo m=1") for s in a.drafting]))
    own = [n for a in mine("rheo m=1") for n in a.accepted]
    assert np.allclose(rheo.by_depth, [np.mean(np.array(own) >= d) for d in range(1, max(own) + 1)])
    there = [w for w in shared if w.question_set == "gsm8k"]
    assert rheo.given_trees == pytest.approx(np.mean([v for w in there for v in w.shared.expected["rheo m=1"]]))
    pairs = [
        [
            a - b
            for w in there
            if w.question == q
            for a, b in zip(w.shared.expected["rheo m=1"], w.shared.expected["top-k"], strict=True)
        ]
        for q in questions
    ]
    close(rheo.given_difference, student([np.mean(values) for values in pairs]))
    assert (rheo.questions, rheo.answers) == (3, 6)
    plain, top_k = chosen(found, "autoregressive", "gsm8k"), chosen(found, "top-k", "gsm8k")
    assert plain.mean == 1
    assert plain.speed_up is plain.given_trees is plain.difference is top_k.difference is None
    assert top_k.given_difference is None


def cycles_of(experiment, accepted, expected):
    """Entries of one question, every method with the same numbers, and the line about them."""
    emitted = [n + 1 for n in accepted]
    answers = [
        Answer(method.label, 1, 0, "gsm8k", tokens=[1] * sum(emitted), emitted=emitted, accepted=list(accepted),
               expected=[1 + x for x in expected], seconds=1.0)
        for method in experiment.cells[0].methods
    ]  # fmt: skip
    found = result_rows(experiment, SETS, answers, [])
    return found, next(note for note in notes(experiment, found) if note.startswith("counted minus expected"))


def test_what_was_emitted_is_held_against_what_was_expected():
    experiment = find_experiment("table3")
    rng = np.random.default_rng(2)
    p = rng.uniform(0.1, 0.9, 400)
    accepted = (rng.random((400, 8)) < p[:, None]).cumprod(axis=1).sum(axis=1)
    expected = np.sum([p**d for d in range(1, 9)], axis=0)
    found, said = cycles_of(experiment, accepted.tolist(), expected.tolist())
    surplus = chosen(found, "top-k", "gsm8k").surplus
    variance, log = float(np.sum(expected * (8 - expected))), math.log(40)
    half = (log * 8 / 3 + math.sqrt((log * 8 / 3) ** 2 + 2 * log * variance)) / 400
    close(surplus, (np.mean(accepted - expected), np.mean(accepted - expected) - half, surplus.mean + half))
    assert ": 3 of 3 means within" in said
    assert "judged" not in said
    for planted in (0.6, -0.6):
        _, said = cycles_of(experiment, accepted.tolist(), np.clip(expected - planted, 0, 8).tolist())
        assert ": 0 of 3 means within" in said


def test_rare_acceptances_raise_no_false_alarm_and_hide_no_gross_edit():
    experiment = find_experiment("table4")
    found, said = cycles_of(experiment, [0] * 32, [0.003] * 32)
    assert math.isnan(chosen(found, "top-k", "gsm8k").surplus.low)
    assert ": 0 of 0 means within 95 % of 0; 3 cannot be judged: fewer than 10" in said
    for edited in ([1] * 4 + [0] * 28, [124] + [0] * 31):
        _, said = cycles_of(experiment, edited, [0.003] * 32)
        assert ": 0 of 3 means within 95 % of 0 (farthest" in said
    rng = np.random.default_rng(3)
    outside = 0
    for _ in range(2000):
        p = rng.choice([0.003, 0.05, 0.5], 32)
        counted = rng.random(32) < p
        outside += abs(np.sum(counted - p)) > deviation(float(np.sum(p * (1 - p))), 1.0)
    assert outside <= 2000 * 0.05


def test_the_average_weighs_sets_alike():
    experiment = find_experiment("table2")
    answers, shared = made_up(experiment)
    answers = [a for a in answers if (a.question_set, a.question) != ("gsm8k", "x")]
    found = result_rows(experiment, SETS, answers, shared)
    both = [chosen(found, "rheo m=1", name) for name in SETS]
    average = chosen(found, "rheo m=1", None)
    for name in ("mean", "given_trees"):
        assert getattr(average, name) == pytest.approx(np.mean([getattr(row, name) for row in both]))
    assert average.difference.mean == pytest.approx(np.mean([row.difference.mean for row in both]))
    assert average.answers == sum(row.answers for row in both) == 10


def test_stratified_intervals_are_students_and_welchs():
    rng = np.random.default_rng(1)
    a, b = rng.normal(0, 1, 7).tolist(), rng.normal(3, 4, 12).tolist()
    close(stratified([a]), student(a))
    welch = stats.ttest_ind(a, [-x for x in b], equal_var=False).confidence_interval(0.95)
    close(stratified([a, b]), ((np.mean(a) + np.mean(b)) / 2, welch.low / 2, welch.high / 2))
    assert stratified([a, []]) is None
    close(stratified([[2.0, 2.0], [4.0, 4.0]]), (3, 3, 3))
    alone = stratified([a, [1.0]])
    assert alone is not None
    assert math.isnan(alone.low)


def test_only_questions_that_every_method_answered_count():
    experiment = find_experiment("table3")
    answers, _ = made_up(experiment)
    last = max(i for i, a in enumerate(answers) if a.rule == "rheo m=1")
    short = result_rows(experiment, SETS, [a for i, a in enumerate(answers) if i != last], [])
    unit = answers[last].unit
    fair = result_rows(experiment, SETS, [a for a in answers if a.unit != unit], [])
    assert short == fair
    assert len(short) == 9
    assert result_rows(experiment, SETS, [], []) == []


def test_order_of_the_lines_does_not_matter():
    experiment = find_experiment("table2")
    answers, shared = made_up(experiment)
    assert result_rows(experiment, SETS, answers[::-1], shared) == result_rows(experiment, SETS, answers, shared)


def test_table_4_counts_accepted_tokens():
    experiment = find_experiment("table4")
    answers, shared = made_up(experiment)
    answers = [replace(a, accepted=[min(n, 1) for n in a.accepted]) for a in answers]
    found = chosen(result_rows(experiment, SETS, answers, shared), "rheo m=1", "mt_bench")
    own = [n for a in answers if (a.rule, a.question_set) == ("rheo m=1", "mt_bench") for n in a.accepted]
    assert found.mean == pytest.approx(np.mean(own))
    there = [v for w in shared if w.question_set == "mt_bench" for v in w.shared.accepted["rheo m=1"]]
    assert found.given_trees == pytest.approx(np.mean(there))


def printed(experiment, paper=None):
    answers, shared = made_up(experiment)
    found = result_rows(experiment, SETS, answers, shared)
    written = io.StringIO()
    console = Console(width=200, file=written)
    for table in tables(experiment, found, paper):
        console.print(table)
    return found, written.getvalue()


def test_layouts():
    values = {"gsm8k": "5.60±0.08", "average": "5.25±0.02", "speed-up": "2.93x"}
    paper = {("rheo m=1", place): value for place, value in values.items()}
    found, text = printed(find_experiment("table2"), paper)
    lines = [line.rstrip() for line in text.splitlines()]
    assert lines[0].split() == ["method", "GSM8K", "MT-bench", "average", "speed-up"]
    rheo = next(i for i, line in enumerate(lines) if line.startswith("rheo m=1"))
    row = chosen(found, "rheo m=1", "gsm8k")
    assert lines[rheo].split()[2:4] == ["τ", f"{row.mean:.2f}±{row.std:.2f}"]
    assert f"{row.difference.mean:+.2f}±{row.difference.high - row.difference.mean:.2f}" in lines[rheo + 1]
    assert f"{row.given_trees:.2f}" in lines[rheo + 2]
    assert lines[rheo + 4].split() == ["paper", "5.60±0.08", "-", "5.25±0.02", "2.93x"]
    assert "autoregressive" not in text
    found, text = printed(find_experiment("table4"))
    assert f"{100 * chosen(found, 'rheo m=1', 'mt_bench').given_trees:.1f}%" in text
    found, text = printed(find_experiment("table5"))
    row = chosen(found, "rheo m=1, support full", "mt_bench")
    line = next(each for each in text.splitlines() if "support full" in each and f"{row.mean:.2f}" in each)
    assert f"{1000 * row.drafting:.1f} ms" in line
    assert f"{100 * row.coverage:.1f}%" in line
    _, text = printed(find_experiment("figure4"))
    assert [line.strip() for line in text.splitlines() if line.strip().startswith("T = ")] == [
        f"T = {t:g}" for t in (0, 0.2, 0.4, 0.6, 0.8, 1)
    ]


def test_a_shape_of_the_users():
    base = Base(TreeShape(4, 3, 9), 0.5, None)
    experiment = find_experiment("figure3", base)
    assert [method.label for method in experiment.cells[0].methods][-1] == "rheo m=4"
    assert experiment.cells[0].temperature == 0.5
    assert {method.support for method in experiment.cells[0].methods} == {None}
    assert PAPER.support == 128
