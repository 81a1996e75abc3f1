"""The pictures of simulations, plans and audits show the numbers that were computed."""

import math
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="matplotlib is not installed (extra `plot`)")

from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from exact.acceptance import table1
from exact.methods import methods
from exact.report import COLOURS
from montecarlo import Audit, Chunker, TablePair, Uniforms, simulate
from montecarlo.checks import Suite
from montecarlo.planning import WITNESSES, ErrorRates, method_power, plans
from montecarlo.plots import evidence_axes, outcomes_figure, power_figure, report_figure, seen
from montecarlo.recording import Record, Row
from tests.montecarlo.test_cli import rheo_montecarlo

ERRORS = ErrorRates(1e-6, 0.01)
P, Q = np.array([0.5, 0.3, 0.2]), np.array([0.7, 0.2, 0.1])


def records(law, count, seed=0):
    tokens = np.random.default_rng(seed).choice(3, size=count, p=law)
    for number, token in enumerate(tokens.tolist()):
        yield Record(f"token {number}", token, Row(None, P, 0.0), Row(None, Q, 0.0), number // 2, number % 2, None)


def followed(law, count, step):
    """An audit, and its evidence after every `step` records."""
    audit, chunker, curve = Audit(), Chunker(10), []
    listed = list(records(law, count))
    for start in range(0, count, step):
        for chunk in chunker.chunks(iter(listed[start : start + step])):
            audit.update(chunk)
            curve.append((audit.tokens, audit.log_wealth / math.log(10)))
    return audit, curve


def test_the_wealth_is_what_it_is_now_and_the_evidence_the_most_that_it_was():
    audit, curve = followed(P, 300, 1)
    assert [tokens for tokens, _ in curve] == list(range(1, 301))
    assert audit.report().log10_evidence == pytest.approx(max(0.0, *(wealth for _, wealth in curve)))
    assert min(wealth for _, wealth in curve) < audit.report().log10_evidence
    coarse = followed(P, 300, 64)[1]
    assert coarse == [pytest.approx(curve[tokens - 1]) for tokens, _ in coarse]


def test_a_forbidden_token_leaves_infinite_wealth():
    audit = Audit()
    row = Row(None, np.array([1.0, 0.0]), 0.0)
    for chunk in Chunker(10).chunks(Record("", token, row, None, None, None, None) for token in (0, 1, 0)):
        audit.update(chunk)
    assert audit.log_wealth == math.inf
    report_figure(audit.report(), [(3, math.inf)]).draw_without_rendering()


def test_the_curve_of_an_audit_crosses_the_bar_where_the_alarm_was_raised():
    audit, curve = followed(Q, 900, 1)
    figure = Figure()
    ax = figure.subplots()
    evidence_axes(ax, [curve, followed(P, 900, 30)[1]], 1e-6)
    biased, mark, fair, bar = ax.lines
    assert list(np.asarray(bar.get_ydata())) == [6, 6]
    assert max(np.asarray(fair.get_ydata())) < 6 < max(np.asarray(biased.get_ydata()))
    (crossing,) = np.asarray(mark.get_xdata())
    assert audit.report().alarmed_at == f"token {int(crossing) - 1}"


def test_the_report_shows_every_function_and_position():
    audit, curve = followed(Q, 900, 100)
    report = audit.report()
    evidence, biases, positions = report_figure(report, curve).axes
    assert evidence.get_title("left") == "Evidence of loss in 900 tokens"
    assert [text.get_text() for text in biases.get_yticklabels()] == [bias.name for bias in report.biases]
    ends = [bar.get_path().get_extents(bar.get_patch_transform()) for bar in biases.patches]
    scores = [bias.excess / (bias.standard_error or 1) for bias in report.biases]
    assert [end.x1 if score > 0 else end.x0 for end, score in zip(ends, scores, strict=True)] == pytest.approx(
        scores, abs=1e-9
    )
    assert list(np.asarray(positions.lines[0].get_xdata())) == [0, 1]


def test_power_is_drawn_as_computed():
    found = [method_power(methods[name], WITNESSES[0], 1000, ERRORS) for name in ("rheo-adhoc", "typical")]
    forbidden = replace(found[0], spread=math.inf)  # the first outcome that the target forbids settles it
    assert seen("chi-square", forbidden, forbidden.needed["chi-square"], ERRORS) == pytest.approx(0.99)
    for each in [*found, forbidden]:
        for test, needed in each.needed.items():
            assert seen(test, each, math.ceil(needed), ERRORS) == pytest.approx(0.99, abs=0.02)
            assert seen(test, each, needed / 20, ERRORS) < 0.3
    powers, visible = power_figure(found, 100, 1000, ERRORS).axes
    line = powers.lines[0]
    for samples, chance in zip(np.asarray(line.get_xdata()), np.asarray(line.get_ydata()), strict=True):
        assert chance == seen("chi-square", found[0], int(samples), ERRORS)
    legend = powers.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["rheo-adhoc, Table 1", "typical, Table 1"]
    samples, variation = (np.asarray(data) for data in visible.lines[0].get_data())
    assert variation[7] == plans(100, ERRORS, samples=int(samples[7]))[0].variation
    assert len(power_figure(found, None, 1000, ERRORS).axes) == len(power_figure([], 100, 1000, ERRORS).axes) == 1


def test_alarms_of_a_simulation_are_red():
    p, q = ([[float(mass) for mass in law]] for law in (table1.P, table1.Q))
    pair = TablePair(p, q, lambda prefixes: np.zeros(len(prefixes), dtype=np.int64))
    outcomes = [
        (name, simulate(Suite(methods[name], pair, table1.SHAPE, Uniforms(0)), 3000)) for name in ("rheo", "rheo-raw")
    ]
    acceptance, checks = outcomes_figure(outcomes).axes
    assert list(np.asarray(acceptance.lines[1].get_ydata())) == list(outcomes[1][1].acceptance_by_depth)
    crosses = [line for line in checks.lines if line.get_marker() == "X"]
    alarms = [each for _, outcome in outcomes for each in outcome.verdicts if each.alarmed]
    assert len(crosses) == len(alarms) > 0
    assert {to_hex(line.get_color()) for line in crosses} == {COLOURS["wrong"]}


def test_the_command_power_draws(tmp_path):
    assert rheo_montecarlo("power", "rheo-adhoc", "--samples", 500, "--plot", tmp_path / "power.svg") == 0
    assert "<!-- rheo-adhoc, Table 1 -->" in (tmp_path / "power.svg").read_text()
