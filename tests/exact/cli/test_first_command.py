"""The first command that a newcomer types, and the whole list behind it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from exact.cli import options
from exact.cli.main import app

pytestmark = pytest.mark.exact


def lone(*arguments):
    """The lines that a command prints in a process of its own; it must end with 0."""
    program = f"import sys; sys.argv = ['rheo-exact', *{arguments!r}]; from exact.cli.main import main; main()"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()


def test_the_main_command_certifies_and_refutes_as_labelled():
    root = Path(__file__).parents[3]
    result = subprocess.run([sys.executable, "-m", "exact"], capture_output=True, text=True, check=False, cwd=root)
    assert "Usage" in result.stdout
    lines = lone("certify")
    assert lines[0].startswith("Three ways to draft and verify")
    assert sum(" lossless " in line and " proved " in line for line in lines) == 3
    assert sum("lossy, as expected" in line for line in lines) == 2
    assert any("P(0) = 3/5, right is 1/2; TV 9/50" in line for line in lines)
    assert any(line.startswith("scope:") for line in lines)


@pytest.mark.certificate
def test_the_whole_list_is_as_labelled_and_as_the_tutorial_shows_it():
    lines = lone("certify", "--all")
    assert sum(" lossless " in line and " proved " in line for line in lines) == 25
    assert sum("lossy, as expected" in line for line in lines) == 2
    tutorial = (Path(__file__).parents[3] / "docs" / "tutorial.md").read_text(encoding="utf-8")
    shown = tutorial.split("```text\n")[1].split("```")[0].splitlines()
    said = " ".join(" ".join(lines).split())  # wherever a line is broken
    assert all(" ".join(line.split()) in said for line in shown if line != "...")


@pytest.mark.parametrize(("words", "at", "said"), [("cert", 1, "certify"), ("certify --wid", 2, "--width")])
def test_a_shell_can_complete_a_line(words, at, said):
    asked = {"_RHEO_EXACT_COMPLETE": "complete_bash", "COMP_WORDS": f"rheo-exact {words}", "COMP_CWORD": str(at)}
    program = "import sys; sys.argv = ['rheo-exact']; from exact.cli.main import main; main()"
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, env=os.environ | asked
    )
    assert (result.returncode, result.stdout.split(), result.stderr) == (0, [said], "")


def test_flags_stand_in_help_without_a_type(capsys):
    for line in (["--help"], ["certify", "--help"]):
        assert options.run(app, line) == 0
        assert "<bool>" not in capsys.readouterr().out
