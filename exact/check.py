"""Re-check a certificate without trusting the code that made it.

Standard library only, and written apart from the rest: `python -I check.py FILE` recomputes every derived figure from
the recorded inputs and compares. Exit 0: all hold. 1: one does not (it is named). 2: not a certificate. 3: what could
be recomputed holds, but a rule not known here or a float run had to be taken as recorded (it says which).
"""

import hashlib
import json
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

SCHEMA = "rheo-certificate/2"
LEAD, SAMPLED, FILL = 0, 1, 2
Tokens = tuple[int, ...]
Node = tuple[int, int, int, int, Any, Tokens, Tokens]  # parent row (-1 root), slot, kind, token, score, context, path
Tree = tuple[Node, ...]  # in rank order


class Wrong(Exception):
    """A figure that does not hold."""


def norm(row: list[Any]) -> list[Any]:
    mass = sum(row)
    return [x / mass for x in row] if mass > 0 else []


def number(value: Any) -> dict[str, Any]:
    return {"exact": str(Fraction(value)), "float": float(value)}


class Pool:  # the candidate pool at one context, in target ids
    def __init__(self, row: Any, m: int, width: int, rule: Any, ids: list[int]) -> None:
        score, sampling = (row["score"], row["sampling"]) if isinstance(row, dict) else (row, row)
        self.score = dict(zip(ids, norm([Fraction(x) for x in score]), strict=True))
        self.order = sorted(self.score, key=lambda v: -self.score[v])
        self.leads, self.width, self.rule = self.order[: min(m, width)], width, rule
        off_lead = norm([0 if v in self.leads else Fraction(x) for v, x in zip(ids, sampling, strict=True)])
        self.tail = {v: x for v, x in zip(ids, off_lead, strict=False) if x and m < width}
        self.bounded = rule != "q(Y)" and all(self.proxy(y) >= self.score[self.order[m]] for y in self.tail)

    def proxy(self, y: int) -> Any:
        score, order, m = self.score, self.order, len(self.leads)
        z, best, least = sum(score[v] for v in order[m:]), score[order[0]], min(score.values()) / 2
        paper = min(score[order[m - 1]], z) if m else best
        rules = {"min{q(x_m), z}": paper, "z": z, "q(x_{m+1})": score[order[m]], "q(Y)": score[y], "min(q)/2": least}
        return Fraction(self.rule["constant"]) if isinstance(self.rule, dict) else rules[self.rule]

    def slots(self, y: int | None) -> list[tuple[int, int, Any]]:
        middle = [] if y is None else [(SAMPLED, y, self.proxy(y))]
        fills = [(FILL, v, self.score[v]) for v in self.order[len(self.leads) :] if v != y]
        return ([(LEAD, v, self.score[v]) for v in self.leads] + middle + fills)[: self.width]


class Models:  # the recorded rows and the parts of the method
    def __init__(self, inputs: dict[str, Any], target: dict[str, Any]) -> None:
        self.inputs, self.target, self.prefix = inputs, target, tuple(inputs["prefix"])
        self.width, self.depth, self.budget = (inputs["shape"][name] for name in ("width", "depth", "budget"))
        self.m, self.proxy, self.verify = (inputs["method"][name] for name in ("m", "proxy", "verify"))
        self.exact, self.pools = inputs["arithmetic"] == "rational", dict[Tokens, Pool]()

    def p(self, context: Tokens) -> list[Any]:
        row = [Fraction(x) for x in self.target[",".join(map(str, context))]]
        if min(row) < 0 or (self.exact and sum(row) != 1):
            raise Wrong(f"rows: the target at {context} is not a law")
        return norm(row)

    def pool(self, context: Tokens) -> Pool:
        if context not in self.pools:
            ids = self.inputs["rows"]["ids"] or list(range(len(self.p(context))))
            row = self.inputs["rows"]["draft"][",".join(map(str, context))]
            self.pools[context] = Pool(row, self.m, self.width, self.proxy, ids)
        return self.pools[context]


def layered(models: Models, drawn: dict[Tokens, int], pick: Any, seen: dict[Tokens, Pool]) -> Tree:
    """Expand K parents a level, D levels, keep the R best. Y is drawn[path], or else picked from its tail law."""
    nodes: list[Node] = [(-1, -1, -1, -1, Fraction(1), models.prefix, ())]
    frontier = [0]
    for _ in range(models.depth):
        level = []
        for parent in frontier:
            score, context, path = nodes[parent][4:]
            pool, y = models.pool(context), None
            if pool.tail:
                seen.setdefault(path, pool)
                y = drawn[path] if path in drawn else pick(pool.tail, key=pool.tail.__getitem__)
            for slot, (kind, v, q) in enumerate(pool.slots(y)):
                level.append(len(nodes))
                nodes.append((parent, slot, kind, v, score * q, (*context, v), (*path, slot)))
        frontier = sorted(level, key=lambda n: -nodes[n][4])[: models.width]
    kept = [0, *sorted(range(1, len(nodes)), key=lambda n: -nodes[n][4])[: models.budget]]
    return tuple((kept.index(nodes[n][0]) - 1, *nodes[n][1:]) for n in kept[1:])


def classes(models: Models, every: bool) -> dict[Tree, Any]:
    """Each class and its probability, branching on every draw (needed where a proxy breaks Lemma 4's bound) or on those
    that the kept tree holds; the rest, filled with their most and least probable tokens, must give the same tree."""
    merged, waiting = dict[Tree, Any](), list[tuple[dict[Tokens, int], Any]]([({}, Fraction(1))])
    while waiting:
        (drawn, weight), seen = waiting.pop(), dict[Tokens, Pool]()
        tree = layered(models, drawn, max, seen)
        if not every and not all(pool.bounded for pool in seen.values()):
            return classes(models, every=True)
        held = {n[6][:-1] for n in tree if n[2] == SAMPLED}
        new = next((path for path in seen if path not in drawn and (every or path in held)), None)
        if new is not None:
            waiting += [({**drawn, new: y}, weight * x) for y, x in seen[new].tail.items()]
        elif not every and layered(models, drawn, min, {}) != tree:
            raise Wrong("classes: a kept tree depends on a draw that it does not hold")
        else:
            merged[tree] = merged.get(tree, 0) + weight
    return merged


def emitted_law(models: Models, found: dict[Tree, Any]) -> dict[Tokens, Any]:
    """The law of one cycle's tokens: a built-in verifier on every class."""
    law: dict[Tokens, Any] = {}
    waiting: list[tuple[Tree, int, Tokens, Any]] = [(tree, -1, (), mass) for tree, mass in found.items()]
    while waiting:
        tree, node, tokens, mass = waiting.pop()
        order = sorted((row for row, n in enumerate(tree) if n[0] == node), key=lambda row: tree[row][1])
        y = next((row for row in order if tree[row][2] == SAMPLED and models.verify != "vanilla"), None)
        r = models.p(models.prefix + tokens)
        for row in sorted(order, key=lambda row: models.verify == "algorithm_1" and row != y):
            token = tree[row][3]
            share, after = r[token], norm([Fraction(0) if v == token else x for v, x in enumerate(r)])
            if row == y:
                tail = models.pool(models.prefix + tokens).tail
                share = min(Fraction(1), share / tail[token])
                after = norm([max(Fraction(0), x - tail.get(v, 0)) for v, x in enumerate(r)])
            waiting += [(tree, row, (*tokens, token), mass * share)] if mass * share else []
            mass, r = mass * (1 - share), after or r
        law.update({(*tokens, v): law.get((*tokens, v), 0) + mass * x for v, x in enumerate(r) if mass * x})
    return law


def compare(models: Models, emitted: dict[Tokens, Any]) -> tuple[Any, Any]:
    """Total variation from the target over L tokens, and the first of the shortest wrong sequences."""
    distance, wrong, length = Fraction(0), None, models.inputs["length"]
    level: dict[Tokens, Any] = {(): (Fraction(0), Fraction(1), emitted)}
    for depth in range(1, length + 1):
        last, level = level, dict[Tokens, Any]()
        for tokens, (carried, due, below) in last.items():
            for token, p in enumerate(models.p(models.prefix + tokens)):
                sequence = (*tokens, token)
                here = {s: mass for s, mass in below.items() if s[:depth] == sequence}
                ended = carried * p + here.pop(sequence, 0)
                got, right = ended + sum(here.values()), due * p
                if got != right and wrong is None:
                    wrong = {"sequence": list(sequence), "got": number(got), "right": number(right)}
                if here and depth < length:
                    level[sequence] = (ended, right, here)
                else:
                    distance += abs(got - right) / 2
    return distance, wrong


def fits(models: Models, tree: Tree, mass: Any) -> bool:
    """The class has the product probability, and RRSw sees every lead wherever it sees the sampled node."""
    for n in (n for n in tree if n[2] == SAMPLED):
        pool, leads = models.pool(n[5][:-1]), sum(c[0] == n[0] and c[2] == LEAD for c in tree)
        mass /= pool.tail[n[3]]
        if models.verify == "rrsw" and leads < len(pool.leads):
            return False
    return bool(mass == 1)


def derive(inputs: dict[str, Any], recorded: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Every derived figure, and what had to be taken as recorded."""
    models, witness = Models(inputs, inputs["rows"]["target"]), inputs["losing_target"]
    taken = [f"law and classes of the {inputs['arithmetic']} run"] * (not models.exact)
    answer = {name: recorded[name] for name in ("classes", "every_target", "every_target_counterexample")}
    emitted = exact = {tuple(map(int, s.split(","))): Fraction(x) for s, x in recorded["emitted"].items()}
    found = None if models.proxy is None else classes(models, every=False)
    if found and models.exact:
        lines = sorted(json.dumps([[n[:4] for n in tree], str(mass)]) for tree, mass in found.items())
        answer["classes"] = {"count": len(found), "digest": hashlib.sha256("\n".join(lines).encode()).hexdigest()}
    if found is None or models.verify is None:
        taken.append("what a rule not known here emits" + (", its trees" if found is None else ""))
        answer["every_target"] = answer["every_target"] and None  # True is never proved for a user's own rule
    else:
        exact = emitted_law(models, found)
        losing = Models(inputs, witness) if witness else models
        proved = all(fits(models, tree, mass) for tree, mass in found.items())
        shown = None if proved else compare(losing, emitted_law(losing, found))[1]
        answer |= {"every_target": proved or (False if shown else None), "every_target_counterexample": shown}
    emitted = exact if models.exact else emitted
    (distance, wrong), (exact_distance, exact_wrong) = compare(models, emitted), compare(models, exact)
    lossless = exact_distance == 0 and (models.exact or distance <= Fraction(inputs["rounding_bound"]))
    if not lossless or not inputs["second"]:
        answer |= {"every_target": False if inputs["second"] else None, "every_target_counterexample": None}
    depths = [sum(x for s, x in emitted.items() if len(s) > d) for d in range(models.depth + 1)]
    names = ("total_variation", "lossless", "verdict", "counterexample", "every_target") if inputs["cycles"] > 1 else ()
    taken += ["what the cycles after the first emit, and the first verdict"] if names else []
    answer |= {
        "emitted": {",".join(map(str, s)): str(Fraction(x)) for s, x in sorted(emitted.items())},
        "total_variation": number(distance),
        "lossless": lossless,
        "verdict": ("lossless" if models.exact else "lossless up to rounding") if lossless else "lossy",
        "counterexample": None if lossless else exact_wrong or wrong,
        "acceptance_length": number(sum(depths)),
        "acceptance_by_depth": [number(x) for x in depths],
    }
    return answer | {name: recorded[name] for name in names}, taken


def check(document: Any) -> list[str]:
    """What had to be taken as recorded; raises `Wrong` unless the rest holds."""
    recorded = document["derived"]
    if document["schema"] != SCHEMA or min(document["inputs"][name] for name in ("length", "cycles")) < 1:
        raise ValueError(f"expected schema {SCHEMA!r} and at least one token and one cycle")
    body = json.dumps({**document, "sha256": ""}, sort_keys=True, separators=(",", ":"))
    if hashlib.sha256(body.encode()).hexdigest() != document["sha256"]:
        raise Wrong("sha256: the document was altered after it was signed")
    derived, taken = derive(document["inputs"], recorded)
    for name in (name for name in sorted(derived | recorded) if derived.get(name) != recorded.get(name)):
        raise Wrong(f"{name}: recorded {recorded.get(name)}, recomputed {derived.get(name)}"[:400])
    return taken


def main(path: str) -> int:
    code = 0
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
        for result in document.get("results") or [{"certificate": document}]:
            derived, method = result["certificate"]["derived"], result["certificate"]["inputs"]["method"]
            taken = check(result["certificate"])
            said = f"taken as recorded: {'; '.join(taken)}" if taken else "every derived figure recomputed"
            beside = {**derived, "classes": (derived["classes"] or {}).get("count"), "claim": method["claim"]}
            if any(result.get(name, x) != x for name, x in beside.items()):
                raise Wrong("a figure that stands beside its certificate differs from it")
            code = 3 if taken else code
            print(f"holds: {method['name']} m={method['m']}, {result.get('rows', '')}: {derived['verdict']}; {said}")
    except Wrong as error:
        code = 1
        print(f"REJECTED: {path}: {error}")
    except (OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        code, got = 2, getattr(error, "strerror", None) or f"{type(error).__name__}: {error}"
        sys.stderr.write(f"error: {path}: got {got}; not a certificate (rheo-exact certify --save FILE writes them)\n")
    return code


if __name__ == "__main__":
    sys.set_int_max_str_digits(0)  # exact numbers have thousands of digits
    sys.exit(main(sys.argv[1]) if len(sys.argv) == 2 else sys.stderr.write("usage: check.py FILE\n") and 2)
