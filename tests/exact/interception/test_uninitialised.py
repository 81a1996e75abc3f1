"""Code that reads uninitialised memory is refused by name; code that only writes it is not."""

import random

import numpy as np
import pytest

import exact
from exact.interception import certify_function, torch_law
from exact.interception import session as sessions
from exact.interception.session import FILLINGS

torch = pytest.importorskip("torch", reason="torch is not installed (extra `torch`)")
pytestmark = pytest.mark.exact
P = torch.tensor([0.5, 0.25, 0.25])


def half():
    return int(random.random() < 0.5)


READERS = {
    "torch.empty": lambda: int(torch.empty(1).item() > 1e30) | half(),
    "torch.empty, between": lambda: int(0.1 < torch.empty(1) < 0.9) | half(),
    "torch.empty, negative": lambda: int(torch.empty(1) < 0) | half(),
    "torch.empty, NaN": lambda: int(torch.empty(1).isnan()) | half(),
    "torch.empty, integers": lambda: int(torch.empty(1, dtype=torch.long).item() > 5) | half(),
    "empty_like": lambda: int(torch.empty_like(P)[1] != 0) | half(),
    "new_empty": lambda: int(P.new_empty(2).sum() != 0) | half(),
    "empty_strided": lambda: int(torch.empty_strided((2,), (1,))[0] != 0) | half(),
    "resize_": lambda: int(torch.zeros(1).resize_(3)[2] != 0) | half(),
    "torch.Tensor": lambda: int(torch.Tensor(2)[0] != 0) | half(),
    "np.empty": lambda: int(np.empty(1)[0] != 0) | half(),
    "np.empty_like": lambda: int(np.empty_like(np.ones(2))[0] != 0) | half(),
    "np.ndarray": lambda: int(np.ndarray((1,))[0] != 0) | half(),
}


@pytest.mark.parametrize("name", READERS)
def test_a_reader_is_refused_with_its_line(name):
    with pytest.raises(exact.NotReproducible, match=r"uninitialised memory: test_uninitialised.py:\d+"):
        certify_function(READERS[name], target=[0.5, 0.5])


def test_with_one_filling_a_reader_would_pass(monkeypatch):
    module = __import__("importlib").import_module("exact.interception.torch_law")
    monkeypatch.setattr(module, "FILLINGS", FILLINGS[:1])
    assert sessions.FILLINGS == FILLINGS
    for name in ("torch.empty", "torch.Tensor", "np.empty", "np.ndarray"):
        assert certify_function(READERS[name], target=[0.5, 0.5]).lossless


def written_whole():
    out = torch.empty(2, dtype=torch.long)
    out[0], out[1] = half(), 1
    array = np.empty(1)
    array[:] = 2
    assert isinstance(array, np.ndarray)
    return out.tolist(), float(array[0]), isinstance(P, torch.Tensor), torch.Tensor([1.0]).item()


def test_what_is_written_before_it_is_read_is_no_matter():
    assert len(torch_law(written_whole)) == 2
    law = torch_law(lambda: (P / torch.empty_like(P).exponential_()).argmax().item())
    assert [float(law[i]) for i in range(3)] == P.tolist()
