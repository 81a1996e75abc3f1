"""What the system's entropy decides cannot be walked: it is refused by name, never taken for one outcome."""

import os
import random
import secrets

import pytest

from exact.interception import Unsupported, certify_function

pytestmark = pytest.mark.exact
HALF = {0: 0.5, 1: 0.5}


def from_urandom():
    return int(os.urandom(1)[0] < 128)


def from_secrets():
    return secrets.randbelow(2)


def mixed():
    return 0 if os.urandom(1)[0] < 8 else int(random.random() < 0.5)


@pytest.mark.parametrize("function", [from_urandom, from_secrets, mixed])
def test_entropy_is_refused_and_comes_back_afterwards(function):
    with pytest.raises(Unsupported, match=r"entropy|urandom"):
        certify_function(function, target=HALF)
    assert len(os.urandom(4)) == 4
    assert secrets.randbelow(3) in range(3)
