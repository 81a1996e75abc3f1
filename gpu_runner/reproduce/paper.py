"""The paper's own figures, to stand beside ours where the pair of models is the paper's.

Read off Tables 2 to 5 as printed. They hold for one target with one draft each, at T = 1 with a tree of 60 tokens, so
they are only shown where both models are those.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath
from types import MappingProxyType

Values = Mapping[tuple[str, str], str]
"""(method label, a question set or "average", "speed-up", "coverage", "drafting") -> the value as printed."""

TOP_K, RHEO, RRSW = "top-k", "rheo m=1", "rheo-rrsw m=1"
COLUMNS = ("alpaca", "gsm8k", "humaneval", "mt_bench", "qa", "sum", "average")


@dataclass(frozen=True)
class Pair:
    """A target and its EAGLE-3 draft by their hub names; `short` is the paper's name for the target."""

    short: str
    target: str
    draft: str


VICUNA = Pair("V-13B", "lmsys/vicuna-13b-v1.3", "yuhuili/EAGLE3-Vicuna1.3-13B")
LLAMA = Pair("L31-8B", "meta-llama/Llama-3.1-8B-Instruct", "yuhuili/EAGLE3-LLaMA3.1-Instruct-8B")
DEEPSEEK = Pair("DSL-8B", "deepseek-ai/DeepSeek-R1-Distill-Llama-8B", "yuhuili/EAGLE3-DeepSeek-R1-Distill-LLaMA-8B")
PAIRS = (VICUNA, LLAMA, DEEPSEEK)

TABLE_2 = {
    (VICUNA, TOP_K): ("5.59±0.09 5.85±0.09 6.66±0.13 5.69±0.06 4.91±0.08 5.80±0.03 5.75±0.03", "3.37x"),
    (VICUNA, RHEO): ("5.92±0.05 5.87±0.05 6.72±0.06 5.88±0.09 5.00±0.04 5.94±0.07 5.89±0.03", "3.43x"),
    (LLAMA, TOP_K): ("5.68±0.02 5.50±0.03 6.11±0.09 4.60±0.06 3.89±0.04 4.49±0.07 5.04±0.02", "2.84x"),
    (LLAMA, RHEO): ("6.03±0.12 5.60±0.08 6.23±0.03 4.84±0.14 4.14±0.04 4.66±0.07 5.25±0.03", "2.93x"),
    (DEEPSEEK, TOP_K): ("4.48±0.04 6.70±0.05 5.43±0.09 4.93±0.02 4.08±0.05 4.32±0.06 4.99±0.01", "2.89x"),
    (DEEPSEEK, RHEO): ("4.79±0.06 6.71±0.07 5.79±0.05 5.16±0.05 4.35±0.05 4.47±0.06 5.21±0.02", "2.99x"),
}
"""tau by set (mean±std over 3 runs) and on average, and the average speed-up."""

TABLE_3 = {
    TOP_K: "5.68 5.50 6.11 4.60 3.89 4.49 5.04",
    RRSW: "5.88 5.47 6.18 4.67 4.09 4.58 5.15",
    RHEO: "6.03 5.60 6.23 4.84 4.14 4.66 5.25",
}
TABLE_4 = {TOP_K: "80.0%", RRSW: "83.5%", RHEO: "85.4%"}
TABLE_5 = {
    TOP_K: ("-", "4.60", "12.9 ms"),
    f"{RHEO}, support 128": ("91.0%", "4.84", "13.1 ms"),
    f"{RHEO}, support 256": ("91.8%", "4.85", "13.2 ms"),
    f"{RHEO}, support 512": ("92.2%", "4.78", "13.3 ms"),
    f"{RHEO}, support 1024": ("94.1%", "4.83", "13.3 ms"),
    f"{RHEO}, support full": ("100.0%", "4.89", "18.8 ms"),
}
"""Coverage of q, tau, drafting latency; the paper calls its code for the full support not optimised."""

FINDINGS = MappingProxyType(
    {
        "figure3": "m = 1 best or near best, m = 0 and 2 above top-k, m ≥ 3 near it",
        "figure4": "all rise as T falls; m = 0 meets top-k at T → 0, m = 1 stays apart",
    }
)
"""What the paper says about the figures that it gives no numbers for."""


def pair_of(target: str, draft: str) -> Pair | None:
    """The paper's pair of these names: hub names, or folders whose last two parts are a hub name; else None.

    >>> pair_of("lmsys/vicuna-13b-v1.3", "yuhuili/EAGLE3-Vicuna1.3-13B").short
    'V-13B'
    >>> pair_of("lmsys/vicuna-13b-v1.3", "skip:17,18") is None
    True
    """
    return next((pair for pair in PAIRS if _is(target, pair.target) and _is(draft, pair.draft)), None)


def paper_values(experiment: str, target: str, draft: str) -> Values | None:
    """The paper's values for a table or figure with this pair; None where it has none.

    Figure 3 gets Table 2's values, which are its points for top-k and m = 1. Tables 3 and 5 are for Llama-3.1-8B;
    Table 4 names no target, and its neighbours' is taken.
    """
    pair = pair_of(target, draft)
    if pair is None:
        return None
    if experiment in ("table2", "figure3"):
        found: dict[tuple[str, str], str] = {}
        for (owner, label), (row, speed_up) in TABLE_2.items():
            if owner == pair:
                found |= _row(label, row)
                found[label, "speed-up"] = speed_up
        return found
    if pair != LLAMA:
        return None
    if experiment == "table3":
        return {key: value for label, row in TABLE_3.items() for key, value in _row(label, row).items()}
    if experiment == "table4":
        return {(label, "mt_bench"): value for label, value in TABLE_4.items()}
    if experiment == "table5":
        names = ("coverage", "mt_bench", "drafting")
        return {(label, name): value for label, row in TABLE_5.items() for name, value in zip(names, row, strict=True)}
    return None


def _row(label: str, row: str) -> dict[tuple[str, str], str]:
    return {(label, column): value for column, value in zip(COLUMNS, row.split(), strict=True)}


def _is(given: str, name: str) -> bool:
    """Whether a name or folder is that of a hub repository; hub names ignore case."""
    return "/".join(PurePath(given).parts[-2:]).casefold() == name.casefold()
