"""Malformed command lines and files for all commands: mutations of right ones, each of which must end in good order.

A call ends with 0, 1, 2, 3 or 130; with 2 it says exactly one line, `error: ...`; it never shows a traceback, and never
the line of an error that nobody thought of. `python -m tests.fuzz 10000 [SEED]` prints what was found.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import random
import shlex
import signal
import sys
import tempfile
import traceback
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from exact.cli import options
from exact.enumeration.exits import Stop
from tests.wrong_calls import APPS

SECONDS = 5.0
"""A call is stopped after so long; it is counted, as a mutation may ask for much work."""

CODES = {0, 1, 2, 3, 130}
ROWS = {"contexts": {"*": {"target": ["1/3", "1/3", "1/3"], "draft": ["1/2", "3/10", "1/5"]}}}
LOGITS = {"contexts": {"*": {"target_logits": [0, 1.5], "draft_logits": [1, 0]}}}
RECORD = {"token": 0, "target": {"probs": [0.5, 0.5]}, "request": "a", "position": 0}
FUNCTION = "import random\ntarget = [0.5, 0.5]\n\ndef coin():\n    return int(random.random() < 0.5)\n"
RULE = "def rule(p, tail, candidates, sampled, lead, chooser, at):\n    return chooser.index(p), -1\n"
SMALL = "--rows rows.json --width 2 --depth 1 --budget 1"
CALLS = (
    f"rheo-exact certify rheo {SMALL} --lead 1 --json --save out.json",
    f"rheo-exact certify rule.py:rule {SMALL} --cycles 1 --length 1 --resume journal --report out.html",
    "rheo-exact certify rheo --rows logits.json --temperature 0.7 --depth 1 --budget 1 --arithmetic float64",
    "rheo-exact certify --torch function.py:coin --coins ideal --limit 10 --seconds 2 --target target",
    "rheo-exact check certificate.json",
    f"rheo-exact classes rheo {SMALL} --json",
    f"rheo-exact compare rheo top-k {SMALL} --lead 0",
    "rheo-exact faults A1 --json",
    "rheo-exact hunt rheo-raw --seconds 0.2 --max-vocabulary 2 --first --seed 0 --pytest test_out.py",
    "rheo-exact hunt chain --seconds 0.2 --denominator 1 --depth 1 --width 1 --budget 1",
    "rheo-exact rates --target 1/2,1/2 --draft 1/3,2/3 --width 1 --json",
    "rheo-exact table1 --json",
    "rheo-montecarlo simulate rheo --rows rows.json --cycles 8 --width 2 --depth 1 --budget 1 --seed 1",
    "rheo-montecarlo power chain --rows rows.json --samples 100 --tv 0.1 --cells 4 --width 1 --depth 1 --budget 1",
    "rheo-montecarlo audit records.jsonl --json",
    "rheo-montecarlo audit records.jsonl.gz --false-alarm 0.01",
    "gpu_runner certify rheo --draft skip --device cpu --fault nothing",
    "gpu_runner bench rheo --target nowhere --draft skip:1 --device cpu --width 2 --depth 2 --budget 3",
    "gpu_runner audit --method rheo:0 --target nowhere --dtype float32 --lead 0 --temperature 0.7",
    "gpu_runner rows --target nowhere --prompt a --tokens 3 --levels 1 --save gpu.json",
    "gpu_runner tree --target nowhere --method rheo --width 2 --depth 2 --budget 3 --threads 1",
    "gpu_runner assisted rheo --target nowhere --draft skip:1 --width 2",
    "gpu_runner data --check . --json",
    "gpu_runner train --text records.jsonl --out head --target nowhere --steps 1",
    "gpu_runner reproduce --target nowhere --out results",
)
"""Right and small calls, and for what would load a model one that is refused at once."""
NASTY = (
    "", " ", "-1", "0", "1", "2", "3", "7", "nan", "inf", "-inf", "1e999", "1e999999999", "0x10", "1_000", "1/0", "0/1",
    "-0", "1.5", "true", "null", "[]", "{}", "*", "a:b", ":", "rule.py:", "rule.py:none", "function.py:target", ".",
    "/", "/dev/null", "/dev/full", "/dev/zero", "missing/x",
    "rows.json", "certificate.json", "binary", "deep.json", "records.jsonl",
    "rule.py:rule", "τ", "\udc80", "a\nb", "\x1b[31m", "x" * 5000, "--", "--json", "--help", "-h", "%s", "{0}",
    "rheo", "rheo-raw", "chain", "99999999999999999999",
)  # fmt: skip
"""Words that stand where another was."""
VALUES: tuple[object, ...] = (
    None, True, -1, 0, 10**30, 0.5, float("nan"), float("inf"), "", "1/0", "1/3", "1e999999999", "nan", [], {}, [[]],
    {"": {}}, "\ud800", "\x1b[2J", "x" * 1000, ["1/2", "1/2"],
)  # fmt: skip
"""JSON values that stand where another was."""


@dataclass(frozen=True)
class Ended:
    """How a call ended."""

    line: str
    code: int | None
    out: str
    err: str
    stopped: bool = False

    @property
    def problem(self) -> str:
        """What is wrong with that end; empty where nothing is."""
        lines = self.err.splitlines()
        if self.code not in CODES:
            return f"ended with {self.code}"
        if not self.stopped and "Traceback (most recent" in self.out + self.err:  # a stop in a callback shows one
            return "a traceback"
        if self.code == 2 and not (len(lines) == 1 and lines[0].startswith("error: ")):
            return "exit code 2 without exactly one line of error"
        if not self.stopped and "RHEO_TRACEBACK" in self.err:
            return "an error that nobody thought of"
        return ""


def written(draw: random.Random, changed: bool = True) -> None:
    """The files that the calls name, one of them mutated most of the time."""
    certificate = Path("certificate.json.right").read_text(encoding="utf-8")
    record = json.dumps(RECORD) + "\n"
    files: dict[str, bytes] = {
        "rows.json": json.dumps(ROWS).encode(),
        "logits.json": json.dumps(LOGITS).encode(),
        "certificate.json": certificate.encode(),
        "records.jsonl": (record * 3).encode(),
        "records.jsonl.gz": gzip.compress((record * 3).encode()),
        "function.py": FUNCTION.encode(),
        "rule.py": RULE.encode(),
        "binary": bytes(range(256)),
        "deep.json": b"[" * 100_000,
    }
    Path("journal").unlink(missing_ok=True)
    if changed and draw.random() < 0.7:
        name = draw.choice([*files][:5])
        files[name] = mutated(draw, files[name])
    for name, data in files.items():
        Path(name).write_bytes(data)


def mutated(draw: random.Random, data: bytes) -> bytes:
    """A file with a value replaced, a byte changed, a part cut out or doubled, or its end lost."""
    how = draw.randrange(5)
    if how < 2:
        with contextlib.suppress(ValueError):
            return json.dumps(replaced(draw, json.loads(data))).encode()
    at, end = sorted((draw.randrange(len(data)), draw.randrange(len(data))))
    if how == 2:
        return data[:at] + bytes([draw.randrange(256)]) + data[at + 1 :]
    if how == 3:
        return data[:at] + data[end:]
    return data[:at] if draw.random() < 0.5 else data[:end] + data[at:]


def replaced(draw: random.Random, value: object) -> object:
    """A JSON value with one part replaced or lost."""
    if isinstance(value, dict) and value and draw.random() < 0.9:
        key = draw.choice(list(value))
        if draw.random() < 0.1:
            return {other: each for other, each in value.items() if other != key}
        return {**value, key: replaced(draw, value[key])}
    if isinstance(value, list) and value and draw.random() < 0.9:
        at = draw.randrange(len(value))
        return [*value[:at], replaced(draw, value[at]), *value[at + 1 :]]
    return draw.choice(VALUES)


def line_of(draw: random.Random) -> list[str]:
    """A right call with up to two words replaced, dropped, doubled or added."""
    words = shlex.split(draw.choice(CALLS))
    for _ in range(draw.randrange(3)):
        at = draw.randrange(1, len(words) + 1)
        how = draw.randrange(6)
        if how < 3 and at < len(words):
            words[at] = draw.choice(NASTY)
        elif how == 3:
            del words[at : at + 1]
        else:
            words[at:at] = [draw.choice(NASTY)] if how == 4 else words[max(1, at - 2) : at]
    return words


def ended(words: list[str], seconds: float = SECONDS) -> Ended:
    """Run a call in this process."""
    out, err = io.StringIO(), io.StringIO()
    stopped = False

    def stop(number: int, frame: object) -> None:
        nonlocal stopped
        stopped = True
        raise Stop

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    code: int | None = None
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = options.run(APPS[words[0]], words[1:])
    except BaseException:  # what should not come out
        err.write(traceback.format_exc())
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    return Ended(shlex.join(words), code, out.getvalue(), err.getvalue(), stopped)


def fuzz(count: int, seed: int = 0) -> tuple[Counter[str], list[Ended]]:
    """How many calls ended how, and those that ended badly, of `count` calls in a folder of their own."""
    counted: Counter[str] = Counter()
    bad = []
    old = Path.cwd()
    with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, {"HF_HUB_OFFLINE": "1"}):
        os.chdir(folder)
        try:
            Path("rows.json").write_text(json.dumps(ROWS))
            right = f"rheo-exact certify rheo {SMALL} --save certificate.json.right"
            assert ended(shlex.split(right), 60).code == 0
            for call in CALLS:  # as they are, and without haste: a stop inside an import would break what follows
                written(random.Random(0), changed=False)
                first = ended(shlex.split(call), 300)
                assert not first.problem, first
            for number in range(count):
                draw = random.Random(f"{seed}/{number}")
                written(draw)
                found = ended(line_of(draw))
                counted["stopped" if found.stopped else f"exit {found.code}"] += 1
                if found.problem:
                    bad.append(found)
        finally:
            os.chdir(old)
    return counted, bad


def main() -> None:
    """Print what came of so many calls."""
    count, seed = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    counted, bad = fuzz(count, seed)
    print(f"{count} calls: {dict(sorted(counted.items()))}; {len(bad)} ended badly")
    for each in bad:
        print(f"{each.problem}\n  {each.line[:300]}\n  {each.code} {each.err[-600:]}")


if __name__ == "__main__":
    main()
