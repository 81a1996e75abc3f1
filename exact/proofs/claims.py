"""What is proved of one pool, each statement written once as a sympy expression that a person can read or print.

Every checker (polynomials, z3, plain rationals) is handed these same expressions. p is the target law, q~ the tail law
over tokens sorted by the draft (x_1 first), r = norm(max(0, p - q~)); P_w is the probability that Algorithm 1 emits w
and A(n) that it accepts one of n candidates, both what rheo_core's code does, not what a formula says.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sympy import Add, Eq, Expr, Function, Ge, IndexedBase, Integer, Le, Max, Min, Mul, Sum, Symbol, latex
from sympy.core.relational import Relational

n, m, V, v, w, u = (Symbol(name, integer=True, positive=True) for name in "nmVvwu")
p = IndexedBase("p")
q = IndexedBase(r"\tilde{q}")
r = IndexedBase("r")
emitted = IndexedBase("P")
accepted = Function("A")
accepted_rrsw = Function(r"A^{\mathrm{RRSw}}")


@dataclass(frozen=True)
class Claim:
    """A statement about one pool, where it holds, and the same statement with one term changed.

    `over` names the indices that it is for: "w" every token, "n" every pool size from m + 1 on. `given` are further
    assumptions. `control` is false, and a checker that does not refute it is not to be trusted.
    """

    name: str
    source: str
    statement: Relational
    control: Relational
    over: str
    given: tuple[Relational, ...] = field(default=())

    def text(self) -> str:
        """Give the statement on one line, its assumptions after it."""
        return _text(self.statement, self.given)

    def control_text(self) -> str:
        """Give the control on one line."""
        return _text(self.control, self.given)

    def latex(self) -> str:
        """Give the statement as LaTeX, its assumptions after it."""
        conditions = "".join(rf",\quad {latex(each)}" for each in self.given)
        return str(latex(self.statement)) + conditions


def _text(statement: Relational, given: tuple[Relational, ...]) -> str:
    signs = {Eq: "=", Le: "<=", Ge: ">="}
    lines = [f"{each.lhs} {signs[type(each)]} {each.rhs}" for each in (statement, *given)]
    return ", where ".join(lines).replace(r"\tilde{q}", "q~").replace(r"^{\mathrm{RRSw}}", "_RRSw")


def top(row: IndexedBase, count: Expr) -> Sum:
    """Give the mass of a row on Top_count."""
    return Sum(row[v], (v, 1, count))


def overlap(first: Expr) -> Sum:
    """sum of min(p, q~) from x_first on."""
    return Sum(Min(p[v], q[v]), (v, first, V))


def rejected(last: Expr) -> Sum:
    """sum of max(0, q~ - p) over Top_last: the probability that Y is drawn there and rejected."""
    return Sum(Max(Integer(0), q[v] - p[v]), (v, 1, last))


def expression(*terms: Expr) -> Expr:
    """Give a sum that keeps the order of its terms."""
    return Add(*terms, evaluate=False)


middle_of_eq6 = expression(Min(p[w], q[w]), Mul(r[w], rejected(V)))
theorem3 = expression(top(p, n - 1), overlap(n), Mul(r[n], rejected(n - 1)))
theorem3_bound = expression(top(p, n), overlap(n + 1))
optimum = expression(top(p, n - 1), Min(p[n], top(q, n)), overlap(n + 1))

LOSSLESS = Claim(
    "one layer of Algorithm 1 emits p",
    "Eq. (6), end to end",
    Eq(emitted[w], p[w], evaluate=False),
    Eq(emitted[w], q[w], evaluate=False),
    over="w",
)
EQUATION_6 = Claim(
    "what Algorithm 1 emits is Eq. (6)'s sum",
    "Eq. (6), second line",
    Eq(emitted[w], middle_of_eq6, evaluate=False),
    Eq(emitted[w], expression(Min(p[w], q[w]), Mul(r[w], overlap(Integer(1)))), evaluate=False),
    over="w",
)
THEOREM_3 = Claim(
    "Theorem 3: A_Rheo in closed form",
    "Theorem 3, Eq. (2)",
    Eq(accepted(n), theorem3, evaluate=False),
    Eq(accepted(n), expression(top(p, n - 1), overlap(n), Mul(r[n], rejected(V))), evaluate=False),
    over="n",
)
THEOREM_3_BOUND = Claim(
    "Theorem 3: A_Rheo <= its bound",
    "Theorem 3, Eq. (2)",
    Le(theorem3, theorem3_bound, evaluate=False),
    Le(theorem3, expression(top(p, n - 1), overlap(n + 1)), evaluate=False),
    over="n",
)
BELOW_OPTIMUM = Claim(
    "A_Rheo <= A*, the optimum for the pool",
    "section 3.3 (optimal transport)",
    Le(theorem3, optimum, evaluate=False),
    Le(theorem3, expression(top(p, n - 1), Min(p[n], q[n]), overlap(n + 1)), evaluate=False),
    over="n",
)
OPTIMAL_WITHOUT_FILLS = Claim(
    "A_Rheo = A* without fills (n = m + 1)",
    "section 3.3 (optimal transport)",
    Eq(theorem3, optimum, evaluate=False),
    Eq(theorem3, theorem3_bound, evaluate=False),
    over="n",
    given=(Eq(n, m + 1, evaluate=False),),
)
OPTIMAL_BELOW_TAIL = Claim(
    "A_Rheo = A* where p(x_n) <= q~(x_n)",
    "section 3.3 (optimal transport)",
    Eq(theorem3, optimum, evaluate=False),
    Eq(theorem3, expression(top(p, n - 1), overlap(n + 1)), evaluate=False),
    over="n",
    given=(Le(p[n], q[n], evaluate=False),),
)
POOL_CLAIMS = (
    LOSSLESS,
    EQUATION_6,
    THEOREM_3,
    THEOREM_3_BOUND,
    BELOW_OPTIMUM,
    OPTIMAL_WITHOUT_FILLS,
    OPTIMAL_BELOW_TAIL,
)
"""Proved for every V and, cell by cell, for each V up to 12."""

after_leads = Sum(p[u], (u, m + 1, V))
"""1 - A, written as the mass of p off the lead."""
r_rrsw = IndexedBase(r"r^{\mathrm{RRSw}}")
"""r' = norm(max(0, p - (1 - A) q~)) off the lead, which is norm(max(0, p~ - q~))."""
thinned = Mul(after_leads, q[v])
equation_18 = expression(
    top(p, n - 1),
    Sum(Min(p[v], thinned), (v, n, V)),
    Mul(r_rrsw[n], Sum(Max(Integer(0), thinned - p[v]), (v, 1, n - 1))),
)

EQUATION_18 = Claim(
    "Eq. (18): A_RRSw in closed form",
    "appendix D.2, Eq. (18)",
    Eq(accepted_rrsw(n), equation_18, evaluate=False),
    Eq(accepted_rrsw(n), theorem3, evaluate=False),
    over="n",
)
RHEO_OVER_RRSW = Claim(
    "A_Rheo >= A_RRSw on every pool",
    "appendix D.3, read as exact",
    Ge(theorem3, equation_18, evaluate=False),
    Ge(theorem3, expression(equation_18, Mul(r[n], rejected(V))), evaluate=False),
    over="n",
)
RHEO_OVER_RRSW_WITHOUT_FILLS = Claim(
    "A_Rheo >= A_RRSw without fills (n = m + 1)",
    "appendix D.3",
    Ge(theorem3, equation_18, evaluate=False),
    Eq(theorem3, equation_18, evaluate=False),
    over="n",
    given=(Eq(n, m + 1, evaluate=False),),
)
RHEO_OVER_RRSW_BELOW_TAIL = Claim(
    "A_Rheo >= A_RRSw where p(x_n) <= q~(x_n)",
    "appendix D.3",
    Ge(theorem3, equation_18, evaluate=False),
    Eq(theorem3, equation_18, evaluate=False),
    over="n",
    given=(Le(p[n], q[n], evaluate=False),),
)
RHEO_OVER_RRSW_WITHOUT_LEADS = Claim(
    "A_Rheo >= A_RRSw without leads (m = 0)",
    "appendix D.3",
    Ge(theorem3, equation_18, evaluate=False),
    Ge(theorem3, expression(equation_18, Mul(r[n], rejected(V))), evaluate=False),
    over="n",
    given=(Eq(m, Integer(0), evaluate=False),),
)
RHEO_OVER_RRSW_WHOLE = Claim(
    "A_Rheo >= A_RRSw where every token is a candidate (n = V)",
    "appendix D.3",
    Ge(theorem3, equation_18, evaluate=False),
    Ge(theorem3, expression(equation_18, Mul(r[n], rejected(V))), evaluate=False),
    over="n",
    given=(Eq(n, V, evaluate=False),),
)
RRSW_CLAIMS = (
    RHEO_OVER_RRSW_WITHOUT_FILLS,
    RHEO_OVER_RRSW_BELOW_TAIL,
    RHEO_OVER_RRSW_WITHOUT_LEADS,
    RHEO_OVER_RRSW_WHOLE,
)
"""Proved for every V. They leave nothing for V <= 3: the smallest failure of `RHEO_OVER_RRSW` has four tokens."""

k = Symbol("k", integer=True, positive=True)
LOOP_EMITS = Claim(
    "the loop of Algorithm 1 emits r, whatever its candidates",
    "Algorithm 1, lines 12-20; appendix C.3 (h_res = r)",
    Eq(emitted[w], r[w], evaluate=False),
    Eq(emitted[w], expression(r[w], Mul(r[1], r[w])), evaluate=False),
    over="w",
)
LOOP_ACCEPTS = Claim(
    "the loop accepts one of its k candidates with their mass under r",
    "Algorithm 1, lines 12-20; with r = p Theorem 3 for s = -1",
    Eq(accepted(k), top(r, k), evaluate=False),
    Eq(accepted(k), top(r, k - 1), evaluate=False),
    over="k",
)
LEMMA_4 = Claim(
    "q(x_{m+1}) <= proxy <= 1, whatever Y is",
    "Lemma 4",
    Le(IndexedBase("q")[m + 1], Symbol("proxy")),
    Le(IndexedBase("q")[m], Symbol("proxy")),
    over="m",
)
