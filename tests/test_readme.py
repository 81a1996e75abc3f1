"""What README.md and docs/ show is true: code and commands run as they stand, and end as it says.

A fenced block runs in order with the others of its document, in a folder of its own; a block whose first line is
`# not run ...` or `# run by ...` says why it does not, and is listed here. Commands that are only mentioned are parsed:
each must exist, with its options.
"""

import contextlib
import gzip
import io
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer

from exact.cli import options, usage
from montecarlo.recording import read
from tests.wrong_calls import APPS

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
DOCUMENTS = [README, *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```([\w{}-]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\$ ((?:rheo-exact|rheo-montecarlo|gpu_runner) .*)\n# exit (\d)", re.MULTILINE)
MODEL = "# run by `pytest -m model` alone"
NOT_RUN = {
    "# run by `pytest -m model` alone: it fetches SmolLM2-135M-Instruct once, 93 MB",
    "# not run by the tests: it needs vLLM and a GPU",
    "# not run by the tests: it needs SGLang and a GPU",
}


def blocks(document):
    """(kind, text) of every fenced block."""
    found = FENCE.findall(document.read_text(encoding="utf-8"))
    return [(kind, text) for kind, text in found if kind not in ("{toctree}", "{eval-rst}")]


def excuse(block):
    """The first line of a block that says why a plain run leaves it out, else nothing."""
    first = block.partition("\n")[0]
    return first if first.startswith(("# not run", "# run by")) else ""


def play(kind, block):
    """Run one block in the current folder; what it prints and its exit codes are what it shows."""
    first, _, rest = block.partition("\n")
    if first.startswith("# file: "):
        Path(first.removeprefix("# file: ")).write_text(rest, encoding="utf-8")
    elif kind == "python":
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block, "README", "exec"), {"__name__": "readme"})
        shown = re.findall(r"^# (.*)$", re.split(r"^print\(.*\)$", block, flags=re.MULTILINE)[-1], re.MULTILINE)
        assert not shown or printed.getvalue().splitlines() == shown
    elif kind == "console":
        found = COMMAND.findall(block)
        assert len(found) == block.count("$ "), block
        for command, code in found:
            program, *arguments = shlex.split(command)
            assert options.run(APPS[program], arguments) == int(code), command
    elif kind == "json":
        for line in block.splitlines():
            known(line)


def known(line):
    """A line of JSON is a record of a run or a rows file, and is read as one."""
    if "contexts" in json.loads(line):
        Path("own_rows.json").write_text(line, encoding="utf-8")
        assert options.run(APPS["rheo-exact"], ["certify", "top-k", "--rows", "own_rows.json", "--depth", "1"]) == 0
    else:
        Path("line.jsonl.gz").write_bytes(gzip.compress(line.encode()))
        assert len(list(read(Path("line.jsonl.gz")))) == 1


@pytest.mark.exact
@pytest.mark.parametrize(
    "document",
    [README, *(pytest.param(path, marks=pytest.mark.certificate) for path in DOCUMENTS[1:])],
    ids=lambda path: path.name,
)
def test_code_and_commands_do_what_the_document_says(document, tmp_path, monkeypatch):
    pytest.importorskip("torch", reason="torch is not installed (extra `torch`)")
    monkeypatch.chdir(tmp_path)
    for kind, block in blocks(document):
        assert kind in ("python", "console", "json", "sh", "text"), "say what the block is, so that it can be tested"
        if not excuse(block):
            play(kind, block)


@pytest.mark.model
def test_blocks_that_need_a_real_model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = [(kind, block) for path in DOCUMENTS for kind, block in blocks(path) if excuse(block).startswith(MODEL)]
    assert found
    for kind, block in found:
        play(kind, block)


def test_a_block_that_is_not_run_says_why():
    assert {excuse(block) for path in DOCUMENTS for _, block in blocks(path)} == {"", *NOT_RUN}


def test_the_two_commands_stand_alone_on_their_lines_and_ci_runs_them():
    lines = [line for kind, block in blocks(README) if kind == "sh" for line in block.splitlines()]
    assert [line.rpartition(" && ")[2] for line in lines] == ["rheo-exact certify", "pytest"]
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    for line in lines:
        install, _, command = line.partition(" && ")
        assert re.fullmatch(r"pip install -c constraints\.txt .*", install)
        assert install in workflow
        assert command in workflow


def mentioned():
    """Every command that a document shows or mentions, with options or not."""
    for path in DOCUMENTS:
        for line in re.findall(
            r"(?:^    |^\$ |`)((?:rheo-exact|rheo-montecarlo|gpu_runner) [^`\n]*)",
            path.read_text(encoding="utf-8"),
            re.MULTILINE,
        ):
            for command in re.split(r" && ", line.partition(" #")[0]):
                if "|" not in command and "..." not in command:
                    yield path.name, command.strip()


@pytest.mark.parametrize(("where", "command"), sorted(set(mentioned())))
def test_a_command_that_is_mentioned_exists_with_its_options(where, command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    program, name, *arguments = shlex.split(command)
    group: Any = typer.main.get_command(APPS[program])
    problem = ""
    group.load(name)
    try:
        group.commands[name].make_context(name, arguments)
    except usage.UsageError as error:
        problem = error.format_message()
    assert not problem or problem.startswith("Missing"), f"{where}: {command}"
