"""What a CUDA machine is asked in one go: gpu tests, a random-weight Llama of 1B shape, the cost of drafting.

    python -m tests.gpu_runner.device.on_device --out on_device.json        # 6 minutes of measuring after the gpu tests
    python -m tests.gpu_runner.device.on_device --shape tiny --device cpu     # the script itself, anywhere

Random weights cost what trained ones do, so latencies are real; acceptance is not. Methods draft at the same contexts,
in turns whose order is shuffled, and overheads are paired differences to top-k. All of it plainly, and once more with
a level of the tree as one CUDA graph; that a graph cannot be made is said, and fails nothing. One JSON document, one
table.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from rich.table import Table
from transformers import LlamaConfig, LlamaForCausalLM

from exact.cli.options import out
from gpu_runner.certify.reference_diff import compare_cycle
from gpu_runner.decode.draws import Seeded
from gpu_runner.decode.engine import Engine, Session, now
from gpu_runner.decode.methods import find_method
from gpu_runner.measure.provenance import provenance
from gpu_runner.measure.statistics import Interval, interval
from gpu_runner.model.causal_lm import CausalModel, check_tree_attention
from gpu_runner.model.drafts.base import Draft
from gpu_runner.model.drafts.causal import CausalDraft
from gpu_runner.model.drafts.checkpoint import Checkpoint, EagleConfig
from gpu_runner.model.drafts.eagle3 import EagleDraft
from gpu_runner.model.load import find_device, find_dtype
from rheo_core import TreeShape

METHODS = ("top-k", "rheo:1", "rheo:0", "rheo-rrsw")
AIM = 0.016
"""The paper's drafting overhead of rheo over top-k: 13.1 against 12.9 ms (section 5)."""
WARM_UP = 3
COMPARED = 4
"""Contexts of which every method's cycle is run again by rheo_core, which takes longer than the device does."""


@dataclass(frozen=True)
class Size:
    """A Llama shape, the head that drafts for it, the tree, and how long a text is drafted from."""

    hidden: int
    ffn: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int
    draft_vocabulary: int
    tree: TreeShape
    prompt: int


SIZES = {
    "1b": Size(2048, 8192, 16, 32, 8, 64, 128_256, 32_000, TreeShape(10, 8, 59), 200),
    "tiny": Size(16, 24, 4, 2, 1, 8, 23, 17, TreeShape(3, 2, 5), 8),
}


@dataclass
class Timed:
    """One method with one draft: seconds of each context, identity with rheo_core."""

    draft: str
    method: str
    drafting: list[float] = field(default_factory=list)
    verifying: list[float] = field(default_factory=list)
    equal: int = 0
    cycles: int = 0
    difference: str | None = None
    backend: str | None = None


def random_target(size: Size, device: torch.device, dtype: torch.dtype) -> CausalModel:
    """A Llama with random weights, made on the device."""
    config = LlamaConfig(
        vocab_size=size.vocabulary,
        hidden_size=size.hidden,
        intermediate_size=size.ffn,
        num_hidden_layers=size.layers,
        num_attention_heads=size.heads,
        num_key_value_heads=size.kv_heads,
        head_dim=size.head_dim,
        max_position_embeddings=4096,
        tie_word_embeddings=False,
        pad_token_id=None,
        bos_token_id=None,
        eos_token_id=None,
    )
    torch.manual_seed(0)
    with device:
        model: Any = LlamaForCausalLM(config)
    return CausalModel(model.to(device=device, dtype=dtype), f"random Llama, {size.layers} layers of {size.hidden}")


def random_head(size: Size, target: CausalModel) -> EagleDraft:
    """An EAGLE-3 head of the target's width with random weights and a draft vocabulary spread over the target's."""
    config = EagleConfig(
        size.hidden, size.ffn, size.heads, size.kv_heads, size.head_dim, 1e-5, size.vocabulary, size.draft_vocabulary,
        size.hidden, 10_000.0, None, False, False,
    )  # fmt: skip
    generator = torch.Generator().manual_seed(1)
    tensors = {name: torch.randn(shape, generator=generator) * 0.02 for name, shape in config.shapes().items()}
    tensors |= {name: torch.ones_like(tensor) for name, tensor in tensors.items() if tensor.ndim == 1}
    ids = torch.arange(size.draft_vocabulary) * size.vocabulary // size.draft_vocabulary
    return EagleDraft(Checkpoint(config, tensors, ids, None), target, "random EAGLE-3 head")


def measured(
    target: CausalModel,
    draft: Draft,
    size: Size,
    methods: Sequence[str],
    cycles: int,
    until: float,
    backend: str | None = None,
) -> list[Timed]:
    """Identity and latencies of the methods on the contexts of one text; ends early at the clock `until`."""
    engines = {}
    for name in methods:
        rule = find_method(name, size.tree)
        assert rule.tree_method is not None
        engines[name] = Engine(target, draft, rule.tree_method, rule.shape, backend=backend)
    found = {name: Timed(draft.name, name, backend=backend) for name in methods}
    first = engines[methods[0]]
    session = first.start([token % size.vocabulary for token in range(7, 7 + size.prompt)])
    shuffled = random.Random(0)
    for number in range(WARM_UP + cycles):
        if time.monotonic() > until:
            break
        first.catch_up(session)
        for name in shuffled.sample(methods, len(methods)):
            drafting, verifying = timed_cycle(engines[name], session.copy(), number)
            if number >= WARM_UP:
                found[name].drafting.append(drafting)
                found[name].verifying.append(verifying)
            if number < COMPARED:
                compare(engines[name], session.copy(), number, found[name])
        first.cycle(session, Seeded(number))
    return list(found.values())


def timed_cycle(engine: Engine, session: Session, seed: int) -> tuple[float, float]:
    """Seconds of drafting (the tree on the host included) and of verification."""
    draws = Seeded(seed)
    began = now(engine.target.device)
    drafted = engine.draft_tree(session, draws)
    _ = drafted.tree
    middle = now(engine.target.device)
    engine.commit(session, drafted, engine.score(session, drafted), draws)
    return middle - began, now(engine.target.device) - middle


def compare(engine: Engine, session: Session, seed: int, found: Timed) -> None:
    """One more cycle run again by rheo_core."""
    result = compare_cycle(engine, session, seed)
    found.cycles += 1
    found.equal += result.difference is None
    found.difference = found.difference or result.difference


def overhead(found: Timed, base: Timed) -> Interval | None:
    """Drafting time over the base's, as a share of the base's mean: paired over contexts, 95 %."""
    if found is base or not base.drafting:
        return None
    mean = statistics.fmean(base.drafting)
    return interval([(a - b) / mean for a, b in zip(found.drafting, base.drafting, strict=True)])


def gpu_tests() -> dict[str, Any]:
    """The tests marked gpu, in a process of their own."""
    began = time.monotonic()
    run = [sys.executable, "-m", "pytest", "-q", "-m", "gpu", "-p", "no:cacheprovider", str(Path(__file__).parent)]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    tail = done.stdout.strip().splitlines()[-12:]
    return {"exit_code": done.returncode, "seconds": time.monotonic() - began, "tail": tail}


def rows(found: Sequence[Timed]) -> Iterator[dict[str, Any]]:
    """One JSON-ready row a method: medians in milliseconds, overhead over top-k, identity."""
    for each in found:
        base = next(
            other
            for other in found
            if (other.draft, other.backend, other.method) == (each.draft, each.backend, "top-k")
        )
        share = overhead(each, base)
        yield {
            "draft": each.draft,
            "method": each.method,
            "compile": each.backend,
            "contexts": len(each.drafting),
            "drafting_ms": 1000 * statistics.median(each.drafting) if each.drafting else None,
            "verification_ms": 1000 * statistics.median(each.verifying) if each.verifying else None,
            "overhead": None if share is None else asdict(share),
            "below_aim": None if share is None else share.mean < AIM,
            "equal_to_rheo_core": each.equal,
            "compared": each.cycles,
            "first_difference": each.difference,
        }


def table(document: dict[str, Any]) -> Table:
    """The rows as a table."""
    made = Table(title=f"{document['provenance']['device']}, {document['provenance']['dtype']}")
    for heading in ("draft", "method", "compile", "contexts", "drafting", "verification", "overhead (95 %)", "equal"):
        made.add_column(heading, justify="left" if heading in ("draft", "method", "compile") else "right")
    for row in document["rows"]:
        share = row["overhead"]
        made.add_row(
            row["draft"],
            row["method"],
            row["compile"] or "-",
            str(row["contexts"]),
            "-" if row["drafting_ms"] is None else f"{row['drafting_ms']:.2f} ms",
            "-" if row["verification_ms"] is None else f"{row['verification_ms']:.2f} ms",
            "-"
            if share is None
            else f"{100 * share['mean']:+.1f} % [{100 * share['low']:+.1f}, {100 * share['high']:+.1f}]",
            f"{row['equal_to_rheo_core']}/{row['compared']}",
        )
    return made


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.gpu_runner.device.on_device", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--shape", choices=SIZES, default="1b")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--dtype", default="bf16")
    parser.add_argument("--cycles", type=int, default=60, help="contexts a draft, at most")
    parser.add_argument("--minutes", type=float, default=6, help="for the measurements, drafts together")
    parser.add_argument("--compile", default="cudagraphs", help="backend measured beside none on CUDA", dest="backend")
    parser.add_argument("--no-tests", action="store_true", help="leave out the tests marked gpu")
    parser.add_argument("--out", type=Path, help="write the JSON document here too")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run everything; 1 where a gpu test failed, or a cycle on a CPU differs from rheo_core's."""
    asked = parsed(arguments)
    device, dtype, size = find_device(asked.device), find_dtype(asked.dtype), SIZES[asked.shape]
    tests = None if asked.no_tests or device.type != "cuda" else gpu_tests()
    target = random_target(size, device, dtype)
    check_tree_attention(target)
    drafts: list[Draft] = [random_head(size, target), CausalDraft.skipping(target, range(1, size.layers, 2))]
    found: list[Timed] = []
    backends = (None, asked.backend) if device.type == "cuda" else (None,)
    failed: dict[str, str] = {}
    for number, draft in enumerate(drafts, 1):
        for backend in backends:
            until = time.monotonic() + 60 * asked.minutes / len(drafts) / len(backends)
            try:
                found += measured(target, draft, size, METHODS, asked.cycles, until, backend)
            except Exception as error:
                if backend is None:
                    raise
                failed[draft.name] = f"{backend}: {type(error).__name__}: {error}"
        print(f"{number}/{len(drafts)} drafts measured", file=sys.stderr)
    document = {
        "gpu_tests": tests,
        "rows": list(rows(found)),
        "compile_failed": failed,
        "aim": AIM,
        "provenance": provenance(target, drafts[0], shape=asdict(size.tree), size=asked.shape),
    }
    text = json.dumps(document, indent=2)
    if asked.out is not None:
        asked.out.write_text(text + "\n")
    sys.stdout.write(text + "\n")
    out.print(table(document))
    for name, reason in failed.items():
        out.print(f"{name}: no graph, {reason}", highlight=False, markup=False)
    if tests is not None:
        out.print(f"gpu tests: exit code {tests['exit_code']}, {tests['seconds']:.0f} s; {tests['tail'][-1:]}")
    different = device.type == "cpu" and any(each.equal < each.cycles for each in found)
    return 1 if different or (tests is not None and tests["exit_code"] != 0) else 0


if __name__ == "__main__":
    sys.exit(main())
