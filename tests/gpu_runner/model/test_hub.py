"""Hub names without a hub: a target and an EAGLE-3 head out of a cache folder laid out as huggingface_hub keeps it."""

import os
import shutil
import subprocess
import sys

import pytest
import torch

from gpu_runner.model import load
from gpu_runner.model.tiny import tiny_head, tiny_model
from rheo_core import InvalidInput

COMMIT = "0123456789abcdef0123456789abcdef01234567"
VOCABULARY = 13
SCRIPT = """
import sys
import torch
from gpu_runner.model import load
from rheo_core import InvalidInput

torch.set_num_threads(1)
target = load.load_target("owner/tiny", torch.device("cpu"), "float32")
draft = load.load_draft("owner/head", target, "float32")
assert target.model.config.num_hidden_layers == 4, target.model.config
print(target.name, float(target.embedding.double().sum()), type(draft).__name__, draft.vocabulary)
for refused in (
    lambda: load.load_target("owner/absent", torch.device("cpu"), "float32"),
    lambda: load.load_draft("owner/absent", target, "float32"),
):
    try:
        refused()
    except InvalidInput as error:
        print("refused:", error)
"""


def cached(hub, name, source):
    """`source`'s files as the one snapshot of the repository `name`: blobs, links to them, and the branch's commit."""
    folder = hub / f"models--{name.replace('/', '--')}"
    snapshot, blobs = folder / "snapshots" / COMMIT, folder / "blobs"
    for made in (snapshot, blobs, folder / "refs"):
        made.mkdir(parents=True)
    (folder / "refs" / "main").write_text(COMMIT)
    for number, file in enumerate(sorted(source.iterdir())):
        shutil.copy(file, blobs / f"blob{number}")
        (snapshot / file.name).symlink_to(os.path.relpath(blobs / f"blob{number}", snapshot))


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """What the script says, offline and in a process of its own: the settings of the hub are read once."""
    folder = tmp_path_factory.mktemp("hub")
    tiny_model(vocabulary=VOCABULARY, dtype=torch.float32).model.save_pretrained(folder / "tiny")
    tiny_head(folder / "head", VOCABULARY, 11)
    for name in ("tiny", "head"):
        cached(folder / "hub", f"owner/{name}", folder / name)
    settings = {"HF_HOME": str(folder), "HF_HUB_CACHE": str(folder / "hub"), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False, env={**os.environ, **settings}
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_target_and_head_are_found_in_the_cache(said):
    name, mass, draft, vocabulary = said[0].split()
    expected = float(tiny_model(vocabulary=VOCABULARY, dtype=torch.float32).embedding.double().sum())
    assert (name, draft, vocabulary) == ("owner/tiny", "EagleDraft", "11")
    assert float(mass) == pytest.approx(expected, abs=1e-6)


def test_a_name_that_cannot_be_fetched_is_one_line(said):
    assert len(said) == 3
    assert said[1].startswith("refused: model: got owner/absent, expected a causal LM: hub name, folder or GGUF file")
    assert said[2].startswith("refused: draft: got owner/absent, expected skip:LAYERS, a folder, or a hub name")


@pytest.mark.parametrize("spec", ["./absent", "/no/such/folder", "~/absent", "absent/", "a/b/c", "..\\absent"])
def test_what_no_hub_name_can_be_is_not_asked_of_the_hub(monkeypatch, spec):
    monkeypatch.setattr(load, "_pretrained", None)
    monkeypatch.setattr(load, "_snapshot", None)
    with pytest.raises(InvalidInput, match=r"model: got .* expected a folder that exists, or a hub name"):
        load.load_model(spec, torch.device("cpu"), "float32")
    with pytest.raises(InvalidInput, match=r"draft: got .* expected a folder that exists, or a hub name"):
        load.load_draft(spec, tiny_model(vocabulary=VOCABULARY), "float32")
