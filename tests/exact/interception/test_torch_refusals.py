"""An answer is exact or there is none: what is refused, by the name of the operation and the line."""

import math

import pytest

import exact
from exact.interception import Interception, Unsupported, torch_law
from rheo_core import InvalidInput

torch = pytest.importorskip("torch", reason="torch is not installed (extra `torch`)")

pytestmark = pytest.mark.exact
P = torch.tensor([0.5, 0.125, 0.375])
ROWS = torch.tensor([[0.5, 0.5, 0.0], [0.25, 0.25, 0.5]])


GENERATOR = torch.Generator()


def with_default(generator=GENERATOR):
    return bool(torch.rand((), generator=generator) < 0.5)


@pytest.mark.parametrize(
    ("function", "named"),
    [
        (lambda: torch.rand(2).sum(), "Tensor.sum"),
        (lambda: torch.rand(2).sin(), "Tensor.sin"),
        (lambda: torch.softmax(torch.rand(2), -1), "torch.softmax"),
        (lambda: torch.nn.functional.softmax(torch.rand(2), -1), "torch.softmax"),
        (lambda: torch.rand(2) @ torch.ones(2), "Tensor.*matmul"),
        (lambda: float(torch.rand(())), "Tensor.__float__"),
        (lambda: torch.rand(2).cumsum(0), "Tensor.cumsum"),
        (lambda: torch.bernoulli(torch.rand(2)), "torch.bernoulli"),
        (lambda: torch.multinomial(torch.rand(2), 1), "torch.multinomial"),
        (lambda: torch.rand(2)[0] < torch.rand(2)[1], "<"),
        (lambda: torch.rand(2).data_ptr(), "Tensor.data_ptr"),
        (lambda: torch.rand(2, out=torch.empty(2)), "out="),
        (lambda: torch.randn(2), "torch.randn"),
        (lambda: torch.normal(P, P), "torch.normal"),
        (lambda: torch.poisson(P), "torch.poisson"),
        (lambda: torch.nn.functional.dropout(P), "bernoulli"),
        (lambda: torch.nn.functional.gumbel_softmax(P.log()), "gumbel_softmax"),
        (lambda: torch.nn.init.uniform_(torch.empty(3)), "uniform_"),
        (lambda: torch.randperm(9), "torch.randperm"),
        (lambda: torch.multinomial(ROWS[0], 3), "torch.multinomial"),
        (lambda: torch.get_rng_state(), "torch.get_rng_state"),
        (lambda: torch.empty(2, 2)[0].uniform_(), "written in place"),
        (with_default, "torch.*Generator"),
        (lambda: bool(torch.rand((), generator=GENERATOR) < 0.5), "Generator"),
    ],
)
def test_what_is_not_followed_is_refused_by_name_and_line(function, named):
    with pytest.raises(Unsupported, match=named) as error:
        torch_law(function)
    assert "test_torch_refusals.py:" in str(error.value)


def test_noise_is_used_once():
    def twice():
        noise = torch.empty(3).exponential_()
        return (P / noise).argmax().item(), (ROWS[0] / noise).argmax().item()

    with pytest.raises(Unsupported, match="second use of noise"):
        torch_law(twice)

    def race_then_compare():
        noise = torch.rand(3)
        return noise.argmax().item(), bool(noise[0] < 0.5)

    with pytest.raises(Unsupported, match="second use of noise"):
        torch_law(race_then_compare)


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")
def test_a_scripted_function_that_draws_is_found_out():
    @torch.jit.script
    def scripted(x):
        return torch.rand_like(x)

    with pytest.raises(Unsupported, match=r"rand_like.*test_torch_refusals"):
        torch_law(lambda: bool(scripted(P)[0] < 0.5))


@pytest.mark.parametrize(
    "weights",
    [[0.5, math.nan], [0.5, -0.5, 1.0], [0.0, 0.0], [0.5, math.inf]],
)
def test_weights_that_no_draw_can_use_raise(weights):
    with pytest.raises(InvalidInput, match=r"torch.multinomial at test_torch_refusals.py"):
        torch_law(lambda: torch.multinomial(torch.tensor(weights), 1))


def test_an_all_zero_residual_raises_with_its_branch():
    p = torch.tensor([0.5, 0.5])

    def program():
        residual = (p - p).clamp(min=0)
        return torch.multinomial(residual / residual.sum(), 1) if torch.rand(()) < 0.5 else 0

    with pytest.raises(InvalidInput, match="nan") as error:
        torch_law(program)
    assert any("weight 1/2" in note for note in error.value.__notes__)


def test_the_result_is_decided_by_the_draws():
    with pytest.raises(Unsupported, match="result"):
        torch_law(lambda: torch.rand(2))
    with pytest.raises(InvalidInput, match="NaN"):
        torch_law(lambda: torch.tensor([math.nan]))
    with pytest.raises(exact.UnhashableResult):
        torch_law(lambda: bytearray(b"a"))


def test_what_a_run_leaves_behind_is_found_out():
    left = []

    def program():
        left.append(1)
        return bool(torch.rand(()) < 0.5 / len(left))

    with pytest.raises(exact.NotReproducible):
        torch_law(program)


def test_everything_is_put_back():
    before = (torch.Generator, torch.manual_seed, torch.get_rng_state)
    with pytest.raises(Unsupported):
        torch_law(lambda: torch.rand(2).sum())
    assert (torch.Generator, torch.manual_seed, torch.get_rng_state) == before
    assert torch.rand(2).sum() > 0


def test_no_law_inside_a_law():
    with pytest.raises(Unsupported, match="one at a time"):
        torch_law(lambda: torch_law(lambda: 1))


def test_too_many_outcomes_are_counted_with_their_mass():
    with pytest.raises(exact.TooManyOutcomes, match="more than 2 outcomes"):
        Interception(limit=2).law(lambda: torch.randint(4, ()).item())


def test_every_random_kernel_of_torch_is_caught_or_guarded():
    from exact.interception.patch_torch import _CAUGHT, _may_draw_inside

    seen = 0
    for schema in torch._C._jit_get_all_schemas():
        name = schema.name.removeprefix("aten::")
        packet = getattr(torch.ops.aten, name, None) if schema.name.startswith("aten::") else None
        overload = getattr(packet, schema.overload_name or "default", None)
        if overload is None or torch.Tag.nondeterministic_seeded not in overload.tags:
            continue
        for owner in (torch, torch.Tensor, torch._C._nn, torch._VF):
            function = getattr(owner, name, None)
            if callable(function):
                seen += 1
                assert function in _CAUGHT or _may_draw_inside(function), f"{owner}.{name} could draw unseen"
    assert seen > 30


def test_code_that_swallows_exceptions_does_not_swallow_a_refusal():
    def program():
        try:
            return torch.rand(2).sum().item() < 1
        except Exception:
            return False

    def other():
        try:
            return torch.rand(2).sum().item() < 1
        except Exception:
            raise KeyError("mine") from None

    for function in (program, other):
        with pytest.raises(Unsupported, match=r"Tensor\.sum"):
            torch_law(function)


def test_a_result_that_is_hashed_by_identity_is_refused():
    class Result:
        pass

    with pytest.raises(exact.UnhashableResult, match="by its value"):
        torch_law(lambda: Result())
