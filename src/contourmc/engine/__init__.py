"""From a target and a kernel to draws: the plan of a run, its state, the compiled loop, and the run around it."""
