"""A folder of results: nothing lost but a torn last line, nothing mixed, several processes side by side."""

import json
from pathlib import Path
from typing import Any

import pytest

from gpu_runner.reproduce.run_folder import RunFolder, Shard, read
from rheo_core import InvalidInput

ARGUMENTS: dict[str, Any] = {"experiment": "table2", "seeds": 2, "asked": {"a": [1, "x"]}}
LINES: list[dict[str, Any]] = [{"n": 0, "text": "ä\u2028"}, {"n": 1, "values": [0.1, 1e-300]}, {"n": 2}]


def filled(path, lines=LINES, shard=None, arguments=ARGUMENTS):
    with RunFolder(path, arguments, shard=shard or Shard()) as folder:
        folder.started({"time": "now"})
        for line in lines:
            folder.append(line)
    return path


def test_what_is_appended_is_read_back(tmp_path):
    found = read(filled(tmp_path / "new" / "run"))
    assert found.arguments == ARGUMENTS
    assert list(found.lines) == LINES
    assert found.sources == ({"time": "now"},)


def test_a_line_is_on_disk_when_append_returns(tmp_path):
    with RunFolder(tmp_path, ARGUMENTS) as folder:
        folder.started({})
        for count, line in enumerate(LINES):
            folder.append(line)
            assert list(read(tmp_path).lines) == LINES[: count + 1]
            assert folder.count_lines() == count + 1


def test_cut_anywhere_only_the_torn_line_is_lost(tmp_path, capsys):
    whole = (filled(tmp_path) / "answers.jsonl").read_bytes()
    for cut in range(len(whole)):
        (tmp_path / "answers.jsonl").write_bytes(whole[:cut])
        kept = whole[:cut].count(b"\n")
        with RunFolder(tmp_path, ARGUMENTS, resume=True) as folder:
            assert list(folder.lines) == LINES[:kept]
            assert ("torn" in capsys.readouterr().err) == (not whole[:cut].endswith(b"\n") and cut > 0)
            for line in LINES[kept:]:
                folder.append(line)
        assert (tmp_path / "answers.jsonl").read_bytes() == whole


def test_a_last_line_of_zeros_is_torn_too(tmp_path, capsys):
    filled(tmp_path)
    with (tmp_path / "answers.jsonl").open("ab") as file:
        file.write(b"\0" * 9 + b"\n")
    with RunFolder(tmp_path, ARGUMENTS, resume=True) as folder:
        assert list(folder.lines) == LINES
    assert "torn" in capsys.readouterr().err
    assert list(read(tmp_path).lines) == LINES


def test_a_bad_line_before_the_last_is_refused(tmp_path):
    filled(tmp_path)
    with (tmp_path / "answers.jsonl").open("ab") as file:
        file.write(b'[1]\n{"n": 4}\n')
    with pytest.raises(InvalidInput, match=r"answers.jsonl:4.*one JSON object a line"):
        read(tmp_path)


def test_results_are_not_overwritten(tmp_path):
    with pytest.raises(InvalidInput, match=r"answers.jsonl is there.*--resume"):
        RunFolder(filled(tmp_path), ARGUMENTS)


def test_a_start_that_measured_nothing_leaves_no_results(tmp_path):
    with RunFolder(tmp_path, ARGUMENTS):
        pass
    assert list(read(filled(tmp_path)).lines) == LINES


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({**ARGUMENTS, "seeds": 3}, "seeds: got 3, expected 2, which"),
        ({**ARGUMENTS, "fault": "x"}, "fault: got x, expected nothing"),
        ({"experiment": "table2", "asked": ARGUMENTS["asked"]}, "seeds: got None, expected 2"),
        ({**ARGUMENTS, "asked": {"a": [1]}}, "asked: got"),
    ],
)
def test_other_arguments_are_refused_by_name(tmp_path, changed, message):
    with pytest.raises(InvalidInput, match=message):
        RunFolder(filled(tmp_path), changed, resume=True)
    assert list(read(tmp_path).lines) == LINES


def test_every_start_is_recorded(tmp_path):
    filled(tmp_path)
    with RunFolder(tmp_path, ARGUMENTS, resume=True) as folder:
        folder.started({"time": "later"})
    assert [source["time"] for source in read(tmp_path).sources] == ["now", "later"]


def test_parts_share_a_folder(tmp_path):
    filled(tmp_path, LINES[:2], Shard(0, 2))
    filled(tmp_path, LINES[2:], Shard(1, 2))
    assert sorted(line["n"] for line in read(tmp_path).lines) == [0, 1, 2]
    for again in (Shard(0, 2), Shard(1, 3), Shard()):
        with pytest.raises(InvalidInput, match="a folder without results"):
            RunFolder(tmp_path, ARGUMENTS, shard=again)
    with RunFolder(tmp_path, ARGUMENTS, resume=True, shard=Shard(2, 3)) as folder:
        assert len(folder.lines) == 3


def test_parts_with_other_arguments_are_refused(tmp_path):
    filled(tmp_path, shard=Shard(0, 2))
    other = tmp_path / "provenance-1-of-2.json"
    other.write_text(json.dumps({"arguments": {**ARGUMENTS, "seeds": 5}, "runs": []}))
    with pytest.raises(InvalidInput, match="seeds: got 5, expected 2"):
        read(tmp_path)


def test_one_writer_a_part(tmp_path):
    pytest.importorskip("fcntl", reason="this system has no file locks")
    with RunFolder(tmp_path, ARGUMENTS) as folder:
        folder.started({})
        folder.append(LINES[0])
        with pytest.raises(InvalidInput, match="no other process"):
            RunFolder(tmp_path, ARGUMENTS, resume=True)


def test_a_full_disk_is_one_line(tmp_path):
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("no /dev/full here")
    folder = RunFolder(tmp_path, ARGUMENTS)
    folder._stream.close()
    with full.open("wb", buffering=0) as folder._stream, pytest.raises(InvalidInput, match="No space left"):
        folder.append(LINES[0])


def test_no_results_and_bad_provenance_are_one_line(tmp_path):
    with pytest.raises(InvalidInput, match=r"a folder with results"):
        read(tmp_path)
    (tmp_path / "provenance.json").write_text("{")
    with pytest.raises(InvalidInput, match="the provenance of a run"):
        read(tmp_path)
    (tmp_path / "provenance.json").write_text("[]")
    with pytest.raises(InvalidInput, match="without arguments and runs"):
        read(tmp_path)
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(InvalidInput, match="a folder that can be written"):
        RunFolder(file, ARGUMENTS)


@pytest.mark.parametrize("text", ["2/2", "-1/2", "1", "1/0", "a/b", ""])
def test_bad_parts(text):
    with pytest.raises(InvalidInput, match="shard"):
        Shard.read(text)


def test_every_number_is_in_one_part():
    assert [sum(Shard(i, 3).has(n) for i in range(3)) for n in range(10)] == [1] * 10
