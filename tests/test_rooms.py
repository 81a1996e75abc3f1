"""The plan of the house: which room may import which, and how large each may grow. ARCHITECTURE.md says why.

A room is a package, or a folder of `exact` or `gpu_runner`. An import that is no arrow here, a circle of files, or a
room that has outgrown its lines fails. Who needs more lines deletes some first, or says in this table why not.
"""

import ast
from collections import defaultdict
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("rheo_core", "exact", "montecarlo", "gpu_runner")
SPLIT = ("exact", "gpu_runner")
LOOSE = {"__init__", "__main__", "check", "pytest_plugin"}  # modules of exact that stand in no room

# room: (most lines, the rooms that it may import); `.name` is a room of the same package
ROOMS = {
    "rheo_core": (1860, ""),
    "exact.enumeration": (3200, "rheo_core"),
    "exact.runtime": (3000, "rheo_core .enumeration"),
    "exact.methods": (1800, "rheo_core .enumeration .runtime"),
    "exact.interception": (4900, "rheo_core .enumeration .runtime"),
    "exact.proofs": (2950, "rheo_core .enumeration .runtime"),
    "exact.verdict": (3250, "rheo_core .enumeration .runtime .methods .interception"),
    "exact.acceptance": (1450, "rheo_core .enumeration .runtime .methods .verdict"),
    "exact.search": (2200, "rheo_core .enumeration .runtime .methods .verdict"),
    "exact.faults": (1260, "rheo_core .enumeration .methods .verdict"),
    "exact.report": (1560, "rheo_core .enumeration .runtime .methods .interception .verdict .acceptance"),
    "exact.cli": (
        3065,
        "rheo_core .enumeration .runtime .methods .interception .proofs .verdict .acceptance .search .faults .report"
        " .check",
    ),
    "exact.check": (400, ""),
    "exact": (100, ".enumeration .runtime .interception .verdict .search .report .cli"),
    "montecarlo": (
        5200,
        "rheo_core exact.enumeration exact.runtime exact.methods exact.acceptance exact.report exact.cli",
    ),
    "gpu_runner.model": (1800, "rheo_core"),
    "gpu_runner.decode": (2100, "rheo_core exact.methods montecarlo .model"),
    "gpu_runner.certify": (500, "rheo_core exact.enumeration exact.report .model .decode"),
    "gpu_runner.measure": (1400, "rheo_core exact.runtime montecarlo .model .decode .certify"),
    "gpu_runner.reproduce": (2100, "rheo_core exact.runtime exact.report exact.cli .decode .measure"),
    "gpu_runner.audit": (500, "rheo_core montecarlo .model .decode .measure"),
    "gpu_runner.training": (700, "rheo_core exact.runtime montecarlo .model .decode"),
    "gpu_runner.cli": (
        1700,
        "rheo_core exact.cli exact.report montecarlo .model .decode .certify .measure .reproduce .audit .training",
    ),
    "gpu_runner": (50, ".cli"),
}
ALL_LINES = 45_300


def modules():
    """Every module of the packages by its dotted name."""
    paths = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
    return {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for path in paths}


MODULES = modules()


def room_of(module):
    """The room in which a module stands."""
    package, _, rest = module.partition(".")
    name = rest.partition(".")[0]
    loose = not name or (package, name) in {
        ("exact", "__main__"),
        ("exact", "pytest_plugin"),
        ("gpu_runner", "__main__"),
    }
    return package if package not in SPLIT or loose else f"{package}.{name}"


def imports():
    """(module, module that it imports) of every import anywhere in a file, those under TYPE_CHECKING included."""
    for module, path in MODULES.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] in PACKAGES:
                for alias in node.names:
                    inner = f"{node.module}.{alias.name}"
                    yield module, inner if inner in MODULES else node.module
            elif isinstance(node, ast.Import):
                yield from ((module, alias.name) for alias in node.names if alias.name in MODULES)


IMPORTS = sorted(set(imports()))


def allowed(room):
    """The rooms that a room may import."""
    package = room.partition(".")[0]
    return {package + name if name.startswith(".") else name for name in ROOMS[room][1].split()}


def wrong_arrows(found):
    """The imports that are no arrow of the table."""
    return [
        (one, two) for one, two in found if room_of(one) != room_of(two) and room_of(two) not in allowed(room_of(one))
    ]


def circle(edges):
    """A circle among pairs (one, two), or None."""
    graph = defaultdict(set)
    for one, two in edges:
        if one != two:
            graph[one].add(two)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return error.args[1]
    return None


def test_every_import_is_an_arrow_of_the_plan():
    assert wrong_arrows(IMPORTS) == []
    assert len(IMPORTS) > 500


def test_the_plan_has_no_circle_and_neither_have_the_files():
    assert circle((room, other) for room in ROOMS for other in allowed(room)) is None
    assert circle((one, two) for one, two in IMPORTS if not one.startswith(f"{two}.")) is None


def test_a_wrong_arrow_and_a_circle_would_be_seen():
    planted = [("exact.enumeration.walk", "exact.verdict.certify"), ("rheo_core.laws", "exact.check")]
    assert wrong_arrows([*IMPORTS, *planted]) == planted
    assert circle([*IMPORTS, ("rheo_core.laws", "rheo_core.decoding")]) is not None


def test_rooms_are_few_and_every_module_stands_in_one():
    assert {room_of(module) for module in MODULES} == set(ROOMS)
    top = {room.partition(".")[0] if room.startswith("gpu_runner") else room for room in ROOMS}
    assert len(top) + 1 <= 20  # and exact/rocq, which is not Python
    assert {path.stem for path in (ROOT / "exact").glob("*.py")} == LOOSE


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_does_not_outgrow_its_lines(room):
    lines = sum(
        path.read_text(encoding="utf-8").count("\n") for module, path in MODULES.items() if room_of(module) == room
    )
    assert lines <= ROOMS[room][0]


def test_the_house_does_not_outgrow_its_lines():
    assert sum(path.read_text(encoding="utf-8").count("\n") for path in MODULES.values()) <= ALL_LINES


def test_the_architecture_has_a_paragraph_a_room_and_fits_its_page():
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    assert text.count("\n") <= 100
    missing = [room for room in ROOMS if f"`{room.replace('.', '/')}" not in text]
    assert missing == []
