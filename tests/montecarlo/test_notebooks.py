"""The notebook of this room runs as it stands: its own assertions hold and it still says what is stored in it."""

import pytest

from tests.exact.test_notebooks import runs_and_shows_what_is_stored


@pytest.mark.certificate
def test_the_notebook_runs_and_shows_what_is_stored():
    runs_and_shows_what_is_stored("montecarlo", 4)
