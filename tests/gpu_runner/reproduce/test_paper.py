"""The paper's figures: they agree with each other as printed, and belong to its own pairs alone."""

import itertools

import pytest

from gpu_runner.reproduce.experiments import find_experiment
from gpu_runner.reproduce.paper import COLUMNS, LLAMA, PAIRS, RHEO, TABLE_2, TABLE_3, TOP_K, pair_of, paper_values
from gpu_runner.reproduce.question_sets import SETS


def test_averages_are_those_of_the_rows():
    rows = [*(row for row, _ in TABLE_2.values()), *TABLE_3.values()]
    for row in rows:
        *values, average = (float(value.partition("±")[0]) for value in row.split())
        assert len(values) == 6
        assert sum(values) / 6 == pytest.approx(average, abs=0.0051 + 1e-9)


def test_tables_2_3_and_5_agree_where_they_overlap():
    second, third, fifth = (paper_values(name, LLAMA.target, LLAMA.draft) for name in ("table2", "table3", "table5"))
    assert second is not None
    assert third is not None
    assert fifth is not None
    for label, column in itertools.product((TOP_K, RHEO), COLUMNS):
        assert second[label, column].partition("±")[0] == third[label, column]
    assert fifth[TOP_K, "mt_bench"] == third[TOP_K, "mt_bench"]
    assert fifth[f"{RHEO}, support 128", "mt_bench"] == third[RHEO, "mt_bench"]


@pytest.mark.parametrize("name", ["table2", "table3", "table4", "table5", "figure3"])
def test_labels_and_columns_are_those_of_the_experiment(name):
    experiment = find_experiment(name)
    labels = {method.label for cell in experiment.cells for method in cell.methods}
    values = paper_values(name, LLAMA.target, LLAMA.draft)
    assert values
    assert {label for label, _ in values} <= labels
    assert {column for _, column in values} <= {*SETS, "average", "speed-up", "coverage", "drafting"}


def test_both_models_must_be_the_papers():
    for first, second in itertools.product(PAIRS, repeat=2):
        assert (pair_of(first.target, second.draft) is not None) == (first == second)
    assert pair_of(f"/models/{LLAMA.target}", LLAMA.draft.upper()) == LLAMA
    assert pair_of(LLAMA.target, "yuhuili/EAGLE3-LLaMA3.1-Instruct-8B-other") is None
    assert paper_values("table2", "smollm2", LLAMA.draft) is None
    assert paper_values("table3", PAIRS[0].target, PAIRS[0].draft) is None
    assert paper_values("figure4", LLAMA.target, LLAMA.draft) is None
