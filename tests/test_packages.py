"""What the four packages may import, and that the light ones stay light."""

import ast
import importlib
import os
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGES = ("rheo_core", "exact", "montecarlo", "gpu_runner")  # each may import those to its left
ROOT = Path(__file__).parent.parent
HEAVY = ("torch", "transformers", "sympy", "flint", "z3", "matplotlib", "dask", "distributed")


def sources(package):
    return sorted(path for path in (ROOT / package).rglob("*.py"))


def imported(path):
    """Every top-level name that a file imports anywhere in it, those under TYPE_CHECKING included."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add((node.module or "").partition(".")[0] if not node.level else path.relative_to(ROOT).parts[0])
    return names


@pytest.mark.parametrize("package", PACKAGES)
def test_arrows_point_one_way(package):
    to_the_right = set(PACKAGES[PACKAGES.index(package) + 1 :])
    broken = {str(path): found for path in sources(package) if (found := imported(path) & (to_the_right | {"tests"}))}
    assert not broken


def test_rheo_core_imports_numpy_and_the_standard_library_only():
    allowed = {"numpy", "rheo_core", *sys.stdlib_module_names}
    broken = {str(path): found for path in sources("rheo_core") if (found := imported(path) - allowed)}
    assert not broken


def run(program):
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_rheo_core_loads_nothing_else_at_run_time():
    loaded = run(
        "import sys, numpy; before = set(sys.modules)\n"
        "import rheo_core; new = {name.partition('.')[0] for name in set(sys.modules) - before}\n"
        "print(sorted(new - set(sys.stdlib_module_names)))"
    )
    assert loaded in ("['rheo_core']", "['numpy', 'rheo_core']")  # parts of NumPy load late


@pytest.mark.parametrize("package", ["exact", "exact.cli.main", "montecarlo", "montecarlo.cli.main"])
def test_heavy_libraries_are_loaded_only_when_they_are_asked_for(package):
    loaded = run(f"import sys, {package}\nprint([name for name in {HEAVY} if name in sys.modules])")
    assert loaded == "[]"


PROGRAMS = ["exact", "montecarlo", "gpu_runner"]


@pytest.mark.parametrize("package", PROGRAMS)
def test_help_loads_no_command_and_none_of_what_they_need(package):
    """It takes a third of a second; with all commands it took one."""
    slow = ("hypothesis", "jinja2", "scipy", "exact.methods", "exact.search", "exact.report")
    loaded = run(
        f"import sys; sys.argv[1:] = ['--help']\nfrom {package}.cli import main\n"
        "try:\n    main.main()\nexcept SystemExit as end:\n    assert end.code == 0\n"
        f"print('LOADED', [name for name in {(*HEAVY, *slow)} if name in sys.modules])"
    )
    assert loaded.endswith("LOADED []")


@pytest.mark.parametrize("package", PROGRAMS)
def test_the_line_of_a_command_in_help_is_the_first_of_its_own(package):
    lines = importlib.import_module(f"{package}.cli.main").app.info.cls.lines
    assert len(lines) >= 3
    for name, line in lines.items():
        command = importlib.import_module(f"{package}.cli.{name}").command
        assert line == " ".join(command.__doc__.partition("\n\n")[0].split())


@pytest.mark.benchmark
@pytest.mark.parametrize("package", PROGRAMS)
def test_help_is_there_in_a_third_of_a_second(package):
    """Of processor time: .30 s is seen on a free core, and up to half as much again beside other processes."""
    run(f"import {package}.cli.main")  # what is compiled on first use
    seconds = []
    for _ in range(5):
        start = os.times()
        run(f"import sys; sys.argv[1:] = ['--help']\nfrom {package}.cli import main; main.main()")
        used = os.times()
        seconds.append(used.children_user + used.children_system - start.children_user - start.children_system)
    assert min(seconds) < 2 * 0.35


@pytest.mark.parametrize("package", [*PACKAGES, "tests"])
def test_every_module_says_why_it_exists_and_stays_short(package):
    for path in sources(package):
        text = path.read_text()
        assert text.count("\n") <= 400, path
        assert not text or ast.get_docstring(ast.parse(text)), path


def test_every_name_of_the_public_surface_is_there():
    for package in ("rheo_core", "exact"):
        module = importlib.import_module(package)
        assert all(hasattr(module, name) for name in module.__all__)
        assert module.__all__ == sorted(module.__all__, key=lambda name: (not name.isupper(), name.islower(), name))


def test_every_module_of_rheo_core_can_be_imported_by_itself():
    package = importlib.import_module("rheo_core")
    names = [each.name for each in pkgutil.iter_modules(package.__path__)]
    for name in names:
        importlib.import_module(f"rheo_core.{name}")
    assert {"laws", "models", "pool", "tree", "construction", "verification", "decoding", "methods"} <= set(names)
