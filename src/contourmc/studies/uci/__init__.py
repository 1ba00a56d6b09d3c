"""Table 1: Bayesian networks on four UCI data sets, by six methods."""
