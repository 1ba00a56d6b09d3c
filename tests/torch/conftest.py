"""One thread for PyTorch: tests run side by side, and its threads would wait for one another."""

import contextlib

with contextlib.suppress(ImportError):
    import torch

    torch.set_num_threads(1)
