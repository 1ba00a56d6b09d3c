"""The folder of a run: checkpoints, from which it goes on bit for bit, and draws, which others can read meanwhile."""
