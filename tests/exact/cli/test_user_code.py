"""A user's file in children of its own: however it ends, prints or depends on a hash seed, only verdicts exit so."""

import json
import shlex
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from exact import certify
from exact.cli import agreement, options
from exact.cli.main import app
from exact.enumeration.exits import Ended
from exact.runtime import child, streams
from rheo_core import TreeMethod, TreeShape

pytestmark = pytest.mark.exact

HEAD = """
import atexit, ctypes, os, random, signal, sys, threading; ME = os.getpid()

target = {True: 0.25, False: 0.75}

def fair():
    return random.random() < 0.25
"""
ENDS = {
    "sys.exit(0)": "SystemExit: 0 at rule.py:10",
    "raise SystemExit": "SystemExit at rule.py:10",
    "raise GeneratorExit": "GeneratorExit at rule.py:10",
    "raise BaseException('x')": "BaseException: x at rule.py:10",
    "raise KeyboardInterrupt": "KeyboardInterrupt at rule.py:10",
    "raise StopIteration": "StopIteration at rule.py:10",
    "raise MemoryError": "MemoryError at rule.py:10",
    "return rule()": "RecursionError: maximum recursion depth exceeded at rule.py:10",
    "os._exit(0)": "an end with exit code 0 at rule.py:10",
    "os._exit(1)": "an end with exit code 1 at rule.py:10",
    "os.abort()": "an end by SIGABRT at rule.py:10",
    "os.kill(ME, 9)": "an end by SIGKILL (out of memory, or a kill) at rule.py:10",
    "signal.raise_signal(signal.SIGTERM)": "an end by SIGTERM",
    "os.kill(ME, signal.SIGINT)": "interrupt",
    "ctypes.string_at(0)": "an end by SIGSEGV at rule.py:10",
    "t = threading.Thread(target=os._exit, args=(0,)); t.start(); t.join()": "",
}
"""What a user's function does, and what is said of it."""
shown = {"module": "exact.cli.main", "terminal": False, "width": 120}


def written(folder, body, at_import=False):
    """A file whose `rule` does `body` before it answers rightly; its spec."""
    folder.mkdir()
    path = folder / "rule.py"
    text = f"{body}\nrule = fair\n" if at_import else f"def rule():\n    {body}\n    return fair()\n"
    path.write_text(f"{HEAD}\n{text}", encoding="utf-8")
    return f"{path}:rule"


def asked(spec, *more):
    """What is said of one child that certifies a function: (exit code, or None without a verdict; the line)."""
    line = ["rheo-exact", "certify", "--torch", spec, *more]
    for process, answer in child.answers("exact.cli.agreement:in_child", line, shown, alone=True):
        if answer is None:
            return None, process.end()
        return (answer["code"] if answer["message"] is None else None), answer["message"] or answer["out"]
    raise AssertionError("no child")


def all_asked(specs):
    """The same of many, two at a time."""
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(asked, specs))


def in_full(*line, alone=False):
    """The exit code of a command line, with all of its children."""
    return agreement.agreed("exact.cli.agreement:in_child", ["rheo-exact", *line], shown, alone)


def test_no_end_of_the_code_under_test_is_a_verdict(tmp_path):
    specs = [written(tmp_path / str(number), body) for number, body in enumerate(ENDS)]
    for (body, said), (code, line) in zip(ENDS.items(), all_asked(specs), strict=True):
        assert code is None, body
        assert said in line, body
        assert "\n" not in line, body


def test_an_end_at_import_is_no_verdict_and_what_comes_after_one_changes_nothing(tmp_path):
    bodies = ["sys.exit(0)", "os._exit(0)", "raise KeyboardInterrupt", "os.abort()"]
    late = ["atexit.register(os._exit, 1)", "os.close(1)", "sys.stdout = None", "print('lossless'); os.write(1, b'x')"]
    specs = [written(tmp_path / str(n), body, at_import=True) for n, body in enumerate([*bodies, *late])]
    answers = all_asked(specs)
    for body, (code, line) in zip(bodies, answers, strict=False):
        assert code is None, body
        assert "rule.py:9" in line, body
    for body, (code, line) in zip(late, answers[len(bodies) :], strict=True):
        assert code == 0, (body, line)
        assert line.startswith("lossless"), body


def test_without_a_child_an_exit_would_read_as_a_verdict(tmp_path):
    """The planted fault: the same call in one process ends with the code that the user's code chose."""
    spec = written(tmp_path / "one", "os._exit(0)")
    program = f"from exact.cli import options, main; options.run(main.app, ['certify', '--torch', {spec!r}])"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


ORDERS = """
import ctypes, random
target = {True: 0.5, False: 0.5}
SALTED = hash("accept") % 7

def by_order():
    return (random.random() < 0.5) if next(iter({"a", "b"})) == "a" else random.random() < 0.25

def by_hash():
    return random.random() < 0.5 + SALTED / 100

def always():
    return random.random() < 0.5
"""


@pytest.mark.parametrize("name", ["by_order", "by_hash"])
def test_a_law_that_depends_on_the_hash_seed_is_refused(tmp_path, capsys, name):
    path = tmp_path / "orders.py"
    path.write_text(ORDERS)
    assert in_full("certify", "--torch", f"{path}:{name}") == 2
    said = capsys.readouterr()
    assert "PYTHONHASHSEED=1" in said.err
    assert "order of a set" in said.err
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert in_full("certify", "--torch", f"{path}:{name}", alone=True) in (0, 1)  # the planted fault: nothing compared


MEMORY = """
import ctypes, random
target = {True: 0.5, False: 0.5}
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
FRESH = ctypes.string_at(libc.malloc(4096), 4096)[100]

def rule():
    return random.random() < (0.25 if FRESH else 0.5)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="fresh memory is filled by malloc of the GNU C library alone")
def test_fresh_memory_is_filled_in_two_ways(tmp_path, capsys):
    path = tmp_path / "memory.py"
    path.write_text(MEMORY)
    assert in_full("certify", "--torch", f"{path}:rule") == 2
    assert "uninitialised memory" in capsys.readouterr().err


def test_what_a_users_file_prints_is_no_part_of_the_answer(tmp_path, capsys):
    spec = written(tmp_path / "loud", "print('{\"lossless\": true}\\x1b[31m')")
    saved = tmp_path / "saved.json"
    for run in (in_full, lambda *line: options.run(app, list(line))):
        saved.unlink(missing_ok=True)
        assert run("certify", "--torch", spec, "--json", "--save", str(saved)) == 0
        said = capsys.readouterr()
        assert json.loads(said.out) == json.loads(saved.read_text())
        assert said.err.startswith("note: printed by the code under test: '{\"lossless\": true}\\x1b[31m'")
        assert said.err.count("\n") == 1


def test_nothing_is_saved_where_the_children_differ(tmp_path):
    path = tmp_path / "orders.py"
    path.write_text(ORDERS)
    assert in_full("certify", "--torch", f"{path}:by_order", "--save", str(tmp_path / "saved.json")) == 2
    assert not (tmp_path / "saved.json").exists()


@pytest.mark.parametrize(
    "end", [SystemExit(0), GeneratorExit(), BaseException("x"), KeyboardInterrupt(), StopIteration()]
)
def test_in_python_an_end_inside_a_rule_is_refused_with_its_line(end):
    def verify(p, tail, candidates, sampled, lead, chooser, at):
        raise end

    rule = TreeMethod("ends", None, lead=1, verify=verify)
    with pytest.raises(Ended, match=rf"verify: got {type(end).__name__}.* at test_user_code.py:\d+"):
        certify(rule, lambda prefix: [0.5, 0.5], lambda prefix: [0.5, 0.5], TreeShape(2, 1, 1))


def test_a_ctrl_c_is_no_end_of_the_rules_own():
    def verify(p, tail, candidates, sampled, lead, chooser, at):
        import signal

        signal.raise_signal(signal.SIGINT)

    rule = TreeMethod("interrupted", None, lead=1, verify=verify)
    with pytest.raises(KeyboardInterrupt):
        certify(rule, lambda prefix: [0.5, 0.5], lambda prefix: [0.5, 0.5], TreeShape(2, 1, 1))


SLOW = """
import time

def verify(p, tail, candidates, sampled, lead, chooser, at):
    print("begun", flush=True)
    open(__file__ + ".begun", "w").close()
    time.sleep(60)
"""


def test_a_ctrl_c_ends_all_children(tmp_path):
    path, begun = tmp_path / "slow.py", tmp_path / "slow.py.begun"
    path.write_text(SLOW)
    program = "from exact.cli.main import main; main()"
    call = [sys.executable, "-c", program, "hunt", f"{path}:verify"]
    heard = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # a shell's background ignores it
    with subprocess.Popen(call, stderr=subprocess.PIPE, stdout=subprocess.PIPE, preexec_fn=heard) as process:
        give_up = time.monotonic() + 60
        while time.monotonic() < give_up and not begun.exists():
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, b"", b"interrupted\n")


def test_a_closed_stdout_is_no_verdict():
    program = "from exact.cli.main import main; main()"
    call = f"{shlex.quote(sys.executable)} -c {shlex.quote(program)} table1 >&-"
    done = subprocess.run(call, shell=True, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "error: output: got a closed stdout, expected one that can be written\n"


@pytest.mark.parametrize(("text", "shown"), [("a\x1b[2Jb", "a\\x1b[2Jb"), ("\ud800", "\\ud800"), ("τ", "τ")])
def test_control_characters_are_written_out(text, shown):
    assert streams.visible(text) == shown
