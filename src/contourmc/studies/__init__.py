"""The paper's experiments; `contourmc reproduce NAME` runs one. `catalogue` lists them."""
