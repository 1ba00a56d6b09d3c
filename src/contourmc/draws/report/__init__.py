"""The report of a run: one page in one file, to keep and to hand on."""
