"""How batches of data reach the device: in a random order, from memory-mapped files, from streams."""
