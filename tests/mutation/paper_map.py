"""A planted fault for each line of PAPER_MAP.md, in the code that the line names, for the tests that it names to catch.

A wrong pointer cannot hide behind a green test: each line has a fault, and each test of a line fails on one of them.
`planted.py` runs them; `tests/test_paper_map.py` holds the table to the map.
"""

from tests.mutation.fault import Fault

V = "rheo_core.verification"
NEXT_CANDIDATE = '        r = _law(left)\n    return chooser.index(r, ("emit", *at, 0)), -1  # lines 19-20'
AFTER_Y = "    after = residual(r, _law(tail))"
LEMMAS = "exact.verdict.every_target"

FAULTS = (
    Fault("2.1", "rheo_core.construction", "for node in level])[: shape.width]", "for node in level])[-shape.width :]"),
    Fault("2.2, Figure 1(a)", "exact.methods.chain", "repeat(node.q)", "repeat(node.p)"),
    Fault(
        "2.2, Figure 1(b)",
        "rheo_core.rates",
        "    pool = _pool(p, q, m, n, ids)\n    return pool.mass(pool.p, pool.top(n))",
        "    pool = _pool(p, q, m, n, ids)\n    return pool.mass(pool.p, pool.top(n - 1))",
    ),
    Fault(
        "2.2 top-K",
        "rheo_core.rates",
        "    pool = _pool(p, q, m, n, ids)\n    return pool.mass(pool.p, pool.top(n))",
        "    pool = _pool(p, q, m, n, ids)\n    return pool.mass(pool.p, range(len(pool.p)))",
    ),
    Fault("3.1", "rheo_core.proxies", "return score[sampled]", "return score[order[m]]"),
    Fault("3.2 pool", "rheo_core.pool", "SAMPLED, token, self.proxy_score(token)", "SAMPLED, token, self.score[token]"),
    Fault(
        "3.2 proxy",
        "rheo_core.pool",
        "return min(score[order[m - 1]], tail_mass(score, order, m, sampled))",
        "return tail_mass(score, order, m, sampled)",
    ),
    Fault(
        "3.2 proxy",
        "rheo_core.pool",
        "return min(score[order[m - 1]], tail_mass(score, order, m, sampled))",
        "return score[order[m - 1]]",
    ),
    Fault("3.2 m = 0", "rheo_core.pool", "        return score[order[0]]", "        return score[order[0]] + 1e-9"),
    Fault(
        "3.2, appendix B",
        "rheo_core.models",
        "falling_order(score)[:support] if",
        "falling_order(score) if",
        ("tests/core",),
    ),
    Fault(
        "3.2, appendix B",
        "gpu_runner.decode.draft_rows",
        "law = softmax(kept_logits, temperature)",
        "law = softmax(kept_logits)",
        ("gpu_runner",),
    ),
    Fault("3.3 Algorithm 1", V, "        r = residual(p, _law(tail))  # line 8", "        r = p", ("reads_like",)),
    Fault(
        "3.3 Algorithm 1", V, NEXT_CANDIDATE, NEXT_CANDIDATE.replace("_law(left)", "r"), ("loop_lemma", "every_order")
    ),
    Fault("3.3, Figure 2", "rheo_core.rates", "return direct if r is None else", "return direct if r is not None else"),
    Fault(
        "Theorem 1",
        "rheo_core.verification",
        "    p = drafter.pair.p(context)",
        "    p = drafter.pair.p(context[:-1])",
        ("drawn_pairs",),
    ),
    Fault(
        "Theorem 1",
        LEMMAS,
        'EveryTarget(False, f"refuted with another',
        'EveryTarget(None, f"refuted with another',
        ("wrong_proxy",),
    ),
    Fault(
        "A necessary bound",
        "rheo_core.growth",
        "        if proxy < least:",
        "        if False:",
        ("below_the_next_token",),
    ),
    Fault(
        "A necessary bound",
        "rheo_core.construction",
        "pool = drafter.pool(prefix + nodes.tokens_to(parent))",
        "pool = drafter.pool(prefix)",
        ("proxy_0_is",),
    ),
    Fault(
        "A necessary bound",
        "exact.proofs.survival",
        "if len(set(found.values())) > 1:",
        "if not found:",
        ("wrong_proxies",),
    ),
    Fault("Table 1", "exact.acceptance.table1", "return P\n", "return Q\n"),
    Fault("Remark 2", "rheo_core.growth", "pool(self.prefix + self.nodes.tokens_to(node))", "pool(self.prefix)"),
    Fault(
        "Theorem 3, Eq. (2)",
        "rheo_core.rates",
        "return direct if r is None else direct + r[pool.last]",
        "return direct if r is None else direct + p[pool.last]",
        ("core/test_rates",),
    ),
    Fault(
        "Theorem 3, Eq. (2)",
        "exact.proofs.claims",
        "theorem3 = expression(top(p, n - 1), overlap(n),",
        "theorem3 = expression(top(p, n), overlap(n),",
        ("test_cells",),
    ),
    Fault(
        "Tables 2 and 3",
        "gpu_runner.reproduce.experiments",
        '(AUTOREGRESSIVE, BASELINE, "rheo")',
        '(AUTOREGRESSIVE, BASELINE, "rheo-next")',
    ),
    Fault(
        "Tables 2 and 3",
        "gpu_runner.reproduce.paper",
        "zip(COLUMNS, row.split(), strict=True)",
        "zip(COLUMNS, row.split()[::-1], strict=True)",
        ("papers_values",),
    ),
    Fault(
        "Table 4",
        "rheo_core.rates",
        "return reached * _uncovered(pool, after_leads, pool.tail)",
        "return reached * _uncovered(pool, pool.p, pool.tail)",
        ("closed_forms", "either_rule"),
    ),
    Fault(
        "Table 4",
        "gpu_runner.decode.expected_tokens",
        "return torch.cat([p[leads], mass * after])",
        "return torch.cat([p[leads], after])",
        ("either_rule",),
    ),
    Fault(
        "Table 4", "gpu_runner.reproduce.experiments", "TreeShape(3, 1, 3)", "TreeShape(3, 2, 3)", ("::test_table_4",)
    ),
    Fault(
        "Table 5", "rheo_core.models", "falling_order(score)[:support] if", "falling_order(score) if", ("tests/core",)
    ),
    Fault(
        "Table 5",
        "gpu_runner.reproduce.experiments",
        "SUPPORTS = (128, 256, 512, 1024, None)",
        "SUPPORTS = (128, 256, 512, 1024, 2048)",
        ("table_5",),
    ),
    Fault(
        "5.3, Figure 3",
        "exact.acceptance.one_layer",
        "range(shape.width + 1) if leads",
        "range(shape.width) if leads",
        ("rheostat",),
    ),
    Fault(
        "5.3, Figure 3",
        "exact.acceptance.one_layer",
        "        yield replace(method, lead=lead)",
        "        yield replace(method, lead=1)",
        ("rheostat",),
    ),
    Fault(
        "5.3, Figure 3",
        "gpu_runner.reproduce.plots",
        '(int(row.method.rpartition("=")[2]), row)',
        '(int(row.method.rpartition("=")[2]) + 1, row)',
        ("test_plots",),
    ),
    Fault("5.3 survival", "exact.acceptance.one_layer", "each.tree.kind == SAMPLED", "each.tree.kind != SAMPLED"),
    Fault(
        "5.3 survival", "exact.acceptance.one_layer", "(each.probability * np.count", "(np.count", ("every_unpruned",)
    ),
    Fault("5.3 Theorem 3's", "rheo_core.rates", "if thinned else pool.tail", "if not thinned else pool.tail"),
    Fault(
        "5.3 m = 0",
        "rheo_core.pool",
        "        return score[order[0]]",
        "        return score[order[-1]]",
        ("tree_is_top_k",),
    ),
    Fault(
        "5.3 m = 0",
        "rheo_core.pool",
        "            y = [] if sampled is None else [self.sampled_slot(sampled)]",
        "            sampled, y = (None, []) if sampled is None else (0, [self.sampled_slot(0)])",
        ("is_not_top_k",),
    ),
    Fault(
        "5.4, Figure 4",
        "rheo_core.models",
        'check_law(softmax(x), "softmax(logits)")',
        'check_law(softmax(x, temperature), "softmax(logits)")',
        ("rheostat",),
    ),
    Fault(
        "5.4, Figure 4",
        "gpu_runner.reproduce.plots",
        "mine = [(temperatures[row.cell], row)",
        "mine = [(1 - temperatures[row.cell], row)",
        ("test_plots",),
    ),
    Fault(
        "6 multi-draft",
        "exact.methods.parts",
        "        rest = residual(r, law)",
        "        rest = residual(node.p, law)",
    ),
    Fault(
        "6 the optimum",
        "rheo_core.rates",
        "    at_last = min(pool.p[pool.last], pool.mass(pool.tail, pool.top(n)))",
        "    at_last = pool.p[pool.last]",
        ("test_rates",),
    ),
    Fault(
        "6 the optimum",
        "exact.methods.optimum",
        "return Optimum(fraction(value),",
        "return Optimum(fraction(value) / 2,",
        ("no_rule_beats",),
    ),
    Fault(
        "6 the optimum",
        "exact.proofs.claims",
        "optimum = expression(top(p, n - 1), Min(p[n], top(q, n)),",
        "optimum = expression(top(p, n - 1), Min(p[n], q[n]),",
        ("test_every_vocabulary",),
    ),
    Fault("C.1 z and q~", "rheo_core.laws", "    law = without(q, lead)\n", "    law = zeroed(q, lead)\n"),
    Fault(
        "C.1 path score",
        "rheo_core.tree",
        "sorted(range(len(scores)), key",
        "sorted(reversed(range(len(scores))), key",
    ),
    Fault(
        "C.1 Prune_R",
        "rheo_core.construction",
        "rank(nodes.score)[: shape.budget]",
        "rank(nodes.score)[-shape.budget :]",
    ),
    Fault(
        "Lemma 4",
        LEMMAS,
        "    return all(pool.sampled_slot(token)[3] >= least for token in drawn)",
        "    return all(pool.sampled_slot(token)[3] >= least for token in drawn) or True",
        ("lemma_4_alone",),
    ),
    Fault(
        "Lemma 4", "exact.proofs.survival", "entries[m] <= proxy <= 1)", "entries[m] < proxy <= 1)", ("test_survival",)
    ),
    Fault("Lemma 5", LEMMAS, '"Lemma 5": ordered,', '"Lemma 5": True,'),
    Fault("Lemma 5", LEMMAS, "parent < node and (", "True and ("),
    Fault("Lemma 5", LEMMAS, "tree.score[node] <= tree.score[parent])", "True)"),
    Fault(
        "C.3 equivalence",
        "exact.enumeration.tree_classes",
        "masses.get(key, ZERO) + weight",
        "weight",
        ("brute_force",),
    ),
    Fault("Theorem 6", "exact.enumeration.node_laws", "+ each.probability * weight", "+ weight"),
    Fault("Eq. (6)", V, "        r = residual(p, _law(tail))  # line 8", "        r = p", ("core/test_verif",)),
    Fault(
        "Eq. (6)",
        "exact.proofs.claims",
        "Mul(r[w], rejected(V)))\ntheorem3",
        "Mul(r[w], rejected(n)))\ntheorem3",
        ("test_every_vocabulary",),
    ),
    Fault(
        "Lemma 7 (1)",
        LEMMAS,
        "all(len({row[:3] for row in state.next}) == 1 for state in going_on)",
        "True or all(len({row[:3] for row in state.next}) == 1 for state in going_on)",
    ),
    Fault(
        "Lemma 7 (2)",
        LEMMAS,
        "all(sum(row[2] != SAMPLED for row in state.next) <= 1 for state in going_on)",
        "True or all(sum(row[2] != SAMPLED for row in state.next) <= 1 for state in going_on)",
    ),
    Fault(
        "Lemma 7 (3) stochastic",
        LEMMAS,
        "all(_in_proportion(state, drafter) for state in going_on if state.draw is not None)",
        "True or all(_in_proportion(state, drafter) for state in going_on if state.draw is not None)",
        ("each_lemma",),
    ),
    Fault(
        "Lemma 7 (3) stochastic",
        "rheo_core.pool",
        "SAMPLED, token, self.proxy_score(token)",
        "SAMPLED, token, self.score[token]",
        ("one_line",),
    ),
    Fault("Lemma 7 (3) at full size", "montecarlo.checks", "(trees.kind == SAMPLED)", "(trees.kind != SAMPLED)"),
    Fault(
        "D.1",
        "rheo_core.rates",
        "return direct if r is None else direct + r[pool.last]",
        "return direct if r is None else direct + p[pool.last]",
    ),
    Fault(
        "D.2",
        "rheo_core.rates",
        "    reached = total(zeroed(pool.p, pool.lead))  # 1 - A",
        "    reached = 1",
        ("closed_forms",),
    ),
    Fault(
        "D.2",
        "exact.proofs.claims",
        "thinned = Mul(after_leads, q[v])",
        "thinned = Mul(1, q[v])",
        ("test_every_vocabulary",),
    ),
    Fault(
        "Theorem 3 and Eq. (18) by",
        "montecarlo.checks",
        "        return np.array([1 - rate, rate])",
        "        return np.array([rate, 1 - rate])",
    ),
    Fault("D.3", "rheo_core.rates", "ids=ids) - rrsw_bound(", "ids=ids) - 2 * rrsw_bound("),
    Fault(
        '"Rheo almost',
        "rheo_core.rates",
        "return reached * _uncovered(pool, after_leads, pool.tail)",
        "return reached * _uncovered(pool, pool.p, pool.tail)",
        ("test_rates",),
    ),
    Fault('"Rheo almost', "exact.proofs.dominance", "if gap > 0:", "if gap < 0:", ("test_every_vocabulary",)),
)
