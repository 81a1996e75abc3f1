"""Re-check a certificate without trusting the code that made it.

Standard library only, and written apart from the rest: `python -I check.py FILE` reads strictly,
recomputes from the recorded rows what it prints as a result, and prints the rest as recorded.
Exit 0: all results hold. 1: one does not (it is named). 2: not a certificate, or too much work.
3: what could be recomputed holds, but a rule, or a float run, had to be taken as recorded.
"""

import hashlib
import json
import re
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

SCHEMA = "rheo-certificate/2"
LEAD, SAMPLED, FILL = 0, 1, 2
MOST_BYTES, MOST_ENTRIES, MOST_DIGITS, MOST_BITS = 8_000_000, 400_000, 100_000, 1 << 19
WORK = 6_000_000  # about half a microsecond each
PURSE = [WORK]
PROXIES = ("min{q(x_m), z}", "z", "q(x_{m+1})", "q(Y)", "min(q)/2")
EPSILON = {"float64": Fraction(1, 2**52), "float32": Fraction(1, 2**23)}
EPSILON |= {"float16": Fraction(1, 2**10), "rational": Fraction(0)}
Tokens = tuple[int, ...]
# parent (-1: the root), slot, kind, token, minus the score as (float, exact), context, path
Node = tuple[int, int, int, int, Any, Tokens, Tokens]
Tree = tuple[Node, ...]  # in rank order

# What stands in a document: kind? may be null, kind* is a list, kind% an object
TABLE = """document schema:schema versions:text% inputs:inputs derived:derived sha256:text
inputs method:method shape:shape prefix:count* length:one cycles:one arithmetic:arithmetic \
    rounding_bound:exact? rounding_most:exact? second:flag losing_target:row%? rows:rows
method name:text claim:claim? m:count? construction:construction? proxy:proxy? verify:verify? \
    identity:part%
part is:text sha256:text known:flag
shape width:one depth:one budget:one
rows target:row% draft:row% ids:count*?
derived classes:classes? emitted:exact% lossless:flag? verdict:verdict every_target:flag? \
    total_variation:figure counterexample:wrong? every_target_counterexample:wrong? \
    acceptance_length:figure acceptance_by_depth:figure*
classes count:one digest:text
wrong sequence:count* got:figure right:figure
figure exact:exact float:float
both score:exact* sampling:exact*
constant constant:exact
file command:text results:result*"""
KINDS = {line.split()[0]: line.split()[1:] for line in TABLE.splitlines()}
CHOICES: dict[str, tuple[Any, ...]] = {"schema": (SCHEMA,), "flag": (True, False)}
CHOICES |= {"claim": ("lossless", "lossy"), "construction": ("layered", "grown"), "proxy": PROXIES}
CHOICES |= {"verify": ("algorithm_1", "vanilla", "rrsw"), "arithmetic": tuple(EPSILON)}
CHOICES |= {"verdict": ("lossless", "lossless up to rounding", "lossy", "undecided")}
OBJECTS = {"row": "both", "proxy": "constant"}
LABELS = dict.fromkeys(["method", "rows", "every_target_reason", "note"], "text")
LABELS["lemmas"] = "flag%"


class Wrong(Exception):
    """A figure that does not hold."""


def need(holds: Any, where: str, value: Any, expected: str) -> None:
    if not holds:
        said = shown(value, 60) if isinstance(value, str | int | float | None) else "another kind"
        raise ValueError(f"{shown(where)}: {said}, expected {expected}")


def spend(units: int) -> None:
    """Every loop pays, by the length of its numbers."""
    PURSE[0] -= units
    need(PURSE[0] >= 0, "work", "more than this checker does for a file", "a smaller one")


def paid(value: Any) -> Any:
    """The number itself, when the work of handling one of its length is paid for."""
    bits = value.denominator.bit_length() + value.numerator.bit_length()
    spend(4 + bits // 256 + (bits >> 10) ** 2 // 4)
    need(bits <= MOST_BITS, "number", bits, f"at most {MOST_BITS} bits")
    return value


def total(values: Any) -> Any:
    mass = Fraction(0)
    for value in values:
        mass = paid(mass + value) if value else mass
    return mass


def norm(row: list[Any]) -> list[Any]:
    mass = total(row)
    return [paid(x / mass) for x in row] if mass > 0 else []


def number(value: Any) -> dict[str, Any]:
    return {"exact": str(Fraction(paid(value))), "float": float(value)}


def shown(value: Any, most: int = 120) -> str:
    """A value in ASCII, without control characters, cut where it is long."""
    text = json.dumps(value)[1:-1] if isinstance(value, str) else json.dumps(value)
    text = re.sub(r"[^ -~]", "?", text)
    return text if len(text) <= most else f"{text[:most]}..."


def fit(value: Any, kind: str, where: str) -> None:
    """Raise ValueError unless a value is of a kind of the table, of all its entries."""
    kind = OBJECTS[kind] if kind in OBJECTS and type(value) is dict else kind
    kind, end = ("exact*", "*") if kind == "row" else (kind, kind[-1])
    if end == "?":
        fit(value, kind[:-1], where) if value is not None else None
    elif end in "*%":
        need(type(value) is (list if end == "*" else dict), where, value, "a list or an object")
        tokens = r"((0|[1-9]\d{0,6})(,(0|[1-9]\d{0,6}))*)?"
        keys = re.compile(tokens if kind in ("row%", "exact%") else "[ -~]{1,80}", re.ASCII)
        for key, each in value.items() if end == "%" else enumerate(value):
            need(end == "*" or keys.fullmatch(str(key)), where, key, "a key of its kind")
            fit(each, kind[:-1], f"{where} {key}")
    elif kind in CHOICES:
        same = [each for each in CHOICES[kind] if type(each) is type(value) and each == value]
        need(same, where, value, f"one of {CHOICES[kind]}")
    elif kind in KINDS:
        need(type(value) is dict, where, value, "an object")
        kinds = dict(entry.split(":") for entry in KINDS[kind])
        for key in sorted(value.keys() | kinds.keys()):
            expected = f"the entries {', '.join(kinds)}"
            need(key in value and key in kinds, where or "the document", key, expected)
            fit(value[key], kinds[key], f"{where} {key}")
    elif kind in ("count", "one"):
        good = type(value) is int and (kind == "one") <= value <= 10**6
        need(good, where, value, f"a whole number from {int(kind == 'one')} to 1000000")
    elif kind == "exact":
        digits = value if type(value) is str and len(value) <= MOST_DIGITS else ""
        spend(1 + (len(digits) // 500) ** 2)
        good = re.fullmatch(r"-?(0|[1-9]\d*)(/[1-9]\d*)?", digits, re.ASCII) is not None
        good = good and str(paid(Fraction(value))) == value
        need(good, where, value, "a fraction in lowest terms")
    elif kind != "result":  # those are looked at one by one
        good = type(value) is (str if kind == "text" else float) and len(str(value)) <= 2_000
        need(good and str(value) not in ("inf", "-inf", "nan"), where, value, f"a {kind}")


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    need(len(dict(pairs)) == len(pairs), "key", "twice in one object", "each key once")
    return dict(pairs)


class Pool:  # the candidate pool at one context, in target ids
    def __init__(self, row: Any, m: int, width: int, rule: Any, ids: list[int]) -> None:
        both = (row["score"], row["sampling"]) if isinstance(row, dict) else (row, row)
        score, sampling = ([Fraction(x) for x in each] for each in both)
        self.score = q = dict(zip(ids, norm(score), strict=True))
        self.order = sorted(q, key=lambda v: -q[v])
        self.leads, self.width, rest = self.order[: min(m, width)], width, self.order[m:]
        drawn = zip(ids, sampling, strict=True)
        off_lead = norm([Fraction(v not in self.leads) * x for v, x in drawn])
        self.tail = {v: x for v, x in zip(ids, off_lead, strict=False) if x and m < width}
        likely = sorted(self.tail, key=lambda v: -self.tail[v])
        self.fillings = likely[:1] + likely[-1:]
        z, best, following = total(q[v] for v in rest), q[self.order[0]], q[(rest or self.order)[0]]
        paper = min(q[self.leads[-1]], z) if self.leads else best
        known = dict(zip(PROXIES, (paper, z, following, None, min(q.values()) / 2), strict=True))
        self.value = Fraction(rule["constant"]) if isinstance(rule, dict) else known[rule]
        self.bounded = not self.tail or (self.value is not None and self.value >= following)

    def slots(self, y: int | None) -> list[tuple[int, int, Any]]:
        spend(len(self.order))
        fills = [(FILL, v, self.score[v]) for v in self.order[len(self.leads) :] if v != y]
        if y is not None:
            fills = [(SAMPLED, y, self.score[y] if self.value is None else self.value), *fills]
        return ([(LEAD, v, self.score[v]) for v in self.leads] + fills)[: self.width]


class Models:  # the recorded rows and the parts of the method
    def __init__(self, inputs: dict[str, Any], target: dict[str, Any]) -> None:
        self.inputs, self.prefix, shape = inputs, tuple(inputs["prefix"]), inputs["shape"]
        self.width, self.depth, self.budget = shape["width"], shape["depth"], shape["budget"]
        self.m, self.verify = inputs["method"]["m"], inputs["method"]["verify"]
        self.exact, self.draft = inputs["arithmetic"] == "rational", inputs["rows"]["draft"]
        self.target = {key: self.law(row, f"target at {key}") for key, row in target.items()}
        laws = [row.values() if isinstance(row, dict) else [row] for row in self.draft.values()]
        drafted = {len(self.law(row, "draft")) for both in laws for row in both}
        self.size, ids = max(map(len, self.target.values()), default=0), inputs["rows"]["ids"]
        self.ids = list(range(self.size)) if ids is None else ids
        fair = {len(row) for row in self.target.values()} == {self.size}
        fair = fair and drafted <= {len(self.ids)} and len(set(self.ids)) == len(self.ids)
        if not fair or max([*self.ids, *self.prefix, 0]) >= self.size:
            raise Wrong("rows, ids or prefix: of different lengths, or no tokens of the target")
        self.pools, self.made = dict[Tokens, Pool](), dict[Any, list[Any]]()

    def law(self, row: list[Any], where: str) -> list[Any]:
        values = [Fraction(x) for x in row]
        slack = len(row) * EPSILON[self.inputs["arithmetic"]]
        if not row or min(values) < 0 or abs(total(values) - 1) > slack:
            raise Wrong(f"rows: {shown(where)} is not a law")
        return norm(values)

    def p(self, context: Tokens, rows: dict[str, Any] | None = None) -> Any:
        key, rows = ",".join(map(str, context)), self.target if rows is None else rows
        need(key in rows, "rows", key, "a target and a draft row at every prefix that is read")
        return rows[key]

    def pool(self, context: Tokens) -> Pool:
        if context not in self.pools:
            row, rule = self.p(context, self.draft), self.inputs["method"]["proxy"]
            self.pools[context] = Pool(row, self.m, self.width, rule, self.ids)
        return self.pools[context]

    def children(self, node: Node, pool: Pool, y: int | None) -> list[Any]:
        """The children of one node: what is the same of them in every tree that holds it."""
        score, context, path = node[4:]
        if (context, path, y) not in self.made:
            self.made[context, path, y] = made = []
            for slot, (kind, v, q) in enumerate(pool.slots(y)):
                here = paid(score[1] * q)  # its float first: rounding never turns an order round
                made.append((slot, kind, v, (float(here), here), (*context, v), (*path, slot)))
        return self.made[context, path, y]


def layered(models: Models, drawn: dict[Tokens, int], pick: int, seen: dict[Tokens, Pool]) -> Tree:
    """Expand K parents a level, D levels, keep the R best; Y is drawn[path], or picked."""
    nodes: list[Node] = [(-1, -1, -1, -1, (-1.0, Fraction(-1)), models.prefix, ())]
    frontier = [0]
    for _ in range(models.depth):
        first = len(nodes)
        for parent in frontier:
            context, path = nodes[parent][5:]
            pool, y = models.pool(context), None
            if pool.tail:
                seen.setdefault(path, pool)
                y = drawn[path] if path in drawn else pool.fillings[pick]
            nodes += [(parent, *child) for child in models.children(nodes[parent], pool, y)]
        spend(2 * (len(nodes) - first) + 4)
        level = range(first, len(nodes))
        frontier = sorted(level, key=lambda n: nodes[n][4])[: models.width]
        if not frontier:
            break
    best = sorted(range(1, len(nodes)), key=lambda n: nodes[n][4])[: models.budget]
    place = {n: row for row, n in enumerate([0, *best], -1)}
    return tuple((place[nodes[n][0]], *nodes[n][1:]) for n in best)


def classes(models: Models, every: bool) -> list[tuple[Tree, Any]]:
    """Each class and its probability, on every draw (where a proxy breaks Lemma 4's bound)
    or on those that the kept tree holds; the rest, filled in two ways, must give the same tree."""
    merged, waiting = dict[Any, Any](), [(dict[Tokens, int](), Fraction(1))]
    while waiting:
        (drawn, weight), seen = waiting.pop(), dict[Tokens, Pool]()
        tree = layered(models, drawn, 0, seen)
        if not every and not all(pool.bounded for pool in seen.values()):
            return classes(models, every=True)
        held = {n[6][:-1] for n in tree if n[2] == SAMPLED}
        new = next((path for path in seen if path not in drawn and (every or path in held)), None)
        if new is not None:
            spend(len(seen[new].tail) * (len(drawn) + len(waiting) // 1_000 + 1))
            waiting += [({**drawn, new: y}, paid(weight * x)) for y, x in seen[new].tail.items()]
        elif not every and layered(models, drawn, 1, {}) != tree:
            raise Wrong("classes: a kept tree depends on a draw that it does not hold")
        else:
            key = tuple(n[:4] for n in tree)
            merged[key] = tree, paid(merged[key][1] + weight if key in merged else weight)
    return list(merged.values())


def verified(models: Models, context: Tokens, offered: Tokens, y: int | None) -> list[Any]:
    """(token, index of the accepted candidate or -1, probability) of a known rule at one parent."""
    key = "rule", context, offered, y
    if key not in models.made:
        found, left, r = list[Any](), Fraction(1), models.p(context)
        first = models.verify == "algorithm_1"
        for i in sorted(range(len(offered)), key=lambda i: first and i != y):
            spend(len(r))
            share = r[offered[i]]
            after = norm([Fraction(0) if v == offered[i] else x for v, x in enumerate(r)])
            if i == y:
                tail = models.pool(context).tail
                share = min(Fraction(1), paid(share / tail[offered[i]]))
                after = norm([max(Fraction(0), x - tail.get(v, 0)) for v, x in enumerate(r)])
            found.append((offered[i], i, paid(left * share)))
            left, r = paid(left * (1 - share)), after or r
        found += [(v, -1, paid(left * x)) for v, x in enumerate(r)]
        models.made[key] = [each for each in found if each[2]]
    return models.made[key]


def emitted_law(models: Models, found: list[tuple[Tree, Any]]) -> dict[Tokens, Any]:
    """The law of one cycle's tokens: a known rule on every class."""
    law: dict[Tokens, Any] = {}
    for tree, probability in found:
        below, waiting = dict[int, list[int]](), [(-1, Tokens(), probability)]
        for n in sorted(range(len(tree)), key=lambda n: tree[n][1]):
            below.setdefault(tree[n][0], []).append(n)
        while waiting:
            node, tokens, mass = waiting.pop()
            order = below.get(node, [])
            kinds = [tree[n][2] for n in order] if models.verify != "vanilla" else []
            y = kinds.index(SAMPLED) if SAMPLED in kinds else None
            offered = tuple(tree[n][3] for n in order)
            for token, child, share in verified(models, models.prefix + tokens, offered, y):
                longer, reached = (*tokens, token), paid(mass * share)
                if child == -1:
                    law[longer] = paid(law.get(longer, 0) + reached)
                else:
                    waiting.append((order[child], longer, reached))
    return law


def compare(models: Models, emitted: dict[Tokens, Any], above: Any = 0) -> tuple[Any, Any]:
    """Total variation from the target over L tokens, and the first text that is off by more."""
    distance, wrong, depth, length = Fraction(0), None, 0, models.inputs["length"]
    level: dict[Tokens, Any] = {(): (Fraction(0), Fraction(1), emitted)}
    while level and depth < length:
        depth, last, level = depth + 1, level, {}
        for tokens, (carried, due, below) in last.items():
            groups: dict[int, dict[Tokens, Any]] = {}
            for s, mass in below.items():
                groups.setdefault(s[depth - 1], {})[s] = mass
            for token, p in enumerate(models.p(models.prefix + tokens)):
                sequence, here = (*tokens, token), groups.get(token, {})
                ended = paid(carried * p + here.pop(sequence, 0))
                got, right = paid(ended + total(here.values())), paid(due * p)
                if abs(got - right) > above and wrong is None:
                    wrong = {"sequence": list(sequence), "got": number(got), "right": number(right)}
                if here and depth < length:
                    level[sequence] = (ended, right, here)
                else:
                    distance = paid(distance + abs(got - right) / 2)
    return distance, wrong


def fits(models: Models, tree: Tree, mass: Any) -> bool:
    """The class has the product probability, and RRSw sees every lead where it sees Y."""
    product = Fraction(1)
    for n in (n for n in tree if n[2] == SAMPLED):
        pool, leads = models.pool(n[5][:-1]), sum(c[0] == n[0] and c[2] == LEAD for c in tree)
        product = paid(product * pool.tail[n[3]])
        if models.verify == "rrsw" and leads < len(pool.leads):
            return False
    return bool(mass == product)


def coherent(inputs: dict[str, Any], recorded: dict[str, Any]) -> bool:
    """Whether the parts of a document agree with one another."""
    method, eps = inputs["method"], EPSILON[inputs["arithmetic"]]
    rule, identity, m = method["proxy"], method["identity"], method["m"]
    names = [name for name in ("proxy", "verify") if method[name] is not None]
    known = [name for name in ("proxy", "verify") if name in identity and identity[name]["known"]]
    constant = Fraction(rule["constant"]) if isinstance(rule, dict) else 0
    words = {None: "undecided", True: "lossless" + " up to rounding" * (eps > 0), False: "lossy"}
    tree = m is not None and m <= inputs["shape"]["width"] and method["construction"] is not None
    none = m is method["construction"] is recorded["classes"] is None and not names
    size = len(next(iter(inputs["rows"]["target"].values())))
    least = max(8 * eps, min(64 * eps * size, Fraction(1, 10**5)))
    most = str(inputs["length"] * min(Fraction(1, 100), least)) if eps else None
    right = most == inputs["rounding_most"] and (inputs["rounding_bound"] is None) == (most is None)
    right = right and recorded["verdict"] == words[recorded["lossless"]]
    return right and (tree or none) and names == known and 0 <= constant <= 1


def derive(inputs: dict[str, Any], recorded: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Every derived figure, and what had to be taken as recorded."""
    if not coherent(inputs, recorded):
        raise Wrong("method, identity, rounding_bound or verdict: they contradict one another")
    models, answer, taken = Models(inputs, inputs["rows"]["target"]), dict(recorded), list[str]()
    losing = inputs["losing_target"] and Models(inputs, inputs["losing_target"])
    emitted = {tuple(map(int, s.split(","))): Fraction(x) for s, x in recorded["emitted"].items()}
    fair = all(len(s) <= models.depth + 1 and max(s) < models.size for s in emitted)
    if total(emitted.values()) != 1 or min(emitted.values()) < 0 or not fair:
        raise Wrong("emitted: is not a law of what a cycle can emit")
    if not models.exact:
        taken.append(f"what the {inputs['arithmetic']} run emits, its classes, its bound")
    found, exact = None, emitted
    if inputs["method"]["proxy"] is not None:
        found = classes(models, every=False)
        lines = sorted(json.dumps([[n[:4] for n in t], str(mass)]) for t, mass in found)
        digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
        if models.exact:
            answer["classes"] = {"count": len(found), "digest": digest}
    grown = inputs["method"]["construction"] == "grown"
    if grown and not all(pool.bounded for pool in models.pools.values()):
        raise Wrong("construction: no tree grows by a proxy below Lemma 4's bound")
    if found is None or models.verify is None:
        taken.append("what a rule not known here emits" + ", its trees" * (found is None))
        answer["every_target"] = answer["every_target"] and None  # never proved for a user's rule
    else:
        exact = emitted_law(models, found)
        proved = all(fits(models, tree, mass) for tree, mass in found)
        lost = compare(losing, emitted_law(losing, found))[1] if losing and not proved else None
        answer["every_target"] = True if proved else False if lost else None
        answer["every_target_counterexample"] = lost
    emitted = exact if models.exact else emitted
    (distance, wrong), (exactly, first) = (compare(models, law) for law in (emitted, exact))
    bound, most = (Fraction(inputs[name] or 0) for name in ("rounding_bound", "rounding_most"))
    lossless = exactly == 0 and distance <= most and (distance <= bound <= most or None)
    wrong = (distance > most and compare(models, emitted, most / models.size)[1]) or wrong
    depths = [total(x for s, x in emitted.items() if len(s) > d) for d in range(models.depth + 1)]
    answer["emitted"] = {",".join(map(str, s)): str(x) for s, x in emitted.items()}
    answer["acceptance_length"] = number(total(depths))
    answer["acceptance_by_depth"] = [number(x) for x in depths]
    if inputs["cycles"] > 1:
        taken.append("what the cycles after the first emit, and the first verdict")
        lossless = recorded["lossless"]
    else:
        right = "lossless" if models.exact else "lossless up to rounding"
        word = {None: "undecided", False: "lossy", True: right}[lossless]
        answer |= {"total_variation": number(distance), "lossless": lossless, "verdict": word}
        answer["counterexample"] = first or wrong if lossless is False else None
    if lossless is False or not inputs["second"]:
        answer["every_target"] = False if inputs["second"] else None
        answer["every_target_counterexample"] = None
    if inputs["losing_target"] is not None and answer["every_target_counterexample"] is None:
        raise Wrong("losing_target: it shows nothing")
    return answer, taken


def canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def held(result: dict[str, Any]) -> tuple[list[str], list[str]]:
    """What was recomputed and what was taken as recorded, in words; raises unless all holds."""
    document = result["certificate"]
    fit(document, "document", "")
    body = canonical({**document, "sha256": ""})
    if hashlib.sha256(body.encode()).hexdigest() != document["sha256"]:
        raise Wrong("sha256: the document was altered after it was signed")
    inputs, recorded, method = document["inputs"], document["derived"], document["inputs"]["method"]
    derived, taken = derive(inputs, recorded)
    cycles = "one cycle" if inputs["cycles"] == 1 else f"{inputs['cycles']} cycles"
    scope = f"scope: {'every target at this q' if derived['every_target'] else 'these rows'}; "
    scope += f"first {inputs['length']} tokens after prefix {tuple(inputs['prefix'])}, {cycles} "
    scope += "continued from the target, ends not compared; ideal coins; "
    scope += f"up to {inputs['arithmetic']} rounding" if inputs["rounding_bound"] else "exact"
    beside = {**derived, "claim": method["claim"], "certificate": document, "scope": scope}
    beside["classes"] = derived["classes"] and derived["classes"]["count"]
    for figures, right in ((recorded, derived), (result, beside)):
        for name, value in figures.items():
            if name in LABELS:
                fit(value, LABELS[name], name)
            elif canonical(value) != canonical(right.get(name)):
                said = f"recorded {shown(value)}, recomputed {shown(right.get(name))}"
                raise Wrong(f"{name}: {said}")
    name, known, once = method["name"], method["verify"] and method["proxy"], inputs["cycles"] == 1
    if result.get("method", name) not in (name, f"{name} m={method['m']}"):
        raise Wrong("method: the name beside the certificate is another than in it")
    rule = f"m = {method['m']}, proxy {method['proxy']}, {method['verify']}"
    sizes = ", ".join(f"{name} {each}" for name, each in inputs["shape"].items())
    sure = [rule if known else "a rule not known here", sizes]
    first = f"{derived['verdict']} over {inputs['length']} tokens on these rows, {cycles}"
    (sure if once else taken).append(f"{first}, TV {derived['total_variation']['float']:.6g}")
    every = {True: "proved", False: "refuted", None: "undecided"}[derived["every_target"]]
    every = f"every target: {every if inputs['second'] else 'not asked'}"
    (sure if known and once else taken).append(every)
    sure.append(f"tau {derived['acceptance_length']['float']:.6g}")
    labels = document["versions"] | {key: each["is"] for key, each in method["identity"].items()}
    labels |= {"name": name, "claim": method["claim"], "construction": method["construction"]}
    labels |= {name: result[name] for name in LABELS if name in result and name != "method"}
    return sure, [*taken, ", ".join(f"{key} {shown(each, 300)}" for key, each in labels.items())]


def check(document: Any) -> list[str]:
    """What had to be taken as recorded of one certificate; nothing if all was recomputed."""
    PURSE[0] = WORK
    return held({"certificate": document})[1][:-1]


def main(path: str) -> int:
    PURSE[0] = WORK
    code, before = 0, sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)  # exact numbers have thousands of digits; their length is bounded
    try:
        with Path(path).open("rb") as file:
            raw = file.read(MOST_BYTES + 1)
        entries = sum(raw.count(mark) for mark in (b"{", b"[", b",", b":"))
        good = len(raw) <= MOST_BYTES and entries <= MOST_ENTRIES
        need(good, "file", entries, f"at most {MOST_BYTES} bytes and {MOST_ENTRIES} entries")
        whole: Any = lambda digits: int(digits[:20])  # noqa: E731 (no kind has so many digits)
        document = json.loads(raw.decode("utf-8"), object_pairs_hook=once, parse_int=whole)
        several = isinstance(document, dict) and "results" in document
        fit(document, "file", "") if several else None
        for result in document["results"] if several else [{"certificate": document}]:
            sure, taken = held(result)
            code = 3 if len(taken) > 1 else code
            print(f"holds: {'; '.join(sure)}\n  as recorded, not checked: {'; '.join(taken)}")
        need(not several or document["results"], "results", "none", "a certificate at least")
    except Wrong as error:
        code = 1
        print(f"REJECTED: {shown(path, 500)}: {shown(str(error), 500)}")
    except (OSError, ValueError, LookupError, TypeError, ArithmeticError, RuntimeError) as error:
        named = str(error) if type(error) is ValueError else f"{type(error).__name__}: {error}"
        code, got = 2, getattr(error, "strerror", None) or named
        said = f"{shown(path, 500)}: got {shown(str(got), 300)}; not a certificate"
        sys.stderr.write(f"error: {said} (rheo-exact certify --save FILE writes them)\n")
    finally:
        sys.set_int_max_str_digits(before)
    return code


if __name__ == "__main__":
    usage = "usage: check.py FILE\n"
    sys.exit(main(sys.argv[1]) if len(sys.argv) == 2 else sys.stderr.write(usage) and 2)
