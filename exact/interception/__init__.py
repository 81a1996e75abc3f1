"""The exact law of code that draws through torch, NumPy or `random`, unmodified.

Its random calls are caught while it runs and every outcome is walked with its exact weight; what cannot be followed
exactly is refused by name and line. Torch is imported only where the code under test has imported it.

While code runs it is watched: clocks, the system's entropy, devices, processes, threads, sockets, addresses of objects
and generators that are not followed are refused by name and line. Each run starts from the state before the first, and
what the code wrote into is named; uninitialised memory holds several fillings. `exact.runtime` holds the mechanisms.

Out of sight, and for the user to keep out of the function: a kernel or extension that draws inside by its own
generator, threads that ran before, a clock that C reads for C (`map(datetime.now, ...)`), the order of a set of strings
(PYTHONHASHSEED; the command runs two), the contents of files, and state beyond what the function can be seen to reach.
"""

from typing import Any

from exact.interception.decoders import Decoder, certify_decoder
from exact.interception.function_certificate import FunctionCertificate
from exact.interception.kernels import KernelCheck, check_kernel
from exact.interception.session import current_chooser
from exact.interception.torch_law import Interception, torch_law
from exact.interception.verdict import certify_function
from exact.runtime.unsupported import Unsupported

__all__ = [
    "Decoder",
    "FunctionCertificate",
    "Interception",
    "KernelCheck",
    "Unsupported",
    "certify_decoder",
    "certify_function",
    "check_kernel",
    "current_chooser",
    "temperature_processor",
    "torch_law",
    "tree_verifier",
]


def __getattr__(name: str) -> Any:
    """The adapters, which need torch."""
    if name in ("tree_verifier", "temperature_processor"):
        from exact.interception import adapters

        return getattr(adapters, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
