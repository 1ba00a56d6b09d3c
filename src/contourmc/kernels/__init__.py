"""Markov kernels: one file a dynamics, and the combinators over them."""
