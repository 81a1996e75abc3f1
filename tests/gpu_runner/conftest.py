"""One thread: tiny models gain nothing from more, and several processes share the cores."""

import torch

torch.set_num_threads(1)
