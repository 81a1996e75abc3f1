"""The pytest fixture `assert_lossless`, there as soon as the package is installed."""

from __future__ import annotations

from collections.abc import Callable

import pytest


@pytest.fixture
def assert_lossless() -> Callable[..., None]:
    """`exact.assert_lossless`, so that a user's own rule is one line in a test."""
    from exact.verdict.assert_lossless import assert_lossless as check

    return check
