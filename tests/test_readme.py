"""The README's code runs, and its commands end as it says."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

TEXT = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(python|console)\n(.*?)```", TEXT, re.DOTALL)


def in_order(folder):
    """Write files, run programs and commands as the README has them; (what was run, exit code, expected) of each."""
    for kind, block in BLOCKS:
        first, _, code = block.partition("\n")
        if first.startswith("# file: "):
            name = first.removeprefix("# file: ")
            (folder / name).write_text(code, encoding="utf-8")
        elif kind == "python":
            yield block, run([sys.executable, "-c", block], folder), 0
        else:
            for command, code in re.findall(r"^\$ (rheo-\w+ .*)\n# exit (\d)", block, re.MULTILINE):
                program, *arguments = shlex.split(command)
                yield command, run([str(Path(sys.executable).parent / program), *arguments], folder), int(code)


def run(command, folder):
    """The exit code of a command, in `folder`."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=environment)
    sys.stderr.write(result.stderr[-2000:])
    return result.returncode


@pytest.mark.exact
def test_code_and_commands_do_what_the_readme_says(tmp_path):
    ran = list(in_order(tmp_path))
    assert len(ran) >= 4
    assert [(what, code) for what, code, _ in ran] == [(what, expected) for what, _, expected in ran]


def test_the_two_commands_stand_alone_on_their_lines():
    for end in ("rheo-exact certify", "pytest"):
        pattern = rf"^pip install -c constraints\.txt .* && {end}$"
        assert len(re.findall(pattern, TEXT, re.MULTILINE)) == 1
