"""The documentation site: `sphinx-build -W docs site` (extra `docs`)."""

import shutil
from importlib.metadata import version as version_of
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent

project = "rheo-lossless"
author = copyright = "the rheo-lossless authors"
release = version = version_of("rheo-lossless")

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.viewcode", "sphinx_copybutton"]
html_theme = "furo"
html_title = "rheo-lossless"
exclude_patterns = ["_build"]
nb_execution_mode = "off"  # the tests run the notebooks and hold them to what is stored
myst_heading_anchors = 3
myst_enable_extensions = ["deflist"]
default_role = "code"
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
copybutton_prompt_text = "$ "
suppress_warnings = ["mystnb.unknown_mime_type"]

# Pages that stand elsewhere in the project, read from where they stand.
ELSEWHERE = {"notebooks": sorted((ROOT / "notebooks").glob("*.ipynb"))}
for folder, pages in ELSEWHERE.items():
    (HERE / folder).mkdir(exist_ok=True)
    for page in pages:
        shutil.copyfile(page, HERE / folder / page.name)
