"""The notebook `your_code` runs as it stands and still says what it says."""

from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed (extra `test`)")
nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed (extra `test`)")
pytest.importorskip("ipykernel", reason="ipykernel is not installed (extra `test`)")
pytest.importorskip("transformers", reason="transformers is not installed (extra `torch`)")

NOTEBOOK = Path(__file__).parents[3] / "notebooks" / "your_code.ipynb"


def printed(notebook):
    """What each cell of code prints on stdout."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return ["".join(out.text for out in cell.outputs if out.get("name") == "stdout") for cell in cells]


@pytest.mark.certificate
def test_the_notebook_runs_and_says_what_it_says():
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    stored = printed(notebook)
    nbclient.NotebookClient(notebook, timeout=300).execute()
    fresh = printed(notebook)
    assert [text.splitlines()[:1] for text in fresh[:-2]] == [text.splitlines()[:1] for text in stored[:-2]]
    assert "lossless up to rounding" in fresh[0]
    assert "lossy: TV 0.1 " in fresh[1]
    assert "lossless up to rounding" in fresh[3]
    assert fresh[4].count("lossy") == 3
    assert fresh[5].count("emits what the target never does") == 2
    assert "Tensor.sum" in fresh[6]
    assert "verify_wrong is not lossless" in fresh[7]


def test_ten_lines_from_the_function_to_the_verdict():
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    first = next(cell for cell in notebook.cells if cell.cell_type == "code")
    lines = [line for line in first.source.splitlines() if line.strip()]
    assert len(lines) <= 11
    assert any("certify_function" in line for line in lines)
