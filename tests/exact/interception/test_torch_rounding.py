"""What counts as rounding for a function: bounds that do not grow with V, narrow types found inside, bad results."""

import json
from fractions import Fraction

import numpy as np
import pytest

from exact.cli import options
from exact.cli.main import app
from exact.enumeration import whole_rows
from exact.enumeration.walk import TooManyOutcomes
from exact.interception import certify_function, torch_law
from rheo_core import InvalidInput

torch = pytest.importorskip("torch", reason="torch is not installed (extra `torch`)")
pytestmark = pytest.mark.exact
ROW = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64)
SIZES = [8, 40, pytest.param(2_000, marks=pytest.mark.slow)]
TYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16]


def rows(size, dtype):
    generator = torch.Generator().manual_seed(size)
    p = torch.randn(size, generator=generator, dtype=torch.float64).softmax(-1).to(dtype)
    q = torch.zeros(size, dtype=dtype)
    q[int(p.argmax())] = 1  # a greedy draft: its token is accepted with p, and all else comes from the residual
    return p, q


def chain(p, q, bias=0.0, only=None):
    """One step of the chain; the bias moves mass between the two last tokens of the residual."""
    drafted = torch.multinomial(q, 1)
    if torch.rand((), dtype=p.dtype) < p[drafted] / q[drafted]:
        return drafted
    rest = (p - q).clamp(min=0).double()
    if bias and only in (None, p.dtype):
        moved = torch.zeros_like(rest)
        moved[-2], moved[-1] = bias, -min(bias, float(rest[-1]))
        rest = rest / rest.sum() + moved
    return torch.multinomial(rest, 1)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("size", SIZES)
def test_a_right_chain_is_up_to_rounding_and_a_bias_of_1e_4_is_lossy(size, dtype):
    p, q = rows(size, dtype)
    right = certify_function(chain, p, q, target=p)
    assert right.lossless is True, str(right)
    assert right.verdict.startswith("lossless")
    found = certify_function(chain, p, q, 2e-4, target=p)
    assert found.verdict == "lossy", str(found)


@pytest.mark.parametrize(("bias", "lossless"), [(0.5e-5, True), (2e-5, None), (1e-2, False)])
def test_a_bias_of_one_type_alone_just_below_and_above_the_bound(bias, lossless):
    """In float64 it is gone, so its size alone decides: rounding, undecided, or more than all roundings."""

    def biased(p):
        row = p / p.sum()
        if row.dtype == torch.float32:
            row = row.double() + bias * torch.tensor([1.0, -1.0] + [0.0] * 6, dtype=torch.float64)
        return torch.multinomial(row, 1)

    p = rows(8, torch.float32)[0]
    found = certify_function(biased, p, target=p)
    assert found.lossless is lossless, str(found)


def test_a_bias_that_shows_in_a_rare_branch_alone():
    p = torch.tensor([0.5, 0.5 - 2e-6, 2e-6], dtype=torch.float64).float()

    def rare(p, wrong):
        token = torch.multinomial(p, 1)
        return torch.zeros(1, dtype=torch.long) if wrong and int(token) == 2 and torch.rand(()) < 0.5 else token

    assert certify_function(rare, p, False, target=p).lossless is True
    assert certify_function(rare, p, True, target=p).verdict == "lossy"  # TV 1e-6, far below the bound of float32


def test_a_residual_of_a_perturbed_p_is_lossy():
    """Moving p by 4d turns this residual round: no relative error of p bounds it."""
    d = 2.0**-12
    p, q = torch.tensor([0.5, 0.5]), torch.tensor([0.5 + d, 0.5 - d])

    def verify(p, q, moved):
        token = torch.multinomial(q, 1)
        if torch.rand(()) < p[token] / q[token]:
            return token
        return torch.multinomial((p + moved * torch.tensor([4 * d, -4 * d]) - q).clamp(min=0), 1)

    assert certify_function(verify, p, q, 0, target=p).lossless is True
    assert certify_function(verify, p, q, 1, target=p).verdict == "lossy"


def test_a_narrow_type_inside_is_named_and_hides_no_bias():
    narrow = ROW.to(torch.bfloat16)

    def outside():
        return torch.multinomial(torch.softmax(narrow.log(), -1), 1)

    def inside(bias=0.0):
        row = torch.softmax(ROW.log().to(torch.bfloat16), -1)
        return torch.multinomial(row.double() + bias * torch.tensor([1.0, -1.0, 0.0], dtype=torch.float64), 1)

    for function in (outside, inside):
        found = certify_function(function, target=ROW)
        assert found.verdict == "lossless up to rounding in bfloat16 (found inside)", str(found)
        assert found.rounding_type == "bfloat16"
        assert found.rounding_most == Fraction(1, 100)
        assert 0 < found.total_variation <= (found.rounding_bound or 0) <= Fraction(1, 100)
    assert certify_function(inside, 1e-4, target=ROW).verdict == "lossy"  # far below the rounding of bfloat16
    assert certify_function(inside, 1e-4, target=ROW, dtype="bfloat16").verdict == "lossy"


def test_a_declared_type_widens_the_bound_by_its_own_rounding_alone():
    def hidden():  # as an extension may: no name of a type is seen
        row = np.array([0.5, 0.3, 0.2], dtype="e" if np.float32 is not np.float64 else "d").astype("d")
        return int(np.random.choice(3, p=row / row.sum()))

    target = [0.5, 0.3, 0.2]
    assert certify_function(hidden, target=target).lossless is not True
    for declared in ({"dtype": "float16"}, {"dtype": np.float16}, {"dtype": torch.float16}, {"eps": 2.0**-10}):
        found = certify_function(hidden, target=target, **declared)
        assert "(as declared)" in found.verdict, str(found)
    for wrong in ({"dtype": "int8"}, {"eps": 0.0}, {"eps": 2.0}, {"eps": 2.0**-10, "dtype": "float16"}):
        with pytest.raises(InvalidInput, match=r"dtype|eps"):
            certify_function(hidden, target=target, **wrong)


def full_chain(p, q, bias=0.0, cast=None):
    """Draft one token, accept it with min(1, p / q), else draw from the residual; then the target's own token."""
    p, q = (p, q) if cast is None else (p.to(cast), q.to(cast))
    token = torch.multinomial(q, 1)
    if torch.rand(1) < p[token] / q[token] * (1 - bias):
        return torch.cat([token, torch.multinomial(p, 1)])
    return torch.multinomial((p - q).clamp(min=0), 1)


def drafted(size, support=16):
    """A float32 target and a draft over its best tokens."""
    generator = torch.Generator().manual_seed(size)
    p = (2 * torch.randn(size, generator=generator)).softmax(-1)
    q, top = torch.zeros(size), p.topk(min(size, support)).indices
    q[top] = (p[top].log() + 0.7 * torch.randn(len(top), generator=generator)).softmax(-1)
    return p, q


LARGE = [8, 2_000, pytest.param(50_000, marks=pytest.mark.slow)]


@pytest.mark.parametrize("size", LARGE)
def test_the_bound_is_measured_draw_by_draw_and_a_bias_of_1e_4_is_lossy(size):
    p, q = drafted(size)
    right = certify_function(full_chain, p, q, target=lambda prefix: p, length=2, one_cycle=True)
    assert right.verdict == "lossless up to rounding"
    assert 0 < right.total_variation <= right.rounding_bound < right.rounding_most / 50  # type: ignore[operator]
    assert right.outcomes <= 16 * 2 * min(size, 512 if size == 8 else 1)
    biased = certify_function(full_chain, p, q, 1e-4, target=lambda prefix: p, length=2, one_cycle=True)
    assert biased.verdict == "lossy"
    assert biased.got != biased.due


@pytest.mark.parametrize("cast", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("size", [8, 2_000])
def test_a_chain_in_a_narrow_type_inside_is_named(size, cast):
    p, q = drafted(size)
    found = certify_function(full_chain, p, q, 0.0, cast, target=lambda prefix: p, length=2, one_cycle=True)
    name = str(cast).removeprefix("torch.")
    assert found.verdict == f"lossless up to rounding in {name} (found inside)"
    assert found.total_variation <= found.rounding_bound <= found.rounding_most  # type: ignore[operator]


def test_whole_rows_give_the_same_verdict_as_one_run_for_each_value(monkeypatch):
    """The planted fault of the second half: an index read from the memory of a number that nobody has read."""
    p, q = drafted(12, 4)

    def certified():
        return certify_function(full_chain, p, q, target=lambda prefix: p, length=2, one_cycle=True)

    one = certified()
    monkeypatch.setattr(whole_rows, "LEAST", 5)
    monkeypatch.setattr(whole_rows, "LISTED", 20)
    two = certified()
    assert two.outcomes < one.outcomes
    assert not isinstance(two.law, dict)
    for figure in ("verdict", "total_variation", "total_variation_float64", "rounding_bound", "rounding_most"):
        assert getattr(one, figure) == getattr(two, figure)
    assert json.loads(two.to_json())["law"] is None
    assert all(two.right[text] == mass for text, mass in one.right.items())


READ = {
    "compared": lambda x: x if int(x[0]) >= 3 else x + 0,
    "an index": lambda x: torch.arange(12)[x],
    "in place": lambda x: x.clone().add_(0),
    "a list": lambda x: torch.tensor(x.tolist()),
    "a tensor of tensors": lambda x: torch.tensor([each for each in x]),  # noqa: C416
    "an array": lambda x: torch.from_numpy(x.numpy()),
    "a mask": lambda x: torch.where(torch.rand(1) < 0.5, x, x),
    "a view written into": lambda x: (x.view(1, 1).fill_(0), x)[1],
    "handed on": lambda x: torch.stack([x.view(1, 1)[0]]).squeeze(0).clone().unsqueeze(0)[0],
}


@pytest.mark.parametrize("name", READ)
def test_what_is_done_with_unread_numbers_makes_the_walk_branch(monkeypatch, name):
    p, _ = drafted(12)

    def function():
        return READ[name](torch.multinomial(p, 1))

    right = torch_law(function)
    monkeypatch.setattr(whole_rows, "LEAST", 2)
    found = certify_function(function, target=right)
    assert found.law == right
    assert found.lossless is True
    assert (found.outcomes == 1) == (name == "handed on")


@pytest.mark.parametrize(
    ("result", "length", "said"),
    [
        (torch.zeros(4, 3, dtype=torch.long), 2, "a batch of 4 sequences"),
        (torch.zeros(2, dtype=torch.long), None, "one token"),
        (torch.zeros(1), None, "one row of token ids"),
        ((), 2, "at least one token"),
    ],
)
def test_the_first_result_refuses_at_once(result, length, said):
    def function():
        torch.multinomial(torch.ones(1000), 1)
        return result

    target = [0.5, 0.5] if length is None else lambda prefix: [0.5, 0.5]
    with pytest.raises(InvalidInput, match=said):  # a second outcome would be one too many
        certify_function(function, target=target, length=length, limit=1)
    with pytest.raises(TooManyOutcomes):  # where every result can be compared it goes on
        certify_function(lambda: int(torch.multinomial(torch.ones(2), 1)), target=[0.5, 0.5], limit=1)


def test_results_shorter_than_the_length_are_named():
    found = certify_function(lambda: (0,), target=lambda prefix: [1, 0], length=2)
    assert found.continued == 1
    assert "1 short results continued from the target, ends not compared" in found.scope


HIDDEN = """
import numpy as np
target = [0.5, 0.3, 0.2]


def rounds():
    row = np.array(target, dtype="e").astype("d")
    return int(np.random.choice(3, p=row / row.sum()))


def biased():
    return int(np.random.choice(3, p=[0.501, 0.299, 0.2]))
"""


def test_the_command_takes_a_declared_type(tmp_path, capsys):
    path = tmp_path / "hidden.py"
    path.write_text(HIDDEN, encoding="utf-8")
    for name, arguments, code in (
        ("biased", ["--dtype", "float16"], 1),
        ("biased", ["--eps", "0.001"], 1),
        ("rounds", ["--dtype", "int8"], 2),
        ("rounds", ["--eps", "2"], 2),
        ("rounds", ["--eps", "0.001", "--dtype", "float16"], 2),
    ):
        assert options.run(app, ["certify", "--torch", f"{path}:{name}", *arguments]) == code, (name, arguments)
    assert options.run(app, ["certify", "rheo", "--dtype", "float16"]) == 2
    assert "--torch beside it" in capsys.readouterr().err
