"""What stands on a picture of a tree: every node once, its kind to be seen, its name and score to be read."""

import importlib
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("matplotlib", reason="matplotlib is not installed (extra `plot`)")

from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

import exact
from exact.acceptance import table1
from exact.cli import classes as classes_command
from exact.cli import options
from exact.cli.main import app
from exact.enumeration.tree_classes import classes, unpruned
from exact.methods.rows_file import parse_rows, shipped_rows
from exact.report import (
    Picture,
    class_section,
    draw_classes,
    draw_sections,
    draw_table1,
    draw_tree,
    draw_trees,
    save_figure,
)
from exact.report.panels import KINDS, legend_entries
from exact.report.text_boxes import LONGEST, token_name
from rheo_core import FILL, LEAD, SAMPLED, InvalidInput, ModelPair, SamplingChooser, TreeShape, methods
from tests.pairs import drawn_models, rule, shapes

WORDS = [" the", "of", "$x^$", "two\nlines", " ", "中", "a\u200bb", "é", "", "word" * 20]


def tree_of(size, seed, width=4, depth=4):
    """A draft tree of `rheo` on rows that change with the prefix."""
    rows = np.random.default_rng(seed).dirichlet(np.full(len(WORDS), 0.3), 7)

    def row(prefix):
        return rows[sum(prefix) % 7]

    return (
        methods["rheo"]
        .cycle(row, row, (), TreeShape(width, depth, size), SamplingChooser(np.random.default_rng(seed)))
        .tree
    )


def boxes(ax):
    """Boxes of the nodes, by row."""
    return {int(each.get_label()[6:]): each for each in ax.patches if each.get_label().startswith("_node ")}


def branches(ax):
    return {int(each.get_label()[8:]): each for each in ax.patches if each.get_label().startswith("_branch ")}


def texts(ax):
    return [each.get_text() for each in ax.texts]


def rectangle(box):
    return (box.get_x(), box.get_x() + box.get_width(), box.get_y(), box.get_y() + box.get_height())


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 59), st.integers(0, 10_000))
def test_every_node_is_drawn_once_and_hangs_below_its_parent(size, seed):
    tree = tree_of(size, seed, width=10, depth=8)
    ax = draw_tree(tree, WORDS)
    drawn, lines = boxes(ax), branches(ax)
    assert set(drawn) == set(lines) == set(range(len(tree)))
    assert all(isinstance(each, FancyBboxPatch) for each in drawn.values())
    spans = [rectangle(drawn[row]) for row in range(len(tree))]
    for row, (left, right, top, bottom) in enumerate(spans):
        begin, end = lines[row].get_path().vertices[[0, -1]]
        assert tuple(end) == pytest.approx((left, (top + bottom) / 2))
        parent = int(tree.parent[row])
        if parent != -1:
            assert tuple(begin) == pytest.approx((spans[parent][1], (spans[parent][2] + spans[parent][3]) / 2))
        others = spans[:row]
        assert all(right < a or b < left or bottom < c or d < top for a, b, c, d in others), "no boxes overlap"
        assert ax.get_xlim()[0] <= left < right <= ax.get_xlim()[1]
        assert 0 <= top < bottom <= ax.get_ylim()[0]


def test_names_and_scores_are_written_beside_their_nodes():
    tree = table1_tree("rheo")
    ax = draw_tree(tree, table1.NAMES, title="a pool", legend=False)
    assert sorted(texts(ax)) == sorted(["a pool", *map(str, tree.score), *"ABC"])
    assert texts(draw_tree(tree)).count("0") == 1, "ids where there are no names"


def table1_tree(name, sampled="B"):
    method = rule(name)
    for outcome in unpruned(method.drafter(ModelPair(table1.target, table1.draft), table1.SHAPE), (), table1.SHAPE):
        tree = outcome.tree
        if any(table1.NAMES[t] == sampled and k == SAMPLED for t, k in zip(tree.token, tree.kind, strict=True)):
            return tree
    raise AssertionError(sampled)


def test_kinds_differ_in_colour_and_in_shape():
    ax = draw_tree(table1_tree("rheo"))
    looks = [(each.get_facecolor(), each.get_edgecolor()) for _, each in sorted(boxes(ax).items())]
    assert len(set(looks)) == 3, "lead, sampled and fill"
    shapes = {str(each.get_boxstyle().rounding_size) for each in boxes(ax).values()}
    assert len(shapes) == 2, "the sampled token is rounded"
    legend = draw_trees([Picture(table1_tree("rheo"))]).axes[-1]
    assert texts(legend) == [*(KINDS[kind] for kind in (LEAD, SAMPLED, FILL)), "number: path score"]


def test_what_is_pruned_stands_back():
    ax = draw_tree(table1_tree("rheo-adhoc", "C"), kept=2)
    drawn = boxes(ax)
    assert [drawn[row].get_linestyle() for row in range(3)] != [drawn[0].get_linestyle()] * 3
    assert drawn[0].get_linestyle() == drawn[1].get_linestyle() != drawn[2].get_linestyle()
    assert "pruned" in [text for *_, text in legend_entries([Picture(table1_tree("rheo"), kept=2)])]
    assert "pruned" not in [text for *_, text in legend_entries([Picture(table1_tree("rheo"), kept=3)])]


def test_the_accepted_path_and_the_targets_own_token():
    tree = tree_of(20, 5)
    child = next(row for row in range(len(tree)) if tree.parent[row] != -1 and tree.parent[tree.parent[row]] == -1)
    path = [int(tree.parent[child]), child]
    ax = draw_tree(tree, WORDS, accepted=path, emitted=1)
    drawn = boxes(ax)
    assert set(drawn) == set(range(len(tree) + 1)), "one more box, the target's own token"
    widths = {row: each.get_linewidth() for row, each in branches(ax).items()}
    assert {row for row in widths if widths[row] > min(widths.values())} == {*path, len(tree)}
    begin = branches(ax)[len(tree)].get_path().vertices[0]
    assert begin[0] == pytest.approx(rectangle(drawn[child])[1]), "it hangs below the last accepted node"
    alone = draw_tree(tree, WORDS, emitted=1)
    assert branches(alone)[len(tree)].get_path().vertices[0][0] < min(
        rectangle(box)[0] for box in boxes(alone).values()
    )


@pytest.mark.parametrize("accepted", [[1, 0], [99], [-1], [0, 0]])
def test_an_accepted_path_that_is_none_is_refused(accepted):
    with pytest.raises(InvalidInput, match=r"accepted: got .* rows of a path"):
        draw_tree(tree_of(5, 1), accepted=accepted)


def test_a_token_without_a_name_is_refused():
    with pytest.raises(InvalidInput, match="a name for token"):
        draw_tree(table1_tree("rheo"), ["A"])
    with pytest.raises(InvalidInput, match="a name for token"):
        draw_tree(table1_tree("rheo"), {0: "A"})


def test_names_are_shown_as_they_are_and_what_cannot_be_seen_is_spelled_out():
    shown = [token_name(token, WORDS) for token in range(len(WORDS))]
    assert shown[:4] == ["␣the", "of", "$x^$", "two\\nlines"]
    assert shown[4] == "␣"
    assert shown[5] == "\\u4e2d", "the font has no such character"
    assert shown[6] == "a\\u200bb"
    assert shown[7:9] == ["é", "''"]
    assert len(shown[9]) == LONGEST
    assert "…" in shown[9]


def test_given_axes_are_filled_and_text_shrinks_until_it_fits():
    tree = tree_of(40, 3, width=6, depth=5)
    wide, narrow = Figure(figsize=(12, 12)).add_axes((0, 0, 1, 1)), Figure(figsize=(2, 2)).add_axes((0, 0, 1, 1))
    assert draw_tree(tree, WORDS, wide) is wide
    draw_tree(tree, WORDS, narrow)
    assert len(boxes(wide)) == len(boxes(narrow)) == len(tree)
    assert float(narrow.texts[0].get_fontsize()) < float(wide.texts[0].get_fontsize())
    for ax in (wide, narrow):
        spans = [rectangle(box) for box in boxes(ax).values()]
        assert max(right for _, right, *_ in spans) <= ax.get_xlim()[1] + 1e-6
        assert max(bottom for *_, bottom in spans) <= ax.get_ylim()[0] + 1e-6


def test_classes_are_drawn_with_their_probabilities():
    shape = TreeShape(3, 2, 3)
    found = classes(rule("rheo").drafter(ModelPair(table1.target, table1.draft), shape), (), shape)
    figure = draw_classes(found, table1.NAMES)
    panels = figure.axes[: len(found)]
    assert [len(boxes(ax)) for ax in panels] == [len(each.tree) for each in found]
    masses = sorted((each.probability for each in found), reverse=True)
    assert [texts(ax)[0].split("P = ")[1] for ax in panels] == [str(mass) for mass in masses]
    assert figure.texts[0].get_text() == f"{len(found)} classes"
    part = draw_classes(found, table1.NAMES, most=1, title="rheo")
    assert len(part.axes) == 2
    assert part.texts[0].get_text().startswith(f"rheo: {len(found)} classes · the 1 most probable; the other")
    assert str(1 - masses[0]) in part.texts[0].get_text()
    one = classes(rule("top-k").drafter(ModelPair(table1.target, table1.draft), shape), (), shape)
    assert draw_classes(one).texts[0].get_text() == "1 class"


def test_sections_of_any_lengths_share_a_sheet():
    sections = [class_section(found, title=str(number)) for number, found in enumerate(several())]
    figure = draw_sections(sections)
    assert len(figure.axes) == sum(len(each.pictures) for each in sections) + 1
    corners = [ax.get_position() for ax in figure.axes]
    for number, one in enumerate(corners):
        for other in corners[:number]:
            apart = one.x0 >= other.x1 - 1e-9 or other.x0 >= one.x1 - 1e-9
            assert apart or one.y0 >= other.y1 - 1e-9 or other.y0 >= one.y1 - 1e-9
    with pytest.raises(InvalidInput, match="pictures"):
        draw_trees([])
    with pytest.raises(InvalidInput, match="columns"):
        draw_trees([Picture(table1_tree("rheo"))], columns=0)


def several():
    for name, budget in (("rheo", 4), ("top-k", 3), ("rheo", 1)):
        shape = TreeShape(3, 2, budget)
        yield classes(rule(name).drafter(ModelPair(table1.target, table1.draft), shape), (), shape)


@settings(max_examples=25, deadline=None)
@given(drawn_models(), shapes(3, 2), st.sampled_from(["rheo", "top-k", "rheo-raw"]))
def test_any_tree_can_be_drawn(models, shape, name):
    method = rule(name)
    tree = method.cycle(models.target, models.draft, (), shape, SamplingChooser(np.random.default_rng(0))).tree
    assert len(boxes(draw_tree(tree))) == len(tree)


def test_a_tree_without_nodes_is_a_root():
    assert boxes(draw_tree(tree_of(3, 0).first(0), legend=False)) == {}


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_files_are_whole_and_reproducible(ending, tmp_path):
    for name in ("one", "two"):
        save_figure(draw_trees([Picture(tree_of(9, 2))], WORDS), tmp_path / f"{name}.{ending}")
    assert (tmp_path / f"one.{ending}").read_bytes() == (tmp_path / f"two.{ending}").read_bytes()
    assert len(list(tmp_path.iterdir())) == 2
    if ending == "svg":
        assert ET.parse(tmp_path / "one.svg").getroot().tag.endswith("svg")


def test_a_sheet_too_large_for_a_png_is_drawn_coarser(tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.import_module("exact.report.style"), "MOST_PIXELS", 200)
    save_figure(draw_trees([Picture(tree_of(59, 1, 10, 8))]), tmp_path / "x.png")
    width, height = (int.from_bytes((tmp_path / "x.png").read_bytes()[start : start + 4], "big") for start in (16, 20))
    assert 190 <= max(width, height) <= 201


def test_titles_in_any_script_are_spelled_out():
    figure = draw_trees([Picture(table1_tree("rheo"), "行")], title="列 $x$")
    assert figure.texts[0].get_text() == "\\u5217 $x$"
    assert texts(figure.axes[0])[0] == "\\u884c"


def run(*arguments):
    return options.run(app, [str(argument) for argument in arguments])


@pytest.fixture
def rows(tmp_path):
    """A rows file with named tokens."""
    path = tmp_path / "rows.json"
    path.write_text(
        '{"contexts": {"*": {"target": ["1/2", "1/5", "3/10"], "draft": ["1/2", "3/10", "1/5"]}}, '
        '"vocabulary": [{"text": " Ann"}, {"text": " Bea"}, {"text": " Cat"}]}'
    )
    return path


def test_table1_draws_its_pools_and_laws(tmp_path, capsys):
    assert run("table1", "--plot", tmp_path / "x.svg") == 0
    assert (tmp_path / "x.svg").stat().st_size > 5000
    certificates = {
        name: exact.certify(methods[name], table1.target, table1.draft, table1.SHAPE, length=1)
        for name in table1.PROXIES
    }
    figure = draw_table1(certificates)
    assert [len(boxes(ax)) for ax in figure.axes[:6]] == [3, 3, 0, 3, 3, 0]
    assert [text for text in texts(figure.axes[5]) if "/" in text] == ["3/5", "7/25", "3/25"]
    assert [each.get_text() for each in figure.texts[:2]] == [
        "Rheo: min{q(A), z} = 1/2 · lossless · TV 0",
        "Ad hoc: 1/4 · lossy · TV 9/50",
    ]
    colours = [{each.get_facecolor() for each in ax.patches} for ax in (figure.axes[2], figure.axes[5])]
    assert len(colours[0]) == len(colours[1]) == 1
    assert colours[0] != colours[1]


def test_classes_draws_what_it_prints(rows, tmp_path, capsys, monkeypatch):
    drawn = []
    monkeypatch.setattr(classes_command, "save_figure", lambda figure, path: drawn.append(figure))
    shape = ("--width", 3, "--depth", 1, "--budget", 2)
    assert run("classes", "rheo", "top-k", "--rows", rows, *shape, "--plot", tmp_path / "x.png") == 0
    assert "2 classes" in capsys.readouterr().out
    (figure,) = drawn
    assert [each.get_text() for each in figure.texts] == ["rheo m=1 on rows: 2 classes", "top-k on rows: 1 class"]
    assert [len(boxes(ax)) for ax in figure.axes] == [2, 2, 2, 0]
    assert {"␣Ann", "␣Bea", "1   P = 3/5"} <= set(texts(figure.axes[0]))


@pytest.mark.parametrize("command", ["classes", "table1"])
@pytest.mark.parametrize("name", ["x.gif", "x", "missing/x.png", "."])
def test_a_file_that_cannot_be_drawn_to_is_refused_before_the_work(command, name, tmp_path, capsys):
    assert run(command, "--plot", tmp_path / name) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert captured.err.startswith("error: plot: got ")


@pytest.mark.parametrize("command", ["classes", "table1"])
def test_without_matplotlib_the_extra_is_named(command, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert run(command, "--plot", tmp_path / "x.png") == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "rheo-lossless[plot]" in captured.err
    assert captured.err.count("\n") == 1


def test_rows_files_name_their_tokens():
    assert shipped_rows()[0].names == (" pieces", " tomato", " wire", " different", " feet")
    text = '{"contexts": {"*": {"target": [1, 0], "draft": [1, 0]}}, "vocabulary": %s}'
    assert parse_rows(text % '[{"text": "a"}, {"text": "b", "token_id": 7}]', "x").names == ("a", "b")
    assert parse_rows(text % '["a", {"text": "b"}]', "x").names == ("a", "b")
    assert parse_rows(text % "null", "x").names is None


@pytest.mark.parametrize(
    ("vocabulary", "said"),
    [
        ("[]", "x: vocabulary: got 0 entries, expected 2, one for each token"),
        ('[{"text": "a"}]', "x: vocabulary: got 1 entries, expected 2, one for each token"),
        ('["a", "b", "c"]', "x: vocabulary: got 3 entries, expected 2, one for each token"),
        ('{"0": "a", "1": "b"}', "x: vocabulary: got dict, expected a list of texts"),
        ('"ab"', "x: vocabulary: got str, expected a list of texts"),
        ("2", "x: vocabulary: got int, expected a list of texts"),
        ('[{"text": "a"}, {"text": 1}]', r"x: vocabulary\[1\]: got \{'text': 1\}, expected a string, or an object"),
        ('[{"token": "a"}, "b"]', r"x: vocabulary\[0\]: got \{'token': 'a'\}, expected a string, or an object"),
        ('["a", null]', r"x: vocabulary\[1\]: got None, expected a string, or an object"),
    ],
)
def test_a_vocabulary_that_is_not_that_of_the_target_is_refused(vocabulary, said):
    text = '{"contexts": {"*": {"target": [1, 0], "draft": [1, 0]}}, "vocabulary": %s}'
    with pytest.raises(InvalidInput, match=said):
        parse_rows(text % vocabulary, "x")


def test_the_public_names():
    assert exact.draw_tree is draw_tree
    assert exact.draw_classes is draw_classes
