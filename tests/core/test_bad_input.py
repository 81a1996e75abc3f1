"""Bad input, one test a line: what was given and what was expected, in one line, and never a repaired row."""

from fractions import Fraction as F
from typing import Any

import numpy as np
import pytest

from exact import certify
from rheo_core import (
    DraftRow,
    InvalidInput,
    ModelPair,
    SamplingChooser,
    TreeMethod,
    TreeShape,
    checks,
    find_method,
    generate,
    laws,
    methods,
    speculate,
)
from tests.pairs import alike, both, rational, rule

SHAPE = TreeShape(2, 2, 3)
GOOD = rational(1, 1, 2)


def run(target=None, draft=None, prefix: Any = (), method: Any = "rheo", shape: Any = SHAPE, ids: Any = None):
    """One cycle; the first fault that is met is raised."""
    chooser = SamplingChooser(np.random.default_rng(0))
    return speculate(target or alike(GOOD), draft or alike(GOOD), prefix, method, shape, chooser, ids=ids)


def refused(message, call, *arguments, **options):
    """Exactly this line, as an `InvalidInput`, which is a ValueError."""
    with pytest.raises(InvalidInput) as caught:
        call(*arguments, **options)
    assert isinstance(caught.value, ValueError)
    assert str(caught.value) == message
    assert "\n" not in message


def test_nothing_is_wrong_with_the_good_input():
    assert run().tokens
    assert certify("rheo", *both(GOOD), SHAPE).lossless


NO_LAW = {
    "rational": ([F(1, 2), F(1, 3)], "[Fraction(1, 2), Fraction(1, 3)]", "5/6, not exactly 1"),
    "float64": (
        np.array([0.5, 0.5 + 2.0**-50]),
        "[0.5, 0.5000000000000009]",
        "1.0000000000000009, not 1 within 4.44e-16 (float64, 2 entries)",
    ),
    "float32": (
        np.array([0.5, 0.49], np.float32),
        "[0.5, 0.49000000953674316]",
        "0.9900000095367432, not 1 within 2.38e-07 (float32, 2 entries)",
    ),
    "float16": (
        np.array([0.5, 0.49], np.float16),
        "[0.5, 0.489990234375]",
        "0.989990234375, not 1 within 0.00195 (float16, 2 entries)",
    ),
}


@pytest.mark.parametrize(("row", "given", "sum_of"), NO_LAW.values(), ids=NO_LAW)
def test_a_row_that_does_not_sum_to_1(row, given, sum_of):
    """Exactly for rationals; within V eps for floats, a tolerance that the message states."""
    good = rational(1, 1) if isinstance(row, list) else np.array([0.5, 0.5], row.dtype)
    expected = f"got {given}, expected a law: its sum is {sum_of}"
    refused(f"target(()): {expected}", run, alike(row))
    refused(f"draft(()): {expected}", run, alike(good), alike(row))


def test_a_rational_row_that_is_off_by_next_to_nothing():
    with pytest.raises(InvalidInput, match=r"^target\(\(\)\): got .*, expected a law: its sum is .*, not exactly 1$"):
        run(alike([F(1, 2), F(1, 2) + F(1, 10**30)]))


def test_a_negative_entry():
    refused("target(())[0]: got Fraction(-1, 2), expected a non-negative number", run, alike([F(-1, 2), F(3, 2)]))
    refused("draft(())[1]: got -0.5, expected a non-negative number", run, alike([0.5, 0.5]), alike([1.5, -0.5]))


def test_a_nan_entry():
    refused("target(())[1]: got nan, expected a non-negative number", run, alike([0.5, float("nan")]))
    refused("draft(())[0]: got nan, expected a non-negative number", run, alike([0.5, 0.5]), alike([float("nan"), 1.0]))


def test_a_row_is_named_with_its_prefix():
    def target(prefix):
        return GOOD if len(prefix) < 2 else [F(1, 2), F(1, 4), F(1, 5)]

    message = r"^target\(\(\d, \d\)\): got .*, expected a law: its sum is 19/20, not exactly 1"
    with pytest.raises(InvalidInput, match=message):
        certify("rheo", target, alike(GOOD), SHAPE)


@pytest.mark.parametrize("token", [3, 99])
def test_an_id_outside_the_vocabulary(token):
    refused(f"prefix[1]: got {token}, expected a token id in 0..2", run, prefix=(0, token))
    refused(f"ids[2]: got {token}, expected a token id in 0..2", run, ids=[0, 1, token])
    chooser = SamplingChooser(np.random.default_rng(0))
    refused(
        f"end: got {token}, expected a token id in 0..2",
        generate, *both(GOOD), (), "rheo", SHAPE, chooser, 3, end=[0, token],
    )  # fmt: skip


def test_a_negative_id():
    refused("prefix[0]: got -1, expected an int of at least 0", run, prefix=(-1,))
    refused("ids[0]: got -1, expected a token id in 0..2", run, ids=[-1, 1, 2])
    chooser = SamplingChooser(np.random.default_rng(0))
    refused("end: got -1, expected a token id in 0..2", generate, *both(GOOD), (), "rheo", SHAPE, chooser, 3, end=[-1])


@pytest.mark.parametrize("token", [1.0, "1", None, True, np.float32(1)], ids=repr)
def test_what_is_no_id(token):
    with pytest.raises(InvalidInput, match=r"^prefix\[0\]: got .*, expected an int of at least 0$"):
        run(prefix=(token,))
    with pytest.raises(InvalidInput, match=r"^ids\[0\]: got .*, expected a token id in 0\.\.2$"):
        run(ids=[token, 1, 2])


def test_a_prefix_that_is_no_sequence():
    refused("prefix: got 5, expected a sequence of token ids", run, prefix=5)


def test_m_above_k():
    refused("lead: got 3, expected 0 to the width K = 2", run, method=rule("rheo", lead=3))
    refused("lead: got 3, expected 0 to the width K = 2", certify, rule("rheo", lead=3), *both(GOOD), SHAPE)
    assert run(method=rule("rheo", lead=2)).tokens  # m = K is the plain top-K pool
    assert run(method=rule("rheo", lead=4), shape=TreeShape(4, 2, 3)).tokens  # m > V is legal


@pytest.mark.parametrize("lead", [-1, 1.5, "1", True])
def test_what_is_no_lead(lead):
    with pytest.raises(InvalidInput, match=r"^lead: got .*, expected an int of at least 0$"):
        TreeMethod("mine", None, lead)


@pytest.mark.parametrize("value", [0, -3, 2.0, "2", None, True, F(2)])
@pytest.mark.parametrize("name", ["width", "depth", "budget"])
def test_r_below_1_and_other_shapes(name, value):
    sizes: dict[str, Any] = {"width": 2, "depth": 2, "budget": 2} | {name: value}
    with pytest.raises(InvalidInput, match=rf"^{name}: got .*, expected an int of at least 1$"):
        TreeShape(**sizes)
    numpy: Any = np.int64(2), np.int8(2), 2
    assert TreeShape(*numpy) == TreeShape(2, 2, 2)


def test_unequal_vocabularies_without_a_map():
    refused(
        "draft vocabulary: got 2, expected the target's, 3, or a map ids[draft id] = target id",
        run, alike(GOOD), alike(rational(1, 1)),
    )  # fmt: skip
    assert run(alike(GOOD), alike(rational(1, 1)), ids=[2, 0]).tokens


def test_a_map_that_is_no_map():
    refused("ids: got 2 entries, expected one for each of the 3 draft ids", run, ids=[0, 1])
    refused("ids[2]: got 0, expected a target id of its own (ids[0] has it)", run, ids=[0, 1, 0])


def test_vocabularies_that_change_with_the_prefix():
    def uneven(prefix):
        return rational(1, 1, 1) if len(prefix) < 1 else rational(1, 1)

    refused_at = r"^draft\(\(\d,\)\): got 2 entries, expected 3, as at prefix \(\)$"
    with pytest.raises(InvalidInput, match=refused_at):
        run(alike(GOOD), uneven)
    with pytest.raises(InvalidInput, match=refused_at.replace("draft", "target")):
        run(uneven, alike(GOOD))


def test_p_and_q_of_different_arithmetic():
    refused(
        "draft(()): got dtype('float64'), expected the target's arithmetic, object",
        run, alike(GOOD), alike([0.25, 0.25, 0.5]),
    )  # fmt: skip
    single = np.array([0.25, 0.25, 0.5], np.float32)
    refused(
        "draft(()): got dtype('float32'), expected the target's arithmetic, float64",
        run, alike([0.25, 0.25, 0.5]), alike(DraftRow.law(single)),
    )  # fmt: skip


def test_object_rows_hold_ints_and_rationals_only():
    refused(
        "target(())[0]: got 0.5, expected an int or a rational: object rows hold nothing else",
        run, alike([0.5, F(1, 2)]),
    )  # fmt: skip


def test_an_empty_row():
    refused("target(()): got [], expected at least one entry", run, alike([]), alike([]))
    refused("draft(()): got None, expected a 1-D row, not shape ()", run, draft=alike(None))


def test_a_tail_law_where_there_is_none():
    q = checks.check_law([1, 0], "q")
    refused(
        "lead: got [0], expected a draft law with mass outside the lead (no tail law exists here)",
        laws.tail_law, q, [0],
    )  # fmt: skip
    assert DraftRow.law([1, 0]).tail([0]) is None  # asked as a question it is None
    assert ModelPair(*both([1, 0])).q(()).tail([0]) is None


def test_a_method_that_does_not_exist():
    refused(f"method: got best, expected one of {', '.join(methods)}", run, method="best")
    refused("method: got 3, expected a Method (name, claim, cycle) or a registered name", run, method=3)
    with pytest.raises(InvalidInput, match=r"^method: got best, expected one of .*rheo"):
        certify("best", *both(GOOD), SHAPE)
    assert find_method("rheo") is methods["rheo"]


def test_a_method_made_of_what_is_no_part():
    claim: Any = "perfect"
    refused('claim: got perfect, expected "lossless", "lossy" or None', TreeMethod, "mine", claim, 1)
    refused('construction: got sideways, expected "layered" or "grown"', lambda: rule("rheo", construction="sideways"))
    refused(
        "construction: got grown, expected a proxy that ignores the sampled token (else: layered)",
        run, method=rule("rheo-raw", construction="grown"),
    )  # fmt: skip


@pytest.mark.parametrize("length", [-1, 1.5, "3", None, True])
def test_what_is_no_length(length):
    chooser = SamplingChooser(np.random.default_rng(0))
    with pytest.raises(InvalidInput, match=r"^length: got .*, expected an int of at least 0$"):
        generate(*both(GOOD), (), "rheo", SHAPE, chooser, length)
    if length is not None:
        with pytest.raises(InvalidInput, match=r"^length: got .*, expected an int of at least 1$"):
            certify("rheo", *both(GOOD), SHAPE, length)
    assert certify("rheo", *both(GOOD), SHAPE, length=2, cycles=1).length == 2
    with pytest.raises(InvalidInput, match=r"^cycles: got 0, expected an int of at least 1$"):
        certify("rheo", *both(GOOD), SHAPE, cycles=0)


def test_nothing_is_clipped_or_renormalised():
    """What is accepted is kept to the bit."""
    row = np.array([0.5, 0.25, 0.25 + 2.0**-53])
    pair = ModelPair(*both(row))
    assert pair.p(()).tolist() == pair.q(()).score.tolist() == row.tolist()
