"""The script for a CUDA machine, run here on a tiny shape: its document, its table, its exit code."""

import json

import pytest

from gpu_runner.certify.reference_diff import Comparison
from tests.gpu_runner.device import on_device

ARGUMENTS = ["--shape", "tiny", "--device", "cpu", "--dtype", "float32", "--cycles", "2"]


def test_the_script_measures_every_method_with_both_drafts(tmp_path, capsys):
    file = tmp_path / "out.json"
    assert on_device.main([*ARGUMENTS, "--out", str(file)]) == 0
    document = json.loads(file.read_text())
    assert document["gpu_tests"] is None
    assert [row["method"] for row in document["rows"]] == [*on_device.METHODS] * 2
    for row in document["rows"]:
        assert row["contexts"] == 2
        assert row["equal_to_rheo_core"] == row["compared"] == on_device.COMPARED
        assert (row["overhead"] is None) == (row["method"] == "top-k")
    assert "overhead (95 %)" in capsys.readouterr().out


def test_a_difference_to_rheo_core_is_an_exit_code(monkeypatch):
    monkeypatch.setattr(on_device, "compare_cycle", lambda *given: Comparison((1,), (2,), "node 0: planted"))
    monkeypatch.setattr(on_device, "METHODS", ("top-k",))
    assert on_device.main(ARGUMENTS) == 1


def test_overheads_are_paired_shares_of_top_k():
    base = on_device.Timed("d", "top-k", [1.0, 3.0])
    slower = on_device.Timed("d", "rheo:1", [1.1, 3.3])
    found = on_device.overhead(slower, base)
    assert found is not None
    assert found.mean == pytest.approx(0.1)
    assert found.low < 0.1 < found.high
    assert on_device.overhead(base, base) is None
