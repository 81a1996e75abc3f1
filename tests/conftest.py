"""Which tests a plain `pytest` runs, and why one is left out.

Tests marked `benchmark`, `slow`, `model` or `certificate` run only when asked for: when the -m expression names the
marker, or when the test itself is named on the command line (one of `certificate` by its parameters as well where the
test has a plain part, which its name alone means). Those of `certificate` that compile Coq run under `-m rocq` too.
This is done here and not by a default -m, which any -m on the command line would replace: `pytest -m exact` must not
run the slow ones.
"""

import re
import shutil

import pytest
from hypothesis import settings

OPT_IN = ("benchmark", "slow", "model", "certificate")

# Fixed examples, so that a failure is everyone's failure; no deadline, since exact arithmetic has no even pace.
# `pytest --hypothesis-profile=explore` looks for new ones.
settings.register_profile("rheo", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None, derandomize=False, max_examples=1000)
settings.load_profile("rheo")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests that run only when asked for."""
    asked = set(re.findall(r"\w+", config.option.markexpr or ""))
    named = [argument for argument in config.args if "::" in argument]
    closed = {marker for marker in OPT_IN if marker not in asked}
    plain = {item.nodeid.partition("[")[0] for item in items if not any(map(item.get_closest_marker, OPT_IN))}

    def left_out(item: pytest.Item) -> bool:
        markers = {marker for marker in closed if item.get_closest_marker(marker)}
        if "rocq" in asked and item.get_closest_marker("rocq"):
            markers.discard("certificate")
        parts = "certificate" in markers and item.nodeid.partition("[")[0] in plain
        naming = [each for each in named if "[" in each] if parts else named
        return bool(markers) and not any(_names(argument, item.nodeid) for argument in naming)

    deselected = [item for item in items if left_out(item)]
    if deselected:
        config.hook.pytest_deselected(items=deselected)
        items[:] = [item for item in items if not left_out(item)]


def _names(argument: str, nodeid: str) -> bool:
    """Whether a command-line argument such as `tests/core/test_tree.py::test_name` means this test."""
    path, _, inside = argument.replace("\\", "/").partition("::")
    test_path, _, test_inside = nodeid.partition("::")
    same_file = path.removeprefix("./") == test_path or path.endswith("/" + test_path)
    return same_file and re.match(re.escape(inside) + r"($|::|\[)", test_inside) is not None


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip, with the reason, what this machine cannot run."""
    if item.get_closest_marker("rocq") and shutil.which("coqc") is None:
        pytest.skip("coqc is not installed (Debian: coq and the libcoq-mathcomp packages)")
    if item.get_closest_marker("gpu"):
        torch = pytest.importorskip("torch", reason="torch is not installed (extra `torch`)")
        if not torch.cuda.is_available():
            pytest.skip("no CUDA device")
