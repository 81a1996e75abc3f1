"""The Coq development, compiled once for all tests, and the program extracted from it."""

from __future__ import annotations

import resource
import shutil
import subprocess
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[3] / "exact" / "rocq"
LIMIT = 120  # processor seconds for the whole development from clean
PATIENCE = 1200  # seconds on the clock, for a machine that is busy with other things
MATHCOMP = ("libcoq-mathcomp-ssreflect", "libcoq-mathcomp-algebra")


def needs(programs: tuple[str, ...], packages: str) -> list[pytest.MarkDecorator]:
    """The marks of a module whose tests run these programs."""
    missing = [program for program in programs if shutil.which(program) is None]
    reason = f"not installed: {', '.join(missing)} (apt-get install {packages})"
    return [pytest.mark.certificate, pytest.mark.rocq, pytest.mark.skipif(bool(missing), reason=reason)]


NEEDS_COQ = needs(("coqc", "coq_makefile", "make"), "coq make")
NEEDS_OCAML = needs(
    ("coqc", "coq_makefile", "make", "ocamlfind", "ocamlopt"), "coq make ocaml-nox ocaml-findlib libzarith-ocaml-dev"
)


def _children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The development, compiled from clean outside the source tree within the limit."""
    folder = tmp_path_factory.mktemp("rocq")
    for source in (*SOURCES.glob("*.v"), SOURCES / "_CoqProject", SOURCES / "Makefile"):
        shutil.copy(source, folder)
    (folder / "oracle").mkdir()
    for name in ("extract.v", "main.ml"):
        shutil.copy(SOURCES / "oracle" / name, folder / "oracle")
    probe = folder / "probe.v"
    probe.write_text("From mathcomp Require Import all_ssreflect all_algebra.\n")
    if subprocess.run(["coqc", "-w", "none", probe], capture_output=True, check=False).returncode:
        pytest.skip(f"Coq is here, MathComp is not: apt-get install {' '.join(MATHCOMP)}")
    before = _children_seconds()
    made = subprocess.run(["make", "-j2"], cwd=folder, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert made.returncode == 0, made.stdout + made.stderr
    assert _children_seconds() - before < LIMIT
    return folder


@pytest.fixture(scope="session")
def oracle(compiled: Path) -> Path:
    """The program extracted from the development."""
    if subprocess.run(["ocamlfind", "query", "zarith"], capture_output=True, check=False).returncode:
        pytest.skip("OCaml is here, Zarith is not: apt-get install libzarith-ocaml-dev")
    made = subprocess.run(
        ["make", "oracle"], cwd=compiled, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert made.returncode == 0, made.stdout + made.stderr
    return compiled / "oracle" / "verified"
