"""`sample`, and `start`, the same step by step; `resume`, for a run that was cut."""
