"""Recorded runs: every form of one run gives one report, and what is wrong is named by file and line."""

import gzip
import json
import re
import tracemalloc
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from montecarlo.auditing import audit
from montecarlo.chunks import Chunker, draft_cells
from montecarlo.recording import REFUSED, Record, Row, Writer, read
from rheo_core import InvalidInput

DOCUMENT = Path(__file__).parents[2] / "docs" / "recording.md"
LINE = {"token": 1, "target": {"probs": [0.25, 0.75]}}
PACKED = gzip.compress(json.dumps(LINE).encode() * 50)
CORRUPT = PACKED[:20] + bytes(255 - byte for byte in PACKED[20:30]) + PACKED[30:]


def run(count=300, vocabulary=6, seed=0):
    """Arrays of a lossless run: token, target, draft, cycle, position."""
    rng = np.random.default_rng(seed)
    target, draft = (rng.dirichlet(np.ones(vocabulary), size=count) for _ in range(2))
    token = (rng.random(count)[:, None] < target.cumsum(axis=1)).argmax(axis=1)
    cycle = np.sort(rng.integers(0, count // 2, size=count))
    starts = np.concatenate([[True], cycle[1:] != cycle[:-1]])
    position = np.arange(count) - np.maximum.accumulate(np.where(starts, np.arange(count), 0))
    return token, target, draft, cycle, position


def report(*files, **options):
    return audit(Chunker(10).chunks(record for file in files for record in read(file, **options)))


def write_lines(path, lines):
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_every_form_of_one_run_gives_one_report(tmp_path):
    token, target, draft, cycle, position = run()
    for name in ("run.jsonl", "run.jsonl.gz"):
        with Writer(tmp_path / name) as writer:
            for i in range(len(token)):
                writer.write(token[i], target[i], draft[i], cycle=int(cycle[i]), position=int(position[i]), request="a")
    arrays = {"token": token, "target_probs": target, "draft_probs": draft, "cycle": cycle, "position": position}
    np.savez(tmp_path / "run.npz", **arrays, request=np.full(len(token), "a"))
    np.savez_compressed(tmp_path / "small.npz", **arrays)
    np.savez(tmp_path / "bare.npz", token=token, target=target, draft=draft, cycle=cycle)
    (tmp_path / "run.npz.gz").write_bytes(gzip.compress((tmp_path / "run.npz").read_bytes()))
    names = ("run.jsonl", "run.jsonl.gz", "run.npz", "small.npz", "run.npz.gz", "bare.npz")
    reports = [report(tmp_path / name) for name in names]
    assert reports[0].tokens == 300
    assert all(each.biases == reports[0].biases and each.positions == reports[0].positions for each in reports)


def test_shortened_rows_are_the_same_in_both_formats(tmp_path):
    token, target, draft, _, _ = run()
    ids = np.argsort(-target, axis=1)[:, :3]
    probs = np.take_along_axis(target, ids, axis=1)
    rest = 1 - probs.sum(axis=1)
    with Writer(tmp_path / "run.jsonl") as writer:
        for i in range(len(token)):
            writer.write(token[i], (ids[i], probs[i], rest[i]), draft[i])
    arrays = {"target_ids": ids, "target_probs": probs, "target_rest": rest, "draft_probs": draft}
    np.savez(tmp_path / "run.npz", token=token, **arrays)
    first, second = report(tmp_path / "run.jsonl"), report(tmp_path / "run.npz")
    assert first.biases == second.biases
    assert not first.evidence_of_loss


def test_positions_are_worked_out_from_cycles_of_interleaved_requests(tmp_path):
    token, target, _, cycle, position = run(60)
    lines = []
    for i in range(60):
        for seed, request in enumerate(("a", "b")):
            fields = {"token": int(token[i]), "target": {"probs": target[i].tolist()}, "cycle": int(cycle[i])}
            lines.append(fields | {"request": request, "seed": seed})
    derived = list(Chunker(10).chunks(read(write_lines(tmp_path / "run.jsonl", lines))))
    assert np.concatenate([chunk.position for chunk in derived]).tolist() == np.repeat(position, 2).tolist()


def test_several_files_are_one_run(tmp_path):
    token, target, draft, _, _ = run()
    for number, part in enumerate((slice(0, 100), slice(100, 300))):
        with Writer(tmp_path / f"{number}.jsonl") as writer:
            for i in range(*part.indices(300)):
                writer.write(token[i], target[i], draft[i])
    together = report(tmp_path / "0.jsonl", tmp_path / "1.jsonl")
    assert together.tokens == 300


def test_the_example_of_the_document_is_read(tmp_path):
    block = re.search(r"```json\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
    assert block is not None
    (tmp_path / "run.jsonl").write_text(block.group(1))
    (record,) = read(tmp_path / "run.jsonl")
    assert (record.token, record.cycle, record.position, record.request) == (7, 0, 0, "a")
    assert record.target.cells() == pytest.approx([0.6, 0.3, 0.1])


def test_fields_that_are_not_used_are_named(tmp_path):
    unused: set[str] = set()
    path = write_lines(tmp_path / "run.jsonl", [LINE | {"logprob": -1.0, "time": 3}])
    assert len(list(read(path, unused=unused))) == 1
    assert unused == {"logprob", "time"}


@pytest.mark.parametrize("name", REFUSED)
def test_conditions_that_raise_false_alarms_are_refused_with_the_reason(tmp_path, name):
    path = write_lines(tmp_path / "run.jsonl", [LINE, LINE | {name: 1}])
    with pytest.raises(InvalidInput, match=rf"run.jsonl:2: {name}: .* raises false alarms on lossless engines"):
        list(read(path))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ({"target": LINE["target"]}, "run.jsonl:2: token: got nothing"),
        ({"token": 1}, "run.jsonl:2: target: got nothing"),
        (LINE | {"token": -1}, "run.jsonl:2: token: got -1, expected an int of at least 0"),
        (LINE | {"token": 2}, "run.jsonl:2: token: got 2, expected an id below 2"),
        (LINE | {"token": 1.0}, "run.jsonl:2: token: got 1.0"),
        (LINE | {"token": True}, "run.jsonl:2: token: got True"),
        (LINE | {"target": [0.5, 0.5]}, "run.jsonl:2: target: got .* expected an object"),
        (LINE | {"target": {"probs": []}}, "run.jsonl:2: target.probs: got .* a non-empty list of numbers"),
        (LINE | {"target": {"probs": ["1/4", "3/4"]}}, "run.jsonl:2: target.probs: got"),
        (LINE | {"target": {"probs": [0.5, 0.6]}}, "run.jsonl:2: target: got a sum of 1.1, expected 1 within 0.0001"),
        (LINE | {"target": {"probs": [1.5, -0.5]}}, r"run.jsonl:2: target.probs\[0\]: got 1.5, expected a probability"),
        (LINE | {"target": {"probs": [float("nan"), 1]}}, r"run.jsonl:2: target.probs\[0\]: got nan"),
        (LINE | {"target": {"ids": [0], "probs": [0.5]}}, "run.jsonl:2: target: got a sum of 0.5"),
        (LINE | {"target": {"ids": [0, 0], "probs": [0.5, 0.5]}}, "run.jsonl:2: target.ids: .* distinct ids"),
        (LINE | {"target": {"ids": [0, -1], "probs": [0.5, 0.5]}}, "run.jsonl:2: target.ids: .* distinct ids"),
        (LINE | {"target": {"ids": [0], "probs": [0.5, 0.5]}}, "run.jsonl:2: target.ids: .* a list of 2 token ids"),
        (LINE | {"target": {"probs": [0.5, 0.3], "rest": 0.2}}, "run.jsonl:2: target.rest: .* ids beside it"),
        (LINE | {"draft": {"probs": [0.2, 0.3, 0.5]}}, "run.jsonl:2: draft.probs: got 3 entries, expected 2"),
        (LINE | {"cycle": -1}, "run.jsonl:2: cycle: got -1"),
        (LINE | {"position": "0"}, "run.jsonl:2: position: got 0"),
        (LINE | {"request": 5}, "run.jsonl:2: request: got 5, expected a string"),
        (LINE | {"token": 10**30}, "run.jsonl:2: token: got 1000.*, expected an int below 9007199254740992"),
        (LINE | {"position": 10**30}, "run.jsonl:2: position: got 1000.*, expected an int below"),
        (LINE | {"target": {"probs": [True, False]}}, "run.jsonl:2: target.probs: got .* a non-empty list of numbers"),
        (LINE | {"target": {"probs": [True, 0.0]}}, "run.jsonl:2: target.probs: got .* a non-empty list of numbers"),
        (LINE | {"target": {"probs": [[0.5], [0.5, 0]]}}, "run.jsonl:2: target.probs: got"),
        (LINE | {"target": {"probs": [float("inf"), 0]}}, r"run.jsonl:2: target.probs\[0\]: got inf"),
        (LINE | {"target": {"ids": [True, 2], "probs": [0.5, 0.5]}}, "run.jsonl:2: target.ids: .* a list of 2 token"),
        (LINE | {"target": {"ids": [2**60, 2], "probs": [0.5, 0.5]}}, "run.jsonl:2: target.ids: .* below 9007199254"),
        (LINE | {"target": {"ids": [2**70, 2], "probs": [0.5, 0.5]}}, "run.jsonl:2: target.ids: .* a list of 2 token"),
        (LINE | {"target": {"ids": [0], "probs": [1.0], "rest": True}}, "run.jsonl:2: target.rest: got"),
        (LINE | {"stop": "eos"}, "run.jsonl:2: stop: got eos, expected why the text ends .* end, length, stop, abort"),
        (LINE | {"seed": 1.5}, "run.jsonl:2: seed: got 1.5"),
        (LINE | {"run": {}}, "run.jsonl:2: run: got {}, expected an object about the run, on a line of its own"),
        ({"run": []}, "run.jsonl:2: run: got"),
        ({"run": {"end": 3}}, "run.jsonl:2: run.end: got 3"),
        ({"run": {"end": [True]}}, "run.jsonl:2: run.end: got"),
        ([1, 2], "run.jsonl:2: got .* one JSON object a line"),
    ],
)
def test_a_bad_record_is_named_by_file_and_line(tmp_path, line, message):
    path = write_lines(tmp_path / "run.jsonl", [LINE, line])
    with pytest.raises(InvalidInput, match=message):
        list(read(path))


def test_a_file_that_is_no_recording_is_refused_in_one_line(tmp_path):
    token, target, *_ = run(20)
    broken = {
        "empty.jsonl": b"",
        "blank.jsonl": b"\n\n",
        "text.jsonl": b"hello\n",
        "cut.jsonl.gz": gzip.compress(json.dumps(LINE).encode() * 50)[:-20],
        "cut.npz": b"PK\x03\x04 and then nothing of the kind",
        "binary.jsonl": bytes(range(128, 256)),
        "corrupt.jsonl.gz": CORRUPT,
        "twice.jsonl": b'{"token": 0, "token": 1, "target": {"probs": [0.5, 0.5]}}',
        "inner.jsonl": b'{"token": 0, "target": {"probs": [1], "probs": [0.5, 0.5]}}',
        "deep.jsonl": b"[" * 100_000,
        "digits.jsonl": b'{"token": ' + b"9" * 10_000 + b"}",
    }
    for name, content in broken.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InvalidInput) as raised:
            list(read(tmp_path / name))
        assert name in str(raised.value)
        assert "\n" not in str(raised.value)
    np.savez(tmp_path / "uneven.npz", token=token[:5], target_probs=target)
    with pytest.raises(InvalidInput, match=r"arrays of one length"):
        list(read(tmp_path / "uneven.npz"))
    np.savez(tmp_path / "bad.npz", token=token, target_probs=target * 0.9)
    with pytest.raises(InvalidInput, match=r"bad.npz: record 0: target: got a sum of 0\.9"):
        list(read(tmp_path / "bad.npz"))
    np.savez(tmp_path / "flat.npz", token=token, target_probs=target[:, 0])
    with pytest.raises(InvalidInput, match=r"record 0: target.probs"):
        list(read(tmp_path / "flat.npz"))
    with pytest.raises(InvalidInput, match="no such file"):
        list(read(tmp_path / "absent.jsonl"))
    with pytest.raises(InvalidInput, match="is a directory"):
        list(read(tmp_path))


def test_a_line_without_end_is_refused_before_memory_is_spent(tmp_path, monkeypatch):
    monkeypatch.setattr("montecarlo.recording.LINE_BYTES", 2**16)
    with gzip.open(tmp_path / "long.jsonl.gz", "wb", compresslevel=1) as file:
        for _ in range(64):
            file.write(b" " * 2**20)
    tracemalloc.start()
    with pytest.raises(InvalidInput, match=r"long.jsonl.gz:1: got a line of more than 65536 bytes"):
        list(read(tmp_path / "long.jsonl.gz"))
    assert tracemalloc.get_traced_memory()[1] < 2**20
    tracemalloc.stop()


@pytest.mark.parametrize(
    "row", [{"ids": [2, 0], "probs": [0.5, 0.25], "rest": 0.25}, ([2, 0], np.array([0.5, 0.25]), 0.25)]
)
def test_the_documented_forms_of_a_row_are_written_and_read(tmp_path, row):
    with Writer(tmp_path / "run.jsonl", engine="mine", end=[2]) as writer:
        writer.write(1, target=row, draft=row, request="a", prompt="p", seed=3)
        writer.write(2, target=row, request="a", stop="end")
    first, last = read(tmp_path / "run.jsonl")
    assert first.target.cells() == pytest.approx([0.5, 0.25, 0.25])
    assert (first.seed, first.stop, last.stop, last.end) == (3, None, "end", (2,))


@pytest.mark.parametrize(
    ("target", "fields", "message"),
    [
        ({"ids": [2, 2], "probs": [0.5, 0.5]}, {}, "run.jsonl: record 0: target.ids: .* distinct ids"),
        ([0.5, 0.4], {}, "run.jsonl: record 0: target: got a sum of 0.9"),
        ([0.5, float("nan")], {}, r"run.jsonl: record 0: target.probs\[1\]: got nan"),
        ([0.5, 0.5], {"accepted": True}, "run.jsonl: record 0: accepted: .* false alarms"),
        ([0.5, 0.5], {"stop": "end"}, "run.jsonl: record 0: stop: got end after token 1, .* end ids .0."),
    ],
)
def test_what_the_audit_would_refuse_is_refused_when_it_is_written(tmp_path, target, fields, message):
    with Writer(tmp_path / "run.jsonl", end=[0]) as writer, pytest.raises(InvalidInput, match=message):
        writer.write(1, target, **fields)


def test_a_run_says_its_end_ids_in_npz_too(tmp_path):
    p = np.tile([0.5, 0.5], (3, 1))
    np.savez(tmp_path / "run.npz", run=json.dumps({"end": [1]}), token=[0, 0, 1], target=p, stop=["", "", "end"])
    assert [record.end for record in read(tmp_path / "run.npz")] == [(1,)] * 3
    np.savez(tmp_path / "bad.npz", run=np.arange(3), token=[0, 0, 1], target=p)
    with pytest.raises(InvalidInput, match=r"bad.npz: run: got int64 of shape"):
        list(read(tmp_path / "bad.npz"))


def test_a_shortened_row_that_was_rounded_leaves_room_for_what_it_does_not_list(tmp_path):
    """Seven digits of 64 numbers may leave nothing for the rest; an unlisted token is then no certain loss."""
    line = {"token": 9, "target": {"ids": [0, 1], "probs": [0.500001, 0.5], "rest": 0}}
    (record,) = read(write_lines(tmp_path / "run.jsonl", [line]))
    assert record.target.rest == pytest.approx(1e-6)
    (exact,) = read(write_lines(tmp_path / "run.jsonl", [line | {"target": {"ids": [0, 1], "probs": [0.5, 0.5]}}]))
    assert exact.target.rest == 0


def test_the_tolerance_is_the_users(tmp_path):
    path = write_lines(tmp_path / "run.jsonl", [{"token": 0, "target": {"probs": [0.502, 0.5]}}])
    with pytest.raises(InvalidInput, match=r"a sum of 1.002"):
        list(read(path))
    (record,) = read(path, tolerance=0.01)
    assert record.target.cells().sum() == pytest.approx(1)


def test_draft_rows_fall_into_the_targets_cells():
    """Every pairing of whole and shortened rows, by hand."""
    whole_p, short_p = Row(None, np.array([0.5, 0.3, 0.2]), 0.0), Row(np.array([2, 0]), np.array([0.2, 0.5]), 0.3)
    whole_q, short_q = Row(None, np.array([0.1, 0.6, 0.3]), 0.0), Row(np.array([0, 1]), np.array([0.1, 0.6]), 0.3)
    assert draft_cells(whole_q, whole_p) == pytest.approx([0.1, 0.6, 0.3])
    assert draft_cells(short_q, whole_p) == pytest.approx([0.1, 0.6, 0.0])
    assert draft_cells(whole_q, short_p) == pytest.approx([0.3, 0.1, 0.6])
    assert draft_cells(short_q, short_p) == pytest.approx([0.0, 0.1, 0.9])


def test_memory_does_not_grow_with_the_run(tmp_path):
    """Ten times the tokens, less than a megabyte more, from lines and from npz."""
    peaks = {}
    for count in (1_000, 10_000):
        p, token = np.tile([0.5, 0.3, 0.2], (count, 1)), np.arange(count) % 2
        np.savez(tmp_path / f"{count}.npz", token=token, target_probs=p)
        line = json.dumps({"token": 0, "target": {"probs": [0.5, 0.3, 0.2]}}) + "\n"
        (tmp_path / f"{count}.jsonl").write_text(line * count)
        for kind in ("npz", "jsonl"):
            tracemalloc.start()
            audit(islice(Chunker(10).chunks(read(tmp_path / f"{count}.{kind}")), 40))
            peaks[kind, count] = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
    for kind in ("npz", "jsonl"):
        assert peaks[kind, 10_000] < peaks[kind, 1_000] + 2**20


def test_one_chunk_holds_rows_of_any_width():
    narrow, wide = Row(None, np.array([0.5, 0.5]), 0.0), Row(np.array([7, 9, 1]), np.array([0.4, 0.3, 0.2]), 0.1)
    records = [Record("a", 1, narrow, None, None, None, None), Record("b", 5, wide, wide, None, None, None)]
    (chunk,) = Chunker(2).chunks(iter(records))
    assert chunk.p.shape == (2, 4)
    assert chunk.cell.tolist() == [1, 3]
    assert chunk.best.tolist() == [[-1, -1], [0, 1]]
