"""The notebooks of this room run as they stand: their own assertions hold and they still say what is stored in them."""

from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed (extra `test`)")
nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed (extra `test`)")
pytest.importorskip("ipykernel", reason="ipykernel is not installed (extra `test`)")
pytest.importorskip("matplotlib", reason="matplotlib is not installed (extra `plot`)")

FOLDER = Path(__file__).parents[2] / "notebooks"


def outputs(notebook):
    """Of each cell of code: what it printed, and the number of its pictures."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return [
        (
            "".join(out.text for out in cell.outputs if out.get("name") == "stdout"),
            sum("image/png" in out.get("data", {}) for out in cell.outputs),
        )
        for cell in cells
    ]


@pytest.mark.certificate
@pytest.mark.parametrize(
    ("name", "pictures"), [("table1", 7), ("equivalence_classes", 6), ("rates", 5), ("best_rule", 2)]
)
def test_the_notebook_runs_and_shows_what_is_stored(name, pictures):
    runs_and_shows_what_is_stored(name, pictures)


def runs_and_shows_what_is_stored(name, pictures):
    """Run a notebook; raises unless it prints and draws again what is stored, with claims that it checks itself."""
    notebook = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
    stored = outputs(notebook)
    nbclient.NotebookClient(notebook, timeout=300).execute()
    assert outputs(notebook) == stored
    assert sum(count for _, count in stored) == pictures
    assert sum(cell.source.count("assert ") for cell in notebook.cells if cell.cell_type == "code") >= 8
    assert (FOLDER / f"{name}.ipynb").stat().st_size < 500_000
