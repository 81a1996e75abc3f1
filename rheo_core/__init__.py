"""RheoSampling as the paper states it: pure NumPy, any arithmetic, randomness an argument.

Everything certified, simulated or run on a GPU elsewhere in this project is held against this code. Arithmetic is
whatever the rows bring (float64, float32, float16, or exact rationals), and every random step goes through a `Chooser`.
"""

from rheo_core import laws, proxies, rates, verification
from rheo_core.checks import InvalidInput
from rheo_core.chooser import Chooser, SamplingChooser
from rheo_core.decoding import Text, generate, speculate
from rheo_core.methods import Cycle, FunctionMethod, Method, TreeMethod, find_method, method, methods
from rheo_core.models import DEFAULT_SUPPORT, DraftRow, ModelPair
from rheo_core.tree import FILL, LEAD, SAMPLED, Tree, TreeShape

__all__ = [
    "DEFAULT_SUPPORT",
    "FILL",
    "LEAD",
    "SAMPLED",
    "Chooser",
    "Cycle",
    "DraftRow",
    "FunctionMethod",
    "InvalidInput",
    "Method",
    "ModelPair",
    "SamplingChooser",
    "Text",
    "Tree",
    "TreeMethod",
    "TreeShape",
    "find_method",
    "generate",
    "laws",
    "method",
    "methods",
    "proxies",
    "rates",
    "speculate",
    "verification",
]
