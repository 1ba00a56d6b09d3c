"""Whether `diagnose()` can be trusted: right runs, and runs that are wrong on purpose, beside the truth."""
