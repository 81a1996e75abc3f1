"""A CUDA device without the hardware: tensors with shapes, types and a device, but no numbers.

torch's FakeTensorMode runs every operator on such tensors. Two devices in one operator raise, and so does every read of
a number from the host (`.item()`, `.tolist()`, a boolean mask as index); copies for which the host would wait are
refused by `Waiting`. What is not shown is anything about numbers or speed.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from transformers import PreTrainedModel

CUDA, META = 1, 14
"""Places of the two devices in torch's table of device guards (c10/core/DeviceType.h)."""


class Waiting(TorchDispatchMode):
    """Refuses what makes the host wait: blocking copies between host and device, and operators on tensors of both.

    An index on the host is among the latter: torch copies it to the device first.
    """

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if func in (torch.ops.aten._to_copy.default, torch.ops.aten.copy_.default):
            source = args[1] if func is torch.ops.aten.copy_.default else args[0]
            if source.device != result.device and not (kwargs or {}).get("non_blocking", len(args) > 2):
                raise RuntimeError(f"the host waits for a copy from {source.device} to {result.device}")
            return result
        places = {each.device for each in tree_leaves(args) if isinstance(each, torch.Tensor) and each.ndim}
        if len(places) > 1:
            raise RuntimeError(f"{func} on tensors of {' and '.join(sorted(map(str, places)))}")
        return result


def _guard_without_cuda() -> None:
    """Give a CPU build of torch the meta device's guard, which does nothing, for CUDA: it has none of its own.

    CUDA builds have one, and FakeTensorMode replaces it by itself where there is no device.
    """
    library = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libc10.so"))
    guards = (ctypes.c_void_p * (META + 1)).in_dll(library, "_ZN3c104impl26device_guard_impl_registryE")
    if not guards[CUDA]:
        guards[CUDA] = guards[META]


@contextmanager
def fake_cuda() -> Iterator[torch.device]:
    """Inside, tensors are fake and "cuda" is a device. Make models under `with device:`, they cannot be moved."""
    try:
        _guard_without_cuda()
    except (OSError, ValueError) as error:  # no libc10.so (not Linux), or a torch without that table
        pytest.skip(f"torch's table of device guards was not found: {error}")
    with FakeTensorMode(allow_non_fake_inputs=True), pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.Tensor, "pin_memory", lambda tensor: tensor)  # fake memory cannot be pinned
        patch.setattr(PreTrainedModel, "to", lambda model, *where, **named: model)
        yield torch.device("cuda", 0)
