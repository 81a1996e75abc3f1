"""The paper's tables and figures as data: which methods answer which questions, in what setting.

An experiment is a list of cells; a cell is a temperature and the methods compared at it. Each question of a cell is
answered by every method on its own text (counted), and walked once more with all methods drafting on the same contexts
(expected numbers given the trees, paired). What is asked follows from the arguments alone, so a run can be split over
processes, killed and gone on with.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, fields, replace
from typing import Any, get_type_hints

from pydantic import create_model

from gpu_runner.decode.draft_rows import check_support
from gpu_runner.decode.draws import check_seed
from gpu_runner.decode.methods import AUTOREGRESSIVE, BASELINE, BenchMethod, find_methods
from gpu_runner.reproduce.question_sets import SETS
from gpu_runner.reproduce.run_folder import WHOLE, Line, Shard
from gpu_runner.reproduce.strict_json import Fields, read_fields
from rheo_core import DEFAULT_SUPPORT, InvalidInput, TreeShape

SAME_CONTEXTS = "same contexts"
SUPPORTS = (128, 256, 512, 1024, None)
LEADS = range(6)
TEMPERATURES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
OWN, SAME, BOTH = "own", "same", "both"


@dataclass(frozen=True)
class Base:
    """What a user may change of every experiment: tree shape, temperature, support of the sampling law."""

    shape: TreeShape
    temperature: float
    support: int | None


@dataclass(frozen=True)
class Cell:
    """Methods that are compared with each other at one temperature."""

    name: str
    methods: tuple[BenchMethod, ...]
    temperature: float


@dataclass(frozen=True)
class Experiment:
    """A table or figure: its cells, and the question sets that the paper takes.

    `count` is what is averaged over cycles: "emitted" tokens (tau) or "accepted" drafted ones (a rate in one layer).
    """

    name: str
    title: str
    cells: tuple[Cell, ...]
    sets: tuple[str, ...]
    count: str = "emitted"

    @property
    def shape(self) -> TreeShape:
        """The tree that all its methods draft; Table 4 has one of its own, whatever is asked for."""
        return self.cells[0].methods[0].shape

    def cell(self, name: str) -> Cell:
        """The cell of a name."""
        return next(cell for cell in self.cells if cell.name == name)


@dataclass(frozen=True)
class Task:
    """The smallest piece of work: one question with one seed, for a method of a cell or on the same contexts."""

    cell: str
    question_set: str
    question: int | str
    seed: int
    what: str


def _one_cell(names: Sequence[str], base: Base) -> tuple[Cell, ...]:
    return (Cell("", tuple(find_methods(names, base.shape, support=base.support)), base.temperature),)


def _table2(base: Base) -> Experiment:
    cells = _one_cell((AUTOREGRESSIVE, BASELINE, "rheo"), base)
    return Experiment("table2", "Table 2: acceptance length and speed-up", cells, tuple(SETS))


def _table3(base: Base) -> Experiment:
    cells = _one_cell((BASELINE, "rheo-rrsw", "rheo"), base)
    return Experiment("table3", "Table 3: acceptance length by verification", cells, tuple(SETS))


def _table4(base: Base) -> Experiment:
    """One layer of three slots: the best token, the sampled one, the best of the rest; all of them are kept."""
    cells = _one_cell((BASELINE, "rheo-rrsw:1", "rheo:1"), replace(base, shape=TreeShape(3, 1, 3)))
    title = "Table 4: acceptance in one layer of three slots (best, sampled, best of the rest)"
    return Experiment("table4", title, cells, ("mt_bench",), "accepted")


def _table5(base: Base) -> Experiment:
    methods = [*find_methods([BASELINE], base.shape, support=base.support)]
    for support in SUPPORTS:
        (rheo,) = find_methods(["rheo"], base.shape, support=support)
        methods.append(replace(rheo, label=f"{rheo.label}, support {support or 'full'}"))
    title = "Table 5: support of the sampling law"
    return Experiment("table5", title, (Cell("", tuple(methods), base.temperature),), ("mt_bench",))


def _figure3(base: Base) -> Experiment:
    names = [BASELINE, *(f"rheo:{m}" for m in LEADS if m <= base.shape.width)]
    sets = ("gsm8k", "humaneval", "qa", "mt_bench")
    return Experiment("figure3", "Figure 3: acceptance length against m", _one_cell(names, base), sets)


def _figure4(base: Base) -> Experiment:
    methods = tuple(find_methods([BASELINE, "rheo:0", "rheo:1"], base.shape, support=base.support))
    cells = tuple(Cell(f"T = {temperature:g}", methods, temperature) for temperature in TEMPERATURES)
    sets = ("mt_bench", "gsm8k", "humaneval")
    return Experiment("figure4", "Figure 4: acceptance length against temperature", cells, sets)


EXPERIMENTS: dict[str, Callable[[Base], Experiment]] = {
    "table2": _table2,
    "table3": _table3,
    "table4": _table4,
    "table5": _table5,
    "figure3": _figure3,
    "figure4": _figure4,
}


PAPER = Base(TreeShape(10, 8, 59), 1.0, DEFAULT_SUPPORT)
"""The paper's own setting: a tree of 60 tokens, the text's last one included."""


def find_experiment(name: str, base: Base = PAPER) -> Experiment:
    """The experiment of a table or figure by name."""
    if name not in EXPERIMENTS:
        raise InvalidInput("experiment", name, f"one of {', '.join(EXPERIMENTS)}")
    return EXPERIMENTS[name](base)


def tasks(
    experiment: Experiment,
    asked: Mapping[str, Sequence[int | str]],
    seeds: Sequence[int],
    on: str,
    shard: Shard = WHOLE,
) -> Iterator[Task]:
    """All that one process has to do, in an order that leaves every set measured alike wherever it is stopped.

    `asked` are the question ids of each set; `on` is "own", "same" or "both". Methods take turns within a question, so
    that a drifting clock or a busy machine favours none, and all methods on a question are one process's work.
    """
    most = max(len(ids) for ids in asked.values())
    for seed in seeds:
        for number in range(most):
            for place, (name, ids) in enumerate(asked.items()):
                if number >= len(ids) or not shard.has(number + place):
                    continue
                for cell in experiment.cells:
                    own = [method.label for method in cell.methods] if on != SAME else []
                    same = [SAME_CONTEXTS] if on != OWN else []
                    for what in (*own, *same):
                        yield Task(cell.name, name, ids[number], seed, what)


def number_of(question_set: str, question: int | str) -> int:
    """What the draws of a question are derived from: the same wherever and in whatever company it is asked."""
    return zlib.crc32(f"{question_set}/{question}".encode())


@dataclass(frozen=True)
class Arguments:
    """Everything that the results of a run depend on, as the user gave it.

    `asked` are the ids of the questions of each set, `digest` the SHA-256 of their texts; `support` 0 is the full
    vocabulary; `backend` compiles the levels of the draft tree.
    """

    experiment: str
    target: str
    draft: str
    dtype: str
    device: str
    threads: int
    rope_base: float | None
    plain: bool
    fault: str | None
    width: int
    depth: int
    budget: int
    temperature: float
    support: int
    length: int
    seeds: int
    seed: int
    on: str
    asked: dict[str, list[int | str]]
    digest: str
    backend: str | None = None

    def __post_init__(self) -> None:
        for name in ("length", "seeds"):
            if getattr(self, name) < 1:
                raise InvalidInput(name, getattr(self, name), "an int of at least 1")
        check_seed(self.seed)
        check_support(self.support or None)
        if self.on not in (OWN, SAME, BOTH):
            raise InvalidInput("on", self.on, f"{OWN}, {SAME} or {BOTH}")
        if self.fault is not None and self.on != OWN:
            raise InvalidInput("on", self.on, f"{OWN}: a planted fault has no known acceptance")
        self.made()

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Arguments:
        """The arguments that were kept with results."""
        types = get_type_hints(cls)
        required = {field.name: (types[field.name], ...) for field in fields(cls) if field.default is MISSING}
        optional = {name: (types[name], None) for name in types.keys() - required.keys()}
        schema = create_model("ArgumentFields", __base__=Fields, **required, **optional)  # type: ignore[call-overload]
        found = cls(**vars(read_fields(schema, document, "arguments")))
        if not found.asked or not all(found.asked.values()):
            raise InvalidInput("arguments: asked", found.asked, "for each question set the ids of some questions")
        return found

    @property
    def as_in_the_paper(self) -> bool:
        """Whether the setting is the paper's, so that its values may stand beside ours."""
        base = Base(TreeShape(self.width, self.depth, self.budget), self.temperature, self.support or None)
        return base == PAPER and self.fault is None

    def document(self) -> Line:
        """JSON-ready; `backend` only where there is one."""
        return {name: value for name, value in asdict(self).items() if name != "backend" or value is not None}

    def made(self) -> Experiment:
        """The experiment that they ask for."""
        shape = TreeShape(self.width, self.depth, self.budget)
        return find_experiment(self.experiment, Base(shape, self.temperature, self.support or None))

    def tasks(self, shard: Shard = WHOLE) -> tuple[Task, ...]:
        """What one process has to do."""
        seeds = range(self.seed, self.seed + self.seeds)
        return tuple(tasks(self.made(), self.asked, seeds, self.on, shard))
