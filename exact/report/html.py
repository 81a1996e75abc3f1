"""The page that a person sends to a colleague: one file, readable without scripts, network or this software.

`page.html.j2` says what stands where, `parts.html.j2` how; here are the values that it shows. Method names, file names
and tokens come from outside: whatever is not markup of a template is escaped, control characters included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from exact.acceptance.one_layer import OneLayer
from exact.enumeration.rationals import fraction
from exact.enumeration.tree_classes import TreeClass
from exact.interception.function_certificate import FunctionCertificate
from exact.report.svg import TreePicture, shown_token, tree_picture
from exact.runtime.provenance import Provenance
from exact.verdict.certificate import Certificate
from rheo_core import InvalidInput

WRONG, RIGHT = 16, 8
"""Lines of a table where something differs, and where nothing does; the others are summed up below it."""
SEQUENCES = 700
"""Sequences up to which a joint law is tabulated."""
WIDEST, MOST_ROWS, MOST_TREES = 64, 40, 6
"""Tokens of a row, rows, and trees that a page shows."""
NONE = Fraction(0)
PAGE, PARTS = "page.html.j2", "parts.html.j2"
TITLE = "Certificate of losslessness"
TONES = {True: "good", False: "bad", None: "unsure"}
EVERY_TARGET = {True: "proved for every target", False: "refuted for some target", None: "every target: undecided"}
TURNING = frozenset((*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0xFFFE, 0xFFFF))
"""Marks that change the direction of writing, and what is no character."""


@dataclass(frozen=True)
class Entry:
    """What a page shows of one certification.

    `label` and `rows` say what was certified on what; `source` is where a counterexample's test finds the rule (None:
    by the certificate's own name); `trees` are the classes (None: the method has none), `names` the tokens' texts,
    `layer` the acceptance at the root beside the optimum (None: not computed), `labelled` whether the verdict is to be
    held against the method's claim.
    """

    label: str
    rows: str
    certificate: Certificate
    source: str | None = None
    trees: Sequence[TreeClass] | None = None
    names: Sequence[str] | None = None
    layer: OneLayer | None = None
    labelled: bool = False

    @property
    def words(self) -> str:
        """The first verdict, beside the claim where there is a label."""
        claimed = ", as claimed" if self.certificate.as_claimed else ", NOT as claimed"
        return self.certificate.verdict + (claimed if self.labelled else "")

    @property
    def tone(self) -> str:
        """The colour of the first verdict."""
        return TONES[self.certificate.as_claimed if self.labelled else self.certificate.lossless]

    @property
    def laws(self) -> list[tuple[str, LawTable]]:
        """The distribution of the first token, and the joint distribution of as many tokens as can be tabulated."""
        certificate, found = self.certificate, []
        longer = [n for n in range(2, certificate.length + 1) if certificate.vocabulary**n <= SEQUENCES]
        for length in (1, *longer[-1:]):
            try:
                law, right = certificate.law(length), certificate.right(length)
            except InvalidInput:  # rows off the emitted text, which the certificate did not need
                continue
            title = "Law of the first token" if length == 1 else f"Joint law of the first {length} tokens"
            found.append((title, law_table(law, right, partial(_tokens, self.names), certificate.lossless)))
        return found

    @property
    def _ranked(self) -> list[TreeClass]:
        return sorted(self.trees or (), key=lambda each: each.probability, reverse=True)

    @property
    def pictures(self) -> list[tuple[Fraction, TreePicture]]:
        """The most probable classes: (probability, picture)."""
        return [(fraction(each.probability), tree_picture(each.tree, self.names)) for each in self._ranked[:MOST_TREES]]

    @property
    def unseen(self) -> tuple[int, Fraction] | None:
        """How many classes are not shown, and what they hold together."""
        rest = self._ranked[MOST_TREES:]
        return (len(rest), fraction(sum((each.probability for each in rest), start=NONE))) if rest else None

    def lemmas(self, hold: bool) -> str:
        """Give the lemmas of appendix C that hold on every class, or do not."""
        return ", ".join(name for name, holds in self.certificate.lemmas.items() if holds is hold)

    @property
    def figures(self) -> list[tuple[str, Fraction]]:
        """Every figure of the sentences by its name."""
        certificate, layer = self.certificate, self.layer
        lines = [("total variation", certificate.total_variation), ("τ", certificate.acceptance_length)]
        if certificate.rounding_bound is not None:
            lines.append(("rounding bound", certificate.rounding_bound))
        if layer is not None and layer.optimum is not None:
            lines += [("accepted at the root", layer.acceptance), ("the optimum there", layer.optimum)]
        other = ("of another target: ", certificate.every_target_counterexample)
        for title, found in (("", certificate.counterexample), other):
            if found is not None:
                named = sequence(found.sequence)
                lines += [(f"{title}{named} comes out", found.got), (f"{title}{named} should be", found.right)]
        return lines


@dataclass(frozen=True)
class LawLine:
    """One result, its probability and the right one; `off` marks a wrong one."""

    label: str
    actual: Fraction
    expected: Fraction
    off: bool


@dataclass(frozen=True)
class LawTable:
    """A distribution beside the right one: `lines` of `count` results, and the mass of the `rest` in both."""

    lines: list[LawLine]
    count: int
    order: str
    rest: tuple[Fraction, Fraction] | None

    @property
    def whole(self) -> Fraction | int:
        """The longest bar."""
        return max((max(line.actual, line.expected) for line in self.lines), default=NONE) or 1


def law_table(
    law: Mapping[Any, Fraction], right: Mapping[Any, Fraction], shown: Callable[[Any], str], lossless: bool | None
) -> LawTable:
    """A law against the right one: the most different lines where it is not lossless, else the most probable.

    What differs is marked unless the verdict is that it is rounding.
    """
    pairs = {key: (law.get(key, NONE), right.get(key, NONE)) for key in {**right, **law}}
    differ = not lossless and any(actual != expected for actual, expected in pairs.values())
    most, order = (WRONG, "most different") if differ else (RIGHT, "most probable")
    keys = list(pairs)
    if len(keys) > most:
        keys.sort(key=lambda key: (differ and -abs(pairs[key][0] - pairs[key][1]), -pairs[key][1]))
    lines = [LawLine(shown(key), *pairs[key], off=differ and pairs[key][0] != pairs[key][1]) for key in keys[:most]]
    rest = [pairs[key] for key in keys[most:]]
    sums = (sum((one for one, _ in rest), NONE), sum((two for _, two in rest), NONE))
    return LawTable(lines, len(keys), order, sums if rest else None)


@dataclass(frozen=True)
class RowsTable:
    """Rows as they were read: (prefix, masses) a line, none where a row of `size` tokens is too wide."""

    size: int
    labels: list[str]
    lines: list[tuple[str, tuple[Any, ...]]]
    further: int


def rows_table(rows: Mapping[tuple[int, ...], tuple[Any, ...]], names: Sequence[str] | None) -> RowsTable:
    """Give a line for each prefix (score distribution over sampling distribution where a row is two)."""
    size = max((len(row[0]) if row and isinstance(row[0], tuple) else len(row) for row in rows.values()), default=0)
    lines: list[tuple[str, tuple[Any, ...]]] = []
    for prefix, row in list(rows.items())[: MOST_ROWS if size <= WIDEST else 0]:
        parts = [("", row)] if not isinstance(row[0], tuple) else [("score ", row[0]), ("sampling ", row[1])]
        lines += [(name + (",".join(map(str, prefix)) or "(empty)"), law) for name, law in parts]
    labels = [shown_token(token, names) for token in range(size if lines else 0)]
    return RowsTable(size, labels, lines, max(0, len(rows) - MOST_ROWS))


def certificates_page(entries: Sequence[Entry], made: Provenance) -> str:
    """Give the page of one or many certifications."""
    verdict, words, below = _overall(entries)
    scopes = list(dict.fromkeys(each.certificate.scope for each in entries))
    shown = {"tone": TONES[verdict], "verdict": words, "below": [below, *scopes], "entries": entries}
    return template(PAGE).render(title=TITLE, made=made, **shown)


def _overall(entries: Sequence[Entry]) -> tuple[bool | None, str, str]:
    """Give the verdict on the whole, in words, and what it is of."""
    count = f"{len(entries)} certification{'s' if len(entries) != 1 else ''}"
    if any(each.labelled for each in entries):
        wrong = sum(not each.certificate.as_claimed for each in entries)
        if wrong:
            return False, f"{wrong} of {len(entries)} verdicts are NOT as claimed", "See the table."
        words = f"All {len(entries)} verdicts are as claimed"
        return True, words, "Lossless where that is claimed, lossy where it must be."
    verdicts = [each.certificate.lossless for each in entries]
    verdict = False if False in verdicts else None if None in verdicts else True
    lossy = verdicts.count(False)
    alone = entries[0].certificate.verdict.capitalize() if len(entries) == 1 else f"Lossless: all {count}"
    words = "Lossy" if lossy == len(entries) else f"Lossy: {lossy} of {count}" if lossy else "Undecided"
    of = "; ".join(f"{each.label} on {each.rows}" for each in entries if each.certificate.lossless is verdict)
    return verdict, alone if verdict else words, of


def function_page(
    spec: str, certificate: FunctionCertificate | None, law: Mapping[Any, Fraction], made: Provenance, target: str
) -> str:
    """The page of `path.py:function`; without a certificate it shows the law alone. `target` names the right law."""
    shown: dict[str, Any]
    if certificate is None:
        words = "The file holds no target: the law alone, no verdict"
        below = [spec, "these inputs; exact law of the floats as they are"]
        shown = {"title": "Law of a function", "tone": TONES[None], "law": law_table(law, law, _result, None)}
    else:
        words = certificate.verdict[0].upper() + certificate.verdict[1:]
        below = [spec, f"scope: {certificate.scope}"]
        found = law_table(certificate.law, certificate.right, _result, certificate.lossless)
        shown = {"title": TITLE, "tone": TONES[certificate.lossless], "law": found, "test": to_pytest(spec, target)}
    return template(PAGE).render(verdict=words, below=below, certificate=certificate, made=made, **shown)


def to_pytest(spec: str, target: str) -> str:
    """Give a test of `path.py:function` against the name `target` of its file."""
    path, _, name = spec.rpartition(":")
    return f'''"""{name} draws its results with the law of `{target}`."""

from pathlib import Path

from exact.interception import certify_function
from exact.methods.load import load_name


def test_{name}_is_lossless():
    beside, known = Path(__file__).with_name({Path(path).name!r}), {str(Path(path).resolve())!r}
    function = load_name(str(beside if beside.exists() else known), {name!r})
    names = function.__globals__
    certificate = certify_function(function, target=names[{target!r}], length=names.get("length"))
    assert certificate.lossless, str(certificate)
'''


def sequence(found: object) -> str:
    """Tokens in brackets, a single one too.

    >>> sequence((2, 0)), sequence("a")
    ('P(2, 0)', 'P(a)')
    """
    return f"P({', '.join(map(str, found if isinstance(found, tuple) else (found,)))})"


def shortened(value: Any) -> str:
    """Six digits."""
    return f"{float(value):.6g}"


def _tokens(names: Sequence[str] | None, tokens: Iterable[int]) -> str:
    return ", ".join(shown_token(token, names) for token in tokens)


def _result(result: Any) -> str:
    return ", ".join(map(_result, result)) if isinstance(result, tuple) else str(result)


def printable(value: object) -> object:
    """Text in which HTML may hold every character and none turns the text around it; markup as it is.

    >>> printable("a" + chr(0) + "b"), printable(Markup("<b>"))
    ('a\\\\x00b', Markup('<b>'))
    """
    return value if isinstance(value, Markup) else "".join(map(_printable, str(value)))


def _printable(character: str) -> str:
    code = ord(character)
    if (code < 32 and character not in "\n\t") or 0x7F <= code < 0xA0 or 0xD800 <= code < 0xE000 or code in TURNING:
        return character.encode("unicode_escape", "surrogatepass").decode()
    return character


@cache
def template(name: str) -> Template:
    """Give a template of this room; a name that it misspells raises."""
    environment = Environment(
        loader=PackageLoader("exact.report", ""),
        autoescape=True,
        finalize=printable,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "exact": lambda value: str(fraction(value)),
        "short": shortened,
        "signed": lambda value: f"{float(value):+.4g}" if value else "0",
        "float_of": float,
        "percent": lambda pair: min(100 * float(fraction(pair[0]) / fraction(pair[1])), 100),
        "px": lambda value: f"{value:.1f}".removesuffix(".0"),
        "tokens": sequence,
        "every_target": lambda verdict: (TONES[verdict], EVERY_TARGET[verdict]),
        "listed": rows_table,
    }
    return environment.get_template(name)
