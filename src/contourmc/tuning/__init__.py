"""Runs that tune themselves: the pilot, which explores a target, and the run that it prepares."""
