"""Re-check a certificate without trusting the code that made it: `python -I check.py FILE`.

From the recorded rows it recomputes what it prints as a result, and prints the rest as recorded.
Exit 0: all results hold. 1: one does not (it is named). 2: not a certificate, or too much work.
3: what could be recomputed holds, but a rule, or a float run, had to be taken as recorded.
"""

import hashlib
import json
import re
import sys
from collections import namedtuple
from fractions import Fraction
from functools import cache, partial
from pathlib import Path
from typing import Any

SCHEMA = "rheo-certificate/2"
DOCUMENT = "schema versions inputs derived sha256"
INPUTS = "method shape prefix length cycles second arithmetic losing_target rows"
ROUNDING = " rounding_bound rounding_most"
METHOD = "name claim m construction proxy verify identity"
FRACTION = re.compile(r"-?\d{1,50000}(/[1-9]\d{0,49999})?", re.ASCII)
MOST_BYTES, MOST_ENTRIES, MOST_BITS = 8_000_000, 400_000, 1 << 19
WORK = 4_000_000  # of a microsecond and 50 bytes at most; every loop pays for its numbers
PURSE = [WORK]
LEAD, SAMPLED, FILL = 0, 1, 2
RULES = ("algorithm_1", "vanilla", "rrsw")
PROXIES = ("min{q(x_m), z}", "z", "q(x_{m+1})", "q(Y)", "min(q)/2")
EPSILON = {"rational": 0.0, "float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10}
Tokens = tuple[int, ...]
# `order` is minus the path score, as (float, exact); `path` are the slots from the root
Node = namedtuple("Node", "slot kind token order context path")


class Wrong(Exception):
    """A figure that does not hold."""


def need(holds: Any, where: str, value: Any, expected: str) -> None:
    if not holds:
        raise ValueError(f"{where}: {shown(value, 60)}, expected {expected}")


def entries(value: Any, where: str, names: str) -> list[Any]:
    need(type(value) is dict, where, value, "an object")
    odd = value.keys() ^ set(names.split())
    need(not odd, where, min(odd, default=""), f"the entries {names.replace(' ', ', ')}")
    return [value[name] for name in names.split()]


def whole(value: Any, where: str, least: int = 0) -> Any:
    good = type(value) is int and least <= value <= 10**6
    need(good, where, value, f"a whole number from {least} to 10^6")
    return value


def spend(units: int) -> None:
    PURSE[0] -= units
    need(PURSE[0] >= 0, "work", "more than this checker does for a file", "a smaller one")


def paid(value: Any) -> Any:
    """The number itself, when the work of handling one of its length is paid for."""
    bits = value.denominator.bit_length() + value.numerator.bit_length()
    spend(4 + bits // 256 + (bits >> 10) ** 2 // 4)
    need(bits <= MOST_BITS, "number", bits, f"at most {MOST_BITS} bits")
    return value


def exact(text: Any) -> Any:
    need(type(text) is str and FRACTION.fullmatch(text), "number", text, "a fraction a/b")
    return paid(Fraction(text))


def total(values: Any) -> Any:
    mass = Fraction(0)
    for value in values:
        mass = paid(mass + value) if value else mass
    return mass


def norm(row: list[Any]) -> list[Any]:
    mass = total(row) or 1
    return [paid(x / mass) for x in row]


def number(value: Any) -> dict[str, Any]:
    return {"exact": str(Fraction(paid(value))), "float": float(value)}


def canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def shown(value: Any, most: int = 120) -> str:
    """A value in ASCII, without control characters, cut where it is long."""
    text = re.sub(r"[^ -~]", "?", json.dumps(value).strip('"'))
    return text if len(text) <= most else f"{text[:most]}..."


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    need(len(dict(pairs)) == len(pairs), "key", "twice in one object", "each key once")
    return dict(pairs)


class Pool:  # the candidates at one context, in target ids
    def __init__(self, case: "Case", context: Tokens) -> None:
        score, sampling = case.row(case.draft, context)
        m, self.width = case.m, case.width
        self.score = q = dict(zip(case.ids, score, strict=True))
        self.order = sorted(q, key=lambda v: -q[v])
        self.leads, rest = self.order[: min(m, self.width)], self.order[m:]
        drawn = zip(case.ids, sampling, strict=True) if m < self.width else ()
        left = {v: x for v, x in drawn if x and v not in self.leads}
        self.tail = dict(zip(left, norm([*left.values()]), strict=True))
        z, best, following = total(q[v] for v in rest), q[self.order[0]], q[(rest or self.order)[0]]
        paper = min(q[self.leads[-1]], z) if self.leads else best
        known = dict(zip(PROXIES, (paper, z, following, None, min(q.values()) / 2), strict=True))
        self.proxy = known.get(case.proxy, case.proxy)  # else it is a constant
        self.bounded = not self.tail or (self.proxy is not None and self.proxy >= following)
        self.made = dict[Any, list[Node]]()

    def children(self, node: Node, y: int | None) -> list[Node]:
        if (node.path, y) not in self.made:
            slots = [(LEAD, v) for v in self.leads] + [(SAMPLED, y)] * (y is not None)
            slots += [(FILL, v) for v in self.order[len(self.leads) :] if v != y]
            spend(len(self.order) + 16 * len(slots[: self.width]))
            self.made[node.path, y] = made = list[Node]()
            for slot, (kind, v) in enumerate(slots[: self.width]):
                by_proxy = kind == SAMPLED and self.proxy is not None
                score = paid(node.order[1] * (self.proxy if by_proxy else self.score[v]))
                path = (*node.path, slot)
                made.append(Node(slot, kind, v, (float(score), score), (*node.context, v), path))
        return self.made[node.path, y]


class Case:  # the inputs of a document: the recorded rows, the question, the method's parts
    def __init__(self, inputs: Any, other_target: Any = None) -> None:
        method, shape, prefix, length, cycles, *rest = entries(inputs, "inputs", INPUTS + ROUNDING)
        self.second, self.arithmetic, self.losing, rows, bound, most = rest
        *_, self.m, _, rule, self.verify, parts = entries(method, "method", METHOD)
        sizes = entries(shape, "shape", "width depth budget")
        self.width, self.depth, self.budget = (whole(size, "shape", 1) for size in sizes)
        self.length, self.cycles = whole(length, "length", 1), whole(cycles, "cycles", 1)
        self.prefix = tuple(whole(token, "prefix") for token in prefix)
        need(self.m is None or whole(self.m, "m") <= self.width, "m", self.m, "at most the width")
        self.proxy = exact(*entries(rule, "proxy", "constant")) if type(rule) is dict else rule
        good = rule in (*PROXIES, None) or (type(rule) is dict and 0 <= self.proxy <= 1)
        need(good, "proxy", rule, f"one of {PROXIES} or a constant in [0, 1]")
        need(self.verify in (*RULES, None), "verify", self.verify, f"one of {RULES}")
        self.epsilon = eps = Fraction(EPSILON[self.arithmetic])
        target, draft, ids = entries(rows, "rows", "target draft ids")
        self.target = {key: self.law(row, key) for key, row in (other_target or target).items()}
        self.draft = dict[str, list[Any]]()
        for key, row in draft.items():
            both = entries(row, key, "score sampling") if type(row) is dict else [row, row]
            self.draft[key] = [self.law(each, key) for each in both]
        self.size = max(map(len, self.target.values()))
        self.ids = ids = [whole(x, "ids") for x in (range(self.size) if ids is None else ids)]
        fair = {self.size} == {len(row) for row in self.target.values()}
        fair = fair and {len(x) for both in self.draft.values() for x in both} <= {len(ids)}
        if not fair or len({*ids}) < len(ids) or max([*ids, *self.prefix]) >= self.size:
            raise Wrong("rows, ids or prefix: of different lengths, or no tokens of the target")
        token = min(Fraction(1, 100), max(8 * eps, min(64 * self.size * eps, Fraction(1, 10**5))))
        self.most, self.bound = self.length * token, exact("0" if bound is None else bound)
        ours = {name: name in parts and parts[name]["known"] for name in ("proxy", "verify")}
        asked = self.second in (True, False) and most == (str(self.most) if eps else None)
        if not asked or any((method[name] is not None) != ours[name] for name in ours):
            raise Wrong("method, identity, second or rounding: they contradict one another")
        self.pool, self.verified = cache(partial(Pool, self)), cache(self.verify_at)
        self.root = Node(-1, -1, -1, (-1.0, Fraction(-1)), self.prefix, ())

    def law(self, row: Any, key: str) -> list[Any]:
        values = [exact(x) for x in row if type(row) is list]
        if min(values, default=-1) < 0 or abs(total(values) - 1) > len(row) * self.epsilon:
            raise Wrong(f"rows: one at {shown(key)} is not a law")
        return norm(values)

    def row(self, rows: dict[str, list[Any]], context: Tokens) -> list[Any]:
        key = ",".join(map(str, context))
        need(key in rows, "rows", key, "a target and a draft row at every prefix that is read")
        return rows[key]

    def layered(self, drawn: dict[Tokens, int], seen: dict[Tokens, Pool]) -> list[Node]:
        """Expand K parents a level, D levels, keep the R best; Y is drawn[path] or any in tail."""
        nodes, frontier = list[Node](), [self.root]
        for _ in range(self.depth):
            level = list[Node]()
            for node in frontier:
                seen[node.path] = pool = self.pool(node.context)
                y = drawn.get(node.path, next(iter(pool.tail), None))
                level += pool.children(node, y)
            spend(2 * len(level) + 4)
            nodes += level
            frontier = sorted(level, key=lambda node: node.order)[: self.width]
        return sorted(nodes, key=lambda node: node.order)[: self.budget]

    def classes(self, every: bool = False) -> dict[Any, tuple[list[Node], Any]]:
        """Each tree and its probability, by the draws that it holds: by Lemma 4 they decide it."""
        merged, waiting = dict[Any, Any](), [(dict[Tokens, int](), Fraction(1))]
        while waiting:
            (drawn, weight), seen = waiting.pop(), dict[Tokens, Pool]()
            tree = self.layered(drawn, seen)
            if not every and not all(pool.bounded for pool in seen.values()):
                return self.classes(every=True)  # a proxy below the lemma's bound: by all draws
            held = seen if every else {node.path[:-1] for node in tree if node.kind == SAMPLED}
            new = [x for x in seen if x in held and x not in drawn and seen[x].tail]
            if new:
                tail = seen[new[0]].tail
                spend(len(tail) * (2 * len(drawn) + 8))
                waiting += [({**drawn, new[0]: y}, paid(weight * x)) for y, x in tail.items()]
            else:
                spend(4 * len(tree))
                rank = {node.path: row for row, node in enumerate(tree)}
                key = tuple((rank.get(node.path[:-1], -1), *node[:3]) for node in tree)
                merged[key] = tree, paid(weight + (merged[key][1] if key in merged else 0))
        return merged

    def verify_at(self, context: Tokens, offered: Tokens, y: int | None) -> list[Any]:
        """(token, index of the accepted candidate or -1, probability) of the rule at a parent."""
        found, left, r = list[Any](), Fraction(1), self.row(self.target, context)
        for i in sorted(range(len(offered)), key=lambda i: self.verify == "algorithm_1" and i != y):
            share, tail = r[offered[i]], {offered[i]: Fraction(1)}
            if i == y and self.verify != "vanilla":
                tail = self.pool(context).tail
                share = min(Fraction(1), paid(share / tail[offered[i]]))
            found.append((offered[i], i, paid(left * share)))
            left = paid(left * (1 - share))
            r = norm([max(Fraction(0), x - tail.get(v, 0)) for v, x in enumerate(r)])
        found += [(v, -1, paid(left * x)) for v, x in enumerate(r)]
        return [each for each in found if each[2]]

    def emitted_law(self, found: dict[Any, tuple[list[Node], Any]]) -> dict[Tokens, Any]:
        """The law of one cycle's tokens: a known rule on every class."""
        law: dict[Tokens, Any] = {}
        for tree, probability in found.values():
            below, reached = dict[Tokens, list[Node]](), [(self.root, probability)]
            for node in sorted(tree, key=lambda node: node.slot):
                below.setdefault(node.path[:-1], []).append(node)
            for parent, mass in reached:  # which grows by the accepted nodes
                nodes = below.get(parent.path, [])
                y = next((i for i, node in enumerate(nodes) if node.kind == SAMPLED), None)
                offered = tuple(node.token for node in nodes)
                for token, child, share in self.verified(parent.context, offered, y):
                    if child == -1:
                        text = (*parent.context, token)[len(self.prefix) :]
                        law[text] = paid(law.get(text, 0) + mass * share)
                    else:
                        reached.append((nodes[child], paid(mass * share)))
        return law

    def compare(self, emitted: dict[Tokens, Any], above: Any = 0) -> tuple[Any, Any]:
        """Total variation from the target over L tokens, and the first text that is off by more."""
        begun: dict[Tokens, Any] = {}  # the probability that what a cycle emits begins so
        for text, mass in emitted.items():
            spend(len(text) ** 2)
            for n in range(1, len(text) + 1):
                begun[text[:n]] = paid(begun.get(text[:n], 0) + mass)
        distance, wrong, depth, level = Fraction(0), None, 0, {Tokens(): (Fraction(0), Fraction(1))}
        while level and depth < self.length:
            depth, last, level = depth + 1, level, {}
            for text, (ended, due) in last.items():
                for token, p in enumerate(self.row(self.target, self.prefix + text)):
                    longer = (*text, token)
                    end, right = paid(ended * p + emitted.get(longer, 0)), paid(due * p)
                    goes_on = paid(begun.get(longer, Fraction(0)) - emitted.get(longer, 0))
                    got = paid(end + goes_on)
                    if abs(got - right) > above and wrong is None:
                        wrong = {"sequence": [*longer], "got": number(got), "right": number(right)}
                    if goes_on and depth < self.length:
                        level[longer] = end, right
                    else:  # from here both go on by the same rows
                        distance = paid(distance + abs(got - right) / 2)
        return distance, wrong

    def fits(self, tree: list[Node], mass: Any) -> bool:
        """The class has the product probability, and RRSw sees every lead where it sees Y."""
        product, leads = Fraction(1), [node.path[:-1] for node in tree if node.kind == LEAD]
        for node in (node for node in tree if node.kind == SAMPLED):
            pool = self.pool(node.context[:-1])
            product = paid(product * pool.tail[node.token])
            if self.verify == "rrsw" and leads.count(node.path[:-1]) < len(pool.leads):
                return False
        return bool(mass == product)

    def derive(self, inputs: Any, recorded: Any) -> dict[str, Any]:
        """Every figure that follows from the rows, or from the recorded law of a cycle's tokens."""
        emitted = {tuple(map(int, s.split(","))): exact(x) for s, x in recorded["emitted"].items()}
        good = all(len(s) <= self.depth + 1 and 0 <= min(s) <= max(s) < self.size for s in emitted)
        if total(emitted.values()) != 1 or min(emitted.values()) < 0 or not good:
            raise Wrong("emitted: is not a law of what a cycle can emit")
        answer, found = dict[str, Any](), self.classes() if self.proxy is not None else {}
        known, rational = found and self.verify, not self.epsilon
        if found and rational:
            lines = sorted(json.dumps([key, str(mass)]) for key, (_, mass) in found.items())
            digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
            answer["classes"] = {"count": len(found), "digest": digest}
        law = self.emitted_law(found) if known else emitted  # on the rows as rationals
        if known and rational:
            emitted = law
            answer["emitted"] = {",".join(map(str, s)): str(x) for s, x in emitted.items()}
        depths = [total(x for s, x in emitted.items() if len(s) > d) for d in range(self.depth + 1)]
        answer["acceptance_by_depth"] = [number(x) for x in depths]
        answer["acceptance_length"] = number(total(depths))
        if not known and recorded["every_target"]:
            raise Wrong("every_target: a rule not known here is never proved")
        if self.cycles > 1 or not (known or rational):
            return answer
        (distance, wrong), (exactly, first) = self.compare(emitted), self.compare(law)
        lossless, every, lost = exactly == 0 and distance <= self.most, None, None
        if not lossless:  # shown by a text that is off by more than rounding
            wrong = first or self.compare(emitted, self.most / self.size)[1] or wrong
            every = False if self.second else None
        elif not distance <= self.bound <= self.most:
            lossless = None
        answer |= {"lossless": lossless, "counterexample": wrong if lossless is False else None}
        right = "lossless" if rational else "lossless up to rounding"
        words = {False: "lossy", None: "undecided", True: right}
        answer |= {"verdict": words[lossless], "total_variation": number(distance)}
        if lossless is not False and self.second:
            if not known:
                return answer
            every = all(self.fits(tree, mass) for tree, mass in found.values()) or None
            if not every and self.losing:
                other = Case(inputs, self.losing)
                lost = other.compare(other.emitted_law(found))[1]
                every = False if lost else None
        return {**answer, "every_target": every, "every_target_counterexample": lost}


def held(result: Any) -> tuple[list[str], dict[str, Any]]:
    """What was recomputed, in words, and what is taken as recorded; raises unless all holds."""
    document = result["certificate"]
    schema, versions, inputs, recorded, sha256 = entries(document, "the document", DOCUMENT)
    need(schema == SCHEMA, "schema", schema, SCHEMA)
    if hashlib.sha256(canonical({**document, "sha256": ""}).encode()).hexdigest() != sha256:
        raise Wrong("sha256: the document was altered after it was signed")
    case = Case(inputs)
    derived = case.derive(inputs, recorded)
    need(derived.keys() <= recorded.keys(), "derived", [*recorded], f"the entries {[*derived]}")
    cycles = "one cycle" if case.cycles == 1 else f"{case.cycles} cycles"
    reach = f"first {case.length} tokens after prefix {case.prefix}, {cycles} continued from the "
    reach += "target, ends not compared; ideal coins; "
    reach += f"up to {case.arithmetic} rounding" if case.epsilon else "exact"
    beside = {**recorded, **derived, "certificate": document, "claim": inputs["method"]["claim"]}
    covered = "every target at this q" if beside["every_target"] else "these rows"
    beside["scope"] = f"scope: {covered}; {reach}"
    beside["classes"] = beside["classes"] and beside["classes"]["count"]
    for figures, expected in ((recorded, derived), (result, beside)):
        for name in figures.keys() & expected.keys():
            if canonical(figures[name]) != canonical(expected[name]):
                raise Wrong(f"{name}: {shown(figures[name])}, recomputed {shown(expected[name])}")
    rule = f"m = {case.m}, proxy {shown(str(case.proxy))}, {case.verify}"
    rule = rule if case.proxy is not None and case.verify else "a rule not known here"
    given = ", if it emits what is recorded" * ("emitted" not in derived)
    sure = [rule + given, f"width {case.width}, depth {case.depth}, budget {case.budget}"]
    if "verdict" in derived:
        sure.append(f"{derived['verdict']}, TV {derived['total_variation']['float']:.6g}")
    words = {True: "proved", False: "refuted", None: "undecided"}
    if "every_target" in derived:
        sure.append(f"every target: {words[derived['every_target']]}")
    sure += [f"tau {derived['acceptance_length']['float']:.6g}", shown(reach, 300)]
    taken = {name: recorded[name] for name in recorded if name not in derived}
    taken |= {name: result[name] for name in result if name not in beside}
    labels = {name: inputs[name] for name in ROUNDING.split() if case.epsilon}
    return sure, {**taken, **labels, "method in it": inputs["method"], "versions": versions}


def main(path: str) -> int:
    PURSE[0], code = WORK, 0
    try:
        with Path(path).open("rb") as file:
            raw = file.read(MOST_BYTES + 1)
        size = sum(map(raw.count, (b"{", b"[", b",", b":")))
        need(len(raw) <= MOST_BYTES and size <= MOST_ENTRIES, "file", size, "8 MB, 400,000 entries")
        short: Any = lambda digits: int(digits[:20])  # noqa: E731 (no count here has so many)
        document = json.loads(raw.decode("utf-8"), object_pairs_hook=once, parse_int=short)
        results = [{"certificate": document}]
        if type(document) is dict and "results" in document:
            _, results = entries(document, "a results file", "command results")
        need(type(results) is list and results, "results", results, "a list of certificates")
        for sure, taken in map(held, results):
            code = 3 if {"emitted", "verdict"} & taken.keys() else code
            said = [f"{shown(name)} {shown(value, 300)}" for name, value in taken.items()]
            print(f"holds: {'; '.join(sure)}\n  as recorded, not checked: {'; '.join(said)}")
    except Wrong as error:
        code = 1
        print(f"REJECTED: {shown(path, 500)}: {shown(str(error), 500)}")
    except Exception as error:
        code, got = 2, getattr(error, "strerror", None) or f"{type(error).__name__}: {error}"
        bad = f"error: {shown(path, 500)}: got {shown(got.removeprefix('ValueError: '), 300)}"
        sys.stderr.write(f"{bad}; not a certificate (rheo-exact certify --save FILE writes them)\n")
    return code


if __name__ == "__main__":
    sys.set_int_max_str_digits(0)  # exact numbers have thousands of digits, bounded above
    usage = "usage: check.py FILE\n"
    sys.exit(main(sys.argv[1]) if len(sys.argv) == 2 else sys.stderr.write(usage) and 2)
