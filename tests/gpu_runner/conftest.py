"""One thread: tiny models gain nothing from more, and several processes share the cores. Logs of torch are not kept."""

import logging

import pytest
import torch

torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def untraced():
    """torch logs every step of compiling at level DEBUG, which pytest would keep: most of the time of those tests."""
    logger = logging.getLogger("torch.__trace")
    before, logger.propagate = logger.propagate, False
    yield
    logger.propagate = before
