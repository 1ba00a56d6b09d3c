# PyTorch is optional. Without this file, pyright would take contourmc/torch for it where it is not installed.
from typing import Any

def __getattr__(name: str) -> Any: ...
